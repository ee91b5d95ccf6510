#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# guest.sh: runs as root in a throw-away Debian under its own systemd, with what
# `meson install` gave at /src. One line "case NAME ok|FAIL TEXT" for each thing looked at;
# test_systemd.py reads them. What a case printed stands before its line.
set -u

cat >/run/connect.pl <<'END'
# connect.pl SECONDS FILE: connects and says Hello as fast as it can, until FILE is there.
use strict; use IO::Socket::UNIX; use Time::HiRes qw(time);
my ($seconds, $stop) = @ARGV;
open(my $in, '<', '/src/request-hello.bin') or die; binmode $in; local $/; my $hello = <$in>;
my ($n, $refused, $lost, $worst) = (0, 0, 0, 0);
my $end = time + $seconds;
while (time < $end && !-e $stop) {
	my $begin = time;
	my $s = IO::Socket::UNIX->new(Peer => '/run/mlkemd/mlkemd.sock');
	$n++;
	if (!$s) { $refused++; print STDERR "connect: $!\n"; next }
	$SIG{PIPE} = 'IGNORE';
	my $answer = '';
	my $sent = syswrite($s, $hello);
	my $got = defined $sent ? sysread($s, $answer, 4096) : undef;
	$lost++ if !$got;
	my $took = time - $begin; $worst = $took if $took > $worst;
	close $s;
}
printf "attempts=%d refused=%d lost=%d worst_ms=%d\n", $n, $refused, $lost, 1000 * $worst;
END

# check NAME COMMAND...: a case. Not called from an "if", in which bash would ignore set -e.
check() {
	local name=$1 out status
	shift
	out=$("$@" 2>&1)
	status=$?
	if [ $status = 0 ]; then
		echo "case $name ok"
	else
		printf '%s\n' "$out" | sed 's/^/| /'
		echo "case $name FAIL exit status $status"
	fi
}

# soon COMMAND...: until it succeeds, at most for 30 s.
soon() {
	local n
	for ((n = 0; n < 300; n++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "not within 30 s: $*"
	return 1
}

pid() { systemctl show -p MainPID --value mlkemd.service; }
as() { runuser -u "$1" -- "${@:2}"; }
exchange() { as "$1" mlkemctl demo --exchanges 200 --in-flight 16; }
log() { journalctl -q --no-pager -o cat -u mlkemd.service; }
logged() { log | grep -q "$1"; }
inode() { stat -c %i /run/mlkemd/mlkemd.sock; }
figure() { curl -sS -m 10 http://127.0.0.1:9768/metrics | awk -v n="$1" '$1 == n { print $2 }'; }

install_it() {
	set -e
	cp -a /src/usr/. /usr/
	ldconfig
	systemd-sysusers
	systemd-tmpfiles --create /usr/local/lib/tmpfiles.d/mlkemd.conf
	useradd -M -s /bin/sh alice
	usermod -aG mlkemd alice
	useradd -M -s /bin/sh mallory
	id mlkemd
	systemctl daemon-reload
	systemd-analyze verify --man=no mlkemd.service mlkemd.socket mlkemd-control.socket \
		mlkemd-metrics.socket
}

starts() {
	if systemctl start mlkemd.service; then
		systemctl is-active mlkemd.service mlkemd.socket mlkemd-control.socket \
			mlkemd-metrics.socket
	else
		log
		return 1
	fi
}

denied() {
	as mallory mlkemctl ping
	[ $? = 4 ] && soon logged 'peer-denied: uid .*mallory.*allow-users'
}

limited() {
	local p
	p=$(pid)
	set -e
	cat "/proc/$p/status" "/proc/$p/limits"
	grep -q '^Seccomp:.*2' "/proc/$p/status"
	[ "$(awk '/^Seccomp_filters:/ { print $2 }' "/proc/$p/status")" -ge 2 ]
	grep -q '^NoNewPrivs:.*1' "/proc/$p/status"
	grep -q '^CapEff:.*0000000000000000' "/proc/$p/status"
	grep -q '^CapBnd:.*0000000000000000' "/proc/$p/status"
	# Not dumpable: its files in /proc are root's.
	[ "$(stat -c %U "/proc/$p/environ")" = root ]
	[ "$(ps -o user= -p "$p")" = mlkemd ]
	[ "$(ps -o ni= -p "$p")" -lt 0 ]
	mlkemctl info | grep -iE 'memfd_secret|mlock'
}

# security UNIT: the exposure that systemd-analyze sees.
security() {
	local exposure
	exposure=$(systemd-analyze security "$1" --no-pager |
		sed -n 's/.*Overall exposure level.*: \([0-9.]*\).*/\1/p')
	echo "exposure $exposure"
	awk -v e="$exposure" 'BEGIN { exit !(e != "" && e <= 1.5) }'
}

scraped() {
	local n
	set -e
	[ "$(figure mlkemd_sandboxed)" = 1 ]
	[ "$(figure mlkemd_selftest_success)" = 1 ]
	[ "$(curl -sS -m 10 http://127.0.0.1:9768/healthz)" = ok ]
	soon ready
	# More than the connections that it has at a time.
	for ((n = 0; n < 50; n++)); do
		[ "$(figure mlkemd_selftest_success)" = 1 ]
	done
	! logged accept-paused
}
ready() { [ "$(curl -sS -m 10 http://127.0.0.1:9768/readyz)" = ok ]; }

survives_kill() {
	local before socket
	before=$(pid)
	socket=$(inode)
	kill -9 "$before"
	# At once, while nobody listens: it waits for the next daemon.
	as alice mlkemctl ping --timeout-ms 20000 || return 1
	[ "$(pid)" != "$before" ] && [ "$(inode)" = "$socket" ] && exchange alice
}

is_another() {
	[ "$(pid)" != 0 ] && [ "$(pid)" != "$1" ] && systemctl is-active mlkemd.service
}

# Frozen, it feeds no watchdog. The unit's 10 s are 3 here.
survives_freeze() {
	local before
	mkdir -p /etc/systemd/system/mlkemd.service.d
	printf '[Service]\nWatchdogSec=3\n' >/etc/systemd/system/mlkemd.service.d/test.conf
	systemctl daemon-reload
	systemctl restart mlkemd.service || return 1
	before=$(pid)
	# The control: one that is left alone is fed, and lives on.
	sleep 7
	[ "$(pid)" = "$before" ] || return 1
	kill -STOP "$before"
	soon is_another "$before" || return 1
	log | grep -q 'Watchdog timeout' && exchange alice
}

reloads() {
	local before
	before=$(pid)
	mkdir -p /etc/mlkemd
	printf '[access]\nallow-users = %s\n[daemon]\nshards = 2\n' "$(id -u mallory)" \
		>/etc/mlkemd/mlkemd.conf
	systemctl reload mlkemd.service || return 1
	as mallory mlkemctl ping || return 1
	logged 'reload-partly: daemon.shards' || return 1
	[ "$(pid)" = "$before" ] && logged reloaded
}

refuses_a_bad_reload() {
	local before
	before=$(pid)
	echo 'nonsense = 1' >>/etc/mlkemd/mlkemd.conf
	systemctl reload mlkemd.service && return 1
	[ "$(pid)" = "$before" ] || return 1
	systemctl is-active mlkemd.service || return 1
	as mallory mlkemctl ping || return 1
	log | grep 'reload-refused: .*/etc/mlkemd/mlkemd.conf:[0-9]*: ' || return 1
	[ "$(figure mlkemd_config_last_reload_successful)" = 0 ] || return 1
	rm /etc/mlkemd/mlkemd.conf
	systemctl reload mlkemd.service &&
		[ "$(figure mlkemd_config_last_reload_successful)" = 1 ]
}

# Twenty restarts while somebody connects all the time.
loses_no_connection() {
	local socket n
	socket=$(inode)
	rm -f /run/stop
	perl /run/connect.pl 120 /run/stop >/run/attempts 2>&1 &
	for ((n = 0; n < 20; n++)); do
		systemctl restart mlkemd.service || return 1
	done
	touch /run/stop
	wait
	cat /run/attempts
	cp /run/attempts /out/attempts
	[ "$(inode)" = "$socket" ] || return 1
	grep -qE 'attempts=[0-9]{2,} refused=0 lost=0 ' /run/attempts
}

# The control of that: without the socket unit there is nobody to wait at.
notices_lost_connections() {
	rm -f /run/stop
	perl /run/connect.pl 5 /run/stop >/run/attempts 2>&1 &
	sleep 0.5
	systemctl stop mlkemd.socket mlkemd.service
	sleep 0.5
	touch /run/stop
	wait
	cat /run/attempts
	systemctl start mlkemd.service || return 1
	! grep -q 'refused=0 ' /run/attempts
}

serves_a_tenant() {
	set -e
	mkdir -p /etc/mlkemd/tenants/acme
	printf '[access]\nallow-users = mallory\nallow-groups =\n' \
		>/etc/mlkemd/tenants/acme/mlkemd.conf
	systemctl start mlkemd@acme.service
	as mallory mlkemctl demo --socket /run/mlkemd-acme/mlkemd.sock --exchanges 50
	as alice mlkemctl ping --socket /run/mlkemd-acme/mlkemd.sock && return 1
	[ "$(ps -o user= -p "$(systemctl show -p MainPID --value mlkemd@acme)")" != mlkemd ]
	systemctl reload mlkemd@acme.service
	systemctl stop mlkemd@acme.socket mlkemd-control@acme.socket mlkemd@acme.service
	systemctl start mlkemd@nobody-made-this.service && return 1
	return 0
}

# Nothing enabled it: who connects starts it.
starts_on_demand() {
	systemctl stop mlkemd.service
	! systemctl is-active mlkemd.service || return 1
	as alice mlkemctl ping --timeout-ms 20000 && systemctl is-active mlkemd.service
}

# After a start that is refused: said, and not tried for ever.
says_what_is_wrong() {
	systemctl stop mlkemd.service
	printf '[pool]\nhybrid = many\n' >/etc/mlkemd/mlkemd.conf
	! systemctl start mlkemd.service || return 1
	soon logged 'config-invalid: /etc/mlkemd/mlkemd.conf:2: ' || return 1
	[ "$(systemctl show -p NRestarts --value mlkemd.service)" = 0 ] || return 1
	rm /etc/mlkemd/mlkemd.conf
	systemctl reset-failed
	systemctl start mlkemd.service
}

# In the unit's sandbox there is no network but what is passed, and the log says so.
names_the_directive() {
	printf '[metrics]\nlisten = 127.0.0.1:9768\n' >/etc/mlkemd/mlkemd.conf
	systemctl restart mlkemd.service || return 1
	[ "$(figure mlkemd_selftest_success)" = 1 ] || return 1
	systemctl mask --now mlkemd-metrics.socket
	systemctl restart mlkemd.service && return 1
	logged 'metrics.listen .*RestrictAddressFamilies=.*mlkemd-metrics.socket' || return 1
	rm /etc/mlkemd/mlkemd.conf
	systemctl stop mlkemd.service
	systemctl unmask mlkemd-metrics.socket
	systemctl daemon-reload
	systemctl reset-failed
	systemctl start mlkemd.service && soon ready
}

stops_cleanly() {
	systemctl stop mlkemd.socket mlkemd-control.socket mlkemd-metrics.socket \
		mlkemd.service || return 1
	[ "$(systemctl show -p Result --value mlkemd.service)" = success ] || return 1
	logged 'stopped: every answer was sent'
}

check install install_it
check start starts
check exchange-as-allowed exchange alice
check exchange-as-root mlkemctl demo --exchanges 50
check forbidden-user denied
check limits limited
check security security mlkemd.service
check security-tenant security mlkemd@acme.service
check scrape scraped
check kill survives_kill
check freeze survives_freeze
check reload reloads
check reload-refused refuses_a_bad_reload
check restarts loses_no_connection
check restarts-control notices_lost_connections
check tenant serves_a_tenant
check on-demand starts_on_demand
check bad-configuration says_what_is_wrong
check address-family names_the_directive
check stop stops_cleanly
echo "case end ok"
