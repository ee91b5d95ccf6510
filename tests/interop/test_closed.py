# SPDX-License-Identifier: Apache-2.0
"""What a program does when the provider is not there, though it is configured: refuse, or
go on without a word. docs/proxies.md says which; this is where it comes from.
"""

import subprocess

import pytest

import clients
import servers
import table
import wire
from others import Absent, find
from test_matrix import stunnel

TABLE = "provider configured, its module missing"
NAMED = servers.GROUPS
NGINX_NAMED = NAMED.replace("P-256", "prime256v1")
WAYS = ("groups in openssl.cnf alone", "groups named in the program")


@pytest.fixture
def env(world):
    """As for the provider, but OpenSSL finds no module of that name."""
    found = world.provider_env("/nonexistent/socket")
    found["OPENSSL_MODULES"] = str(world.path)
    return found


def group_of(world, it):
    with wire.Relay(it.port) as relay:
        clients.openssl_35(world, relay.port)
        return relay.last().group()


def outcome(world, start):
    """"refuses", or the group that it went on with."""
    try:
        it = start()
    except AssertionError:
        return "refuses"
    group = group_of(world, it)
    it.stop()
    return f"goes on with 0x{group:04X}"


def server_cases(world, env):
    return {
        "nginx server": (
            lambda: servers.nginx(world, env),
            lambda: servers.nginx(world, env, extra=f"ssl_ecdh_curve {NGINX_NAMED};")),
        "HAProxy bind": (
            lambda: servers.haproxy(world, env),
            lambda: servers.haproxy(world, env, bind=f"curves {NAMED}")),
        "openssl s_server": (
            lambda: servers.s_server(world, env),
            lambda: servers.s_server(world, env, args=["-groups", NAMED])),
        "stunnel": (None, lambda: stunnel(world, env)),
    }


def client_outcome(world, step):
    try:
        it = servers.s_server(world, None, "debian-13")
        with wire.Relay(it.port) as relay:
            step(relay.port)
            return f"goes on with 0x{relay.last().group():04X}"
    except (AssertionError, clients.Failed):
        return "refuses"


def through(world, start):
    """A proxy towards a port, asked once."""
    def step(port):
        it = start(port)
        clients.run(world, ["curl", "-sS", "--fail", "--noproxy", "*",
                            f"http://127.0.0.1:{it.port}/data"])
    return step


def client_cases(world, env):
    return {
        "curl": (
            lambda port: clients.curl(world, port, env),
            lambda port: clients.curl(world, port, env, args=("--curves", NAMED))),
        "openssl s_client": (
            lambda port: clients.s_client(world, port, env),
            lambda port: clients.s_client(world, port, env, args=("-groups", NAMED))),
        "nginx proxy_pass": (
            through(world, lambda port: servers.nginx_proxy(world, port, env, extra="")),
            through(world, lambda port: servers.nginx_proxy(world, port, env))),
        "HAProxy server": (
            through(world, lambda port: servers.haproxy_backend(world, port, env)), None),
    }


EXPECTED = {name: ("goes on with 0x001D", "refuses") for name in (
    "nginx server", "HAProxy bind", "openssl s_server", "curl", "openssl s_client",
    "nginx proxy_pass", "HAProxy server", "stunnel")}


@pytest.mark.parametrize("program", EXPECTED)
def test_without_the_module(world, env, program):
    if servers.has_the_group():
        pytest.skip("this machine's OpenSSL has the group by itself")
    servers_here, clients_here = server_cases(world, env), client_cases(world, env)
    for number, way in enumerate(WAYS):
        expected = EXPECTED[program][number]
        if program in servers_here:
            start = servers_here[program][number]
            ask = start and (lambda start=start: outcome(world, start))
        else:
            step = clients_here[program][number]
            ask = step and (lambda step=step: client_outcome(world, step))
        if not ask:
            table.note(TABLE, program, way, "takes none there")
            continue
        try:
            found = ask()
        except Absent as absent:
            pytest.skip(str(absent))
        table.note(TABLE, program, way, found)
        assert found == expected


def test_nginx_t_without_the_environment(world):
    """A check or reload from a shell, a cron job or certbot has no OPENSSL_CONF: with
    the group named in nginx.conf it fails, and with the one of openssl.cnf it does not."""
    if servers.has_the_group():
        pytest.skip("this machine's OpenSSL has the group by itself")
    try:
        program = find("host", "nginx")
    except Absent as absent:
        pytest.skip(str(absent))
    env = world.provider_env("/nonexistent/socket")
    for named, expected in ((True, 1), (False, 0)):
        port = servers.free_port()
        extra = f"ssl_ecdh_curve {NGINX_NAMED};" if named else ""
        config = servers.nginx_config(world, port, servers.nginx_tls(world, port,
                                                                     extra=extra))
        for environment, status in ((env, 0), ({}, expected)):
            said = subprocess.run([program, "-t", "-e", "stderr", "-c", config],
                                  check=False, capture_output=True, text=True,
                                  env=dict(world.plain_env, **environment))
            assert said.returncode == status, said.stderr
