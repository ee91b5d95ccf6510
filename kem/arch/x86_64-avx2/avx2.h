/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * avx2.h: the kernels of backend_avx2, and what they share. They ask for AVX2, BMI1 and
 * BMI2; dispatch.c sees to it that the CPU and the system have them. Contracts are in
 * backend.h.
 *
 * A polynomial is 16 registers of 16 coefficients, in the order of FIPS 203 in both
 * domains: another order would save 32 shuffles an NTT and cost more than that in rejection
 * sampling and packing, which have more polynomials to do.
 *
 * No load and no store is indexed by a value but in rej_uniform, which works on public
 * data: tables are shuffled in registers.
 */
#ifndef MLKEMD_KEM_AVX2_H
#define MLKEMD_KEM_AVX2_H

#include <immintrin.h>

#include "../backend.h"

#define always_inline inline __attribute__((always_inline))

#define N_REGS  16 /* of a polynomial */
#define PER_REG 16 /* coefficients */

#define Q_INVERSE (-3327) /* q^-1 mod 2^16 */

void keccak_avx2(uint64_t *state, unsigned active);
void absorb_avx2(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh);
void squeeze_avx2(const uint64_t *state, uint8_t *const *out, const uint8_t *words);

unsigned rej_uniform_avx2(int16_t *r, unsigned count, const uint8_t *buf, size_t len);
void cbd2_avx2(int16_t *r, const uint8_t *buf);
void cbd3_avx2(int16_t *r, const uint8_t *buf);

void ntt_avx2(int16_t *r);
void invntt_avx2(int16_t *r);
void mulcache_avx2(int16_t *cache, const int16_t *b);
void basemul_avx2(
    int16_t *r, const int16_t *a, const int16_t *b, const int16_t *cache, unsigned k);
void tomont_avx2(int16_t *r);
void add_avx2(int16_t *r, const int16_t *a);
void rsub_avx2(int16_t *r, const int16_t *a);

void compress1_avx2(uint8_t *out, const int16_t *a);
void compress4_avx2(uint8_t *out, const int16_t *a);
void compress5_avx2(uint8_t *out, const int16_t *a);
void compress10_avx2(uint8_t *out, const int16_t *a);
void compress11_avx2(uint8_t *out, const int16_t *a);
void decompress1_avx2(int16_t *r, const uint8_t *in);
void decompress4_avx2(int16_t *r, const uint8_t *in);
void decompress5_avx2(int16_t *r, const uint8_t *in);
void decompress10_avx2(int16_t *r, const uint8_t *in);
void decompress11_avx2(int16_t *r, const uint8_t *in);
void pack12_avx2(uint8_t *out, const int16_t *a);
void unpack12_avx2(int16_t *r, const uint8_t *in);

unsigned check12_avx2(const uint8_t *in);
uint64_t compare_avx2(const uint8_t *a, const uint8_t *b, size_t len);
void select_avx2(
    uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask);

/* Of any alignment; load_at and store_at of 32 bytes, the others of 16 and 8. */
static always_inline __m256i
load_at(const void *p)
{
	return _mm256_loadu_si256(p);
}

static always_inline void
store_at(void *p, __m256i x)
{
	_mm256_storeu_si256(p, x);
}

/* 16 bytes at lo below 16 bytes at hi. */
static always_inline __m256i
load_halves(const uint8_t *lo, const uint8_t *hi)
{
	return _mm256_inserti128_si256(
	    _mm256_castsi128_si256(_mm_loadu_si128((const void *)lo)),
	    _mm_loadu_si128((const void *)hi), 1);
}

static always_inline __m128i
low(__m256i x)
{
	return _mm256_castsi256_si128(x);
}

static always_inline __m128i
high(__m256i x)
{
	return _mm256_extracti128_si256(x, 1);
}

static always_inline __m256i
both_halves(__m128i x)
{
	return _mm256_broadcastsi128_si256(x);
}

static always_inline __m256i
poly_load(const int16_t *p, unsigned i)
{
	return _mm256_load_si256((const void *)(p + i * PER_REG));
}

static always_inline void
poly_store(int16_t *p, unsigned i, __m256i x)
{
	_mm256_store_si256((void *)(p + i * PER_REG), x);
}

/*
 * 24 bytes become 16 words of 12 bits: a shuffle gives each word its two bytes, and the
 * odd ones, which begin with the upper nibble, are not moved up before all go down.
 */
static always_inline __m256i
unpack24(const uint8_t *in)
{
	const __m256i index = _mm256_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9,
	    10, 10, 11, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15);
	__m256i x = _mm256_shuffle_epi8(load_halves(in, in + 8), index);

	x = _mm256_mullo_epi16(x, _mm256_set1_epi32(1 << 16 | 16));
	return _mm256_srli_epi16(x, 4);
}

#endif
