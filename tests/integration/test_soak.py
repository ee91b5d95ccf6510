# SPDX-License-Identifier: Apache-2.0
"""Everything at once for a while: mlkemctl exchanges keys while the Python peer hammers
the daemon with good and bad input. No sanitizer report, no leak, memory flat."""

import os
import random
import struct
import subprocess
import threading
import time

import pytest

from daemon import SANITIZER, SLOW, Daemon
from peer import ALGORITHMS, MAX_FRAME, Closed, Peer, exchange, frame, item, name_of, pb
from programs import CTL

SECONDS = {"quick": 3, "default": 10, "long": 60}
if SANITIZER == "address":
    SECONDS["default"] = 60


class Hammer(threading.Thread):
    """Random requests on random connections, a tenth of them broken."""

    def __init__(self, path, seed):
        super().__init__(daemon=True)
        self.path, self.choose = path, random.Random(seed)
        self.over, self.error, self.n_done, self.n_broken = False, None, 0, 0

    def run(self):
        try:
            while not self.over:
                with Peer(self.path) as peer:
                    for _ in range(self.choose.randrange(1, 60)):
                        if self.over or not self.step(peer):
                            break
        except Exception as error:  # noqa: BLE001 (told by the test)
            self.error = error

    def step(self, peer):
        kind = self.choose.random()
        algorithm = self.choose.choice(ALGORITHMS)
        if kind < 0.05:
            self.n_broken += 1
            peer.send_raw(self.choose.choice([
                bytes(4), struct.pack(">I", MAX_FRAME + 1),
                frame(self.choose.randbytes(self.choose.randrange(1, 300)))]))
            return False
        if kind < 0.1:
            peer.send_raw(frame(peer.request("generate_keys", algorithm=algorithm,
                                             count=64))[:self.choose.randrange(1, 9)])
            return False
        count = self.choose.choice([1, 1, 2, 8, 9, 64])
        keys = peer.keygen(algorithm, count, export=self.choose.random() < 0.2)
        shares = [k.share for k in keys]
        if kind < 0.3:
            shares[self.choose.randrange(count)] = self.choose.randbytes(
                self.choose.choice([0, 31, len(shares[0])]))
        answer = peer.call("encapsulate", algorithm=algorithm, shares=shares)
        assert answer.status in (pb.OK, pb.RESOURCE_EXHAUSTED, pb.DEADLINE_EXCEEDED)
        items = [item(s.ciphertext, private_key=k.private_key) if k.private_key
                 else item(s.ciphertext, handle=k.handle)
                 for k, s in zip(keys, answer.encapsulated.items)]
        got = peer.call("decapsulate", algorithm=algorithm, items=items)
        for one, other in zip(answer.encapsulated.items, got.decapsulated.items):
            if one.status == other.status == pb.OK:
                assert one.secret == other.secret
                self.n_done += 1
        return True


def ctl_exchange(path, directory, name, n):
    """keygen keeps its connection and waits for the peer's ciphertext share on stdin."""
    alice_secret = str(directory / f"a{n}")
    bob_secret = str(directory / f"b{n}")
    alice = subprocess.Popen(
        [CTL, "keygen", name, "--socket", path, "--secret-out", alice_secret],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    share = alice.stdout.readline().split()[1]
    bob = subprocess.run(
        [CTL, "encaps", name, "--socket", path, "--secret-out", bob_secret],
        input=share + "\n", capture_output=True, text=True, timeout=60 * SLOW)
    assert bob.returncode == 0, bob.stderr
    ciphertext = next(line.split()[1] for line in bob.stdout.splitlines()
                      if line.startswith("ciphertext: "))
    out, err = alice.communicate(ciphertext + "\n", timeout=60 * SLOW)
    assert alice.returncode == 0, (out, err)
    with open(alice_secret, "rb") as one, open(bob_secret, "rb") as other:
        a, b = one.read(), other.read()
    assert a == b and len(a) >= 32
    os.unlink(alice_secret)
    os.unlink(bob_secret)


def test_soak(tmp_path, length):
    seconds = SECONDS[length]
    seed = int(os.environ.get("MLKEMD_SEED") or random.SystemRandom().getrandbits(32))
    print(f"seed {seed}, {seconds} s")
    with Daemon({"kem.export-private-keys": "yes"}) as daemon:
        exchange(daemon.path, count=64)
        daemon.wait_pool()
        hammers = [Hammer(daemon.path, seed + n) for n in range(3)]
        for hammer in hammers:
            hammer.start()
        rss, n = [], 0
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            ctl_exchange(daemon.path, tmp_path, name_of(ALGORITHMS[n % 4]), n)
            n += 1
            rss.append(daemon.rss_kib())
        for hammer in hammers:
            hammer.over = True
        for hammer in hammers:
            hammer.join(60)
            assert not hammer.error, hammer.error
        done = sum(h.n_done for h in hammers)
        broken = sum(h.n_broken for h in hammers)
        print(f"{n} exchanges by mlkemctl, {done} by the peer, {broken} broken frames; "
              f"RSS {rss[0]} .. {rss[-1]} KiB")
        assert n >= 1 and done >= 100 // SLOW and broken >= 1
        # Flat: the last third is not above the middle third. ASan's quarantine fills up
        # to its limit first, and small allocations come and go.
        third = max(1, len(rss) // 3)
        middle, last = max(rss[third:2 * third] or rss), max(rss[-third:])
        assert last - middle < (4096 if not SANITIZER else 32 * 1024), rss[::third]
        exchange(daemon.path)
        with daemon.peer() as peer:
            with pytest.raises(Closed):
                peer.send_raw(bytes(4))
                peer.recv()
