# SPDX-License-Identifier: Apache-2.0
"""Who speaks with whom. The group comes from the wire, the data is compared.

Everything behind the provider runs with `require = yes`: a handshake that the daemon did
not serve would fail. Its counter is looked at too, since an OpenSSL that has the group
itself could do without.
"""

import pytest

import clients
import servers
import table
import wire
from others import Absent, find

REQUIRE = {"route": "daemon", "require": "yes", "deadline": "10s"}
SERVER_TABLE = "server behind the provider"
CLIENT_TABLE = "client behind the provider"

BEHIND = {
    "nginx": lambda world, env: servers.nginx(world, env),
    "nginx, ssl_ecdh_curve": lambda world, env: servers.nginx(
        world, env, extra=f"ssl_ecdh_curve {servers.GROUPS.replace('P-256', 'prime256v1')};"),
    "HAProxy": lambda world, env: servers.haproxy(world, env),
    "HAProxy, curves": lambda world, env: servers.haproxy(
        world, env, bind=f"curves {servers.GROUPS}"),
    "openssl s_server": lambda world, env: servers.s_server(world, env),
    "stunnel": lambda world, env: stunnel(world, env),
    "hitch": lambda world, env: hitch(world, env),
    "nginx, OpenSSL 3.5, takeover": lambda world, env: servers.nginx(
        world, taking_over(world), "debian-13"),
    "HAProxy, OpenSSL 3.5, takeover": lambda world, env: servers.haproxy(
        world, taking_over(world), "debian-13"),
}
CLIENTS = {
    "OpenSSL 3.5": clients.openssl_35,
    "curl, OpenSSL 3.5": clients.curl_35,
    "Node.js": clients.node,
    "Go": clients.go,
    "rustls": clients.rustls,
    "Chromium": clients.chromium,
}
SERVERS = {
    "OpenSSL 3.5 s_server": lambda world: servers.s_server(world, None, "debian-13"),
    "nginx, OpenSSL 3.5": lambda world: servers.nginx(world, None, "debian-13"),
    "HAProxy, OpenSSL 3.5": lambda world: servers.haproxy(world, None, "debian-13"),
    "Node.js": servers.node_server,
    "Go": servers.go_server,
    "rustls": servers.rustls_server,
}


def stunnel(world, env):
    """In front of a plain nginx: it has a list of groups of its own."""
    program = find("host", "stunnel4")
    plain = servers.nginx(world, None, server=lambda port: f"""
		listen 127.0.0.1:{port};
		root {world.path};""")
    port = servers.free_port()
    config = world.file("stunnel.conf", f"""foreground = yes
pid =
[tls]
accept = 127.0.0.1:{port}
connect = 127.0.0.1:{plain.port}
cert = {world.path}/crt.pem
key = {world.path}/key.pem
curves = {servers.GROUPS}
""")
    return servers.Running(world, "stunnel", [program, config], port, env)


def hitch(world, env):
    """In front of a plain nginx too."""
    program = find("host", "hitch")
    plain = servers.nginx(world, None, server=lambda port: f"""
		listen 127.0.0.1:{port};
		root {world.path};""")
    port = servers.free_port()
    user = "user = \"%s\"\ngroup = \"%s\"\n" % servers.as_user() if servers.ROOT else ""
    config = world.file("hitch.conf", f"""frontend = "[127.0.0.1]:{port}"
backend = "[127.0.0.1]:{plain.port}"
pem-file = "{world.path}/both.pem"
ecdh-curve = "{servers.GROUPS}"
workers = 1
daemon = off
{user}""")
    return servers.Running(world, "hitch", [program, f"--config={config}"], port, env)


def taking_over(world):
    """Where OpenSSL has the group itself: ours all the same."""
    return world.provider_env(world.socket_path, name="takeover.cnf", takeover="yes", **REQUIRE)


@pytest.fixture(scope="module")
def env(one_world, one_daemon):
    one_world.socket_path = one_daemon.path
    return one_world.provider_env(one_daemon.path, **REQUIRE)


class Started:
    """Servers that were started once for all their clients, or why they were not."""

    def __init__(self):
        self.found = {}

    def get(self, name, start):
        if name not in self.found:
            try:
                self.found[name] = start()
            except Absent as absent:
                self.found[name] = absent
        if isinstance(self.found[name], Absent):
            raise self.found[name]
        return self.found[name]


@pytest.fixture(scope="module")
def started():
    return Started()


def fetch(world, port, client, env=None):
    """The answer through a relay, and what the relay saw."""
    with wire.Relay(port) as relay:
        answer = client(world, relay.port, env)
        assert answer in (world.data, world.data[:12000]), "the data is another"
        return relay.last()


def tried(where, row, column, step):
    try:
        seen = step()
    except Absent as absent:
        table.absent(where, row, column, str(absent))
        pytest.skip(str(absent))
    except BaseException:
        table.note(where, row, column, "FAILED")
        raise
    table.note(where, row, column, f"0x{seen.group():04X}" +
               (", HRR" if seen.retried() else ""))
    return seen


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", BEHIND)
def test_server_behind_the_provider(one_world, one_daemon, env, started, server, client):
    def step():
        it = started.get(server, lambda: BEHIND[server](one_world, env))
        before = one_daemon.stats()["items_encaps_total"]
        seen = fetch(one_world, it.port, CLIENTS[client])
        assert one_daemon.stats()["items_encaps_total"] > before
        return seen
    seen = tried(SERVER_TABLE, server, client, step)
    assert seen.group() == wire.HYBRID and not seen.retried()


def through(start_proxy):
    """A client program that is a proxy in itself: asked in plain HTTP for each try."""
    def client(world, port, env):
        proxy = start_proxy(world, port, env)
        try:
            return clients.run(world, [find("host", "curl"), "-sS", "--fail",
                                       "--noproxy", "*",
                                       f"http://127.0.0.1:{proxy.port}/data"])
        finally:
            proxy.stop()
    return client


CLIENTS_BEHIND = {
    "curl": clients.curl,
    "curl --curves": lambda world, port, env: clients.curl(
        world, port, env, args=("--curves", servers.GROUPS)),
    "openssl s_client": clients.s_client,
    "nginx proxy_pass": through(servers.nginx_proxy),
    "HAProxy backend": through(servers.haproxy_backend),
}


@pytest.mark.parametrize("client", CLIENTS_BEHIND)
@pytest.mark.parametrize("server", SERVERS)
def test_client_behind_the_provider(one_world, one_daemon, env, started, server, client):
    def step():
        find("host", "curl")
        it = started.get("of others: " + server, lambda: SERVERS[server](one_world))
        before = one_daemon.stats()["items_decaps_total"]
        seen = fetch(one_world, it.port, CLIENTS_BEHIND[client], env)
        assert one_daemon.stats()["items_decaps_total"] > before
        return seen
    seen = tried(CLIENT_TABLE, server, client, step)
    assert seen.group() == wire.HYBRID and not seen.retried()


def test_control_without_the_provider(one_world, started):
    """The same nginx and curl without OPENSSL_CONF: the wire shows another group."""
    try:
        it = started.get("plain", lambda: servers.nginx(one_world))
    except Absent as absent:
        pytest.skip(str(absent))
    seen = fetch(one_world, it.port, clients.curl)
    table.note(SERVER_TABLE, "control: nginx alone", "curl alone",
               f"0x{seen.group():04X}")
    # Where the machine's own OpenSSL has the group, only the counters can tell.
    assert seen.group() != wire.HYBRID or seen.client_hellos()[0].shares[0][0] == \
        wire.HYBRID


def test_control_a_daemon_that_is_away(one_world, one_daemon, started):
    """require and no daemon: no handshake, so that the ones above came from it."""
    env = one_world.provider_env("/nonexistent/socket", name="away.cnf", **REQUIRE)
    try:
        it = servers.nginx(one_world, env)
        with pytest.raises(clients.Failed):
            fetch(one_world, it.port, clients.openssl_35)
    except Absent as absent:
        pytest.skip(str(absent))
