# SPDX-License-Identifier: Apache-2.0
"""What `meson install` installs is what installed.txt lists, and each of it is in one
Debian package; versions agree everywhere; the provider's prerm names who uses it.

To accept a change: MLKEMD_BUILD=build tests/packages/test_files.py >installed.txt
"""

import fnmatch
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ["MLKEMD_BUILD"])
DEBIAN = ROOT / "debian"
PRERM = DEBIAN / "openssl-provider-mlkemd.prerm"


def introspect(what):
    return json.loads((BUILD / "meson-info" / f"intro-{what}.json").read_text())


def option(name):
    return next(row["value"] for row in introspect("buildoptions") if row["name"] == name)


def placed(path):
    """A path as installed.txt has it: free of prefix and architecture."""
    prefix, libdir = option("prefix"), option("libdir")
    if path.endswith("/ossl-modules/mlkemd.so"):
        return "usr/lib/*/ossl-modules/mlkemd.so"
    path = "usr/" + os.path.relpath(path, prefix)
    return path.replace(f"usr/{libdir}/", "usr/lib/*/")


def install():
    """{path as in installed.txt: mode} of a `meson install` with a DESTDIR."""
    found = {}
    with tempfile.TemporaryDirectory() as top:
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"],
                       check=True, capture_output=True, env={**os.environ, "DESTDIR": top})
        for path in pathlib.Path(top).rglob("*"):
            if not path.is_dir() or path.is_symlink():
                mode = path.lstat().st_mode
                found[placed("/" + str(path.relative_to(top)))] = (
                    "link" if stat.S_ISLNK(mode) else f"{stat.S_IMODE(mode):04o}")
    return found


def listed():
    lines = (HERE / "installed.txt").read_text().splitlines()
    return {line.split()[1]: line.split()[0] for line in lines if not line.startswith("#")}


def packages():
    return re.findall(r"^Package: (\S+)$", (DEBIAN / "control").read_text(), re.M)


def patterns(package):
    lines = (DEBIAN / f"{package}.install").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def in_package(package, path):
    for line in patterns(package):
        pattern = line.split()[0]
        # Paths in debian/tmp; of a directory all that is in it.
        if fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path, pattern + "/*"):
            return True
    return False


@pytest.fixture(scope="module")
def installed():
    return install()


def test_the_list_is_kept(installed):
    assert installed == listed()


def test_every_file_is_in_one_package(installed):
    for path in installed:
        owners = [name for name in packages() if in_package(name, path)]
        assert len(owners) == 1, (path, owners)


def test_every_pattern_finds_something(installed):
    for package in packages():
        for line in patterns(package):
            pattern = line.split()[0]
            if not pattern.startswith("etc/"):
                assert fnmatch.filter(installed, pattern) or fnmatch.filter(
                    installed, pattern + "/*"), (package, pattern)


def test_control_a_file_too_many_is_noticed(installed):
    assert {**installed, "usr/bin/stray": "0755"} != listed()
    assert [name for name in packages() if in_package(name, "usr/bin/stray")] == []


def test_versions_agree():
    version = introspect("projectinfo")["version"]
    changelog = (DEBIAN / "changelog").read_text()
    news = (ROOT / "NEWS.md").read_text()
    assert re.match(r"mlkemd \((.*)-\d+\) ", changelog)[1] == version
    assert re.search(r"^## (\S+)", news, re.M)[1] == version
    said = subprocess.run([BUILD / "daemon/mlkemd", "--version"], check=True,
                          capture_output=True, text=True).stdout
    assert version in said
    assert f"usr/lib/*/libmlkemclient.so.{version}" in listed()


@pytest.fixture
def root(tmp_path):
    """A root directory of a host that has nginx behind the provider."""
    for name in ("etc/ssl", "etc/mlkemd", "etc/systemd/system/nginx.service.d", "proc/7"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "etc/ssl/openssl.cnf").write_text("# mlkemd = no\n[a]\nb = mlkemd\n")
    (tmp_path / "etc/mlkemd/openssl.cnf").write_text(
        "[providers]\ndefault = d\nmlkemd = mlkemd_sect\n")
    (tmp_path / "etc/systemd/system/nginx.service.d/mlkemd.conf").write_text(
        (ROOT / "systemd/proxies/nginx.conf").read_text())
    (tmp_path / "proc/7/maps").write_text("7f0 r-xp /usr/lib/x/ossl-modules/mlkemd.so\n")
    (tmp_path / "proc/7/comm").write_text("nginx\n")
    return tmp_path


def prerm(root, *words):
    done = subprocess.run(["sh", PRERM, *words], check=True, capture_output=True, text=True,
                          env={**os.environ, "DPKG_ROOT": str(root)})
    assert done.stdout == ""
    return done.stderr


def test_prerm_names_files_and_programs(root):
    said = prerm(root, "remove")
    assert "  /etc/mlkemd/openssl.cnf names it\n" in said
    assert ("  /etc/systemd/system/nginx.service.d/mlkemd.conf gives "
            "/etc/mlkemd/openssl.cnf to a service\n") in said
    assert "  running with it: nginx\n" in said
    assert "/etc/ssl/openssl.cnf" not in said


def test_control_prerm_is_silent_where_nobody_uses_it(root):
    assert prerm(root, "upgrade", "9") == ""
    (root / "etc/mlkemd/openssl.cnf").unlink()
    (root / "proc/7/maps").unlink()
    assert prerm(root, "remove") == ""


if __name__ == "__main__":
    print("# SPDX-License-Identifier: Apache-2.0")
    print("# What `meson install` installs; `*` is the directory of the architecture.")
    for file, permissions in sorted(install().items()):
        sys.stdout.write(f"{permissions} {file}\n")
