#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# root.sh ARCH DIR PACKAGE...: unpacks Debian's PACKAGEs of another architecture, and all
# that they depend on, below DIR/root. Downloads are kept in DIR; nothing of this system
# is changed, and root is not needed. apt checks the signatures. The packages are of this
# system's release, or of the next where that does not have ARCH.
#
# Exit status: 0 unpacked, 77 not to be had, with the reason as the last line.
set -u

arch=$1 dir=$2
shift 2

skip() {
	echo "skipped: $*"
	exit 77
}

command -v apt-get >/dev/null || skip "no apt here to get libraries of $arch with"
mkdir -p "$dir"/lists/partial "$dir"/archives/partial "$dir"/sources.d || exit 1
dir=$(cd "$dir" && pwd)
stamp="$* of $arch"
[ "$(cat "$dir/stamp" 2>/dev/null)" = "$stamp" ] && exit 0

# Where this system has Debian from: a mirror may be near, or the only one in reach.
# shellcheck disable=SC2016 # apt expands these
sources() {
	local uri codename
	apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI) $(CODENAME)' \
		'Created-By: Packages' 2>/dev/null | sort -u |
		grep -E '^Debian Debian [^ ]+ [a-z]+$' |
		while read -r _ _ uri codename; do
			if [ "$arch:$codename" = riscv64:bookworm ]; then
				codename=trixie # Debian 12 has none
			fi
			echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
				"$uri $codename main"
		done
}
sources >"$dir/sources"
grep -q ^deb "$dir/sources" || skip "apt knows of no Debian archive to ask for $arch"

: >"$dir/status" # of a system where nothing is installed
cat >"$dir/apt.conf" <<END
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Dir::State "$dir";
Dir::State::Lists "$dir/lists";
Dir::State::status "$dir/status";
Dir::Cache "$dir";
Dir::Cache::Archives "$dir/archives";
Dir::Etc::SourceList "$dir/sources";
Dir::Etc::SourceParts "$dir/sources.d";
END
export APT_CONFIG=$dir/apt.conf DEBIAN_FRONTEND=noninteractive
{
	timeout 300 apt-get update -q &&
		timeout 300 apt-get install -q -y --download-only "$@"
} >"$dir/apt.log" 2>&1 </dev/null ||
	skip "apt can't get libraries of $arch: $(grep -E '^[EW]:' "$dir/apt.log" | head -1)"

rm -rf "$dir/root"
for package in "$dir"/archives/*.deb; do
	dpkg-deb -x "$package" "$dir/root" || exit 1
done
# Debian's libraries lie below /usr, their linkers name what lies in /lib.
for name in lib lib64; do
	if [ -e "$dir/root/usr/$name" ] && ! [ -e "$dir/root/$name" ]; then
		ln -s "usr/$name" "$dir/root/$name"
	fi
done
echo "$stamp" >"$dir/stamp"
