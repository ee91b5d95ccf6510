# SPDX-License-Identifier: Apache-2.0
"""What is around the daemon runs short or is another: descriptors, memory, clocks, the
internet, a malloc(3) of another kind.
"""

import contextlib
import http.client
import os
import resource
import struct
import tempfile
import time

import pytest

from daemon import SANITIZER, SLOW, Daemon, StartFailed, status_kib, wait_for
from peer import Closed, Peer, exchange, pb
from programs import HELPERS, NO_MEMFD_SECRET, ClientLoop
from scrape import ask
from test_metrics import free_port

SHIFT = os.path.join(HELPERS, "shift_clocks.so")
no_sanitizer = pytest.mark.skipif(bool(SANITIZER),
                                  reason="a sanitizer has to be loaded first")


def limit(daemon, which, soft):
    hard = resource.prlimit(daemon.pid, which)[1]
    resource.prlimit(daemon.pid, which, (min(soft, hard) if hard > 0 else soft, hard))


# ---------------------------------------------------------------- descriptors

def crowd(daemon, n, timeout=20.0 * SLOW):
    """n who connect and say Hello; what became of each: let in, or told at once."""
    peers = []
    for _ in range(n):
        with contextlib.suppress(Closed, OSError):
            peer = Peer(daemon.path, hello=False, timeout=timeout)
            peers.append(peer)
            peer.hello()
    return peers


def with_few_descriptors(fault=""):
    address = ("127.0.0.1", free_port())
    return address, Daemon({"metrics.listen": f"{address[0]}:{address[1]}",
                            "limits.user-share": "100%"}, nofile=64,
                           env={"MLKEMD_FAULT": fault})


def test_a_crowd_leaves_descriptors_to_the_operator():
    """Whoever finds no room is told at once; scrapes and the control socket answer."""
    address, daemon = with_few_descriptors()
    with daemon:
        peers = crowd(daemon, 100)
        inside = [p for p in peers if not gone(p)]
        assert len(inside) == 32, len(inside)
        assert ask(address, "/metrics")[0] == ask(address, "/healthz")[0] == 200
        assert daemon.stats()["connections"] == 32
        assert inside[0].keygen(pb.X25519MLKEM768, 4)
        log = daemon.log()
        assert "leaves room for 32" in log and "accept-paused" not in log
        for peer in peers:
            peer.close()
        wait_for(lambda: daemon.stats()["connections"] == 0, 30 * SLOW, "all are gone")
        exchange(daemon.path)


def gone(peer):
    try:
        return peer.call("ping").status != pb.OK
    except (Closed, OSError):
        return True


# ---------------------------------------------------------------- clocks

class Clocks:
    """What a daemon's clocks are ahead of the machine's (shift_clocks.c)."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(prefix="mlkemd-clocks-")
        self.set()
        self.env = {} if SANITIZER else {"LD_PRELOAD": SHIFT,
                                         "SHIFT_CLOCKS": self.file.name}

    def set(self, boottime=0.0, realtime=0.0):
        self.file.seek(0)
        self.file.write(struct.pack("qq", int(boottime * 1e9), int(realtime * 1e9)))
        self.file.flush()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.file.close()


@no_sanitizer
def test_a_host_that_slept():
    """What lay in memory meanwhile is not given out any more; live keys still are good."""
    with Clocks() as clocks, Daemon(env=clocks.env) as daemon, daemon.peer() as peer:
        daemon.wait_pool()
        (key,) = peer.keygen(pb.X25519MLKEM768)
        before = daemon.stats()
        assert before["pool_hybrid"] > 0
        clocks.set(boottime=0.5)
        time.sleep(1.5)
        assert "suspend:" not in daemon.log(), "half a second is no sleep"
        assert daemon.stats()["pool_made_total"] <= before["pool_made_total"] + 16
        clocks.set(boottime=8 * 3600)
        wait_for(lambda: "suspend:" in daemon.log(), 30 * SLOW, "suspend is seen")
        daemon.wait_pool(level=before["pool_hybrid"])
        made = daemon.stats()["pool_made_total"] - before["pool_made_total"]
        assert made >= before["pool_hybrid"], "the pool was made anew"
        (sent,) = peer.encaps(pb.X25519MLKEM768, [key.share])
        assert peer.decaps(pb.X25519MLKEM768, [pb.DecapsulateItem(
            ciphertext=sent.ciphertext, handle=key.handle)]) == [sent.secret]
        time.sleep(1.5)
        assert daemon.log().count("suspend:") == 1, "it slept once"


@no_sanitizer
@pytest.mark.parametrize("years", [10, -10])
def test_the_wall_clock_is_set(years):
    """No deadline, no lifetime and no age depends on it."""
    address = ("127.0.0.1", free_port())
    with Clocks() as clocks, \
            Daemon({"metrics.listen": f"{address[0]}:{address[1]}"},
                   env=clocks.env) as daemon, daemon.peer() as peer:
        (key,) = peer.keygen(pb.ML_KEM_768)
        daemon.wait_pool()
        before = daemon.stats()
        clocks.set(realtime=years * 365 * 86400)
        (sent,) = peer.encaps(pb.ML_KEM_768, [key.share])
        assert peer.decaps(pb.ML_KEM_768, [pb.DecapsulateItem(
            ciphertext=sent.ciphertext, handle=key.handle)]) == [sent.secret]
        for _ in range(20):
            exchange(daemon.path)
        after = daemon.stats()
        for name in ("handles_expired_total", "pool_expired_total",
                     "frame_timeouts_total", "hello_timeouts_total"):
            assert after[name] == before[name], name
        assert peer.call("info").info.uptime_s < 3600
        assert ask(address)[0] == 200


# ---------------------------------------------------------------- memory, and the rest

def start_in(mebibytes, lock):
    """Started with little address space: it serves, or says why not and ends.

    Without the sandbox: libseccomp 2.5 does not survive an allocation that fails while it
    makes the filter, and ends the program there.
    """
    room = mebibytes << 20
    prefix = ["prlimit", f"--as={room}"] + (["--memlock=0"] if lock else [])
    try:
        with Daemon({"daemon.sandbox": "off"}, prefix=prefix) as daemon:
            exchange(daemon.path)
            return "served"
    except StartFailed as failed:
        assert failed.status in (1, 127), (mebibytes, failed.status, failed.log)
        assert failed.log.strip(), "it ended without a word"
        return "refused"


@no_sanitizer
def test_a_start_with_little_memory():
    got = [start_in(room, lock) for room, lock in
           [(4, False), (12, False), (20, True), (24, False), (28, True), (32, False),
            (40, False), (512, False)]]
    assert got[0] == "refused" and got[-1] == "served", got


def with_one_arena(fault=""):
    """malloc(3) keeps no address space of its own for shards."""
    address = ("127.0.0.1", free_port())
    return address, Daemon({"limits.user-share": "100%",
                            "metrics.listen": f"{address[0]}:{address[1]}"},
                           env={"MALLOC_ARENA_MAX": "1", "MLKEMD_FAULT": fault})


def no_more_memory(daemon):
    limit(daemon, resource.RLIMIT_AS, status_kib(daemon.pid, "VmSize") * 1024)
    return crowd(daemon, 400)


def turned_away(daemon):
    stats = daemon.stats()
    return stats["shed_total"] + stats["hello_timeouts_total"]


@no_sanitizer
def test_memory_that_runs_out_later():
    """No mapping grows any more: who finds no room is told by an end at once, and the
    log tells; those that are there already are served as before."""
    address, daemon = with_one_arena()
    with daemon, daemon.peer() as held:
        exchange(daemon.path, count=64)
        keys = held.keygen(pb.X25519MLKEM768, 8)
        before = turned_away(daemon)
        peers = no_more_memory(daemon)
        inside = [p for p in peers if not gone(p)]
        assert 0 < len(inside) < 400, len(inside)
        assert "no-memory: " in daemon.log()
        for peer in [held, *inside[:8]]:
            sent = peer.encaps(pb.X25519MLKEM768, [key.share for key in keys])
        assert held.decaps(pb.X25519MLKEM768, [
            pb.DecapsulateItem(ciphertext=one.ciphertext, handle=key.handle)
            for key, one in zip(keys, sent)]) == [one.secret for one in sent]
        for _ in range(5):
            with contextlib.suppress(OSError, http.client.HTTPException):
                assert ask(address, timeout=1)[0] in (200, 503)
        limit(daemon, resource.RLIMIT_AS, resource.RLIM_INFINITY)
        assert turned_away(daemon) - before >= 400 - len(inside)
        for peer in peers:
            peer.close()
        wait_for(lambda: daemon.stats()["connections"] <= 1, 30 * SLOW, "all are gone")
        exchange(daemon.path, count=64)
        wait_for(lambda: ask(address)[0] == 200, 30 * SLOW, "scrapes again")


def answers_to_nothing(path):
    """Empty lists, empty bytes, empty options: what each request is answered."""
    with Peer(path) as peer:
        (key,) = peer.keygen(pb.ML_KEM_768)
        kdf = pb.Kdf(hash=pb.HKDF_SHA256, length=32, salt=b"", info=b"")
        asked = [("generate_keys", {"algorithm": pb.ML_KEM_768, "count": 0}),
                 ("encapsulate", {"algorithm": pb.ML_KEM_768}),
                 ("encapsulate", {"algorithm": pb.ML_KEM_768, "shares": [b""]}),
                 ("encapsulate", {"algorithm": pb.ML_KEM_768, "shares": [key.share],
                                  "kdf": kdf}),
                 ("decapsulate", {"algorithm": pb.ML_KEM_768}),
                 ("decapsulate", {"algorithm": pb.ML_KEM_768,
                                  "items": [pb.DecapsulateItem(handle=b"",
                                                               ciphertext=b"")]}),
                 ("release", {}), ("release", {"handles": [b""]})]
        got = []
        for op, fields in asked:
            answer = peer.call(op, **fields)
            items = getattr(answer, answer.WhichOneof("result") or "", None)
            got.append((op, answer.status,
                        [i.status for i in getattr(items, "items", [])]))
        return got


@no_sanitizer
def test_nothing_is_no_lack_of_memory():
    """A malloc(0) that is NULL changes no answer and no exchange, on either side."""
    env = {"LD_PRELOAD": os.path.join(HELPERS, "null_for_nothing.so")}
    with Daemon() as daemon:
        expected = answers_to_nothing(daemon.path)
    with Daemon(env=env) as daemon:
        assert answers_to_nothing(daemon.path) == expected
        exchange(daemon.path, count=64)
        assert daemon.admin("reload").status == pb.OK
        for route in ("require", "local"):
            with ClientLoop(daemon.path, route, env=env) as client:
                assert client("loop 20 X25519MLKEM768").startswith("done 20 0 0 ")


def test_a_unit_without_the_internet(tmp_path):
    """RestrictAddressFamilies=AF_UNIX: the default works; a scrape over TCP is not to be
    had, and the one line says which directive it is and what to do."""
    prefix = [NO_MEMFD_SECRET, "-i"]
    with Daemon(prefix=prefix) as daemon:
        exchange(daemon.path)
    path = str(tmp_path / "m.sock")
    with Daemon({"metrics.path": path}, prefix=prefix):
        assert ask(path)[0] == 200
    with pytest.raises(StartFailed) as failed:
        Daemon({"metrics.listen": "127.0.0.1:1"}, prefix=prefix)
    assert failed.value.status == 1
    (line,) = [line for line in failed.value.log.splitlines() if "listen-failed" in line]
    assert "RestrictAddressFamilies=" in line and "mlkemd-metrics.socket" in line
