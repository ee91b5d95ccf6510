#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lint.sh: formatting, static analysis, shell scripts, and the rules that a compiler does
# not know. One line a tool; what a tool found is printed only if it found something.
#
# Functions are called through check (SC2317), names in this tree have no spaces (SC2046),
# and a name with a dash is no arithmetic (SC2100).
# shellcheck disable=SC2317,SC2046,SC2100
set -u
cd "$(dirname "$0")/../.." || exit 2

build=build-lint
bad=0

check() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then
		printf 'lint: %-14s ok\n' "$name"
	else
		printf 'lint: %-14s FAILED\n%s\n' "$name" "$out" | head -60
		bad=1
	fi
}

mapfile -t sources < <(git ls-files '*.c' '*.h')
mapfile -t product < <(git ls-files 'kem/*.c' 'proto/*.c' 'daemon/*.c' 'client-lib/*.c' \
	'tools/*.c' 'provider/*.c' 'tests/lib/*.c' 'tests/fuzz/*.c' 'tests/integration/*.c' |
	grep -v /planted_bugs.c)
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)

headers() {
	local file status=0
	for file in $(git ls-files '*.c' '*.h' '*.py' '*.sh' '*.proto' '*meson.build' \
		.ci/run); do
		head -4 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || {
			echo "$file: no SPDX line at its top"
			status=1
		}
	done
	return "$status"
}

# The folders' rules of docs and architecture, as far as a grep can tell.
includes() {
	local status=0
	rule() {
		local what=$1 pattern=$2
		shift 2
		if grep -nE "$pattern" "$@"; then
			echo "^ $what"
			status=1
		fi
	}
	rule 'kem/ sees no socket, no libevent, no protobuf, no log' \
		'include *[<"](event2/|sys/socket|protobuf|daemon/|.*pb-c\.h|log\.h)' \
		$(git ls-files 'kem/*.[ch]' 'kem/arch/*.[ch]')
	rule 'codec alone sees protobuf in daemon/' \
		'include *[<"].*(pb-c\.h|protobuf)' \
		$(git ls-files 'daemon/*.[ch]' | grep -v 'daemon/codec')
	rule 'service, keytable, keypool, codec and batch do not see libevent' \
		'include *[<"]event2/' \
		$(git ls-files 'daemon/service*.[ch]' 'daemon/key*.[ch]' \
			'daemon/codec*.[ch]' 'daemon/batch*.[ch]')
	rule 'the daemon starts no process, and nobody sets a locale' \
		'\b(fork|vfork|posix_spawnp?|popen|system|daemon|exec[lv]p?e?|setlocale) *\(' \
		$(git ls-files 'daemon/*.c' 'kem/*.c' 'proto/*.c' 'client-lib/*.c' \
			'provider/*.c' | grep -v daemon/sandbox.c)
	rule 'the client library prints nothing and sets no handler' \
		'\b(printf|fprintf|puts|signal|sigaction|atexit|pthread_create) *\(' \
		$(git ls-files 'client-lib/*.c' | grep -v examples/)
	rule 'the provider prints nothing, starts nothing and stands on client-lib alone' \
		'\b(printf|fprintf|puts|signal|sigaction|atexit|pthread_create) *\(|include *[<"](daemon|proto|event2)/|include *[<"]kem/[^f]' \
		$(git ls-files 'provider/*.[ch]')
	rule 'an EVP_ result tested with ! takes -1 for success' \
		'if \(!EVP_[A-Za-z_0-9]+\(.*(generate|derive|init|update|final|fromdata|set)' \
		$(git ls-files 'kem/*.c')
	return "$status"
}

tidy() {
	printf '%s\n' "${product[@]}" |
		xargs -P "$(nproc)" -n 8 clang-tidy-14 --quiet -p "$build" \
			--warnings-as-errors='*' 2>&1 | grep -E 'error:|warning:' && return 1
	return 0
}

analyse() {
	cppcheck --quiet --error-exitcode=1 --std=c11 --library=posix -j "$(nproc)" \
		--enable=warning,performance,portability --inline-suppr \
		--suppressions-list=tests/lib/cppcheck.txt -D__x86_64__ -D__GNUC__=12 \
		-DMLKEMD_VERSION='"0"' -I. --include=tests/lib/cppcheck.h --template=gcc \
		$(git ls-files 'kem/*.c' 'proto/*.c' 'daemon/*.c' 'client-lib/*.c' \
			'tools/*.c' 'provider/*.c' 'tests/lib/*.c' | grep -v /planted_bugs.c)
}

configure() {
	[ -e "$build"/compile_commands.json ] ||
		CC=clang meson setup "$build" -Dtest-hooks=true || return 1
	# The messages that protoc-c makes are included by what is looked at.
	ninja -C "$build" proto/mlkemd.pb-c.h
}

check shellcheck shellcheck -x -P SCRIPTDIR "${scripts[@]}"
check clang-format clang-format-14 --dry-run -Werror "${sources[@]}"
check licences headers
check layers includes
check configure configure
check cppcheck analyse
check clang-tidy tidy
exit $bad
