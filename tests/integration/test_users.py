# SPDX-License-Identifier: Apache-2.0
"""One user, however greedy, leaves others their part: turns, connections, keys, pool.

The other user is this program with another effective uid while it connects: only root can
do that.
"""

import contextlib
import os
import selectors
import statistics
import threading

import pytest

from daemon import SLOW, Daemon, wait_for
from peer import Closed, Peer, frame, pb

NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0,
                                reason="only root can run clients as other users")


@contextlib.contextmanager
def being(uid):
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def peer_of(daemon, uid, **more):
    with being(uid):
        return daemon.peer(**more)


@pytest.fixture
def shared():
    with Daemon({"daemon.shards": "1", "access.allow-users": f"0,{NOBODY}",
                 "limits.max-connections": "128", "limits.max-handles": "64",
                 "pool.enabled": "no"}) as it:
        yield it


class Greedy(threading.Thread):
    """Full batches on many connections, one behind the other."""

    def __init__(self, daemon, n_connections):
        super().__init__(daemon=True)
        self.peers = [daemon.peer() for _ in range(n_connections)]
        share = self.peers[0].keygen(pb.X25519MLKEM768)[0].share
        self.batch = [share] * 64
        self.over, self.answers = False, 0

    def one(self, peer):
        return frame(peer.request("encapsulate", algorithm=pb.X25519MLKEM768,
                                  shares=self.batch))

    def run(self):
        selector = selectors.DefaultSelector()
        for peer in self.peers:
            selector.register(peer.socket, selectors.EVENT_READ, peer)
            peer.send_raw(self.one(peer))
        while not self.over:
            for key, _ in selector.select(0.2):
                peer = key.data
                peer.buffer += peer.socket.recv(1 << 20)
                length = 4 + int.from_bytes(peer.buffer[:4], "big")
                if len(peer.buffer) >= max(length, 4):
                    del peer.buffer[:length]
                    self.answers += 1
                    peer.send_raw(self.one(peer))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *unused):
        self.over = True
        self.join(30 * SLOW)
        for peer in self.peers:
            peer.close()


def test_a_modest_user_beside_a_greedy_one(shared):
    """64 connections with full batches: another user's answer comes within a few turns,
    not after all of theirs."""
    share = shared.peer().keygen(pb.X25519MLKEM768)[0].share
    with Greedy(shared, 63) as greedy:
        wait_for(lambda: greedy.answers > 63, 60 * SLOW, "the load")
        turns = []
        with peer_of(shared, NOBODY) as modest:
            for _ in range(20):
                before = shared.stats()["turns_total"]
                items = modest.encaps(pb.X25519MLKEM768, [share])
                assert items[0].status == pb.OK
                turns.append(shared.stats()["turns_total"] - before)
    print("turns to an answer:", sorted(turns))
    # Two of the turns may be the questions' own.
    assert statistics.median(turns) <= 10, turns


def test_connections_of_one_user_are_bounded(shared):
    """Half of 128: the next is told so at once, another user still comes in, and a place
    that was given back can be had again."""
    with contextlib.ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(shared.peer())
        with shared.peer(hello=False) as extra:
            answer = extra.hello()
            assert answer.status == pb.RESOURCE_EXHAUSTED
            assert "limits.user-share" in answer.message
            with pytest.raises(Closed):
                extra.recv()
        with peer_of(shared, NOBODY) as other:
            assert other.call("ping").status == pb.OK
        assert "user-full" in shared.log()
    wait_for(lambda: shared.stats()["connections"] == 0, 20 * SLOW, "their end")
    with shared.peer() as again:
        assert again.call("ping").status == pb.OK


def statuses_of(peer, n):
    answer = peer.call("generate_keys", algorithm=pb.ML_KEM_768, count=n)
    return [item.status for item in answer.keys.items]


def test_keys_of_one_user_are_bounded(shared):
    """Half of 64, over all of its connections; they come back with the connection."""
    with shared.peer() as one, shared.peer() as two:
        assert one.call("info").info.limits.max_handles == 32
        assert all(item.status == pb.OK for item in one.keygen(pb.ML_KEM_768, 20))
        statuses = statuses_of(two, 20)
        assert statuses == [pb.OK] * 12 + [pb.RESOURCE_EXHAUSTED] * 8
        with peer_of(shared, NOBODY) as other:
            statuses = statuses_of(other, 40)
            assert statuses == [pb.OK] * 32 + [pb.RESOURCE_EXHAUSTED] * 8
    wait_for(lambda: shared.stats()["handles"] == 0, 20 * SLOW, "the keys' end")
    with shared.peer() as one:
        assert all(item.status == pb.OK for item in one.keygen(pb.ML_KEM_768, 32))


def test_the_pool_is_for_all_while_others_are_there():
    """Alone a user may have all of it; while another is connected half a second."""
    settings = {"daemon.shards": "1", "access.allow-users": f"0,{NOBODY}",
                "pool.hybrid": "40", "pool.low-water": "90%"}
    with Daemon(settings) as daemon:
        def taken(n):
            daemon.wait_pool(level=40)
            before = daemon.stats()["pool_taken_total"]
            with daemon.peer() as peer:
                assert all(item.status == pb.OK
                           for item in peer.keygen(pb.X25519MLKEM768, n))
            return daemon.stats()["pool_taken_total"] - before

        assert taken(30) == 30
        with peer_of(daemon, NOBODY):
            assert taken(30) == 20
