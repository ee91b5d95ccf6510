#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The report of runner.py tells why a test failed: read where no log is left. TAP.

    check_runner.py RUNNER

Runs it over a project of tests that fail in known ways.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PYTEST = """
import pytest


def test_figure():
    \"\"\"E does not begin a line of what was asserted here.\"\"\"
    said = "the sky is " + "blue " * 100
    assert 17 * 1024 < 16 * 1024, said


@pytest.fixture
def broken():
    raise OSError("no such planet")


def test_beside(broken):
    pass


def test_that_passes():
    pass
"""
CHECK = """echo 'Running suite(s): s'
echo '50%: Checks: 2, Failures: 1, Errors: 0'
echo "check_s.c:7:F:case:name:0: Assertion 'a == b' failed: a == 1, b == 2"
exit 1
"""
PROGRAMS = {
    "plain": "for i in 1 2 3 4 5 6; do echo line $i; done; exit 3",
    "check": CHECK,
    "tap": "echo 'ok 1 one'; echo 'not ok 2 two'; echo '# it was three'; exit 1",
    "quiet": "exit 4",
    "good": "echo 'a line of one that passed'",
}
PROJECT = """project('fails', meson_version: '>=0.56')
test('pytest', find_program('/usr/bin/python3', 'python3'), args: ['-m', 'pytest', '-q',
  files('test_it.py')])
foreach name : [%s]
  test(name, find_program('sh'), args: files(name + '.sh'))
endforeach
"""


def run(*command):
    return subprocess.run([str(it) for it in command], check=False, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def report_of(runner, results):
    said = run(sys.executable, runner, "report", "--results", results)
    return said.returncode, [line.strip() for line in said.stdout.splitlines()]


def project(top):
    source = top / "source"
    source.mkdir()
    (source / "test_it.py").write_text(PYTEST)
    for name, text in PROGRAMS.items():
        (source / f"{name}.sh").write_text(text)
    (source / "meson.build").write_text(PROJECT % ", ".join(map(repr, PROGRAMS)))
    made = run("meson", "setup", top / "build", source)
    assert made.returncode == 0, made.stdout
    return top / "build"


def follows(lines, name, why):
    """The lines come right behind the one that names the failure, then comes the log."""
    at = [n for n, line in enumerate(lines) if name in line]
    if len(at) != 1:
        return False
    told = lines[at[0] + 1:at[0] + 2 + len(why)]
    return told[-1].startswith("log: ") and all(
        line.startswith(begin) for line, begin in zip(told, why))


def looks(lines):
    """What the report has to have, by name."""
    return {
        "pytest: what was asserted": follows(lines, ": test_figure", [
            "AssertionError: the sky is blue", "assert (17 * 1024) < (16 * 1024)"]),
        "pytest: what a fixture raised": follows(lines, ": test_beside", [
            "OSError: no such planet"]),
        "the last lines of a program": follows(lines, "plain: exit status 3", [
            "line 4", "line 5", "line 6"]),
        "TAP: what was said beside it": follows(lines, ": two", [
            "ok 1 one", "not ok 2 two", "# it was three"]),
    }


def main():
    runner = pathlib.Path(sys.argv[1]).absolute()
    if run(sys.executable, "-m", "pytest", "--version").returncode != 0:
        print("1..0 # skip no pytest")
        return
    # This run's own wishes are not those of the tests in it.
    for name in ("PYTEST_ADDOPTS", "CK_TIMEOUT_MULTIPLIER", "MLKEMD_FAULT"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory(prefix="mlkemd-runner-") as name:
        top = pathlib.Path(name)
        results = top / "results"
        results.touch()
        run(sys.executable, runner, "run", "--build", project(top), "--results", results)
        status, lines = report_of(runner, results)
        told = looks(lines)
        told["Check's own line is enough"] = follows(lines, "check_s.c:7:F:", [])
        told["who says nothing is named"] = follows(lines, "quiet: exit status 4", [])
        told["no line is long"] = max(map(len, lines)) <= 300
        told["what passed is counted and not told of"] = status == 1 and \
            "4 passed, 6 failed, 0 skipped" in lines and \
            not any("one that passed" in line for line in lines)
        # The control: a report that knows no reasons.
        records = [json.loads(line) for line in results.read_text().splitlines()]
        for one in records:
            del one["why"]
        results.write_text("".join(json.dumps(one) + "\n" for one in records))
        bare = looks(report_of(runner, results)[1])
        told.update((what + ": its control", not good) for what, good in bare.items())
    print(f"1..{len(told)}")
    for number, (what, good) in enumerate(told.items(), 1):
        print(f"{'ok' if good else 'not ok'} {number} {what}")
    if not all(told.values()):
        print("\n".join("# " + line for line in lines))


main()
