#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Replays a target's seeds, then plants a bug at each point that they must reach.

  replay.py PROGRAM SEEDS POINT...

A planted bug that no seed finds is a failure: the seeds then test less than they claim.
"""

import os
import subprocess
import sys


def run(program, seeds, plant=None):
    env = dict(os.environ)
    if plant:
        env["MLKEMD_FUZZ_PLANT"] = plant
    return subprocess.run([program, seeds], env=env, capture_output=True, text=True,
                          errors="replace", timeout=600)


def main():
    program, seeds, *points = sys.argv[1:]
    plain = run(program, seeds)
    lines = [line for line in plain.stdout.splitlines() if line.startswith("ok ")]
    print("\n".join(lines))
    n, bad = len(lines), 0
    if plain.returncode != 0 or not lines:
        bad += 1
        print(f"not ok {n + 1} - the seed after the last one above "
              f"(status {plain.returncode})")
        print(plain.stderr[-4000:])
    for point in points:
        n += 1
        got = run(program, seeds, point)
        caught = got.returncode != 0 and f"planted at {point}" in got.stderr
        bad += not caught
        print(f"{'ok' if caught else 'not ok'} {n} - planted bug at {point} is found")
    print(f"1..{n}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
