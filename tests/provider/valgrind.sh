#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# valgrind.sh PROGRAM: runs a Check program in one process under memcheck: no invalid
# access, nothing used that was not set, nothing lost, up to and including the exit.
set -u

if ! command -v valgrind >/dev/null; then
	echo "valgrind is not installed"
	exit 77
fi
if [ "${MLKEMD_SANITIZER:-none}" != none ]; then
	echo "valgrind can't run a build with a sanitizer"
	exit 77
fi
CK_FORK=no exec valgrind --quiet --error-exitcode=9 --leak-check=full \
	--errors-for-leak-kinds=definite "$1"
