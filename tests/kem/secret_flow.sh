#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# secret_flow.sh PROGRAM ROOT TOOL BACKEND FLAGS SOURCE...: builds secret_flow.c for a
# backend, with its sources, with every compiler that is here (at every level, and across
# files, with MLKEMD_LONG=1), and lets TOOL follow the secrets through all operations:
# memcheck, or msan, which knows AVX-512 (with a clang of 16 or newer). Planted
# faults have to be reported by each build: a compiler that sees through one hides nothing
# else either.
set -u

program=$1 root=$2 tool=$3 backend=$4 flags=$5
shift 5
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

skip() { # REASON
	echo "1..1"
	echo "ok 1 - secrets are followed by $tool through $backend # SKIP $1"
	exit 0
}

# No debug information: valgrind 3.19 can't read what clang 14 writes.
build() { # COMPILER LEVEL SOURCE...
	cc=$1 level=$2
	shift 2
	# shellcheck disable=SC2046,SC2086
	"$cc" -std=c11 -D_GNU_SOURCE -DMLKEMD_RANGE_ASSERTS=0 -I"$root" \
		-DBACKEND="backend_$backend" -DTAINT="\"tests/kem/taint_$tool.h\"" \
		$tool_flags $flags $(echo "$level" | tr , ' ') \
		"$program" "$@" -o "$tmp/flow" >"$tmp/log" 2>&1
}

follow() { # [FAULT]
	# shellcheck disable=SC2086
	$run "$tmp/flow" "$@" >"$tmp/log" 2>&1
}

# The newest clang that is here, if it is new enough.
clang_for_msan() {
	for cc in $(seq -f 'clang-%g' 29 -1 16) clang; do
		command -v "$cc" >/dev/null || continue
		[ "$("$cc" -dumpversion | cut -d. -f1)" -ge 16 ] && echo "$cc" && return
	done
}

case $tool in
memcheck)
	if ! command -v valgrind >/dev/null ||
		! echo '#include <valgrind/memcheck.h>' | gcc -E - >/dev/null 2>&1; then
		skip 'valgrind is not here'
	fi
	clang=clang
	command -v clang >/dev/null || clang="clang-14"
	compilers="gcc $clang"
	levels='-Os -O2'
	[ "${MLKEMD_LONG:-}" = 1 ] && levels='-O0 -Os -O2 -O3 -O3,-flto'
	faults='message compare select'
	tool_flags='' run='valgrind -q --error-exitcode=9' reported=9
	;;
msan)
	clang=$(clang_for_msan)
	[ -n "$clang" ] || skip 'no clang of 16 or newer is here'
	for need in avx512vbmi avx512_vbmi2 avx512ifma; do
		grep -qw "$need" /proc/cpuinfo || skip "this CPU has no $need"
	done
	compilers=$clang
	levels='-O2'
	[ "${MLKEMD_LONG:-}" = 1 ] && levels='-O0 -O1 -Os -O2 -O3'
	faults='message compare select ladder'
	# clang 16 began to report secrets that are passed to functions.
	tool_flags="-DMLKEMD_MSAN -fsanitize=memory -fno-sanitize-memory-param-retval
		-include $root/tests/kem/taint_msan.h"
	run='' reported=1
	echo 'int main(void) { return 0; }' >"$tmp/empty.c"
	if ! "$clang" -fsanitize=memory "$tmp/empty.c" -o "$tmp/empty" >/dev/null 2>&1 ||
		! "$tmp/empty"; then
		skip "$clang has no MemorySanitizer"
	fi
	;;
esac
for cc in $compilers; do
	command -v "$cc" >/dev/null || continue
	for level in $levels; do
		# clang needs a linker plugin for that, which is not everywhere.
		[ "$cc$level" = "$clang-O3,-flto" ] && continue
		build "$cc" "$level" "$@"
		report $? 0 "$cc $level builds"
		follow
		report $? 0 "$backend: no branch or index by a secret with $cc $level"
		for fault in $faults; do
			follow "$fault"
			report $? "$reported" "planted: $fault is reported with $cc $level"
		done
	done
done
echo "1..$n"
exit $failed
