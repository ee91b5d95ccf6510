#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""lessons.py SOURCE: every file and every case that tests/lessons.md names is there. What
stands in backticks there is something else. TAP."""
import pathlib
import re
import sys

FILES = ("check_{}.c", "test_{}.py", "check_{}.py", "{}.py", "{}.sh", "fuzz_{}.c", "{}.c", "{}")


def missing(tests, text):
    """What a page names and nobody has."""
    words = {word for path in tests.rglob("*") if path.suffix in (".c", ".py", ".sh")
             for word in re.findall(r"\w+", path.read_text(errors="replace"))}
    names = words | {word[len("test_"):] for word in words if word.startswith("test_")}
    out = []
    for line in text.splitlines():
        cells = line.split("|")
        if not line.startswith("| ") or len(cells) != 4:
            continue
        where = re.sub(r"`[^`]*`", "", cells[2])
        for folder, name in re.findall(r"\b([a-z-]+)/([a-z0-9_]+)\b", where):
            paths = [tests / folder / form.format(name) for form in FILES]
            if not any(path.exists() for path in [*paths, tests.parent / folder / name]):
                out.append(f"{folder}/{name}")
        for case in re.findall(r"(?<![/\w-])[a-z0-9]+(?:_[a-z0-9]+)+\b(?!\(|/)", where):
            if case not in names and not any(name.startswith(case) for name in names):
                out.append(case)
    return out


def main():
    tests = pathlib.Path(sys.argv[1]) / "tests"
    text = (tests / "lessons.md").read_text()
    gone = missing(tests, text)
    print("1..3")
    for name in gone:
        print(f"# {name}")
    print("not ok 1" if gone else "ok 1", "what the page names is there")
    for number, planted in ((2, "kem/no_such_file: x"), (3, "kem/mlkem: no_case" + "_of_it")):
        seen = len(missing(tests, text + f"\n| x | {planted} |\n")) > len(gone)
        print("ok" if seen else "not ok", number, f"control: {planted}")


main()
