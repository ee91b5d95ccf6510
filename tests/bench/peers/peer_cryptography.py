# SPDX-License-Identifier: Apache-2.0
"""PyPI's cryptography, with the library that its wheel brings. A share is parsed each
time, a private key is not."""

import itertools

import cryptography
import peer
from cryptography.hazmat.backends.openssl.backend import backend
from cryptography.hazmat.primitives.asymmetric import mlkem, x25519

SETS = {
    "768": (mlkem.MLKEM768PrivateKey, mlkem.MLKEM768PublicKey),
    "1024": (mlkem.MLKEM1024PrivateKey, mlkem.MLKEM1024PublicKey),
}
KEYS = 64


def check(name, share):
    shared, ct = SETS[name][1].from_public_bytes(share).encapsulate()
    return ct, shared


def main():
    ops = {}
    for name, (private, public) in SETS.items():
        keys = [private.generate() for _ in range(KEYS)]
        shares = itertools.cycle([key.public_key().public_bytes_raw() for key in keys])
        answers = itertools.cycle([(key, key.public_key().encapsulate()[1])
                                   for key in keys])

        def encaps(public=public, shares=shares):
            public.from_public_bytes(next(shares)).encapsulate()

        def decaps(answers=answers):
            key, ct = next(answers)
            key.decapsulate(ct)

        ops["keygen", name] = private.generate
        ops["encaps", name] = encaps
        ops["decaps", name] = decaps
    own = x25519.X25519PrivateKey.generate()
    other = x25519.X25519PrivateKey.generate().public_key()
    ops["x25519-base", "-"] = lambda: x25519.X25519PrivateKey.generate().public_key()
    ops["x25519-derive", "-"] = lambda: own.exchange(other)
    version = f"cryptography {cryptography.__version__} (PyPI, {backend.openssl_version_text()})"
    peer.serve("python-cryptography", version, ops, check)


main()
