# SPDX-License-Identifier: Apache-2.0
"""The published vectors that the wire can take, through the daemon; fresh rounds.

Randomness is the daemon's own, so key generation and encapsulation are not reachable:
their vectors run against kem/ directly. Here: decapsulation with a given key (expanded
or seed), checks of keys and shares, the hybrid's finishing side, HKDF. The wire takes a
key and a ciphertext of one algorithm; a vector's file is found by MLKEMD_VECTORS.
"""

import json
import os
import pathlib
import random
import subprocess
import tempfile

import pytest

from daemon import MLKEMD, SANITIZER, Daemon
from peer import ALGORITHMS, MAX_ITEMS, hkdf, item, name_of, pb

VECTORS = pathlib.Path(os.environ.get("MLKEMD_VECTORS") or pathlib.Path(
    os.environ["MLKEMD_SOURCE"]) / ".." / "shared" / "vectors")
HAVE = VECTORS.is_dir()
SETS = {"ML-KEM-512": pb.ML_KEM_512, "ML-KEM-768": pb.ML_KEM_768,
        "ML-KEM-1024": pb.ML_KEM_1024}
needs_vectors = pytest.mark.skipif(
    not HAVE, reason="the vector files are not here (MLKEMD_VECTORS)")


def load(name):
    return json.loads((VECTORS / name).read_text()) if HAVE else None


def groups(name, **wanted):
    for group in (load(name) or {"testGroups": []})["testGroups"]:
        if all(group.get(key) == value for key, value in wanted.items()):
            for test in group["tests"]:
                yield group, test


def decapsulations():
    """(name, algorithm, private key, ciphertext, secret or None)"""
    for revision in ("FIPS203", "FIPS203-tr1"):
        name = f"acvp/ML-KEM-encapDecap-{revision}/internalProjection.json"
        for function in ("encapsulation", "decapsulation"):
            for group, t in groups(name, function=function):
                which = f"{revision}-{t['tcId']}"
                if group.get("keyFormat") == "seed":
                    yield (f"acvp-seed-{which}", group, t["d"] + t["z"], t["c"], t["k"])
                if t.get("dk"):
                    yield (f"acvp-{which}", group, t["dk"], t["c"], t["k"])
    for bits in (768, 1024):
        for group, t in groups(f"wycheproof/mlkem_{bits}_test.json"):
            yield (f"wycheproof-{bits}-{t['tcId']}", group, t["seed"], t["c"],
                   t["K"] if t["result"] == "valid" else None)
    for group, t in groups("wycheproof/mlkem_768_semi_expanded_decaps_test.json"):
        yield (f"wycheproof-semi-{t['tcId']}", group, t["dk"], t["c"],
               t.get("K") if t["result"] == "valid" else None)
    if HAVE:
        fields = dict(line.split(" = ") for line in (
            VECTORS / "cctv/strcmp/ML-KEM-768.txt").read_text().splitlines())
        yield ("cctv-strcmp", {"parameterSet": "ML-KEM-768"}, fields["dk"], fields["c"],
               fields["K"])


def case(name, group, key, ciphertext, secret):
    return pytest.param(SETS[group["parameterSet"]], bytes.fromhex(key),
                        bytes.fromhex(ciphertext),
                        bytes.fromhex(secret) if secret else None, id=name)


DECAPS = [case(*d) for d in decapsulations()] or [
    pytest.param(0, b"", b"", b"", id="all")]


@pytest.fixture(scope="module")
def peer(daemon):
    with daemon.peer() as it:
        yield it


@needs_vectors
@pytest.mark.parametrize("algorithm,key,ciphertext,secret", DECAPS)
def test_decapsulation(peer, algorithm, key, ciphertext, secret):
    (got,) = peer.decaps_items(algorithm, [item(ciphertext, private_key=key)])
    if secret is None:
        assert got.status in (pb.BAD_LENGTH, pb.BAD_KEY, pb.ALGORITHM_MISMATCH)
        assert not got.secret
    else:
        assert (got.status, got.secret) == (pb.OK, secret)


@needs_vectors
@pytest.mark.parametrize("size", [2, 7, 8, 9, 33, MAX_ITEMS])
def test_decapsulation_in_batches(peer, size):
    """The same in frames of many; what is refused stands among what is not."""
    for algorithm in SETS.values():
        cases = [c.values for c in DECAPS if c.values[0] == algorithm]
        for at in range(0, len(cases), size):
            part = cases[at:at + size]
            got = peer.decaps_items(algorithm, [
                item(ciphertext, private_key=key) for _, key, ciphertext, _ in part])
            for (_, _, _, secret), one in zip(part, got):
                assert (one.status == pb.OK) == (secret is not None)
                assert one.secret == (secret or b"")


def key_checks(function):
    for revision in ("FIPS203", "FIPS203-tr1"):
        name = f"acvp/ML-KEM-encapDecap-{revision}/internalProjection.json"
        for group, t in groups(name, function=function):
            yield pytest.param(SETS[group["parameterSet"]], bytes.fromhex(
                t["ek" if function.startswith("encaps") else "dk"]), t["testPassed"],
                id=f"acvp-{revision}-{t['tcId']}-{t['reason'].replace(' ', '-')}")


def share_checks():
    yield from key_checks("encapsulationKeyCheck")
    for bits in (512, 768):
        for group, t in groups(f"wycheproof/mlkem_{bits}_encaps_test.json"):
            yield pytest.param(SETS[group["parameterSet"]], bytes.fromhex(t["ek"]),
                               t["result"] == "valid",
                               id=f"wycheproof-{bits}-{t['tcId']}")


NONE = [pytest.param(0, b"", True, id="all")]


@needs_vectors
@pytest.mark.parametrize("algorithm,key,good",
                         list(key_checks("decapsulationKeyCheck")) or NONE)
def test_key_check(peer, algorithm, key, good):
    sizes = {pb.ML_KEM_512: 768, pb.ML_KEM_768: 1088, pb.ML_KEM_1024: 1568}
    (got,) = peer.decaps_items(algorithm, [
        item(bytes(sizes[algorithm]), private_key=key)])
    assert got.status == (pb.OK if good else pb.BAD_KEY)


@needs_vectors
@pytest.mark.parametrize("algorithm,share,good", list(share_checks()) or NONE)
def test_share_check(peer, algorithm, share, good):
    answer = peer.call("encapsulate", algorithm=algorithm, shares=[share])
    status = answer.encapsulated.items[0].status
    assert (status == pb.OK) == good
    assert good or status in (pb.BAD_SHARE, pb.BAD_LENGTH)


@needs_vectors
def test_modulus_file(peer):
    """780 shares with one coefficient out of range each, alone and among good ones."""
    shares = [bytes.fromhex(line) for line in (
        VECTORS / "cctv/modulus/ML-KEM-768.txt").read_text().split()]
    assert len(shares) > 700
    good = peer.keygen(pb.ML_KEM_768)[0].share
    for at in range(0, len(shares), 63):
        part = shares[at:at + 63] + [good]
        answer = peer.call("encapsulate", algorithm=pb.ML_KEM_768, shares=part)
        got = [i.status for i in answer.encapsulated.items]
        assert got == [pb.BAD_SHARE] * (len(part) - 1) + [pb.OK]


def hybrid(section):
    data = load("hybrid/x25519mlkem768_composed.json") or {section: []}
    for t in data[section]:
        words = "-".join(t["comment"].replace("(", "").replace(")", "").split()[:6])
        yield pytest.param(t, id=f"{t['tcId']}-{words}")


@needs_vectors
@pytest.mark.parametrize("t", list(hybrid("clientFinish")) or [pytest.param({}, id="all")])
def test_hybrid_decapsulation(peer, t):
    """With the seed d || z || x25519 as private key."""
    key = bytes.fromhex(t["mlkem_d"] + t["mlkem_z"] + t["x25519_sk"])
    (got,) = peer.decaps_items(pb.X25519MLKEM768, [
        item(bytes.fromhex(t["server_share"]), private_key=key)])
    if t["result"] == "valid":
        assert (got.status, got.secret.hex()) == (pb.OK, t["shared_secret"])
    else:
        expected = pb.ZERO_X25519 if "zero" in t["comment"] else pb.BAD_LENGTH
        assert got.status == expected and not got.secret


@needs_vectors
@pytest.mark.parametrize("t", list(hybrid("serverRespond")) or [
    pytest.param({}, id="all")])
def test_hybrid_share_check(peer, t):
    share = bytes.fromhex(t["client_share"])
    answer = peer.call("encapsulate", algorithm=pb.X25519MLKEM768, shares=[share])
    (got,) = answer.encapsulated.items
    if t["result"] == "valid":
        assert got.status == pb.OK
    elif "zero" in t["comment"]:
        assert got.status == pb.ZERO_X25519
    elif len(share) != 1216:
        assert got.status in (pb.BAD_LENGTH, pb.ALGORITHM_MISMATCH)
    else:
        assert got.status == pb.BAD_SHARE


def hkdf_cases():
    for bits in (256, 384):
        for _, t in groups(f"wycheproof/hkdf_sha{bits}_test.json"):
            yield pytest.param(bits, t, id=f"wycheproof-{bits}-{t['tcId']}")
    for t in (load("rfc/rfc5869_hkdf_sha256.json") or {"tests": []})["tests"]:
        yield pytest.param(256, dict(t, size=t["L"], result="valid"),
                           id=f"rfc5869-{t['tcId']}")


@needs_vectors
@pytest.mark.parametrize("bits,t", list(hkdf_cases()) or [pytest.param(0, {}, id="all")])
def test_hkdf(peer, exported, bits, t):
    """The wire's kdf works on a secret, never on a given ikm: so Python's HKDF is held
    to the vector, and the daemon to Python's with the vector's salt, info and size."""
    salt, info = bytes.fromhex(t["salt"]), bytes.fromhex(t["info"])
    kdf = pb.Kdf(hash=pb.HKDF_SHA256 if bits == 256 else pb.HKDF_SHA384, salt=salt,
                 info=info, length=t["size"])
    key, sent = exported
    answer = peer.call("decapsulate", algorithm=pb.ML_KEM_512, kdf=kdf, items=[
        item(sent.ciphertext, private_key=key.private_key)])
    if t["result"] == "valid":
        ours = hkdf(f"sha{bits}", bytes.fromhex(t["ikm"]), salt, info, t["size"])
        assert ours.hex() == t["okm"]
        (got,) = answer.decapsulated.items
        assert got.secret == hkdf(f"sha{bits}", sent.secret, salt, info, t["size"])
    else:
        assert answer.status == pb.INVALID_REQUEST and not answer.decapsulated.items


@pytest.fixture(scope="module")
def exported(peer):
    (key,) = peer.keygen(pb.ML_KEM_512, export=True)
    (sent,) = peer.encaps(pb.ML_KEM_512, [key.share])
    return key, sent


@pytest.fixture(scope="module", params=["generic", "avx2", "avx512"])
def daemon_with_backend(request):
    """A daemon for each backend that this processor can run."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as empty:
        can = subprocess.run([MLKEMD, "--config", empty.name, "--check", "--backend",
                              request.param], capture_output=True, text=True, timeout=60)
    if can.returncode != 0:
        pytest.skip(f"the backend {request.param} can't run here")
    with Daemon({"kem.export-private-keys": "yes", "kem.backend": request.param}) as it:
        assert it.info().backend == request.param
        yield it


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=name_of)
def test_fresh_rounds(daemon_with_backend, algorithm, length):
    """1000 rounds of what a seed chooses: batch sizes, flips, kdf, handles or keys.

    The seed is printed; MLKEMD_SEED replays the choices (the keys are the daemon's)."""
    seed = int(os.environ.get("MLKEMD_SEED") or random.SystemRandom().getrandbits(32))
    print(f"seed {seed} (replay with MLKEMD_SEED={seed} or ./test.sh --seed {seed})")
    choose = random.Random(seed)
    left = 1000 if length != "quick" and not SANITIZER else 250
    daemon = daemon_with_backend
    with daemon.peer() as initiator, daemon.peer() as responder:
        while left > 0:
            n = min(left, choose.choice([1, 1, 2, 7, 8, 9, 33, 64]))
            export = choose.random() < 0.3
            more = {}
            if choose.random() < 0.3:
                more["kdf"] = pb.Kdf(
                    hash=choose.choice([pb.HKDF_SHA256, pb.HKDF_SHA384]),
                    salt=choose.randbytes(choose.randrange(70)),
                    info=choose.randbytes(choose.randrange(70)),
                    length=choose.randrange(1, 1024))
            keys = initiator.keygen(algorithm, n, export=export)
            sent = responder.encaps(algorithm, [k.share for k in keys], **more)
            flips = [choose.random() < 0.1 for _ in keys]
            items = []
            for key, one, flip in zip(keys, sent, flips):
                ciphertext = bytearray(one.ciphertext)
                if flip:
                    ciphertext[choose.randrange(768)] ^= 1 << choose.randrange(8)
                items.append(item(bytes(ciphertext), private_key=key.private_key)
                             if export else item(bytes(ciphertext), handle=key.handle))
            got = initiator.decaps(algorithm, items, **more)
            for one, secret, flip in zip(sent, got, flips):
                if not flip:
                    assert one.secret == secret, seed
                elif len(secret) >= 8:
                    assert one.secret != secret, seed
            left -= n
