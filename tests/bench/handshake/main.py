#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a TLS handshake costs a proxy, with and without mlkemd. A benchmark, no test.

handshake.sh runs this; its header says how. Every case has its server running from the
start. A round measures each row once, in another order each time; a row's figures are
medians of the rounds, its percentiles those of all handshakes together, and a ratio is
the median of the rounds' ratios: what a busy machine does to one side it does to both.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import cases
import report
import servers
import trouble

NOT_HERE = 77  # what is needed cannot be had: a skip


def arguments():
    parser = argparse.ArgumentParser(prog="handshake.sh",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, metavar="DIR",
                        help="a build of the tree; default a release build is made")
    parser.add_argument("--load", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one object a row")
    parser.add_argument("--markdown", action="store_true",
                        help="the tables of docs/performance.md")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--count", type=int, default=500, help="handshakes a row a round")
    parser.add_argument("--at-a-time", type=int, default=16, help="connections")
    parser.add_argument("--cases", default="", help="comma list; default all")
    parser.add_argument("--proxies", default="nginx-1,nginx-4,haproxy-1",
                        help="comma list of PROGRAM-WORKERS")
    parser.add_argument("--warm", type=int, default=3000,
                        help="handshakes a worker of route auto makes first, to learn")
    parser.add_argument("--server-cpus", help="of proxies and mlkemd; default all but one")
    parser.add_argument("--client-cpus", help="of client and upstream; default the last")
    parser.add_argument("--trouble", action="store_true",
                        help="instead: mlkemd frozen, killed and restarted under load")
    parser.add_argument("--growth", type=int, default=0, metavar="N",
                        help="instead: memory and descriptors over N handshakes")
    args = parser.parse_args()
    for proxy in args.proxies.split(","):
        if not re.fullmatch("(nginx|haproxy)-[1-9][0-9]*", proxy):
            parser.error(f"{proxy} is not nginx-N or haproxy-N")
    if not os.path.exists("/proc/self/schedstat"):
        sys.exit("handshake.sh: this kernel keeps no account in /proc/PID/schedstat")
    cpus = sorted(os.sched_getaffinity(0))
    args.client_cpus = cpu_set(args.client_cpus) or {cpus[-1]}
    args.server_cpus = cpu_set(args.server_cpus) or set(cpus[:-1]) or {cpus[0]}
    return args


def cpu_set(text):
    return {int(cpu) for cpu in text.split(",")} if text else None


class Rig:
    """Everything that runs, and the folder that it is in."""

    def __init__(self, args, directory):
        self.args, self.directory = args, directory
        self.programs = servers.find_programs()
        self.skipped = []
        if "openssl" not in self.programs["debian-13"]:
            print("the client needs OpenSSL 3.5 of Debian 13", file=sys.stderr)
            sys.exit(NOT_HERE)
        self.load = servers.Load(args.load, self.programs["debian-13"]["openssl"],
                                 args.client_cpus)
        (directory / "tmp").mkdir()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-days", "30",
             "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
            check=True, stderr=subprocess.DEVNULL, env={**os.environ, "OPENSSL_CONF": ""})
        (directory / "both.pem").write_text(
            (directory / "cert.pem").read_text() + (directory / "key.pem").read_text())
        self.daemon = servers.Daemon(args.build, directory, args.server_cpus)
        self.upstream = None

    def need_upstream(self):
        if self.upstream is None:
            self.upstream = servers.free_port()
            self.start_proxy("nginx", "upstream", cases.Case("upstream", "", "debian-13"),
                             cases.upstream(self.directory, self.upstream),
                             self.upstream, 1, self.args.client_cpus)
        return self.upstream

    def start_proxy(self, kind, name, case, text, port, workers, cpus):
        conf = self.directory / f"{name}.cnf"
        conf.write_text(cases.openssl_cnf(case, self.args.build / "provider/mlkemd.so",
                                          self.daemon.path))
        env = {} if case.name == "upstream" else {"OPENSSL_CONF": str(conf)}
        if case.backend:
            env["MLKEMD_BACKEND"] = case.backend
        proxy = servers.Proxy(self.directory, self.programs[case.root][kind], name, text,
                              port, workers, cpus, env)
        return proxy

    def start(self, case, kind, workers):
        """(proxy, port) for a case, or None with a reason in self.skipped."""
        why = self.why_not(case, kind)
        if why:
            self.skipped.append(f"{case.name} {kind}: {why}")
            return None
        port = servers.free_port()
        upstream = self.need_upstream() if case.client else None
        text = cases.write(kind, case, self.directory, workers, port, upstream)
        proxy = self.start_proxy(kind, f"{case.name}-{kind}-{workers}", case, text, port,
                                 workers, self.args.server_cpus)
        return proxy, port

    def why_not(self, case, kind):
        if kind not in self.programs[case.root]:
            return f"no {kind} of {case.root}"
        flags = pathlib.Path("/proc/cpuinfo").read_text()
        if case.backend == "avx512" and "avx512ifma" not in flags:
            return "no AVX-512 IFMA"
        if case.backend == "avx2" and " avx2 " not in flags:
            return "no AVX2"
        return None


class Row:
    def __init__(self, case, kind, workers, proxy, port):
        self.case, self.kind, self.workers = case, kind, workers
        self.proxy, self.port = proxy, port
        self.rounds, self.us, self.failed, self.error = [], [], 0, ""

    def make(self, rig, count):
        kind = "http" if self.case.client else "tls"
        return rig.load.run(self.port, kind, self.case.group, count, rig.args.at_a_time,
                            120)

    def measure(self, rig):
        daemon = rig.daemon if self.case.uses_daemon() else None
        if daemon:
            daemon.settle()
        stats = daemon.stats() if daemon else {}
        proxy_us, daemon_us = self.proxy.cpu_us(), daemon.cpu_us() if daemon else 0.0
        done = self.make(rig, rig.args.count)
        n = len(done["us"])
        self.failed += done["failed"]
        self.error = self.error or done["error"]
        if n == 0:
            return
        figures = {"proxy_us": (self.proxy.cpu_us() - proxy_us) / n, "daemon_us": 0.0,
                   "fill": 0.0, "by_daemon": 0.0}
        if daemon:
            figures["daemon_us"] = (daemon.cpu_us() - daemon_us) / n
            figures.update(self.shares(stats, daemon.stats(), n))
        figures["cpu_us"] = figures["proxy_us"] + figures["daemon_us"]
        figures["p50_us"], figures["p99_us"] = percentiles(done["us"])
        self.rounds.append(figures)
        self.us += done["us"]

    def shares(self, before, after, n):
        def delta(name):
            return after.get(name, 0) - before.get(name, 0)
        groups = delta("groups_total")
        secrets = delta("items_encaps_total") + delta("items_decaps_total")
        return {"fill": delta("group_items_total") / groups if groups else 0.0,
                "by_daemon": min(secrets / n, 1.0)}

    def result(self):
        median = {name: statistics.median(r[name] for r in self.rounds)
                  for name in self.rounds[0]}
        p50, p99 = percentiles(self.us)
        quartiles = (statistics.quantiles([r["cpu_us"] for r in self.rounds], n=4)
                     if len(self.rounds) > 1 else [median["cpu_us"]] * 3)
        return {"case": self.case.name, "proxy": self.kind, "workers": self.workers,
                "cpu_us": round(median["cpu_us"], 1),
                "cpu_q1_us": round(quartiles[0], 1), "cpu_q3_us": round(quartiles[2], 1),
                "proxy_us": round(median["proxy_us"], 1),
                "daemon_us": round(median["daemon_us"], 1),
                "p50_us": p50, "p99_us": p99, "fill": round(median["fill"], 2),
                "by_daemon": round(median["by_daemon"], 3),
                "handshakes": len(self.us), "failed": self.failed, "error": self.error}


def percentiles(us):
    us = sorted(us)
    return us[len(us) // 2], us[min(len(us) - 1, len(us) * 99 // 100)]


def measure_rows(rig, args):
    names = [name for name in args.cases.split(",") if name]
    unknown = set(names) - {case.name for case in cases.CASES}
    if unknown:
        sys.exit(f"handshake.sh: no such case: {', '.join(sorted(unknown))}")
    rows = []
    for proxy in args.proxies.split(","):
        kind, workers = proxy.rsplit("-", 1)
        for case in cases.CASES:
            started = (not names or case.name in names) and \
                rig.start(case, kind, int(workers))
            if started:
                rows.append(Row(case, kind, int(workers), *started))
    for row in rows:
        row.make(rig, args.warm * row.workers if row.case.route == "auto" else 200)
    for i in range(args.rounds):
        order = rows[:]
        random.Random(i).shuffle(order)
        for row in order:
            row.measure(rig)
    for row in rows:
        if not row.rounds:
            rig.skipped.append(f"{row.case.name} {row.kind}-{row.workers}: no handshake "
                               f"succeeded ({row.error})")
    return [row for row in rows if row.rounds]


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(1))
    directory = pathlib.Path(tempfile.mkdtemp(prefix="mlkemd-handshake-"))
    try:
        rig = Rig(args, directory)
        if args.trouble or args.growth:
            failed = 0
            for result in trouble.run(rig, args):
                print(json.dumps(result), flush=True)
                failed += result.get("failed", 0)
            return int(failed > 0)
        rows = measure_rows(rig, args)
        results, wanted = [row.result() for row in rows], report.ratios(rows)
        if args.json:
            for result in results + wanted:
                print(json.dumps(result))
            for line in rig.skipped:
                print(json.dumps({"skipped": line}))
        else:
            show = report.print_markdown if args.markdown else report.print_table
            show(results, wanted, rig.skipped)
        return int(any(result["failed"] for result in results))
    finally:
        servers.stop_all()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
