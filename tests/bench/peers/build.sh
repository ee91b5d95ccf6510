#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh [DIR]: builds the peers of mlkem-bench --peers into DIR (~/.cache/mlkemd/peers),
# each from its own package registry by that registry's own client. What can't be built
# leaves its reason in DIR/peer-NAME.skipped. Nothing else of the project needs any of it.
set -u
cd "$(dirname "$0")" || exit 2

case ${1-} in
-*)
	sed -n '4,6s/^# //p' build.sh
	exit 2
	;;
esac
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/mlkemd/peers}
mkdir -p "$dir/build" || exit 2
dir=$(cd "$dir" && pwd)
here=$PWD
root=$(cd ../../.. && pwd)
log=$dir/build/log
: >"$log"
# Others may need the machine meanwhile; JOBS=2 builds two files at a time.
jobs=${JOBS:-1}

skip() {
	printf '%s\n' "$2" >"$dir/peer-$1.skipped"
	rm -f "$dir/peer-$1"
	printf 'peer %s: skipped: %s\n' "$1" "$2"
}

built() {
	rm -f "$dir/peer-$1.skipped"
	printf 'peer %s: built\n' "$1"
}

# need NAME PROGRAM...: all of them are there, or the peer is skipped.
need() {
	local name=$1 program
	shift
	for program; do
		if ! command -v "$program" >/dev/null; then
			skip "$name" "$program is not installed"
			return 1
		fi
	done
}

# c_peer NAME SOURCE PATHS: a peer in C; PATHS names its headers and its library.
c_peer() {
	local name=$1 source=$2 include library
	{ read -r include && read -r library; } <"$3" || return 1
	"${CC:-cc}" -O2 -std=gnu11 -D_GNU_SOURCE -I"$root" -I"$include" "$source" peer.c \
		"$root/tools/mlkem-bench/measure.c" "$library" -lpthread -ldl \
		-o "$dir/peer-$name" >>"$log" 2>&1
}

# rust_peer NAME FOLDER SOURCE: the library is built by a package of Rust's registry. A
# copy of FOLDER is built, since cargo writes beside what it reads.
rust_peer() {
	local name=$1 folder=$2 source=$3
	need "$name" cargo cc || return
	rm -rf "$dir/build/$folder"
	cp -r "$folder" "$dir/build/$folder"
	# OpenSSL's package asks for -O2 behind OpenSSL's own -O3: the last word is ours.
	if ! (cd "$dir/build/$folder" && CFLAGS=-O3 PEER_BUILT=$dir/build CARGO_BUILD_JOBS=$jobs \
		CARGO_TARGET_DIR=$dir/build/target-$folder cargo build --release) \
		>>"$log" 2>&1; then
		skip "$name" "cargo could not build it; see $log"
	elif c_peer "$name" "$source" "$dir/build/$folder.paths"; then
		built "$name"
	else
		skip "$name" "$source does not build with it; see $log"
	fi
}

go_peer() {
	need go go || return
	if (cd go && GOFLAGS=-mod=mod GOCACHE=$dir/build/go-cache GOMAXPROCS=$jobs \
		go build -o "$dir/peer-go" .) >>"$log" 2>&1; then
		built go
	else
		skip go "this Go has no crypto/mlkem, or no network; see $log"
	fi
}

# python_peer NAME PACKAGE SOURCE
python_peer() {
	local name=$1 package=$2 source=$3 python=${PYTHON:-python3}
	need "$name" "$python" || return
	if ! "$python" -m pip install --quiet --upgrade --target "$dir/build/$name" \
		"$package" >>"$log" 2>&1; then
		skip "$name" "pip could not install $package; see $log"
		return
	fi
	cat >"$dir/peer-$name" <<-END
		#!/bin/sh
		PYTHONPATH='$dir/build/$name:$here' PYTHONDONTWRITEBYTECODE=1
		export PYTHONPATH PYTHONDONTWRITEBYTECODE
		exec $(command -v "$python") '$here/$source'
	END
	chmod +x "$dir/peer-$name"
	if "$dir/peer-$name" </dev/null 2>>"$log" | grep -q '^ready$'; then
		built "$name"
	else
		skip "$name" "$package is there but can't do ML-KEM; see $log"
	fi
}

rust_peer aws-lc awslc peer_awslc.c
rust_peer openssl openssl peer_openssl.c
go_peer
python_peer python-mlkem mlkem peer_mlkem.py
python_peer python-cryptography cryptography peer_cryptography.py
