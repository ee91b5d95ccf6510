#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What libmlkemclient.so shows to the world is what its header says, no more, no less.

    check_symbols.py LIBRARY HEADER

Its controls: a name taken away from either side has to be noticed.
"""
import ctypes
import re
import subprocess
import sys

SANITIZER = re.compile(r"__(asan|ubsan|tsan|lsan|sanitizer)_")


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                         capture_output=True, text=True).stdout
    names = set()
    for line in out.splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":  # the name of the version itself
            names.add(name)
    return names


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", open(header, encoding="utf-8").read(), flags=re.S)
    return set(re.findall(r"\b(mlkemclient_\w+)\s*\(", text))


def differences(library_names, header_names):
    """Names with the version they have to carry."""
    wanted = {f"{name}@@MLKEMCLIENT_0" for name in header_names}
    return sorted(library_names ^ wanted)


def main():
    library, header = sys.argv[1:]
    have, want = exported(library), declared(header)
    assert len(want) > 15, "the header was not understood"
    found = differences(have, want)
    assert not found, f"header and library differ: {found}"

    assert differences(have - {min(have)}, want), "a missing symbol goes unnoticed"
    assert differences(have | {"kem_open"}, want), "a stray symbol goes unnoticed"

    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True,
                             text=True).stdout
    assert re.search(r"SONAME.*\[libmlkemclient\.so\.0\]", dynamic), dynamic
    relocations = subprocess.run(["ldd", "-r", library], check=True,
                                 capture_output=True, text=True)
    text = relocations.stdout + relocations.stderr
    missing = re.findall(r"undefined symbol: (\w+)", text)
    # A sanitizer's own come with the program; such a library can't be loaded here.
    sanitized = "san.so" in text or any(SANITIZER.match(name) for name in missing)
    missing = [name for name in missing if not SANITIZER.match(name)]
    assert not missing, f"the library lacks {missing}"
    if not sanitized:
        loaded = ctypes.CDLL(library)
        loaded.mlkemclient_strerror.restype = ctypes.c_char_p
        assert loaded.mlkemclient_strerror(-10) == b"the deadline passed"
    print(f"{len(want)} symbols, as in the header")


if __name__ == "__main__":
    main()
