# SPDX-License-Identifier: Apache-2.0
"""What the matrix does not show: second tries, resumption, older versions, a ClientHello
in pieces, and shares that are wrong, where the measure is what OpenSSL 3.5 does itself.
"""

import random
import socket
import struct
import threading

import pytest

import clients
import servers
import table
import wire
from others import Absent, find

ALERTS = "alert for a bad client share"
CLIENT_ALERTS = "alert for a bad server share"
START = {
    "nginx": lambda world, env, **more: servers.nginx(world, env, **more),
    "HAProxy": lambda world, env, **more: servers.haproxy(world, env, **more),
    "s_server": lambda world, env, **more: servers.s_server(world, env, **more),
}
REQUIRE = {"route": "daemon", "require": "yes", "deadline": "10s"}


@pytest.fixture(scope="module")
def env(one_world, one_daemon):
    return one_world.provider_env(one_daemon.path, **REQUIRE)


@pytest.fixture(scope="module", params=START)
def server(request, one_world, env):
    """Each of them behind the provider, with nothing said about groups but there."""
    try:
        it = START[request.param](one_world, env)
    except Absent as absent:
        pytest.skip(str(absent))
    it.kind = request.param
    yield it
    it.stop()
    one_world.running.remove(it)


@pytest.fixture(scope="module")
def openssl_35():
    try:
        return find("debian-13", "openssl")
    except Absent as absent:
        pytest.skip(str(absent))


def fetch(world, port, client=clients.openssl_35, env=None, cut=None):
    with wire.Relay(port, cut) as relay:
        answer = client(world, relay.port, env)
        assert answer in (world.data, world.data[:12000])
        return relay.last()


def with_args(*args):
    """OpenSSL 3.5's s_client with more arguments."""
    return lambda world, port, env: clients.s_client(world, port, None, "debian-13", args)


# HelloRetryRequest


def test_hello_retry_up_to_the_hybrid(one_world, one_daemon, openssl_35):
    """A client that supports the group but sent a share of another."""
    env = one_world.provider_env(one_daemon.path, "X25519MLKEM768:P-256", "hybrid.cnf",
                                 **REQUIRE)
    it = servers.s_server(one_world, env)
    seen = fetch(one_world, it.port, with_args("-groups", "X25519:X25519MLKEM768"))
    assert seen.retried() and seen.group() == wire.HYBRID
    first, second = seen.client_hellos()
    assert [group for group, _ in first.shares] == [wire.X25519]
    assert second.shares == [(wire.HYBRID, 1216)]


def test_hello_retry_down_from_the_hybrid(one_world, env, openssl_35):
    """A client behind the provider and a server that has no ML-KEM."""
    it = servers.s_server(one_world, None, "debian-13", ["-groups", "P-256"])
    seen = fetch(one_world, it.port, clients.curl, env)
    assert seen.retried() and seen.group() == wire.P256
    first, second = seen.client_hellos()
    assert first.shares == [(wire.HYBRID, 1216)]
    assert second.shares == [(wire.P256, 65)]


def test_hello_retry_of_a_client_up_to_the_hybrid(one_world, env, openssl_35):
    it = servers.s_server(one_world, None, "debian-13", ["-groups", "X25519MLKEM768"])
    seen = fetch(one_world, it.port, lambda world, port, env: clients.s_client(
        world, port, env, args=("-groups", "P-256:X25519MLKEM768")), env)
    assert seen.retried() and seen.group() == wire.HYBRID


def test_a_client_without_the_group(server, one_world, openssl_35):
    seen = fetch(one_world, server.port, with_args("-groups", "X25519"))
    assert seen.group() == wire.X25519 and not seen.retried()


def test_the_pure_groups(one_world, one_daemon, openssl_35):
    """ML-KEM alone, where somebody asks for it."""
    env = one_world.provider_env(one_daemon.path, "MLKEM512:MLKEM768:MLKEM1024",
                                 "pure.cnf", **REQUIRE)
    it = servers.s_server(one_world, env)
    for name, group in (("MLKEM512", 0x200), ("MLKEM768", 0x201), ("MLKEM1024", 0x202)):
        seen = fetch(one_world, it.port, with_args("-groups", name))
        assert seen.group() == group


# Resumption


def resumed(world, port, tmp, client):
    ticket = world.path / tmp
    first = fetch(world, port, lambda w, p, e: client(w, p, ("-sess_out", str(ticket))))
    assert not first.server_hellos()[-1].resumed and ticket.exists()
    return fetch(world, port, lambda w, p, e: client(w, p, ("-sess_in", str(ticket))))


def test_resumption(server, one_world, openssl_35):
    """A ticket, and a new exchange in the same group beside it (psk_dhe_ke)."""
    seen = resumed(one_world, server.port, f"ticket-{server.kind}",
                   lambda world, port, args: clients.s_client(world, port, None,
                                                              "debian-13", args))
    assert seen.server_hellos()[-1].resumed
    assert seen.group() == wire.HYBRID


def test_resumption_of_a_client(one_world, env, openssl_35):
    it = servers.s_server(one_world, None, "debian-13")
    seen = resumed(one_world, it.port, "ticket-client",
                   lambda world, port, args: clients.s_client(world, port, env, args=args))
    assert seen.server_hellos()[-1].resumed
    assert seen.group() == wire.HYBRID


# TLS 1.2


def test_tls_1_2_client(server, one_world, openssl_35):
    seen = fetch(one_world, server.port, with_args("-tls1_2"))
    assert seen.version() == 0x0303 and seen.group() == wire.X25519


def test_tls_1_2_server(one_world, env, openssl_35):
    it = servers.s_server(one_world, None, "debian-13", ["-tls1_2"])
    seen = fetch(one_world, it.port, clients.curl, env)
    assert seen.version() == 0x0303 and seen.group() in (wire.X25519, wire.P256)


def test_tls_1_2_alone_in_nginx(one_world, env, openssl_35):
    """ssl_protocols without TLSv1.3, nginx 1.22's own default: silently classical."""
    try:
        it = servers.nginx(one_world, env, protocols="TLSv1.2")
    except Absent as absent:
        pytest.skip(str(absent))
    seen = fetch(one_world, it.port)
    assert seen.version() == 0x0303 and seen.group() == wire.X25519


# A ClientHello in pieces


@pytest.mark.parametrize("cut", [wire.in_two, wire.byte_by_byte])
def test_a_client_hello_in_pieces(server, one_world, openssl_35, cut):
    seen = fetch(one_world, server.port, cut=cut)
    assert seen.group() == wire.HYBRID


@pytest.mark.parametrize("cut", [wire.in_two, wire.byte_by_byte])
def test_sni_routing_of_a_client_hello_in_pieces(one_world, env, openssl_35, cut):
    """HAProxy that passes TLS on by name, as docs/proxies.md writes it."""
    try:
        behind = servers.s_server(one_world, env)
        front = servers.haproxy(one_world, None, front=lambda port: f"""	bind 127.0.0.1:{port}
	mode tcp
	tcp-request inspect-delay 5s
	tcp-request content accept if {{ req.ssl_hello_type 1 }}
	use_backend named if {{ req.ssl_sni localhost }}""", back=f"""backend named
	mode tcp
	server s 127.0.0.1:{behind.port}""")
    except Absent as absent:
        pytest.skip(str(absent))
    seen = fetch(one_world, front.port, cut=cut)
    assert seen.group() == wire.HYBRID


def test_mlkemctl_says_the_same(server, one_world, openssl_35):
    said = servers.run(servers.CTL, "tls", f"127.0.0.1:{server.port}", "--require").stdout
    assert b"0x11ec" in said and b"two segments:    taken" in said


# Wrong shares


def good_share(seed=1):
    """An encapsulation key (FIPS 203 7.2: any coefficients below q) and 32 bytes."""
    source = random.Random(seed)
    ek = b""
    for _ in range(384):
        a, b = source.randrange(3329), source.randrange(3329)
        ek += bytes([a & 255, a >> 8 | (b & 15) << 4, b >> 4])
    return ek + source.randbytes(32) + source.randbytes(32)


def bad_shares():
    good = good_share()
    return {
        "0 bytes": b"",
        "32 bytes": good[:32],
        "1184 bytes": good[:1184],
        "1215 bytes": good[:1215],
        "1217 bytes": good + b"\0",
        "coefficient 3329": b"\x01" + bytes([good[1] & 0xF0 | 0x0D]) + good[2:],
        "all FF": b"\xff" * 1216,
        "X25519 of zeros": good[:1184] + bytes(32),
        "halves swapped": good[1184:] + good[:1184],
    }


@pytest.fixture(scope="module")
def native(one_world, openssl_35):
    """OpenSSL 3.5 with its own groups."""
    return servers.s_server(one_world, None, "debian-13")


def check_good(port):
    seen = wire.ask(port, wire.client_hello([(wire.HYBRID, good_share())]))
    assert seen.server_hellos() and seen.group() == wire.HYBRID


@pytest.mark.parametrize("what", bad_shares())
def test_a_bad_share(server, native, what):
    """The same alert as OpenSSL 3.5, and the next handshake is served."""
    hello = wire.client_hello([(wire.HYBRID, bad_shares()[what])])
    expected = wire.ask(native.port, hello)
    found = wire.ask(server.port, hello)
    table.note(ALERTS, what, "OpenSSL 3.5", str(expected.alert()))
    table.note(ALERTS, what, server.kind, str(found.alert()))
    assert expected.alert() is not None and not found.server_hellos()
    assert found.alert() == expected.alert()
    check_good(server.port)


def test_control_a_good_share(server, native):
    check_good(server.port)
    check_good(native.port)


def hello_with_share(share, session):
    """A ServerHello of TLS 1.3 with any share."""
    key_share = struct.pack(">HH", wire.HYBRID, len(share)) + share
    found = bytes.fromhex("002b00020304") + struct.pack(">HH", 51, len(key_share)) + \
        key_share
    body = (b"\x03\x03" + b"r" * 32 + bytes([len(session)]) + session +
            b"\x13\x01\x00" + struct.pack(">H", len(found)) + found)
    message = b"\x02" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x03" + struct.pack(">H", len(message)) + message


def alert_of_client(world, share, env, kind):
    """What s_client answers to a server's share: an alert, still in clear."""
    seen = wire.Seen()

    def serve():
        conn = listener.accept()[0]
        with conn:
            conn.settimeout(30)
            while not seen.client_hellos():
                data = conn.recv(65536)
                if not data:
                    return
                seen.up += data
            body = next(body for kind, body in wire.messages(seen.up) if kind == 1)
            conn.sendall(hello_with_share(share, body[35:35 + body[34]]))
            while True:
                data = conn.recv(65536)
                if not data:
                    return
                seen.down += data

    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(60)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        with pytest.raises(clients.Failed):
            clients.s_client(world, listener.getsockname()[1], env, kind)
        thread.join(60)
    return seen.alert()


def bad_server_shares():
    some = random.Random(2).randbytes(1120)
    return {
        "0 bytes": b"",
        "32 bytes": some[:32],
        "1119 bytes": some[:1119],
        "1121 bytes": some + b"\0",
        "X25519 of zeros": some[:1088] + bytes(32),
    }


@pytest.mark.parametrize("what", bad_server_shares())
def test_a_bad_server_share(one_world, env, openssl_35, what):
    share = bad_server_shares()[what]
    found = alert_of_client(one_world, share, env, "host")
    native = alert_of_client(one_world, share, None, "debian-13")
    table.note(CLIENT_ALERTS, what, "OpenSSL 3.5", str(native))
    table.note(CLIENT_ALERTS, what, "s_client behind the provider", str(found))
    assert native is not None and found == native
