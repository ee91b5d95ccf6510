#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# on_cpu.sh CPU BACKEND PROGRAM ARGS...: runs a test of kem/ on an emulated CPU. It may
# choose its backend itself and has to choose BACKEND, which it says in its first line.
set -u

cpu=$1 backend=$2
shift 2
if ! command -v qemu-x86_64 >/dev/null; then
	echo "skipped: qemu-user is not installed"
	exit 77
fi
unset MLKEMD_BACKEND
ulimit -c 0
text=$(mktemp) || exit 1
trap 'rm -f "$text"' EXIT
# What its emulator lacks of a CPU, qemu says each time.
qemu-x86_64 -cpu "$cpu" "$@" >"$text" 2>&1
status=$?
grep -v "^qemu-x86_64: warning: TCG doesn't support requested feature" "$text"
if [ $status -eq 0 ] && ! grep -q "^backend $backend, " "$text"; then
	echo "on $cpu it has not chosen $backend"
	exit 1
fi
exit $status
