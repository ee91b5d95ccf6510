#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What came out of the build: nothing empty, nothing left out without a word. TAP.

    built.py MLKEMD MLKEMCTL LIBRARY PROVIDER OTHER

PROVIDER may be "none". OTHER is a library of another kind, by which each look shows that
it can fail.
"""
import pathlib
import re
import subprocess
import sys

BACKENDS = {"generic": [], "avx2": ["avx2"], "avx512": ["avx512ifma", "avx512_vbmi2"]}


def output(*command, **more):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more).stdout


def exports(path):
    lines = output("nm", "-D", "--defined-only", path).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] in "TDBRVW"}


def is_clean_provider(path):
    """OpenSSL finds its entry, and a host finds nothing else of ours."""
    return exports(path) == {"OSSL_provider_init"}


def is_client_library(path):
    return {name.split("_")[0] for name in exports(path)} == {"mlkemclient"}


def is_whole(path):
    """Every symbol is found, now and not at the first call."""
    return "undefined symbol" not in output("ldd", "-r", path)


def has_backends(path):
    found = set(re.findall(r"\bbackend_(\w+)$", output("nm", path), re.M))
    return set(BACKENDS) <= found


def best_backend():
    flags = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].split()
    return [name for name, needed in BACKENDS.items() if set(needed) <= set(flags)][-1]


def uses_the_best(path, environment):
    return f"backend:  {best_backend()}," in output(path, "info", "--local",
                                                   env=environment)


def main():
    daemon, ctl, library, provider, other = sys.argv[1:]
    looks = [
        ("the client library exports its functions and no others",
         lambda: is_client_library(library), lambda: is_client_library(other)),
        ("the client library is whole", lambda: is_whole(library), None),
        ("the daemon is whole", lambda: is_whole(daemon), None),
        ("the daemon has every backend", lambda: has_backends(daemon),
         lambda: has_backends(other)),
        ("the best backend of this CPU is used", lambda: uses_the_best(ctl, {}),
         (lambda: uses_the_best(ctl, {"MLKEMD_BACKEND": "generic"}))
         if best_backend() != "generic" else None),
    ]
    if provider != "none":
        looks += [("the provider exports its entry alone",
                   lambda: is_clean_provider(provider), lambda: is_clean_provider(other)),
                  ("the provider is whole", lambda: is_whole(provider), None)]
    results = []
    for name, look, control in looks:
        results.append((name, look()))
        if control:
            results.append((name + ": its control", not control()))
    print(f"1..{len(results)}")
    for number, (name, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} {name}")


main()
