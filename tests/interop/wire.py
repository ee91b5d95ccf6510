# SPDX-License-Identifier: Apache-2.0
"""TLS as it is on the wire: what the interop tests believe, whatever a program says.

Only what is in clear is read (RFC 8446 4.1.2, 4.1.3, 5.1): the ClientHello, the
ServerHello or HelloRetryRequest, and alerts before either. Relay stands between a client
and a server and keeps the start of both directions.
"""

import contextlib
import os
import socket
import struct
import threading
import time

HYBRID = 0x11EC
X25519 = 0x001D
P256 = 0x0017
P384 = 0x0018
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891"
                      "c2a211167abb8c5e079e09e2c8a8339c")
ALERTS = {40: "handshake_failure", 47: "illegal_parameter", 50: "decode_error",
          70: "protocol_version", 80: "internal_error", 10: "unexpected_message",
          109: "missing_extension"}


def records(data):
    """(content type, content) of each whole record."""
    while len(data) >= 5:
        kind, _, length = struct.unpack(">BHH", data[:5])
        if len(data) < 5 + length:
            return
        yield kind, data[5:5 + length]
        data = data[5 + length:]


def messages(data):
    """(handshake type, body) of the messages that are in clear: those of plain records
    until the first of application data, with a view to TLS 1.3."""
    joined = b""
    for kind, content in records(data):
        if kind == 23:
            break
        if kind == 22:
            joined += content
    while len(joined) >= 4:
        length = int.from_bytes(joined[1:4], "big")
        if len(joined) < 4 + length:
            return
        yield joined[0], joined[4:4 + length]
        joined = joined[4 + length:]


def extensions(data):
    found = {}
    end = 2 + int.from_bytes(data[:2], "big")
    at = 2
    while at < end:
        kind, length = struct.unpack(">HH", data[at:at + 4])
        found[kind] = data[at + 4:at + 4 + length]
        at += 4 + length
    return found


class ServerHello:
    def __init__(self, body):
        self.retry = body[2:34] == RETRY
        at = 34 + 1 + body[34]
        self.cipher = int.from_bytes(body[at:at + 2], "big")
        found = extensions(body[at + 3:]) if len(body) > at + 3 else {}
        self.version = int.from_bytes(found.get(43, body[:2]), "big")
        share = found.get(51)
        self.group = int.from_bytes(share[:2], "big") if share else None
        self.resumed = 41 in found


class ClientHello:
    def __init__(self, body):
        at = 34 + 1 + body[34]
        at += 2 + int.from_bytes(body[at:at + 2], "big")
        at += 1 + body[at]
        self.extensions = extensions(body[at:])
        self.shares = []
        left = self.extensions.get(51, b"")[2:]
        while left:
            group, length = struct.unpack(">HH", left[:4])
            self.shares.append((group, length))
            left = left[4 + length:]


class Seen:
    """Both directions of one connection, as far as they were kept."""

    LIMIT = 65536

    def __init__(self):
        self.up, self.down = b"", b""

    def server_hellos(self):
        return [ServerHello(body) for kind, body in messages(self.down) if kind == 2]

    def client_hellos(self):
        return [ClientHello(body) for kind, body in messages(self.up) if kind == 1]

    def group(self):
        """The group that the server took, from its ServerHello or, in TLS 1.2, from its
        ServerKeyExchange."""
        last = [hello for hello in self.server_hellos() if not hello.retry][-1]
        if last.version < 0x0304:
            for kind, body in messages(self.down):
                if kind == 12 and body[0] == 3:
                    return int.from_bytes(body[1:3], "big")
        return last.group

    def version(self):
        return self.server_hellos()[-1].version

    def retried(self):
        return any(hello.retry for hello in self.server_hellos())

    def alert(self):
        for kind, content in records(self.down):
            if kind == 21 and len(content) == 2:
                return ALERTS.get(content[1], content[1])
        return None


class Relay:
    """Forwards TCP to a port of loopback and remembers. cut(data) may take the client's
    first bytes apart: it yields (bytes, pause before them)."""

    def __init__(self, target, cut=None):
        self.target, self.cut = target, cut
        self.seen = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(20)

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            seen = Seen()
            self.seen.append(seen)
            thread = threading.Thread(target=self.forward, args=(client, seen),
                                      daemon=True)
            self.threads.append(thread)
            thread.start()

    def forward(self, client, seen):
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self.target), 20)
            except OSError:
                return
            server.settimeout(60)
            client.settimeout(60)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with server:
                up = threading.Thread(target=self.pump, args=(client, server, seen, "up"),
                                      daemon=True)
                up.start()
                self.pump(server, client, seen, "down")
                up.join(60)

    def pump(self, source, sink, seen, way):
        first = True
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data:
                    break
                kept = getattr(seen, way)
                if len(kept) < Seen.LIMIT:
                    setattr(seen, way, kept + data)
                if way == "up" and first and self.cut:
                    for part, pause in self.cut(data):
                        time.sleep(pause)
                        sink.sendall(part)
                else:
                    sink.sendall(data)
                first = False
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def last(self):
        """The last connection that carried a handshake."""
        return [seen for seen in self.seen if seen.server_hellos()][-1]


def in_two(data):
    """A ClientHello in two segments, 300 ms apart."""
    yield data[:600], 0
    yield data[600:], 0.3


def byte_by_byte(data):
    for i in range(len(data)):
        yield data[i:i + 1], 0


def client_hello(shares, groups=(HYBRID, X25519, P256)):
    """A ClientHello for TLS 1.3 with shares as given: [(group, bytes)]."""
    def extension(kind, body):
        return struct.pack(">HH", kind, len(body)) + body

    def vector(body, n=2):
        return len(body).to_bytes(n, "big") + body

    entries = b"".join(struct.pack(">H", group) + vector(share) for group, share in shares)
    named = b"".join(struct.pack(">H", group) for group in groups)
    found = (extension(10, vector(named)) + extension(13, vector(bytes.fromhex(
        "0403080408050806040105010601"))) + extension(43, b"\x02\x03\x04") +
             extension(45, b"\x01\x01") + extension(51, vector(entries)))
    body = (b"\x03\x03" + os.urandom(32) + vector(os.urandom(32), 1) +
            vector(bytes.fromhex("130113021303")) + b"\x01\x00" + vector(found))
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + vector(message)


def ask(port, hello, timeout=20):
    """Sends a ClientHello and reads until a ServerHello or an alert came, or the end."""
    seen = Seen()
    with socket.create_connection(("127.0.0.1", port), timeout) as conn:
        conn.sendall(hello)
        with contextlib.suppress(ConnectionError):
            while not seen.server_hellos() and seen.alert() is None:
                data = conn.recv(65536)
                if not data:
                    break
                seen.down += data
    return seen
