#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of meson build directories and counts single cases.

meson counts programs; ./test.sh promises cases. So this asks meson which tests there
are and runs each itself: Check's summary line, TAP and pytest's JUnit file are counted,
anything else is one case by its exit status. 77 is a skip, whose reason is the last
line that the test printed. A test that ran nothing is a failure. Of what failed the
report tells why, in a few lines: where it ran the logs may be gone by then.

  runner.py run --build DIR --label NAME --results FILE [--suite S]...
            [--only RE] [--skip RE] [--elsewhere RE] [--env NAME=VALUE]...
            [--wrapper COMMAND] [--as-suite S]
  runner.py faults --build DIR --results FILE --list FILE --source DIR
  runner.py note --results FILE --label NAME --suite S --skipped REASON
  runner.py report --results FILE [--strict]
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree

SKIPPED = 77
CHECK_LINE = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", re.M)
CHECK_BAD = re.compile(r"^\S+:\d+:[FE]:.*$", re.M)
TAP_LINE = re.compile(r"^(ok|not ok)\b *\d* *-? *(.*)$", re.M)
PLANTED_CASE = re.compile(r"^test_\w*planted\w*\[(.+)\]$")
TAP_SKIP = re.compile(r"#\s*skip\b[:\s]*(.*)", re.I)
PYTEST_WHY = re.compile(r"^E +(\S.*)$", re.M)
WHY_LINES, WHY_CHARS = 3, 200
# How much longer than on a quiet machine anything may take before it counts as hung.
PATIENCE = 3
PATIENT_S = 600


class Outcome:
    """What one test program said: counts, names of failures, reasons of skips."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.why = []  # for each that failed some lines, or none if its name says it
        self.skipped = []
        self.planted = []  # faults that a passed case of pytest planted itself

    def ran(self):
        return self.passed + len(self.failed) + len(self.skipped)

    def fail(self, what, why=()):
        self.failed.append(what)
        self.why.append([line[:WHY_CHARS] for line in why][:WHY_LINES])


def last_lines(text):
    return [line for line in text.splitlines() if line.strip()][-WHY_LINES:]


def why_of_junit(bad):
    """Pytest's lines of what was asserted, or the last of what it says else."""
    text = bad.text or bad.get("message") or ""
    return PYTEST_WHY.findall(text) or last_lines(text)


def count_junit(path, out):
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = case.get("name", "?")
        bad = [it for it in case if it.tag in ("failure", "error")]
        if bad:
            out.fail(name, why_of_junit(bad[0]))
        elif case.find("skipped") is not None:
            out.skipped.append((name, case.find("skipped").get("message", "")))
        else:
            out.passed += 1
            out.planted += PLANTED_CASE.findall(name)


def count_text(name, text, out):
    checks = CHECK_LINE.findall(text)
    for total, failures, errors in checks:
        bad = int(failures) + int(errors)
        out.passed += int(total) - bad
        named = CHECK_BAD.findall(text)
        for what in (named + [name] * bad)[:bad]:
            out.fail(what)
    if checks:
        return
    for verdict, rest in TAP_LINE.findall(text):
        skip = TAP_SKIP.search(rest)
        if verdict != "ok":
            out.fail(rest, last_lines(text))
        elif skip:
            out.skipped.append((rest.split("#")[0].strip(), skip.group(1)))
        else:
            out.passed += 1


def judge(name, status, text, junit):
    """Counts what a finished test reported; the exit status has the last word."""
    out = Outcome()
    if junit.exists():
        count_junit(junit, out)
        if out.ran() == 0:
            out.fail(f"{name}: no test was collected", last_lines(text))
    elif status == SKIPPED:
        lines = text.strip().splitlines()
        out.skipped.append((name, lines[-1] if lines else "no reason given"))
        return out
    else:
        count_text(name, text, out)
        if out.ran() == 0 and CHECK_LINE.search(text):
            out.fail(f"{name}: no check ran", last_lines(text))
        elif out.ran() == 0 and status == 0:
            out.passed = 1
    if status != 0 and not out.failed:
        out.fail(f"{name}: exit status {status}", last_lines(text))
    return out


def tests_of(build):
    text = subprocess.run(["meson", "introspect", "--tests", str(build)], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(text)


def suites_of(test):
    return [s.split(":")[-1] for s in test["suite"]] or ["other"]


def run_program(build, test, log, junit, extra_env, timeout_scale, cases=""):
    env = dict(os.environ)
    env.update(test["env"] if isinstance(test["env"], dict) else {})
    env.update(extra_env)
    env["PYTEST_ADDOPTS"] = f"--junitxml={junit} -p no:cacheprovider"
    if cases:
        env["PYTEST_ADDOPTS"] += f" -x -k '{cases}'"
    env.setdefault("CK_TIMEOUT_MULTIPLIER", "5")
    timeout = test.get("timeout") or PATIENT_S
    timeout = max(timeout, min(timeout * PATIENCE, PATIENT_S)) * timeout_scale
    start = time.monotonic()
    with open(log, "wb") as sink:
        # Its own session: what a test leaves behind when it hangs ends with it.
        process = subprocess.Popen(test["cmd"], env=env, stdin=subprocess.DEVNULL,
                                   stdout=sink, stderr=subprocess.STDOUT,
                                   cwd=test.get("workdir") or build,
                                   start_new_session=True)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 15)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
            status = f"none after {timeout:.0f} s"
    text = pathlib.Path(log).read_text(errors="replace")
    return status, text, time.monotonic() - start


def safe(name):
    return re.sub(r"[^A-Za-z0-9_.+-]+", "_", name)


def command_run(args):
    build = pathlib.Path(args.build)
    logs = (build / "test-logs").absolute()
    logs.mkdir(exist_ok=True)
    tests = [t for t in tests_of(build)
             if (not args.suite or set(suites_of(t)) & set(args.suite))
             and not (args.skip and re.search(args.skip, t["name"]))
             and (not args.only or re.search(args.only, t["name"]))]
    if not tests:
        record(args.results, {"label": args.label, "suite": "+".join(args.suite) or "-",
                              "backend": "-", "passed": 0, "seconds": 0, "skipped": [],
                              "failed": ["this build has no such test"], "log": "-"})
        return 1
    for test in tests:  # an emulator, for a build that is not for this machine
        test["cmd"] = shlex.split(args.wrapper) + test["cmd"]
    extra = dict(pair.split("=", 1) for pair in args.env)
    failed = threading.Event()

    def work(test):
        # What names none leaves it to the CPU, or has nothing to do with one.
        backend = test["env"].get("MLKEMD_BACKEND", "-")
        suite = args.as_suite or suites_of(test)[0]
        stem = safe(f"{args.label}-{suite}-{test['name']}")
        log, junit = logs / f"{stem}.log", logs / f"{stem}.xml"
        junit.unlink(missing_ok=True)
        try:
            status, text, seconds = run_program(build, test, log, junit, extra,
                                                args.timeout_scale)
        except OSError as error:
            status, text, seconds = str(error), "", 0.0
        out = judge(test["name"], status, text, junit)
        if args.elsewhere:
            # What another build of this run does is left out here, not skipped.
            out.skipped = [s for s in out.skipped if not re.search(args.elsewhere, s[1])]
        record(args.results, {
            "label": args.label, "suite": suite, "backend": backend,
            "name": test["name"], "passed": out.passed, "failed": out.failed,
            "why": out.why, "skipped": out.skipped, "planted": out.planted,
            "seconds": seconds, "log": str(log)})
        if out.failed:
            failed.set()
            print(f"FAILED {args.label}: {test['name']} ({log})", flush=True)
            for what, why in list(zip(out.failed, out.why))[:10]:
                print(f"       {what[:160]}", flush=True)
                for line in why:
                    print(f"           {line}", flush=True)

    together = [t for t in tests if t.get("is_parallel", True)]
    alone = [t for t in tests if not t.get("is_parallel", True)]
    together.sort(key=lambda t: -(t.get("timeout") or 0))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(work, together))
    for test in alone:
        work(test)
    return 1 if failed.is_set() else 0


FAULT_CALL = re.compile(r'\bfault\("([a-z0-9-]+)"\)')


def faults_in(source):
    """Names of all planted faults in the product, by reading it."""
    names = set()
    for folder in ("kem", "proto", "daemon", "client-lib", "tools", "provider"):
        for path in (source / folder).rglob("*.[ch]"):
            if path.name != "fault.h":
                names |= set(FAULT_CALL.findall(path.read_text()))
    return names


def planted_by_itself(args, fault, name):
    """That test plants the fault and passes only if it is seen: it has passed."""
    ran = [r for r in read(args.results)
           if r.get("name") == name and r["label"] == args.label and r["passed"]]
    # pytest tells the case; of Check's programs the whole has to pass and to name it.
    if any(case == fault or case.startswith(fault + "-")
           for r in ran for case in r.get("planted", [])):
        return True, "planted and seen in that test"
    passed = [r for r in ran if not r["failed"]]
    named = False
    if passed:
        quoted = re.compile(rf'"[^"\n]*\b{fault}\b[^"\n]*"')
        named = any(quoted.search(path.read_text()) for path in
                    (pathlib.Path(args.source) / "tests").rglob("*.[ch]"))
    skipped = [why for r in read(args.results) if r.get("name") == name
               and r["label"] == args.label for _, why in r["skipped"]]
    if not ran and skipped:
        return None, skipped[0]  # this machine can't run it: no verdict
    if not named:
        return False, "not seen" if passed else "that test has not passed"
    return True, "planted and seen in that test"


def planted_from_outside(args, build, tests, fault, name, cases):
    """The test runs with the fault and has to fail: by a check, not by a timeout."""
    if name not in tests:
        return False, "no such test"
    stem = safe(f"fault-{fault}-{name}")
    log, junit = build / "test-logs" / f"{stem}.log", build / "test-logs" / f"{stem}.xml"
    junit.unlink(missing_ok=True)
    env = {"MLKEMD_FAULT": fault}
    status, _, _ = run_program(build, tests[name], log, junit, env,
                               args.timeout_scale, cases)
    # Cases that failed are evidence; a program that ran none, or hung, is not.
    out = Outcome()
    if junit.exists():
        count_junit(junit, out)
    if not out.failed and out.skipped:
        return None, out.skipped[0][1]
    caught = bool(out.failed) and isinstance(status, int)
    return caught, f"{len(out.failed)} cases failed" if caught else f"status {status}"


def command_faults(args):
    """Each fault of the list is planted and its test has to see it.

    A line: fault, test, how, cases (tab-separated). how is "outside" (the named cases of
    the test run with the fault in their environment and have to fail), "inside" (the test
    plants it itself) or "helper" (no fault but a way to reach some state).
    """
    build, source = pathlib.Path(args.build).absolute(), pathlib.Path(args.source)
    (build / "test-logs").mkdir(exist_ok=True)
    tests = {t["name"]: t for t in tests_of(build)}
    listed, bad = set(), 0

    def tell(fault, name, caught, detail, seconds):
        record(args.results, {
            "label": args.label, "suite": "faults", "backend": "generic",
            "fault": fault, "name": name, "detail": detail, "passed": int(bool(caught)),
            "skipped": [(fault, detail)] if caught is None else [],
            "seconds": seconds, "log": "-",
            "failed": [f"{fault}: {detail} ({name})"] if caught is False else []})
        if caught is False:
            print(f"FAILED {args.label}: planted fault {fault}: {detail} ({name})")
        return caught is False

    for line in pathlib.Path(args.list).read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        fault, name, how, cases = (line.split("\t") + ["", ""])[:4]
        listed.add(fault)
        start = time.monotonic()
        if how == "inside":
            caught, detail = planted_by_itself(args, fault, name)
        elif how == "outside":
            caught, detail = planted_from_outside(args, build, tests, fault, name, cases)
        elif how == "helper":
            continue
        else:
            caught, detail = False, f"what is {how}?"
        bad += tell(fault, name, caught, detail, time.monotonic() - start)
    for fault in sorted(faults_in(source) - listed):
        bad += tell(fault, "-", False, f"stands in the code and not in {args.list}", 0)
    return 1 if bad else 0


def command_note(args):
    record(args.results, {
        "label": args.label, "suite": args.suite[0], "backend": "-", "passed": 0,
        "failed": [args.failed] if args.failed else [], "seconds": 0, "log": "-",
        "skipped": [(args.suite[0], args.skipped)] if args.skipped else []})
    return 0


RECORD_LOCK = threading.Lock()


def record(path, result):
    with RECORD_LOCK, open(path, "a") as sink:
        sink.write(json.dumps(result) + "\n")


def read(path):
    with open(path) as source:
        return [json.loads(line) for line in source]


def table(rows, head):
    rows = [head] + rows
    widths = [max(len(str(r[i])) for r in rows) for i in range(len(head))]
    for row in rows:
        print("  ".join(str(c).ljust(w) for c, w in zip(row, widths)).rstrip())


def command_report(args):
    results = read(args.results)
    groups = collections.OrderedDict()
    for r in results:
        key = (r["suite"], r["label"], r["backend"])
        groups.setdefault(key, []).append(r)
    rows = []
    for (suite, label, backend), members in groups.items():
        rows.append((suite, label, backend,
                     sum(m["passed"] for m in members),
                     sum(len(m["failed"]) for m in members),
                     sum(len(m["skipped"]) for m in members),
                     f"{sum(m['seconds'] for m in members):.1f}"))
    print()
    table(rows, ("suite", "build", "backend", "passed", "failed", "skipped", "seconds"))

    reasons = collections.Counter(
        reason for r in results for _, reason in r["skipped"])
    if reasons:
        print("\nskipped")
        for reason, n in reasons.most_common():
            print(f"  {n:4}  {reason}")
    planted = [r for r in results if "fault" in r]
    if planted:
        print()
        table([(r["fault"], r["name"], "caught" if r["passed"] else "MISSED" if r["failed"] else "skipped",
                r["detail"]) for r in planted],
              ("planted fault", "test", "verdict", "how"))
    failed = [(r, f, why) for r in results
              for f, why in itertools.zip_longest(r["failed"], r.get("why", []))]
    if failed:
        print("\nfailed")
        for r, what, why in failed:
            print(f"  {r['label']} {r['suite']}: {what[:200]}")
            for line in why or []:
                print(f"      {line}")
            print(f"      log: {r['log']}")
    n_passed = sum(r["passed"] for r in results)
    n_skipped = sum(len(r["skipped"]) for r in results)
    print(f"\n{n_passed} passed, {len(failed)} failed, {n_skipped} skipped")
    bad = bool(failed) or n_passed == 0 or (args.strict and n_skipped > 0)
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["run", "faults", "note", "report"])
    parser.add_argument("--build")
    parser.add_argument("--label", default="gcc")
    parser.add_argument("--results", required=True)
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--skip", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--elsewhere", default="")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--wrapper", default="")
    parser.add_argument("--as-suite", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout-scale", type=float, default=1.0)
    parser.add_argument("--list")
    parser.add_argument("--source")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--skipped", default="")
    parser.add_argument("--failed", default="")
    args = parser.parse_args()
    return {"run": command_run, "faults": command_faults, "note": command_note,
            "report": command_report}[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
