# SPDX-License-Identifier: Apache-2.0
"""mlkemctl bench against a running daemon: that it counts right, never how fast it is."""

import os
import re
import signal
import socket
import xml.etree.ElementTree

import pytest

from ctl import BUSY, DENIED, FAILED, UNREACHABLE, USAGE, ctl, finish, start
from peer import frame, pb


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def both(daemon):
    return ("--socket", daemon.path, "--control-socket", daemon.control)


SHORT = ("--duration-ms", "200", "--rounds", "2", "--timeout-ms", "20000")
FIELDS = {"case", "op", "algorithm", "connections", "in_flight", "items", "rate",
          "idle_us", "ops", "failed", "ops_per_s", "p50_us", "p90_us", "p99_us", "p999_us",
          "max_us", "cpu_us_per_op", "client_cpu_us_per_op", "mean_batch"}


def counted(daemon, *names):
    stats = ctl("stats", "--json", "--control-socket", daemon.control).object()
    return [stats[name] for name in names]


@pytest.mark.parametrize("op,counters", [
    ("encaps", ("items_encaps_total",)),
    ("client", ("items_keygen_total", "items_decaps_total")),
    ("mix", ("items_encaps_total", "items_keygen_total", "items_decaps_total"))])
@pytest.mark.parametrize("algorithm", ["X25519MLKEM768", "ML-KEM-1024"])
def test_what_it_says_is_what_the_daemon_did(daemon, op, counters, algorithm):
    before = counted(daemon, *counters)
    row = ctl("bench", algorithm, "--op", op, "--connections", "3", "--in-flight", "5",
              "--items", "2", "--json", *SHORT, *both(daemon)).object()
    done = [b - a for a, b in zip(before, counted(daemon, *counters))]
    assert set(row) == FIELDS
    assert row["failed"] == 0 and row["ops"] == sum(done) > 0
    assert all(done), "each operation of it was made"
    assert 1 <= row["mean_batch"] <= 8
    assert 0 < row["p50_us"] <= row["p90_us"] <= row["p99_us"] <= row["p999_us"] \
        <= row["max_us"]
    assert row["cpu_us_per_op"] > 0 and row["ops_per_s"] > 0


def test_more_than_the_sockets_take(daemon):
    """Requests are made while parts of others are still to be sent, again and again."""
    row = ctl("bench", "--connections", "64", "--in-flight", "4", "--items", "64", "--json",
              "--duration-ms", "1500", "--rounds", "1", "--timeout-ms", "60000",
              *both(daemon)).object()
    assert row["failed"] == 0 and row["ops"] >= 64 * 4 * 64


def test_the_usual_rows(daemon):
    rows = ctl("bench", "--json", *SHORT, *both(daemon)).objects()
    assert [(row["connections"], row["in_flight"], row["idle_us"]) for row in rows] == \
        [(64, 1, 0), (1, 64, 0), (1, 1, 0), (1, 1, 10000)]
    assert all(row["ops"] > 0 and row["failed"] == 0 for row in rows)
    assert rows[2]["mean_batch"] == 1
    # 10 ms apart, 200 ms: at most 21, and fewer where the machine is slow
    assert rows[3]["ops"] <= 22 < rows[2]["ops"]
    text = ctl("bench", *SHORT, *both(daemon)).out
    assert "no peer was measured" in text and "many connections" in text


def test_it_sleeps_at_once_if_it_may_not_look(daemon):
    """Its own processor time tells: a call takes many times what a client has to do."""
    looking, asleep = (
        ctl("bench", "--in-flight", "1", "--spin-us", us, "--json", *SHORT,
            *both(daemon)).object() for us in ("60000000", "0"))
    assert asleep["client_cpu_us_per_op"] < looking["client_cpu_us_per_op"]


def test_an_open_loop_keeps_its_rate(daemon):
    row = ctl("bench", "--rate", "100", "--in-flight", "8", "--json", "--duration-ms",
              "1000", "--rounds", "1", "--timeout-ms", "20000", *both(daemon)).object()
    assert 90 <= row["ops"] <= 101


def test_an_open_loop_counts_from_when_a_request_was_due(daemon):
    """The control: the daemon stands still for a while, and the times say so, although
    no request of the bench was sent then."""
    (before,) = counted(daemon, "items_encaps_total")
    process = start("bench", "--rate", "50", "--in-flight", "1", "--json",
                    "--duration-ms", "2000", "--rounds", "1", "--timeout-ms", "60000",
                    *both(daemon))
    # Not before it measures: its first questions to the control socket would wait.
    while counted(daemon, "items_encaps_total")[0] == before:
        pass
    daemon.signal(signal.SIGSTOP)
    try:
        process.wait(1.0)
    except Exception:
        pass
    daemon.signal(signal.SIGCONT)
    row = finish(process).object()
    # Some 50 requests were due meanwhile, half of them for over half a second.
    assert row["p90_us"] > 300000, row


def test_beside_the_local_route(daemon, here):
    result = ctl("bench", "--compare-local", "--plot", "plot.svg", *SHORT, *both(daemon))
    assert "break-even" in result.out
    root = xml.etree.ElementTree.parse("plot.svg").getroot()
    series = [e for e in root.iter() if e.get("class") == "series"]
    assert len(series) == 2
    rows = ctl("bench", "--compare-local", "--json", *SHORT, *both(daemon)).objects()
    assert [row["in_flight"] for row in rows] == [1, 2, 4, 8, 16, 32, 64]
    assert all(row["local_us_per_op"] > 0 for row in rows)


PEER = """#!/usr/bin/python3
import sys
print("peer toy 1.0\\nop encaps-parsed 768\\nready", flush=True)
for line in sys.stdin:
    print("ns 50000 0" if line.startswith("run %s 768") else "error what?", flush=True)
"""


def test_beside_a_peer(daemon, here):
    for op, name in (("encaps", "hybrid-server"), ("client", "hybrid-client")):
        with open("peer-toy", "w") as file:
            file.write(PEER % name)
        os.chmod("peer-toy", 0o755)
        rows = ctl("bench", "--op", op, "--in-flight", "2", "--peer", "./peer-toy",
                   "--json", *SHORT, *both(daemon)).objects()
        assert rows[0]["peer"] == "toy"
        right = 50 if op == "encaps" else 25
        assert rows[0]["peer_us_per_op"] == right
        assert abs(rows[0]["cpu_of_peer"] - rows[0]["cpu_us_per_op"] / right) < 0.001


def test_failures_are_counted_and_shown(daemon):
    ctl("drain", "--control-socket", daemon.control)
    try:
        row = ctl("bench", "--in-flight", "2", "--json", *SHORT, *both(daemon)).object()
        assert row["ops"] == 0 and row["failed"] > 0
        text = ctl("bench", "--in-flight", "2", *SHORT, *both(daemon)).out
        assert re.search(r"\d+ failed, the first with status 52: .*draining", text)
    finally:
        ctl("resume", "--control-socket", daemon.control)


def test_without_the_control_socket(daemon):
    row = ctl("bench", "--in-flight", "2", "--json", *SHORT, "--socket", daemon.path,
              "--control-socket", "/nonexistent/c").object()
    assert row["ops"] > 0 and "cpu_us_per_op" not in row and "mean_batch" not in row


def test_without_the_control_socket_in_words(daemon):
    """What is not known is no zero, and no error; with the socket it is known."""
    args = ("bench", "--in-flight", "2", *SHORT, "--socket", daemon.path,
            "--control-socket")
    for path, known in (("/nonexistent/c", False), (daemon.control, True)):
        said = ctl(*args, path)
        (row,) = [line for line in said.out.splitlines() if "closed loop" in line]
        *_, cpu_us, client, batch = row.split()
        assert (cpu_us == "-", batch == "-") == (not known, not known), row
        assert float(client) > 0
        assert said.err.startswith("mlkemctl: note: counters left out") == (not known)


def test_break_even_is_not_guessed(daemon, tmp_path):
    args = ("bench", "--compare-local", *SHORT, "--socket", daemon.path,
            "--control-socket", "/nonexistent/c")
    assert "break-even: not known" in ctl(*args).out
    said = ctl(*args, "--plot", tmp_path / "plot", status=UNREACHABLE)
    assert "control socket" in said.err and not (tmp_path / "plot").exists()


@pytest.mark.parametrize("args,said", [
    (("--op", "decaps"), "encaps, client and mix"),
    (("--connections", "0"), "1 to 4096"),
    (("--items", "65"), "1 to 64"),
    (("--rounds", "101"), "1 to 100"),
    (("--plot", "x.svg"), "--compare-local"),
    (("--compare-local", "--in-flight", "2"), "rows of its own"),
    (("--op", "mix", "--peer", "p"), "--op encaps or client"),
    (("--op", "client", "--rate", "5"), "--rate"),
    (("--count", "5"), "--count"),
])
def test_mistakes(args, said):
    result = ctl("bench", *args, "--socket", "/nonexistent/s", status=USAGE)
    assert said in result.err, result.err


def test_nobody_there(here):
    result = ctl("bench", "--in-flight", "1", "--socket", "nobody.sock",
                 status=UNREACHABLE)
    assert "nobody.sock" in result.err


def test_a_peer_that_is_none(daemon, here):
    result = ctl("bench", "--peer", "/bin/false", *SHORT, *both(daemon), status=FAILED)
    assert "no peer" in result.err


def serve(listener, answers):
    """Answers each frame with the next of answers."""
    peer, _ = listener.accept()
    for answer in answers:
        size = int.from_bytes(peer.recv(4, socket.MSG_WAITALL), "big")
        request = pb.Request.FromString(peer.recv(size, socket.MSG_WAITALL))
        if answer is not None:
            peer.sendall(answer(request))
    return peer


@pytest.mark.parametrize("last,status", [
    (lambda request: b"HTTP/1.1 400", FAILED),
    (lambda request: frame(pb.Response(id=request.id + 1)), FAILED),
    (None, BUSY)])
def test_who_answers_otherwise(here, last, status):
    hello = lambda request: frame(pb.Response(id=request.id,
                                              hello=pb.HelloResult(version=1)))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("odd.sock")
        listener.listen()
        process = start("bench", "--in-flight", "1", "--socket", "odd.sock",
                        "--control-socket", "/nonexistent/c", "--duration-ms", "100",
                        "--timeout-ms", "20000" if last else "500")
        peer = serve(listener, [hello, last])
        result = finish(process)
        peer.close()
    assert result.status == status, result.err


def test_who_is_refused_is_told(here):
    refusal = lambda request: frame(pb.Response(id=request.id, status=pb.DENIED,
                                                message="not you"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("closed.sock")
        listener.listen()
        process = start("bench", "--in-flight", "1", "--socket", "closed.sock",
                        "--control-socket", "/nonexistent/c")
        peer = serve(listener, [refusal])
        result = finish(process)
        peer.close()
    assert result.status == DENIED and "not you" in result.err
