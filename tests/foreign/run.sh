#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh: cross-builds the whole tree with Debian's compilers and runs the tests of kem/,
# the vectors and what reads bytes from elsewhere under qemu-user. See usage().
set -u
cd "$(dirname "$0")/../.." || exit 2
# meson wants Debian's own Python, whatever stands first in PATH.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH

usage() {
	cat <<'EOT'
usage: tests/foreign/run.sh [--long] [--top DIR] [--results FILE] [--jobs N] [ARCH...]

  --long          all unit tests and vectors, at full length: minutes an architecture
  --top DIR       where builds and downloaded libraries go (default: build-test)
  --results FILE  as of tests/lib/runner.py (default: DIR/foreign.jsonl, and a table)
  --jobs N        tests at a time (default: one a processor)

ARCH: s390x (big-endian) and i386 (32 bits), if none is named; arm64, riscv64.
What is missing (a compiler, qemu, the libraries) is a skip that says so.
EOT
}

long='' top=build-test results='' jobs=$(nproc) archs=()
while [ $# -gt 0 ]; do
	case $1 in
	--long) long=yes ;;
	--top | --results | --jobs)
		[ $# -ge 2 ] || { usage >&2 && exit 2; }
		declare "${1#--}=$2"
		shift
		;;
	s390x | i386 | arm64 | riscv64) archs+=("$1") ;;
	-h | --help) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
	shift
done
[ ${#archs[@]} -gt 0 ] || archs=(s390x i386)
mkdir -p "$top" && top=$(cd "$top" && pwd) || exit 2

# shellcheck source=tests/lib/packages.sh
. tests/lib/packages.sh

# What the build and its tests link: as the package list has it, Check, json-c, and what
# gcc adds by itself on riscv64.
mapfile -t libraries < <(printf '%s\n' "${BUILD_PACKAGES[@]}" | grep -E '^lib.*-dev$')
libraries+=(check libjson-c-dev libatomic1)

# What is short under an emulator; the rest is for --long.
short='^kem-(alg|alignment|dispatch|encode|fips202|hybrid|keccak|kem|kernels|mlkem'
short+='|schedule|selftest|x25519)-generic$|^vectors-(acvp|hybrid|rfc|wycheproof)-generic$'
short+='|^proto|^wire|^daemon/(codec.*|frame|config|slab)$'
# Bare metal's business: time, stacks, signals and races of processes.
not_here='-generic8$|residue|stack|accumulated|kem-random|kem-alloc|no-division|secret-flow'

note() { # note ARCH skipped|failed REASON
	echo "foreign: $1 $2: $3"
	/usr/bin/python3 tests/lib/runner.py note --results "$results" --label "$1" \
		--suite foreign "--$2" "$3"
}

# cross_file NAME FAMILY ENDIAN ROOT: what meson has to know
cross_file() {
	local root=$4 triplet=$1-linux-gnu multiarch=$1-linux-gnu
	[ "$1" = i686 ] && multiarch=i386-linux-gnu
	cat <<EOT
[binaries]
c = '$triplet-gcc'
ar = '$triplet-ar'
strip = '$triplet-strip'
pkgconfig = 'pkg-config'
exe_wrapper = [$(printf "'%s'," "${qemu[@]}")]
[built-in options]
c_args = ['--sysroot=$root']
c_link_args = ['--sysroot=$root']
[properties]
sys_root = '$root'
pkg_config_libdir = '$root/usr/lib/$multiarch/pkgconfig:$root/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = '$2'
cpu = '$1'
endian = '$3'
EOT
}

# built NAME: configures (once) and builds $top/NAME
built() {
	local build=$top/$1 log=$top/$1.log
	if ! [ -e "$build/build.ninja" ]; then
		rm -rf "$build"
		meson setup "$build" --cross-file "$top/$1.ini" -Dwerror=true >"$log" 2>&1 ||
			return 1
	fi
	ninja -C "$build" -j "$(nproc)" >>"$log" 2>&1
}

run_arch() {
	local arch=$1 name family endian=little log cases
	case $arch in
	s390x) name=s390x family=s390x endian=big ;;
	i386) name=i686 family=x86 ;;
	arm64) name=aarch64 family=aarch64 ;;
	riscv64) name=riscv64 family=riscv64 ;;
	esac
	log=$top/foreign-$arch.log
	command -v "$name-linux-gnu-gcc" >/dev/null ||
		{ note "$arch" skipped "no gcc-$name-linux-gnu here" && return; }
	qemu=("qemu-${name/i686/i386}" -L "$top/foreign/$arch/root")
	command -v "${qemu[0]}" >/dev/null ||
		{ note "$arch" skipped "qemu-user is not installed" && return; }
	tests/foreign/root.sh "$arch" "$top/foreign/$arch" "${libraries[@]}" >"$log" 2>&1
	case $? in
	0) ;;
	77)
		note "$arch" skipped "$(tail -1 "$log" | sed 's/^skipped: //')"
		return
		;;
	*)
		note "$arch" failed "its libraries can't be unpacked; see $log"
		return
		;;
	esac
	cross_file "$name" "$family" "$endian" "$top/foreign/$arch/root" \
		>"$top/foreign-$arch.ini"
	if ! built "foreign-$arch"; then
		grep -E 'error|warning|ERROR|FAILED' "$log" | head -20 >&2
		note "$arch" failed "it does not build; see $log"
		return
	fi
	if [ "$long" ]; then
		cases=(--suite unit --suite vectors --skip "$not_here" --env MLKEMD_LONG=1)
	else
		cases=(--suite unit --suite vectors --only "$short"
			--env MLKEMD_TEST_LENGTH=quick)
	fi
	/usr/bin/python3 tests/lib/runner.py run --build "$top/foreign-$arch" \
		--label "$arch" --results "$results" --jobs "$jobs" --as-suite foreign \
		--wrapper "${qemu[*]}" --timeout-scale 10 "${cases[@]}"
}

[ "$results" ] || { results=$top/foreign.jsonl own=yes && : >"$results"; }
ulimit -c 0
for arch in "${archs[@]}"; do
	run_arch "$arch"
done
[ -z "${own-}" ] || /usr/bin/python3 tests/lib/runner.py report --results "$results"
