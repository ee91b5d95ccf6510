# SPDX-License-Identifier: Apache-2.0
"""The daemon killed, stopped, starved of descriptors, with its clocks set and its sockets
removed, under clients that lie, stall and vanish: see chaos.py for what has to hold all
the same. 10 s; MLKEMD_LONG=1: 3 minutes.
"""

import contextlib
import os
import random
import resource
import signal
import socket
import struct
import threading
import time

from chaos import Client, Ledger, LossyRelay, Nuisance
from daemon import SLOW, Daemon, wait_for
from peer import Closed, exchange, frame, pb
from programs import ClientLoop
from scrape import ask
from stalled import Stalled, threads_of
from test_metrics import free_port
from test_surroundings import Clocks, limit

LONG = os.environ.get("MLKEMD_LONG") == "1"
SECONDS = 180 if LONG else 10


# ---------------------------------------------------------------- one shard that hangs

def shard_of(peer):
    return peer.call("info").info.shard


def wedged(daemon):
    """The first shard's thread, stopped; the log has told of it."""
    stalled = Stalled(threads_of(daemon.pid)[0])
    wait_for(lambda: "shard-stuck: shard 0" in daemon.log(), 60, "shard-stuck")
    return stalled


def test_a_wedged_shard_takes_nobody_new():
    """Who was on it waits for its deadline; the others are served, health is bad; and all
    is well when it goes on."""
    address = ("127.0.0.1", free_port())
    with Daemon({"daemon.shards": "2",
                 "metrics.listen": f"{address[0]}:{address[1]}"}) as daemon, \
            daemon.peer() as caught, ClientLoop(daemon.path, "", 4_000_000) as client:
        assert shard_of(caught) == 0
        assert client("exchange").startswith("ok 3 ")
        with wedged(daemon):
            request = caught.request("generate_keys", algorithm=pb.ML_KEM_768, count=1)
            caught.send(request)
            for _ in range(5):
                with daemon.peer() as peer:
                    assert shard_of(peer) == 1
                exchange(daemon.path)
            assert client("exchange").startswith("ok"), "it is computed here"
            assert ask(address, "/healthz")[0] == 503
            assert ask(address, "/metrics")[0] == 200
        answer = caught.recv()
        assert answer.id == request.id
        assert answer.status in (pb.OK, pb.DEADLINE_EXCEEDED)
        wait_for(lambda: ask(address, "/healthz")[0] == 200, 30 * SLOW, "healthy again")

        def back():
            with daemon.peer() as peer:
                return shard_of(peer) == 0
        wait_for(back, 30 * SLOW, "the first shard is used again")


def test_sigterm_with_a_wedged_shard():
    """It can't be waited for for ever."""
    with Daemon({"daemon.shards": "2", "limits.drain-timeout": "1s"}) as daemon:
        with Stalled(threads_of(daemon.pid)[0]) as stalled:
            daemon.signal(signal.SIGTERM)
            wait_for(stalled.reap, 60 * SLOW, "the end")
        assert daemon.process.wait(20 * SLOW) == 1
        assert "shard 0 did not end" in daemon.log()
        assert not os.path.exists(daemon.path)
        daemon.ended_on_purpose = True


# ---------------------------------------------------------------- everything

def test_ends_of_every_kind_in_one_turn():
    """While it is stopped: whole and half frames, ends, aborts, some all at once. It
    finds them in one turn, with deadlines passed; each connection ends once."""
    with Daemon({"limits.frame-timeout": "1s"}) as daemon:
        peers = [daemon.peer() for _ in range(40)]
        fds = daemon.n_fds() - len(peers)
        for peer in peers:
            peer.send_raw(struct.pack(">I", 4000) + b"x" * 10)
        daemon.freeze()
        for n, peer in enumerate(peers):
            peer.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError, Closed):
                if n % 2:
                    peer.socket.send(b"y" * (3990 if n % 3 else 100))
                if n % 3 == 0:
                    peer.socket.send(frame(peer.request("ping")) * 5000)
            if n % 4 < 2:
                peer.socket.shutdown(socket.SHUT_WR)
            if n % 5 == 0:
                peer.close()
        time.sleep(1.2)  # longer than a frame may take
        daemon.thaw()
        exchange(daemon.path)
        for peer in peers:
            peer.close()
        wait_for(lambda: daemon.stats()["connections"] == 0, 30 * SLOW, "all are gone")
        wait_for(lambda: daemon.n_fds() <= fds, 30 * SLOW, "and their descriptors")



class Scene:
    """A daemon and what may happen to it. Its clocks and sockets are the events'."""

    def __init__(self, clocks, seed, env=None):
        self.clocks, self.choose, self.epoch = clocks, random.Random(seed), 0
        self.daemon = Daemon({"daemon.shards": "2", "limits.user-share": "100%",
                              "limits.drain-timeout": "2s"},
                             env=dict(clocks.env, **(env or {})))

    def kill(self):
        self.epoch += 1
        self.daemon.kill()
        self.daemon.start()

    def restart(self):
        self.epoch += 1
        self.daemon.stop()
        self.daemon.start()

    def freeze(self):
        self.daemon.freeze()
        time.sleep(self.choose.uniform(0.05, 0.5))
        self.daemon.thaw()

    def stall(self):
        with Stalled(self.choose.choice(threads_of(self.daemon.pid))):
            time.sleep(self.choose.uniform(0.05, 0.5))

    def reload(self):
        for _ in range(3):
            self.daemon.signal(signal.SIGHUP)
            time.sleep(0.02)

    def drain(self):
        assert self.daemon.admin("drain").status == pb.OK
        time.sleep(self.choose.uniform(0.0, 0.2))
        assert self.daemon.admin("resume").status == pb.OK

    def unlink(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.daemon.path)
        if not LONG:  # it looks every 10 s
            self.restart()

    def descriptors(self):
        limit(self.daemon, resource.RLIMIT_NOFILE, self.daemon.n_fds())
        time.sleep(self.choose.uniform(0.05, 0.4))
        limit(self.daemon, resource.RLIMIT_NOFILE, 4096)

    def sleep(self):
        self.clocks.set(boottime=time.monotonic() * 1000, realtime=3600)

    def wall_clock(self):
        self.clocks.set(boottime=time.monotonic() * 1000,
                        realtime=self.choose.uniform(-1e8, 1e8))

    def self_test(self):
        assert self.daemon.admin("self_test").self_test.passed

    EVENTS = ["kill", "restart", "freeze", "stall", "reload", "drain", "unlink",
              "descriptors", "sleep", "wall_clock", "self_test"]


def seed_of_this_run():
    seed = int(os.environ.get("MLKEMD_SEED") or random.SystemRandom().getrandbits(32))
    print(f"seed {seed}")
    return seed


def run(scene, ledger, events, seconds, n_clients=3, nuisance=True):
    """Each event at least once, in any order, and on till the time is over."""
    seed = scene.choose.getrandbits(32)
    threads = [Client(scene.daemon.path, ledger, seed + n, lambda: scene.epoch)
               for n in range(n_clients)]
    threads += [Nuisance(scene.daemon.path, seed)] if nuisance else []
    for thread in threads:
        thread.start()
    end, happened = time.monotonic() + seconds, 0
    while time.monotonic() < end or happened < len(events):
        if happened % len(events) == 0:
            scene.choose.shuffle(events)
        event = events[happened % len(events)]
        getattr(scene, event)()
        happened += 1
        before = ledger.n["answers"]
        time.sleep(scene.choose.uniform(0.05, 0.4))
        wait_for(lambda n=before: ledger.n["answers"] > n or ledger.errors, 60 * SLOW,
                 f"answers after {event}")
        if ledger.errors:
            break
    for thread in threads:
        thread.over = True
    for thread in threads:
        thread.join(120 * SLOW)
        assert not thread.is_alive(), f"{thread} waits for ever"
    return happened


def use_the_library(path, over, wrong):
    """A program that knows nothing of all this."""
    try:
        with ClientLoop(path, "", 300_000) as client:
            while not over.is_set():
                wrong.append(int(client("loop 50 mlkem768").split()[3]))
    except Exception as error:  # noqa: BLE001 (told by the test)
        wrong.append(error)


def test_chaos():
    ledger, over, wrong = Ledger(), threading.Event(), []
    with Clocks() as clocks:
        scene = Scene(clocks, seed_of_this_run())
        with scene.daemon as daemon:
            user = threading.Thread(target=use_the_library,
                                    args=(daemon.path, over, wrong))
            user.start()
            try:
                n = run(scene, ledger, list(Scene.EVENTS), SECONDS)
            finally:
                over.set()
                user.join(120 * SLOW)
            print(f"{n} events, {ledger.n}, {len(ledger.seen)} things handed out, "
                  f"{50 * len(wrong)} exchanges by the library")
            assert not ledger.errors, ledger.errors[:5]
            assert wrong and not any(wrong), [w for w in wrong if w]
            assert ledger.n["exchanges"] >= 20
            wait_for(lambda: daemon.stats()["connections"] == 0, 30 * SLOW, "all gone")
            wait_for(lambda: daemon.stats()["handles"] == 0, 30 * SLOW, "no key is left")
            wait_for(lambda: os.path.exists(daemon.path), 30 * SLOW, "it has bound again")
            exchange(daemon.path, count=64)


def test_control_a_lost_answer_is_noticed(tmp_path):
    ledger, path = Ledger(), str(tmp_path / "relay.sock")
    with Daemon() as daemon:
        LossyRelay(path, daemon.path, 6).start()
        client = Client(path, ledger, 1, timeout=2.0)
        client.start()
        wait_for(lambda: ledger.errors, 60, "the loss is told")
        client.over = True
        client.join(60)
    assert ledger.errors[0] == "a request got no answer", ledger.errors


def test_control_an_end_without_a_reason_is_noticed():
    """A daemon that is replaced, and nobody told the clients."""
    ledger = Ledger()
    with Daemon() as daemon:
        client = Client(daemon.path, ledger, 1)
        client.start()
        wait_for(lambda: ledger.n["answers"], 60 * SLOW, "it works")
        daemon.kill()
        wait_for(lambda: ledger.errors, 60 * SLOW, "the end is told")
        client.over = True
        client.join(60)
    assert ledger.errors[0] == "a living daemon ended a connection", ledger.errors
