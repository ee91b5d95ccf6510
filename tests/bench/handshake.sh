#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# handshake.sh: what a TLS 1.3 handshake costs nginx and HAProxy in processor time, theirs
# and mlkemd's together: plain X25519, X25519MLKEM768 and ML-KEM-768 by the provider on
# each route, and OpenSSL 3.5's own; as server and, connecting to an upstream, as client.
#
#   tests/bench/handshake.sh [--build DIR] [--json] [--rounds N] [--cases A,B] ...
#   tests/bench/handshake.sh --trouble       mlkemd frozen, killed, restarted under load
#   tests/bench/handshake.sh --growth 100000 memory and descriptors
#
# --help has the rest. Everything runs on loopback and is ended by its PID; nginx, HAProxy
# and Debian 13's OpenSSL are unpacked by tests/lib/proxies.sh, nothing is installed. The
# client has the last processor to itself, proxies and mlkemd the others. Without --build
# a release build is made in build-test/release.
set -eu
cd "$(dirname "$0")/../.."

build='' args=()
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=$2 && shift ;;
	--build=*) build=${1#*=} ;;
	-h | --help) exec /usr/bin/python3 -B tests/bench/handshake/main.py --help ;;
	*) args+=("$1") ;;
	esac
	shift
done

if [ -z "$build" ]; then
	build="build-test/release"
	[ -e "$build/build.ninja" ] ||
		meson setup "$build" --buildtype=release -Dtests=false >&2
	ninja -C "$build" >&2
fi
build=$(cd "$build" && pwd)
for file in daemon/mlkemd tools/mlkemctl provider/mlkemd.so; do
	if [ ! -e "$build/$file" ]; then
		echo "handshake.sh: $build has no $file" >&2
		exit 2
	fi
done

load=$(mktemp "${TMPDIR:-/tmp}/mlkemd-load.XXXXXX")
trap 'rm -f "$load"' EXIT
chmod 755 "$load"
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -o "$load" tests/bench/handshake/load.c -lssl -lcrypto

PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 tests/bench/handshake/main.py \
	--build "$build" --load "$load" ${args[@]+"${args[@]}"}
