# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share. Run by meson (see meson.build), which sets:

MLKEMD_DAEMON, MLKEMD_CTL, MLKEMD_CLIENT_LOOP, MLKEMD_TOOLS_DIR   programs under test
MLKEMD_PROTO_DIR    where protoc put mlkemd_pb2.py
MLKEMD_TEST_HOOKS   1 in a build with -Dtest-hooks=true
MLKEMD_SANITIZER    address, thread or empty
MLKEMD_TEST_LENGTH  quick, default or long
MLKEMD_BACKEND      where a file is run with each backend: this one's turn
"""

import os
import subprocess
import tempfile

import pytest

from daemon import MLKEMD, Daemon

LENGTH = os.environ.get("MLKEMD_TEST_LENGTH", "default")


@pytest.fixture(scope="module")
def daemon():
    """One daemon for the tests of a file, with export allowed and small waits."""
    with Daemon({"kem.export-private-keys": "yes",
                 "limits.user-share": "100%"}) as it:
        yield it


@pytest.fixture
def length():
    return LENGTH


def backend_is_impossible():
    """mlkemd is asked, and has to give that very reason."""
    if "MLKEMD_BACKEND" not in os.environ:
        return False
    with tempfile.NamedTemporaryFile() as empty:
        said = subprocess.run([MLKEMD, "--check", "--config", empty.name],
                              capture_output=True, text=True)
    return said.returncode == 2 and "kem.backend: " in said.stderr


def pytest_collection_modifyitems(config, items):
    """--quick leaves out what is marked slow: not collected, so not called skipped."""
    if backend_is_impossible():
        why = f"this CPU can't run backend {os.environ['MLKEMD_BACKEND']}"
        for item in items:
            item.add_marker(pytest.mark.skip(reason=why))
    if LENGTH != "quick":
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: not in --quick")
