# SPDX-License-Identifier: Apache-2.0
"""Bytes on the socket: frames in pieces, frames in company, frames that are none.

A broken frame closes its connection and no other; a bad request gets a status and the
connection lives (docs/protocol.md).
"""

import random
import socket
import struct
import time

import pytest

from daemon import SLOW, Daemon, wait_for
from peer import MAX_FRAME, Closed, Peer, frame, item, pb


def witness(daemon):
    """A connection that must not notice what others do."""
    return daemon.peer(name="witness")


def expect_closed(peer):
    """Closed, and what was said before was no success."""
    assert peer.is_closed(), "still open"


def test_split_at_every_byte(daemon):
    """Each request of a session arrives in two pieces, cut at every place."""
    with daemon.peer() as peer:
        (key,) = peer.keygen(pb.ML_KEM_512, export=True)
        requests = [
            peer.request("ping"),
            peer.request("generate_keys", algorithm=pb.X25519MLKEM768, count=2),
            peer.request("release", handles=[bytes(16)] * 3),
            peer.request("encapsulate", algorithm=pb.ML_KEM_512, shares=[key.share]),
        ]
        for request in requests:
            whole = frame(request)
            for at in range(1, len(whole)):
                if at % 8 and 64 < at < len(whole) - 16:
                    continue  # the inside of a share: every eighth place
                peer.send_raw(whole[:at])
                peer.send_raw(b"")
                # The pieces must not be joined by the socket before they are read.
                time.sleep(0.0003 if at < 64 else 0.0001)
                peer.send_raw(whole[at:])
                answer = peer.recv()
                assert (answer.id, answer.status) == (request.id, pb.OK), at


def test_byte_by_byte(daemon):
    with Peer(daemon.path, hello=False) as peer:
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        hello = peer.request("hello", min_version=1, max_version=1)
        for byte in frame(hello) + frame(peer.request("ping")):
            peer.send_raw(bytes([byte]))
        assert peer.recv().hello.version == 1
        assert peer.recv().status == pb.OK


@pytest.mark.parametrize("n", [2, 3, 100])
def test_several_frames_in_one_write(daemon, n):
    with daemon.peer() as peer:
        requests = [peer.request("ping") for _ in range(n)]
        peer.send_raw(b"".join(frame(r) for r in requests))
        assert {peer.recv().id for _ in requests} == {r.id for r in requests}


def test_hello_and_work_in_one_write(daemon):
    with Peer(daemon.path, hello=False) as peer:
        peer.send_raw(frame(peer.request("hello", min_version=1, max_version=1)) +
                      frame(peer.request("generate_keys", count=1,
                                         algorithm=pb.X25519MLKEM768)))
        assert peer.recv().hello.version == 1
        assert peer.recv().keys.items[0].status == pb.OK


def test_a_frame_and_a_half(daemon):
    """The half waits for its rest; the whole one is answered meanwhile."""
    with daemon.peer() as peer:
        one, two = frame(peer.request("ping")), frame(peer.request("info"))
        peer.send_raw(one + two[:3])
        assert peer.recv().status == pb.OK
        peer.send_raw(two[3:])
        assert peer.recv().info.server_version


def padded(request, size):
    """A request of exactly that many bytes: an unknown field fills it."""
    data = request.SerializeToString()
    room = size - len(data)
    for width in (1, 2, 3, 4):
        # tag of field 2000, length-delimited: two bytes
        body = room - 2 - width
        if body >= 0 and len(varint(body, width)) == width:
            return data + varint(2000 << 3 | 2, 2) + varint(body, width) + bytes(body)
    raise ValueError(size)


def varint(value, width):
    out = bytearray()
    while True:
        out.append(value & 0x7f | (0x80 if value > 0x7f or len(out) + 1 < width else 0))
        value >>= 7
        if not value and len(out) >= width:
            return bytes(out)


@pytest.mark.parametrize("size", [4095, 4096, 4097, 8192, 65535, 65536, 65537, 131072,
                                  MAX_FRAME - 1, MAX_FRAME])
def test_sizes_up_to_the_limit(daemon, size):
    """Answered, with nothing sent behind to push it through."""
    with daemon.peer() as peer:
        request = peer.request("ping")
        data = padded(request, size)
        assert len(data) == size
        peer.send_raw(frame(data))
        answer = peer.recv()
        assert (answer.id, answer.status) == (request.id, pb.OK)


@pytest.mark.parametrize("length", [
    0, MAX_FRAME + 1, 2**31 - 1, 2**31, 2**32 - 5, 2**32 - 4, 2**32 - 1,
    int.from_bytes(struct.pack("<I", MAX_FRAME + 1), "big")])
@pytest.mark.parametrize("before_hello", [True, False])
def test_lengths_over_the_limit(daemon, length, before_hello):
    """Closed at once: nothing of that size is reserved, the frame before is answered."""
    rss = daemon.rss_kib()
    with witness(daemon) as other:
        broken = daemon.stats()["broken_frames_total"]
        peer = Peer(daemon.path, hello=not before_hello)
        ping = peer.request("ping")
        if not before_hello:
            peer.send_raw(frame(ping) + struct.pack(">I", length) + bytes(64))
            assert peer.recv().id == ping.id, "the valid frame before it"
        else:
            peer.send_raw(struct.pack(">I", length) + bytes(64))
        expect_closed(peer)
        peer.close()
        assert other.call("ping").status == pb.OK
        assert daemon.stats()["broken_frames_total"] == broken + 1
    assert daemon.rss_kib() - rss < 2048 * SLOW


def test_length_zero_a_thousand_times(daemon):
    with daemon.peer() as peer:
        try:
            for _ in range(1000):
                peer.send_raw(bytes(4))
        except Closed:
            pass
        expect_closed(peer)
    with witness(daemon) as other:
        assert other.call("ping").status == pb.OK


MALFORMED = {
    "truncated tag": b"\x80",
    "truncated varint": b"\x08\xff",
    "varint of eleven bytes": b"\x08" + b"\xff" * 10 + b"\x01",
    "length past the end": b"\x52\x7f\x00",
    "length of 2^63": b"\x52" + b"\xff" * 9 + b"\x01",
    "field number zero": b"\x00\x00",
    "group": b"\x0b\x0c",
    "group that never ends": b"\x53",
    "wire type 6": b"\x0e\x00",
    "wire type 7": b"\x0f\x00",
    "fixed64 cut short": b"\x09\x00\x00",
    "fixed32 cut short": b"\x0d\x00",
    "operation cut short inside": b"\x08\x01\xa2\x01\x02\x08\x80",
    "random": random.Random(7).randbytes(300),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_not_protobuf_closes(daemon, name):
    with witness(daemon) as other, daemon.peer() as peer:
        peer.send_raw(frame(MALFORMED[name]))
        expect_closed(peer)
        assert other.call("ping").status == pb.OK


ODD = {
    # tag with the highest field number: its shift overflows in a naive parser
    "tag f8ffffff7f": b"\xf8\xff\xff\xff\x7f\x00",
    "unknown field": b"\xf8\x7c\x2a",
    "unknown bytes": b"\xfa\x7c\x03abc",
    "unknown fixed64": b"\xf9\x7c" + bytes(8),
    "unknown fixed32": b"\xfd\x7c" + bytes(4),
    "id twice": b"\x08\x05\x08\x06",
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("where", ["before", "after"])
def test_odd_but_legal(daemon, name, where):
    """Unknown fields are ignored, as the compatibility promise says; or it closes."""
    with witness(daemon) as other, daemon.peer() as peer:
        data = peer.request("ping").SerializeToString()
        data = ODD[name] + data if where == "before" else data + ODD[name]
        expected = pb.Request.FromString(data)
        peer.send_raw(frame(data))
        try:
            answer = peer.recv()
            assert (answer.id, answer.status) == (expected.id, pb.OK)
        except Closed:
            assert name == "tag f8ffffff7f", "only the absurd tag may close"
        assert other.call("ping").status == pb.OK


def test_empty_fields_of_every_kind(daemon):
    """(N << 3 | 2) 00 for every field number: an empty message, string or array."""
    for n in range(1, 64):
        with daemon.peer() as peer:
            data = varint(n << 3 | 2, 1) + b"\x00"
            peer.send_raw(frame(b"\x08\x07" + data))
            try:
                assert peer.recv().id == 7
            except Closed:
                pass
    with daemon.peer() as peer:
        # The same inside of an operation.
        for op in ("encapsulate", "decapsulate", "release", "generate_keys", "hello"):
            field = pb.Request.DESCRIPTOR.fields_by_name[op].number
            for n in range(1, 16):
                body = bytes([n << 3 | 2, 0])
                data = varint(field << 3 | 2, 2) + bytes([len(body)]) + body
                try:
                    peer.send_raw(frame(b"\x08\x07" + data))
                    assert peer.recv().id == 7
                except Closed:
                    peer = daemon.peer()
    with witness(daemon) as other:
        assert other.call("ping").status == pb.OK


def test_no_operation_and_unknown_operation(daemon):
    with daemon.peer() as peer:
        for data in (b"\x08\x09", b"\x08\x09\xfa\x06\x00", b"\x08\x09\xaa\x02\x02\x08\x01"):
            peer.send_raw(frame(data))
            answer = peer.recv()
            assert answer.id == 9
            assert answer.status in (pb.INVALID_REQUEST, pb.UNSUPPORTED)
        assert peer.call("ping").status == pb.OK


def test_two_operations(daemon):
    """Different ones are refused; the same one twice is refused or merged as the schema
    says, and never half of each."""
    with daemon.peer() as peer:
        one = peer.request("ping").SerializeToString()
        two = peer.request("info").SerializeToString()
        peer.send_raw(frame(one + two))
        assert peer.recv().status == pb.INVALID_REQUEST

        first, second = peer.keygen(pb.ML_KEM_768, 2)
        (sent,) = peer.encaps(pb.ML_KEM_768, [second.share])
        parts = [pb.Request(id=77, decapsulate=pb.Decapsulate(
            algorithm=pb.ML_KEM_768, items=[it])).SerializeToString() for it in (
                item(sent.ciphertext, handle=first.handle),
                item(sent.ciphertext, handle=second.handle))]
        merged = pb.Request.FromString(b"".join(parts))
        peer.send_raw(frame(b"".join(parts)))
        answer = peer.recv()
        assert answer.id == 77
        if answer.status == pb.OK:
            assert len(answer.decapsulated.items) == len(merged.decapsulate.items)
            assert answer.decapsulated.items[1].secret == sent.secret
        else:
            assert answer.status == pb.INVALID_REQUEST
            assert peer.call("release", handles=[
                first.handle, second.handle]).released.released == 2


def test_every_field_a_hundred_times(daemon):
    """Odd but legal, again and again: no byte is kept."""
    def message(peer):
        request = peer.request("encapsulate", algorithm=pb.ML_KEM_512, shares=[b"x"],
                               kdf=pb.Kdf(hash=pb.HKDF_SHA256, length=32, salt=b"s"))
        op = request.encapsulate.SerializeToString()
        head = varint(21 << 3 | 2, 2)
        body = op[:op.index(b"\x12")] * 100 + op[op.index(b"\x12"):]
        return frame(b"\x08\x05" * 100 + head + varint(len(body), 2) + body)
    with daemon.peer() as peer:
        data = message(peer)
        for _ in range(500):
            peer.send_raw(data)
            assert peer.recv().id == 5
        before = daemon.rss_kib()
        for _ in range(5000 // SLOW):
            peer.send_raw(data)
            peer.recv()
        assert daemon.rss_kib() - before < 1024 * SLOW


def test_first_message_is_not_hello(daemon):
    for op, fields in (("ping", {}), ("info", {}), ("generate_keys", {
            "algorithm": pb.ML_KEM_768, "count": 1}), ("stats", {})):
        with Peer(daemon.path, hello=False) as peer:
            peer.send(peer.request(op, **fields))
            expect_closed(peer)
            if peer.buffer:
                answer = peer.recv()
                assert answer.status != pb.OK and not answer.keys.items


def test_id_in_use(daemon):
    """Two open requests of one id: the connection closes, and only that one."""
    with witness(daemon) as other, daemon.peer() as peer:
        work = peer.request("generate_keys", algorithm=pb.ML_KEM_1024, count=1)
        # All arrive in one read, so that the first is open when the next is seen.
        peer.send_raw(frame(work) * 8)
        answers = 0
        with pytest.raises(Closed):
            while True:
                assert peer.recv().id == work.id
                answers += 1
        assert answers <= 1
        assert other.call("ping").status == pb.OK


def test_an_id_may_be_used_again(daemon):
    with daemon.peer() as peer:
        request = peer.request("ping")
        for _ in range(5):
            peer.send(request)
            assert peer.recv().id == request.id


def test_ids_of_every_size(daemon):
    with daemon.peer() as peer:
        for id_ in (0, 1, 2**31, 2**32, 2**63, 2**64 - 1):
            request = peer.request("ping")
            request.id = id_
            peer.send(request)
            answer = peer.recv()
            assert answer.id == id_ and answer.status in (pb.OK, pb.INVALID_REQUEST)


HELLO_MAX = 4092


def long_hello(size):
    """A legal Hello of that many bytes: the rest is a field that nobody knows."""
    hello = pb.Request(id=1, hello=pb.Hello(min_version=1, max_version=1))
    data = hello.SerializeToString()
    pad = size - len(data) - 6
    length = bytes((pad >> 7 * i & 0x7f) | (0x80 if i < 3 else 0) for i in range(4))
    return data + b"\xa2\x06" + length + bytes(pad)


@pytest.mark.parametrize("size", [HELLO_MAX, HELLO_MAX + 1, 200_000, 500_000])
def test_long_hello(size):
    """Over its limit it is a broken frame, at once; and the daemon ends as ever."""
    with Daemon({"limits.drain-timeout": "60s"}) as daemon:
        peer = Peer(daemon.path, hello=False)
        try:
            peer.send_raw(frame(long_hello(size)))
        except Closed:
            pass
        if size <= HELLO_MAX:
            assert peer.recv().status == pb.OK
        else:
            expect_closed(peer)
            wait_for(lambda: daemon.stats()["connections"] == 0, 10 * SLOW, "it is gone")
            assert daemon.stats()["broken_frames_total"] == 1
        peer.close()
        start = time.monotonic()
        daemon.stop()
        assert time.monotonic() - start < 40


@pytest.mark.slow
def test_no_hello(daemon):
    """A second without Hello, or in the middle of it: closed and counted."""
    before = daemon.stats()["hello_timeouts_total"]
    start = time.monotonic()
    silent = Peer(daemon.path, hello=False)
    half = Peer(daemon.path, hello=False)
    half.send_raw(frame(half.request("hello", min_version=1, max_version=1))[:7])
    expect_closed(silent)
    expect_closed(half)
    took = time.monotonic() - start
    assert 0.5 < took < 20 * SLOW, took
    assert daemon.stats()["hello_timeouts_total"] >= before + 1


@pytest.mark.slow
def test_a_byte_now_and_then(daemon_with_short_frames):
    """A frame that drips is dropped by its deadline; its neighbours are served."""
    daemon = daemon_with_short_frames
    with witness(daemon) as other, daemon.peer() as dripper:
        before = daemon.stats()["frame_timeouts_total"]
        start = time.monotonic()
        with pytest.raises(Closed):
            for byte in struct.pack(">I", 1000) + bytes(1000):
                dripper.send_raw(bytes([byte]))
                time.sleep(0.2)
                assert other.call("ping").status == pb.OK
                assert time.monotonic() - start < 60 * SLOW
        assert daemon.stats()["frame_timeouts_total"] > before


@pytest.fixture(scope="module")
def daemon_with_short_frames():
    from daemon import Daemon
    with Daemon({"limits.frame-timeout": "1s"}) as it:
        yield it


@pytest.mark.slow
def test_idle_connections_stay(daemon_with_short_frames):
    """The deadline is a frame's, not a connection's."""
    with daemon_with_short_frames.peer() as peer:
        time.sleep(2.5)
        assert peer.call("ping").status == pb.OK


def test_half_a_frame_and_shutdown(daemon):
    for rest in (0, 1, 5, 100):
        with daemon.peer() as peer:
            whole = frame(peer.request("generate_keys", count=64,
                                       algorithm=pb.ML_KEM_768))
            peer.send_raw(whole + struct.pack(">I", 1000)[:rest] + bytes(max(0, rest - 4)))
            peer.socket.shutdown(socket.SHUT_WR)
            # A client that has nothing more to say still wants its answer.
            try:
                assert peer.recv().status == pb.OK
            except Closed:
                pass
            assert peer.is_closed()
    with witness(daemon) as other:
        assert other.call("ping").status == pb.OK


def test_gone_in_the_middle_of_a_batch(daemon):
    """The peer is gone while its items are worked: others' answers come, keys go."""
    with witness(daemon) as other:
        before = daemon.stats()
        for n in range(40):
            peer = daemon.peer()
            peer.send_raw(b"".join(frame(peer.request(
                "generate_keys", algorithm=pb.ML_KEM_1024, count=16)) for _ in range(4)))
            if n % 2:
                time.sleep(0.001)
            peer.close()
            assert len(other.keygen(pb.ML_KEM_1024, 4)) == 4
        wait_for(lambda: daemon.stats()["connections"] <= before["connections"],
                 10 * SLOW, "connections gone")
        assert daemon.stats()["handles"] == before["handles"] + 160
    wait_for(lambda: daemon.stats()["handles"] == before["handles"], 10 * SLOW,
             "keys of the gone")


def test_the_schema_cannot_nest():
    """The graph of messages is acyclic and shallow: no input can make a decoder recurse."""
    def depth(message, above):
        assert message.full_name not in above, "a cycle"
        below = [depth(f.message_type, above | {message.full_name})
                 for f in message.fields if f.message_type]
        return 1 + max(below, default=0)
    assert depth(pb.Request.DESCRIPTOR, frozenset()) <= 3
    assert depth(pb.Response.DESCRIPTOR, frozenset()) <= 4
