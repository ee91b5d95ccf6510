# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# The Debian packages that quickstart.sh, test.sh and .ci/run need, and how to get them.
# Sourced, never run. Debian 12 and 13 have all of them.

BUILD_PACKAGES=(
	gcc libc6-dev meson ninja-build pkgconf
	libssl-dev libevent-dev libseccomp-dev libprotobuf-c-dev protobuf-c-compiler
)
# clang for a second opinion, the sanitizers and libFuzzer; Check and json-c for the unit
# and vector suites; valgrind follows secrets; Python for the peer that is written from
# mlkemd.proto alone; mandoc and shellcheck read the documents and scripts. nginx and the
# like are not installed: proxies.sh fetches them.
TEST_PACKAGES=(
	clang libclang-rt-dev llvm check libjson-c-dev
	clang-19 libclang-rt-19-dev # MemorySanitizer: valgrind has no AVX-512
	protobuf-compiler python3 python3-pytest python3-protobuf
	util-linux procps binutils valgrind libc6-dbg mandoc shellcheck
	openssl curl
	systemd-container e2fsprogs # a guest with systemd; without, tests/systemd is skipped
	abigail-tools # the interface of the library, compared
)
# Other CPUs and architectures; whoever lacks them has those tests skipped.
FOREIGN_PACKAGES=(qemu-user gcc-s390x-linux-gnu gcc-i686-linux-gnu)
FOREIGN_LONG_PACKAGES=(gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu)
# Only .ci/run: the versions are pinned, since another one formats otherwise.
LINT_PACKAGES=(clang-format-14 clang-tidy-14 cppcheck shellcheck)

# packages_missing NAME...: prints those that are not installed, one a line.
packages_missing() {
	local name
	for name in "$@"; do
		# A package may be there under the name that provides it.
		if ! dpkg-query -W -f='${Status}\n' "$name" 2>/dev/null |
			grep -q '^install ok installed$'; then
			packages_provided "$name" || printf '%s\n' "$name"
		fi
	done
}

# Unversioned names stand for the versioned ones that they depend on.
packages_provided() {
	case $1 in
	libclang-rt-dev)
		compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-*.a' \
			>/dev/null
		;;
	llvm) compgen -G '/usr/bin/llvm-symbolizer*' >/dev/null ;;
	*) return 1 ;;
	esac
}

# packages_install NAME...: with apt, as root or through sudo. Returns non-zero if apt is
# missing, if neither root nor sudo can be had, or if apt fails.
packages_install() {
	local sudo=()
	[ $# -gt 0 ] || return 0
	command -v apt-get >/dev/null || return 1
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || return 1
		sudo=(sudo)
	fi
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
		"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
			--no-install-recommends --no-remove "$@"
}
