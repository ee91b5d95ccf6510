# SPDX-License-Identifier: Apache-2.0
"""mlkem-ct: its tests, output, options and exit statuses.

What a timing test finds in good code on a busy machine is no matter of pass or fail here:
runs of that code are short and may say what they like, as long as it is one of the
statuses. A leak that was planted has to be found.
"""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

CT = os.environ["MLKEMD_CT"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
HOOKS = os.environ.get("MLKEMD_TEST_HOOKS") == "1"
SANITIZER = os.environ.get("MLKEMD_SANITIZER", "")
SHORT = ["--measurements", "2000", "--time", "20"]
NO_EVIDENCE, LEAK, USAGE, NOT_RUN = range(4)
LINE = re.compile(r"^  n = (\d+), max t = ([+-][\d.]+), max tau = ([+-][\d.e+-]+), "
                  r"\(5/tau\)\^2 = ([\d.e+-]+) \((all|squares|below [\d.]+ %)"
                  r"(: [+-][\d.]+ ticks)?\)$", re.M)
SANITIZER_REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSan|runtime error:")
TESTS = """keygen import encaps decaps_valid_vs_invalid_ctxt decaps_ctxt_off_by_one
    decaps_valid_vs_invalid_dk decaps_group hybrid_decaps x25519_derive x25519_base hkdf
    compare select id_compare socket_decaps""".split()


def ct(*args, status=(NO_EVIDENCE, LEAK), env=None):
    result = subprocess.run([CT, *map(str, args)], capture_output=True, text=True,
                            check=False, timeout=300, env=dict(os.environ, **(env or {})))
    assert not SANITIZER_REPORT.search(result.stderr), result.stderr
    allowed = status if isinstance(status, tuple) else (status,)
    assert result.returncode in allowed, (args, result.stdout, result.stderr)
    return result


def objects(*args, **more):
    return [json.loads(line) for line in ct("--json", *args, **more).stdout.splitlines()]


def backends():
    bench = pathlib.Path(CT).parent.parent / "mlkem-bench" / "mlkem-bench"
    rows = subprocess.run([bench, "--list", "ntt"], capture_output=True, text=True,
                          check=True).stdout.split()
    return [row.split("/")[2] for row in rows]


def test_list():
    lines = [line.split(maxsplit=1) for line in ct("--list").stdout.splitlines()]
    assert [name for name, _ in lines] == ["control"] + TESTS
    assert all(about for _, about in lines)


def test_a_wrong_backend_is_told_the_right_ones():
    said = ct("--backend", "bogus", status=USAGE).stderr
    assert said.startswith("mlkem-ct: --backend bogus: allowed are ")
    assert set(backends()) | {"all"} <= set(re.findall(r"\w+", said))


def test_lines_name_backend_seed_and_figures():
    out = ct(*SHORT, "--seed", 77, "--measurements", 7000, "select").stdout
    heads = re.findall(r"^(\w+): backend (\w+), set (\S+), seed (\d+)$", out, re.M)
    assert [head[0] for head in heads] == ["control", "select"]
    assert {head[3] for head in heads} == {"77"}
    lines = LINE.findall(out)
    assert [int(line[0]) for line in lines] == [3200, 6400, 7000] * 2
    for n, t, tau, needed, *_ in lines:
        # t = tau sqrt(n) of the measurements below the crop, and so at most of all
        assert abs(float(t)) <= abs(float(tau)) * int(n) ** 0.5 * 1.01 + 0.01
        if float(tau):
            assert float(needed) == pytest.approx(25 / float(tau) ** 2, rel=0.02)
    assert "seen, as it has to be" in out


def test_a_seed_is_drawn_if_none_is_given():
    seeds = {objects(*SHORT, "select")[0]["seed"] for _ in range(2)}
    assert len(seeds) == 2


def test_every_test_by_every_backend():
    rows = objects("--measurements", 1000, "--time", 20, "--backend", "all",
                   "--socket", "/nonexistent/s")
    names = backends()
    assert rows[0]["test"] == "control"
    assert [(row["backend"], row["test"]) for row in rows[1:] if row["verdict"] != "skipped"] \
        == [(name, test) for name in names for test in TESTS[:-1]]
    for row in rows:
        assert set(row) - {"reason"} == {
            "test", "backend", "set", "seed", "n", "max_t", "max_tau", "needed",
            "difference", "series", "verdict"}
        if row["verdict"] != "skipped":
            assert row["n"] == 1000


@pytest.mark.parametrize("size", ["512", "1024"])
def test_sets(size):
    rows = objects(*SHORT, "--set", size, "encaps", "hybrid_decaps", "hkdf")
    assert [row["set"] for row in rows] == ["-", f"ML-KEM-{size}", "X25519MLKEM768", "-"]


def test_backend():
    for name in backends():
        rows = objects(*SHORT, "--backend", name, "compare")
        assert {row["backend"] for row in rows} == {name}


def test_control_alone():
    (row,) = objects("--control", "--measurements", 4000, status=NO_EVIDENCE)
    assert row["test"] == "control" and row["verdict"] == "leak" and row["max_t"] > 4.5


def test_a_clock_that_misses_the_control_says_nothing():
    """Under a floor that nothing reaches, the leaking comparison is not seen either."""
    result = ct(*SHORT, "--floor", 1000000, "select", status=NOT_RUN)
    assert "not seen" in result.stderr and "select:" not in result.stdout


def test_time_is_a_bound():
    rows = objects("--measurements", 1000000000, "--time", 0.2, "hybrid_decaps")
    assert 0 < rows[1]["n"] < 1000000000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_continuous(number):
    command = [CT, *SHORT, "--json", "--continuous", "select", "hkdf"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        rows = []
        for line in process.stdout:
            rows.append(json.loads(line))
            if len(rows) == 7:
                process.send_signal(number)
                break
        rows += [json.loads(line) for line in process.stdout]
        assert process.wait(60) in (NO_EVIDENCE, LEAK)
    assert [row["test"] for row in rows[:7]] == ["control"] + ["hkdf", "select"] * 3
    assert [row["n"] for row in rows[1:7]] == [2000, 2000, 4000, 4000, 6000, 6000]


def test_socket(daemon):
    rows = objects(*SHORT, "--socket", daemon.path, "socket_decaps")
    assert rows[1]["n"] == 2000 and rows[1]["backend"] in backends()
    assert rows[1]["set"] == "X25519MLKEM768"


def test_no_socket():
    row = objects(*SHORT, "--socket", "/nonexistent/s", "socket_decaps", status=NOT_RUN)[1]
    assert row["verdict"] == "skipped" and "/nonexistent/s" in row["reason"]
    out = ct(*SHORT, "--socket", "/nonexistent/s", "select", "socket_decaps").stdout
    assert "skipped: no mlkemd to ask" in out


@pytest.mark.skipif(not HOOKS, reason="needs a build with test-hooks=true")
@pytest.mark.skipif(SANITIZER != "", reason="a sanitizer's own time says nothing")
@pytest.mark.parametrize("fault", ["kem-early-compare"])
def test_planted(fault):
    """A comparison that stops at the first difference is seen in decapsulation
    by every backend; the same run without it is its control. A busy machine gets more
    measurements, and more than one chance."""
    tests = ["decaps_valid_vs_invalid_ctxt", "decaps_ctxt_off_by_one",
             "decaps_valid_vs_invalid_dk"]

    def leaks(n, env):
        rows = objects("--measurements", n, "--time", 30, "--backend", "all", *tests,
                       env=env, status=(NO_EVIDENCE, LEAK, NOT_RUN))
        return {(row["backend"], row["test"]) for row in rows[1:] if row["verdict"] == "leak"}

    wanted = {(name, test) for name in backends() for test in tests}
    seen = set()
    for n in (2000, 4000, 8000, 16000):
        seen |= leaks(n, {"MLKEMD_FAULT": fault})
        if seen == wanted:
            break
    assert seen == wanted
    # Chance takes other tests each time.
    suspects = wanted
    for n in (2000, 4000, 8000):
        suspects = suspects & leaks(n, None)
        if not suspects:
            break
    assert not suspects


@pytest.mark.parametrize("args", [
    ("--measurements", "999"), ("--measurements", "x"), ("--measurements", "-1"),
    ("--time", "0"), ("--time", "nan"), ("--time", ""), ("--seed", "-1"), ("--seed", "x"),
    ("--seed", "18446744073709551616"), ("--backend", "sse2"), ("--backend", ""),
    ("--set", "256"), ("--set", "ml-kem"), ("--socket", ""), ("--socket", "x" * 108),
    ("--floor", "-1"), ("--control", "select"), ("no_such_test",), ("--no-such-option",),
    ("--seed",),
])
def test_wrong_command_lines(args):
    result = ct(*args, status=USAGE)
    assert "mlkem-ct" in result.stderr and len(result.stderr.splitlines()) == 1


def test_no_room_for_the_output():
    with open("/dev/full", "w") as full:
        result = subprocess.run([CT, *SHORT, "--json", "select"], stdout=full, check=False,
                                stderr=subprocess.PIPE, text=True, timeout=300)
    assert result.returncode == NOT_RUN and "standard output" in result.stderr


def test_help_and_version():
    text = ct("--help", status=NO_EVIDENCE).stdout
    page = (ROOT / "docs" / "man" / "mlkem-ct.1").read_text().replace("\\-", "-")
    options = set(re.findall(r"--([a-z-]+)", text))
    assert len(options) > 10
    for option in options:
        assert f"Fl -{option}" in page, option
    for test in TESTS:
        assert re.search(rf"(?<![\w-]){test}(?![\w-])", page), test
    assert all(len(line) <= 80 for line in text.splitlines())
    assert re.fullmatch(r"mlkem-ct \d+\.\d+\.\d+\n", ct("--version").stdout)
