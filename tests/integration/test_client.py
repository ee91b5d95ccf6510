# SPDX-License-Identifier: Apache-2.0
"""The client library against daemons that stop, crash, restart, lie or never answer."""

import os
import shutil
import socket
import struct
import tempfile
import threading
import time

import pytest

from daemon import SANITIZER, SLOW, Daemon, wait_for
from peer import exchange, frame, pb
from programs import HELPERS, ClientLoop

NOBODY = 65534
# mlkemclient.h
KEY_GONE, TIMEOUT, UNAVAILABLE, IMPOSTOR, PROTOCOL, UNSUPPORTED = -7, -10, -11, -14, -15, -16


def code(answer):
    assert answer.startswith("error "), answer
    return int(answer.split()[1])


@pytest.mark.parametrize("name", ["ML-KEM-512", "mlkem768", "ML_KEM_1024",
                                  "X25519MLKEM768"])
def test_exchange(daemon, name):
    with ClientLoop(daemon.path, "require") as client:
        assert client(f"exchange {name}") == "ok 3 0"
        assert client("loop 50 " + name).startswith("done 50 0 0 ")


def test_no_daemon(tmp_path):
    """Local, unless required: then an error at once, with a message."""
    path = str(tmp_path / "nothing.sock")
    with ClientLoop(path) as client:
        assert client("exchange").startswith("ok 0 ")
        assert client("loop 20 mlkem512").startswith("done 20 0 0 ")
    with ClientLoop(path, "require") as client:
        answer = client("exchange")
        assert code(answer) == UNAVAILABLE and len(answer.split()) > 3


def test_idle_restart():
    """A long-lived client finds the new daemon by itself."""
    with Daemon() as daemon, ClientLoop(daemon.path, "require") as client:
        assert client("exchange").startswith("ok")
        assert client("keygen") == "ok daemon"
        daemon.kill()
        daemon.start()
        assert code(client("decaps")) == KEY_GONE, "the key died with its daemon"
        def again():
            return client("exchange").startswith("ok")
        wait_for(again, 10 * SLOW, "reconnected")
        counts = client("counts").split()
        assert int(counts[1]) == 0 and int(counts[4]) >= 2


@pytest.mark.slow
def test_kill_and_restart_under_a_client_that_goes_on():
    """Without require nothing fails at all but decapsulations of keys that died."""
    with Daemon() as daemon, ClientLoop(daemon.path, "") as client:
        for _ in range(4):
            client.start("loop 2000 mlkem512")
            time.sleep(0.15)
            daemon.kill()
            time.sleep(0.05)
            daemon.start()
            done, good, failed, wrong, _ = client.answer().split()
            assert done == "done" and int(wrong) == 0
            # A key that lived in the daemon is gone with it: one in flight at a time.
            assert int(failed) <= 2 and int(good) + int(failed) == 2000
        wait_for(lambda: served(client), 40 * SLOW, "the daemon is used again")


def served(client):
    before = int(client("counts").split()[0])
    client("exchange mlkem512")
    time.sleep(0.1)
    return int(client("counts").split()[0]) > before


@pytest.mark.slow
def test_down_for_a_while():
    with Daemon() as daemon, ClientLoop(daemon.path, "require") as client:
        assert client("exchange").startswith("ok")
        daemon.kill()
        for _ in range(5):
            assert code(client("exchange")) in (UNAVAILABLE, TIMEOUT, KEY_GONE)
            time.sleep(0.2)
        daemon.start()
        wait_for(lambda: client("exchange").startswith("ok"), 40 * SLOW, "back")


@pytest.mark.parametrize("require", ["require", ""])
def test_sigstop_under_a_client_with_deadlines(require):
    """Each call ends by its deadline, and no late answer is taken for another's."""
    deadline = 1_000_000
    with Daemon() as daemon, ClientLoop(daemon.path, require, deadline) as client:
        assert client("loop 20 mlkem768").startswith("done 20 0 0 ")
        for _ in range(2):
            daemon.freeze()
            answer = client("loop 5 mlkem768").split()
            _, good, failed, wrong, longest = answer
            assert int(wrong) == 0
            assert (int(good), int(failed)) == ((0, 5) if require else (5, 0)), answer
            # keygen, encaps and decaps have a deadline each; the machine may be busy.
            assert int(longest) < 3 * deadline + 10_000_000 * SLOW, answer
            daemon.thaw()
            wait_for(lambda: served(client), 40 * SLOW, "served again")
        assert client("loop 200 mlkem768").split()[3] == "0"


def test_sigstop_and_a_key_in_the_daemon():
    """The key's own decapsulation can't fall back: an error by the deadline."""
    with Daemon() as daemon, ClientLoop(daemon.path, "", 2_000_000) as client:
        assert client("keygen") == "ok daemon"
        daemon.freeze()
        start = time.monotonic()
        answer = client("decaps")
        assert code(answer) in (TIMEOUT, UNAVAILABLE, KEY_GONE), answer
        assert time.monotonic() - start < 15 * SLOW
        daemon.thaw()


@pytest.mark.slow
def test_fork():
    """Children open connections of their own; nobody gets another's answer."""
    rounds = 200 if not SANITIZER else 40
    with Daemon() as daemon, ClientLoop(daemon.path, "require", 10_000_000) as client:
        assert client("exchange").startswith("ok")
        assert client(f"fork 8 {rounds}") == f"forked bad 0 parent {rounds}"
        assert client("exchange").startswith("ok")


@pytest.mark.parametrize("route", ["local", "require"])
def test_fork_and_randomness(daemon, route):
    """Parent and child never make the same share, wherever it is made."""
    with ClientLoop(daemon.path, route) as client:
        assert client("exchange").startswith("ok")
        shares = client.lines("shares X25519MLKEM768 20")
        assert len(shares) == 40 == len(set(shares)), "shares repeat after fork"


SHORT_IO = os.path.join(HELPERS, "short_io.so")


@pytest.mark.skipif(bool(SANITIZER), reason="a sanitizer has to be loaded first")
@pytest.mark.parametrize("most", [1, 3, 1000])
@pytest.mark.parametrize("which", ["daemon", "client", "both"])
def test_short_reads_and_writes(most, which):
    """Every call moves a few bytes, or is interrupted, or finds nothing: no part of a
    frame is lost or sent twice, on either side."""
    env = {"LD_PRELOAD": SHORT_IO, "SHORT_IO_MAX": str(most)}
    rounds = 20 if most == 1 else 200
    with Daemon(env=env if which != "client" else {}) as daemon:
        with ClientLoop(daemon.path, "require", 20_000_000,
                        env=env if which != "daemon" else {}) as client:
            for name in ("ML-KEM-512", "X25519MLKEM768"):
                assert client(f"loop {rounds} {name}").startswith(f"done {rounds} 0 0 ")
            counts = client("counts").split()
            assert counts[0] == str(3 * 2 * rounds) and counts[1] == "0"
            assert counts[4] == "1", "it had to connect again"
        if most > 1:
            exchange(daemon.path, count=64)
        assert daemon.stats()["broken_frames_total"] == 0


def test_drain_moves_clients():
    with Daemon() as daemon, ClientLoop(daemon.path) as client:
        assert client("exchange") == "ok 3 0"
        assert daemon.admin("drain").status == pb.OK
        assert client("loop 10 mlkem768").startswith("done 10 0 0 ")
        assert int(client("counts").split()[1]) >= 10
        assert daemon.admin("resume").status == pb.OK
        wait_for(lambda: served(client), 40 * SLOW, "back at the daemon")


def test_full_backlog():
    """connect() says EAGAIN at once when the backlog is full: tried again until the
    deadline, never taken for connected."""
    # Whoever was held is still counted while a busy machine sees them end.
    with Daemon({"limits.max-connections": "8192",
                 "limits.user-share": "100%"}) as daemon:
        daemon.freeze()
        held = []
        while len(held) < 10000:
            it = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            it.setblocking(False)
            held.append(it)
            try:
                it.connect(daemon.path)
            except BlockingIOError:
                break
        assert len(held) >= 512 or len(held) >= somaxconn(), len(held)
        with ClientLoop(daemon.path, "require") as client:
            client.start("exchange")
            time.sleep(0.3)
            for it in held:
                it.close()
            daemon.thaw()
            assert client.answer().startswith("ok")


def somaxconn():
    with open("/proc/sys/net/core/somaxconn") as source:
        return int(source.read())


class Stub:
    """A daemon that misbehaves: answers each request as a function says."""

    def __init__(self, directory, answer):
        self.path = str(directory / "stub.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.answer, self.closing = answer, False
        self.n_connections, self.requests = 0, []
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while not self.closing:
            try:
                it, _ = self.listener.accept()
            except OSError:
                return
            self.n_connections += 1
            threading.Thread(target=self.serve, args=(it,), daemon=True).start()

    def serve(self, it):
        buffer = b""
        try:
            while got := it.recv(65536):
                buffer += got
                while len(buffer) >= 4:
                    n = struct.unpack(">I", buffer[:4])[0] + 4
                    if len(buffer) < n:
                        break
                    request = pb.Request.FromString(buffer[4:n])
                    buffer = buffer[n:]
                    self.requests.append(request)
                    if request.WhichOneof("op") == "hello":
                        data = frame(self.welcome(request))
                        data = getattr(self, "hello_bytes", None) or data
                    else:
                        data = self.answer(self, request)
                    if data is None:
                        return it.close()
                    it.sendall(data)
        except OSError:
            pass
        return None

    def welcome(self, request):
        out = pb.Response(id=request.id)
        out.hello.version = 1
        out.hello.server_version = "stub"
        out.hello.algorithms.extend([512, 513, 514, 4588])
        out.hello.limits.max_items = 64
        out.hello.limits.max_frame_bytes = 512 * 1024
        out.hello.limits.max_kdf_bytes = 64 * 1024
        out.hello.limits.max_handles = 64
        out.hello.limits.handle_lifetime_ms = 60000
        return out

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.closing = True
        self.listener.close()


def encapsulated(request, fill):
    """An answer that could be true: which request it belongs to shows in the secret."""
    out = pb.Response(id=request.id)
    for _ in request.encapsulate.shares:
        out.encapsulated.items.add(ciphertext=bytes([fill]) * 1088,
                                   secret=bytes([fill]) * 32)
    return out


def keys(request, fill=0):
    out = pb.Response(id=request.id)
    for _ in range(request.generate_keys.count):
        out.keys.items.add(share=bytes([fill]) * 1184, handle=bytes([fill]) * 16)
    return out


def test_a_late_answer_is_never_anothers(tmp_path):
    """The stub answers each request only when the next one has come."""
    waiting = []

    def late(stub, request):
        data = b""
        if waiting:
            data = frame(waiting.pop())
        if request.WhichOneof("op") == "generate_keys":
            waiting.append(keys(request, len(stub.requests) % 251))
        return data
    with Stub(tmp_path, late) as stub, ClientLoop(stub.path, "require", 300_000) as client:
        for _ in range(8):
            answer = client("keygen mlkem768")
            assert not answer.startswith("ok"), "an answer to another request was taken"
            assert code(answer) in (TIMEOUT, UNAVAILABLE)


@pytest.mark.parametrize("what", ["wrong id", "length 0", "too long", "no protobuf",
                                  "half and close", "close", "too many items",
                                  "no items", "short share", "long handle", "no result",
                                  "unknown status", "other result"])
def test_answers_that_are_none(tmp_path, what):
    """Every one is an error of this call, in time; no crash, no secret taken."""
    def lie(stub, request):
        good = keys(request)
        if what == "wrong id":
            good.id += 1000
        elif what == "length 0":
            return bytes(4) + frame(good)
        elif what == "too long":
            return struct.pack(">I", 2**31) + bytes(100)
        elif what == "no protobuf":
            return frame(b"\xff" * 20)
        elif what in ("half and close", "close"):
            return None
        elif what == "too many items":
            good.keys.items.add(share=bytes(1184), handle=bytes(16))
        elif what == "no items":
            del good.keys.items[:]
        elif what == "short share":
            good.keys.items[0].share = bytes(1183)
        elif what == "long handle":
            good.keys.items[0].handle = bytes(17)
        elif what == "no result":
            good.ClearField("keys")
        elif what == "unknown status":
            good.ClearField("keys")
            good.status = 9999
        elif what == "other result":
            good.ClearField("keys")
            good.released.released = 1
        return frame(good)
    with Stub(tmp_path, lie) as stub, ClientLoop(stub.path, "require", 1_000_000) as client:
        answer = client("keygen mlkem768")
        assert code(answer) < 0, answer
        again = client("keygen mlkem768")
        assert not again.startswith("ok"), again


@pytest.mark.parametrize("version,wanted", [(2, {PROTOCOL, UNSUPPORTED}),
                                            (0, {PROTOCOL, UNSUPPORTED})])
def test_a_daemon_of_another_version(tmp_path, version, wanted):
    def welcome(stub, request):
        return None
    with Stub(tmp_path, welcome) as stub:
        original = stub.welcome

        def other(request):
            out = original(request)
            out.hello.version = version
            return out
        stub.welcome = other
        with ClientLoop(stub.path, "require") as client:
            assert code(client("exchange")) in wanted


def test_unknown_fields_and_values_are_fine(tmp_path):
    """A newer daemon adds fields: they are ignored."""
    def newer(stub, request):
        data = keys(request, 7).SerializeToString() + b"\xfa\x7c\x03abc"
        return struct.pack(">I", len(data)) + data
    with Stub(tmp_path, newer) as stub:
        original = stub.welcome

        def more(request):
            out = original(request)
            out.hello.algorithms.append(9999)
            return out
        stub.welcome = more
        with ClientLoop(stub.path, "require") as client:
            assert client("keygen mlkem768") == "ok daemon"


def listen_as_nobody(path, ready):
    """A child: listens as another user. Its status tells if anybody sent it anything."""
    status = 2
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        trap = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        trap.bind(path)
        trap.listen(8)
        os.write(ready, b"x")
        trap.settimeout(10)
        it, _ = trap.accept()
        it.settimeout(5)
        status = 1 if it.recv(4096) else 0
    except OSError:
        status = 3
    finally:
        os._exit(status)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can listen as another user")
def test_impostor():
    """A socket that another user listens on is not trusted, and is sent nothing."""
    directory = tempfile.mkdtemp(prefix="mlkemd-")
    os.chmod(directory, 0o1777)
    path = os.path.join(directory, "trap.sock")
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        listen_as_nobody(path, theirs)
    try:
        assert os.read(ours, 1) == b"x"
        with ClientLoop(path, "require") as client:
            assert code(client("exchange")) == IMPOSTOR
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        with ClientLoop(path, "") as client:
            assert client("exchange").startswith("ok 0 ")
    finally:
        shutil.rmtree(directory)


@pytest.mark.parametrize("length", [107, 108, 200])
def test_path_lengths(tmp_path, length):
    path = str(tmp_path) + "/"
    path += "x" * (length - len(path))
    client = ClientLoop(path, "require")
    if length <= 107:
        with client:
            assert code(client("exchange")) == UNAVAILABLE
    else:
        assert client.first.startswith("new -1 ")
        client.process.stdin.close()
        client.process.wait(10)
