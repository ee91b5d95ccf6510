#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What busy polling, placement and the hand-over of connections buy and cost.

  tests/bench/placement/main.py --build DIR [--markdown | --json] [--rounds N]
                                [--parts polling,placement,hand-over]

A benchmark, no test. Daemons that differ in one setting run side by side; a round
measures every cell once, in another order each time, and figures are medians of the
rounds with their quartiles. The client has the last processor; every daemon is started
with all of them, since one that is started on a single one never polls, and is then moved
to where a row wants it. Where other work runs too, put chrt -f 10 in front: all that is
started here inherits it. The default takes some four minutes.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "handshake"), str(HERE.parent.parent / "integration")]

import cells  # noqa: E402
import report  # noqa: E402
import servers  # noqa: E402

NOT_HERE = 77  # what is needed cannot be had: a skip
AT_REST = 0.01  # of a processor: what an idle daemon may take at most
IDLE_S = 1.0


def arguments():
    parser = argparse.ArgumentParser(prog="placement",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, metavar="DIR",
                        help="a release build of the tree")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default=",".join(PARTS), help="comma list; default all")
    parser.add_argument("--scale", type=float, default=1.0, help="of all durations")
    parser.add_argument("--json", action="store_true", help="one object a row")
    parser.add_argument("--markdown", action="store_true",
                        help="the tables of docs/performance.md")
    args = parser.parse_args()
    args.parts = args.parts.split(",")
    for part in args.parts:
        if part not in PARTS:
            parser.error(f"--parts {part}: {', '.join(PARTS)} are allowed")
    if args.rounds < 1 or args.scale <= 0:
        parser.error("--rounds and --scale are more than zero")
    for name in ("daemon/mlkemd", "tools/mlkemctl"):
        if not (args.build / name).exists():
            parser.error(f"{args.build} has no {name}")
    args.build = args.build.resolve()
    return args


class Rig:
    """The daemons, the folder that they are in, and who runs where."""

    def __init__(self, args, directory):
        self.args, self.directory = args, directory
        self.cpus = set(os.sched_getaffinity(0))
        if len(self.cpus) < 2:
            print("placement: this takes two processors", file=sys.stderr)
            sys.exit(NOT_HERE)
        self.client_cpus = {max(self.cpus)}
        self.other_cpus = self.cpus - self.client_cpus

    def start(self, name, **settings):
        directory = self.directory / name
        directory.mkdir()
        return cells.Daemon(self.args.build, directory, self.cpus, settings)

    def bench(self, daemon, seconds, **options):
        """Starts mlkemctl bench; cells.finish() has its figures."""
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        return subprocess.Popen(
            [self.args.build / "tools/mlkemctl", "bench", "--json", "--rounds=1",
             f"--duration-ms={max(10, round(seconds * self.args.scale * 1000))}",
             "--socket", daemon.path, "--control-socket", daemon.control, *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, preexec_fn=lambda: os.sched_setaffinity(0, self.client_cpus))

    def pause(self, seconds):
        time.sleep(seconds * self.args.scale)


def idle(daemons):
    """Each one's part of a processor while it has one connection and nothing to do."""
    with contextlib.ExitStack() as stack:
        for daemon in daemons:
            stack.enter_context(cells.Connection(daemon)).hello()
        for daemon in daemons:
            daemon.settle()
        before, begin = [servers.cpu_ns(d.pid) for d in daemons], time.monotonic_ns()
        time.sleep(IDLE_S)
        took = time.monotonic_ns() - begin
        parts = [(servers.cpu_ns(d.pid) - b) / took for d, b in zip(daemons, before)]
    for daemon, part in zip(daemons, parts):
        daemon.need_alive()
        if part > AT_REST:
            sys.exit(f"placement: {daemon.name} takes {part:.0%} of a processor with "
                     "nothing to do: what it would be compared with is not at rest")
    return parts


def polling_rows(rig):
    daemons = {word: rig.start(f"busy-poll-{word}", **{"daemon.busy-poll": word})
               for word in ("no", "yes")}
    rows = [cells.Polling(rig, word, daemon, *load)
            for load in cells.LONE for word, daemon in daemons.items()]
    resting = [cells.Idle(word, daemon) for word, daemon in daemons.items()]

    def rest():
        for daemon in daemons.values():
            daemon.move(rig.cpus)
        for row, part in zip(resting, idle(list(daemons.values()))):
            row.rounds.append({"idle_us_per_s": part * 1e6})
    return rows + resting, [row.measure for row in rows] + [rest]


def placement_rows(rig):
    one = rig.start("1-shard", **{"daemon.shards": 1})
    two = rig.start("2-shards", **{"daemon.shards": 2})
    rows = [cells.Placement(rig, name, daemon, by_and_by, n, in_flight)
            for n in cells.CONNECTIONS for in_flight in cells.IN_FLIGHT
            for name, daemon, by_and_by in (("1 shard", one, False),
                                            ("2, at once", two, False),
                                            ("2, by and by", two, True))
            if n > 1 or not by_and_by]
    return rows, [row.measure for row in rows]


def handover_rows(rig):
    daemon = rig.start("hand-over", **{"daemon.shards": 1})
    rows = [cells.HandOver(rig, daemon, *what) for what in cells.SET_UPS]
    return rows, [row.measure for row in rows]


PARTS = {"polling": polling_rows, "placement": placement_rows, "hand-over": handover_rows}


def run(rig, args):
    rows, measures = [], []
    for part in args.parts:
        more, how = PARTS[part](rig)
        rows += more
        measures += how
    os.sched_setaffinity(0, rig.client_cpus)
    for i in range(args.rounds):
        order = measures[:]
        random.Random(i).shuffle(order)
        for n, measure in enumerate(order):
            if sys.stderr.isatty():
                print(f"\r\033[Kround {i + 1} of {args.rounds}: {n} of {len(order)}",
                      end="", file=sys.stderr)
            measure()
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return [row.result() for row in rows if row.rounds]


def main():
    args = arguments()
    servers.PROGRAM = "placement"
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(1))
    directory = pathlib.Path(tempfile.mkdtemp(prefix="mlkemd-placement-"))
    try:
        rows = run(Rig(args, directory), args)
        (report.print_json if args.json else
         report.print_markdown if args.markdown else report.print_text)(rows, args.rounds)
    finally:
        cells.stop_clients()
        servers.stop_all()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
