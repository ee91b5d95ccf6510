# SPDX-License-Identifier: Apache-2.0
"""docs/proxies.md, followed to the letter on an empty Debian 12 (new_user.sh)."""

import os
import pathlib
import re
import subprocess

import pytest

from others import LONG, SOURCE, need
from servers import SANITIZER

BASE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                    pathlib.Path.home() / ".cache") / "mlkemd-tests/new-user-bookworm"


def test_nginx_in_five_minutes():
    if SANITIZER:
        pytest.skip("what ships is tried in the builds that ship")
    if not LONG and not (BASE / ".complete").exists():
        pytest.skip("an empty Debian takes a minute to make: --long does that once")
    openssl = need("debian-13", "openssl")
    said = subprocess.run([pathlib.Path(__file__).parent / "new_user.sh",
                           os.environ["MLKEMD_BUILD"], openssl], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)
    print(said.stdout)
    if said.returncode == 77:
        pytest.skip(said.stdout.strip().splitlines()[-1])
    assert said.returncode == 0, said.stdout
    # Before, after, and after the undoing.
    groups = re.findall(r"^new_user: (before|after|undone): .*?(X25519\w*)", said.stdout,
                        re.M)
    assert groups == [("before", "X25519"), ("after", "X25519MLKEM768"),
                      ("undone", "X25519")], said.stdout
    assert re.search(r"^items_encaps_total\D+[1-9]", said.stdout, re.M), said.stdout


def test_the_documented_files_are_those_that_are_installed():
    page = (SOURCE / "docs" / "proxies.md").read_text()
    for name in ("nginx", "haproxy", "stunnel"):
        drop_in = (SOURCE / "systemd" / "proxies" / f"{name}.conf").read_text()
        assert f"proxies/{name}.conf" in page
        assert "Environment=OPENSSL_CONF=/etc/mlkemd/openssl.cnf" in drop_in
    assert "/run/mlkemd:/var/lib/haproxy/run/mlkemd" in (
        SOURCE / "systemd" / "proxies" / "haproxy.conf").read_text()
