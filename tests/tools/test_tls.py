# SPDX-License-Identifier: Apache-2.0
"""mlkemctl tls against servers that do every right and wrong thing, on loopback."""

import contextlib
import shutil
import socket
import ssl
import struct
import subprocess
import threading

import pytest

from ctl import BUSY, FAILED, OK, REFUSED, UNREACHABLE, USAGE, ctl

RETRY_RANDOM = bytes.fromhex(
    "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


@contextlib.contextmanager
def serve(handler):
    """A server with a thread a connection; yields its "host:port"."""
    listener = socket.create_server(("127.0.0.1", 0))
    ending = threading.Event()

    def one(conn):
        with conn, contextlib.suppress(OSError):
            conn.settimeout(30)
            handler(conn)

    def loop():
        while not ending.is_set():
            try:
                conn = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=one, args=(conn,), daemon=True).start()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield "127.0.0.1:%d" % listener.getsockname()[1]
    finally:
        ending.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def read_record(conn):
    """One whole record's content."""
    data = b""
    while len(data) < 5 or len(data) < 5 + int.from_bytes(data[3:5], "big"):
        more = conn.recv(65536)
        if not more:
            raise ConnectionError
        data += more
    return data[5:]


def record(kind, content):
    return bytes([kind, 3, 3]) + struct.pack(">H", len(content)) + content


def server_hello(group, share=None, random=b"r" * 32, cookie=None, session=b""):
    key_share = struct.pack(">H", group)
    if share is not None:
        key_share += struct.pack(">H", len(share)) + share
    extensions = bytes.fromhex("002b00020304")
    extensions += struct.pack(">HH", 51, len(key_share)) + key_share
    if cookie is not None:
        extensions += struct.pack(">HHH", 44, len(cookie) + 2, len(cookie)) + cookie
    body = (b"\x03\x03" + random + bytes([len(session)]) + session + b"\x13\x01\x00" +
            struct.pack(">H", len(extensions)) + extensions)
    return record(22, b"\x02" + len(body).to_bytes(3, "big") + body)


class Hello:
    """A ClientHello, taken apart."""

    def __init__(self, message):
        assert message[0] == 1
        assert int.from_bytes(message[1:4], "big") == len(message) - 4
        at = 4 + 2 + 32
        self.random = message[6:38]
        at += 1 + message[at]
        at += 2 + int.from_bytes(message[at:at + 2], "big")
        at += 1 + message[at]
        end = at + 2 + int.from_bytes(message[at:at + 2], "big")
        assert end == len(message)
        at += 2
        self.extensions = {}
        while at < end:
            kind, length = struct.unpack(">HH", message[at:at + 4])
            assert kind not in self.extensions
            self.extensions[kind] = message[at + 4:at + 4 + length]
            at += 4 + length
        groups = self.extensions[10][2:]
        self.groups = [int.from_bytes(groups[i:i + 2], "big")
                       for i in range(0, len(groups), 2)]
        self.shares, shares = {}, self.extensions[51][2:]
        while shares:
            group, length = struct.unpack(">HH", shares[:4])
            self.shares[group] = shares[4:4 + length]
            shares = shares[4 + length:]


def answer(*parts):
    def handler(conn):
        read_record(conn)
        for part in parts:
            conn.sendall(part)
        conn.recv(1)
    return handler


HYBRID = server_hello(0x11EC, b"s" * 1120) + record(20, b"\x01") + record(23, b"e" * 900)


def test_a_hybrid_server():
    with serve(answer(HYBRID)) as peer:
        said = ctl("tls", peer, "--json").object()
        text = ctl("tls", peer, "--require", "--split", "0").out
    assert said["group"] == "X25519MLKEM768" and said["code_point"] == 0x11EC
    assert said["post_quantum"] and not said["hello_retry"]
    assert said["version"] == "TLS 1.3" and said["round_trips"] == 1
    assert said["server_bytes"] == len(HYBRID)
    assert said["server_encrypted_bytes"] == 900 and said["server_records"] == 3
    assert said["server_share_bytes"] == 1120 and said["server_segments"] >= 1
    assert said["two_segments"] == "taken" and said["split_at"] == 600
    assert "X25519MLKEM768 (0x11ec), post-quantum" in text
    assert "two segments:    not tried" in text


def test_what_it_offers():
    seen = []

    def handler(conn):
        seen.append(Hello(read_record(conn)))
        conn.sendall(HYBRID)
        conn.recv(1)
    with serve(handler) as peer:
        ctl("tls", peer, "--split", "0")
        ctl("tls", peer, "--split", "0", "--groups", "x25519:mlkem768:P-384:0x6399",
            "--servername", "www.example.org")
        ctl("tls", peer.replace("127.0.0.1", "localhost"), "--split", "0")
        ctl("tls", peer, "--split", "0", "--servername", "")
    assert seen[0].groups == [0x11EC, 0x1D, 0x17, 0x18]
    assert {k: len(v) for k, v in seen[0].shares.items()} == {0x11EC: 1216, 0x1D: 32}
    assert 0 not in seen[0].extensions  # an address is no name
    assert seen[1].groups == [0x1D, 0x201, 0x18, 0x6399]
    assert list(seen[1].shares) == [0x1D]
    assert seen[1].extensions[0].endswith(b"\x00\x0fwww.example.org")
    assert seen[2].extensions[0].endswith(b"\x00\x09localhost")
    assert 0 not in seen[3].extensions
    assert len({hello.random for hello in seen}) == len(seen)


@pytest.mark.parametrize("group, length", [(0x17, 65), (0x18, 97), (0x19, 133),
                                           (0x1D, 32), (0x1E, 56), (0x200, 800),
                                           (0x201, 1184), (0x202, 1568), (0x11EC, 1216)])
def test_hello_retry(group, length):
    seen = []

    def handler(conn):
        seen.append(Hello(read_record(conn)))
        conn.sendall(server_hello(group, random=RETRY_RANDOM, cookie=b"biscuit" * 50) +
                     record(20, b"\x01"))
        seen.append(Hello(read_record(conn)))
        sizes = {0x200: 768, 0x201: 1088, 0x202: 1568, 0x11EC: 1120}
        conn.sendall(server_hello(group, b"s" * sizes.get(group, length)) +
                     record(23, b"e" * 500))
        conn.recv(1)
    with serve(handler) as peer:
        said = ctl("tls", peer, "--json", "--split", "0").object()
    assert said["hello_retry"] and said["round_trips"] == 2
    assert said["code_point"] == group
    assert said["post_quantum"] == (group in (0x200, 0x201, 0x202, 0x11EC))
    first, second = seen
    assert {k: len(v) for k, v in second.shares.items()} == {group: length}
    assert first.random == second.random
    assert second.extensions[44] == struct.pack(">H", 350) + b"biscuit" * 50
    assert 44 not in first.extensions


def test_a_second_hello_retry_is_no_tls():
    def handler(conn):
        for _ in range(2):
            read_record(conn)
            conn.sendall(server_hello(0x17, random=RETRY_RANDOM))
        conn.recv(1)
    with serve(handler) as peer:
        ctl("tls", peer, status=FAILED)


def test_a_peer_that_drops_two_segments():
    """The answer to the second connection's half ClientHello is a reset."""
    def handler(conn):
        data = conn.recv(65536)
        if len(data) < 5 + int.from_bytes(data[3:5], "big"):
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        conn.sendall(HYBRID)
        conn.recv(1)
    with serve(handler) as peer:
        said = ctl("tls", peer, "--json").object()
        assert said["two_segments"] == "refused" and said["group"] == "X25519MLKEM768"
        assert ctl("tls", peer, "--json", "--split", "0").object()["two_segments"] == \
            "not tried"


def test_a_peer_that_never_answers_two_segments():
    def handler(conn):
        data = conn.recv(65536)
        if len(data) < 5 + int.from_bytes(data[3:5], "big"):
            conn.recv(65536)
            conn.recv(1)
            return
        conn.sendall(HYBRID)
        conn.recv(1)
    with serve(handler) as peer:
        said = ctl("tls", peer, "--json", "--timeout-ms", "3000").object()
        assert said["two_segments"] == "no answer"


def test_the_first_segment_is_alone():
    """With its pause: what arrives first is exactly so long, and then nothing does for a
    while. A server that gets to run when the pause is over sees neither: once more."""
    first = []

    def handler(conn):
        first.append(len(conn.recv(65536)))
        if first[-1] == 1:
            conn.settimeout(0.1)
            with contextlib.suppress(socket.timeout):
                first[-1] += len(conn.recv(65536))
            conn.settimeout(30)
        conn.sendall(HYBRID)
        conn.recv(1)
    with serve(handler) as peer:
        for _ in range(10):
            ctl("tls", peer, "--split", "1")
            if first[-1] == 1:
                break
    assert first[-2] > 1200 and first[-1] == 1, first


def test_byte_by_byte_answer():
    def handler(conn):
        read_record(conn)
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(HYBRID)):
            conn.sendall(HYBRID[i:i + 1])
        conn.recv(1)
    with serve(handler) as peer:
        said = ctl("tls", peer, "--json", "--split", "0").object()
    assert said["server_bytes"] == len(HYBRID) and said["code_point"] == 0x11EC


def test_a_closed_port():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    listener.close()
    said = ctl("tls", f"127.0.0.1:{port}", status=UNREACHABLE)
    assert "nothing listens" in said.err
    said = ctl("tls", f"127.0.0.1:{port}", "--json", status=UNREACHABLE).object()
    assert said["error"] == "unreachable" and not said["ok"]


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 400 Bad Request\r\n\r\n",
                                      b"SSH-2.0-OpenSSH_9.2\r\n",
                                      b"\x16\x03\x01\xff\xff" + b"x" * 100,
                                      b"\x16\x03\x03\x00\x08\x02\x00\x00\x04abcd",
                                      bytes(40)])
def test_a_peer_that_speaks_no_tls(greeting):
    with serve(answer(greeting)) as peer:
        said = ctl("tls", peer, status=FAILED)
    assert "does not speak TLS" in said.err


@pytest.mark.parametrize("alert, name", [(40, "handshake_failure"), (47, "illegal_parameter"),
                                         (70, "protocol_version"), (199, "unknown")])
def test_an_alert(alert, name):
    with serve(answer(record(21, bytes([2, alert])))) as peer:
        said = ctl("tls", peer, status=REFUSED)
    assert f"{name} ({alert})" in said.err


def test_a_peer_that_closes_or_says_nothing():
    with serve(lambda conn: read_record(conn)) as peer:
        assert "closed" in ctl("tls", peer, status=FAILED).err
    with serve(lambda conn: conn.recv(1 << 20) and conn.recv(1)) as peer:
        said = ctl("tls", peer, "--timeout-ms", "300", status=BUSY)
        assert "300 ms" in said.err


def test_a_share_of_the_wrong_length_is_told():
    wrong = server_hello(0x11EC, b"s" * 1119) + record(23, b"e" * 10)
    with serve(answer(wrong)) as peer:
        assert "1119" in ctl("tls", peer, "--split", "0", status=FAILED).err


def real_server(tmp_path, **settings):
    """Python's ssl, which is the system's OpenSSL."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed: no certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-keyout", tmp_path / "key",
                    "-out", tmp_path / "crt", "-subj", "/CN=localhost"], check=True,
                   capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    for name, value in settings.items():
        if name == "curve":
            context.set_ecdh_curve(value)
        else:
            setattr(context, name, value)

    def handler(conn):
        with contextlib.suppress(ssl.SSLError):
            context.wrap_socket(conn, server_side=True)
    return serve(handler)


def test_a_real_server_with_another_group(tmp_path):
    with real_server(tmp_path, curve="secp384r1") as peer:
        said = ctl("tls", peer, "--json").object()
        assert said["group"] == "secp384r1" and said["hello_retry"]
        assert said["two_segments"] == "taken" and not said["post_quantum"]
        ctl("tls", peer, "--require", "--split", "0", status=REFUSED)
        ctl("tls", peer, "--groups", "X25519", status=REFUSED)


def test_a_real_server_of_tls_1_2(tmp_path):
    with real_server(tmp_path, maximum_version=ssl.TLSVersion.TLSv1_2,
                     curve="prime256v1") as peer:
        said = ctl("tls", peer, "--json").object()
        text = ctl("tls", peer, "--split", "0", status=OK).out
    assert said["version"] == "TLS 1.2" and said["group"] == "secp256r1"
    assert not said["post_quantum"] and said["server_encrypted_bytes"] == 0
    assert "ML-KEM needs TLS 1.3" in text


@pytest.mark.parametrize("args", [[], ["x:y"], ["h:0"], ["h:65536"], [":443"],
                                  ["[::1"], ["[::1]x"], ["h:443", "again"],
                                  ["h:443", "--groups", "nonsense"],
                                  ["h:443", "--groups", ""], ["h:443", "--groups", "::"],
                                  ["h:443", "--groups", "0x10000"],
                                  ["h:443", "--groups", "SecP256r1MLKEM768"],
                                  ["h:443", "--split", "x"], ["h:443", "--local"]])
def test_wrong_usage(args):
    ctl("tls", *args, status=USAGE)
