# SPDX-License-Identifier: Apache-2.0
"""PyPI's mlkem (Rust behind Python). A call parses the key it is given: there the API
takes objects, which are made before."""

import importlib.metadata
import itertools

import mlkem
import mlkem.rust as implementation
import peer

SETS = {"512": "ML_KEM_512", "768": "ML_KEM_768", "1024": "ML_KEM_1024"}
KEYS = 64


def kem_of(name):
    return implementation.ML_KEM(getattr(implementation.ParameterSet, SETS[name]))


def check(name, share):
    shared, ct = kem_of(name).encaps(implementation.EncapsKey.from_bytes(share))
    return ct, shared


def main():
    ops = {}
    for name in SETS:
        kem = kem_of(name)
        pairs = [kem.key_gen() for _ in range(KEYS)]
        shares = itertools.cycle([ek for ek, _ in pairs])
        answers = itertools.cycle([(dk, kem.encaps(ek)[1]) for ek, dk in pairs])
        ops["keygen", name] = kem.key_gen
        ops["encaps", name] = lambda kem=kem, shares=shares: kem.encaps(next(shares))
        ops["decaps", name] = lambda kem=kem, answers=answers: kem.decaps(*next(answers))
    version = importlib.metadata.version(mlkem.__name__)
    peer.serve("python-mlkem", f"mlkem {version} (PyPI)", ops, check)


main()
