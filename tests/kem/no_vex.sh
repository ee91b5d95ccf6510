#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# no_vex.sh BUILD: no object of the product holds an instruction of AVX, BMI (VEX encoded)
# or AVX-512 (EVEX encoded, or of its mask registers), those of the vector kernels apart:
# all else runs on CPUs without. And avx2's objects hold no AVX-512.
set -u

build=$1
n=0 failed=0

# instructions OBJECT...: prints how many VEX and how many AVX-512 ones they hold, and
# fails if there is no code in them. In 64-bit code an opcode of c4, c5 or 62 is nothing
# else; only segment and address prefixes may stand before it.
instructions() {
	objdump -d --insn-width=15 "$@" | awk -F '\t' '
		NF >= 3 && $1 ~ /^ *[0-9a-f]+:$/ {
			code++
			bytes = $2
			while (bytes ~ /^(26|2e|36|3e|64|65|67) /)
				bytes = substr(bytes, 4)
			first = substr(bytes, 1, 2)
			if (first == "62" || $3 ~ /%k[0-7]/)
				evex++
			else if (first == "c4" || first == "c5")
				vex++
		}
		END {
			print vex + 0, evex + 0
			exit code == 0
		}'
}

report() {
	n=$((n + 1))
	if [ "$1" = ok ]; then
		echo "ok $n - $2"
	else
		failed=1
		echo "not ok $n - $2 ($1)"
	fi
}

# holds WANTED WHAT OBJECT...: WANTED is a pattern of the two counts
holds() {
	local wanted=$1 what=$2 counts
	shift 2
	counts=$(instructions "$@") || counts="no code in $*"
	[[ $counts =~ ^($wanted)$ ]] && counts=ok
	report "$counts" "$what"
}

# planted WANTED WHAT INSTRUCTION: the control
planted() {
	printf '\t.text\n\t%s\n' "$3" >"$dir/planted.s"
	if ${CC:-cc} -c -o "$dir/planted.o" "$dir/planted.s"; then
		holds "$1" "$2" "$dir/planted.o"
	else
		report "not assembled" "$2"
	fi
}

if ! command -v objdump >/dev/null; then
	echo "1..1"
	echo "ok 1 - objects are looked at # SKIP objdump is not here"
	exit 0
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# What the compiler made: libmlkemclient.a is one object that has all of them in it.
while read -r folder; do
	what=${folder#"$build"/}
	case ${what##*/} in
	libkem-avx2.a.p) holds '[1-9][0-9]* 0' "$what: AVX2, and no AVX-512" "$folder"/*.o ;;
	libkem-avx512.a.p | libkem-x25519-avx512.a.p)
		holds '[0-9]+ [1-9][0-9]*' "$what: AVX-512" "$folder"/*.o
		;;
	*) holds '0 0' "$what: neither" "$folder"/*.o ;;
	esac
done < <(find "$build" -path "$build/tests" -prune -o -path '*.p/*' -name '*.o' -printf '%h\n' | sort -u)
for part in kem/libkem.a.p libkem-generic.a.p proto client-lib daemon tools; do
	find "$build" -path "*$part*" -name '*.o' | grep -q . || report none "objects of $part"
done

# shellcheck disable=SC2016 # dollars of the assembler
{
	planted '1 0' 'planted: AVX' 'vzeroupper'
	planted '1 0' 'planted: BMI' 'andn %eax, %ebx, %ecx'
	planted '1 0' 'planted: AVX behind a prefix' 'vmovdqu %fs:(%eax), %xmm1'
	planted '0 1' 'planted: AVX-512' 'vpternlogd $1, %xmm1, %xmm2, %xmm3'
	planted '0 1' 'planted: AVX-512 in mask registers' 'kmovw %k1, %eax'
	planted '0 0' 'no instruction but a number' 'movl $0xc4c56262, %eax'
}
echo "1..$n"
exit $failed
