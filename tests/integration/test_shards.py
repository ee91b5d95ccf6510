# SPDX-License-Identifier: Apache-2.0
"""Several shards: connections are packed, nothing is shared, main tells all of them."""

import signal
import threading
import time

from daemon import SLOW, Daemon, wait_for
from peer import ALGORITHMS, Peer, exchange, frame, item, pb

N_SHARDS = 4


class Busy(threading.Thread):
    """One connection that keeps the shard it is on busy."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.peer, self.over, self.error, self.n = Peer(path), False, None, 0
        self.shard = self.peer.call("info").info.shard
        share = self.peer.keygen(pb.ML_KEM_1024)[0].share
        self.work = [frame(self.peer.request("encapsulate", algorithm=pb.ML_KEM_1024,
                                             shares=[share] * 64)) for _ in range(4)]

    def run(self):
        try:
            for data in self.work:
                self.peer.send_raw(data)
            while not self.over:
                assert self.peer.recv().status == pb.OK
                self.n += 1
                self.peer.send_raw(self.work[self.n % 4])
            for _ in self.work:
                self.peer.recv()
        except Exception as error:  # noqa: BLE001 (told by the test)
            self.error = error
        finally:
            self.peer.close()


def spread(daemon):
    """Busy connections until one is on another shard than the first."""
    busy = []

    def other_shard():
        busy.append(Busy(daemon.path))
        busy[-1].start()
        time.sleep(0.3)
        return len({b.shard for b in busy}) > 1
    wait_for(other_shard, 30 * SLOW, "a second shard in use")
    return busy


def end(busy):
    for one in busy:
        one.over = True
    for one in busy:
        one.join(30 * SLOW)
        assert not one.error, one.error


def test_connections_are_packed():
    """Idle ones all go to the first shard: spreading would empty the lanes."""
    with Daemon({"daemon.shards": str(N_SHARDS)}) as daemon:
        peers = [daemon.peer() for _ in range(12)]
        assert {p.call("info").info.shard for p in peers} == {0}
        assert peers[0].call("info").info.shards == N_SHARDS
        for peer in peers:
            peer.close()


def test_busy_shards_get_no_more():
    with Daemon({"daemon.shards": str(N_SHARDS)}) as daemon:
        busy = spread(daemon)
        try:
            for algorithm in ALGORITHMS:
                exchange(daemon.path, algorithm, 8)
            with Peer(daemon.path) as one, Peer(daemon.path) as other:
                (key,) = one.keygen(pb.ML_KEM_768)
                (got,) = other.decaps_items(pb.ML_KEM_768, [
                    item(bytes(1088), handle=key.handle)])
                assert got.status == pb.KEY_NOT_FOUND
            counters = daemon.stats()
            assert counters["connections"] >= len(busy)
            assert counters["items_encaps_total"] > 0
        finally:
            end(busy)
        wait_for(lambda: daemon.stats()["handles"] == 0, 10 * SLOW, "no key is left")


def test_all_are_told():
    """Drain, resume, reload and the self-test reach each shard, under load; SIGTERM ends
    all of them with their answers out."""
    with Daemon({"daemon.shards": str(N_SHARDS)}) as daemon:
        busy = spread(daemon)
        end(busy)
        # One idle connection on each of two shards at least; the load is gone.
        busy = spread(daemon)
        peers = [daemon.peer() for _ in range(6)]
        assert daemon.admin("self_test").self_test.passed
        daemon.reconfigure(kem__export_private_keys="yes")
        assert daemon.admin("reload").status == pb.OK
        for peer in peers:
            wait_for(lambda p=peer: p.call("info").info.limits.export_allowed, 10 * SLOW,
                     "the reload came to its shard")
        end(busy)
        assert daemon.admin("drain").status == pb.OK
        for peer in peers:
            wait_for(lambda p=peer: p.call("ping").load.draining, 10 * SLOW, "draining")
            answer = peer.call("generate_keys", algorithm=pb.ML_KEM_768, count=1)
            assert answer.status == pb.DRAINING
        assert daemon.admin("resume").status == pb.OK
        for peer in peers:
            wait_for(lambda p=peer: not p.call("ping").load.draining, 10 * SLOW, "resumed")
        work = [peer.request("generate_keys", algorithm=pb.ML_KEM_1024, count=8)
                for peer in peers]
        for peer, request in zip(peers, work):
            peer.send(request)
        daemon.signal(signal.SIGTERM)
        for peer, request in zip(peers, work):
            answer = peer.recv()
            assert answer.id == request.id and answer.status in (pb.OK, pb.DRAINING)
            peer.close()
        assert daemon.process.wait(30 * SLOW) == 0
        daemon.ended_on_purpose = True
