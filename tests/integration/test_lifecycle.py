# SPDX-License-Identifier: Apache-2.0
"""Starts, stops, reloads and crashes; the socket files; the log."""

import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

from daemon import MLKEMD, SANITIZER, SLOW, Daemon, StartFailed, wait_for
from peer import Closed, Peer, exchange, frame, item, pb

LOG_LINE = re.compile(r"^<[0-7]>[a-z][a-z0-9-]*: \S.*$")


def listeners(path):
    """Inodes of sockets that listen on a path, from the kernel's own list."""
    out = []
    for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split(None, 7)
        if len(fields) == 8 and fields[7] == path and int(fields[3], 16) & 0x10000:
            out.append(fields[6])
    return out


def test_second_daemon_on_one_path(tmp_path):
    with Daemon(directory=tmp_path) as first:
        inode = os.stat(first.path).st_ino
        log = first.log()
        with pytest.raises(StartFailed) as failed:
            Daemon(directory=tmp_path)
        assert failed.value.status not in (0, None)
        said = failed.value.log[len(log):]
        assert "already" in said, said
        assert os.stat(first.path).st_ino == inode
        exchange(first.path)
        assert first.admin("stats").status == pb.OK


def test_a_daemon_that_only_wants_the_others_control_socket(tmp_path):
    with Daemon(directory=tmp_path) as first:
        with pytest.raises(StartFailed):
            Daemon({"socket.path": str(tmp_path / "other.sock")}, directory=tmp_path)
        assert first.admin("stats").status == pb.OK
        assert not (tmp_path / "other.sock").exists() or not listeners(
            str(tmp_path / "other.sock"))


def test_a_stopped_daemon_is_alive(tmp_path):
    """SIGSTOPped, with its backlog full (EAGAIN): that is not stale."""
    with Daemon(directory=tmp_path) as first:
        first.freeze()
        held = []
        try:
            for _ in range(5000):
                it = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                it.setblocking(False)
                held.append(it)
                it.connect(first.path)
        except (BlockingIOError, OSError):
            pass
        inode = os.stat(first.path).st_ino
        with pytest.raises(StartFailed):
            Daemon(directory=tmp_path)
        assert os.stat(first.path).st_ino == inode
        for it in held:
            it.close()
        first.thaw()
        exchange(first.path)


def test_stale_sockets_are_replaced(tmp_path):
    with Daemon(directory=tmp_path) as first:
        first.kill()
        assert os.path.exists(first.path)
    with Daemon(directory=tmp_path) as second:
        exchange(second.path)
        assert second.admin("stats").status == pb.OK


@pytest.mark.parametrize("rounds", [
    3, pytest.param(10, marks=pytest.mark.slow)])
def test_50_parallel_starts(tmp_path, rounds):
    """Exactly one listens afterwards, stale files or not."""
    n = 50 if not SANITIZER else 10
    daemons = [Daemon(directory=tmp_path, wait=False)]
    daemons[0].kill()
    command, env = daemons[0].command(), dict(os.environ)
    env.pop("NOTIFY_SOCKET", None)
    for round_ in range(rounds if not SANITIZER else 1):
        log = open(tmp_path / "starts.log", "ab")
        started = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, env=env) for _ in range(n)]
        try:
            wait_for(lambda: sum(p.poll() is None for p in started) == 1,
                     60 * SLOW, "one is left")
            path = str(tmp_path / "s.sock")
            wait_for(lambda: len(listeners(path)) == 1, 20 * SLOW, "it listens")
            exchange(path)
            (one,) = [p for p in started if p.poll() is None]
            assert all(p.returncode > 0 for p in started if p is not one)
            with Peer(str(tmp_path / "c.sock")) as control:
                assert control.call("stats").status == pb.OK
            # Every second round leaves a crash's files behind.
            one.send_signal(signal.SIGKILL if round_ % 2 else signal.SIGTERM)
            one.wait(30)
        finally:
            for process in started:
                if process.poll() is None:
                    process.kill()
                process.wait()
            log.close()


@pytest.mark.parametrize("setting, value, said", [
    ("socket.path", "/nowhere/at/all/s.sock", "there is no folder /nowhere/at/all;"),
    ("kem.backend", "no-such", "there are auto"),
])
def test_the_message_says_what_there_is(setting, value, said):
    with pytest.raises(StartFailed) as failed:
        Daemon({setting: value})
    assert said in failed.value.log
    assert "generic" in failed.value.log or setting != "kem.backend"


@pytest.mark.parametrize("what", ["file", "directory", "symlink", "dangling"])
@pytest.mark.parametrize("which", ["path", "control-path"])
def test_what_is_no_socket_is_left_alone(tmp_path, what, which):
    target = tmp_path / "target"
    target.write_text("precious")
    place = tmp_path / "occupied"
    if what == "file":
        place.write_text("precious")
    elif what == "directory":
        place.mkdir()
    else:
        place.symlink_to(target if what == "symlink" else tmp_path / "nowhere")
    before = os.lstat(place)
    directory = tmp_path / "run"
    directory.mkdir()
    with pytest.raises(StartFailed) as failed:
        Daemon({f"socket.{which}": str(place)}, directory=directory)
    assert str(place) in failed.value.log
    after = os.lstat(place)
    assert (before.st_ino, before.st_mode, before.st_size) == (
        after.st_ino, after.st_mode, after.st_size)
    assert target.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


def test_a_symlink_to_a_live_socket_is_left_alone(tmp_path):
    with Daemon() as other:
        (tmp_path / "link").symlink_to(other.path)
        with pytest.raises(StartFailed):
            Daemon({"socket.path": str(tmp_path / "link")}, directory=tmp_path)
        exchange(other.path)


def test_the_old_one_does_not_unlink_the_new_ones_socket(tmp_path):
    """rm socket; start B; end A: B's files stay. The lock beside the socket keeps B away
    while it is there, so whoever cleaned the directory has taken it too."""
    with Daemon(directory=tmp_path) as first:
        os.unlink(first.path)
        os.unlink(first.control)
        with pytest.raises(StartFailed):
            Daemon(directory=tmp_path)
        for lock in tmp_path.glob("*.lock"):
            lock.unlink()
        second_dir = tmp_path / "second"
        second_dir.mkdir()
        with Daemon({"socket.path": first.path, "socket.control-path": first.control},
                    directory=second_dir) as second:
            inode = os.stat(second.path).st_ino
            first.stop()
            assert os.stat(second.path).st_ino == inode
            exchange(second.path)
            assert second.admin("stats").status == pb.OK


def test_its_own_files_go_with_it(tmp_path):
    with Daemon(directory=tmp_path) as daemon:
        path, control = daemon.path, daemon.control
    assert not os.path.exists(path) and not os.path.exists(control)
    assert sorted(os.listdir(tmp_path)) == ["log", "mlkemd.conf"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(umask):
    with Daemon({"socket.mode": "0660"}, umask=umask) as daemon:
        assert stat.S_IMODE(os.stat(daemon.path).st_mode) == 0o660
        assert stat.S_IMODE(os.stat(daemon.control).st_mode) == 0o600
        exchange(daemon.path)


def test_default_modes_and_group():
    with Daemon(umask=0o077) as daemon:
        assert stat.S_IMODE(os.stat(daemon.path).st_mode) == 0o666
        assert stat.S_IMODE(os.stat(daemon.control).st_mode) == 0o600
    if os.geteuid() != 0:
        pytest.skip("another group can only be set by root")
    with Daemon({"socket.mode": "0660", "socket.group": "daemon"}) as daemon:
        st = os.stat(daemon.path)
        assert (stat.S_IMODE(st.st_mode), st.st_gid) == (0o660, 1)


@pytest.mark.parametrize("which", ["path", "control-path"])
@pytest.mark.parametrize("length", [106, 107, 108, 109, 200])
def test_path_lengths(tmp_path_factory, which, length):
    """107 bytes is the most that a Unix socket's path holds; more is refused by name,
    and nothing appears under a cut one."""
    base = tmp_path_factory.mktemp("p")
    path = str(base) + "/" + "x" * (length - len(str(base)) - 1)
    assert len(path) == length
    settings = {f"socket.{which}": path}
    if length <= 107:
        with Daemon(settings) as daemon:
            exchange(daemon.path)
            assert daemon.admin("stats").status == pb.OK
            assert os.path.exists(path)
    else:
        with pytest.raises(StartFailed) as failed:
            Daemon(settings)
        assert "107" in failed.value.log and failed.value.status == 2
        assert os.listdir(base) == []


def test_a_start_logs_at_most_ten_lines():
    with Daemon({"daemon.log-level": "info"}) as daemon:
        lines = daemon.log().splitlines()
        assert 1 <= len(lines) <= 10, lines
        for line in lines:
            assert LOG_LINE.match(line), line
        before = len(lines)
        for _ in range(30):
            exchange(daemon.path)
        assert len(daemon.log().splitlines()) == before, "nothing per connection at info"
    assert len(daemon_log_after_stop(daemon)) < 20


def daemon_log_after_stop(daemon):
    try:
        return daemon.log().splitlines()
    except FileNotFoundError:
        return []


def test_sigterm_answers_what_it_accepted():
    """Under load: each request that the daemon took over gets its answer, then the end.
    It would wait for the keys' use, or that of a busy machine's reader, for a minute."""
    with Daemon({"limits.drain-timeout": "60s"}) as daemon:
        peers = [daemon.peer() for _ in range(8)]
        wanted = {}
        for peer in peers:
            requests = [peer.request("generate_keys", algorithm=pb.ML_KEM_1024, count=8)
                        for _ in range(20)]
            wanted[peer] = {r.id for r in requests}
            peer.send_raw(b"".join(map(frame, requests)))
        # The first answers show that all 20 of the first connection were read.
        first = peers[0].recv()
        assert first.status == pb.OK
        daemon.signal(signal.SIGTERM)
        n_ok = 1
        for peer in peers:
            ids = {first.id} if peer is peers[0] else set()
            # Who is closed before that has lost an answer: recv() raises.
            while ids != wanted[peer]:
                answer = peer.recv()
                assert answer.id in wanted[peer] - ids, "answered twice"
                ids.add(answer.id)
                assert answer.status in (pb.OK, pb.DRAINING), answer
                n_ok += answer.status == pb.OK
            assert not peer.buffer, "more than was asked"
        for peer in peers:
            peer.close()
        assert daemon.process.wait(40) == 0
        daemon.ended_on_purpose = True
        assert n_ok >= 1
        assert not os.path.exists(daemon.path)


def test_sigterm_hears_the_hello_of_who_was_let_in():
    """Over a restart no attempt is lost, though it came just before; who says nothing is
    waited for as long as at any time, and no longer."""
    with Daemon() as daemon:
        with Peer(daemon.path, hello=False) as peer, Peer(daemon.path, hello=False):
            wait_for(lambda: daemon.stats()["connections"] == 2, 20 * SLOW, "accepted")
            daemon.signal(signal.SIGTERM)
            wait_for(lambda: ">stop: " in daemon.log(), 20 * SLOW, "stop")
            assert peer.hello().status == pb.OK
            assert daemon.process.wait(20 * SLOW) == 0
        daemon.ended_on_purpose = True


def test_sigterm_lets_live_handles_decapsulate():
    with Daemon() as daemon, daemon.peer() as peer, daemon.peer() as other:
        (key,) = peer.keygen(pb.X25519MLKEM768)
        (sent,) = other.encaps(pb.X25519MLKEM768, [key.share])
        daemon.signal(signal.SIGTERM)
        try:
            assert peer.decaps(pb.X25519MLKEM768, [
                item(sent.ciphertext, handle=key.handle)]) == [sent.secret]
        except Closed:
            pytest.fail("a live handle was dropped")
        other.close()
        peer.close()
        assert daemon.process.wait(20 * SLOW) == 0
        daemon.ended_on_purpose = True


def test_sigterm_does_not_wait_for_who_never_reads():
    with Daemon({"limits.drain-timeout": "1s"}) as daemon:
        peer = daemon.peer()
        peer.socket.setblocking(False)
        try:
            peer.socket.send(b"".join(frame(peer.request(
                "generate_keys", algorithm=pb.ML_KEM_1024, count=16))
                for _ in range(200)))
        except BlockingIOError:
            pass
        time.sleep(0.2)
        daemon.signal(signal.SIGTERM)
        assert daemon.process.wait(20 * SLOW) == 0
        daemon.ended_on_purpose = True
        peer.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_that_end_it(number):
    with Daemon() as daemon:
        held = daemon.peer()
        daemon.signal(number)
        assert daemon.process.wait(20 * SLOW) == 0
        daemon.ended_on_purpose = True
        assert held.is_closed()


def test_drain_and_resume():
    with Daemon() as daemon, daemon.peer() as peer:
        (key,) = peer.keygen(pb.X25519MLKEM768)
        (sent,) = peer.encaps(pb.X25519MLKEM768, [key.share])
        assert daemon.admin("drain").status == pb.OK
        wait_for(lambda: peer.call("ping").load.draining, 5 * SLOW, "draining is told")
        for op, fields in (("generate_keys", {"count": 1}),
                           ("encapsulate", {"shares": [key.share]})):
            answer = peer.call(op, algorithm=pb.X25519MLKEM768, **fields)
            assert answer.status == pb.DRAINING, answer
        assert peer.decaps(pb.X25519MLKEM768, [
            item(sent.ciphertext, handle=key.handle)]) == [sent.secret]
        assert peer.call("info").load.draining
        assert daemon.admin("resume").status == pb.OK
        wait_for(lambda: not peer.call("ping").load.draining, 5 * SLOW, "resumed")
        exchange(daemon.path)
        assert peer.keygen(pb.X25519MLKEM768)


def reloads(daemon):
    return daemon.log().count("reload")


@pytest.mark.parametrize("how", ["signal", "control"])
def test_reload(how):
    """What can change does, connections and handles stay."""
    with Daemon() as daemon, daemon.peer() as peer:
        (key,) = peer.keygen(pb.ML_KEM_768)
        daemon.reconfigure(kem__export_private_keys="yes")
        before = reloads(daemon)
        if how == "signal":
            daemon.signal(signal.SIGHUP)
            wait_for(lambda: reloads(daemon) > before, 5 * SLOW, "the log tells")
        else:
            answer = daemon.admin("reload")
            assert answer.status == pb.OK, answer
        wait_for(lambda: daemon.info().limits.export_allowed, 5 * SLOW, "new settings")
        assert peer.keygen(pb.ML_KEM_768, export=True)[0].private_key
        (sent,) = peer.encaps(pb.ML_KEM_768, [key.share])
        assert peer.decaps(pb.ML_KEM_768, [
            item(sent.ciphertext, handle=key.handle)]) == [sent.secret]


@pytest.mark.parametrize("how", ["signal", "control"])
def test_a_bad_reload_changes_nothing(how):
    with Daemon() as daemon:
        good = daemon.config.read_text()
        daemon.config.write_text(good + "\n[limits]\nmax-connections = many\n")
        if how == "signal":
            lines = len(daemon.log().splitlines())
            daemon.signal(signal.SIGHUP)
            wait_for(lambda: len(daemon.log().splitlines()) > lines, 5 * SLOW, "a line")
        else:
            answer = daemon.admin("reload")
            assert answer.status != pb.OK and answer.message, answer
        assert "max-connections" in daemon.log() or how == "control"
        exchange(daemon.path)
        daemon.config.write_text(good)
        assert daemon.admin("reload").status == pb.OK


def test_reloads_under_load():
    with Daemon() as daemon:
        over, errors = threading.Event(), []

        def work():
            try:
                while not over.is_set():
                    exchange(daemon.path, count=4)
            except Exception as error:  # noqa: BLE001 (reported by the assert below)
                errors.append(error)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for n in range(20):
            daemon.reconfigure(limits__max_connections=str(500 + n))
            daemon.signal(signal.SIGHUP)
            time.sleep(0.02)
        over.set()
        for thread in threads:
            thread.join()
        assert not errors, errors[0]


def test_kill_and_restart_under_a_client():
    """After a crash: old handles are unknown on the new daemon, new work is served."""
    with Daemon() as daemon:
        peer = daemon.peer()
        (key,) = peer.keygen(pb.ML_KEM_768)
        daemon.kill()
        with pytest.raises(Closed):
            peer.call("ping")
        daemon.start()
        with daemon.peer() as again:
            (got,) = again.decaps_items(pb.ML_KEM_768, [
                item(bytes(1088), handle=key.handle)])
            assert got.status == pb.KEY_NOT_FOUND
        exchange(daemon.path)


MISTAKES = {
    "unknown section": "[nonsense]\nx = 1\n",
    "unknown key": "[limits]\nnonsense = 1\n",
    "no section": "mode = 0600\n",
    "no value": "[limits]\nmax-connections\n",
    "word for a number": "[limits]\nmax-connections = many\n",
    "negative": "[limits]\nmax-connections = -1\n",
    "zero": "[limits]\nmax-connections = 0\n",
    "too large": "[limits]\nmax-connections = 99999999999999999999\n",
    "unknown word": "[daemon]\nsecret-memory = perhaps\n",
    "mode": "[socket]\nmode = 0999\n",
    "unknown user": "[access]\nallow-users = nobody-of-that-name\n",
    "unknown group": "[access]\nallow-groups = nobody-of-that-name\n",
    "unknown backend": "[kem]\nbackend = nonsense\n",
}


def check_config(path):
    return subprocess.run([MLKEMD, "--config", str(path), "--check"],
                          capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", MISTAKES)
def test_one_mistake_is_one_line(tmp_path, name):
    """File, line, key and what is allowed; status 2."""
    path = tmp_path / "mlkemd.conf"
    path.write_text("# a comment\n\n" + MISTAKES[name])
    got = check_config(path)
    lines = [line for line in (got.stdout + got.stderr).splitlines() if line]
    assert got.returncode == 2, got
    assert len(lines) == 1, lines
    n_lines = 2 + MISTAKES[name].count("\n")
    assert str(path) in lines[0] or "mlkemd.conf" in lines[0], lines
    assert any(f":{n}" in lines[0] or f"line {n}" in lines[0]
               for n in range(3, n_lines + 1)), lines
    word = re.search(r"nonsense|mode|max-connections|secret-memory|allow-users"
                     r"|allow-groups|backend", MISTAKES[name]).group()
    assert word in lines[0], lines


def test_check_and_print_config(tmp_path):
    path = tmp_path / "mlkemd.conf"
    path.write_text("[limits]\nmax-connections = 77\n")
    assert check_config(path).returncode == 0
    shown = subprocess.run([MLKEMD, "--config", str(path), "--print-config"],
                           capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0
    (line,) = [line for line in shown.stdout.splitlines()
               if line.split("=")[0].strip() == "max-connections"]
    assert "77" in line and str(path) in line
    assert "default" in shown.stdout


def test_no_secret_in_the_log():
    """At the highest level, with exports and failures: no eight bytes of a secret, in
    hex or base64, are in the log or in an answer's text."""
    import base64
    secrets, texts = [], []
    with Daemon({"daemon.log-level": "debug", "kem.export-private-keys": "yes"}) as daemon:
        with daemon.peer() as peer:
            for algorithm in (pb.ML_KEM_768, pb.X25519MLKEM768):
                (key,) = peer.keygen(algorithm, export=True)
                (sent,) = peer.encaps(algorithm, [key.share])
                secrets += [key.private_key, sent.secret]
                bad = bytearray(key.private_key)
                bad[1184] ^= 1
                for it in (item(sent.ciphertext, private_key=bytes(bad)),
                           item(sent.ciphertext[:-1], private_key=key.private_key),
                           item(sent.ciphertext, private_key=key.private_key[:-1])):
                    (got,) = peer.decaps_items(algorithm, [it])
                    texts.append(got.message)
            peer.send_raw(frame(key.private_key))
            peer.is_closed()
        texts.append(daemon.log())
    text = "\n".join(texts).lower()
    raw = "\n".join(texts)
    for secret in secrets:
        for at in range(0, len(secret) - 8):
            window = secret[at:at + 8]
            assert window.hex() not in text
        for shift in range(3):
            encoded = base64.b64encode(secret[shift:shift + 1200]).decode()
            for at in range(0, len(encoded) - 12, 4):
                assert encoded[at:at + 12] not in raw


def test_notify_socket_that_nobody_reads(tmp_path):
    """A full queue, or none, must not hold up the start."""
    full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path = str(tmp_path / "notify")
    full.bind(path)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    client.setblocking(False)
    try:
        while True:
            client.sendto(b"x", path)
    except BlockingIOError:
        pass
    for notify in (path, "@mlkemd-test-nowhere", str(tmp_path / "missing"),
                   "/" + "x" * 150, ""):
        daemon = Daemon(wait=False)
        daemon.kill()
        env = dict(daemon.env, NOTIFY_SOCKET=notify)
        process = subprocess.Popen(daemon.command(), env=env, stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: os.path.exists(daemon.path) and listeners(daemon.path),
                     20 * SLOW, f"served with NOTIFY_SOCKET={notify[:20]}")
            exchange(daemon.path)
        finally:
            process.terminate()
            assert process.wait(20 * SLOW) == 0
