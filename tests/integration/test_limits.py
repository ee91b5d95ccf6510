# SPDX-License-Identifier: Apache-2.0
"""Clients that take more than they give: what they pin is bounded, others are served."""

import os
import resource
import select
import socket
import struct
import time

import pytest

from daemon import SANITIZER, SLOW, Daemon, wait_for
from peer import MAX_FRAME, Closed, Peer, exchange, frame, pb

# RSS that a greedy client may add, in KiB: the slab, kernel memory not counted. Sanitizers
# keep freed memory for a while and shadow what is used.
ROOM_KIB = 8 * 1024 * (4 if SANITIZER else 1)


def pipeline(peer, requests, until_blocked=False, limit_s=120.0):
    """Writes frames without reading an answer. Returns how many went out whole."""
    peer.socket.setblocking(False)
    sent, data, view = 0, b"", memoryview(b"")
    end = time.monotonic() + limit_s
    for request in requests:
        data = frame(request)
        view = memoryview(data)
        while view:
            try:
                view = view[peer.socket.send(view):]
            except BlockingIOError:
                if until_blocked and not select.select([], [peer.socket], [], 0.5)[1]:
                    peer.rest = bytes(view)
                    peer.socket.settimeout(60)
                    return sent
                assert time.monotonic() < end, "blocked for ever"
        sent += 1
    peer.rest = b""
    peer.socket.settimeout(60)
    return sent


@pytest.mark.slow
def test_100_000_requests_and_no_reader(daemon):
    """The daemon stops reading from who does not read; later every answer arrives."""
    total = 100_000 if not SANITIZER else 20_000
    exchange(daemon.path)
    daemon.wait_pool()
    before = daemon.rss_kib()
    with daemon.peer() as greedy, daemon.peer(name="modest") as modest:
        # What waits for its client to read waits longer than the default deadline.
        requests = [greedy.request("generate_keys", timeout_us=1_000_000_000,
                                   algorithm=pb.ML_KEM_512, count=1,
                                   export_private=True) for _ in range(total)]
        sent = pipeline(greedy, requests, until_blocked=True)
        assert sent < total, "the socket took all of it: nothing was held back"

        def rests():
            cpu = daemon.cpu_s()
            time.sleep(1.0)
            return daemon.cpu_s() - cpu < 0.1
        if not SANITIZER:
            wait_for(rests, 60, "at rest: it spins on a connection that is full")
        assert daemon.rss_kib() - before < ROOM_KIB
        for _ in range(20):
            assert modest.keygen(pb.ML_KEM_512)
        # Now both ways: write what is left as fast as answers are read.
        greedy.socket.setblocking(False)
        rest, at, got = memoryview(greedy.rest), sent + bool(greedy.rest), 0
        ids = set()
        end = time.monotonic() + 300 * SLOW
        while got < total:
            assert time.monotonic() < end, (got, at)
            wants = [greedy.socket] if rest or at < total else []
            readable, writable, _ = select.select([greedy.socket], wants, [], 30)
            assert readable or writable, f"stalled after {got} answers"
            if writable:
                if not rest:
                    chunk = requests[at:at + 200]
                    rest = memoryview(b"".join(map(frame, chunk)))
                    at += len(chunk)
                try:
                    rest = rest[greedy.socket.send(rest):]
                except BlockingIOError:
                    pass
            if readable:
                greedy.buffer += greedy.socket.recv(1 << 20)
                for answer in whole_answers(greedy):
                    assert answer.status == pb.OK, answer
                    ids.add(answer.id)
                    got += 1
        assert ids == {r.id for r in requests}, "each answered, none twice"
        assert daemon.rss_kib() - before < ROOM_KIB


def whole_answers(peer):
    while len(peer.buffer) >= 4:
        (length,) = struct.unpack(">I", peer.buffer[:4])
        if len(peer.buffer) < 4 + length:
            return
        yield pb.Response.FromString(bytes(peer.buffer[4:4 + length]))
        del peer.buffer[:4 + length]


def test_many_who_do_not_read(daemon):
    """64 connections at once, each until its socket is full: bounded all together."""
    n = 64 if not SANITIZER else 16
    exchange(daemon.path)
    before = daemon.rss_kib()
    peers = [daemon.peer() for _ in range(n)]
    for peer in peers:
        requests = [peer.request("generate_keys", algorithm=pb.ML_KEM_1024, count=8,
                                 export_private=True) for _ in range(400)]
        peer.socket.setblocking(False)
        try:
            peer.socket.send(b"".join(map(frame, requests)))
        except BlockingIOError:
            pass
    with daemon.peer() as modest:
        for _ in range(20):
            assert modest.keygen(pb.ML_KEM_768)
    assert daemon.rss_kib() - before < 2 * ROOM_KIB
    for peer in peers:
        peer.close()
    exchange(daemon.path)


def test_announced_and_never_sent(daemon):
    """Each connection announces the largest frame, some send nearly all of it: memory
    goes with what was received, up to the cap, and others are served."""
    n = 200 if not SANITIZER else 60
    exchange(daemon.path)
    before = daemon.rss_kib()
    peers = [daemon.peer() for _ in range(n)]
    for peer in peers:
        peer.send_raw(struct.pack(">I", MAX_FRAME))
    assert daemon.rss_kib() - before < ROOM_KIB
    for peer in peers[:32]:
        peer.socket.setblocking(False)
        try:
            peer.socket.send(bytes(MAX_FRAME - 1))
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass
    time.sleep(0.3)
    assert daemon.rss_kib() - before < 2 * ROOM_KIB
    for peer in peers:
        peer.close()
    wait_for(lambda: daemon.stats()["connections"] <= 1, 20 * SLOW, "all are gone")
    exchange(daemon.path)


@pytest.mark.slow
def test_half_frames_do_not_block_others():
    """With the slab full of frames that never end, their deadline makes room."""
    with Daemon({"limits.frame-timeout": "1s"}) as daemon:
        peers = [daemon.peer() for _ in range(64)]
        for peer in peers:
            peer.socket.setblocking(False)
            try:
                peer.socket.send(struct.pack(">I", MAX_FRAME) + bytes(400_000))
            except BlockingIOError:
                pass
        start = time.monotonic()
        exchange(daemon.path)
        assert time.monotonic() - start < 60 * SLOW
        for peer in peers:
            peer.close()


@pytest.mark.slow
def test_emfile():
    """No descriptor left: no spinning, no flood in the log, held connections are served,
    and it recovers."""
    with Daemon() as daemon:
        held = [daemon.peer()]
        hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (daemon.n_fds(), hard))
        waiting = []
        for _ in range(200):
            it = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            it.setblocking(False)
            try:
                it.connect(daemon.path)
            except BlockingIOError:
                it.close()
                continue
            waiting.append(it)
        wait_for(lambda: "accept-paused" in daemon.log(), 10 * SLOW, "out of descriptors")
        time.sleep(0.5)
        start = time.monotonic()
        lines, cpu = len(daemon.log().splitlines()), daemon.cpu_s()
        for _ in range(30):
            assert held[0].call("ping").status == pb.OK
            time.sleep(0.1)
        # Who spins takes all of the time, or what a busy machine gives it.
        assert daemon.cpu_s() - cpu < 0.5 * SLOW, "it spins"
        events = [line.split(":")[0] for line in daemon.log().splitlines()[lines:]]
        for event in set(events):
            assert events.count(event) <= time.monotonic() - start + 1, "one a second"
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (hard, hard))
        for it in waiting:
            it.close()

        def comes_in():
            try:
                with Peer(daemon.path, timeout=2.0) as peer:
                    return peer.call("ping").status == pb.OK
            except (OSError, Closed):
                return False
        wait_for(comes_in, 10 * SLOW, "new connections after EMFILE")
        exchange(daemon.path)
        held[0].close()


def test_connection_limit():
    """Over max-connections: an answer or an end at once, and the others are served."""
    with Daemon({"limits.max-connections": "8", "limits.user-share": "100%"}) as daemon:
        held = [daemon.peer() for _ in range(8)]
        with Peer(daemon.path, hello=False) as one_more:
            try:
                answer = one_more.hello()
                assert answer.status == pb.RESOURCE_EXHAUSTED, answer
            except Closed:
                pass
        assert all(peer.call("ping").status == pb.OK for peer in held)
        held.pop().close()

        def comes_in():
            try:
                with daemon.peer() as peer:
                    return peer.call("ping").status == pb.OK
            except (Closed, AssertionError):
                return False
        wait_for(comes_in, 5 * SLOW, "room again")
        for peer in held:
            peer.close()


def test_handle_limit():
    """RESOURCE_EXHAUSTED at once; no half of a batch is kept; the connection lives."""
    with Daemon({"limits.max-handles": "100", "limits.user-share": "100%"}) as daemon, \
            daemon.peer() as peer:
        most = peer.welcome.limits.max_handles
        assert most <= 100
        handles = []
        while True:
            answer = peer.call("generate_keys", algorithm=pb.ML_KEM_512, count=8)
            if answer.status != pb.OK:
                break
            got = [i.status for i in answer.keys.items]
            handles += [i.handle for i in answer.keys.items if i.status == pb.OK]
            if pb.RESOURCE_EXHAUSTED in got:
                break
            assert len(handles) <= 100
        assert daemon.stats()["handles"] == len(handles) > 80
        assert peer.call("release", handles=handles[:8]).released.released == 8
        assert len(peer.keygen(pb.ML_KEM_512, 8)) == 8


def test_handles_expire():
    with Daemon({"limits.handle-lifetime": "1s"}) as daemon, daemon.peer() as peer:
        assert peer.welcome.limits.handle_lifetime_ms == 1000
        (key,) = peer.keygen(pb.ML_KEM_768)
        (sent,) = peer.encaps(pb.ML_KEM_768, [key.share])
        wait_for(lambda: daemon.stats()["handles"] == 0, 10 * SLOW, "expiry")
        (got,) = peer.decaps_items(pb.ML_KEM_768, [pb.DecapsulateItem(
            handle=key.handle, ciphertext=sent.ciphertext)])
        assert got.status == pb.KEY_NOT_FOUND
        assert daemon.stats()["handles_expired_total"] == 1


def test_connections_leave_nothing(daemon):
    """A thousand connections later: descriptors and counters are as before."""
    wait_for(lambda: daemon.stats()["connections"] <= 1, 10 * SLOW, "quiet")
    fds = daemon.n_fds()
    for n in range(1000 // SLOW):
        peer = daemon.peer()
        if n % 3 == 0:
            peer.keygen(pb.X25519MLKEM768, 2)
        peer.close()
    wait_for(lambda: daemon.stats()["connections"] <= 1, 10 * SLOW, "all are gone")
    wait_for(lambda: daemon.n_fds() <= fds, 5, "descriptors back")
    assert daemon.stats()["handles"] == 0


@pytest.mark.slow
def test_rss_with_the_default_pool():
    """16 MiB is what the issue of this daemon allows; a sanitizer is not asked."""
    if SANITIZER:
        pytest.skip("memory is not measured under a sanitizer")
    # meson has malloc write over what it gives out: that makes untouched pages real.
    with Daemon(env={"MALLOC_PERTURB_": "0"}) as daemon:
        daemon.wait_pool("pool_hybrid")
        daemon.wait_pool("pool_x25519")
        for algorithm in (pb.X25519MLKEM768, pb.ML_KEM_1024):
            exchange(daemon.path, algorithm, 64)
        assert daemon.rss_kib() < 16 * 1024
        assert os.path.exists(daemon.path)
