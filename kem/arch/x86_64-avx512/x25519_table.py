#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes x25519_table.c: what is in it stands in x25519_table.h.

usage: x25519_table.py OUTPUT

Nothing but the curve equation and its addition law (RFC 8032 sections 5.1 and 5.1.4),
in affine coordinates and Python's integers. Takes about a tenth of a second.
"""

import sys

TEETH, STEPS, COMBS = 6, 3, 14

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(p, q):
    (x1, y1), (x2, y2) = p, q
    k = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + k, P - 2, P)
    y = (y1 * y2 + x1 * x2) * pow(1 - k, P - 2, P)
    return x % P, y % P


def negate(p):
    return -p[0] % P, p[1]


def multiply(n, p):
    r = 0, 1
    for bit in f"{n:b}":
        r = add(r, r)
        if bit == "1":
            r = add(r, p)
    return r


def base_point():
    """y = 4/5 and the even x (RFC 8032 5.1): x^2 = (y^2 - 1) / (d y^2 + 1)."""
    y = 4 * pow(5, P - 2, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x % 2:
        x = P - x
    assert x * x % P == square and multiply(ORDER, (x, y)) == (0, 1)
    return x, y


def limbs(x):
    return [x >> 51 * i & 2**51 - 1 for i in range(5)]


def row(numbers):
    return "{" + ", ".join(f"{n:#x}" for n in numbers) + "}"


def rows(elements):
    return "{" + ",\n".join(row(limb) for limb in zip(*map(limbs, elements))) + "}"


def comb(teeth):
    entries = [teeth[-1]]
    for tooth in reversed(teeth[:-1]):
        # Tooth t decides bit t of the index: the last one added is bit 0.
        signs = negate(tooth), tooth
        entries = [add(entry, sign) for entry in entries for sign in signs]
    plus = [(y + x) % P for x, y in entries]
    minus = [(y - x) % P for x, y in entries]
    xy2d = [2 * D * x * y % P for x, y in entries]
    return "{" + ",\n".join(map(rows, (plus, minus, xy2d))) + "}"


def main():
    point = multiply(4, base_point())
    half = pow(2, -(STEPS - 1), ORDER)
    x, y = multiply((3 * 2**251 - 1) * half % ORDER, point)
    start = [limbs(n % P) for n in (y + x, y - x, x * y)]
    combs = []
    for _ in range(COMBS):
        teeth = []
        for _ in range(TEETH):
            teeth.append(point)
            for _ in range(STEPS):
                point = add(point, point)
        combs.append(comb(teeth))
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write(
            "/* Made by x25519_table.py. */\n"
            '#include "kem/arch/x86_64-avx512/x25519_table.h"\n\n'
            f"_Static_assert(COMB_TEETH == {TEETH} && COMB_STEPS == {STEPS} &&\n"
            f'    COMBS == {COMBS}, "x25519_table.py and x25519_table.h differ");\n\n'
            "const uint64_t x25519_start[3][5] = {"
            + ",\n".join(map(row, start))
            + "};\n\n"
            "const struct comb x25519_combs[COMBS] = {\n" + ",\n".join(combs) + "\n};\n"
        )


main()
