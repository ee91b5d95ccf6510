/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * keccak_rounds.h: Keccak-f[1600] (FIPS 202 3.2) on vectors of words, a template: keccak.c
 * includes it once for each width, with VEC, NAME, TERNARY, ROTATE, XOR, BROADCAST, LOAD
 * and STORE of that width, and it takes them back.
 *
 * A round is 35 three-input operations, 31 xors and 29 rotations. Beside the 25 words of
 * the state it needs five column sums and two temporaries: 32 registers, if each row of
 * chi takes its five words right before it writes five. So the rows stand in the order of
 * their results, from a to e and back, and no copy is made between rounds.
 */

/* The truth tables of a ^ b ^ c and of a ^ (~b & c). */
#define XOR3(a, b, c) TERNARY(a, b, c, 0x96)
#define CHI(a, b, c)  TERNARY(a, b, c, 0xd2)

static always_inline void
NAME(row)(VEC *e, VEC b0, VEC b1, VEC b2, VEC b3, VEC b4)
{
	e[0] = CHI(b0, b1, b2);
	e[1] = CHI(b1, b2, b3);
	e[2] = CHI(b2, b3, b4);
	e[3] = CHI(b3, b4, b0);
	e[4] = CHI(b4, b0, b1);
}

static always_inline void
NAME(round)(VEC *e, const VEC *a, uint64_t round_constant)
{
	VEC c0 = XOR3(XOR3(a[0], a[5], a[10]), a[15], a[20]);
	VEC c1 = XOR3(XOR3(a[1], a[6], a[11]), a[16], a[21]);
	VEC c2 = XOR3(XOR3(a[2], a[7], a[12]), a[17], a[22]);
	VEC c3 = XOR3(XOR3(a[3], a[8], a[13]), a[18], a[23]);
	VEC c4 = XOR3(XOR3(a[4], a[9], a[14]), a[19], a[24]);
	VEC d0 = XOR(c4, ROTATE(c1, 1));
	VEC d1 = XOR(c0, ROTATE(c2, 1));
	VEC d2 = XOR(c1, ROTATE(c3, 1));
	VEC d3 = XOR(c2, ROTATE(c4, 1));
	VEC d4 = XOR(c3, ROTATE(c0, 1));

	NAME(row)
	(e, XOR(a[0], d0), ROTATE(XOR(a[6], d1), 44), ROTATE(XOR(a[12], d2), 43),
	    ROTATE(XOR(a[18], d3), 21), ROTATE(XOR(a[24], d4), 14));
	e[0] = XOR(e[0], BROADCAST(round_constant));
	NAME(row)
	(e + 5, ROTATE(XOR(a[3], d3), 28), ROTATE(XOR(a[9], d4), 20),
	    ROTATE(XOR(a[10], d0), 3), ROTATE(XOR(a[16], d1), 45),
	    ROTATE(XOR(a[22], d2), 61));
	NAME(row)
	(e + 10, ROTATE(XOR(a[1], d1), 1), ROTATE(XOR(a[7], d2), 6),
	    ROTATE(XOR(a[13], d3), 25), ROTATE(XOR(a[19], d4), 8),
	    ROTATE(XOR(a[20], d0), 18));
	NAME(row)
	(e + 15, ROTATE(XOR(a[4], d4), 27), ROTATE(XOR(a[5], d0), 36),
	    ROTATE(XOR(a[11], d1), 10), ROTATE(XOR(a[17], d2), 15),
	    ROTATE(XOR(a[23], d3), 56));
	NAME(row)
	(e + 20, ROTATE(XOR(a[2], d2), 62), ROTATE(XOR(a[8], d3), 55),
	    ROTATE(XOR(a[14], d4), 39), ROTATE(XOR(a[15], d0), 41),
	    ROTATE(XOR(a[21], d1), 2));
}

static void
NAME(permute)(uint64_t *state)
{
	VEC a[KECCAK_WORDS], e[KECCAK_WORDS];

	for (unsigned i = 0; i < KECCAK_WORDS; i++)
		a[i] = LOAD(state + i * LANES);
	for (unsigned i = 0; i < 24; i += 2) {
		NAME(round)(e, a, round_constants[i]);
		NAME(round)(a, e, round_constants[i + 1]);
	}
	for (unsigned i = 0; i < KECCAK_WORDS; i++)
		STORE(state + i * LANES, a[i]);
}

#undef VEC
#undef NAME
#undef TERNARY
#undef ROTATE
#undef XOR
#undef BROADCAST
#undef LOAD
#undef STORE
#undef XOR3
#undef CHI
