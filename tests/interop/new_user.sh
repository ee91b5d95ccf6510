#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# new_user.sh BUILD OPENSSL35: docs/proxies.md, "nginx in five minutes", as a new user would
# do it: a Debian root with nothing but nginx and the libraries that mlkemd names, the
# build installed into it, the documented lines run as they stand, and a handshake of
# OpenSSL 3.5 looked at. In namespaces of its own: nothing of the machine is changed.
#
# systemctl is a small script there, since no systemd runs in a chroot: it starts a service
# with the environment that its drop-ins name. Exit status 77: a root can't be had.
set -u -o pipefail
build=$1 openssl35=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mlkemd-tests
release=bookworm
base=$cache/new-user-$release
packages=nginx,openssl,libevent-core-2.1-7,libevent-extra-2.1-7,libprotobuf-c1
packages=$packages,libseccomp2,libsystemd0

skip() {
	echo "$*"
	exit 77
}

say() {
	echo "new_user: $*"
}

make_base() {
	local mirror log=$cache/new-user.log
	[ "$(cat "$base/.complete" 2>/dev/null)" = "$packages" ] && return
	[ -z "${MLKEMD_OFFLINE-}" ] || skip "no root of Debian, and MLKEMD_OFFLINE is set"
	command -v debootstrap >/dev/null || skip "debootstrap is not installed"
	# shellcheck disable=SC2016 # apt's own names
	mirror=${MLKEMD_DEBIAN_MIRROR-$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' \
		'Created-By: Packages' 2>/dev/null | awk '$1 == "Debian" { print $2; exit }')}
	[ -n "$mirror" ] || skip "no Debian mirror is known here (MLKEMD_DEBIAN_MIRROR)"
	rm -rf --one-file-system "$base"
	mkdir -p "$cache"
	say "debootstrap of $release, once; see $log"
	debootstrap --variant=minbase --include="$packages" $release "$base" "$mirror" \
		>"$log" 2>&1 || skip "debootstrap failed: $(tail -1 "$log")"
	echo "$packages" >"$base/.complete"
}

# The lines of the document, from the block behind its mark.
documented_lines() {
	awk '/<!-- new-user:/ { marked = 1; next }
		marked && /^```sh/ { inside = 1; next }
		inside && /^```/ { exit }
		inside' "$source/docs/proxies.md"
}

# What a user who serves HTTPS has already: a certificate and a server block.
write_site() {
	local root=$1
	echo '127.0.0.1 localhost' >"$root/etc/hosts"
	chroot "$root" openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
		-keyout /etc/ssl/private/site.key -out /etc/ssl/certs/site.pem \
		-subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
	cat >"$root/etc/nginx/conf.d/site.conf" <<-'EOF2'
		server {
			listen 443 ssl;
			server_name localhost;
			ssl_certificate /etc/ssl/certs/site.pem;
			ssl_certificate_key /etc/ssl/private/site.key;
			location / {
				return 200 "it works: $ssl_curve\n";
			}
		}
	EOF2
}

write_systemctl() {
	cat >"$1/usr/local/bin/systemctl" <<-'EOF2'
		#!/bin/bash
		set -e
		start() {
			local assignment environment=()
			for assignment in $(cat /etc/systemd/system/"$1".service.d/*.conf \
				2>/dev/null | sed -n 's/^Environment=//p'); do
				environment+=("$assignment")
			done
			case $1 in
			nginx)
				env -i PATH="$PATH" "${environment[@]}" \
					nginx -t -q -g 'daemon on; master_process on;'
				env -i PATH="$PATH" "${environment[@]}" \
					nginx -g 'daemon on; master_process on;'
				;;
			mlkemd)
				mkdir -p /run/mlkemd
				mlkemd >/var/log/mlkemd.log 2>&1 &
				for _ in $(seq 600); do
					mlkemctl ping >/dev/null 2>&1 && return
					kill -0 $! || break
					sleep 0.1
				done
				cat /var/log/mlkemd.log
				return 1
				;;
			esac
		}
		case $1 in
		daemon-reload) ;;
		enable) start "$3" ;;
		restart)
			if [ "$2" = nginx ] && [ -e /run/nginx.pid ]; then
				nginx -s quit
				while [ -e /run/nginx.pid ]; do sleep 0.1; done
			fi
			start "$2"
			;;
		*)
			echo "systemctl: not here: $*"
			exit 1
			;;
		esac
	EOF2
	chmod 755 "$1/usr/local/bin/systemctl"
}

# handshake: the answer of nginx, and the group by the name that OpenSSL 3.5 gives it.
handshake() {
	printf 'GET / HTTP/1.0\r\n\r\n' | "$openssl35" s_client -connect 127.0.0.1:443 \
		-servername localhost -ign_eof 2>&1 |
		grep -E '^Negotiated TLS1.3 group|it works|^Peer Temp Key'
}

inside() {
	local work=$1 root=$1/root seen
	mount -t tmpfs tmpfs "$work" || skip "nothing can be mounted here"
	mkdir -p "$work/upper" "$work/work" "$root"
	mount -t overlay overlay -o \
		"lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$root" ||
		skip "no overlay can be mounted here"
	mount -t proc proc "$root/proc"
	mount --bind /dev "$root/dev"
	ip link set lo up || skip "no network namespace can be set up here"
	DESTDIR=$root meson install -C "$build" --no-rebuild --quiet || return 1
	chroot "$root" ldconfig
	# A default prefix is /usr/local, as the document says.
	[ -e "$root/usr/share/doc/mlkemd" ] ||
		ln -s /usr/local/share/doc/mlkemd "$root/usr/share/doc/mlkemd"
	mkdir -p "$root/etc/systemd/system"
	write_site "$root"
	write_systemctl "$root"
	chroot "$root" systemctl restart nginx || return 1
	say "before: $(handshake | tr '\n' ' ')"
	documented_lines >"$root/root/lines.sh"
	say "running: $(wc -l <"$root/root/lines.sh") documented lines"
	chroot "$root" bash -e -x /root/lines.sh || return 1
	seen=$(handshake)
	say "after: $(tr '\n' ' ' <<<"$seen")"
	grep -q 'group: X25519MLKEM768' <<<"$seen" && grep -q 'it works: 0x11ec' <<<"$seen" ||
		return 1
	by_the_daemon "$root" && undo "$root"
}

# Route auto may have worked in nginx; that the daemon serves nginx's user is seen with
# the other route that the document names.
by_the_daemon() {
	chroot "$1" mlkemctl openssl-conf --out /etc/mlkemd/openssl.cnf --set route=daemon \
		--set deadline=1s && chroot "$1" systemctl restart nginx || return 1
	say "by the daemon: $(handshake | tr '\n' ' ')"
	chroot "$1" mlkemctl stats | grep -E '^items_encaps_total'
}

# The lines of "Undo", and nginx is as it was.
undo() {
	awk '/^## Undo/ { marked = 1 } marked && /^```sh/ { inside = 1; next }
		inside && /^```/ { exit } inside' "$source/docs/proxies.md" \
		>"$1/root/undo.sh"
	[ -s "$1/root/undo.sh" ] && chroot "$1" bash -e -x /root/undo.sh || return 1
	say "undone: $(handshake | tr '\n' ' ')"
	! handshake | grep -q X25519MLKEM768
}

if [ "${3-}" = inside ]; then
	inside "$4"
	exit
fi
[ "$(id -u)" = 0 ] || skip "a chroot needs root"
make_base
work=$(mktemp -d)
trap 'rmdir "$work"' EXIT
unshare --mount --pid --net --ipc --fork --kill-child --propagation private \
	"$0" "$build" "$openssl35" inside "$work"
