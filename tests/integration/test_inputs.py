# SPDX-License-Identifier: Apache-2.0
"""Bad shares, ciphertexts, keys and counts: each has its documented status, touches no
neighbour, and leaves the connection alive."""

import pytest

from peer import ALGORITHMS, MAX_ITEMS, SIZES, item, name_of, pb

ALL = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=name_of)
HYBRID = pb.X25519MLKEM768
# Points of small order on Curve25519 and its twist, with their non-canonical forms:
# X25519 of any private key with one of them is zero (RFC 7748 section 6.1).
P = 2**255 - 19
SMALL_ORDER = [
    0, 1, P - 1, P, P + 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
]


@pytest.fixture(scope="module")
def peer(daemon):
    with daemon.peer() as it:
        yield it


@pytest.fixture(scope="module")
def keys(peer):
    return {a: peer.keygen(a, export=True)[0] for a in ALGORITHMS}


def statuses(answer, kind):
    return [i.status for i in getattr(answer, kind).items]


def encaps(peer, algorithm, shares, **more):
    answer = peer.call("encapsulate", algorithm=algorithm, shares=shares, **more)
    return answer, statuses(answer, "encapsulated")


def wrong_lengths(right):
    return [0, 1, 32, right - 1, right + 1, 2 * right]


@ALL
def test_share_of_another_length(peer, keys, algorithm):
    share = keys[algorithm].share
    for n in wrong_lengths(len(share)):
        answer, got = encaps(peer, algorithm, [(share * 2)[:n]])
        assert got == [pb.BAD_LENGTH], (n, answer)
        assert answer.encapsulated.items[0].message
        assert not answer.encapsulated.items[0].secret


@ALL
def test_share_of_another_algorithm(peer, keys, algorithm):
    for other in ALGORITHMS:
        if other == algorithm:
            continue
        answer, got = encaps(peer, algorithm, [keys[other].share])
        assert got in ([pb.BAD_LENGTH], [pb.ALGORITHM_MISMATCH]), answer


def unreduced(share, n):
    """The share with coefficient n (12 bits) set to 3329, the modulus itself."""
    out = bytearray(share)
    at = 3 * (n // 2)
    if n % 2 == 0:
        out[at] = 3329 & 0xff
        out[at + 1] = (out[at + 1] & 0xf0) | 3329 >> 8
    else:
        out[at + 1] = (out[at + 1] & 0x0f) | (3329 & 0xf) << 4
        out[at + 2] = 3329 >> 4
    return bytes(out)


@ALL
def test_unreduced_share(peer, keys, algorithm):
    """FIPS 203 7.2, for the first, the second and the last coefficient, alone and in a
    batch."""
    share = keys[algorithm].share
    k = {pb.ML_KEM_512: 2, pb.ML_KEM_1024: 4}.get(algorithm, 3)
    for n in (0, 1, 255, 256, 256 * k - 1):
        _, got = encaps(peer, algorithm, [unreduced(share, n)])
        assert got == [pb.BAD_SHARE], n
    _, got = encaps(peer, algorithm, [b"\xff" * len(share)])
    assert got[0] in (pb.BAD_SHARE, pb.ZERO_X25519)


@ALL
@pytest.mark.parametrize("n", [9, 33, MAX_ITEMS])
def test_one_bad_item_at_each_position(peer, keys, algorithm, n):
    """Of a batch of n: the others agree, the bad one has its status and no secret."""
    key = keys[algorithm]
    bad = unreduced(key.share, 7)
    positions = range(n) if n < 33 else (0, 1, 7, 8, n // 2, n - 2, n - 1)
    for at in positions:
        shares = [key.share] * n
        shares[at] = bad
        answer, got = encaps(peer, algorithm, shares)
        assert got == [pb.OK] * at + [pb.BAD_SHARE] + [pb.OK] * (n - at - 1)
        sent = answer.encapsulated.items
        assert not sent[at].secret and not sent[at].ciphertext
        items = [item(s.ciphertext or b"?", private_key=key.private_key) for s in sent]
        answer = peer.call("decapsulate", algorithm=algorithm, items=items)
        assert statuses(answer, "decapsulated") == [
            pb.OK] * at + [pb.BAD_LENGTH] + [pb.OK] * (n - at - 1)
        for i, (one, other) in enumerate(zip(sent, answer.decapsulated.items)):
            assert one.secret == other.secret, i


@ALL
def test_ciphertext_of_another_length(peer, keys, algorithm):
    """Refused before the handle is spent."""
    (key,) = peer.keygen(algorithm)
    (sent,) = peer.encaps(algorithm, [key.share])
    for n in wrong_lengths(len(sent.ciphertext)):
        for it in (item((sent.ciphertext * 2)[:n], handle=key.handle),
                   item((sent.ciphertext * 2)[:n],
                        private_key=keys[algorithm].private_key)):
            (got,) = peer.decaps_items(algorithm, [it])
            assert got.status == pb.BAD_LENGTH and not got.secret, n
    it = item(sent.ciphertext, handle=key.handle)
    assert peer.decaps(algorithm, [it]) == [sent.secret]


@ALL
def test_handle_with_another_algorithm(peer, algorithm):
    """Named as such, and the handle is not spent."""
    (key,) = peer.keygen(algorithm)
    (sent,) = peer.encaps(algorithm, [key.share])
    for other in ALGORITHMS:
        if other == algorithm:
            continue
        (got,) = peer.decaps_items(other, [
            item(bytes(SIZES[other][1]), handle=key.handle)])
        assert got.status == pb.ALGORITHM_MISMATCH, got
        assert name_of(other).replace("_", "-") in got.message.replace("_", "-")
        assert name_of(algorithm).replace("_", "-") in got.message.replace("_", "-")
    it = item(sent.ciphertext, handle=key.handle)
    assert peer.decaps(algorithm, [it]) == [sent.secret]


@ALL
def test_private_key_of_another_length(peer, keys, algorithm):
    right = keys[algorithm].private_key
    ciphertext = bytes(SIZES[algorithm][1])
    for n in wrong_lengths(len(right)) + [63, 65, 95, 97]:
        if n in (SIZES[algorithm][3], SIZES[algorithm][4]):
            continue
        (got,) = peer.decaps_items(algorithm, [
            item(ciphertext, private_key=(right * 2)[:n])])
        assert got.status in (pb.BAD_LENGTH, pb.INVALID_REQUEST), (n, got)


@ALL
def test_private_key_of_another_algorithm(peer, keys, algorithm):
    for other in ALGORITHMS:
        if other == algorithm:
            continue
        (got,) = peer.decaps_items(algorithm, [item(
            bytes(SIZES[algorithm][1]), private_key=keys[other].private_key)])
        assert got.status in (pb.ALGORITHM_MISMATCH, pb.BAD_LENGTH), got


@ALL
def test_hash_check_of_the_private_key(peer, keys, algorithm):
    """FIPS 203 7.3: one flipped bit in H(ek) or in ek is seen; z and s are free."""
    key = keys[algorithm]
    k = {pb.ML_KEM_512: 2, pb.ML_KEM_1024: 4}.get(algorithm, 3)
    (sent,) = peer.encaps(algorithm, [key.share])
    for offset, status in ((768 * k + 32, pb.BAD_KEY), (768 * k + 63, pb.BAD_KEY),
                           (384 * k, pb.BAD_KEY), (768 * k + 31, pb.BAD_KEY),
                           (768 * k + 64, pb.OK), (768 * k + 95, pb.OK)):
        bad = bytearray(key.private_key)
        bad[offset] ^= 0x10
        (got,) = peer.decaps_items(algorithm, [
            item(sent.ciphertext, private_key=bytes(bad))])
        assert got.status == status, offset
        assert (got.secret == sent.secret) == (status == pb.OK)


def test_seeds(peer):
    """A private key may be the seed: the two forms are told apart by their length."""
    for algorithm in ALGORITHMS:
        seed = bytes(range(SIZES[algorithm][4]))
        ciphertext = bytes(range(256)) * 7
        ciphertext = ciphertext[:SIZES[algorithm][1]]
        one, two = peer.decaps(algorithm, [item(ciphertext, private_key=seed)] * 2)
        assert one == two and len(one) == SIZES[algorithm][2]


def test_all_zero_x25519(peer, keys):
    """RFC 10024 4.2: an error, whatever the ML-KEM half is, with no neighbour touched."""
    key = keys[HYBRID]
    (sent,) = peer.encaps(HYBRID, [key.share])
    for value in SMALL_ORDER:
        point = (value % 2**256).to_bytes(32, "little")
        answer, got = encaps(peer, HYBRID, [key.share[:-32] + point, key.share])
        assert got == [pb.ZERO_X25519, pb.OK], (hex(value), answer)
        assert not answer.encapsulated.items[0].secret
        good = sent.ciphertext[:-32] + point
        bad = bytes([good[0] ^ 1]) + good[1:]
        got = peer.decaps_items(HYBRID, [
            item(good, private_key=key.private_key),
            item(bad, private_key=key.private_key),
            item(sent.ciphertext, private_key=key.private_key)])
        assert [g.status for g in got] == [pb.ZERO_X25519, pb.ZERO_X25519, pb.OK]
        assert got[0].message == got[1].message, "no oracle between the halves"
        assert got[2].secret == sent.secret


def test_a_zero_x25519_spends_the_handle(peer):
    (key,) = peer.keygen(HYBRID)
    (sent,) = peer.encaps(HYBRID, [key.share])
    bad = sent.ciphertext[:-32] + bytes(32)
    statuses_ = [peer.decaps_items(HYBRID, [item(c, handle=key.handle)])[0].status
                 for c in (bad, sent.ciphertext)]
    assert statuses_ == [pb.ZERO_X25519, pb.KEY_NOT_FOUND]


@pytest.mark.parametrize("handle", [b"", b"x", bytes(15), bytes(17), bytes(4096)])
def test_odd_handles(peer, handle):
    (got,) = peer.decaps_items(pb.ML_KEM_768, [item(bytes(1088), handle=handle)])
    assert got.status in (pb.KEY_NOT_FOUND, pb.BAD_LENGTH, pb.INVALID_REQUEST)


def test_neither_or_both_of_handle_and_key(peer, keys):
    (key,) = peer.keygen(pb.ML_KEM_768)
    both = item(bytes(1088), handle=key.handle,
                private_key=keys[pb.ML_KEM_768].private_key)
    for it in (item(bytes(1088)), both, item(b""), pb.DecapsulateItem()):
        answer = peer.call("decapsulate", algorithm=pb.ML_KEM_768, items=[it])
        got = {answer.status} | set(statuses(answer, "decapsulated"))
        assert got - {pb.OK}, it
    assert peer.call("release", handles=[key.handle]).released.released == 1


@pytest.mark.parametrize("op,array,value", [
    ("encapsulate", "shares", b"x"), ("release", "handles", bytes(16)),
    ("decapsulate", "items", pb.DecapsulateItem(ciphertext=b"x"))])
def test_too_many_items(daemon, peer, op, array, value):
    more = {} if op == "release" else {"algorithm": pb.ML_KEM_768}
    before = daemon.rss_kib()
    for n in (65, 1000, 20000):
        answer = peer.call(op, **{array: [value] * n}, **more)
        assert answer.status == pb.TOO_MANY_ITEMS, (n, answer)
        assert answer.WhichOneof("result") is None
    assert daemon.rss_kib() - before < 8 * 1024


def test_most_empty_items_in_a_frame(peer):
    """A frame full of two-byte items, the most that the limit holds."""
    answer = peer.call("decapsulate", algorithm=pb.ML_KEM_768,
                       items=[pb.DecapsulateItem()] * 262000)
    assert answer.status == pb.TOO_MANY_ITEMS


@pytest.mark.parametrize("count", [65, 1000, 2**31, 2**32 - 1])
def test_too_many_keys(peer, count):
    answer = peer.call("generate_keys", algorithm=pb.ML_KEM_768, count=count)
    assert answer.status == pb.TOO_MANY_ITEMS


@pytest.mark.parametrize("op,fields,status,result", [
    ("generate_keys", {"count": 0}, pb.INVALID_REQUEST, None),
    ("encapsulate", {}, pb.OK, "encapsulated"), ("decapsulate", {}, pb.OK, "decapsulated")])
def test_no_items(peer, op, fields, status, result):
    """As docs/protocol.md, section 2, has it."""
    answer = peer.call(op, algorithm=pb.ML_KEM_768, **fields)
    assert answer.status == status
    assert answer.WhichOneof("result") == result
    assert result is None or not getattr(answer, result).items


def test_release_passes_over_what_is_no_handle(peer):
    (key,) = peer.keygen(pb.ML_KEM_768)
    odd = [b"", b"x", bytes(15), bytes(16), bytes(17), bytes(4096)]
    for handles, live in ((odd, 0), ([], 0), (odd + [key.handle] * 2 + odd, 1)):
        answer = peer.call("release", handles=handles)
        assert (answer.status, answer.released.released) == (pb.OK, live)


@pytest.mark.parametrize("algorithm", [0, 1, 515, 0x11eb, 9999, 2**31 - 1, -1])
def test_unknown_algorithms(peer, algorithm):
    for op, fields in (("generate_keys", {"count": 1}), ("encapsulate", {
            "shares": [b"x"]}), ("decapsulate", {"items": [item(b"x", handle=b"y")]})):
        answer = peer.call(op, algorithm=algorithm, **fields)
        assert answer.status in (pb.UNSUPPORTED, pb.INVALID_REQUEST), answer


@pytest.mark.parametrize("kdf,items,status", [
    (dict(hash=pb.HKDF_SHA256, length=0), 1, pb.INVALID_REQUEST),
    (dict(hash=pb.HKDF_SHA256, length=255 * 32 + 1), 1, pb.INVALID_REQUEST),
    (dict(hash=pb.HKDF_SHA384, length=255 * 48 + 1), 1, pb.INVALID_REQUEST),
    (dict(hash=pb.HKDF_SHA256, length=2**32 - 1), 1, pb.INVALID_REQUEST),
    (dict(hash=pb.HKDF_SHA256, length=2**31), 2, pb.INVALID_REQUEST),
    (dict(hash=9999, length=32), 1, pb.INVALID_REQUEST),
    (dict(hash=pb.HKDF_SHA256, length=32, info=bytes(2048)), 1, pb.OK),
    (dict(hash=pb.HKDF_SHA256, length=32, info=bytes(2049)), 1, pb.INVALID_REQUEST),
    (dict(hash=pb.HKDF_SHA256, length=1025), 64, pb.TOO_MANY_ITEMS),
    (dict(hash=pb.HKDF_SHA256, length=1024), 64, pb.OK)])
def test_kdf_limits(peer, keys, kdf, items, status):
    algorithm = pb.ML_KEM_512
    key = keys[algorithm]
    wanted = {status, pb.UNSUPPORTED, pb.TOO_MANY_ITEMS} if status else {pb.OK}
    answer, _ = encaps(peer, algorithm, [key.share] * items, kdf=pb.Kdf(**kdf))
    assert answer.status in wanted, answer
    ciphertext = bytes(SIZES[algorithm][1])
    answer = peer.call("decapsulate", algorithm=algorithm, kdf=pb.Kdf(**kdf),
                       items=[item(ciphertext, private_key=key.private_key)] * items)
    assert answer.status in wanted, answer


def test_long_client_names(daemon):
    """64 bytes are told in Hello; more, or no text at all, breaks nothing."""
    for name in ("", "x" * 64, "x" * 65, "x" * 4000, 'a"b\\c\nd', "\x1b[31mred", "é" * 40):
        with daemon.peer(hello=False) as peer:
            answer = peer.hello(name=name)
            assert answer.status in (pb.OK, pb.INVALID_REQUEST), name
            assert len(name.encode()) > 64 or answer.status == pb.OK
    assert "\x1b" not in daemon.log()


def test_hello_twice(daemon):
    with daemon.peer() as peer:
        peer.send(peer.request("hello", min_version=1, max_version=1))
        answer = peer.recv()
        assert answer.status in (pb.OK, pb.INVALID_REQUEST)
        assert peer.call("ping").status == pb.OK
