# SPDX-License-Identifier: Apache-2.0
"""A mixed load whose clients are killed at random: resident memory and descriptors stay
flat, and no client that lives sees an error. 15 s; MLKEMD_LONG=1: an hour, or
MLKEMD_SECONDS.

The clients are programs of their own: users of the library in a loop (each operation of
each algorithm, all of it by the daemon or failed), mlkemctl bench with requests in flight
and with batches, and some that send half a request and wait for their end.
"""

import collections
import contextlib
import os
import random
import select
import subprocess
import sys
import time

from daemon import SANITIZER, SLOW, Daemon, status_kib, wait_for
from peer import exchange
from programs import CLIENT_LOOP, CTL
from test_chaos import LONG, seed_of_this_run

SECONDS = float(os.environ.get("MLKEMD_SECONDS") or (3600 if LONG else 15))
N_CLIENTS = 12
# What the heap may do between two quarters of the time, and no more.
FLAT_KIB = 256 if not SANITIZER else 16 * 1024

# Connects, sends half of a frame and waits.
HALF = """
import socket, struct, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(struct.pack(">I", 3000) + bytes(1500))
print("sent", flush=True)
time.sleep(1000)
"""


class LibraryUser:
    """Exchanges until it is killed; an answer that counts a failure is an error."""

    def __init__(self, path, choose):
        self.process = subprocess.Popen(
            [CLIENT_LOOP, path, "require", str(20_000_000)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        algorithm = choose.choice(["mlkem512", "mlkem768", "mlkem1024", "x25519mlkem768"])
        self.command = f"loop {choose.randrange(20, 400)} {algorithm}\n".encode()
        self.n_done = 0
        self.tell()

    def tell(self):
        self.process.stdin.write(self.command)
        self.process.stdin.flush()

    def fault(self):
        """What went wrong, if anything did; asks for more when it is done."""
        if not select.select([self.process.stdout], [], [], 0)[0]:
            return None
        line = self.process.stdout.readline().split()
        if line == [b"ready"]:
            return None
        if len(line) != 5 or line[0] != b"done" or line[2:4] != [b"0", b"0"]:
            return f"{self.command}: {line}, {self.process.poll()}"
        self.n_done += int(line[1])
        self.tell()
        return None


class Bench:
    """A load of mlkemctl that ends by itself, if it is not killed before."""

    def __init__(self, path, choose):
        # All of them together stay below every limit of a user: nothing is refused.
        in_flight, items = choose.choice([(1, 1), (2, 1), (8, 1), (1, 8)])
        op = choose.choice(["encaps", "client", "mix"])
        pace = (["--rate", str(choose.randrange(50, 800))] if op == "encaps" else
                ["--idle-us", str(choose.randrange(5000, 50000))])
        self.args = [
            "bench", choose.choice(["x25519mlkem768", "mlkem768", "mlkem512"]),
            "--op", op, *pace, "--socket", path,
            "--connections", str(choose.randrange(1, 9)),
            "--in-flight", str(in_flight), "--items", str(items),
            "--rounds", "1", "--duration-ms", str(choose.randrange(500, 20000)),
            "--timeout-ms", "20000"]
        self.process = subprocess.Popen([CTL] + self.args, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)
        self.n_done = 0

    def fault(self):
        status = self.process.poll()
        if not status:
            return None
        return f"{self.args}: {status}, {self.process.stderr.read()}"


class Half:
    """Its connection is closed after limits.frame-timeout; it is killed some time."""

    def __init__(self, path, _choose):
        self.process = subprocess.Popen([sys.executable, "-c", HALF, path],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.n_done = 0

    def fault(self):
        status = self.process.poll()
        return None if status is None else f"half: {status}, {self.process.stderr.read()}"


KINDS = [LibraryUser, LibraryUser, LibraryUser, Bench, Bench, Half]


def end(client):
    client.process.kill()
    for pipe in (client.process.stdin, client.process.stdout, client.process.stderr):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
    client.process.wait()


class Load:
    def __init__(self, path, seed, kinds=None):
        self.path, self.choose, self.kinds = path, random.Random(seed), kinds or KINDS
        self.clients, self.errors, self.n = [], [], collections.Counter()

    def step(self):
        """One look at all of them; now and then one is killed, wherever it is."""
        for client in list(self.clients):
            if error := client.fault():
                self.errors.append(error)
            if client.process.poll() is not None:
                self.n["ended"] += 1
                self.drop(client)
        while len(self.clients) < N_CLIENTS:
            client = self.choose.choice(self.kinds)(self.path, self.choose)
            self.n[type(client).__name__] += 1
            self.clients.append(client)
        if self.choose.random() < 0.3:
            self.n["killed"] += 1
            self.drop(self.choose.choice(self.clients))

    def drop(self, client):
        self.n["exchanges"] += client.n_done
        self.clients.remove(client)
        end(client)

    def __enter__(self):
        return self

    def __exit__(self, *_unused):
        for client in list(self.clients):
            self.drop(client)


def run(daemon, load, seconds):
    """Each second or so: resident memory in KiB, but for the pages of files (those that a
    program is made of come and go), and the number of descriptors."""
    samples, start = [], time.monotonic()
    while (now := time.monotonic() - start) < seconds and not load.errors:
        load.step()
        if now >= len(samples) * max(1.0, seconds / 3600):
            samples.append((status_kib(daemon.pid, "RssAnon"), daemon.n_fds()))
        time.sleep(load.choose.uniform(0.02, 0.2))
    return samples


def growth(values):
    """The highest of the last quarter above the highest of the second."""
    quarter = len(values) // 4
    return max(values[-quarter:]) - max(values[quarter:2 * quarter])


def test_mixed_load_with_clients_killed():
    seed = seed_of_this_run()
    settings = {"limits.user-share": "100%", "limits.frame-timeout": "2s",
                "limits.handle-lifetime": "20s"}
    with Daemon(settings) as daemon:
        exchange(daemon.path, count=64)
        daemon.wait_pool()
        fds = daemon.n_fds()
        with Load(daemon.path, seed) as load:
            samples = run(daemon, load, SECONDS)
        stats = daemon.stats()
        rss = [one for one, _ in samples]
        print(f"{dict(load.n)}; resident {rss[:: max(1, len(rss) // 12)]} KiB, descriptors "
              f"up to {max(n for _, n in samples)}, requests {stats['requests_total']}")
        assert not load.errors, (load.errors[:5], daemon.log()[-2000:], stats)
        assert load.n["killed"] >= SECONDS / SLOW / 5 and load.n["exchanges"] >= 20
        assert growth(rss) < FLAT_KIB, rss
        wait_for(lambda: daemon.stats()["connections"] == 0, 30 * SLOW, "all gone")
        wait_for(lambda: daemon.stats()["handles"] == 0, 60 * SLOW, "no key is left")
        wait_for(lambda: daemon.n_fds() <= fds, 30 * SLOW, "descriptors as before")
        levels = [line for line in daemon.log().splitlines() if line[:3] in ("<3>", "<2>")]
        assert not levels, levels[:5]
        exchange(daemon.path, count=64)


def test_control_a_daemon_that_ends_is_an_error():
    """Errors that nobody caused are seen with each kind of client."""
    for kind in (LibraryUser, Bench):
        with Daemon() as daemon, Load(daemon.path, 1, [kind]) as load:
            run(daemon, load, 0.5)
            daemon.kill()
            wait_for(lambda load=load: load.step() or load.errors, 60 * SLOW, kind)


def test_control_growth_is_seen():
    flat = [100, 130] * 500
    assert growth(flat) == 0
    assert growth([kib + n for n, kib in enumerate(flat)]) > 400
