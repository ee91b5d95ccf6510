# SPDX-License-Identifier: Apache-2.0
"""Who may come in: decided from the socket's own credentials, refused by default.

Clients of other users are this very program after setuid: so only root can run these.
"""

import os
import socket
import time

import pytest

from daemon import SLOW, Daemon, StartFailed, wait_for
from peer import Closed, Peer, frame, pb

NOBODY = 65534
STRANGER_GROUP = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0,
                                reason="only root can run clients as other users")


def as_user(path, uid=NOBODY, gid=NOBODY, groups=()):
    """Says Hello as another user. Returns (status, number of bytes of a message), or
    None if the connection was closed without an answer."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        text = b"failed"
        try:
            os.setgroups(list(groups))
            os.setgid(gid)
            os.setuid(uid)
            with Peer(path, hello=False) as peer:
                try:
                    answer = peer.hello()
                    text = b"%d %d" % (answer.status, len(answer.message))
                    if answer.status == pb.OK:
                        text = b"%d %d" % (peer.call("ping").status, 0)
                except Closed:
                    text = b"closed"
        finally:
            os.write(theirs, text)
            os._exit(0)
    os.close(theirs)
    os.waitpid(pid, 0)
    text = os.read(ours, 100).decode()
    os.close(ours)
    if text == "closed":
        return None
    status, n = map(int, text.split())
    return status, n


def denied(got):
    return got is not None and got[0] == pb.DENIED and got[1] > 0


@needs_root
def test_a_stranger_is_told_so():
    """DENIED for Hello, and one line that names uid and what to add."""
    with Daemon() as daemon:
        start = time.monotonic()
        assert denied(as_user(daemon.path))
        wait_for(lambda: "65534" in daemon.log(), 5, "the line")
        (line,) = [line for line in daemon.log().splitlines() if "65534" in line]
        assert "allow-users" in line and "nobody" in line, line
        for _ in range(30):
            assert denied(as_user(daemon.path))
        assert daemon.stats()["connections_denied_total"] == 31
        lines = [line for line in daemon.log().splitlines() if "65534" in line]
        assert len(lines) <= 2 + time.monotonic() - start, "one line a second"
        with daemon.peer() as peer:
            assert peer.call("ping").status == pb.OK


@needs_root
def test_strangers_take_no_place_of_others():
    """Of 16 places strangers, who say nothing, get 3: others come in all the while."""
    with Daemon({"limits.max-connections": "16", "limits.user-share": "100%",
                 "limits.hello-timeout": "60s"}) as daemon:
        ours, theirs = os.pipe()
        ended, end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(end)
            try:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                held = [Peer(daemon.path, hello=False) for _ in range(64)]
                os.write(theirs, b"%d" % len(held))
                os.read(ended, 1)
            finally:
                os._exit(0)
        assert os.read(ours, 10) == b"64"
        peers = [daemon.peer() for _ in range(12)]
        assert all(peer.call("ping").status == pb.OK for peer in peers)
        assert daemon.stats()["connections"] == 12 + 3
        for peer in peers:
            peer.close()
        os.close(end)
        os.waitpid(pid, 0)
        for fd in (ours, theirs, ended):
            os.close(fd)
        wait_for(lambda: daemon.stats()["connections"] == 0, 5 * SLOW, "they are gone")
        for _ in range(8):
            assert denied(as_user(daemon.path)), "and their places are free again"


@needs_root
@pytest.mark.parametrize("settings,uid,gid,groups,good", [
    ({"access.allow-users": "nobody"}, NOBODY, NOBODY, (), True),
    ({"access.allow-users": "0, 65534"}, NOBODY, NOBODY, (), True),
    ({"access.allow-users": "?no-such-user, nobody"}, NOBODY, NOBODY, (), True),
    ({"access.allow-users": "daemon"}, NOBODY, NOBODY, (), False),
    ({"access.allow-groups": "54321"}, NOBODY, STRANGER_GROUP, (), True),
    ({"access.allow-groups": "54321"}, NOBODY, NOBODY, (STRANGER_GROUP,), True),
    ({"access.allow-groups": "54321"}, NOBODY, NOBODY, (1, 2, 3, 54320), False),
    ({"access.allow-groups": "54321"}, NOBODY, NOBODY,
     tuple(range(54000, 54400)), True),
    ({"access.allow-groups": ""}, NOBODY, NOBODY, (), False),
    ({"access.allow-users": "", "access.allow-groups": ""}, NOBODY, NOBODY, (), False),
])
def test_lists(settings, uid, gid, groups, good):
    with Daemon(settings) as daemon:
        got = as_user(daemon.path, uid, gid, groups)
        assert got == (pb.OK, 0) if good else denied(got), got


@needs_root
def test_root_is_no_exception():
    """Nobody comes in by being root where the list does not say so."""
    with Daemon({"access.allow-users": "nobody", "access.allow-groups": ""}) as daemon:
        assert as_user(daemon.path) == (pb.OK, 0)
        with Peer(daemon.path, hello=False) as peer:
            answer = peer.hello()
        # The daemon's own uid, which here is root, may always come in.
        assert answer.status in (pb.OK, pb.DENIED)


@pytest.mark.parametrize("settings", [
    {"access.allow-users": "no-such-user"}, {"access.allow-groups": "no-such-group"},
    {"socket.group": "no-such-group"}])
def test_unknown_names_stop_the_start(settings):
    with pytest.raises(StartFailed) as failed:
        Daemon(settings)
    assert failed.value.status == 2
    assert "no-such" in failed.value.log


@needs_root
def test_a_removed_user_loses_its_connections():
    """By a reload: what is open closes, what comes is denied; others stay."""
    with Daemon({"access.allow-users": "0, 65534"}) as daemon, daemon.peer() as kept:
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                peer = Peer(daemon.path)
                peer.keygen(pb.ML_KEM_768)
                os.write(theirs, b"in")
                os.write(theirs, b"closed" if peer.is_closed() else b"open")
            finally:
                os._exit(0)
        assert os.read(ours, 10) == b"in"
        daemon.reconfigure(access__allow_users="0")
        assert daemon.admin("reload").status == pb.OK
        assert os.read(ours, 10) == b"closed"
        os.waitpid(pid, 0)
        assert kept.call("ping").status == pb.OK
        assert denied(as_user(daemon.path))
        wait_for(lambda: daemon.stats()["handles"] == 0, 5 * SLOW, "its key is gone")


@needs_root
def test_a_new_name_at_a_reload_must_be_a_number():
    with Daemon({"access.allow-users": "0"}) as daemon:
        daemon.reconfigure(access__allow_users="0, nobody")
        answer = daemon.admin("reload")
        assert answer.status != pb.OK and "number" in answer.message, answer
        daemon.reconfigure(access__allow_users="0, 65534")
        assert daemon.admin("reload").status == pb.OK
        wait_for(lambda: as_user(daemon.path) == (pb.OK, 0), 5 * SLOW, "it is let in")


@needs_root
def test_the_control_socket_is_for_its_owner():
    with Daemon({"access.allow-users": "0, nobody"}) as daemon:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                Peer(daemon.control, hello=False)
            except PermissionError:
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0


@needs_root
@pytest.mark.parametrize("uid,good", [(NOBODY, False), (0, True)])
def test_a_peer_that_is_gone_before_accept(uid, good):
    """Its credentials are the socket's, not those of a process that may be another by
    now: the request of one who left is judged, and harms nobody."""
    with Daemon() as daemon:
        before = daemon.stats()
        daemon.freeze()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                it = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                it.connect(daemon.path)
                hello = pb.Request(id=1)
                hello.hello.min_version = hello.hello.max_version = 1
                it.send(frame(hello))
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        daemon.thaw()
        name = "connections_total" if good else "connections_denied_total"
        wait_for(lambda: daemon.stats()[name] > before[name], 5 * SLOW, name)
        with daemon.peer() as peer:
            assert peer.call("ping").status == pb.OK
