/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "generic.h"

#define always_inline inline __attribute__((always_inline))

/* Keccak-f[1600], FIPS 202 3.2.5. */
static const uint64_t round_constants[24] = {0x0000000000000001, 0x0000000000008082,
    0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b,
    0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080,
    0x0000000080000001, 0x8000000080008008};

static always_inline uint64_t
rotl(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static always_inline void
chi(uint64_t *e, uint64_t b0, uint64_t b1, uint64_t b2, uint64_t b3, uint64_t b4)
{
	e[0] = b0 ^ (~b1 & b2);
	e[1] = b1 ^ (~b2 & b3);
	e[2] = b2 ^ (~b3 & b4);
	e[3] = b3 ^ (~b4 & b0);
	e[4] = b4 ^ (~b0 & b1);
}

/*
 * One round from a to e: every index is a constant, so that both live in registers and
 * spills, and no copy is made between rounds.
 */
static always_inline void
keccak_round(uint64_t *e, const uint64_t *a, uint64_t round_constant)
{
	uint64_t c0 = a[0] ^ a[5] ^ a[10] ^ a[15] ^ a[20];
	uint64_t c1 = a[1] ^ a[6] ^ a[11] ^ a[16] ^ a[21];
	uint64_t c2 = a[2] ^ a[7] ^ a[12] ^ a[17] ^ a[22];
	uint64_t c3 = a[3] ^ a[8] ^ a[13] ^ a[18] ^ a[23];
	uint64_t c4 = a[4] ^ a[9] ^ a[14] ^ a[19] ^ a[24];
	const uint64_t d[5] = {
	    c4 ^ rotl(c1, 1),
	    c0 ^ rotl(c2, 1),
	    c1 ^ rotl(c3, 1),
	    c2 ^ rotl(c4, 1),
	    c3 ^ rotl(c0, 1),
	};

	chi(e + 0, a[0] ^ d[0], rotl(a[6] ^ d[1], 44), rotl(a[12] ^ d[2], 43),
	    rotl(a[18] ^ d[3], 21), rotl(a[24] ^ d[4], 14));
	chi(e + 5, rotl(a[3] ^ d[3], 28), rotl(a[9] ^ d[4], 20), rotl(a[10] ^ d[0], 3),
	    rotl(a[16] ^ d[1], 45), rotl(a[22] ^ d[2], 61));
	chi(e + 10, rotl(a[1] ^ d[1], 1), rotl(a[7] ^ d[2], 6), rotl(a[13] ^ d[3], 25),
	    rotl(a[19] ^ d[4], 8), rotl(a[20] ^ d[0], 18));
	chi(e + 15, rotl(a[4] ^ d[4], 27), rotl(a[5] ^ d[0], 36),
	    rotl(a[11] ^ d[1], 10), rotl(a[17] ^ d[2], 15), rotl(a[23] ^ d[3], 56));
	chi(e + 20, rotl(a[2] ^ d[2], 62), rotl(a[8] ^ d[3], 55),
	    rotl(a[14] ^ d[4], 39), rotl(a[15] ^ d[0], 41), rotl(a[21] ^ d[1], 2));
	e[0] ^= round_constant;
}

void
keccak_generic(uint64_t *state, unsigned active)
{
	uint64_t a[KECCAK_WORDS], e[KECCAK_WORDS];

	for (unsigned i = 0; i < KECCAK_WORDS; i++)
		a[i] = state[i];
	for (unsigned i = 0; i < 24; i += 2) {
		keccak_round(e, a, round_constants[i]);
		keccak_round(a, e, round_constants[i + 1]);
	}
	for (unsigned i = 0; i < KECCAK_WORDS; i++)
		state[i] = a[i];
}

void
absorb_generic(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh)
{
	if (fresh & 1) {
		for (unsigned i = 0; i < KECCAK_WORDS; i++)
			state[i] = 0;
	}
	for (unsigned i = 0; i < words[0]; i++)
		state[i] ^= load64(block[0] + 8 * i);
	if (end[0] != 0)
		state[end[0] - 1] ^= UINT64_C(1) << 63;
}

void
squeeze_generic(const uint64_t *state, uint8_t *const *out, const uint8_t *words)
{
	for (unsigned i = 0; i < words[0]; i++)
		store64(out[0] + 8 * i, state[i]);
}
