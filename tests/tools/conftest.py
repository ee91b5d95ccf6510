# SPDX-License-Identifier: Apache-2.0
"""What the tests of mlkemctl share. Run by meson, which sets MLKEMD_DAEMON, MLKEMD_CTL,
MLKEMD_PROTO_DIR, MLKEMD_TEST_HOOKS, MLKEMD_SANITIZER (see ../integration/conftest.py).
"""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

from daemon import Daemon  # noqa: E402


@pytest.fixture(scope="module")
def daemon():
    """One daemon, with export off, as it is by default."""
    with Daemon() as it:
        yield it


@pytest.fixture(scope="module")
def exporting():
    """One that lets keys out."""
    with Daemon({"kem.export-private-keys": "yes"}) as it:
        yield it
