#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# guest.sh: the life of the packages, as root in a throw-away Debian under its own systemd.
# /src has the packages, and nginx is there. One line "case NAME ok|FAIL" for each thing
# looked at; what a case printed stands before its line. test_debian.py reads them.
set -u
export DEBIAN_FRONTEND=noninteractive
names='libmlkemclient0 mlkemd mlkemd-tools openssl-provider-mlkemd'

# The function is not called from an "if", in which bash would ignore its set -e.
check() {
	local name=$1 out status
	shift
	out=$( (
		set -x
		"$@"
	) 2>&1)
	status=$?
	if [ $status = 0 ]; then
		echo "case $name ok"
	else
		printf '%s\n' "$out" | tail -n 60 | sed 's/^/| /'
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

not() { ! "$@"; }
pid() { systemctl show -p MainPID --value mlkemd.service; }
as() { runuser -u "$1" -- "${@:2}"; }
debs() { for name in $names; do echo "$1/${name}_"*.deb; done; }
version() { dpkg-query -W -f '${Version}' "$1"; }
handshake() { curl -sSk -m 10 https://localhost/; }

# The same packages as a later version.
make_next() {
	local deb dir=/run/repack
	mkdir -p /run/next
	for deb in $(debs /src); do
		rm -rf "$dir"
		dpkg-deb -R "$deb" "$dir" || return
		sed -i 's/\(0\.1\.0-1\)$/\1+next/; s/= 0\.1\.0-1)/= 0.1.0-1+next)/' \
			"$dir/DEBIAN/control"
		if [ -e "$dir/etc/mlkemd/mlkemd.conf" ]; then
			echo '# the next version' >>"$dir/etc/mlkemd/mlkemd.conf"
		fi
		dpkg-deb --root-owner-group -Znone -b "$dir" /run/next || return
	done
	rm -rf "$dir"
}

installs() {
	set -e
	# The image leaves documents out; these packages come with theirs.
	rm -f /etc/dpkg/dpkg.cfg.d/99mmdebstrap
	# shellcheck disable=SC2046 # a list
	dpkg -i $(debs /src)
	dpkg --audit | not grep .
}

is_in_place() {
	set -e
	local unit page
	for unit in mlkemd.service mlkemd.socket mlkemd-control.socket mlkemd-metrics.socket; do
		[ "$(systemctl is-enabled $unit)" = enabled ]
		[ "$(systemctl is-active $unit)" = active ]
	done
	id mlkemd
	getent group mlkemd
	[ "$(stat -c '%a %U' /run/mlkemd/control.sock)" = '600 mlkemd' ]
	[ "$(stat -c %a /run/mlkemd/mlkemd.sock)" = 666 ]
	for page in man1/mlkemctl.1 man1/mlkem-bench.1 man1/mlkem-ct.1 man5/mlkemd.conf.5 \
		man7/mlkemd-provider.7 man8/mlkemd.8; do
		[ -s "/usr/share/man/$page.gz" ]
	done
	[ -s /usr/share/doc/mlkemd/mlkemd.conf.example ]
	[ -s /usr/share/doc/mlkemd/mlkemd.spdx.json ]
	[ -s /usr/share/doc/mlkemd/proxies/nginx.conf ]
	[ -d /etc/mlkemd/conf.d ]
	mlkemd --config /usr/share/doc/mlkemd/mlkemd.conf.example --check
	curl -sS -m 10 http://127.0.0.1:9768/metrics | grep '^mlkemd_build_info'
}

lets_in() {
	set -e
	useradd -M -s /bin/sh alice
	usermod -aG mlkemd alice
	useradd -M -s /bin/sh mallory
	mlkemctl demo --exchanges 50
	as alice mlkemctl demo --exchanges 50
	as mallory mlkemctl ping && return 1
	[ "$(as mallory mlkemctl ping >/dev/null 2>&1 || echo $?)" = 4 ]
}

# docs/proxies.md, in five lines.
nginx_uses_it() {
	set -e
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost \
		-keyout /etc/ssl/private/site.key -out /etc/ssl/certs/site.pem 2>/dev/null
	cat >/etc/nginx/conf.d/site.conf <<-'END'
		server {
			listen 443 ssl;
			ssl_protocols TLSv1.2 TLSv1.3;
			ssl_certificate /etc/ssl/certs/site.pem;
			ssl_certificate_key /etc/ssl/private/site.key;
			location / { return 200 "curve $ssl_curve\n"; }
		}
	END
	rm -f /etc/nginx/sites-enabled/default
	printf '[access]\nallow-users = www-data\n' >/etc/mlkemd/conf.d/nginx.conf
	# A name that was not known at the start takes a restart.
	systemctl restart mlkemd
	mlkemctl openssl-conf --out /etc/mlkemd/openssl.cnf
	mkdir -p /etc/systemd/system/nginx.service.d
	cp /usr/share/doc/mlkemd/proxies/nginx.conf \
		/etc/systemd/system/nginx.service.d/mlkemd.conf
	systemctl daemon-reload
	systemctl restart nginx
	soon handshake
	mlkemctl tls --require localhost:443
}

still_served() { mlkemctl tls --require localhost:443 && handshake; }

# Pings one after the other until /run/stop is there. Nobody is turned away at the door; who
# was in when the old daemon ended may be cut off, and is served when he comes again.
ping_on() {
	local n=0 again=0 failed=0
	set +x
	while [ ! -e /run/stop ]; do
		if ! mlkemctl ping --timeout-ms 20000 >/run/said 2>&1; then
			again=$((again + 1))
			cat /run/said
			if ! grep -q 'the daemon closed the connection' /run/said ||
				! mlkemctl ping --timeout-ms 20000; then
				failed=$((failed + 1))
			fi
		fi
		n=$((n + 1))
	done
	echo "pings=$n again=$again failed=$failed" >/run/pings
}

upgrades() {
	local before socket loop
	before=$(pid)
	socket=$(stat -c %i /run/mlkemd/mlkemd.sock)
	echo '# mine' >>/etc/mlkemd/mlkemd.conf
	rm -f /run/stop
	ping_on &
	loop=$!
	# shellcheck disable=SC2046 # a list
	dpkg --force-confold -i $(debs /run/next) || return 1
	touch /run/stop
	wait $loop
	cat /run/pings
	set -e
	grep 'pings=[0-9]* again=[0-9]* failed=0$' /run/pings
	[ "$(version mlkemd)" = 0.1.0-1+next ]
	[ "$(pid)" != "$before" ]
	[ "$(systemctl is-active mlkemd.service)" = active ]
	[ "$(stat -c %i /run/mlkemd/mlkemd.sock)" = "$socket" ]
	grep '^# mine' /etc/mlkemd/mlkemd.conf
	still_served
}

reinstalls() {
	set -e
	# shellcheck disable=SC2046 # a list
	dpkg --force-confold -i $(debs /run/next)
	systemctl is-active mlkemd.service
	still_served
}

# What runs goes on; who uses it is named.
provider_goes() {
	set -e
	dpkg -r openssl-provider-mlkemd >/run/removal 2>&1
	cat /run/removal
	grep '/etc/mlkemd/openssl.cnf names it' /run/removal
	grep 'nginx.service.d/mlkemd.conf gives' /run/removal
	grep 'running with it: .*nginx' /run/removal
	still_served
}

# As prerm says: without its provider it starts, and serves TLS.
nginx_starts_without() {
	set -e
	systemctl restart nginx
	soon handshake
	handshake
}

provider_comes_back() {
	set -e
	dpkg -i /run/next/openssl-provider-mlkemd_*.deb
	systemctl restart nginx
	soon handshake
	still_served
}

daemon_goes() {
	set -e
	local process
	process=$(pid)
	dpkg -r mlkemd
	not kill -0 "$process"
	[ ! -e /run/mlkemd ]
	systemctl daemon-reload
	systemctl list-units --all --plain --no-legend 'mlkemd*' | not grep -w loaded
	[ -e /etc/mlkemd/mlkemd.conf ]
	# nginx computes by itself.
	handshake
	mlkemctl tls --require localhost:443
}

daemon_comes_back() {
	set -e
	dpkg --force-confold -i /run/next/mlkemd_*.deb
	[ "$(systemctl is-enabled mlkemd.service)" = enabled ]
	soon mlkemctl ping
	grep '^# mine' /etc/mlkemd/mlkemd.conf
	mlkemctl demo --exchanges 50
}

tenant_is_seen_to() {
	set -e
	local first
	mkdir -p /etc/mlkemd/tenants/acme
	printf '[access]\nallow-users = mallory\n' >/etc/mlkemd/tenants/acme/mlkemd.conf
	systemctl start mlkemd@acme.service
	first=$(systemctl show -p MainPID --value mlkemd@acme.service)
	dpkg --force-confold -i /run/next/mlkemd_*.deb
	[ "$(systemctl show -p MainPID --value mlkemd@acme.service)" != "$first" ]
	as mallory mlkemctl ping --socket /run/mlkemd-acme/mlkemd.sock --timeout-ms 20000
}

purges() {
	set -e
	rm -rf /etc/mlkemd/tenants/acme
	# shellcheck disable=SC2086 # a list
	dpkg -P $names
	dpkg-query -W 2>/dev/null | not grep mlkem
	[ ! -e /etc/mlkemd/mlkemd.conf ]
	# The administrator's own files stay.
	[ -e /etc/mlkemd/openssl.cnf ]
	[ -e /etc/mlkemd/conf.d/nginx.conf ]
	systemctl daemon-reload
	systemctl list-unit-files 'mlkemd*' --no-legend | not grep -v '^$'
	find / -xdev -name '*mlkem*' -not -path '/proc/*' -not -path '/src/*' \
		-not -path '/run/next/*' -not -path '/vmrun/*' \
		-not -path '/etc/mlkemd*' -not -path '/etc/systemd/system/nginx.service.d/*' |
		not grep .
}

installs_again() {
	set -e
	installs
	soon mlkemctl ping
	[ "$(systemctl is-enabled mlkemd.service)" = enabled ]
	systemctl restart nginx
	still_served
}

# The control: a step that fails in the middle is a failure.
fails_midway() {
	set -e
	false
	true
}
check control fails_midway

check next make_next
check install installs
check in-place is_in_place
check access lets_in
check nginx nginx_uses_it
check upgrade upgrades
check reinstall reinstalls
check remove-provider provider_goes
check nginx-without nginx_starts_without
check provider-again provider_comes_back
check remove daemon_goes
check install-over-config daemon_comes_back
check tenant tenant_is_seen_to
check purge purges
check install-again installs_again
echo "case end ok"
