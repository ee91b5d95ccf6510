# SPDX-License-Identifier: Apache-2.0
"""What the interop tests share. Run by meson (see meson.build), which sets beside what
../integration/conftest.py names:

MLKEMD_PROVIDER_DIR  where mlkemd.so was built
MLKEMD_SOURCE        the source tree
MLKEMD_LONG          1: more rounds, and what takes minutes to get
"""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

from daemon import Daemon  # noqa: E402

import table  # noqa: E402
from servers import World  # noqa: E402

# Those whom the proxies' workers become; and a proxy that a busy machine keeps waiting
# before its Hello is not turned away.
ACCESS = {"access.allow-users": "root, ?nobody, ?www-data, ?haproxy",
          "limits.hello-timeout": "30s"}


@pytest.fixture
def daemon():
    with Daemon(ACCESS) as it:
        yield it


@pytest.fixture(scope="module")
def one_daemon():
    with Daemon(ACCESS) as it:
        yield it


@pytest.fixture
def world():
    with World() as it:
        yield it


@pytest.fixture(scope="module")
def one_world():
    with World() as it:
        yield it


def pytest_terminal_summary(terminalreporter):
    for line in table.lines():
        terminalreporter.write_line(line)
