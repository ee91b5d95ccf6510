/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * avx512.h: the kernels of backend_avx512, and what they share. They ask for AVX512 F,
 * BW, DQ, VL, VBMI and VBMI2 (and IFMA, for X25519); dispatch.c sees to it that the CPU and
 * the system have them all. Contracts are in backend.h.
 *
 * A polynomial is eight registers of 32 coefficients, in the order of FIPS 203 in both
 * domains: another order would save eight permutations an NTT and cost more than that
 * in rejection sampling and packing, which have more polynomials to do.
 *
 * No load is indexed by a value, and no store masked by one but in rej_uniform, which
 * works on public data: tables are permuted in registers.
 */
#ifndef MLKEMD_KEM_AVX512_H
#define MLKEMD_KEM_AVX512_H

#include <immintrin.h>

#include "../backend.h"

#define always_inline inline __attribute__((always_inline))

#define N_REGS  8  /* of a polynomial */
#define PER_REG 32 /* coefficients */

#define Q_INVERSE (-3327) /* q^-1 mod 2^16 */

void keccak_avx512(uint64_t *state, unsigned active);
void absorb_avx512(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh);
void squeeze_avx512(const uint64_t *state, uint8_t *const *out, const uint8_t *words);

unsigned rej_uniform_avx512(int16_t *r, unsigned count, const uint8_t *buf, size_t len);
void cbd2_avx512(int16_t *r, const uint8_t *buf);
void cbd3_avx512(int16_t *r, const uint8_t *buf);

void ntt_avx512(int16_t *r);
void invntt_avx512(int16_t *r);
void mulcache_avx512(int16_t *cache, const int16_t *b);
void basemul_avx512(
    int16_t *r, const int16_t *a, const int16_t *b, const int16_t *cache, unsigned k);
void tomont_avx512(int16_t *r);
void add_avx512(int16_t *r, const int16_t *a);
void rsub_avx512(int16_t *r, const int16_t *a);

void compress1_avx512(uint8_t *out, const int16_t *a);
void compress4_avx512(uint8_t *out, const int16_t *a);
void compress5_avx512(uint8_t *out, const int16_t *a);
void compress10_avx512(uint8_t *out, const int16_t *a);
void compress11_avx512(uint8_t *out, const int16_t *a);
void decompress1_avx512(int16_t *r, const uint8_t *in);
void decompress4_avx512(int16_t *r, const uint8_t *in);
void decompress5_avx512(int16_t *r, const uint8_t *in);
void decompress10_avx512(int16_t *r, const uint8_t *in);
void decompress11_avx512(int16_t *r, const uint8_t *in);
void pack12_avx512(uint8_t *out, const int16_t *a);
void unpack12_avx512(int16_t *r, const uint8_t *in);

unsigned check12_avx512(const uint8_t *in);
uint64_t compare_avx512(const uint8_t *a, const uint8_t *b, size_t len);
void select_avx512(
    uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask);

static always_inline __m512i
poly_load(const int16_t *p, unsigned i)
{
	return _mm512_load_si512(p + i * PER_REG);
}

static always_inline void
poly_store(int16_t *p, unsigned i, __m512i x)
{
	_mm512_store_si512(p + i * PER_REG, x);
}

/*
 * a b R^-1 mod q, b a constant and b_q = b q^-1 mod 2^16. The low halves of a b and of
 * (a b_q mod 2^16) q are the same, so that the difference of the high halves is exact.
 * in: any a, |b| < q / 2; out: |x| < q
 */
static always_inline __m512i
montgomery_mul(__m512i a, __m512i b, __m512i b_q)
{
	__m512i t = _mm512_mullo_epi16(a, b_q);

	t = _mm512_mulhi_epi16(t, _mm512_set1_epi16(MLKEM_Q));
	return _mm512_sub_epi16(_mm512_mulhi_epi16(a, b), t);
}

/*
 * x - round(x 10 / 2^15) q: 10 / 2^15 is 1.6 % above 1 / q, so that the quotient is off
 * by at most 1/2 + 9.85 * 0.016. in: any, out: |x| < 0.66 q
 */
static always_inline __m512i
reduce(__m512i x)
{
	__m512i t = _mm512_mulhrs_epi16(x, _mm512_set1_epi16(10));

	t = _mm512_mullo_epi16(t, _mm512_set1_epi16(MLKEM_Q));
	return _mm512_sub_epi16(x, t);
}

/* A negative x is more than x + q when both are taken as unsigned. out: [0, q) */
static always_inline __m512i
canonical(__m512i x)
{
	x = reduce(x);
	return _mm512_min_epu16(x, _mm512_add_epi16(x, _mm512_set1_epi16(MLKEM_Q)));
}

/*
 * 16 dwords of three bytes each (the lowest of 48) become 32 words of 12 bits: word 2i
 * takes bytes 3i and 3i + 1, word 2i + 1 bytes 3i + 1 and 3i + 2, shifted by a nibble.
 */
static always_inline __m512i
spread12(__m512i bytes)
{
	const __m512i index = _mm512_set_epi8(47, 46, 46, 45, 44, 43, 43, 42, 41, 40,
	    40, 39, 38, 37, 37, 36, 35, 34, 34, 33, 32, 31, 31, 30, 29, 28, 28, 27, 26,
	    25, 25, 24, 23, 22, 22, 21, 20, 19, 19, 18, 17, 16, 16, 15, 14, 13, 13, 12,
	    11, 10, 10, 9, 8, 7, 7, 6, 5, 4, 4, 3, 2, 1, 1, 0);
	__m512i x = _mm512_permutexvar_epi8(index, bytes);

	x = _mm512_srlv_epi16(x, _mm512_set1_epi32(4 << 16));
	return _mm512_and_si512(x, _mm512_set1_epi16(0xfff));
}

#endif
