# SPDX-License-Identifier: Apache-2.0
"""A client of mlkemd written from proto/mlkemd.proto and docs/protocol.md alone.

It shares no code with the daemon or the client library: what it can do, anybody can do
who has those two files and a protobuf compiler.
"""

import hashlib
import hmac
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.environ["MLKEMD_PROTO_DIR"])

import mlkemd_pb2 as pb  # noqa: E402  (made by protoc in the build directory)

MAX_FRAME = 512 * 1024
MAX_ITEMS = 64
ALGORITHMS = [pb.ML_KEM_512, pb.ML_KEM_768, pb.ML_KEM_1024, pb.X25519MLKEM768]
# share, ciphertext, secret, expanded private key, seed; FIPS 203 table 3, RFC 10024 4.1
SIZES = {
    pb.ML_KEM_512: (800, 768, 32, 1632, 64),
    pb.ML_KEM_768: (1184, 1088, 32, 2400, 64),
    pb.ML_KEM_1024: (1568, 1568, 32, 3168, 64),
    pb.X25519MLKEM768: (1216, 1120, 64, 2432, 96),
}


def name_of(algorithm):
    return pb.Algorithm.Name(algorithm)


def frame(message):
    """The bytes of one frame. message: a Request, or bytes."""
    if not isinstance(message, (bytes, bytearray)):
        message = message.SerializeToString()
    return struct.pack(">I", len(message)) + bytes(message)


def hkdf(hash_name, secret, salt, info, length):
    """HKDF (RFC 5869) from Python's hmac."""
    size = hashlib.new(hash_name).digest_size
    key = hmac.new(salt or bytes(size), secret, hash_name).digest()
    out, block, counter = b"", b"", 1
    while len(out) < length:
        block = hmac.new(key, block + info + bytes([counter]), hash_name).digest()
        out += block
        counter += 1
    return out[:length]


class Closed(Exception):
    """The daemon has closed the connection."""


class Peer:
    def __init__(self, path, name="python peer", hello=True, timeout=20.0):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.connect(path, timeout)
        self.buffer = bytearray()
        self.next_id = 1
        self.welcome = None
        if hello:
            answer = self.hello(name)
            assert answer.status == pb.OK, answer
            self.welcome = answer.hello

    def connect(self, path, timeout):
        """A full backlog says EAGAIN at once, and that is not the end."""
        end = time.monotonic() + timeout
        while True:
            try:
                return self.socket.connect(path)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.socket.close()

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def request(self, op, timeout_us=0, **fields):
        """A Request with a fresh id and one operation."""
        request = pb.Request(id=self.new_id(), timeout_us=timeout_us)
        getattr(request, op).SetInParent()
        for field, value in fields.items():
            target = getattr(request, op)
            if isinstance(value, (list, tuple)):
                getattr(target, field).extend(value)
            elif isinstance(value, pb.Kdf):
                getattr(target, field).CopyFrom(value)
            else:
                setattr(target, field, value)
        return request

    def send_raw(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed() from None

    def send(self, request):
        self.send_raw(frame(request))
        return request.id

    def read_exactly(self, n):
        while len(self.buffer) < n:
            try:
                got = self.socket.recv(256 * 1024)
            except ConnectionResetError:
                raise Closed() from None
            if not got:
                raise Closed()
            self.buffer += got
        data = bytes(self.buffer[:n])
        del self.buffer[:n]
        return data

    def recv(self):
        (length,) = struct.unpack(">I", self.read_exactly(4))
        assert 1 <= length <= MAX_FRAME, length
        return pb.Response.FromString(self.read_exactly(length))

    def call(self, op, timeout_us=0, **fields):
        request = self.request(op, timeout_us, **fields)
        self.send(request)
        answer = self.recv()
        assert answer.id == request.id, (answer.id, request.id)
        return answer

    def hello(self, name="python peer", low=1, high=1, fallbacks=0):
        return self.call("hello", min_version=low, max_version=high, client_name=name,
                         fallbacks=fallbacks)

    def is_closed(self):
        """Reads to the end. True if the daemon closed; what it said before is kept."""
        try:
            while True:
                got = self.socket.recv(65536)
                if not got:
                    return True
                self.buffer += got
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False

    # The three operations, for one item or for many; items' own statuses are checked.

    def keygen(self, algorithm, count=1, export=False, **more):
        answer = self.call("generate_keys", algorithm=algorithm, count=count,
                           export_private=export, **more)
        assert answer.status == pb.OK, answer
        assert len(answer.keys.items) == count
        assert all(item.status == pb.OK for item in answer.keys.items), answer
        return list(answer.keys.items)

    def encaps(self, algorithm, shares, **more):
        answer = self.call("encapsulate", algorithm=algorithm, shares=shares, **more)
        assert answer.status == pb.OK, answer
        assert len(answer.encapsulated.items) == len(shares)
        assert all(i.status == pb.OK for i in answer.encapsulated.items), answer
        return list(answer.encapsulated.items)

    def decaps_items(self, algorithm, items, **more):
        answer = self.call("decapsulate", algorithm=algorithm, items=items, **more)
        assert answer.status == pb.OK, answer
        assert len(answer.decapsulated.items) == len(items)
        return list(answer.decapsulated.items)

    def decaps(self, algorithm, items, **more):
        got = self.decaps_items(algorithm, items, **more)
        assert all(item.status == pb.OK for item in got), got
        return [item.secret for item in got]


def item(ciphertext, handle=None, private_key=None):
    out = pb.DecapsulateItem(ciphertext=ciphertext)
    if handle is not None:
        out.handle = handle
    if private_key is not None:
        out.private_key = private_key
    return out


def exchange(path, algorithm=pb.X25519MLKEM768, count=1):
    """A whole exchange between two connections; returns the secrets they agree on."""
    with Peer(path) as initiator, Peer(path) as responder:
        keys = initiator.keygen(algorithm, count)
        sent = responder.encaps(algorithm, [key.share for key in keys])
        got = initiator.decaps(algorithm, [item(s.ciphertext, handle=k.handle)
                                           for k, s in zip(keys, sent)])
    assert got == [s.secret for s in sent]
    return got
