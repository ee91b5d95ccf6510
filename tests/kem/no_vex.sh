#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# no_vex.sh PLANTED COMMON...: no object of the archives COMMON may hold an instruction
# of AVX, AVX-512 or BMI (VEX or EVEX encoded): they run on CPUs without.
# PLANTED is a library of vector kernels, in which they have to be found.
set -u

planted=$1
shift
n=0 failed=0

# instructions ARCHIVE: how many of those; nothing if there is no code to look at
instructions() {
	objdump -d --no-show-raw-insn "$1" >"$text" || return
	grep -q '>:$' "$text" || return
	grep -Ec "^ +[0-9a-f]+:[[:space:]]+(v[a-z]|k(mov|and|or|xor|not|unpck|shift|add|test)|andn|bextr|bls(i|r|msk)|bzhi|mulx|p(dep|ext) |rorx|s(ar|hl|hr)x)|%[yz]mm" "$text"
}

report() {
	n=$((n + 1))
	if [ "$1" = ok ]; then
		echo "ok $n - $2"
	else
		failed=1
		echo "not ok $n - $2"
	fi
}

if ! command -v objdump >/dev/null; then
	echo "1..1"
	echo "ok 1 - objects are looked at # SKIP objdump is not here"
	exit 0
fi
text=$(mktemp) || exit 1
trap 'rm -f "$text"' EXIT
for archive in "$@"; do
	found=$(instructions "$archive")
	[ "$found" = 0 ] && found=ok
	report "$found" "no VEX or EVEX in ${archive##*/}"
done
[ "$(instructions "$planted")" -gt 0 ] && found=ok || found=none
report "$found" "they are found in ${planted##*/}"
echo "1..$n"
exit $failed
