#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long mlkemd takes until READY, and what it holds in memory. A benchmark, no test.

  tests/bench/start.py [--daemon BUILD/daemon/mlkemd] [--rounds N] [--json]

READY is the time from fork to the READY=1 datagram. RSS is read from /proc when the pool
is full. Prints medians, quartiles and the machine. The bounds that were set: READY under
300 ms, RSS under 16 MiB with the default pool.
"""

import argparse
import json
import os
import pathlib
import platform
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time


def start(daemon, directory):
    """Starts one daemon. Returns (process, milliseconds until READY)."""
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path = str(directory / "notify")
    notify.bind(path)
    env = dict(os.environ, NOTIFY_SOCKET=path)
    begin = time.monotonic()
    process = subprocess.Popen(
        [daemon, "--config", str(directory / "mlkemd.conf")], env=env,
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        if not select.select([notify], [], [], 30)[0]:
            process.kill()
            sys.exit("no READY within 30 s")
        if b"READY=1" in notify.recv(4096).split(b"\n"):
            break
    took = (time.monotonic() - begin) * 1000
    notify.close()
    os.unlink(path)
    return process, took


def memory(pid):
    """Field to KiB, of /proc/PID/status."""
    out = {}
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            out[name] = int(value.split()[0])
    return out


def rest(pid):
    """Until it uses no CPU time any more: the pool is full."""
    last = None
    while True:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        now = int(fields[11]) + int(fields[12])
        if now == last:
            return
        last = now
        time.sleep(0.3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--daemon", default="build-test/gcc/daemon/mlkemd")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    ready, rss = [], []
    with tempfile.TemporaryDirectory(prefix="mlkemd-") as name:
        directory = pathlib.Path(name)
        (directory / "mlkemd.conf").write_text(
            f"[socket]\npath = {name}/s\ncontrol-path = {name}/c\n")
        for n in range(args.rounds):
            process, took = start(args.daemon, directory)
            ready.append(took)
            if n % 7 == 0:
                rest(process.pid)
                rss.append(memory(process.pid)["VmRSS"])
            process.terminate()
            process.wait()
    low, middle, high = statistics.quantiles(ready, n=4)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                if line.startswith("model name")), platform.machine())
    if args.json:
        print(json.dumps({"ready_ms": middle, "ready_ms_quartiles": [low, high],
                          "rss_kib": statistics.median(rss), "rounds": args.rounds,
                          "cpu": cpu, "cpus": os.cpu_count(),
                          "kernel": platform.release()}))
    else:
        print(f"READY  {middle:6.1f} ms   (quartiles {low:.1f} and {high:.1f}, "
              f"{args.rounds} starts)")
        print(f"RSS    {statistics.median(rss):6.0f} KiB  (default pool at rest)")
        print(f"on     {cpu}, {os.cpu_count()} processors, Linux {platform.release()}")


if __name__ == "__main__":
    main()
