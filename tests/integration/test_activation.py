# SPDX-License-Identifier: Apache-2.0
"""What a service manager passes and waits for: sockets, WATCHDOG=1; and the sandbox."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

from daemon import MLKEMD, SLOW, Daemon, wait_for
from fed import Fed
from peer import Peer, pb
from scrape import ask

plain_only = pytest.mark.skipif(os.environ["MLKEMD_TEST_HOOKS"] == "1",
                                reason="a build for tests is left out of the sandbox")

# Puts what it is given to 3, 4 ..., says so to the process that it becomes.
PASS = """
import os, sys
fds, names, pid = eval(sys.argv[1]), sys.argv[2], sys.argv[3]
for i, fd in enumerate(fds):
    os.dup2(fd, 3 + i)
os.environ["LISTEN_FDS"] = sys.argv[4] or str(len(fds))
os.environ["LISTEN_FDNAMES"] = names
os.environ["LISTEN_PID"] = pid or str(os.getpid())
os.execv(sys.argv[5], sys.argv[5:])
"""


class Passed:
    """mlkemd with sockets that were made for it."""

    def __init__(self, directory, sockets, names, pid="", count="", settings=""):
        self.directory = directory
        config = directory / "mlkemd.conf"
        config.write_text(f"[socket]\npath = {directory}/own.sock\n"
                          f"control-path = {directory}/own-control.sock\n" + settings)
        self.log_path = directory / "log"
        # Far from 3, so that none is overwritten before it is put there.
        far = [os.dup2(one.fileno(), 100 + i) for i, one in enumerate(sockets)]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PASS, repr(far), names, str(pid), str(count),
                 MLKEMD, "--config", str(config)],
                pass_fds=far, stderr=log, stdout=log, stdin=subprocess.DEVNULL)
        for fd in far:
            os.close(fd)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30 * SLOW)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def ready(self):
        wait_for(lambda: "ready:" in self.log() or self.process.poll() is not None,
                 30 * SLOW, "ready")
        assert self.process.poll() is None, self.log()

    def failed(self):
        assert self.process.wait(30 * SLOW) == 1, self.log()
        assert "listen-failed: passed descriptor" in self.log() or \
            "listen-failed: LISTEN_FDS" in self.log()
        return self.log()


def listening(path, kind=socket.SOCK_STREAM):
    one = socket.socket(socket.AF_UNIX, kind)
    one.bind(str(path))
    if kind == socket.SOCK_STREAM:
        one.listen(64)
    return one


def test_all_three_are_served(tmp_path):
    data, control = tmp_path / "d.sock", tmp_path / "c.sock"
    http = socket.create_server(("127.0.0.1", 0))
    with listening(data) as one, listening(control) as two, http as three:
        with Passed(tmp_path, [one, two, three], "data:control:metrics") as daemon:
            daemon.ready()
            with Peer(str(data)) as peer:
                assert peer.call("ping").status == pb.OK
            with Peer(str(control)) as peer:
                assert peer.call("stats").status == pb.OK
            assert ask(http.getsockname(), "/healthz")[0] == 200
            # They are the service manager's: what they are bound to stays.
            assert not (tmp_path / "own.sock").exists()
            environ = pathlib.Path(f"/proc/{daemon.process.pid}/environ")
            assert environ.exists()
            daemon.process.terminate()
            assert daemon.process.wait(30 * SLOW) == 0, daemon.log()
        assert data.exists() and control.exists()
        assert "stale-socket" not in daemon.log()


def test_who_connects_between_two_daemons_waits(tmp_path):
    data = tmp_path / "d.sock"
    with listening(data) as one:
        with Passed(tmp_path, [one], "data") as daemon:
            daemon.ready()
        waiting = socket.socket(socket.AF_UNIX)
        waiting.connect(str(data))
        with Passed(tmp_path, [one], "data") as daemon:
            daemon.ready()
            peer = Peer.__new__(Peer)
            peer.socket, peer.buffer, peer.next_id = waiting, bytearray(), 1
            waiting.settimeout(20 * SLOW)
            assert peer.hello("the one that waited").status == pb.OK
            peer.close()


def test_what_is_for_another_process_is_left_alone(tmp_path):
    with listening(tmp_path / "d.sock") as one:
        with Passed(tmp_path, [one], "data", pid=1) as daemon:
            daemon.ready()
            with Peer(str(tmp_path / "own.sock")) as peer:
                assert peer.call("ping").status == pb.OK


@pytest.mark.parametrize("count", ["0", "-1", "x", "99999999999999999999"])
def test_a_count_that_makes_no_sense_is_none(tmp_path, count):
    with listening(tmp_path / "d.sock") as one:
        with Passed(tmp_path, [one], "data", count=count) as daemon:
            daemon.ready()
            assert (tmp_path / "own.sock").exists()


def test_more_than_there_can_be(tmp_path):
    with listening(tmp_path / "d.sock") as one:
        with Passed(tmp_path, [one], "data", count="999") as daemon:
            assert "at most 16" in daemon.failed()


@pytest.mark.parametrize("names", ["data:data", "dat:control", ":", "data",
                                   "data:" + "x" * 300])
def test_names_that_make_no_sense(tmp_path, names):
    with listening(tmp_path / "d.sock") as one, listening(tmp_path / "c.sock") as two:
        with Passed(tmp_path, [one, two], names) as daemon:
            daemon.failed()


def bad_sockets(tmp_path):
    unbound = socket.socket(socket.AF_UNIX)
    tcp = socket.create_server(("127.0.0.1", 0))
    datagram = listening(tmp_path / "dg.sock", socket.SOCK_DGRAM)
    regular = open(tmp_path / "file", "wb")
    return {"unbound": unbound, "tcp": tcp, "datagram": datagram, "file": regular}


@pytest.mark.parametrize("kind", ["unbound", "tcp", "datagram", "file"])
@pytest.mark.parametrize("name", ["data", "control", "metrics"])
def test_descriptors_of_the_wrong_kind(tmp_path, kind, name):
    sockets = bad_sockets(tmp_path)
    try:
        with Passed(tmp_path, [sockets[kind]], name) as daemon:
            if (kind, name) == ("tcp", "metrics"):
                daemon.ready()
            else:
                assert "socket that listens" in daemon.failed()
    finally:
        for one in sockets.values():
            one.close()


def test_a_lost_socket_of_the_service_manager_is_told_of(tmp_path):
    data = tmp_path / "d.sock"
    with listening(data) as one:
        with Passed(tmp_path, [one], "data") as daemon:
            daemon.ready()
            data.unlink()
            wait_for(lambda: "socket-lost" in daemon.log(), 30 * SLOW, "socket-lost")
            assert "restart its .socket unit" in daemon.log()
            assert not data.exists()


# ---------------------------------------------------------------- the watchdog

def test_the_watchdog_is_fed_while_shards_turn(tmp_path):
    fed = Fed(tmp_path)
    with fed.daemon:
        fed.wait(2)
        fed.daemon.freeze()
        fed.count(0.3)
        assert fed.count(2) == 0
        fed.daemon.thaw()
        fed.wait(1)


# ---------------------------------------------------------------- the sandbox

def status_of(pid, field):
    """One field of every thread's status."""
    return [line.split(":")[1].strip()
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for line in (task / "status").read_text().splitlines()
            if line.startswith(field + ":")]


@plain_only
def test_every_thread_is_in_the_sandbox():
    with Daemon({"daemon.shards": "3", "daemon.sandbox": "require"}) as daemon:
        assert status_of(daemon.pid, "Seccomp") == ["2"] * 4
        assert status_of(daemon.pid, "NoNewPrivs") == ["1"] * 4
        limits = pathlib.Path(f"/proc/{daemon.pid}/limits").read_text()
        assert "Max core file size        0 " in limits
        assert os.stat(f"/proc/{daemon.pid}/environ").st_uid == 0


@plain_only
def test_the_sandbox_can_be_left():
    with Daemon({"daemon.sandbox": "off"}) as daemon:
        assert set(status_of(daemon.pid, "Seccomp")) == {"0"}


@plain_only
def test_what_is_done_late_still_can_be_done():
    """In the sandbox: reload, self-test, drain, and a data socket that was removed."""
    with Daemon({"daemon.sandbox": "require"}) as daemon:
        for op in ("reload", "self_test", "drain", "resume", "stats"):
            assert daemon.admin(op).status == pb.OK, op
        os.unlink(daemon.path)
        wait_for(lambda: os.path.exists(daemon.path), 30 * SLOW, "bound again")
        with daemon.peer() as peer:
            assert peer.call("ping").status == pb.OK
