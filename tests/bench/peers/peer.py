# SPDX-License-Identifier: Apache-2.0
"""What peers in Python share: the protocol of README.md. Calls are measured as a
program in Python makes them, interpreter included."""

import statistics
import sys
import time

SLICE_NS = 500_000


def slice_ns(call, n):
    """Processor time of one of n calls."""
    start = time.thread_time_ns()
    for _ in range(n):
        call()
    return (time.thread_time_ns() - start) / n


def measure(call, ms):
    """The median of slices of half a millisecond, as ../../../tools/mlkem-bench does."""
    n = 1
    while slice_ns(call, n) * n < SLICE_NS / 2:
        n *= 2
    end = time.monotonic_ns() + ms * 1e6
    slices = [slice_ns(call, n)]
    while time.monotonic_ns() < end:
        slices.append(slice_ns(call, n))
    return statistics.median(slices)


def measure_cold(call, n):
    values = []
    for _ in range(n):
        time.sleep(0.01)
        start = time.monotonic_ns()
        call()
        values.append(time.monotonic_ns() - start)
    return statistics.median(values)


def answer(line, ops, check):
    word, *rest = line.split()
    if word == "check":
        ct, shared = check(rest[0], bytes.fromhex(rest[1]))
        return f"ct {ct.hex()} {shared.hex()}"
    call = ops[rest[0], rest[1]]
    if word == "cold":
        return f"ns {measure_cold(call, int(rest[2])):.3f} 0"
    return f"ns {measure(call, float(rest[2])):.3f} 0"


def serve(name, version, ops, check):
    """ops: {(op, set): a call of one item}; check(set, share): (ciphertext, secret)"""
    print(f"peer {name} {version}")
    for op, its_set in ops:
        print(f"op {op} {its_set}")
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            print(answer(line, ops, check), flush=True)
        except Exception as error:  # whatever the library throws, said to the asker
            print(f"error {type(error).__name__}: {error}".splitlines()[0], flush=True)
