#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cpus.sh MLKEMD CHECK_DISPATCH: what emulated CPUs can't run is refused with its reason,
# and not tried; and the emulator is a CPU that would show a wrong instruction.
set -u

mlkemd=$1 check_dispatch=$2
n=0 failed=0

report() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		failed=1
		echo "not ok $n - $2"
	fi
}

# on CPU COMMAND...: with its standard error, without what qemu has to say of itself
on() {
	local cpu=$1 status
	shift
	timeout -s KILL 100 qemu-x86_64 -cpu "$cpu" "$@" >"$dir/out" 2>&1 </dev/null
	status=$?
	grep -v '^qemu-x86_64: warning: ' "$dir/out"
	return $status
}

# refused CPU NAME: mlkemd doesn't start with that backend and says why
refused() {
	local text status
	text=$(MLKEMD_BACKEND=$2 on "$1" "$mlkemd" --config "$dir/mlkemd.conf")
	status=$?
	[ $status -eq 2 ] && grep -q "MLKEMD_BACKEND: kem.backend: $2: unknown, or not" \
		<<<"$text"
	report $? "on $1 mlkemd refuses $2"
}

# chosen CPU NAME: it starts, says the backend, and ends when told to
chosen() {
	local cpu=$1 name=$2 pid status=1
	qemu-x86_64 -cpu "$cpu" "$mlkemd" --config "$dir/mlkemd.conf" \
		>"$dir/log" 2>&1 </dev/null &
	pid=$!
	for _ in $(seq 600); do
		grep -q "ready: .*, backend $name\$" "$dir/log" && status=0 && break
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	kill -TERM $pid 2>/dev/null
	wait $pid || status=1
	[ $status = 0 ] || sed 's/^/# /' "$dir/log"
	report $status "on $cpu mlkemd starts with $name and ends"
}

if ! command -v qemu-x86_64 >/dev/null; then
	echo "1..1"
	echo "ok 1 - other CPUs # SKIP qemu-user is not installed"
	exit 0
fi
ulimit -c 0
unset MLKEMD_BACKEND
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
printf '[socket]\npath = %s/mlkemd.sock\ncontrol-path = %s/control.sock\n' "$dir" "$dir" \
	>"$dir/mlkemd.conf"

refused Nehalem avx2
refused Nehalem avx512
refused Haswell avx512
chosen Nehalem generic
chosen Haswell avx2
# AVX2 without BMI2, which the kernels use as well
on Haswell,-bmi2 "$check_dispatch" | grep -q '^backend generic, '
report $? "Haswell without BMI2 chooses generic"
on Haswell "$check_dispatch" | grep -q '^backend avx2, '
report $? "Haswell with it chooses avx2"

# The controls: an instruction of AVX, where there is none and where there is.
cat >"$dir/avx.c" <<'END'
int main(void) { __asm__ volatile("vzeroupper"); return 0; }
END
if ${CC:-cc} -o "$dir/avx" "$dir/avx.c" 2>/dev/null; then
	on Nehalem "$dir/avx" >/dev/null
	[ $? -eq 132 ] # SIGILL
	report $? "an AVX instruction ends a program on Nehalem"
	on Haswell "$dir/avx" >/dev/null
	report $? "an AVX instruction runs on Haswell"
else
	report 1 "a program with an AVX instruction compiles"
fi
echo "1..$n"
exit $failed
