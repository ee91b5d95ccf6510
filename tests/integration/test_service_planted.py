# SPDX-License-Identifier: Apache-2.0
"""What keeps a service alive and its process in bounds, with faults planted: a shard that
hangs, a watchdog that is blind, an intruder's system calls, a client that drips.
"""

import signal
import socket
import time

import pytest

from daemon import SANITIZER, Daemon, StartFailed, wait_for
from fed import Fed
from peer import Peer
from scrape import ask, figures
from test_metrics import free_port


def stall(fed):
    """The self-test of a shard with that fault does not end."""
    peer = Peer(fed.daemon.control)
    peer.send(peer.request("self_test"))
    wait_for(lambda: "shard-stuck: shard 0" in fed.daemon.log(), 60, "shard-stuck")
    return peer


@pytest.mark.parametrize("fault", ["shard-stall"])
def test_planted_a_shard_that_hangs_is_seen_and_starves_the_watchdog(tmp_path, fault):
    address = ("127.0.0.1", free_port())
    fed = Fed(tmp_path, {"metrics.listen": f"127.0.0.1:{address[1]}"},
              fault=fault)
    with fed.daemon:
        assert ask(address, "/healthz")[0] == 200
        peer = stall(fed)
        assert ask(address, "/healthz")[::2] == (503, b"a shard does not turn\n")
        assert ask(address, "/readyz")[0] == 503
        first = figures(address).of("mlkemd_shard_turns_total")
        while fed.next():
            pass
        assert fed.count(2.5) == 0
        assert figures(address).of("mlkemd_shard_turns_total") == first
        peer.close()
        fed.daemon.kill()


@pytest.mark.parametrize("fault", ["watchdog-blind"])
def test_planted_a_blind_watchdog_does_not_notice(tmp_path, fault):
    fed = Fed(tmp_path, fault=f"shard-stall,{fault}")
    with fed.daemon:
        peer = stall(fed)
        while fed.next():
            pass
        fed.wait(2)
        peer.close()
        fed.daemon.kill()


@pytest.mark.parametrize("fault", ["metrics-http-drips"])
def test_planted_who_drips_stays(fault):
    port = free_port()
    with Daemon({"metrics.listen": f"127.0.0.1:{port}"},
                env={"MLKEMD_FAULT": fault}):
        with socket.create_connection(("127.0.0.1", port), 30) as raw:
            raw.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
            raw.settimeout(0.3)
            end = time.monotonic() + 10
            while time.monotonic() < end:
                raw.sendall(b"x")
                try:
                    assert raw.recv(1024)
                except socket.timeout:
                    pass


# What an intruder in the process would try; what it comes to.
TRIED = {"execve": "killed", "ptrace": "killed", "fork": "refused", "inet": "refused",
         "write": "refused", "code": "refused"}


def try_in_daemon(call, sandbox):
    """How the daemon that tries a call ends: "killed", "refused" or "let through"."""
    fault = f"sandbox-{call}" + (",sandbox-on" if sandbox else "")
    try:
        daemon = Daemon(env={"MLKEMD_FAULT": fault})
    except StartFailed as failed:
        assert failed.status == -signal.SIGSYS, (failed.status, failed.log)
        return "killed"
    with daemon:
        log = daemon.log()
        if "sandbox-try: Operation not permitted" in log:
            return "refused"
        assert "sandbox-try: it was let through" in log, log
        return "let through"


@pytest.mark.skipif(bool(SANITIZER), reason="a sanitizer makes such calls of its own")
@pytest.mark.parametrize("call", TRIED, ids=[f"sandbox-{call}" for call in TRIED])
def test_planted_what_is_forbidden(call):
    assert try_in_daemon(call, sandbox=True) == TRIED[call]


@pytest.mark.parametrize("call", ["inet", "write", "code"])
def test_control_without_the_sandbox_it_can_be_done(call):
    assert try_in_daemon(call, sandbox=False) == "let through"
