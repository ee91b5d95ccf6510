#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# sanitizer_control.sh PROGRAM KIND=TEXT...: the sanitizers of this build report what is
# planted in PROGRAM (planted_bugs.c), and are not silent for want of an option. TAP.
set -u
export UBSAN_OPTIONS=halt_on_error=1:${UBSAN_OPTIONS-}
program=$1
shift
n=0 bad=0
for pair in "$@"; do
	n=$((n + 1))
	kind=${pair%%=*} text=${pair#*=}
	if out=$("$program" "$kind" 2>&1); then
		echo "not ok $n - the planted $kind ended well"
		bad=1
	elif grep -qF "$text" <<<"$out"; then
		echo "ok $n - the planted $kind is reported"
	else
		echo "not ok $n - the planted $kind is not reported as '$text'"
		printf '%s\n' "$out" | head -20 | sed 's/^/# /'
		bad=1
	fi
done
echo "1..$n"
exit $bad
