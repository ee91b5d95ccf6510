# SPDX-License-Identifier: Apache-2.0
"""Runs the real mlkemctl and reads what it says."""

import json
import os
import pathlib
import re
import subprocess

import pytest

MLKEMCTL = os.environ["MLKEMD_CTL"]
SLOW = 4 if os.environ.get("MLKEMD_SANITIZER") else 1
HOOKS = os.environ.get("MLKEMD_TEST_HOOKS") == "1"
# share, ciphertext, secret, private key: FIPS 203 table 3, RFC 10024 4.1
SIZES = {
    "ML-KEM-512": (800, 768, 32, 1632),
    "ML-KEM-768": (1184, 1088, 32, 2400),
    "ML-KEM-1024": (1568, 1568, 32, 3168),
    "X25519MLKEM768": (1216, 1120, 64, 2432),
}
OK, FAILED, USAGE, UNREACHABLE, DENIED, REFUSED, BUSY = range(7)
SANITIZER_REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSan|runtime error:")
FINGERPRINT = re.compile(r"^fingerprint: ([0-9a-f]{16})$", re.M)


class Result:
    def __init__(self, status, out, err):
        self.status, self.raw, self.err = status, out, err
        self.out = out.decode(errors="replace")
        assert not SANITIZER_REPORT.search(err), err

    def value(self, label):
        """The value of a "label: value" line."""
        return re.search(rf"^{label}: (\S+)$", self.out, re.M).group(1)

    def fingerprint(self):
        return (FINGERPRINT.search(self.out) or FINGERPRINT.search(self.err)).group(1)

    def objects(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def object(self):
        (only,) = self.objects()
        return only


def start(*args, env=None, **more):
    more.setdefault("stdin", subprocess.PIPE)
    return subprocess.Popen([MLKEMCTL, *map(str, args)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE,
                            env=dict(os.environ, **(env or {})), **more)


def finish(process, given=None):
    out, err = process.communicate(given, timeout=60 * SLOW)
    return Result(process.returncode, out, err.decode(errors="replace"))


def ctl(*args, given=b"", status=OK, env=None, **more):
    """Runs it to its end and insists on an exit status."""
    if isinstance(given, str):
        given = given.encode()
    result = finish(start(*args, env=env, **more), given)
    assert result.status == status, (args, result.status, result.out, result.err)
    if status != OK:
        # One line says what is wrong, and it is no secret's.
        lines = [line for line in result.err.splitlines()
                 if line.startswith("mlkemctl") and ": " in line]
        assert len(lines) >= 1, result.err
    return result


def as_nobody(*paths):
    """For Popen: be a user whom the daemon does not know. Skips where that can't be."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    for path in (MLKEMCTL, *map(str, paths)):
        for above in pathlib.Path(path).resolve().parents:
            if not above.stat().st_mode & 0o001:
                pytest.skip(f"{above} is closed to other users")
    return {"user": 65534, "group": 65534, "extra_groups": []}
