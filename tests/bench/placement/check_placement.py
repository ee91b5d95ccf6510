#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""That the benchmark works, and ends with an error where it has to. No figures."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parent / "main.py"
BUILD = pathlib.Path(os.environ["MLKEMD_BUILD"])


def bench(*args, build=BUILD):
    return subprocess.run(
        ["/usr/bin/python3", str(SCRIPT), "--build", str(build), "--rounds", "1", *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def rows_are_whole():
    done = bench("--json", "--scale", "0.2", "--parts", "polling,hand-over")
    if done.returncode == 77:
        return done.stderr.splitlines()[-1]
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    calls = [row for row in rows if "sleeps_per_op" in row]
    assert len(calls) == 14 and len([r for r in rows if "idle_us_per_s" in r]) == 2, rows
    for row in calls:
        assert 0 < row["p50_us"] <= row["p99_us"] and row["cpu_us_per_op"] > 0, row
        # Not looking is sleeping; what had come meanwhile needs neither.
        assert row["busy_poll"] == "yes" or row["looks_us"] == 0, row
    for row in rows:
        assert row.get("part") != "hand-over" or row["shard_us"] > 0, row
    assert rows[-1]["cpus"] >= 2, rows[-1]
    return None


def mistakes_are_refused():
    for args in (("--parts", "poling"), ("--rounds", "0"), ("--scale", "0")):
        done = bench(*args)
        assert done.returncode == 2 and args[0] in done.stderr, (args, done.stderr)
    done = bench(build=SCRIPT.parent)
    assert done.returncode == 2 and "has no daemon/mlkemd" in done.stderr, done.stderr


def planted(script, words):
    """A daemon that does something else as well: its end must be an error that says so."""
    with tempfile.TemporaryDirectory() as name:
        build = pathlib.Path(name)
        (build / "daemon").mkdir()
        (build / "tools").symlink_to(BUILD / "tools")
        fake = build / "daemon/mlkemd"
        fake.write_text(f"#!/bin/sh\nreal={BUILD}/daemon/mlkemd\n{script}\n")
        fake.chmod(0o755)
        done = bench("--scale", "0.2", "--parts", "polling", build=build)
        if done.returncode == 77:
            return done.stderr.splitlines()[-1]
        assert done.returncode == 1 and words in done.stderr, done.stderr
        assert not done.stdout, done.stdout
        return None


def a_dead_daemon_is_no_figure():
    return planted('exec timeout -s KILL 1 "$real" "$@"', "ended with")


def one_that_does_not_rest_is_no_figure():
    return planted('timeout 60 "$real" "$@" &\n'
                   'trap "kill $!; exit 0" TERM; while :; do :; done', "not at rest")


def main():
    bad = 0
    checks = [rows_are_whole, mistakes_are_refused, a_dead_daemon_is_no_figure,
              one_that_does_not_rest_is_no_figure]
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
