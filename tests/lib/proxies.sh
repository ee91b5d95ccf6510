#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# proxies.sh: nginx, HAProxy and other programs to try the provider with, from packages,
# without installing any. usage() says how it is called.
#
# What the machine has is used as it is. The rest is downloaded by apt and unpacked (never
# configured, so that no service starts and no maintainer script runs) under
# ${XDG_CACHE_HOME:-~/.cache}/mlkemd-tests, once; a small script in bin/ there runs each
# with its libraries. Root is not needed. The machine's own configuration, its package
# state and its /etc are not written.
set -u -o pipefail

usage() {
	cat <<'EOF2'
usage: proxies.sh host PROGRAM...       of this machine's distribution: nginx, haproxy,
                                        stunnel4, hitch, curl, wrk, ab, chromium
       proxies.sh debian-13 PROGRAM...  of Debian 13, with OpenSSL 3.5: openssl, nginx,
                                        haproxy, curl
       proxies.sh node                  Node.js 24 or newer

Prints "PROGRAM<tab>PATH" for each that can be had. Exit status: 0 all of them, 77 some
cannot be had (standard error says why), 2 usage. MLKEMD_OFFLINE=1 downloads nothing.
EOF2
}

cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/mlkemd-tests
triplet=$(uname -m)-linux-gnu

# package_of PROGRAM: the Debian package that has it.
package_of() {
	case $1 in
	ab) echo apache2-utils ;;
	promtool) echo prometheus ;;
	*) echo "$1" ;;
	esac
}

missing() {
	printf '%s\tcannot be had: %s\n' "$1" "$2" >&2
}

# find_in ROOT PROGRAM: prints where an unpacked program lies.
find_in() {
	local folder
	# Chromium's command there is a script that wants files in /etc.
	for folder in "usr/lib/$2" usr/sbin usr/bin; do
		if [ -f "$1/$folder/$2" ] && [ -x "$1/$folder/$2" ]; then
			echo "$1/$folder/$2"
			return
		fi
	done
	return 1
}

# unpack ROOT ARCHIVES: every package there that was not unpacked yet.
unpack() {
	local deb
	mkdir -p "$1"
	for deb in "$2"/*.deb; do
		[ -e "$deb" ] || return 1
		[ -e "$1/.unpacked/$(basename "$deb")" ] && continue
		dpkg -x "$deb" "$1" || return 1
		mkdir -p "$1/.unpacked"
		touch "$1/.unpacked/$(basename "$deb")"
		: >"$deb"
	done
}

# apt_fetch STATE PACKAGE APT-OPTION...: the package and what it needs, into
# STATE/archives. NoLocking: the state is private, or only read.
apt_fetch() {
	local state=$1 package=$2
	shift 2
	mkdir -p "$state/archives/partial" "$state/lists/partial"
	apt-get "$@" -q -y --no-install-recommends --download-only \
		-o Debug::NoLocking=1 -o APT::Sandbox::User=root \
		-o Dir::Cache::archives="$state/archives" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		install "$package" >"$state/apt.log" 2>&1
}

apt_update() {
	local state=$1
	shift
	mkdir -p "$state/lists/partial"
	apt-get "$@" -q -o Debug::NoLocking=1 -o APT::Sandbox::User=root \
		-o Dir::State::lists="$state/lists" -o Dir::Cache::pkgcache= \
		-o Dir::Cache::srcpkgcache= update >"$state/apt.log" 2>&1
}

# With the machine's lists if these do, else with fresh ones of our own.
fetch_host() {
	local state=$1 lists
	apt_fetch "$state" "$2" && return
	lists=(-o Dir::State::lists="$state/lists")
	apt_update "$state" && apt_fetch "$state" "$2" "${lists[@]}"
}

# The mirror that this machine's own Debian comes from.
debian_mirror() {
	if [ -n "${MLKEMD_DEBIAN_MIRROR-}" ]; then
		echo "$MLKEMD_DEBIAN_MIRROR"
		return
	fi
	# shellcheck disable=SC2016 # apt fills these in
	apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' \
		'Created-By: Packages' 2>/dev/null |
		awk '$1 == "Debian" && $2 !~ /-/ { print $3; exit }' | grep .
}

# As for an empty machine, so that the C library comes along.
fetch_debian13() {
	local state=$1 package=$2 mirror options
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	mirror=$(debian_mirror) || {
		echo "no Debian mirror is known here (MLKEMD_DEBIAN_MIRROR names one)" \
			>"$state/apt.log"
		return 1
	}
	[ -e "$keyring" ] || {
		echo "debian-archive-keyring is not installed" >"$state/apt.log"
		return 1
	}
	echo "deb [signed-by=$keyring] $mirror trixie main" >"$state/sources.list"
	: >"$state/status"
	options=(-o Dir::Etc::SourceList="$state/sources.list"
		-o Dir::Etc::SourceParts=/dev/null -o Dir::State="$state"
		-o Dir::State::status="$state/status" -o Dir::State::lists="$state/lists")
	compgen -G "$state/lists/*_Packages*" >/dev/null ||
		apt_update "$state" "${options[@]}" || return 1
	apt_fetch "$state" "$package" "${options[@]}"
}

# Where its libraries lie: some packages have a folder of their own.
library_folders() {
	local folder list=$1/usr/lib/$triplet:$1/lib/$triplet
	for folder in "$1/usr/lib/$triplet"/*/; do
		if compgen -G "$folder/lib*.so*" >/dev/null; then
			list=$list:${folder%/}
		fi
	done
	printf '%s\n' "$list"
}

# wrapper KIND ROOT REAL NAME: writes the script that runs it, prints its path. The host's
# programs find the libraries that came with them behind the machine's own; Debian 13's
# have a C library of their own, and are run by its loader.
wrapper() {
	local kind=$1 root=$2 real=$3 script=$2/../bin/$4 libraries
	libraries=$(library_folders "$root")
	mkdir -p "$root/../bin"
	script=$(cd "$root/../bin" && pwd)/$4
	{
		echo '#!/bin/sh'
		if [ "$kind" = host ]; then
			cat <<-EOF2
				LD_LIBRARY_PATH=\${LD_LIBRARY_PATH:+\$LD_LIBRARY_PATH:}$libraries
				export LD_LIBRARY_PATH
				exec $real "\$@"
			EOF2
		else
			cat <<-EOF2
				: "\${OPENSSL_CONF=$root/etc/ssl/openssl.cnf}"
				: "\${OPENSSL_MODULES=$root/usr/lib/$triplet/ossl-modules}"
				export OPENSSL_CONF OPENSSL_MODULES
				exec $(loader "$root") --library-path $libraries $real "\$@"
			EOF2
		fi
	} >"$script.new.$$"
	chmod 755 "$script.new.$$"
	mv "$script.new.$$" "$script"
	echo "$script"
}

loader() {
	local file
	for file in "$1/usr/lib/$triplet"/ld-linux*.so* "$1/usr/lib"/ld-linux*.so* \
		"$1"/lib64/ld-linux*.so*; do
		if [ -e "$file" ]; then
			echo "$file"
			return
		fi
	done
}

# have KIND PROGRAM: prints a path, or says what is missing.
have() {
	local kind=$1 program=$2 state root real release=debian-13
	if [ "$kind" = host ]; then
		if PATH=$PATH:/usr/sbin:/sbin command -v "$program"; then
			return
		fi
		# shellcheck disable=SC1091
		release=$(. /etc/os-release && echo "$ID-$VERSION_ID")
	fi
	state=$cache/$release
	root=$state/root
	if ! real=$(find_in "$root" "$program"); then
		if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
			missing "$program" "not installed, and there is no apt here"
			return 1
		fi
		if [ -n "${MLKEMD_OFFLINE-}" ]; then
			missing "$program" "not installed, and MLKEMD_OFFLINE is set"
			return 1
		fi
		mkdir -p "$state"
		if ! "fetch_$kind" "$state" "$(package_of "$program")" ||
			! unpack "$root" "$state/archives" ||
			! real=$(find_in "$root" "$program"); then
			missing "$program" "$(grep -E '^E: |mirror|keyring' "$state/apt.log" |
				tail -1) (see $state/apt.log)"
			return 1
		fi
	fi
	wrapper "$kind" "$root" "$real" "$program"
}

have_node() {
	local node at
	node=$(command -v node) && [ "$("$node" -p 'process.versions.node.split(".")[0]')" \
		-ge 24 ] && echo "$node" && return
	at=$cache/node/node_modules/node/bin/node
	if ! [ -x "$at" ]; then
		if [ -n "${MLKEMD_OFFLINE-}" ] || ! command -v npm >/dev/null; then
			missing node "older than 24 or absent, and there is no npm here"
			return 1
		fi
		mkdir -p "$cache/node"
		if ! npm install --prefix "$cache/node" --no-audit --no-fund --no-save \
			node@24 >"$cache/node/npm.log" 2>&1 || ! [ -x "$at" ]; then
			missing node "npm install failed (see $cache/node/npm.log)"
			return 1
		fi
	fi
	echo "$at"
}

main() {
	local kind=${1-} program path status=0
	case $kind in
	host) ;;
	debian-13) kind=debian13 && shift && set -- debian13 "$@" ;;
	node) set -- node node ;;
	*)
		usage >&2
		return 2
		;;
	esac
	shift
	umask 022
	mkdir -p "$cache" || return 77
	# One at a time: two runs would unpack over each other.
	exec 9>"$cache/.lock"
	flock 9
	for program; do
		if [ "$kind" = node ]; then
			path=$(have_node 9>&-)
		else
			path=$(have "$kind" "$program" 9>&-)
		fi || {
			status=77
			continue
		}
		printf '%s\t%s\n' "$program" "$path"
	done
	return $status
}

main "$@"
