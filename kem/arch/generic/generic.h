/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * generic.h: the portable kernels, one Keccak lane, and the arithmetic that they share.
 * Contracts are in backend.h.
 */
#ifndef MLKEMD_KEM_GENERIC_H
#define MLKEMD_KEM_GENERIC_H

#include "../backend.h"

void keccak_generic(uint64_t *state, unsigned active);
void absorb_generic(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh);
void squeeze_generic(const uint64_t *state, uint8_t *const *out, const uint8_t *words);

unsigned rej_uniform_generic(
    int16_t *r, unsigned count, const uint8_t *buf, size_t len);
void cbd2_generic(int16_t *r, const uint8_t *buf);
void cbd3_generic(int16_t *r, const uint8_t *buf);

void ntt_generic(int16_t *r);
void invntt_generic(int16_t *r);
void mulcache_generic(int16_t *cache, const int16_t *b);
void basemul_generic(
    int16_t *r, const int16_t *a, const int16_t *b, const int16_t *cache, unsigned k);
void tomont_generic(int16_t *r);
void add_generic(int16_t *r, const int16_t *a);
void rsub_generic(int16_t *r, const int16_t *a);

void compress1_generic(uint8_t *out, const int16_t *a);
void compress4_generic(uint8_t *out, const int16_t *a);
void compress5_generic(uint8_t *out, const int16_t *a);
void compress10_generic(uint8_t *out, const int16_t *a);
void compress11_generic(uint8_t *out, const int16_t *a);
void decompress1_generic(int16_t *r, const uint8_t *in);
void decompress4_generic(int16_t *r, const uint8_t *in);
void decompress5_generic(int16_t *r, const uint8_t *in);
void decompress10_generic(int16_t *r, const uint8_t *in);
void decompress11_generic(int16_t *r, const uint8_t *in);
void pack12_generic(uint8_t *out, const int16_t *a);
void unpack12_generic(int16_t *r, const uint8_t *in);

unsigned check12_generic(const uint8_t *in);
uint64_t compare_generic(const uint8_t *a, const uint8_t *b, size_t len);
void select_generic(
    uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask);

/* Little-endian loads and stores; compilers make one instruction of each. */
static inline uint32_t
load32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

static inline uint64_t
load64(const uint8_t *p)
{
	return load32(p) | (uint64_t)load32(p + 4) << 32;
}

static inline void
store64(uint8_t *p, uint64_t x)
{
	for (unsigned i = 0; i < 8; i++)
		p[i] = (uint8_t)(x >> 8 * i);
}

/*
 * x mod q in [0, q), for any int16_t, without a sign to select by: x + 10q is positive,
 * and 40318 / 2^27 gives the exact quotient of everything below 2^27 / 894 = 150132.
 */
static inline uint32_t
canonical(int16_t x)
{
	uint32_t y = (uint32_t)(x + 10 * MLKEM_Q);

	return y - (y * 40318 >> 27) * MLKEM_Q;
}

/* x R^-1 mod q. in: |x| <= 2^31 - 2^15 q, out: |r| <= |x| / 2^16 + q / 2 */
static inline int16_t
montgomery(int32_t x)
{
	int16_t t = (int16_t)((uint32_t)x * 62209); /* q^-1 mod 2^16 */

	return (int16_t)((x - (int32_t)t * MLKEM_Q) >> 16);
}

/* The representative in [-1664, 1664] of any int16_t. */
static inline int16_t
barrett(int16_t x)
{
	int32_t t = (20159 * (int32_t)x + (1 << 25)) >> 26; /* 20159 = 2^26 / q */

	return (int16_t)(x - t * MLKEM_Q);
}

#endif
