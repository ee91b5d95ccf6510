# SPDX-License-Identifier: Apache-2.0
"""handshake.sh --trouble and --growth: what a proxy suffers when mlkemd does."""

import signal
import statistics
import time

import cases

QUEUED = 200
ROUNDS = 9


def case_of(name):
    return next(case for case in cases.CASES if case.name == name)


def queue(rig, port, case):
    """All at once; how long until the last is done."""
    done = rig.load.run(port, "tls", case.group, QUEUED, QUEUED, 60)
    return done["seconds"] * 1000, done["failed"]


def served(rig, port, case):
    """A queue, and whether the daemon did it: a busy machine trips the breaker too."""
    before = rig.daemon.stats()["items_encaps_total"]
    ms, failed = queue(rig, port, case)
    return ms, failed, rig.daemon.stats()["items_encaps_total"] - before == QUEUED


def frozen(rig):
    """nginx with one worker: the time that a frozen mlkemd adds to a queue in all.

    A fresh nginx each round, connected to the daemon and with its breaker closed. The
    queue is compared with the next one, in which the daemon is still frozen but left
    alone: the same work without the waiting. What else runs on the machine only ever
    adds time, so the quickest rounds are compared.
    """
    case = case_of("hybrid-daemon")
    stopped, alone, usual, failed, spoilt = [], [], [], 0, 0
    while len(stopped) < ROUNDS and spoilt < 10 * ROUNDS:
        proxy, port = rig.start(case, "nginx", 1)
        runs = [served(rig, port, case) for _ in range(3)]
        failed += sum(n for _, n, _ in runs)
        if runs[-1][2]:
            rig.daemon.process.send_signal(signal.SIGSTOP)
            ms, n = queue(rig, port, case)
            alone_ms, n_alone = queue(rig, port, case)
            rig.daemon.process.send_signal(signal.SIGCONT)
            usual.append(runs[-1][0])
            stopped.append(ms)
            alone.append(alone_ms)
            failed += n + n_alone
        else:
            spoilt += 1
        proxy.stop()
    if not stopped:
        return {"skipped": "frozen-daemon: too busy here for a daemon within its deadline"}
    return {"case": "frozen-daemon", "proxy": "nginx", "workers": 1, "queued": QUEUED,
            "usual_ms": round(min(usual), 1), "frozen_ms": round(min(stopped), 1),
            "alone_ms": round(min(alone), 1),
            "added_ms": round(min(stopped) - min(alone), 1),
            "added_median_ms": round(
                statistics.median(a - b for a, b in zip(stopped, alone)), 1),
            "must_ms": 50, "aim_ms": 5, "rounds": len(stopped), "failed": failed}


def under_load(rig, kind, workers, count):
    """Killed, frozen, restarted, stopped in good order, while handshakes are made."""
    case = case_of("hybrid-daemon")
    proxy, port = rig.start(case, kind, workers)
    load, out = rig.load.start(port, "tls", case.group, count, 32, 300)
    daemon, n = rig.daemon, {"killed": 0, "frozen": 0, "restarted": 0}
    while load.poll() is None:
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        daemon.process.send_signal(signal.SIGCONT)
        n["frozen"] += 1
        time.sleep(1.2)  # until the breaker lets a probe through
        daemon.stop(signal.SIGKILL)
        n["killed"] += 1
        time.sleep(0.2)
        daemon.start()
        time.sleep(1.2)
        daemon.stop(signal.SIGTERM)
        daemon.start()
        n["restarted"] += 1
        time.sleep(1.2)
    done = rig.load.end(load, out)
    proxy.stop()
    return {"case": "daemon-in-trouble", "proxy": kind, "workers": workers,
            "handshakes": len(done["us"]), **n, "failed": done["failed"],
            "error": done["error"], "p99_us": sorted(done["us"])[-len(done["us"]) // 100]}


def growth(rig, kind, workers, route, count):
    """After a tenth of the handshakes, which fill what is kept for good."""
    case = case_of(f"hybrid-{route}" if route else "x25519")
    proxy, port = rig.start(case, kind, workers)
    warm = rig.load.run(port, "tls", case.group, max(count // 10, 5000), 32, 600)
    seen, n, failed = [proxy.memory()], 0, warm["failed"]
    for _ in range(2):
        done = rig.load.run(port, "tls", case.group, count // 2, 32, 3000)
        n, failed = n + len(done["us"]), failed + done["failed"]
        seen.append(proxy.memory())
    proxy.stop()
    rss, anonymous, fds = zip(*seen)
    # Pages of files are code that ran for the first time: a fallback's, say.
    return {"case": "growth", "proxy": kind, "workers": workers, "over": case.name,
            "handshakes": n, "rss_kib": rss[-1], "growth_kib": rss[-1] - rss[0],
            "heap_growth_kib": anonymous[-1] - anonymous[0],
            "second_half_kib": anonymous[-1] - anonymous[1],
            "growth_fds": fds[-1] - fds[0], "failed": failed}


def run(rig, args):
    """One result after the other."""
    kinds = [kind for kind in ("nginx", "haproxy") if kind in rig.programs["host"]]
    if args.growth:
        for kind in kinds:
            for route in ("", "local", "daemon", "auto"):
                name = f"hybrid-{route}" if route else "x25519"
                if not args.cases or name in args.cases.split(","):
                    yield growth(rig, kind, 1, route, args.growth)
        return
    yield frozen(rig)
    for kind, workers in (("nginx", 1), ("nginx", 4), ("haproxy", 1)):
        if kind in kinds:
            yield under_load(rig, kind, workers, args.count * 40)
