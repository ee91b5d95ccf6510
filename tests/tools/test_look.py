# SPDX-License-Identifier: Apache-2.0
"""mlkemctl top and doctor: that they see what is there, planted or not."""

import os
import shutil
import signal
import socket

import pytest

from ctl import FAILED, UNREACHABLE, USAGE, ctl, finish, start
from daemon import Daemon
from peer import pb

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can try other users")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def both(daemon):
    return ("--socket", daemon.path, "--control-socket", daemon.control)


def control(daemon):
    return ("--control-socket", daemon.control)


def findings(daemon, status=0):
    lines = ctl("doctor", "--json", *both(daemon), status=status).objects()
    assert all({"finding", "what", "text"} <= set(line) <=
               {"finding", "what", "text", "remedy"} for line in lines)
    return {line["what"]: line for line in lines}


def test_top_counts_what_was_done(daemon):
    process = start("top", "--json", "--count", "1", "--interval-ms", "1500",
                    *control(daemon))
    with daemon.peer() as peer:
        while process.poll() is None:
            key = peer.keygen(pb.ML_KEM_768)[0]
            peer.encaps(pb.ML_KEM_768, [key.share] * 4)
            peer.call("release", handles=[key.handle])
        result = finish(process).object()
    assert result["encaps_per_s"] > 0
    assert result["encaps_per_s"] == pytest.approx(4 * result["keygen_per_s"], rel=0.3)
    assert result["decaps_per_s"] == 0 and result["failed_per_s"] == 0
    assert result["connections"] == 1 and 1 < result["mean_batch"] <= 8
    assert result["cpu_percent"] > 0


def test_top_goes_on_until_it_is_stopped(daemon):
    process = start("top", "--interval-ms", "50", *control(daemon))
    first = process.stdout.readline() + process.stdout.readline()
    assert b"mlkemd" in first
    for _ in range(20):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert finish(process).status == 0


def test_top_needs_the_control_socket(daemon):
    ctl("top", "--control-socket", "/nonexistent/c", "--count", "1", status=UNREACHABLE)
    assert "10 to 3600000" in ctl("top", "--interval-ms", "1", status=USAGE).err


def test_doctor_of_a_healthy_daemon(daemon):
    seen = findings(daemon)
    assert seen["daemon"]["finding"] == "good" and seen["socket"]["finding"] == "good"
    assert not [f for f in seen.values() if f["finding"] == "bad"]
    assert seen["secret memory"]["finding"] in ("good", "note")
    text = ctl("doctor", *both(daemon)).out
    assert "good  daemon" in text and text.rstrip().endswith("0 that do not work")


def test_doctor_without_the_control_socket(daemon):
    said = ctl("doctor", "--json", "--socket", daemon.path, "--control-socket",
               "/nonexistent/c")
    (seen,) = [row for row in said.objects() if row["what"] == "counters"]
    assert seen["finding"] == "note" and "--control-socket" in seen["remedy"]
    assert not [row for row in said.objects() if "error" in row]
    assert said.err.startswith("mlkemctl: note: counters left out")


def test_doctor_where_nobody_answers(here):
    result = ctl("doctor", "--json", "--socket", "none.sock", status=FAILED)
    seen = {line["what"]: line for line in result.objects()}
    assert seen["daemon"]["finding"] == seen["socket"]["finding"] == "bad"
    assert "systemctl start mlkemd" in seen["daemon"]["remedy"]


def test_doctor_sees_what_was_planted():
    """Each of these is a mistake that somebody made: it is named, with its remedy."""
    with Daemon({"kem.backend": "generic", "socket.mode": "0660",
                 "daemon.secret-memory": "off", "limits.max-handles": "4",
                 "pool.hybrid": "0", "pool.x25519": "0"}) as daemon:
        with daemon.peer() as peer:
            for _ in range(40):
                peer.call("generate_keys", algorithm=pb.X25519MLKEM768, count=8)
        seen = findings(daemon)
        assert seen["socket"]["finding"] == "warn" and "0666" in seen["socket"]["remedy"]
        assert seen["secret memory"]["finding"] == "warn"
        assert "LimitMEMLOCK" in seen["secret memory"]["remedy"]
        assert seen["limits"]["finding"] == "warn"
        if ctl("info", "--local", "--json").object()["backend"] != "generic":
            assert seen["backend"]["finding"] == "warn"
        ctl("drain", *control(daemon))
        seen = findings(daemon, status=FAILED)
        assert seen["daemon"]["finding"] == "bad"
        assert "resume" in seen["daemon"]["remedy"]


def test_doctor_sees_a_starved_pool():
    with Daemon({"pool.hybrid": "1", "limits.user-share": "100%"}) as daemon:
        assert "pool" in findings(daemon)
        with daemon.peer() as peer:
            for _ in range(20):
                handles = [i.handle for i in peer.keygen(pb.X25519MLKEM768, 32)]
                peer.call("release", handles=handles)
        seen = findings(daemon)
        assert seen["pool"]["finding"] == "warn" and "pool." in seen["pool"]["remedy"]


def test_doctor_sees_a_socket_that_is_none(here):
    open("file", "w").close()
    result = ctl("doctor", "--json", "--socket", "file", status=FAILED)
    assert "no socket" in {i["what"]: i for i in result.objects()}["socket"]["text"]


@needs_root
def test_doctor_tries_the_users():
    """A user who is on the list and one who is not; users that do not exist are not
    spoken of."""
    import pwd
    names = {name for name in ("www-data", "haproxy", "stunnel4", "_hitch")
             if any(entry.pw_name == name for entry in pwd.getpwall())}
    if not names:
        pytest.skip("no user of a proxy is on this machine")
    some = sorted(names)[0]
    with Daemon() as daemon:
        os.chmod(os.path.dirname(daemon.path), 0o755)
        seen = findings(daemon)
        assert {what[5:] for what in seen if what.startswith("user ")} == names
        assert seen[f"user {some}"]["finding"] == "warn"
        assert some in seen[f"user {some}"]["remedy"]
    with Daemon({"access.allow-users": f"0,{some}"}) as daemon:
        os.chmod(os.path.dirname(daemon.path), 0o755)
        assert findings(daemon)[f"user {some}"]["finding"] == "good"


def test_doctor_sees_a_proxy_without_the_provider(daemon, here):
    """A program of that name runs; it is sleep, and has nothing loaded."""
    import subprocess
    shutil.copy(shutil.which("sleep"), "hitch")
    process = subprocess.Popen(["./hitch", "60"])
    try:
        seen = findings(daemon)
        assert seen["hitch"]["finding"] == "warn"
        assert "proxies.md" in seen["hitch"]["remedy"]
    finally:
        process.kill()
        process.wait()
    assert "hitch" not in findings(daemon)


def test_doctor_is_not_fooled_by_an_impostor(here):
    """Somebody else listens there: root's own program is no somebody else."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("mute.sock")
        listener.listen()
        result = ctl("doctor", "--json", "--socket", "mute.sock", "--timeout-ms", "300",
                     status=FAILED)
        daemon = {i["what"]: i for i in result.objects()}["daemon"]
        assert daemon["finding"] == "bad" and "restart" in daemon["remedy"]
