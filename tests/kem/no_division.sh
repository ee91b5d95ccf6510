#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# no_division.sh PLANTED ROOT FLAGS SOURCE...: compiles each source with every compiler that
# is here, at the levels that leave divisions (at four with MLKEMD_LONG=1), and looks for
# divide instructions, whose time tells the operands
# (KyberSlash). PLANTED has a division by q, which has to be found with each compiler.
set -u

planted=$1 root=$2 flags=$3
shift 3
n=0 failed=0 levels='-O0 -Os' tmp=$(mktemp -d) || exit 1
[ "${MLKEMD_LONG:-}" = 1 ] && levels='-O0 -Os -O2 -O3'
trap 'rm -rf "$tmp"' EXIT

# divisions COMPILER LEVEL SOURCE: how many in its object file; nothing if that failed
divisions() {
	# shellcheck disable=SC2086
	"$1" -std=c11 -D_GNU_SOURCE -DMLKEMD_RANGE_ASSERTS=0 -DMLKEMD_VERSION='""' \
		$flags -I"$root" "$2" -c "$3" -o "$tmp/object.o" || return
	objdump -d --no-show-raw-insn "$tmp/object.o" >"$tmp/text" || return
	grep -q '>:$' "$tmp/text" || return
	grep -Ec '[[:space:]]([iu]?div[bwlq]?|[us]div)[[:space:]]' "$tmp/text"
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
clang=clang
command -v clang >/dev/null || clang="clang-14"
for cc in gcc $clang; do
	command -v "$cc" >/dev/null || continue
	found=0
	for level in $levels; do
		bad=
		for source in "$@"; do
			[ "$(divisions "$cc" "$level" "$source")" = 0 ] || bad="$bad $source"
		done
		report "${bad:-ok}" "no division with $cc $level${bad:+:$bad}"
		[ "$(divisions "$cc" "$level" "$planted")" -gt 0 ] && found=1
	done
	[ $found = 1 ] && found=ok
	report $found "the planted division is found with $cc"
done
echo "1..$n"
exit $failed
