# SPDX-License-Identifier: Apache-2.0
"""No secret outlives its use: the memory of daemon and client is searched for them.

Only in a build with -Dtest-hooks=true. There MLKEMD_TEST_RANDOM=text makes block n of
all randomness SHA-256(text || be64(n)), so that every d, z, m and X25519 key is known
here, and with them what FIPS 203 derives: sigma, r, K and the PRF's outputs. The fault
no-memfd-secret keeps the arena readable for /proc/PID/mem.

Each planted fault leaves one wipe out and has to be seen by the same search.
"""

import hashlib
import os
import re
import socket
import struct
import subprocess
import time

import pytest

from daemon import SLOW, Daemon, wait_for
from peer import ALGORITHMS, MAX_ITEMS, SIZES, frame, item, name_of, pb
from programs import MEMSCAN, ClientLoop

pytestmark = pytest.mark.skipif(os.environ.get("MLKEMD_TEST_HOOKS") != "1",
                                reason="needs a build with -Dtest-hooks=true")
TEXT = "wiping"
N_BLOCKS = 1200
WINDOW = 16
# k, eta1, eta2 (FIPS 203 table 2)
SHAPES = {2: (3, 2), 3: (2, 2), 4: (2, 2)}


def block(n, text=TEXT):
    return hashlib.sha256(text.encode() + struct.pack(">Q", n)).digest()


def windows(data):
    return [data[at:at + WINDOW] for at in range(0, len(data) - WINDOW + 1, WINDOW)]


class Patterns:
    """Named 16-byte strings to look for."""

    def __init__(self):
        self.names, self.lines = [], []

    def add(self, name, data):
        for n, window in enumerate(windows(data)):
            # A window of one value tells nothing: memory is full of those.
            if len(set(window)) > 4:
                self.names.append(f"{name}[{n * WINDOW}:]")
                self.lines.append(window.hex())

    def add_prf(self, name, key, counts):
        for b, eta in counts:
            out = hashlib.shake_256(key + bytes([b])).digest(64 * eta)
            self.add(f"{name} PRF {b}", out[:2 * WINDOW])

    def scan(self, pid):
        got = subprocess.run([MEMSCAN, str(pid)], input="\n".join(self.lines) + "\n",
                             capture_output=True, text=True, timeout=300)
        assert got.returncode == 0, got.stderr
        *hits, last = got.stdout.splitlines()
        scanned = int(last.split()[1])
        assert scanned > 1 << 20, last
        out = []
        for hit in hits:
            line, address, where = hit.split(maxsplit=2)
            out.append((self.names[int(line)], address, where))
        return out


def known_blocks(n_blocks=N_BLOCKS):
    """The random blocks as such: d, z, m, X25519 private keys."""
    out = Patterns()
    for n in range(n_blocks):
        out.add(f"block {n}", block(n))
    return out


def known(shares=(), n_blocks=N_BLOCKS):
    """Also what is derived: of each block as d of each set, and as m for each share."""
    out = known_blocks(n_blocks)
    for n in range(n_blocks):
        one = block(n)
        for k, (eta1, eta2) in SHAPES.items():
            sigma = hashlib.sha3_512(one + bytes([k])).digest()[32:]
            out.add(f"sigma of {n} k={k}", sigma)
            out.add_prf(f"sigma of {n} k={k}", sigma, [(b, eta1) for b in range(2 * k)])
    for number, (k, ek) in enumerate(shares):
        eta1, eta2 = SHAPES[k]
        h = hashlib.sha3_256(ek).digest()
        for n in range(n_blocks):
            both = hashlib.sha3_512(block(n) + h).digest()
            out.add(f"K of {n} to share {number}", both[:32])
            out.add(f"r of {n} to share {number}", both[32:])
            out.add_prf(f"r of {n} to share {number}", both[32:], [
                (b, eta1) for b in range(k)] + [(b, eta2) for b in range(k, 2 * k + 1)])
    return out


def ek_of(algorithm, share):
    k = {pb.ML_KEM_512: 2, pb.ML_KEM_1024: 4}.get(algorithm, 3)
    return k, share[:384 * k + 32]


def hooked(settings=None, faults="", pool=False):
    base = {"kem.export-private-keys": "yes", "daemon.shards": "1",
            "pool.enabled": "yes" if pool else "no"}
    base.update(settings or {})
    names = "no-memfd-secret" + ("," + faults if faults else "")
    return Daemon(base, env={"MLKEMD_TEST_RANDOM": TEXT, "MLKEMD_FAULT": names})


def settle(daemon):
    """Until the shard has ended the turn in which it answered."""
    for _ in range(3):
        daemon.stats()
    time.sleep(0.05)
    wait_for(lambda: daemon.thread_states() <= {"S"}, 60, "every thread sleeps")


class Session:
    """Does things with a daemon and remembers what must not be found afterwards."""

    def __init__(self, daemon):
        self.daemon, self.secrets, self.shares = daemon, [], []

    def keep(self, name, data):
        if data:
            self.secrets.append((name, data))

    def key(self, peer, algorithm, export=True):
        (key,) = peer.keygen(algorithm, export=export)
        self.shares.append(ek_of(algorithm, key.share))
        if export:
            k = {pb.ML_KEM_512: 2, pb.ML_KEM_1024: 4}.get(algorithm, 3)
            self.keep("s of an exported key", key.private_key[:384 * k])
            self.keep("z and x25519 of an exported key", key.private_key[768 * k + 64:])
        return key

    def hits(self, pid=None):
        settle(self.daemon)
        patterns = known(self.shares[:6])
        for name, data in self.secrets:
            patterns.add(name, data)
        return patterns.scan(pid or self.daemon.pid)

    def clean(self, pid=None):
        found = self.hits(pid)
        assert not found, found[:12]


def do_exchange(session, algorithm):
    with session.daemon.peer() as peer:
        key = session.key(peer, algorithm, export=False)
        (sent,) = peer.encaps(algorithm, [key.share])
        session.keep("secret", sent.secret)
        peer.decaps(algorithm, [item(sent.ciphertext, handle=key.handle)])


def do_exported(session, algorithm):
    with session.daemon.peer() as peer:
        key = session.key(peer, algorithm)
        (sent,) = peer.encaps(algorithm, [key.share])
        session.keep("secret", sent.secret)
        peer.decaps(algorithm, [item(sent.ciphertext, private_key=key.private_key)])


def do_seed(session, algorithm):
    seed = bytes(hashlib.shake_256(b"seed").digest(SIZES[algorithm][4]))
    session.keep("seed", seed)
    k = ek_of(algorithm, b"")[0]
    session.keep("sigma of the seed",
                 hashlib.sha3_512(seed[:32] + bytes([k])).digest()[32:])
    ciphertext = hashlib.shake_256(b"ct").digest(SIZES[algorithm][1])
    with session.daemon.peer() as peer:
        (secret,) = peer.decaps(algorithm, [item(ciphertext, private_key=seed)])
    session.keep("secret", secret)


def do_batch(session, algorithm):
    with session.daemon.peer() as peer:
        keys = peer.keygen(algorithm, MAX_ITEMS)
        sent = peer.encaps(algorithm, [k.share for k in keys])
        got = peer.decaps(algorithm, [item(s.ciphertext, handle=k.handle)
                                      for k, s in zip(keys, sent)])
        for n, secret in enumerate(got):
            session.keep(f"secret {n}", secret)


def do_kdf(session, algorithm):
    kdf = pb.Kdf(hash=pb.HKDF_SHA384, salt=b"salt", info=b"info", length=255)
    with session.daemon.peer() as peer:
        key = session.key(peer, algorithm)
        (sent,) = peer.encaps(algorithm, [key.share], kdf=kdf)
        it = item(sent.ciphertext, private_key=key.private_key)
        session.keep("derived", sent.secret)
        peer.decaps(algorithm, [it], kdf=kdf)
        (raw,) = peer.decaps(algorithm, [it])
        session.keep("raw secret", raw)


def do_rejection(session, algorithm):
    with session.daemon.peer() as peer:
        key = session.key(peer, algorithm)
        (sent,) = peer.encaps(algorithm, [key.share])
        session.keep("secret", sent.secret)
        bad = bytes([sent.ciphertext[0] ^ 1]) + sent.ciphertext[1:]
        (secret,) = peer.decaps(algorithm, [item(bad, private_key=key.private_key)])
        session.keep("rejection secret", secret)


def do_failures(session, algorithm):
    """Each refusal: lengths, hash check, modulus check, another algorithm, a deadline."""
    with session.daemon.peer() as peer:
        key = session.key(peer, algorithm)
        (sent,) = peer.encaps(algorithm, [key.share])
        session.keep("secret", sent.secret)
        k = ek_of(algorithm, b"")[0]
        bad = bytearray(key.private_key)
        bad[768 * k + 40] ^= 1
        other = pb.ML_KEM_512 if algorithm != pb.ML_KEM_512 else pb.ML_KEM_768
        for use, it in (
                (algorithm, item(sent.ciphertext, private_key=bytes(bad))),
                (algorithm, item(sent.ciphertext[1:], private_key=key.private_key)),
                (algorithm, item(sent.ciphertext, private_key=key.private_key[1:])),
                (other, item(sent.ciphertext, private_key=key.private_key))):
            (got,) = peer.decaps_items(use, [it])
            assert got.status != pb.OK
        peer.call("decapsulate", timeout_us=1, algorithm=algorithm, items=[
            item(sent.ciphertext, private_key=key.private_key)] * MAX_ITEMS)
        peer.call("generate_keys", timeout_us=1, algorithm=algorithm, count=MAX_ITEMS)
        # Two operations, of which one carries a key: refused as a whole.
        request = peer.request("decapsulate", algorithm=algorithm, items=[
            item(sent.ciphertext, private_key=key.private_key)])
        peer.send_raw(frame(request.SerializeToString() +
                            peer.request("ping").SerializeToString()))
        assert peer.recv().status == pb.INVALID_REQUEST


def do_broken_frame(session, algorithm):
    """A private key in a frame that is none, and one in a frame that never ends."""
    with session.daemon.peer() as peer:
        key = session.key(peer, algorithm)
        request = peer.request("decapsulate", algorithm=algorithm, items=[
            item(bytes(SIZES[algorithm][1]), private_key=key.private_key)] * 3)
        peer.send_raw(frame(request.SerializeToString() + b"\xff"))
        assert peer.is_closed()
    with session.daemon.peer() as peer:
        peer.send_raw(frame(request)[:-5])
        time.sleep(0.05)


def do_disconnect(session, algorithm):
    """Gone with a live handle, with answers unread, with a request in the batch."""
    with session.daemon.peer() as peer:
        session.key(peer, algorithm, export=False)
    for _ in range(3):
        peer = session.daemon.peer()
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        requests = [peer.request("generate_keys", algorithm=algorithm, count=4,
                                 export_private=True) for _ in range(8)]
        peer.send_raw(b"".join(map(frame, requests)))
        time.sleep(0.02)
        peer.close()
    wait_for(lambda: session.daemon.stats()["connections"] <= 1, 5 * SLOW, "gone")


def do_release(session, algorithm):
    with session.daemon.peer() as peer:
        key = session.key(peer, algorithm, export=False)
        assert peer.call("release", handles=[key.handle]).released.released == 1


def do_expiry(session, algorithm):
    with session.daemon.peer() as peer:
        session.key(peer, algorithm, export=False)
        wait_for(lambda: session.daemon.stats()["handles"] == 0, 10 * SLOW, "expiry")


ACTIONS = [do_exchange, do_exported, do_seed, do_batch, do_kdf, do_rejection, do_failures,
           do_broken_frame, do_disconnect, do_release, do_expiry]
ALL = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=name_of)


@pytest.fixture(scope="module")
def wiper():
    with hooked({"limits.handle-lifetime": "1s"}) as it:
        yield it


def test_the_search_can_see():
    """While a handle lives its z lies in the arena, and the search finds it there; when
    it is used, it is gone. Without this nothing below would mean anything."""
    with hooked() as daemon, daemon.peer() as peer:
        assert daemon.info().secret_memory == "mlock"
        patterns = known_blocks()
        assert not patterns.scan(daemon.pid)
        (key,) = peer.keygen(pb.X25519MLKEM768)
        settle(daemon)
        found = {re.match(r"block (\d+)", name).group(1)
                 for name, _, _ in patterns.scan(daemon.pid)}
        assert len(found) == 3, "z, the X25519 key, and the handle"
        (sent,) = peer.encaps(pb.X25519MLKEM768, [key.share])
        peer.decaps(pb.X25519MLKEM768, [item(sent.ciphertext, handle=key.handle)])
        settle(daemon)
        assert not patterns.scan(daemon.pid)


def test_the_stream_is_known():
    """Exported keys are made of the blocks that this file expects."""
    with hooked() as daemon, daemon.peer() as peer:
        blocks = {block(n): n for n in range(N_BLOCKS)}
        for algorithm in ALGORITHMS:
            (key,) = peer.keygen(algorithm, export=True)
            k, ek = ek_of(algorithm, key.share)
            n = blocks[key.private_key[768 * k + 64:768 * k + 96]]
            # z is block n and d the one before: rho, the end of ek, follows from d.
            rho = hashlib.sha3_512(block(n - 1) + bytes([k])).digest()[:32]
            assert ek[384 * k:] == rho
            if algorithm == pb.X25519MLKEM768:
                assert key.private_key[-32:] in blocks


@ALL
@pytest.mark.parametrize("action", ACTIONS, ids=lambda a: a.__name__[3:])
def test_nothing_is_left(wiper, action, algorithm):
    session = Session(wiper)
    action(session, algorithm)
    session.clean()


def test_nothing_is_left_on_a_live_connection(wiper):
    """Not only after a disconnect: the connection stays open while it is looked for."""
    session = Session(wiper)
    with wiper.peer() as peer:
        for algorithm in ALGORITHMS:
            key = session.key(peer, algorithm)
            (sent,) = peer.encaps(algorithm, [key.share])
            peer.decaps(algorithm, [item(sent.ciphertext, private_key=key.private_key)])
            session.keep("secret", sent.secret)
        session.clean()


X25519_P = 2**255 - 19


def x25519_public(private):
    """RFC 7748 section 5, for small numbers of keys."""
    k = int.from_bytes(private, "little")
    k = (k & ~7 & (1 << 255) - 1) | 1 << 254
    x1, x2, z2, x3, z3, swap = 9, 1, 0, 9, 1, 0
    for t in range(254, -1, -1):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b = (x2 + z2) % X25519_P, (x2 - z2) % X25519_P
        c, d = (x3 + z3) % X25519_P, (x3 - z3) % X25519_P
        da, cb = d * a % X25519_P, c * b % X25519_P
        x3, z3 = (da + cb)**2 % X25519_P, x1 * (da - cb)**2 % X25519_P
        aa, bb = a * a % X25519_P, b * b % X25519_P
        x2, z2 = aa * bb % X25519_P, (aa - bb) * (aa + 121665 * (aa - bb)) % X25519_P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, X25519_P - 2, X25519_P) % X25519_P).to_bytes(32, "little")


def from_the_pool(faults=""):
    """Takes a pair of each kind and an ephemeral out of a small pool; returns what is
    found of them afterwards. What is still in the pool is not looked for."""
    settings = {"pool.hybrid": "8", "pool.mlkem768": "8", "pool.x25519": "8",
                "pool.low-water": "0%"}
    with hooked(settings, faults, pool=True) as daemon:
        for kind in ("pool_hybrid", "pool_mlkem768", "pool_x25519"):
            daemon.wait_pool(kind, 8)
        session = Session(daemon)
        with daemon.peer() as peer:
            for algorithm in (pb.X25519MLKEM768, pb.ML_KEM_768):
                key = session.key(peer, algorithm)
            (key,) = peer.keygen(pb.X25519MLKEM768)
            (sent,) = peer.encaps(pb.X25519MLKEM768, [key.share])
            peer.decaps(pb.X25519MLKEM768, [item(sent.ciphertext, handle=key.handle)])
            taken = daemon.stats()["pool_taken_total"]
            assert taken >= 4, "the pool was not used"
            publics = {x25519_public(block(n)): n for n in range(160)}
            ephemeral = publics[sent.ciphertext[-32:]]
            session.keep("ephemeral", block(ephemeral))
        settle(daemon)
        patterns = Patterns()
        for name, data in session.secrets:
            patterns.add(name, data)
        return patterns.scan(daemon.pid)


def test_what_left_the_pool_is_gone():
    found = from_the_pool()
    assert not found, found[:12]


def test_x25519_in_python():
    """The first iteration of RFC 7748 section 5.2, so that the right key is looked for."""
    nine = (9).to_bytes(32, "little")
    assert x25519_public(nine).hex() == (
        "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079")


@pytest.mark.parametrize("algorithm", [pb.X25519MLKEM768, pb.ML_KEM_1024], ids=name_of)
@pytest.mark.parametrize("route", ["require", "local"])
def test_the_client_keeps_nothing(wiper, route, algorithm):
    found = in_the_client(wiper, route, algorithm)
    if route == "local" and algorithm == pb.X25519MLKEM768:
        found = outside_the_store(found)
    assert not found, found[:12]


def outside_the_store(found):
    """Without the X25519 ephemerals that wait for the next operation: at most 16 pairs of
    64 bytes, side by side, each in one place only."""
    places = {}
    for name, address, _ in found:
        match = re.fullmatch(r"client's block (\d+)\[(\d+):\]", name)
        if match:
            start = int(address, 16) - int(match[2])
            places.setdefault(match[1], set()).add(start)
    starts = sorted(start for several in places.values() for start in several)
    if len(starts) == len(places) <= 16 and starts and starts[-1] - starts[0] < 16 * 64:
        return [one for one in found if not one[0].startswith("client's block")]
    return found


def test_the_store_hides_nothing_else():
    def at(number, address):
        return f"client's block {number}[0:]", f"{address:x}", "anonymous"

    store = [at(n, 0x1000 + 64 * n) for n in range(16)]
    assert outside_the_store(store) == []
    for other in at(3, 0x1800), at(17, 0x1000 + 64 * 16), at(17, 0x9000):
        assert outside_the_store(store + [other]) == store + [other]
    secret = "secret 1[0:]", "1040", "anonymous"
    assert outside_the_store(store + [secret]) == [secret]


def in_the_client(daemon, route, algorithm, faults=""):
    env = {"MLKEMD_TEST_RANDOM": "client", "MLKEMD_FAULT": "no-memfd-secret," + faults}
    with ClientLoop(daemon.path, route, 5_000_000, env=env) as client:
        patterns = Patterns()
        assert client("loop 5 " + name_of(algorithm)).startswith("done 5 0 0")
        for n in range(3):
            secret = bytes.fromhex(client(f"secret {name_of(algorithm)}"))
            patterns.add(f"secret {n}", secret[:SIZES[algorithm][2]])
        for n in range(300):
            patterns.add(f"client's block {n}", block(n, "client"))
        return patterns.scan(client.pid)


FAULTS = {
    "kem-no-wipe-work": do_exchange, "kem-no-wipe-front": do_exchange,
    "kem-no-wipe-libcrypto-stack": do_exchange, "codec-no-wipe": do_exported,
    "keytable-no-wipe": do_exchange, "conn-no-wipe": do_exported,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted(fault):
    """With this wipe left out the same search finds something."""
    with hooked(faults=fault) as daemon:
        found = []
        for algorithm in (pb.ML_KEM_768, pb.X25519MLKEM768):
            session = Session(daemon)
            FAULTS[fault](session, algorithm)
            found += session.hits()
    print(f"{fault}: {len(found)} hits, such as {found[:2]}")
    assert found, f"{fault} was not seen"


@pytest.mark.parametrize("fault", ["keypool-no-wipe"])
def test_planted_in_the_pool(fault):
    assert from_the_pool(fault), f"{fault} was not seen"


@pytest.mark.parametrize("fault", ["client-no-wipe"])
def test_planted_in_the_client(wiper, fault):
    assert in_the_client(wiper, "require", pb.X25519MLKEM768, fault)
