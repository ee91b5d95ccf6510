# SPDX-License-Identifier: Apache-2.0
"""Memory errors of the provider in its hosts: AddressSanitizer under nginx and HAProxy,
valgrind on s_server. The runtime of the sanitizer comes by LD_PRELOAD, since the hosts
are as their packages have them.
"""

import os
import re
import signal
import subprocess

import pytest

import clients
import servers
import table
import wire
from others import LONG, Absent, find, need
from test_failures import ROUTE, Load, start, wait_served

# With a sanitizer in it a proxy takes some ten milliseconds a handshake.
HANDSHAKES = 10000 if LONG else 300
TABLE = "AddressSanitizer in the provider"


@pytest.mark.parametrize("proxy", ["nginx", "HAProxy", "HAProxy, chroot"])
def test_aborts_reloads_restarts(proxy, world, daemon):
    if servers.SANITIZER != "address":
        pytest.skip("needs a build with a sanitizer")
    env = world.provider_env(daemon.path, **ROUTE)
    more = {"workers": 2} if proxy == "nginx" else {"args": ("-W", "-db")}
    it = start(proxy, world, daemon, env, **more)
    worker = servers.wait_for(it.workers, 60, "a worker")[0]
    maps = open(f"/proc/{worker}/maps", encoding="ascii").read()
    assert "mlkemd.so" in maps and "asan" in maps, "nothing is looked at"
    with Load(world, it.port, mode=["abort"]) as load:
        for turn in range(6):
            load.more(HANDSHAKES // 6)
            if turn % 3 == 0:
                old = it.workers()
                os.kill(it.pid, signal.SIGHUP if proxy == "nginx" else signal.SIGUSR2)
                servers.wait_for(lambda: it.workers() and
                                 not set(old) & set(it.workers()), 120, "new workers")
            elif turn % 3 == 1:
                daemon.kill()
                load.more(HANDSHAKES // 12)
                daemon.start()
            else:
                daemon.freeze()
                load.more(HANDSHAKES // 12)
                daemon.thaw()
        wait_served(load, daemon)
    it.stop()  # reads its log for reports
    table.note(TABLE, proxy, "handshakes", str(load.last["good"]))
    table.note(TABLE, proxy, "aborted", str(load.last["aborted"]))


def test_control_a_report_is_noticed(world):
    """The planted bugs of ../lib, by the same eyes."""
    if servers.SANITIZER != "address":
        pytest.skip("needs a build with a sanitizer")
    program = os.path.join(os.environ["MLKEMD_BUILD"], "tests", "lib", "planted_bugs")
    if not os.path.exists(program):
        pytest.skip("planted_bugs was not built")
    it = servers.Running(world, "planted", [program, "overflow"], 0, listening=None)
    it.process.wait(60)
    with pytest.raises(AssertionError, match="Sanitizer"):
        it.stop()
    world.running.remove(it)


def test_valgrind(world, daemon):
    """s_server with full handshakes, resumptions, bad shares and aborts."""
    if servers.SANITIZER:
        pytest.skip("valgrind and a sanitizer do not go together")
    valgrind = need("host", "valgrind")
    openssl = need("host", "openssl")
    find_client = need("debian-13", "openssl")
    assert find_client
    log = world.path / "valgrind.log"
    env = world.provider_env(daemon.path, **dict(ROUTE, deadline="10s"))
    it = servers.s_server(world, env, prefix=[
        valgrind, "-q", "--leak-check=full", "--show-leak-kinds=definite",
        f"--log-file={log}", "--num-callers=30", "--trace-children=no"])
    assert openssl
    rounds = 40 if LONG else 4
    for n in range(rounds):
        with wire.Relay(it.port) as relay:
            clients.openssl_35(world, relay.port)
            assert relay.last().group() == wire.HYBRID
        wire.ask(it.port, wire.client_hello([(wire.HYBRID, b"\xff" * 1216)]), 120)
        if n % 2:
            daemon.kill()
            clients.openssl_35(world, it.port)
            daemon.start()
    env = world.provider_env(daemon.path, name="client.cnf", **ROUTE)
    said = subprocess.run([
        valgrind, "-q", "--leak-check=full", "--show-leak-kinds=definite",
        f"--log-file={log}.client", "--num-callers=30", openssl, "s_client", "-quiet",
        "-connect", f"127.0.0.1:{it.port}", "-servername", "localhost", "-CAfile",
        "ca.pem"], input=clients.REQUEST, cwd=world.path, check=False,
        capture_output=True, timeout=300, env=dict(world.plain_env, **env))
    assert clients.body(said.stdout) == world.data
    maps = open(f"/proc/{it.pid}/maps", encoding="ascii").read()
    assert "mlkemd.so" in maps, "nothing is looked at"
    it.stop()
    for path in (log, world.path / "valgrind.log.client"):
        text = path.read_text()
        # A block of lines an error; those of other people's code are not ours to mend.
        blocks = re.split(r"^==\d+== *$", text, flags=re.M)
        ours = [block for block in blocks if "mlkemd.so" in block]
        assert not ours, ours[0]
    table.note("valgrind", "s_server and s_client", "errors in mlkemd.so", "0")


def test_control_valgrind_sees_a_leak(world):
    """A leak in a preloaded module has the name of that module in its report."""
    valgrind = need("host", "valgrind")
    if servers.SANITIZER:
        pytest.skip("valgrind and a sanitizer do not go together")
    try:
        cc = find("host", "gcc")
    except Absent as absent:
        pytest.skip(str(absent))
    source = world.file("leak.c", "#include <stdlib.h>\n__attribute__((constructor)) "
                        "static void leak(void) { char *volatile p = malloc(100); "
                        "p = 0; (void)p; }\n")
    module = world.path / "mlkemd.so"
    servers.run(cc, "-g", "-shared", "-fPIC", "-o", module, source)
    log = world.path / "control.log"
    servers.run(valgrind, "-q", "--leak-check=full", "--trace-children=no",
                f"--log-file={log}", find("host", "openssl"), "version",
                env=dict(world.plain_env, LD_PRELOAD=str(module)))
    assert "mlkemd.so" in log.read_text() or "leak.c" in log.read_text()
