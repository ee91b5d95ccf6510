# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around a proxy behind the provider: no handshake on the server side may
fail for it. Every test runs for nginx and for HAProxy, under a load that counts.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import clients
import servers
import table
import wire
from others import LONG, Absent, find

TABLE = "failure, under load"
# A deadline that a busy machine keeps: with each one missed the daemon is left alone twice
# as long, up to half a minute.
ROUTE = {"route": "daemon", "deadline": "50ms"}
MORE = 300 if LONG else 40  # handshakes that have to end well after each event


class Load:
    """load.py, against a port, behind the provider with the local route."""

    def __init__(self, world, port, threads=3, mode=()):
        env = world.provider_env("/nonexistent/socket", name="load.cnf", route="local")
        self.process = subprocess.Popen(
            [sys.executable, pathlib.Path(__file__).parent / "load.py", str(port),
             world.path / "ca.pem", str(threads), *mode], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=dict(world.plain_env, **env))

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        if kind is None:
            self.last = self.end()
        self.process.kill()
        self.process.wait()

    def counts(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def more(self, n=None):
        """Waits until so many more handshakes ended well, beside those in flight."""
        start = self.counts()["good"]
        servers.wait_for(lambda: self.counts()["good"] >= start + (n or MORE), 120,
                         f"{n or MORE} more handshakes: {self.counts()}")

    def end(self):
        self.process.stdin.close()
        last = json.loads(self.process.stdout.readlines()[-1])
        assert last["failed"] == 0, last
        assert last["good"] > 0
        return last


@pytest.fixture(params=["nginx", "HAProxy", "HAProxy, chroot"])
def proxy(request):
    return request.param


def haproxy_in_chroot(world, daemon, env, **more):
    """In a mount namespace of its own, so that the bind mount that docs/proxies.md asks
    systemd for is made here and gone with the process."""
    if not servers.ROOT:
        pytest.skip("a chroot needs root")
    jail = world.path / "jail"
    inside = jail / daemon.directory.relative_to("/")
    inside.mkdir(parents=True, exist_ok=True)
    script = 'mount --bind "$1" "$2" || exit 77; shift 2; exec "$@"'
    prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh",
              daemon.directory, inside]
    if subprocess.run([*map(str, prefix), "true"], check=False,
                      capture_output=True).returncode:
        pytest.skip("no mount namespace can be had here")
    return servers.haproxy(world, env, chroot=jail, prefix=prefix, **more)


def start(proxy, world, daemon, env, **more):
    try:
        if proxy == "nginx":
            return servers.nginx(world, env, **more)
        if proxy == "HAProxy":
            return servers.haproxy(world, env, **more)
        return haproxy_in_chroot(world, daemon, env, **more)
    except Absent as absent:
        pytest.skip(str(absent))


def check_hybrid(world, port):
    """One handshake on the wire."""
    try:
        with wire.Relay(port) as relay:
            clients.openssl_35(world, relay.port)
            assert relay.last().group() == wire.HYBRID
    except Absent:
        pass  # the load has proved that handshakes end well


def encapsulated(daemon):
    return daemon.stats()["items_encaps_total"]


def wait_served(load, daemon):
    """Until the daemon is used again: the breaker tries once a second or slower."""
    before = encapsulated(daemon)
    servers.wait_for(lambda: encapsulated(daemon) > before, 90, "the daemon is used")


@contextlib.contextmanager
def scene(proxy, world, daemon, what, **more):
    """A proxy, a load that is served by the daemon, and what is noted of the end."""
    env = world.provider_env(daemon.path, **ROUTE)
    it = start(proxy, world, daemon, env, **more)
    with Load(world, it.port) as load:
        load.more()
        wait_served(load, daemon)
        yield it, load
    table.note(TABLE, what, proxy, f"0 of {load.last['good']} failed")


def test_daemon_frozen(proxy, world, daemon):
    with scene(proxy, world, daemon, "daemon stopped (SIGSTOP)") as (it, load):
        daemon.freeze()
        load.more()
        check_hybrid(world, it.port)
        daemon.thaw()
        wait_served(load, daemon)


def test_daemon_killed(proxy, world, daemon):
    with scene(proxy, world, daemon, "daemon killed (kill -9), later back") as (it, load):
        daemon.kill()
        load.more()
        check_hybrid(world, it.port)
        daemon.start()
        wait_served(load, daemon)


def test_daemon_restarted(proxy, world, daemon):
    with scene(proxy, world, daemon, "daemon restarted, 5 times") as (_, load):
        for _ in range(5):
            daemon.stop()
            daemon.start()
            load.more(MORE // 4)
        wait_served(load, daemon)


def test_socket_removed(proxy, world, daemon):
    with scene(proxy, world, daemon, "socket removed, daemon gone") as (it, load):
        daemon.kill()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(daemon.path)
        load.more()
        check_hybrid(world, it.port)


def worker_of(it):
    """The process that shakes hands."""
    return (it.workers() or [None])[0] if it.name == "nginx" else it.pid


def lowest_free_descriptor(pid):
    """Once nothing is open any more of the connections that waited for its start."""
    def listing():
        return sorted(int(fd) for fd in os.listdir(f"/proc/{pid}/fd"))

    def rests():
        before = listing()
        time.sleep(0.5)
        return before == listing() and before
    taken = servers.wait_for(rests, 60, "no descriptor comes or goes")
    return next(n for n in range(10000) if n not in taken)


def soft_limit(pid):
    for line in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines():
        if line.startswith("Max open files"):
            return int(line.split()[3])
    raise KeyError(pid)


def limit_descriptors(pid, soft):
    """The worker's own limit, changed by its own user, who alone needs no capability."""
    who = {}
    if servers.ROOT:
        user, group = servers.as_user()
        who = {"user": user, "group": group, "extra_groups": []}
    subprocess.run(["prlimit", "--pid", str(pid), f"--nofile={soft}:"], check=True, **who)


def test_no_descriptor_left(proxy, world, daemon):
    """Room for one connection, and none for a socket to the daemon."""
    env = world.provider_env(daemon.path, **ROUTE)
    it = start(proxy, world, daemon, env)
    pid = servers.wait_for(lambda: worker_of(it), 30, "a worker")
    time_out = 60
    before = encapsulated(daemon)
    limit = soft_limit(pid)
    limit_descriptors(pid, lowest_free_descriptor(pid) + 1)
    for _ in range(3):
        hello = wire.client_hello([(wire.HYBRID, good_share())])
        seen = wire.ask(it.port, hello, time_out)
        assert seen.group() == wire.HYBRID
    assert encapsulated(daemon) == before, "there was a descriptor"
    limit_descriptors(pid, limit)
    with Load(world, it.port) as load:
        wait_served(load, daemon)
    table.note(TABLE, "no descriptor left (EMFILE)", proxy, "0 of 3 failed")


def good_share():
    from test_wire import good_share as make
    return make()


class SlowSocket:
    """Between provider and daemon: every answer comes late."""

    def __init__(self, daemon, delay):
        self.target, self.delay = daemon.path, delay
        self.path = str(daemon.directory / "slow.sock")  # the chroot has it too
        self.answers = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o666)
        self.listener.listen(100)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            for pair in ((client, server, 0), (server, client, self.delay)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink, delay):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if delay:
                    time.sleep(delay)
                    self.answers += 1
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


def test_slow_daemon(proxy, world, daemon):
    """Slower than the deadline: computed here. Slower, but in time: used."""
    slow = SlowSocket(daemon, 0.05)
    env = world.provider_env(slow.path, route="daemon")
    it = start(proxy, world, daemon, env)
    with Load(world, it.port) as load:
        load.more()
        check_hybrid(world, it.port)
    table.note(TABLE, "daemon slower than the deadline", proxy,
               f"0 of {load.last['good']} failed")
    it.stop()
    env = world.provider_env(slow.path, route="daemon", require="yes", deadline="10s")
    it = start(proxy, world, daemon, env)
    before = encapsulated(daemon)
    with Load(world, it.port) as load:
        load.more(MORE // 4)
    assert encapsulated(daemon) > before
    slow.listener.close()


IMPOSTOR = """
import os, socket, sys, threading
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
listener.listen(100)
print("ready", flush=True)
def one(conn):
    while data := conn.recv(65536):
        print(len(data), flush=True)
while True:
    threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()
"""


def test_wrong_owner(proxy, world, daemon):
    """Somebody else's socket gets no byte. Control: it does once it is trusted."""
    if not servers.ROOT:
        pytest.skip("needs root, to be somebody else")
    home = daemon.directory / "impostor"  # in the chroot's bind mount too
    home.mkdir()
    os.chown(home, 65533, 65533)
    path = home / "s.sock"
    log = world.path / "impostor.log"
    with open(log, "wb") as out:
        impostor = subprocess.Popen([sys.executable, "-c", IMPOSTOR, path], stdout=out,
                                    user=65533, group=65533, extra_groups=[])
    try:
        servers.wait_for(lambda: "ready" in log.read_text(), 30, "the impostor listens")
        env = world.provider_env(path, route="daemon")
        it = start(proxy, world, daemon, env)
        with Load(world, it.port) as load:
            load.more()
            check_hybrid(world, it.port)
        assert log.read_text().split() == ["ready"]
        table.note(TABLE, "socket of a wrong owner", proxy,
                   f"0 of {load.last['good']} failed")
        it.stop()
        env = world.provider_env(path, route="daemon", server_uid="65533")
        it = start(proxy, world, daemon, env)
        with Load(world, it.port) as load:
            load.more(5)
        assert len(log.read_text().split()) > 1
    finally:
        impostor.kill()
        impostor.wait()


# Reloads


def test_nginx_reload(world, daemon):
    with scene("nginx", world, daemon, "nginx -s reload, 5 times", workers=2) as (it, load):
        for _ in range(5):
            old = it.workers()
            os.kill(it.pid, signal.SIGHUP)
            servers.wait_for(lambda: not set(old) & set(it.workers()), 60,
                             "new workers only")
            load.more(MORE // 4)
        check_hybrid(world, it.port)


def test_nginx_reload_while_the_daemon_is_frozen(world, daemon):
    """Old workers must not hang in a wait for it."""
    with scene("nginx", world, daemon, "nginx -s reload, daemon stopped") as (it, load):
        daemon.freeze()
        old = it.workers()
        os.kill(it.pid, signal.SIGHUP)
        servers.wait_for(lambda: not set(old) & set(it.workers()), 60, "old workers gone")
        load.more()
        daemon.thaw()


def upgrade(it):
    """A new binary for nginx, the old one gone (nginx.org, "Upgrading Executable")."""
    old = it.pid
    os.kill(old, signal.SIGUSR2)
    servers.wait_for(lambda: it.pid != old, 60, "a new master")
    servers.wait_for(it.workers, 60, "its workers")
    os.kill(old, signal.SIGQUIT)
    servers.wait_for(lambda: not servers.exists(old), 60, "the old master is gone")


def test_nginx_upgrade(world, daemon):
    with scene("nginx", world, daemon, "nginx, new binary (USR2)",
               background=True) as (it, load):
        upgrade(it)
        load.more()
        check_hybrid(world, it.port)
        wait_served(load, daemon)


def test_nginx_upgrade_without_the_env_line(world, daemon):
    """What docs/proxies.md warns of: nginx hands no environment to its new binary, unless
    its configuration says so, and goes on without the provider."""
    try:
        find("debian-13", "openssl")
        it = servers.nginx(world, world.provider_env(daemon.path),
                           background=True, keep="")
    except Absent as absent:
        pytest.skip(str(absent))
    with wire.Relay(it.port) as relay:
        clients.openssl_35(world, relay.port)
        assert relay.last().group() == wire.HYBRID
        upgrade(it)
        clients.openssl_35(world, relay.port)
        # A machine with OpenSSL 3.5 has the group anyway.
        assert relay.last().group() != wire.HYBRID or servers.has_the_group()


@pytest.mark.parametrize("proxy", ["HAProxy", "HAProxy, chroot"], indirect=True)
def test_haproxy_sf(proxy, world, daemon):
    """A new process takes the listeners over (-x) and asks the old one to finish."""
    env = world.provider_env(daemon.path, **ROUTE)
    old = start(proxy, world, daemon, env)
    with Load(world, old.port) as load:
        load.more()
        for _ in range(3):
            stats = world.path / f"haproxy-{old.port}.sock"
            new = start(proxy, world, daemon, env, port=old.port, args=[
                "-db", "-x", str(stats), "-sf", str(old.pid)])
            old.process.wait(60)
            old.ended = True
            load.more(MORE // 4)
            old = new
        check_hybrid(world, old.port)
        wait_served(load, daemon)
    table.note(TABLE, "HAProxy -sf, 3 times", proxy, f"0 of {load.last['good']} failed")


def test_haproxy_master_reload(world, daemon):
    """As systemd does it: SIGUSR2 to the master."""
    with scene("HAProxy", world, daemon, "HAProxy -W, SIGUSR2, 3 times",
               args=("-W", "-db")) as (it, load):
        for _ in range(3):
            old = it.workers()
            os.kill(it.pid, signal.SIGUSR2)
            servers.wait_for(lambda: it.workers() and not set(old) & set(it.workers()),
                             60, "new workers only")
            load.more(MORE // 4)
        check_hybrid(world, it.port)
        wait_served(load, daemon)


def test_control_the_load_notices(world, daemon):
    """A proxy that goes away is counted."""
    it = start("nginx", world, daemon, world.provider_env(daemon.path))
    with pytest.raises(AssertionError):
        with Load(world, it.port) as load:
            load.more()
            it.stop()
            servers.wait_for(lambda: load.counts()["failed"], 60, "failures")
