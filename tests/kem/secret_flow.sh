#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# secret_flow.sh PROGRAM ROOT BACKEND FLAGS SOURCE...: builds secret_flow.c for a backend,
# with its sources, at every level, and across files, with every compiler that is here,
# and lets memcheck follow the secrets through all operations. Planted faults have to be reported by each build: a
# compiler that sees through one hides nothing else either.
set -u

program=$1 root=$2 backend=$3 flags=$4
shift 4
n=0 failed=0 tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

report() { # STATUS WANTED TEXT
	n=$((n + 1))
	if [ "$1" = "$2" ]; then
		echo "ok $n - $3"
	else
		failed=1
		echo "not ok $n - $3"
		sed 's/^/# /' "$tmp/log"
	fi
}

# No debug information: valgrind 3.19 can't read what clang 14 writes.
build() { # COMPILER LEVEL SOURCE...
	cc=$1 level=$2
	shift 2
	# shellcheck disable=SC2046,SC2086
	"$cc" -std=c11 -D_GNU_SOURCE -DMLKEMD_RANGE_ASSERTS=0 -I"$root" \
		-DBACKEND="backend_$backend" $flags $(echo "$level" | tr , ' ') \
		"$program" "$@" -o "$tmp/flow" >"$tmp/log" 2>&1
}

follow() { # [FAULT]
	valgrind -q --error-exitcode=9 "$tmp/flow" "$@" >"$tmp/log" 2>&1
}

if ! command -v valgrind >/dev/null ||
	! echo '#include <valgrind/memcheck.h>' | gcc -E - >/dev/null 2>&1; then
	echo "1..1"
	echo "ok 1 - secrets are followed # SKIP valgrind is not here"
	exit 0
fi
clang=clang
command -v clang >/dev/null || clang="clang-14"
for cc in gcc $clang; do
	command -v "$cc" >/dev/null || continue
	for level in -O0 -Os -O2 -O3 -O3,-flto; do
		# clang needs a linker plugin for that, which is not everywhere.
		[ "$cc$level" = "$clang-O3,-flto" ] && continue
		build "$cc" $level "$@"
		report $? 0 "$cc $level builds"
		follow
		report $? 0 "no branch or index by a secret with $cc $level"
		for fault in message compare select; do
			follow $fault
			report $? 9 "planted: $fault is reported with $cc $level"
		done
	done
done
echo "1..$n"
exit $failed
