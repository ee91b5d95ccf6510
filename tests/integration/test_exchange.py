# SPDX-License-Identifier: Apache-2.0
"""What the wire promises to a well-behaved client, by the peer that has only the schema."""

import pytest

from peer import ALGORITHMS, MAX_ITEMS, SIZES, Peer, exchange, hkdf, item, name_of, pb

ALL = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=name_of)


@ALL
def test_whole_exchange(daemon, algorithm):
    (secret,) = exchange(daemon.path, algorithm)
    assert len(secret) == SIZES[algorithm][2]
    assert len(set(secret)) > 8, "a secret that is no secret"


@ALL
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 33, MAX_ITEMS])
def test_batches(daemon, algorithm, count):
    secrets = exchange(daemon.path, algorithm, count)
    assert len(set(secrets)) == count


@ALL
def test_sizes(daemon, algorithm):
    share, ciphertext, secret, private_key, _ = SIZES[algorithm]
    with daemon.peer() as peer:
        (key,) = peer.keygen(algorithm)
        assert (len(key.share), len(key.handle), len(key.private_key)) == (share, 16, 0)
        (sent,) = peer.encaps(algorithm, [key.share])
        assert (len(sent.ciphertext), len(sent.secret)) == (ciphertext, secret)
        (key,) = peer.keygen(algorithm, export=True)
        assert (len(key.share), len(key.handle)) == (share, 0)
        assert len(key.private_key) == private_key


@ALL
def test_exported_key(daemon, algorithm):
    """An exported key is whole: it works on any connection, again and again."""
    with daemon.peer() as peer, daemon.peer() as other:
        (key,) = peer.keygen(algorithm, export=True)
        for round_ in range(2):
            (sent,) = other.encaps(algorithm, [key.share])
            for who in (peer, other):
                got = who.decaps(algorithm, [
                    item(sent.ciphertext, private_key=key.private_key)])
                assert got == [sent.secret], round_
        # FIPS 203: dk = s || ek || H(ek) || z, so the share stands inside.
        ek = key.share[:-32] if algorithm == pb.X25519MLKEM768 else key.share
        assert key.private_key[len(ek) - 32:][:len(ek)] == ek


@ALL
@pytest.mark.parametrize("hash_name,kind,length", [
    ("sha256", pb.HKDF_SHA256, 1), ("sha256", pb.HKDF_SHA256, 42),
    ("sha256", pb.HKDF_SHA256, 255 * 32), ("sha384", pb.HKDF_SHA384, 48),
    ("sha384", pb.HKDF_SHA384, 255 * 48)])
def test_kdf_is_that_of_rfc_5869(daemon, algorithm, hash_name, kind, length):
    """The secret without a kdf, put through Python's hmac, is what the kdf gives."""
    kdf = pb.Kdf(hash=kind, salt=b"some salt", info=b"mlkemd test", length=length)
    with daemon.peer() as peer:
        (key,) = peer.keygen(algorithm, export=True)
        (sent,) = peer.encaps(algorithm, [key.share])
        it = item(sent.ciphertext, private_key=key.private_key)
        (derived,) = peer.decaps(algorithm, [it], kdf=kdf)
        assert derived == hkdf(hash_name, sent.secret, kdf.salt, kdf.info, length)
        (sent,) = peer.encaps(algorithm, [key.share], kdf=kdf)
        it = item(sent.ciphertext, private_key=key.private_key)
        (raw,) = peer.decaps(algorithm, [it])
        assert sent.secret == hkdf(hash_name, raw, kdf.salt, kdf.info, length)


def test_kdf_without_salt_and_info(daemon):
    with daemon.peer() as peer:
        (key,) = peer.keygen(pb.ML_KEM_768, export=True)
        (sent,) = peer.encaps(pb.ML_KEM_768, [key.share])
        it = item(sent.ciphertext, private_key=key.private_key)
        (derived,) = peer.decaps(pb.ML_KEM_768, [it],
                                 kdf=pb.Kdf(hash=pb.HKDF_SHA256, length=32))
        assert derived == hkdf("sha256", sent.secret, b"", b"", 32)


@ALL
def test_wrong_ciphertext_is_no_error(daemon, algorithm):
    """Implicit rejection (FIPS 203 6.3): another secret, always the same one, and the
    counters do not tell."""
    with daemon.peer() as peer:
        (key,) = peer.keygen(algorithm, export=True)
        (sent,) = peer.encaps(algorithm, [key.share])
        bad = bytearray(sent.ciphertext)
        bad[5] ^= 1
        before = daemon.stats()
        first, again = (peer.decaps(algorithm, [item(
            bytes(bad), private_key=key.private_key)])[0] for _ in range(2))
        middle = daemon.stats()
        for _ in range(2):
            peer.decaps(algorithm, [item(sent.ciphertext, private_key=key.private_key)])
        after = daemon.stats()
        assert first == again != sent.secret and len(first) == len(sent.secret)
        assert first[:32] != sent.secret[:32]
        if algorithm == pb.X25519MLKEM768:
            assert first[32:] == sent.secret[32:], "the X25519 half is as it was"
        for name in ("items_decaps_total", "items_failed_total", "requests_total",
                     "requests_failed_total", "groups_total"):
            assert after[name] - middle[name] == middle[name] - before[name], name


def test_keys_and_ephemerals_are_fresh(daemon):
    with daemon.peer() as peer:
        seen = set()
        for algorithm in (pb.ML_KEM_768, pb.X25519MLKEM768):
            for _ in range(8):
                seen |= {key.share for key in peer.keygen(algorithm, MAX_ITEMS)}
        assert len(seen) == 16 * MAX_ITEMS
        (key,) = peer.keygen(pb.X25519MLKEM768, export=True)
        sent = [s for _ in range(4)
                for s in peer.encaps(pb.X25519MLKEM768, [key.share] * MAX_ITEMS)]
        for what in ({s.secret[:32] for s in sent}, {s.secret[32:] for s in sent},
                     {s.ciphertext[-32:] for s in sent}):
            assert len(what) == 4 * MAX_ITEMS


def test_a_handle_is_used_once(daemon):
    with daemon.peer() as peer:
        (key,) = peer.keygen(pb.ML_KEM_768)
        (sent,) = peer.encaps(pb.ML_KEM_768, [key.share])
        it = item(sent.ciphertext, handle=key.handle)
        assert peer.decaps(pb.ML_KEM_768, [it]) == [sent.secret]
        (again,) = peer.decaps_items(pb.ML_KEM_768, [it])
        assert again.status == pb.KEY_NOT_FOUND and not again.secret


def test_a_handle_thrice_in_one_request(daemon):
    before = daemon.stats()["handles"]
    with daemon.peer() as peer:
        for _ in range(50):
            (key,) = peer.keygen(pb.ML_KEM_512)
            (sent,) = peer.encaps(pb.ML_KEM_512, [key.share])
            got = peer.decaps_items(pb.ML_KEM_512,
                                    [item(sent.ciphertext, handle=key.handle)] * 3)
            assert sorted(g.status for g in got) == [pb.OK] + [pb.KEY_NOT_FOUND] * 2
            assert [g.secret for g in got if g.status == pb.OK] == [sent.secret]
            assert peer.call("release", handles=[key.handle] * 2).released.released == 0
        assert daemon.stats()["handles"] == before


def test_handles_belong_to_their_connection(daemon):
    with daemon.peer() as owner, daemon.peer() as other:
        (key,) = owner.keygen(pb.ML_KEM_768)
        (sent,) = other.encaps(pb.ML_KEM_768, [key.share])
        it = item(sent.ciphertext, handle=key.handle)
        (foreign,) = other.decaps_items(pb.ML_KEM_768, [it])
        (unknown,) = other.decaps_items(pb.ML_KEM_768, [
            item(sent.ciphertext, handle=bytes(16))])
        assert foreign.status == unknown.status == pb.KEY_NOT_FOUND
        assert foreign.message == unknown.message
        assert other.call("release", handles=[key.handle]).released.released == 0
        assert owner.decaps(pb.ML_KEM_768, [it]) == [sent.secret]


def test_handles_die_with_their_connection(daemon):
    before = daemon.stats()["handles"]
    peer = daemon.peer()
    handles = [key.handle for key in peer.keygen(pb.X25519MLKEM768, 32)]
    assert len(set(handles)) == 32
    assert daemon.stats()["handles"] == before + 32
    peer.close()
    for _ in range(200):
        if daemon.stats()["handles"] == before:
            break
    assert daemon.stats()["handles"] == before


def test_release(daemon):
    with daemon.peer() as peer:
        keys = peer.keygen(pb.ML_KEM_768, 3)
        released = peer.call("release", handles=[keys[0].handle, keys[1].handle,
                                                 keys[1].handle, bytes(16), b"short"])
        assert (released.status, released.released.released) == (pb.OK, 2)
        (sent,) = peer.encaps(pb.ML_KEM_768, [keys[0].share])
        (got,) = peer.decaps_items(pb.ML_KEM_768, [
            item(sent.ciphertext, handle=keys[0].handle)])
        assert got.status == pb.KEY_NOT_FOUND


def test_answers_carry_their_ids(daemon):
    """Answers may come in any order: the id says whose each is."""
    with daemon.peer() as peer:
        (key,) = peer.keygen(pb.ML_KEM_768, export=True)
        sent = peer.encaps(pb.ML_KEM_768, [key.share] * 40)
        requests, expected = [], {}
        for n, one in enumerate(sent):
            request = peer.request("decapsulate", algorithm=pb.ML_KEM_768, items=[
                item(one.ciphertext, private_key=key.private_key)])
            request.id = (1 << 63) + 977 * n
            expected[request.id] = one.secret
            requests.append(request)
        for request in requests:
            peer.send(request)
        got = [peer.recv() for _ in requests]
        assert {g.id: g.decapsulated.items[0].secret for g in got} == expected


def test_info_and_load(daemon):
    with daemon.peer() as peer:
        limits = peer.welcome.limits
        assert peer.welcome.version == 1
        assert set(peer.welcome.algorithms) == set(ALGORITHMS)
        assert (limits.max_items, limits.max_frame_bytes) == (64, 512 * 1024)
        assert limits.max_kdf_bytes == 64 * 1024 and limits.export_allowed
        assert limits.max_handles > 0 and limits.handle_lifetime_ms > 0
        answer = peer.call("info")
        assert answer.info.limits == limits and answer.info.server_version
        assert answer.info.secret_memory in ("memfd_secret", "mlock")
        assert answer.info.shards >= 1 and answer.info.lanes >= 1
        assert not answer.load.draining
        ping = peer.call("ping")
        assert ping.status == pb.OK and ping.WhichOneof("result") is None


def test_a_deadline_that_passed(daemon):
    """A microsecond is over before a group of 64 is: refused, never late."""
    with daemon.peer() as peer:
        (key,) = peer.keygen(pb.ML_KEM_1024)
        late = 0
        for _ in range(20):
            answer = peer.call("encapsulate", timeout_us=1, algorithm=pb.ML_KEM_1024,
                               shares=[key.share] * MAX_ITEMS)
            statuses = {answer.status} | {i.status for i in answer.encapsulated.items}
            late += pb.DEADLINE_EXCEEDED in statuses
            for one in answer.encapsulated.items:
                assert (one.status == pb.OK) == bool(one.secret)
        assert late == 20
        (sent,) = peer.encaps(pb.ML_KEM_1024, [key.share])
        assert peer.decaps(pb.ML_KEM_1024, [item(sent.ciphertext, handle=key.handle)]) \
            == [sent.secret]


def test_cancel_is_always_ok(daemon):
    with daemon.peer() as peer:
        answer = peer.call("cancel", id=12345)
        assert answer.status == pb.OK


def test_a_cancelled_request_is_answered_once(daemon):
    with daemon.peer() as peer:
        work = peer.request("generate_keys", algorithm=pb.ML_KEM_1024, count=64)
        stop = peer.request("cancel", id=work.id)
        peer.send_raw(b"".join(map(frame_of, (work, stop))))
        answers = {a.id: a for a in (peer.recv(), peer.recv())}
        assert answers[stop.id].status == pb.OK
        assert answers[work.id].status in (pb.OK, pb.CANCELLED)
        assert peer.call("ping").status == pb.OK


def frame_of(request):
    from peer import frame
    return frame(request)


def test_control_operations_are_for_the_control_socket(daemon):
    with daemon.peer() as peer:
        for op in ("stats", "drain", "resume", "reload", "self_test"):
            answer = peer.call(op)
            assert answer.status in (pb.DENIED, pb.INVALID_REQUEST, pb.UNSUPPORTED), op
            assert answer.WhichOneof("result") is None
        assert not peer.call("ping").load.draining


@pytest.mark.parametrize("op,fields", [
    ("generate_keys", dict(algorithm=pb.ML_KEM_1024, count=64, export_private=True)),
    ("encapsulate", dict(algorithm=pb.ML_KEM_1024, shares=[b""] * 64,
                         kdf=pb.Kdf(hash=pb.HKDF_SHA256, length=1024))),
    ("release", dict(handles=[b""] * 64)),
    ("cancel", dict(id=1))])
def test_keys_are_not_for_the_control_socket(daemon, op, fields):
    """Refused at once, however much the answer would have taken."""
    with Peer(daemon.control) as control:
        for _ in range(3):
            answer = control.call(op, **fields)
            assert answer.status == pb.DENIED and "socket.path" in answer.message
        assert control.call("ping").status == pb.OK


def test_self_test_by_the_control_socket(daemon):
    answer = daemon.admin("self_test")
    assert answer.status == pb.OK and answer.self_test.passed, answer
    assert answer.self_test.backend == daemon.info().backend


@pytest.mark.parametrize("low,high,good", [
    (1, 1, True), (0, 1, True), (1, 9999, True), (1, 2**32 - 1, True),
    (2, 3, False), (0, 0, False), (3, 1, False)])
def test_versions(daemon, low, high, good):
    with Peer(daemon.path, hello=False) as peer:
        answer = peer.hello(low=low, high=high)
        if good:
            assert answer.status == pb.OK and answer.hello.version == 1
            assert peer.call("ping").status == pb.OK
        else:
            assert answer.status in (pb.UNSUPPORTED, pb.INVALID_REQUEST), answer
            assert answer.message


def test_export_is_off_by_default(daemon):
    from daemon import Daemon
    with Daemon() as strict, strict.peer() as peer:
        assert not peer.welcome.limits.export_allowed
        answer = peer.call("generate_keys", algorithm=pb.ML_KEM_768, count=1,
                           export_private=True)
        statuses = {answer.status} | {i.status for i in answer.keys.items}
        assert pb.EXPORT_DISABLED in statuses
        assert not any(i.private_key for i in answer.keys.items)
        text = answer.message + "".join(i.message for i in answer.keys.items)
        assert "export" in text, "the answer names the key of the configuration"
        assert peer.keygen(pb.ML_KEM_768)
