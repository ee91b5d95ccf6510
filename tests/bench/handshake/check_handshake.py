#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""That handshake.sh works: its rows are whole, and what fails is counted. No figures."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parent / "handshake.sh"
FIELDS = {"case", "proxy", "workers", "cpu_us", "p50_us", "p99_us", "fill", "by_daemon",
          "failed"}
CASES = ["x25519", "hybrid-local", "hybrid-daemon", "client-hybrid-local-avx2"]


def handshake(*args):
    return subprocess.run([str(SCRIPT), "--build", os.environ["MLKEMD_BUILD"], *args],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)


def rows_are_whole():
    done = handshake("--json", "--rounds", "1", "--count", "40", "--warm", "40",
                     "--proxies", "nginx-1", "--cases", ",".join(CASES))
    if done.returncode == 77:
        return done.stderr.splitlines()[-1]
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    rows = [row for row in said if "case" in row]
    skipped = [row["skipped"] for row in said if "skipped" in row]
    assert len(rows) + len(skipped) == len(CASES), done.stdout
    for row in rows:
        assert FIELDS <= set(row), row
        assert row["cpu_us"] > 0 and 0 < row["p50_us"] <= row["p99_us"], row
        assert row["failed"] == 0 and row["handshakes"] == 40, row
        # A busy machine may miss the deadline each time; then nothing is by_daemon.
        assert row["case"] == "hybrid-daemon" or row["by_daemon"] == 0, row
        assert row["fill"] >= 1 or row["by_daemon"] == 0, row
    assert any("ratio" in row for row in said), done.stdout
    return None


def unknown_cases_are_refused():
    assert handshake("--cases", "hybrid-locale").returncode not in (0, 77)


def failures_are_counted():
    """The control: nobody listens there, and nothing may pass for a handshake."""
    with tempfile.TemporaryDirectory() as directory, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        program = f"{directory}/load"
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-o", program,
                        str(HERE / "load.c"), "-lssl", "-lcrypto"], check=True)
        for kind in ("tls", "http"):
            out = subprocess.run([program, str(taken.getsockname()[1]), kind, "X25519",
                                  "50", "7", "20"], stdout=subprocess.PIPE, check=True)
            done = json.loads(out.stdout)
            assert done["failed"] == 50 and done["us"] == [] and done["error"], done


def main():
    bad = 0
    checks = [rows_are_whole, unknown_cases_are_refused, failures_are_counted]
    print(f"1..{len(checks)}")
    for number, check in enumerate(checks, 1):
        try:
            reason = check()
            skip = f" # SKIP {reason}" if reason else ""
            print(f"ok {number} - {check.__name__}{skip}")
        except AssertionError as error:
            bad += 1
            print(f"not ok {number} - {check.__name__}\n# {error}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
