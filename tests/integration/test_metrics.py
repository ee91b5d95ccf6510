# SPDX-License-Identifier: Apache-2.0
"""The figures: that they are right, that they tell nothing secret, and how they are got."""

import os
import re
import socket
import threading
import time

import pytest

from daemon import SANITIZER, SLOW, Daemon, StartFailed, wait_for
from peer import ALGORITHMS, SIZES, Peer, frame, name_of, pb
from scrape import Figures, ask, figures

NAMES = {pb.ML_KEM_512: "ML-KEM-512", pb.ML_KEM_768: "ML-KEM-768",
         pb.ML_KEM_1024: "ML-KEM-1024", pb.X25519MLKEM768: "X25519MLKEM768"}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def measured():
    """A daemon with both kinds of sockets for scrapes: it has .http and .unix."""
    port = free_port()
    with Daemon({"metrics.listen": f"127.0.0.1:{port}"}, wait=True) as daemon:
        daemon.http = ("127.0.0.1", port)
        yield daemon


def exchange(peer, algorithm, n, spoil=None):
    """Key generation, encapsulation and decapsulation of n items."""
    keys = peer.call("generate_keys", algorithm=algorithm, count=n).keys.items
    answers = peer.call("encapsulate", algorithm=algorithm,
                        shares=[k.share for k in keys]).encapsulated.items
    items = []
    for key, answer in zip(keys, answers):
        ciphertext = bytearray(answer.ciphertext)
        if spoil == "bit":
            ciphertext[5] ^= 1
        elif spoil == "length":
            del ciphertext[-1]
        items.append(pb.DecapsulateItem(handle=key.handle, ciphertext=bytes(ciphertext)))
    opened = peer.call("decapsulate", algorithm=algorithm, items=items).decapsulated.items
    return answers, opened


def change(before, after, timing=False):
    """{series: difference} of what is no time and no memory."""
    times = re.compile("_seconds|process_|_turns_|_pool_|_lanes_|_batch_size"
                       if not timing else "^$")
    return {key: after[key] - before[key] for key in after
            if not times.search(key[0]) and after[key] != before[key]}


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=name_of)
def test_every_operation_is_counted(measured, algorithm):
    before = figures(measured.http)
    with measured.peer() as peer:
        exchange(peer, algorithm, 5)
        after = figures(measured.http)
    name = NAMES[algorithm]
    for op in ("keygen", "encaps", "decaps"):
        for family, n, labels in (
                ("mlkemd_items_total", 5, {"op": op, "algorithm": name}),
                ("mlkemd_requests_total", 1, {"op": op, "code": "OK"}),
                ("mlkemd_request_duration_seconds_count", 1,
                 {"op": op, "algorithm": name})):
            assert after.of(family, **labels) - before.of(family, **labels) == n, (
                family, labels)
    for op in ("encaps", "decaps"):
        for family in ("mlkemd_queue_wait_seconds_count", "mlkemd_batch_size_sum"):
            assert after.of(family, op=op) - before.of(family, op=op) == 5
        assert after.of("mlkemd_batch_duration_seconds_count", op=op) > before.of(
            "mlkemd_batch_duration_seconds_count", op=op)
    assert after.of("mlkemd_handles_ended_total", reason="used") - before.of(
        "mlkemd_handles_ended_total", reason="used") == 5
    assert after.of("mlkemd_connections") == 1


def test_refusals_are_counted_by_what_the_client_is_told(measured):
    before = figures(measured.http)
    with measured.peer() as peer:
        peer.call("encapsulate", algorithm=pb.ML_KEM_768, shares=[b"short"])
        peer.call("decapsulate", algorithm=pb.ML_KEM_768, items=[pb.DecapsulateItem(
            handle=bytes(16), ciphertext=bytes(SIZES[pb.ML_KEM_768][1]))])
        kept = peer.call("generate_keys", algorithm=pb.ML_KEM_768, count=3).keys.items
        peer.call("release", handles=[kept[0].handle])
    wait_for(lambda: figures(measured.http).of("mlkemd_connections") == 0, 10 * SLOW,
             "the connection's end")
    after = figures(measured.http)
    for family, labels, n in (
            ("mlkemd_items_failed_total", {"op": "encaps", "code": "BAD_LENGTH"}, 1),
            ("mlkemd_items_failed_total", {"op": "decaps", "code": "KEY_NOT_FOUND"}, 1),
            ("mlkemd_handles_ended_total", {"reason": "released"}, 1),
            ("mlkemd_handles_ended_total", {"reason": "disconnect"}, 2)):
        assert after.of(family, **labels) - before.of(family, **labels) == n, labels


def test_no_figure_tells_a_wrong_ciphertext(measured):
    """What changes is the same, whether all ciphertexts are right or all are wrong."""
    changes = {}
    for spoil in (None, "bit", "length"):
        with measured.peer() as peer:
            before = figures(measured.http)
            answers, opened = exchange(peer, pb.X25519MLKEM768, 16, spoil)
            after = figures(measured.http)
        changes[spoil] = change(before, after)
        if spoil != "length":
            same = [a.secret == o.secret for a, o in zip(answers, opened)]
            assert same == [spoil is None] * 16
    assert changes[None] == changes["bit"]
    assert changes[None]
    # The control: the comparison sees what a client is told.
    assert changes[None] != changes["length"]


def test_each_of_many_scrapes_is_whole(measured):
    stop = threading.Event()

    def load():
        with measured.peer() as peer:
            while not stop.is_set():
                exchange(peer, pb.ML_KEM_768, 8)
    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    last = None
    try:
        for _ in range(100 // SLOW):
            now = figures(measured.http)
            now.check_histograms()
            for key in last or ():
                if key[0].endswith(("_total", "_count", "_bucket")):
                    assert now[key] >= last[key], key
            last = now
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_process_figures_are_the_kernel_s(measured):
    now = figures(measured.http)
    assert abs(now.of("process_resident_memory_bytes") / 1024 - measured.rss_kib()) < 2048
    assert abs(now.of("process_open_fds") - measured.n_fds()) <= 3
    assert abs(now.of("process_start_time_seconds") - time.time()) < 3600
    assert now.of("process_cpu_seconds_total") > 0


# ---------------------------------------------------------------- how they are got

def test_off_unless_it_is_asked_for():
    with Daemon() as daemon:
        fds = f"/proc/{daemon.pid}/fd"
        links = [os.readlink(f"{fds}/{fd}") for fd in os.listdir(fds)]
        inodes = {link[8:-1] for link in links if link.startswith("socket:")}
        for table in ("tcp", "tcp6"):
            for line in open(f"/proc/net/{table}").readlines()[1:]:
                assert line.split()[9] not in inodes


@pytest.mark.parametrize("address", ["0.0.0.0:9768", "192.0.2.1:9768", "[::]:9768",
                                     "127.0.0.1", "localhost:9768", ":9768",
                                     "127.0.0.1:0", "127.0.0.1:70000"])
def test_other_addresses_are_refused(address):
    with pytest.raises(StartFailed) as failed:
        Daemon({"metrics.listen": address})
    assert failed.value.status == 2
    assert "metrics.listen" in failed.value.log


def test_a_port_in_use_is_said():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(StartFailed) as failed:
            Daemon({"metrics.listen": f"127.0.0.1:{other.getsockname()[1]}"})
    assert "listen-failed: metrics.listen 127.0.0.1:" in failed.value.log


def test_a_unix_socket_with_its_mode(tmp_path):
    path = str(tmp_path / "m.sock")
    with Daemon({"metrics.path": path, "metrics.mode": "0640"}):
        assert os.stat(path).st_mode & 0o777 == 0o640
        assert figures(path).of("mlkemd_build_info") == 1
    assert not os.path.exists(path)


def test_head_says_the_length_and_sends_no_body(measured):
    status, headers, body = ask(measured.http, method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 10000
    with socket.create_connection(measured.http, 20) as raw:
        raw.sendall(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        text = b""
        while piece := raw.recv(65536):
            text += piece
    assert text.endswith(b"\r\n\r\n") and text.count(b"\r\n\r\n") == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(measured, method):
    status, headers, body = ask(measured.http, method=method)
    assert status == 405 and headers["Allow"] == "GET, HEAD"
    if method in ("POST", "PUT", "PATCH"):
        for size in (1, 4096):
            status, headers, text = ask(measured.http, "/metrics", method,
                                        body=b"x" * size)
            assert status == 405 and headers["Allow"] == "GET, HEAD"
            assert text == b"GET and HEAD are allowed\n"
        assert ask(measured.http, "/metrics", method, body=b"x" * 4097)[0] == 413
    assert b"mlkemd_" not in body


def test_paths(measured):
    assert ask(measured.http, "/")[0] == 404
    assert ask(measured.http, "/metrics/")[0] == 404
    assert ask(measured.http, "/../metrics")[0] == 404
    assert ask(measured.http, "/metrics?x=1")[0] == 200
    assert ask(measured.http, "/healthz")[::2] == (200, b"ok\n")


@pytest.mark.parametrize("accept", [
    "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "*/*", "text/plain;q=0.1", "application/openmetrics-text;version=9.9.9",
    "application/vnd.google.protobuf", "text/html", None, "x" * 4000])
def test_whatever_is_accepted_the_header_says_what_it_is(measured, accept):
    status, headers, body = ask(measured.http,
                                headers={"Accept": accept} if accept else {})
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    Figures(body.decode())


BROKEN = [
    b"\0" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n",
    b"BREW /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"GET http://[:/ HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nx",
    b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\nx",
    b"GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"\r\n" * 1000, b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
]


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_bad_input_ends_its_own_connection_only(measured, number):
    with socket.create_connection(measured.http, 30 * SLOW) as raw:
        try:
            raw.sendall(BROKEN[number])
            while raw.recv(65536):
                pass
        except (ConnectionResetError, BrokenPipeError):
            pass
    figures(measured.http)


def test_a_header_without_an_end_is_not_kept(measured):
    before = measured.rss_kib()
    with socket.create_connection(measured.http, 30 * SLOW) as raw:
        sent = 0
        try:
            raw.sendall(b"GET /")
            while sent < 16 << 20:
                sent += raw.send(b"a" * 65536)
        except (ConnectionResetError, BrokenPipeError):
            pass
    assert sent < 8 << 20
    if not SANITIZER:  # which keeps what was freed
        assert measured.rss_kib() < before + 2048
    figures(measured.http)


def closed_after(raw):
    """Seconds until the daemon closes a connection on which a byte comes now and then."""
    begin = time.monotonic()
    raw.settimeout(0.3)
    while time.monotonic() < begin + 40 * SLOW:
        try:
            raw.sendall(b"x")
            if not raw.recv(1024):
                break
        except socket.timeout:
            continue
        except (ConnectionResetError, BrokenPipeError):
            break
    return time.monotonic() - begin


def test_who_drips_is_closed(measured):
    """evhttp's own limit is one of silence."""
    with socket.create_connection(measured.http, 30) as raw:
        raw.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        assert closed_after(raw) < 35 * SLOW


def test_many_slow_connections_keep_nobody_out(measured):
    before = measured.n_fds()
    slow = []
    try:
        for _ in range(300):
            one = socket.create_connection(measured.http, 30 * SLOW)
            one.sendall(b"GET /metrics HTTP/1.1\r\n")
            slow.append(one)
        assert figures(measured.http).of("mlkemd_build_info") == 1
        with measured.peer() as peer:
            exchange(peer, pb.X25519MLKEM768, 4)
        assert measured.n_fds() < before + 150
        wait_for(lambda: measured.n_fds() <= before + 1, 30 * SLOW, "their end")
    finally:
        for one in slow:
            one.close()
    assert "Too many open files" not in measured.log()


def test_ready_is_more_than_alive(measured):
    wait_for(lambda: ask(measured.http, "/readyz")[0] == 200, 60 * SLOW, "a filled pool")
    measured.admin("drain")
    status, _, body = ask(measured.http, "/readyz")
    assert (status, body) == (503, b"draining\n")
    assert ask(measured.http, "/healthz")[0] == 200
    assert figures(measured.http).of("mlkemd_draining") == 1
    measured.admin("resume")
    assert ask(measured.http, "/readyz")[0] == 200


def test_an_empty_pool_is_not_ready():
    port = free_port()
    with Daemon({"metrics.listen": f"127.0.0.1:{port}", "pool.low-water": "100%",
                 "pool.hybrid": "16384", "daemon.secret-memory": "off"}) as daemon:
        status, _, body = ask(("127.0.0.1", port), "/readyz")
        assert (status, body) == (503, b"the pool is below low water\n")
        assert daemon.alive()


def test_a_reload_that_is_refused_is_seen(measured):
    assert figures(measured.http).of("mlkemd_config_last_reload_successful") == 1
    measured.reconfigure(pool__hybrid="many")
    assert measured.admin("reload").status == pb.INVALID_REQUEST
    assert figures(measured.http).of("mlkemd_config_last_reload_successful") == 0
    del measured.settings["pool.hybrid"]
    measured.reconfigure()
    assert measured.admin("reload").status == pb.OK
    assert figures(measured.http).of("mlkemd_config_last_reload_successful") == 1


def test_was_it_mlkemd():
    """A slow request's line has the numbers that its client knows it by."""
    start = time.monotonic()
    with Daemon({"daemon.slow-request": "1us"}) as daemon:
        with Peer(daemon.path) as peer:
            number = peer.welcome.connection
            answer = peer.call("encapsulate", algorithm=pb.ML_KEM_768, shares=[
                peer.call("generate_keys", algorithm=pb.ML_KEM_768,
                          count=1).keys.items[0].share])
        found = re.search(r"<5>slow-request: connection (\d+), request (\d+): .*: \d+ us "
                          r"\((?:queue \d+ us, batch \d+, \d+ us|no batch); waited for "
                          r"its turn\)", daemon.log())
        assert found, daemon.log()
        assert int(found[1]) == number
        assert int(found[2]) <= answer.id
        # Limited, like whatever a client can cause.
        assert daemon.log().count("slow-request:") <= 2 + time.monotonic() - start
        assert daemon.stats()["slow_requests_total"] >= 3


def test_it_was_its_own_client():
    """Requests behind answers that their client does not read: the line says so."""
    with Daemon({"daemon.slow-request": "500ms", "kem.export-private-keys": "yes",
                 "limits.user-share": "100%"}) as daemon:
        with Peer(daemon.path, timeout=60) as peer:
            requests = [peer.request("generate_keys", algorithm=pb.ML_KEM_1024, count=1,
                                     export_private=True) for _ in range(400)]
            peer.send_raw(b"".join(map(frame, requests)))
            time.sleep(2)  # it does not read
            answers = [peer.recv() for _ in requests]
        assert pb.DEADLINE_EXCEEDED in {answer.status for answer in answers}
        lines = re.findall("slow-request: .*", daemon.log())
        assert any(line.endswith("(no batch; waited for its client to read)")
                   for line in lines), lines


@pytest.mark.parametrize("claim", [999_999, 1_000_000, 2**32, 2**64 - 1])
def test_fallbacks_are_limited(claim):
    """Whatever clients say of themselves: a connection adds a million at most."""
    with Daemon() as daemon, Peer(daemon.path, hello=False) as peer, \
            Peer(daemon.path, hello=False) as other:
        for _ in range(5):
            assert peer.hello(fallbacks=claim).status == pb.OK
        assert daemon.stats()["client_fallbacks_total"] == 1_000_000
        assert other.hello(fallbacks=7).status == pb.OK
        assert daemon.stats()["client_fallbacks_total"] == 1_000_007


def test_no_slow_request_is_told_of_by_0s():
    with Daemon({"daemon.slow-request": "0s"}) as daemon:
        with Peer(daemon.path) as peer:
            peer.call("ping")
        assert "slow-request" not in daemon.log()
