# SPDX-License-Identifier: Apache-2.0
"""mlkem-bench: its rows, output and options. No test looks at how long anything took."""

import json
import os
import pathlib
import re
import subprocess
import textwrap
import xml.etree.ElementTree as ET

import pytest

BENCH = os.environ["MLKEMD_BENCH"]
CTL = os.environ["MLKEMD_CTL"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "tests" / "bench" / "peers"
QUICK = ["--duration", "0.2", "--repeats", "2", "--warmup", "0"]
HEAD = "op param set backend batch ops/sec(med) us/op cycles/op min max stdev".split()
SANITIZER_REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSan|runtime error:")


def bench(*args, status=0, env=None):
    result = subprocess.run([BENCH, *map(str, args)], capture_output=True, text=True,
                            check=False, timeout=300, env=dict(os.environ, **(env or {})))
    assert not SANITIZER_REPORT.search(result.stderr), result.stderr
    assert result.returncode == status, (args, result.stdout, result.stderr)
    return result


def objects(*args):
    return [json.loads(line) for line in bench("--json", *QUICK, *args).stdout.splitlines()]


def listed(*args):
    return bench("--list", *args).stdout.split()


def backends():
    return sorted({row.split("/")[2] for row in listed("ntt")})


def test_the_list_has_every_operation_of_every_backend():
    rows = listed()
    assert len(rows) == len(set(rows))
    ours = backends()
    assert "generic" in ours
    for name in ours:
        for op in ("keygen", "encaps", "decaps", "decaps-checked"):
            for size in ("512", "768", "1024"):
                for batch in (1, 8, 16, 64):
                    assert f"{op}/{size}/{name}/{batch}" in rows
        for op in ("hybrid-client", "hybrid-server", "hybrid-pooled"):
            assert f"{op}/768/{name}/8" in rows
        for op in ("x25519-base", "x25519-derive"):
            assert f"{op}/-/{name}/8" in rows
        assert f"basemul/1024/{name}/1" in rows


def test_every_kernel_of_a_backend_has_a_row():
    """Whoever adds a kernel to struct backend adds a row."""
    header = (ROOT / "kem" / "arch" / "backend.h").read_text()
    body = header[header.index("struct backend {"):]
    kernels = re.findall(r"\(\*(\w+)[\[)]", body)
    assert len(kernels) > 15
    ops = {row.split("/")[0].replace("-", "_") for row in listed()}
    # X25519 is measured as the operation that it is, by lanes or by OpenSSL.
    operations = {"x25519_base8": "x25519_base", "x25519_shared8": "x25519_derive"}
    for kernel in kernels:
        kernel = operations.get(kernel, kernel)
        assert any(op.startswith(kernel) for op in ops), kernel
    # the control: a kernel that is not there is missed
    assert not any(op.startswith("no_such_kernel") for op in ops)


def test_table():
    out = bench(*QUICK, "keygen/768//1", "keccak/-/generic").stdout
    assert re.search(r"^ops: as fit, duration: 0.2 ms, repeats: 2, warmup: 0 ms$", out, re.M)
    lines = out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("op "))
    assert lines[head].split() == HEAD
    rows = [line.split() for line in lines[head + 1:] if line[:6] in ("keygen", "keccak")]
    assert len(rows) == len(backends()) + 1
    for row in rows:
        ops, us, low, high = float(row[4]), float(row[5]), float(row[-3]), float(row[-2])
        assert low <= us <= high
        assert ops * us == pytest.approx(1e6, rel=0.01)


def test_json():
    rows = objects("keygen/768", "ntt")
    assert len(rows) == len(backends()) * 5
    for row in rows:
        assert {"op", "set", "backend", "batch", "us", "ops", "floor"} <= set(row)
        assert row["us"] > 0 and row["min_us"] <= row["us"] <= row["max_us"]
        assert row["ops"] * row["us"] == pytest.approx(1e6, rel=0.001)
        assert (row["floor"] is None) == (row["op"] == "ntt")
        if row["floor"] is not None:
            assert row["floor"] > 0


def test_every_row_runs():
    """All of them, once: each must work, whatever it costs."""
    rows = [json.loads(line) for line in bench(
        "--json", "--ops", 1, "--repeats", 1, "--warmup", 0, "--batch", "1,3",
        ).stdout.splitlines()]
    assert sorted({row["backend"] for row in rows}) == backends()
    assert {row["op"] for row in rows} == {row.split("/")[0] for row in listed()}


def test_cold_stands_beside_hot():
    (row,) = objects("--cold", "x25519-base/-/generic/1")
    assert row["cold_us"] > 0 and row["us"] > 0
    (row,) = objects("x25519-base/-/generic/1")
    assert "cold_us" not in row


def test_batches():
    rows = objects("--batch", "2,5", "encaps/512/generic")
    assert [row["batch"] for row in rows] == [2, 5]


def test_profile_time_measures_nothing():
    result = bench("--profile-time", "0.05", "ntt", "keygen/512/generic/1")
    assert "op " not in result.stdout
    assert len(result.stderr.splitlines()) == len(backends()) + 1


def test_plot(tmp_path):
    path = tmp_path / "cost.svg"
    bench(*QUICK, "--batch", "1,2,4", "--plot", path, "keygen/512", "encaps/512/generic")
    svg = ET.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    series = svg.findall(f"{space}path[@class='series']")
    assert len(series) == len(backends()) + 1
    assert all(len(re.findall(r"[ML]", line.get("d"))) == 3 for line in series)
    assert len(svg.findall(f"{space}path[@class='floor']")) == 2
    assert len(svg.findall(f"{space}circle")) == 3 * len(series)
    texts = " ".join(text.text for text in svg.iter(f"{space}text"))
    assert "keygen/512 generic" in texts and "Keccak floor" in texts
    for circle in svg.iter(f"{space}circle"):
        assert 0 <= float(circle.get("cx")) <= 960 and 0 <= float(circle.get("cy")) <= 600
    bench(*QUICK, "--plot", tmp_path / "no" / "where.svg", "ntt", status=1)


@pytest.mark.parametrize("args", [
    ("--duration", "0"), ("--duration", "x"), ("--duration", "nan"), ("--repeats", "0"),
    ("--repeats", "1.5"), ("--repeats", "1001"), ("--warmup", "-1"), ("--ops", "0"),
    ("--ops", "-1"), ("--batch", "0"), ("--batch", ""), ("--batch", "8,8"),
    ("--batch", "8,1"), ("--batch", "1025"), ("--batch", "1,"), ("--profile-time", "0"),
    ("--no-such-option",), ("--plot",),
])
def test_wrong_command_lines(args):
    result = bench(*args, status=2)
    assert "mlkem-bench" in result.stderr and len(result.stderr.splitlines()) == 1


def test_a_filter_that_fits_nothing():
    assert "--list" in bench(*QUICK, "keygen/256", status=1).stderr


def test_help_and_version():
    text = bench("--help").stdout
    page = (ROOT / "docs" / "man" / "mlkem-bench.1").read_text()
    options = re.findall(r"--([a-z-]+)", text)
    assert len(options) > 10
    for option in options:
        assert f"Fl -{option}" in page.replace("\\-", "-"), option
    assert all(len(line) <= 80 for line in text.splitlines())
    assert re.fullmatch(r"mlkem-bench \d+\.\d+\.\d+\n", bench("--version").stdout)
    for op in {row.split("/")[0] for row in listed()}:
        known = re.sub(r"(de)?compress\d+", r"\1compress*", op)
        assert re.search(rf"(?<![\w-]){re.escape(known)}(?![\w-])", page), op


# Peers. The real ones come from package registries; what mlkem-bench does with them is
# tested with programs of our own, of which one is a peer in earnest: mlkemctl encapsulates.

def peer(folder, name, text):
    path = folder / f"peer-{name}"
    path.write_text("#!/usr/bin/python3\n" + textwrap.dedent(text))
    path.chmod(0o755)


HONEST = f"""
    import subprocess, sys, tempfile
    sys.path.insert(0, {str(PEERS)!r})
    import peer
    def check(size, share):
        with tempfile.TemporaryDirectory() as d:
            open(d + "/share", "wb").write(share)
            subprocess.run([{CTL!r}, "encaps", "mlkem" + size, "--local", "--in",
                d + "/share", "--out", d + "/ct", "--secret-out", d + "/secret"],
                check=True, stdout=subprocess.DEVNULL)
            return open(d + "/ct", "rb").read(), open(d + "/secret", "rb").read()
    def encaps():
        sum(range(100))
    TWIST
    peer.serve("NAME", "1.0 of tests", {{("encaps", "768"): encaps,
        ("sleep", "-"): encaps}}, check)
"""


def test_a_peer_is_measured(tmp_path):
    peer(tmp_path, "honest", HONEST.replace("NAME", "honest").replace("TWIST", ""))
    (tmp_path / "peer-absent.skipped").write_text("not to be had\n")
    result = bench("--json", *QUICK, f"--peers={tmp_path}", "encaps/768//1", "sleep")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    figures = {(row["figure"], row["set"]): row for row in rows if "figure" in row}
    rows = [row for row in rows if row.get("backend") == "honest"]
    assert [row["op"] for row in rows] == ["encaps", "sleep"]
    assert rows[0]["us"] > 0 and rows[0]["floor"] > 0 and rows[1]["floor"] is None
    assert "absent is skipped: not to be had" in result.stderr
    # A figure whose rows are not there says so.
    assert figures["encaps, one: AWS-LC's", "768"]["reached"] == "not measured"
    text = bench(*QUICK, "--cold", f"--peers={tmp_path}", "encaps/768//1").stdout
    assert "peer honest: 1.0 of tests" in text and "not measured" in text


def test_figures_are_ratios_of_rows(tmp_path):
    """A peer that says what it likes: the ratio is of its time and ours."""
    twist = 'peer.measure = lambda call, ms: 1e12'
    peer(tmp_path, "slow", HONEST.replace("NAME", "aws-lc").replace("TWIST", twist))
    rows = [json.loads(line) for line in bench(
        "--json", *QUICK, f"--peers={tmp_path}", "encaps/768//1").stdout.splitlines()]
    ours = {row["backend"]: row["us"] for row in rows if row.get("op") == "encaps"}
    assert ours["aws-lc"] == pytest.approx(1e9)
    figures = {row["figure"]: row for row in rows if row.get("set") == "768"
               and "figure" in row}
    if "avx2" in ours:
        figure = figures["encaps, one by avx2: AWS-LC's"]
        assert figure["ratio"] == pytest.approx(1e9 / ours["avx2"], rel=0.5)
        assert figure["reached"] == "aim"
    if "avx512" in ours:
        assert figures["encaps, one: our generic"]["ratio"] > 0
    assert figures["decaps, one: AWS-LC's"]["reached"] == "not measured"


@pytest.mark.parametrize("name, twist, reason", [
    ("wrong", "check = (lambda f: lambda size, share: (f(size, share)[0], bytes(32)))(check)",
     "does not come to the same secret"),
    ("short", "check = lambda size, share: (bytes(10), bytes(32))", "another length"),
    ("broken", "check = lambda size, share: 1 // 0", "ZeroDivisionError"),
    ("liar", "peer.measure = lambda call, ms: -1", "no measurement"),
    ("late", "peer.measure = lambda call, ms: sys.exit()", "has ended"),
    ("dead", "sys.exit(3)", "has ended"),
    ("rude", "print('hello'); sys.exit()", "hello"),
])
def test_a_peer_that_can_not_be_trusted_is_left_out(tmp_path, name, twist, reason):
    peer(tmp_path, name, HONEST.replace("NAME", name).replace("TWIST", twist))
    result = bench("--json", *QUICK, f"--peers={tmp_path}", "encaps/768//1")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert not [row for row in rows if row.get("backend") == name]
    assert [row for row in rows if row.get("backend") == "generic"]
    assert name in result.stderr and reason in result.stderr


def test_no_peers(tmp_path):
    assert "build.sh" in bench(*QUICK, f"--peers={tmp_path}/none", "ntt", status=1).stderr
    assert "no peer-NAME" in bench(*QUICK, f"--peers={tmp_path}", "ntt", status=1).stderr
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    assert f"{tmp_path}/mlkemd/peers" in bench("--peers", "ntt", status=1, env=env).stderr
