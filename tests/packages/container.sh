#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# container.sh BUILD RUN [OPTION...]: mlkemd as the Containerfile starts it: process 1 of
# its own namespaces, uid 997, no capability, everything read-only but RUN, which is
# /run/mlkemd there, no network, 64 KiB of locked memory. For `unshare -m -p -n --fork`.
set -eu
build=$1 run=$2
shift 2
mount --make-rprivate /
mount -t proc proc /proc
mkdir -p /run/mlkemd
mount --bind "$run" /run/mlkemd
# Each mount by itself; what can't be made read-only is not of this test's making.
while read -r _ _ _ _ where _; do
	case $where in
	/run/mlkemd | /proc | /proc/* | /dev | /dev/* | /sys | /sys/*) ;;
	*) mount -o remount,bind,ro "$where" 2>/dev/null || : ;;
	esac
done </proc/self/mountinfo
if touch "$build/written" /tmp/written 2>/dev/null; then
	echo "this is not read-only"
	exit 99
fi
ulimit -l 64
ulimit -c 0
exec setpriv --reuid 997 --regid 997 --clear-groups --no-new-privs --bounding-set=-all \
	--inh-caps=-all "$build/daemon/mlkemd" "$@"
