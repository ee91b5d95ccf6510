#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh [again]: in a throw-away Debian, as root, with the source at /src: the packages,
# made as anybody makes them, into /out/debs; what lintian says of them, into /out/lintian.
# With "again" they are made a second time, in another place, with another umask, language,
# time zone and number of jobs, into /out/again.
set -eu
version=$(dpkg-parsechangelog -l /src/debian/changelog -S Version)
upstream=${version%-*}

# make_in DIRECTORY RESULT [OPTION...]: the build.
make_in() {
	local dir=$1 result=$2
	shift 2
	rm -rf "$dir"
	mkdir -p "$dir/tree"
	cp -a /src/. "$dir/tree/"
	(
		cd "$dir"
		tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 \
			--exclude=./debian -C tree -czf "mlkemd_$upstream.orig.tar.gz" .
		cd tree
		dpkg-buildpackage -us -uc "$@" || exit
		mkdir -p "$result"
		cp ../*.deb ../*.dsc ../*.buildinfo ../*.changes ../*.tar.* "$result/"
	) >"$dir.log" 2>&1 || {
		grep -E '(error|warning): |FAILED|Error ' "$dir.log" | cut -c1-160 | tail -n 20
		tail -n 10 "$dir.log" | cut -c1-160
		echo "case build FAIL"
		exit 1
	}
}

chown -R root:root /out
make_in /out/first /out/debs -j2
cp /out/first.log /out/build.log
echo "case build ok"
(
	cd /out/debs
	lintian --allow-root --no-cfg --tag-display-limit 0 -EviI ./*.changes
) >/out/lintian 2>&1 || :

# What a stranger has who installs the development files. (The image leaves out documents.)
rm -f /etc/dpkg/dpkg.cfg.d/99mmdebstrap
if dpkg -i /out/debs/libmlkemclient*_*.deb && /out/first/tree/debian/tests/link; then
	echo "case link ok"
else
	echo "case link FAIL"
fi >/out/link.log 2>&1
grep '^case' /out/link.log || cat /out/link.log

if [ "${1-}" = again ]; then
	umask 027
	export LC_ALL=C TZ=Pacific/Kiritimati HOME=/nonexistent
	make_in /out/another-place/deeper /out/again -j1
	rm -rf /out/another-place
	status=ok
	for deb in /out/debs/*.deb; do
		if ! cmp "$deb" "/out/again/${deb##*/}"; then
			status=FAIL
		fi
	done
	echo "case reproducible $status"
fi
rm -rf /out/first
