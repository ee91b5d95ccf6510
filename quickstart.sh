#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds mlkemd, starts it on a private socket, and shows two programs agree on an
# X25519MLKEM768 secret through it. Touches nothing in /etc or /run.
set -u
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$here/build-quickstart
dir='' pid='' step=start
keep=no dry_run=no install=yes

usage() {
	cat <<-END
	usage: ./quickstart.sh [--keep] [--dry-run] [--no-install]

	  --keep        leave mlkemd running, and say how to talk to it and to stop it
	  --dry-run     say what would be done, and do nothing
	  --no-install  never call apt; build with what is there

	Installs what is missing with apt (as root or through sudo; it lists the packages
	before), builds in build-quickstart/, runs mlkemd on a socket in a new directory
	under \${TMPDIR:-/tmp}, lets two parties exchange a key through it, then many, and
	stops it again.
	END
}

say() { printf '%-11s %s\n' "$1" "$2"; }

# fail CAUSE [LOG]: the one line of a failure.
fail() {
	printf 'quickstart: %s failed: %s%s\n' "$step" "$1" "${2:+ (log: $2)}" >&2
	exit 1
}

# What a log says is wrong: its first error, else its last line.
cause_in() {
	local line
	line=$(grep -m1 -E '(^|[^a-z])(error|ERROR|E): ' "$1" || tail -n 1 "$1")
	printf '%s' "${line:-it said nothing}"
}

stop_daemon() {
	local i
	[ -n "$pid" ] || return 0
	kill -TERM "$pid" 2>/dev/null
	for ((i = 0; i < 100; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	local status=$?
	pid=
	return $status
}

clean_up() {
	stop_daemon
	[ -z "$dir" ] || rm -rf "$dir"
}

check_packages() {
	step=packages
	# shellcheck source=tests/lib/packages.sh
	. "$here/tests/lib/packages.sh" || fail "cannot read tests/lib/packages.sh"
	missing=()
	if command -v dpkg-query >/dev/null; then
		mapfile -t missing < <(packages_missing "${BUILD_PACKAGES[@]}")
	elif [ $install = yes ]; then
		echo "This host has no apt. mlkemd needs these (names as in Debian):"
		printf '  %s\n' "${BUILD_PACKAGES[*]}"
		echo "Install them your way, then run ./quickstart.sh --no-install"
		exit 1
	fi
}

install_packages() {
	if [ ${#missing[@]} = 0 ]; then
		say packages "nothing to install"
	elif [ $install = no ]; then
		say packages "not installed, by your wish: ${missing[*]}"
	else
		say packages "to be installed with apt: ${missing[*]}"
		[ $dry_run = no ] || return 0
		mkdir -p "$build" 2>/dev/null || fail "cannot make $build"
		[ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
			fail "neither root nor sudo; as root: apt-get install ${missing[*]}"
		packages_install "${missing[@]}" >"$build/quickstart-apt.log" 2>&1 ||
			fail "$(cause_in "$build/quickstart-apt.log")" \
				"$build/quickstart-apt.log"
	fi
}

build_all() {
	local log=$build/quickstart-build.log start=$SECONDS name
	step=build
	mkdir -p "$build" 2>/dev/null || fail "cannot make $build"
	for name in meson ninja protoc-c; do
		command -v $name >/dev/null || fail "there is no $name on this host"
	done
	{ : >"$log"; } 2>/dev/null || fail "cannot write $log"
	say building "mlkemd and mlkemctl: a minute or two the first time (log: $log)"
	# A checkout that was moved: its build knows only the old place.
	if [ -f "$build/build.ninja" ] && ! grep -qF "$here" "$build/build.ninja"; then
		rm -rf "$build"
		mkdir -p "$build"
	fi
	if ! [ -f "$build/build.ninja" ]; then
		meson setup -Dtests=false "$build" "$here" >>"$log" 2>&1 ||
			fail "$(cause_in "$log")" "$log"
	fi
	ninja -C "$build" daemon/mlkemd tools/mlkemctl >>"$log" 2>&1 ||
		fail "$(cause_in "$log")" "$log"
	say build "mlkemd and mlkemctl in $((SECONDS - start)) s"
}

start_daemon() {
	local log=$build/quickstart-mlkemd.log i
	step='start of mlkemd'
	dir=$(mktemp -d "${TMPDIR:-/tmp}/mlkemd.XXXXXX" 2>/dev/null) ||
		fail "cannot make a directory in ${TMPDIR:-/tmp}"
	# A socket's path has at most 107 bytes.
	if [ ${#dir} -gt 90 ]; then
		rmdir "$dir"
		dir=$(mktemp -d /tmp/mlkemd.XXXXXX) || fail "cannot make a directory in /tmp"
	fi
	printf '[socket]\npath = %s/mlkemd.sock\ncontrol-path = %s/control.sock\n' \
		"$dir" "$dir" >"$dir/mlkemd.conf" || fail "cannot write in $dir"
	"$build/daemon/mlkemd" --config "$dir/mlkemd.conf" </dev/null >"$log" 2>&1 &
	pid=$!
	sockets=(--socket "$dir/mlkemd.sock" --control-socket "$dir/control.sock")
	for ((i = 0; i < 200; i++)); do
		kill -0 $pid 2>/dev/null || {
			pid=
			fail "$(tail -n 1 "$log")" "$log"
		}
		"$build/tools/mlkemctl" ping --socket "$dir/mlkemd.sock" \
			>/dev/null 2>&1 && break
		sleep 0.05
	done
	[ $i -lt 200 ] || fail "it does not answer on $dir/mlkemd.sock" "$log"
	say mlkemd "pid $pid, socket $dir/mlkemd.sock"
}

show_demo() {
	local log=$build/quickstart-demo.log
	step='key exchange'
	sleep 0.3 # the pool fills while nobody asks
	"$build/tools/mlkemctl" demo "${sockets[@]}" 2>"$log" ||
		fail "$(cause_in "$log")" "$log"
}

finish() {
	local ctl=build-quickstart/tools/mlkemctl
	step='stop of mlkemd'
	if [ $keep = yes ]; then
		say running "mlkemd, pid $pid, in $dir"
		say next "$here/$ctl keygen --socket $dir/mlkemd.sock"
		say "" "  prints a share, and waits for the ciphertext that the next line"
		say "" "  makes of that share in another terminal: paste both across"
		say "" "$here/$ctl encaps --socket $dir/mlkemd.sock"
		say "" "$here/$ctl stats --control-socket $dir/control.sock"
		say "to stop" "kill $pid && rm -r $dir"
		disown $pid
		pid='' dir=''
		return
	fi
	stop_daemon || fail "it ended with status $?" "$build/quickstart-mlkemd.log"
	rm -rf "$dir"
	dir=
	say left "build-quickstart/ in the checkout (ignored by git); mlkemd is stopped"
	say next "./quickstart.sh --keep, then $ctl help keygen"
	say "" "./test.sh --quick"
}

while [ $# -gt 0 ]; do
	case $1 in
	--keep) keep=yes ;;
	--dry-run) dry_run=yes ;;
	--no-install) install=no ;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		echo "quickstart: unknown option $1; allowed are --keep, --dry-run" \
			"and --no-install" >&2
		exit 2
		;;
	esac
	shift
done

check_packages
install_packages
if [ $dry_run = yes ]; then
	say build "would be made in $build"
	say mlkemd "would run on a socket in ${TMPDIR:-/tmp}/mlkemd.XXXXXX"
	say demo "would show an exchange through it, then 1000 with 64 in flight"
	exit 0
fi
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
build_all
start_daemon
show_demo
finish
