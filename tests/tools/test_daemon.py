# SPDX-License-Identifier: Apache-2.0
"""mlkemctl against the real daemon: every subcommand."""

import os
import re
import socket
import time

import pytest

from ctl import (BUSY, DENIED, FAILED, OK, SIZES, UNREACHABLE, as_nobody, ctl,
                 finish, start)
from daemon import Daemon, wait_for
from peer import frame, pb


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def data(daemon):
    return ("--socket", daemon.path)


def control(daemon):
    return ("--control-socket", daemon.control)


def test_ping_and_info(daemon):
    assert re.search(r"answered in \d+ us", ctl("ping", *data(daemon)).out)
    many = ctl("ping", "--count", 20, "--json", *data(daemon)).object()
    assert many["count"] == 20 and many["min_us"] <= many["median_us"] <= many["max_us"]
    text = ctl("info", *data(daemon)).out
    info = ctl("info", "--json", *data(daemon)).object()
    assert info["backend"] in text and info["secret_memory"] in text
    assert info["export_allowed"] is False and info["max_items"] == 64


@pytest.mark.parametrize("algorithm", SIZES)
def test_exchange(daemon, here, algorithm):
    share, ct, secret, _ = SIZES[algorithm]
    require = ("--require", *data(daemon))
    keygen = start("keygen", algorithm, *require, "--secret-out", "a")
    given = keygen.stdout.readline()
    assert len(given) == len("share: \n") + 2 * share
    made = ctl("encaps", algorithm, *require, "--secret-out", "b", given=given)
    assert len(made.value("ciphertext")) == 2 * ct
    result = finish(keygen, made.value("ciphertext").encode())
    assert result.status == OK and result.fingerprint() == made.fingerprint()
    assert (here / "a").read_bytes() == (here / "b").read_bytes()
    assert len((here / "a").read_bytes()) == secret


def test_key_in_the_daemon_survives_a_refused_answer(daemon, here):
    keygen = start("keygen", "--require", *data(daemon), "--out", "share", "--json")
    assert keygen.stdout.readline()
    result = finish(keygen, bytes(1088))
    assert result.status == 5 and "1120" in result.err and "ML-KEM-768" in result.err


def test_export_off_names_the_key_of_the_configuration(daemon, here):
    result = ctl("keygen", "--require", *data(daemon), "--export", "k", status=DENIED)
    assert "export-private-keys" in result.err and "[kem]" in result.err
    assert not (here / "k").exists()
    # Nor does it quietly make one here instead.
    result = ctl("keygen", *data(daemon), "--export", "k", status=DENIED)
    assert not (here / "k").exists()


@pytest.mark.parametrize("algorithm", SIZES)
def test_export_and_one_shot_decaps(exporting, here, algorithm):
    require = ("--require", *data(exporting))
    ctl("keygen", algorithm, *require, "--export", "key", "--out", "share")
    assert os.stat("key").st_mode & 0o777 == 0o600
    made = ctl("encaps", algorithm, *require, "--in", "share", "--out", "ct")
    for _ in range(2):  # such a key is not one-time
        opened = ctl("decaps", algorithm, *require, "--key", "key", "--in", "ct")
        assert opened.fingerprint() == made.fingerprint()
    local = ctl("decaps", algorithm, "--local", "--key", "key", "--in", "ct")
    assert local.fingerprint() == made.fingerprint()


def test_key_expired_in_the_daemon(here):
    with Daemon({"limits.handle-lifetime": "200ms"}) as short:
        keygen = start("keygen", "--require", *data(short))
        share = keygen.stdout.readline()
        made = ctl("encaps", "--local", given=share)
        time.sleep(0.6)
        result = finish(keygen, made.value("ciphertext").encode())
        assert result.status == FAILED and "start again" in result.err
        # --peer waits no longer than the key lives.
        begin = time.monotonic()
        result = ctl("keygen", "--require", *data(short), "--peer", "never",
                     status=FAILED)
        assert "never" in result.err and time.monotonic() - begin < 10


def test_stats(daemon):
    before = ctl("stats", "--json", *control(daemon)).object()
    ctl("encaps", "--require", *data(daemon), given=bytes(1184) + b"\x09" * 32)
    after = ctl("stats", "--json", *control(daemon)).object()
    assert after["items_encaps_total"] == before["items_encaps_total"] + 1
    text = ctl("stats", *control(daemon)).out
    for name in after:
        if name != "ok":
            assert re.search(rf"^{name} +[0-9.]+$", text, re.M), name
    assert 1 <= after["mean_batch"] <= 8


def test_selftest(daemon):
    assert "passed" in ctl("selftest", *control(daemon)).out
    assert ctl("selftest", "--json", *control(daemon)).object()["passed"] is True


def test_drain_and_resume(here):
    with Daemon() as it:
        require = ("--require", *data(it))
        keygen = start("keygen", *require)
        share = keygen.stdout.readline()
        made = ctl("encaps", *require, given=share)
        ctl("drain", *control(it))
        # No new operations; a key given out still decapsulates; ping tells.
        ctl("encaps", *require, given=share, status=BUSY)
        fallback = ctl("encaps", *data(it), given=share)
        assert "in this process" in fallback.err
        assert "draining" in ctl("ping", *data(it)).out
        result = finish(keygen, made.value("ciphertext").encode())
        assert result.status == OK and result.fingerprint() == made.fingerprint()
        assert ctl("resume", "--json", *control(it)).object()["done"] == "resume"
        ctl("encaps", *require, given=share)


def test_reload(here):
    with Daemon() as it:
        assert "export-private-keys" in ctl(
            "keygen", "--require", *data(it), "--export", "k", status=DENIED).err
        it.reconfigure(kem__export_private_keys="yes")
        ctl("reload", *control(it))
        ctl("keygen", "--require", *data(it), "--export", "k")
        it.reconfigure(kem__export_private_keys="7")
        result = ctl("reload", *control(it), status=FAILED)
        for word in (str(it.config), "export-private-keys", "yes or no"):
            assert word in result.err
        ctl("ping", *data(it))


def test_data_socket_serves_no_administration(daemon):
    for command in ("stats", "reload", "drain", "resume", "selftest"):
        ctl(command, "--control-socket", daemon.path, status=DENIED)
    ctl("encaps", "--require", *data(daemon), given=bytes(1184) + b"\x09" * 32)


def test_denied_user():
    with Daemon() as it:
        result = ctl("ping", *data(it), status=DENIED, **as_nobody(it.path))
        assert "configuration" in result.err or "allow-users" in result.err


def test_silent_daemon_ends_in_time(here):
    """Something listens and never answers: the deadline holds, the status says so."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("mute.sock")
        listener.listen()
        for args in (("ping", "--socket"), ("stats", "--control-socket")):
            begin = time.monotonic()
            process = start(*args, "mute.sock", "--timeout-ms", "300")
            result = finish(process)
            assert result.status in (BUSY, UNREACHABLE), result.err
            assert time.monotonic() - begin < 10


def test_a_dripping_peer_ends_in_time(here):
    """A byte now and then: the deadline is of the whole call, not of each byte."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("drip.sock")
        listener.listen()
        process = start("stats", "--control-socket", "drip.sock", "--timeout-ms", "500")
        peer, _ = listener.accept()
        begin = time.monotonic()
        peer.sendall(b"\0\0\1\0")
        dripped = 0
        while process.poll() is None and dripped < 200:
            try:
                peer.sendall(b"\0")
            except BrokenPipeError:
                break
            dripped += 1
            time.sleep(0.1)
        result = finish(process)
        peer.close()
        assert result.status == BUSY and "500 ms" in result.err, result.err
        assert dripped < 200 and time.monotonic() - begin < 15


def test_an_answer_to_another_id_is_no_answer(here):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("other.sock")
        listener.listen()
        process = start("drain", "--control-socket", "other.sock")
        peer, _ = listener.accept()
        peer.sendall(frame(pb.Response(id=1, hello=pb.HelloResult(version=1)))
                     + frame(pb.Response(id=3)))
        result = finish(process)
        peer.close()
        assert result.status == UNREACHABLE and "protocol" in result.err, result.err


def test_babbling_peer_is_no_mlkemd(here):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("http.sock")
        listener.listen()
        process = start("stats", "--control-socket", "http.sock")
        peer, _ = listener.accept()
        peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        result = finish(process)
        peer.close()
        assert result.status == UNREACHABLE and "protocol" in result.err


def test_what_a_peer_says_is_fit_to_print(here):
    """No byte of it that would tell a terminal something: counters' names, refusals."""
    evil = "\x1b]0;x\x07\x9b1m\n"
    answers = [pb.Response(id=2, stats=pb.StatsResult(counters=[
                   pb.Counter(name=evil, value=1), pb.Counter()])),
               pb.Response(id=2, status=pb.DENIED, message=evil),
               pb.Response(id=2, self_test=pb.SelfTestResult(backend=evil)),
               pb.Response(id=2, self_test=pb.SelfTestResult(passed=True, backend=evil))]
    for command, answer in zip(("stats", "drain", "selftest", "selftest"), answers):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("evil.sock")
            listener.listen()
            process = start(command, "--control-socket", "evil.sock")
            peer, _ = listener.accept()
            hello = pb.Response(id=1, hello=pb.HelloResult(version=1))
            peer.sendall(frame(hello) + frame(answer))
            result = finish(process)
            peer.close()
            os.unlink("evil.sock")
        said = result.raw + result.err.encode()
        assert b"?]0;x" in said, said
        assert all(byte == 10 or 32 <= byte < 127 for byte in said), said


def test_demo(daemon):
    both = (*data(daemon), *control(daemon))
    text = ctl("demo", "--exchanges", 200, *both).out
    for words in ("1216 bytes", "1120 bytes", "EQUAL", "another secret and no error",
                  "200 exchanges, 64 in flight", "X25519", "mean batch"):
        assert words in text
    assert len(text.splitlines()) <= 18
    shown = ctl("demo", "--json", "--exchanges", 256, *both).object()
    assert shown["initiator_fingerprint"] == shown["responder_fingerprint"]
    assert shown["flipped_fingerprint"] != shown["intact_fingerprint"]
    assert shown["mean_batch"] >= 6 and shown["exchange_us"] > 0
    assert shown["x25519_exchange_us"] > 0


def test_demo_without_the_control_socket(daemon):
    result = ctl("demo", "mlkem768", "--exchanges", 10, *data(daemon),
                 "--control-socket", "/nonexistent/c")
    assert "EQUAL" in result.out and "mean batch" not in result.out
    assert result.err.startswith("mlkemctl: note: counters left out: control socket")
    assert len(result.err.splitlines()) == 1
    shown = ctl("demo", "mlkem768", "--exchanges", 10, "--json", *data(daemon),
                "--control-socket", "/nonexistent/c").object()
    assert shown["ok"] and "mean_batch" not in shown


def test_daemon_killed_under_keygen(here):
    with Daemon() as it:
        keygen = start("keygen", "--require", *data(it))
        share = keygen.stdout.readline()
        made = ctl("encaps", "--local", given=share)
        it.kill()
        wait_for(lambda: not it.alive(), 10, "its end")
        result = finish(keygen, made.value("ciphertext").encode())
        assert result.status in (FAILED, UNREACHABLE)
        assert "fingerprint" not in result.out
