# SPDX-License-Identifier: Apache-2.0
"""Clients that keep account of what they are given, nuisances beside them, and a relay
that loses an answer. What must hold whatever happens to the daemon:

- a request that was sent whole on a greeted connection gets exactly one answer, or the
  connection ends because the daemon did;
- no share, handle or secret is ever handed out twice;
- both sides of an exchange have the same secret, and a handle is used once.
"""

import hashlib
import random
import socket
import struct
import threading
import time

from daemon import SLOW
from peer import ALGORITHMS, MAX_FRAME, Closed, Peer, frame, item, pb

REFUSALS = (pb.RESOURCE_EXHAUSTED, pb.DEADLINE_EXCEEDED, pb.DRAINING)


class Ledger:
    """Everything that was handed out, by any daemon to any client."""

    def __init__(self):
        self.lock = threading.Lock()
        self.seen, self.errors = set(), []
        self.n = {"exchanges": 0, "answers": 0, "refused": 0, "ended": 0}

    def count(self, what, n=1):
        with self.lock:
            self.n[what] += n

    def blame(self, text):
        with self.lock:
            self.errors.append(text)

    def first_time(self, what, value):
        key = what.encode() + hashlib.sha256(value).digest()
        with self.lock:
            if key in self.seen:
                self.errors.append(f"a {what} was handed out twice")
            self.seen.add(key)


class Client(threading.Thread):
    """Exchanges keys until it is told that it is over. epoch() numbers the daemons that
    have lived: a connection may only end with its daemon."""

    def __init__(self, path, ledger, seed, epoch=lambda: 0, timeout=60 * SLOW):
        super().__init__(daemon=True)
        self.path, self.ledger, self.epoch = path, ledger, epoch
        self.choose, self.timeout = random.Random(seed), timeout
        self.over = False

    def run(self):
        try:
            while not self.over:
                self.session()
        except Exception as error:  # noqa: BLE001 (told by the test)
            self.ledger.blame(f"{type(error).__name__}: {error}")

    def connected(self):
        """A greeted connection, or None: who is not greeted has been promised nothing."""
        peer = None
        try:
            peer = Peer(self.path, hello=False, timeout=self.timeout)
            answer = peer.hello("chaos")
            if answer.status == pb.OK:
                return peer
            assert answer.status in REFUSALS, answer
        except (OSError, Closed):
            time.sleep(0.02)
        if peer:
            peer.close()
        return None

    def session(self):
        epoch = self.epoch()
        peer = self.connected()
        if not peer:
            return
        try:
            for _ in range(self.choose.randrange(1, 20)):
                if self.over:
                    break
                if self.choose.random() < 0.05:
                    self.vanish(peer)
                    break
                self.exchange(peer)
        except Closed:
            self.ledger.count("ended")
            if self.epoch() == epoch:
                self.ledger.blame("a living daemon ended a connection")
        except socket.timeout:
            self.ledger.blame("a request got no answer")
        finally:
            peer.close()

    def vanish(self, peer):
        for _ in range(self.choose.randrange(1, 5)):
            peer.send(peer.request("generate_keys", algorithm=pb.ML_KEM_768, count=8))

    def ask(self, peer, requests):
        """Sends all of them, then takes one answer for each: {id: answer}."""
        waiting, answers = {r.id for r in requests}, {}
        called_off = {r.cancel.id for r in requests if r.HasField("cancel")}
        peer.send_raw(b"".join(map(frame, requests)))
        if self.choose.random() < 0.05:
            time.sleep(0.2)  # one that reads late
        while waiting:
            answer = peer.recv()
            if answer.id not in waiting:
                self.ledger.blame(f"answer {answer.id} was not asked for, or came twice")
                raise Closed()
            waiting.remove(answer.id)
            answers[answer.id] = answer
            if answer.status != pb.OK:
                assert answer.status in REFUSALS or (
                    answer.status == pb.CANCELLED and answer.id in called_off), answer
                self.ledger.count("refused")
        self.ledger.count("answers", len(answers))
        return answers

    def exchange(self, peer):
        algorithm = self.choose.choice(ALGORITHMS)
        timeout_us = self.choose.choice([0, 0, 0, 20_000])
        keys = []
        requests = [peer.request("generate_keys", algorithm=algorithm,
                                 timeout_us=timeout_us, count=self.choose.randrange(1, 9))
                    for _ in range(self.choose.randrange(1, 5))]
        for answer in self.ask(peer, requests).values():
            keys += [k for k in answer.keys.items if k.status == pb.OK]
        for key in keys:
            self.ledger.first_time("share", key.share)
            self.ledger.first_time("handle", key.handle)
        for key in keys:
            self.agree(peer, algorithm, key)

    def agree(self, peer, algorithm, key):
        request = peer.request("encapsulate", algorithm=algorithm, shares=[key.share])
        answer = self.ask(peer, [request])[request.id]
        sent = answer.encapsulated.items[0] if answer.status == pb.OK else None
        if not sent or sent.status != pb.OK:
            return
        self.ledger.first_time("ciphertext", sent.ciphertext)
        self.ledger.first_time("secret", sent.secret)
        # Twice: whichever is first in the batch spends the handle. Sometimes it is given
        # back in between, or the second try is called off.
        decaps = [peer.request("decapsulate", algorithm=algorithm, items=[
            item(sent.ciphertext, handle=key.handle)]) for _ in range(2)]
        between = []
        if self.choose.random() < 0.2:
            between = [peer.request("release", handles=[key.handle] * 2)]
        elif self.choose.random() < 0.2:
            between = [peer.request("cancel", id=decaps[1].id)]
        got = self.ask(peer, [decaps[0], *between, decaps[1]])
        answers = [got[r.id].decapsulated.items[0] for r in decaps
                   if got[r.id].status == pb.OK]
        good = [a for a in answers if a.status == pb.OK]
        released = sum(got[r.id].released.released for r in between)
        if len(good) + released > 1:
            self.ledger.blame("a handle was used twice")
        if [a.status for a in answers] == [pb.KEY_NOT_FOUND] * 2 and not released:
            self.ledger.blame("a living key was not found")
        for one in good:
            self.ledger.count("exchanges")
            if one.secret != sent.secret:
                self.ledger.blame("the secrets differ")


class Nuisance(threading.Thread):
    """Garbage, frames that never end, silence, floods; some of it at the same time."""

    def __init__(self, path, seed):
        super().__init__(daemon=True)
        self.path, self.choose = path, random.Random(seed)
        self.over, self.held, self.n = False, [], 0

    def run(self):
        while not self.over:
            try:
                self.step()
            except (OSError, Closed, AssertionError):
                time.sleep(0.02)
        for peer in self.held:
            peer.close()

    def step(self):
        self.n += 1
        peer = Peer(self.path, hello=self.choose.random() < 0.7, timeout=1.0)
        self.held.append(peer)
        if len(self.held) > 40:
            self.held.pop(self.choose.randrange(len(self.held))).close()
        kind = self.choose.randrange(5)
        if kind == 0:
            peer.send_raw(frame(self.choose.randbytes(self.choose.randrange(1, 400))))
        elif kind == 1:
            peer.send_raw(struct.pack(">I", MAX_FRAME) + bytes(100))
        elif kind == 2:
            peer.send_raw(struct.pack(">I", self.choose.getrandbits(32)) + bytes(64))
        elif kind == 3:
            peer.socket.setblocking(False)
            peer.socket.send(b"".join(frame(peer.request(
                "generate_keys", algorithm=pb.ML_KEM_1024, count=16)) for _ in range(20)))
        else:
            peer.socket.shutdown(socket.SHUT_WR)
        time.sleep(0.01)


class LossyRelay(threading.Thread):
    """Between one client and the daemon: the nth answer does not arrive."""

    def __init__(self, path, target, nth):
        super().__init__(daemon=True)
        self.path, self.target, self.nth = path, target, nth
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(8)

    def run(self):
        client = self.listener.accept()[0]
        server = Peer(self.target, hello=False)
        threading.Thread(target=self.forward, args=(client, server), daemon=True).start()
        try:
            n = 0
            while True:
                answer = server.recv()
                n += 1
                if n != self.nth:
                    client.sendall(frame(answer))
        except (OSError, Closed):
            client.close()

    def forward(self, client, server):
        try:
            while data := client.recv(65536):
                server.send_raw(data)
        except (OSError, Closed):
            pass
        server.close()
