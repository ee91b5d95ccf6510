#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test.sh: builds and tests everything. See usage() below; tests/README.md says what
# stands where. Builds go to build-test/ in this checkout, nothing is installed but
# missing Debian packages, and nothing outside of /tmp is written.
set -u
cd "$(dirname "$0")" || exit 2

usage() {
	cat <<'EOF'
usage: ./test.sh [--quick | --long] [--strict] [--seed N] [--no-install] [--jobs N]

  --quick       gcc only, the short tests: under a minute after the build
  --long        more rounds and a longer soak
  --strict      a skipped test is a failure
  --seed N      replays the random choices of a run (each prints its seed)
  --no-install  never calls apt; what is missing is said and ends the run
  --jobs N      tests at a time (default: one a processor)

Ends with a table of suites by build and backend, the planted faults and who caught them,
and "N passed, N failed, N skipped". Exit status: 0 all passed, 1 not so, 2 no build.
EOF
}

length=default strict=() seed='' install=yes jobs=$(nproc)
while [ $# -gt 0 ]; do
	case $1 in
	--quick) length=quick ;;
	--long) length=long ;;
	--strict) strict=(--strict) ;;
	--seed | --jobs)
		if ! [[ ${2-} =~ ^[0-9]+$ ]]; then
			usage >&2
			exit 2
		fi
		if [ "$1" = --seed ]; then seed=$2; else jobs=$2; fi
		shift
		;;
	--no-install) install=no ;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift
done

# shellcheck source=tests/lib/packages.sh
. tests/lib/packages.sh

start=$SECONDS
top=build-test
results=$top/results.jsonl
export MLKEMD_TEST_LENGTH=$length
export MLKEMD_SEED=$seed
[ -n "$seed" ] || unset MLKEMD_SEED
unset MLKEMD_BACKEND MLKEMD_FAULT MLKEMD_TEST_RANDOM
# meson and the peer want Debian's own Python, whatever stands first in PATH.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH

die() {
	printf 'test.sh: %s\n' "$*" >&2
	exit 2
}

say() {
	printf '[%4d s] %s\n' $((SECONDS - start)) "$*"
}

packages() {
	local missing
	if ! command -v dpkg-query >/dev/null; then
		say "no dpkg here; needed are: ${BUILD_PACKAGES[*]} ${TEST_PACKAGES[*]}"
		return
	fi
	mapfile -t missing < <(packages_missing "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}")
	[ ${#missing[@]} -gt 0 ] || return
	[ "$install" = yes ] || die "missing packages: ${missing[*]}"
	say "installing: ${missing[*]}"
	packages_install "${missing[@]}" >"$top/apt.log" 2>&1 ||
		die "apt could not install ${missing[*]}; see $top/apt.log"
}

# Emulators and cross compilers, if they can be had; what needs them says so if not.
packages_foreign() {
	local missing
	[ "$install" = yes ] && command -v dpkg-query >/dev/null || return
	mapfile -t missing < <(packages_missing "$@")
	[ ${#missing[@]} -gt 0 ] || return
	say "installing: ${missing[*]}"
	packages_install "${missing[@]}" >"$top/apt-foreign.log" 2>&1 ||
		say "apt could not install them; see $top/apt-foreign.log"
}

# build NAME COMPILER OPTION...: configures (once) and builds $top/NAME. Compilers are
# quiet unless they fail.
build() {
	local name=$1 compiler=$2 log=$top/$1.log
	shift 2
	say "building $name"
	if [ -e "$top/$name/build.ninja" ]; then
		CC=$compiler meson configure "$top/$name" "$@" >"$log" 2>&1
	else
		rm -rf "${top:?}/$name"
		CC=$compiler meson setup "$top/$name" -Dwerror=true "$@" >"$log" 2>&1
	fi || build_failed "$name" "$log"
	ninja -C "$top/$name" -j "$(nproc)" >>"$log" 2>&1 || build_failed "$name" "$log"
}

build_failed() {
	grep -E 'error|warning|ERROR|FAILED' "$2" | head -20 >&2
	die "the build $1 failed; all of it is in $2"
}

# run NAME ARGS...: tests of $top/NAME, counted by tests/lib/runner.py.
run() {
	local name=$1
	shift
	say "testing $name: $*"
	/usr/bin/python3 tests/lib/runner.py run --build "$top/$name" --label "$name" \
		--results "$results" --jobs "$jobs" "$@" || true
}

# The tables, the last line, and the exit status.
report() {
	/usr/bin/python3 tests/lib/runner.py report --results "$results" "${strict[@]}"
	exit
}

mkdir -p "$top"
: >"$results"
packages

# What needs a build with hooks, or one without a sanitizer, runs in that build and is not
# called skipped in the others.
plain=(--elsewhere 'test-hooks=true|sanitizer')

if [ "$length" = quick ]; then
	build gcc gcc
	run gcc --suite unit --suite fuzz "${plain[@]}" \
		--skip 'accumulated|kem-batch-|kem-alloc|client-(answers|wipe|fork|connect)'
	run gcc --suite integration "${plain[@]}" \
		--only 'exchange|inputs|frames|access|unprivileged|mlkemctl-local'
	report
fi

# What the first build has done is not all done again. The looped portable backend proves
# the scheduling: a compiler or a sanitizer adds little there, and of the vector backends
# one is enough for the vectors. A sanitizer's time goes where input is taken and memory is
# handled.
not_asan='wiping|fairness|prometheus|activation|systemd|mlkem-(bench|ct)|mlkemctl-(load|look)'
not_asan+='|lifecycle|valgrind|client-storm|openssl_conf|soak|integration-.*-(generic|avx512)'
long=() twice='generic8' sanitized='accumulated|residue|generic8|vectors-.*-avx2'
[ "$length" = long ] && long=(--env MLKEMD_LONG=1) twice='^$' sanitized='accumulated|residue' \
	not_asan='wiping|fairness|openssl_conf|integration-.*-(generic|avx512)'

# What ships, by the first compiler: everything.
build gcc gcc
run gcc "${plain[@]}" "${long[@]}" --suite unit --suite vectors --suite ct --suite fuzz
run gcc "${plain[@]}" "${long[@]}" --suite integration
run gcc "${plain[@]}" "${long[@]}" --suite interop

# Other CPUs and other architectures, by qemu-user.
if [ "$length" = long ]; then
	packages_foreign "${FOREIGN_PACKAGES[@]}" "${FOREIGN_LONG_PACKAGES[@]}"
	run gcc --suite foreign --suite foreign-long
	run gcc --suite packages-long
	foreign=(--long s390x i386 arm64 riscv64)
else
	packages_foreign "${FOREIGN_PACKAGES[@]}"
	run gcc --suite foreign --env MLKEMD_TEST_LENGTH=quick \
		--only 'cpus|kernels|dispatch|mlkem|hybrid|rfc'
	foreign=(s390x)
fi
say "building and testing ${foreign[*]}"
tests/foreign/run.sh --top "$top" --results "$results" --jobs "$jobs" "${foreign[@]}"

# The other compiler.
build clang clang
run clang "${plain[@]}" --suite unit --suite vectors --suite fuzz --skip "$twice"
run clang "${plain[@]}" --suite integration --only 'exchange|inputs-avx512|frames|provider-tls'

# The build in which faults are planted and memory is looked into.
build hooks gcc -Dtest-hooks=true
run hooks --suite unit --skip accumulated
# Every test that a planted fault is listed with, and what looks into memory.
listed=$(awk -F '\t' '$3 == "inside" { print $2 }' tests/lib/faults.tsv | sort -u | paste -sd '|')
run hooks --suite integration --only "^($listed|integration-(wiping|fairness))\$"
say "planting the faults of tests/lib/faults.tsv"
/usr/bin/python3 tests/lib/runner.py faults --build "$top/hooks" --label hooks \
	--results "$results" --list tests/lib/faults.tsv --source . || true

# Memory errors, leaks, undefined behaviour. The 10 000 rounds of kem-accumulated and the
# search of the stack say nothing about these, and take a sanitizer's time or its frames.
export ASAN_OPTIONS=detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=0:second_deadlock_stack=1
sanitizer=(-Db_lundef=false -Doptimization=1 -Dtest-hooks=true)
build asan clang -Db_sanitize=address,undefined "${sanitizer[@]}"
run asan --suite unit --suite vectors --suite fuzz --timeout-scale 5 \
	--env MLKEMD_SANITIZER=address "${plain[@]}" --skip "$sanitized"
run asan --suite integration --timeout-scale 5 --env MLKEMD_SANITIZER=address "${plain[@]}" \
	--skip "$not_asan"
run asan --suite interop --only sanitized --timeout-scale 5 "${long[@]}" \
	--env MLKEMD_SANITIZER=address "${plain[@]}"

# Races: whatever has threads.
build tsan clang -Db_sanitize=thread "${sanitizer[@]}"
run tsan --suite unit --suite fuzz --timeout-scale 5 --env MLKEMD_SANITIZER=thread "${plain[@]}" \
	--only 'sanitizer|daemon|client|kem-random|kem-dispatch|fuzz-conn' --skip 'client-auto'
run tsan --suite integration --timeout-scale 8 --env MLKEMD_SANITIZER=thread "${plain[@]}" \
	--only 'exchange|frames|lifecycle|access|shards|client-storm'
report
