/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * fe.h: arithmetic mod p = 2^255 - 19 on eight field elements at once, one a 64-bit lane,
 * for x25519.c and x25519_base.c. No branch and no address depends on a value.
 *
 * Representation. An element is five limbs of radix 2^51, limb k worth 2^51k. Radix 51
 * and not 52, because then a whole column fits: 2^255 = 19 (mod p), and 19 times a sum
 * of products stays far below 2^64, so that nothing is carried before it is folded.
 * There are two types, so that mixing them up does not compile:
 *
 *   struct fe   reduced: every limb at most FE_MAX = 2^51 + 2^16. The only thing that
 *               may be multiplied (vpmadd52 looks at 52 bits); where a line says so, the
 *               second factor may have limbs up to LIMB_MAX = 2^52 - 1.
 *   struct sum  unreduced: every limb at most SUM_MAX = 2^62. The result of a
 *               multiplication; may be added and subtracted; sum_carry() reduces it.
 *
 * So sums and differences cost no carry of their own: they are made of struct sum.
 *
 * Bounds of products. A lo is below 2^52, a hi below FE_MAX, or below 2^50 + 2^16 if
 * both factors are reduced. Limb 0 is the worst, with 1 lo and 19 times 4 lo and 5 hi
 * doubled: at most (1 + 19 * 9) 2^52 + 2^24 < 2^59.5 < PRODUCT_MAX = 3 * 2^58, and if
 * both are reduced (1 + 19 * 6.5) 2^52 + 2^24 < 2^59.
 * Subtraction needs a minuend that had 2^9 p added, each limb of which is
 * above 2^60 - 2^14 > PRODUCT_MAX, so that no limb goes below zero. The bias goes in
 * where the sums of the minuend start, and costs no instruction. A "biased" product is
 * at most BIASED_MAX = PRODUCT_MAX + 2^60 = 7 * 2^58.
 */
#ifndef MLKEMD_KEM_AVX512_FE_H
#define MLKEMD_KEM_AVX512_FE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <immintrin.h>

#include "../../ct.h"
#include "../../fault.h"

#define FE_LANES    8
#define FE_LIMBS    5
#define FE_MASK     ((INT64_C(1) << 51) - 1)
#define FE_MAX      ((UINT64_C(1) << 51) + (UINT64_C(1) << 16))
#define LIMB_MAX    ((UINT64_C(1) << 52) - 1)
#define PRODUCT_MAX (UINT64_C(3) << 58)
#define BIASED_MAX  (UINT64_C(7) << 58)
#define SUM_MAX     (UINT64_C(1) << 62)

/* These are to become a single loop body, and gcc thinks them too large for it. */
#define fe_inline static inline __attribute__((always_inline))

/* Unrolled at -O2 too, so that limbs stay in registers. */
#define FE_EACH(i) _Pragma("GCC unroll 5") for (unsigned i = 0; i < FE_LIMBS; i++)

struct fe {
	__m512i v[FE_LIMBS];
};

struct sum {
	__m512i v[FE_LIMBS];
};

/* A branch on secrets, so never in a build that anybody uses. */
static inline void
limbs_check(const __m512i *v, uint64_t max)
{
	if (!MLKEMD_RANGE_ASSERTS)
		return;
	for (unsigned i = 0; i < FE_LIMBS; i++)
		assert(_mm512_cmple_epu64_mask(v[i], _mm512_set1_epi64((int64_t)max)) ==
		       0xff);
}

static inline __m512i
lo(__m512i sum, __m512i a, __m512i b)
{
	return _mm512_madd52lo_epu64(sum, a, b);
}

static inline __m512i
hi(__m512i sum, __m512i a, __m512i b)
{
	return _mm512_madd52hi_epu64(sum, a, b);
}

static inline __m512i
add(__m512i a, __m512i b)
{
	return _mm512_add_epi64(a, b);
}

static inline __m512i
twice(__m512i a)
{
	return _mm512_add_epi64(a, a);
}

/*
 * 19 in every lane, and the compiler doesn't know: else gcc makes a multiplication by it
 * into two shifts and two additions, for which there is no room.
 */
static inline __m512i
nineteen(void)
{
	__m512i x = _mm512_set1_epi64(19);

	__asm__("" : "+v"(x));
	return x;
}

/* sum + 19 a */
static inline __m512i
fold(__m512i sum, __m512i a)
{
	return add(sum, _mm512_mullo_epi64(a, nineteen()));
}

/* Limb k of 2^shift p: what a sum starts from if it is doubled 9 - shift times. */
static inline __m512i
bias(bool wanted, unsigned k, unsigned shift)
{
	return _mm512_set1_epi64(wanted ? (FE_MASK - (k == 0 ? 18 : 0)) << shift : 0);
}

/* in: a reduced, b <= LIMB_MAX; out: <= PRODUCT_MAX, with the bias <= BIASED_MAX */
fe_inline struct sum
fe_multiply(const struct fe *a, const struct fe *b, bool biased)
{
	const __m512i zero = _mm512_setzero_si512();
	const __m512i *x = a->v, *y = b->v;
	__m512i c0, c1, c2, c3, c4, c5, c6, c7, c8, c9;
	struct sum r;

	limbs_check(x, FE_MAX);
	limbs_check(y, LIMB_MAX);
	c5 = hi(zero, x[0], y[4]);
	c6 = hi(zero, x[1], y[4]);
	c7 = hi(zero, x[2], y[4]);
	c8 = hi(zero, x[3], y[4]);
	c9 = hi(zero, x[4], y[4]);
	c5 = hi(c5, x[1], y[3]);
	c6 = hi(c6, x[2], y[3]);
	c7 = hi(c7, x[3], y[3]);
	c8 = hi(c8, x[4], y[3]);
	c5 = hi(c5, x[2], y[2]);
	c6 = hi(c6, x[3], y[2]);
	c7 = hi(c7, x[4], y[2]);
	c5 = hi(c5, x[3], y[1]);
	c6 = hi(c6, x[4], y[1]);
	c5 = hi(c5, x[4], y[0]);
	c5 = twice(c5);
	c6 = twice(c6);
	c7 = twice(c7);
	c8 = twice(c8);
	c9 = twice(c9);
	c5 = lo(c5, x[1], y[4]);
	c6 = lo(c6, x[2], y[4]);
	c7 = lo(c7, x[3], y[4]);
	c8 = lo(c8, x[4], y[4]);
	c5 = lo(c5, x[2], y[3]);
	c6 = lo(c6, x[3], y[3]);
	c7 = lo(c7, x[4], y[3]);
	c5 = lo(c5, x[3], y[2]);
	c6 = lo(c6, x[4], y[2]);
	c5 = lo(c5, x[4], y[1]);
	c4 = hi(bias(biased, 4, 8), x[0], y[3]);
	c3 = hi(bias(biased, 3, 8), x[0], y[2]);
	c2 = hi(bias(biased, 2, 8), x[0], y[1]);
	c1 = hi(bias(biased, 1, 8), x[0], y[0]);
	c4 = hi(c4, x[1], y[2]);
	c3 = hi(c3, x[1], y[1]);
	c2 = hi(c2, x[1], y[0]);
	c4 = hi(c4, x[2], y[1]);
	c3 = hi(c3, x[2], y[0]);
	c4 = hi(c4, x[3], y[0]);
	c4 = fold(twice(c4), c9);
	c3 = fold(twice(c3), c8);
	c2 = fold(twice(c2), c7);
	c1 = fold(twice(c1), c6);
	c0 = fold(bias(biased, 0, 9), c5);
	c4 = lo(c4, x[0], y[4]);
	c3 = lo(c3, x[0], y[3]);
	c2 = lo(c2, x[0], y[2]);
	c1 = lo(c1, x[0], y[1]);
	c0 = lo(c0, x[0], y[0]);
	c4 = lo(c4, x[1], y[3]);
	c3 = lo(c3, x[1], y[2]);
	c2 = lo(c2, x[1], y[1]);
	c1 = lo(c1, x[1], y[0]);
	c4 = lo(c4, x[2], y[2]);
	c3 = lo(c3, x[2], y[1]);
	c2 = lo(c2, x[2], y[0]);
	c4 = lo(c4, x[3], y[1]);
	c3 = lo(c3, x[3], y[0]);
	c4 = lo(c4, x[4], y[0]);
	r = (struct sum){{c0, c1, c2, c3, c4}};
	limbs_check(r.v, biased ? BIASED_MAX : PRODUCT_MAX);
	return r;
}

/*
 * As fe_multiply(a, a). The ten mixed products are taken once and doubled, after the
 * sums and not before, since 2 FE_MAX has 53 bits: a column is
 * 2 (2 mixed hi + square hi + mixed lo) + square lo.
 */
fe_inline struct sum
fe_square(const struct fe *a, bool biased)
{
	const __m512i zero = _mm512_setzero_si512();
	const __m512i *x = a->v;
	__m512i c0, c1, c2, c3, c4, c5, c6, c7, c8, c9;
	struct sum r;

	limbs_check(x, FE_MAX);
	c5 = hi(zero, x[0], x[4]);
	c6 = hi(zero, x[1], x[4]);
	c7 = hi(zero, x[2], x[4]);
	c8 = hi(zero, x[3], x[4]);
	c5 = hi(c5, x[1], x[3]);
	c6 = hi(c6, x[2], x[3]);
	c5 = twice(c5);
	c6 = twice(c6);
	c7 = twice(c7);
	c8 = twice(c8);
	c9 = hi(zero, x[4], x[4]);
	c5 = hi(c5, x[2], x[2]);
	c7 = hi(c7, x[3], x[3]);
	c5 = lo(c5, x[1], x[4]);
	c6 = lo(c6, x[2], x[4]);
	c7 = lo(c7, x[3], x[4]);
	c5 = lo(c5, x[2], x[3]);
	c5 = twice(c5);
	c6 = twice(c6);
	c7 = twice(c7);
	c8 = twice(c8);
	c9 = twice(c9);
	c8 = lo(c8, x[4], x[4]);
	c6 = lo(c6, x[3], x[3]);
	c4 = hi(bias(biased, 4, 7), x[0], x[3]);
	c3 = hi(bias(biased, 3, 7), x[0], x[2]);
	c2 = hi(bias(biased, 2, 7), x[0], x[1]);
	c4 = hi(c4, x[1], x[2]);
	c4 = twice(c4);
	c3 = twice(c3);
	c2 = twice(c2);
	c1 = hi(bias(biased, 1, 8), x[0], x[0]);
	c3 = hi(c3, x[1], x[1]);
	c4 = lo(c4, x[0], x[4]);
	c3 = lo(c3, x[0], x[3]);
	c2 = lo(c2, x[0], x[2]);
	c1 = lo(c1, x[0], x[1]);
	c4 = lo(c4, x[1], x[3]);
	c3 = lo(c3, x[1], x[2]);
	c4 = fold(twice(c4), c9);
	c3 = fold(twice(c3), c8);
	c2 = fold(twice(c2), c7);
	c1 = fold(twice(c1), c6);
	c0 = fold(bias(biased, 0, 9), c5);
	c4 = lo(c4, x[2], x[2]);
	c2 = lo(c2, x[1], x[1]);
	c0 = lo(c0, x[0], x[0]);
	r = (struct sum){{c0, c1, c2, c3, c4}};
	limbs_check(r.v, biased ? BIASED_MAX : PRODUCT_MAX);
	return r;
}

/* in: limbs <= SUM_MAX; out: <= 2^51 - 1 + 19 * 2^11 < FE_MAX */
fe_inline struct fe
sum_carry(const struct sum *a)
{
	const __m512i mask = _mm512_set1_epi64(FE_MASK);
	__m512i carry[FE_LIMBS];
	struct fe r;

	limbs_check(a->v, SUM_MAX);
	FE_EACH(i) carry[i] = _mm512_srli_epi64(a->v[i], 51);
	FE_EACH(i) r.v[i] = _mm512_and_si512(a->v[i], mask);
	r.v[0] = lo(r.v[0], carry[4], nineteen());
	r.v[1] = add(r.v[1], carry[0]);
	r.v[2] = add(r.v[2], carry[1]);
	r.v[3] = add(r.v[3], carry[2]);
	r.v[4] = add(r.v[4], carry[3]);
	return r;
}

/* The caller minds that limbs stay <= SUM_MAX. */
fe_inline struct sum
sum_add(const struct sum *a, const struct sum *b)
{
	struct sum r;

	FE_EACH(i) r.v[i] = add(a->v[i], b->v[i]);
	return r;
}

/* in: a biased, b <= PRODUCT_MAX; out: <= a */
fe_inline struct sum
sum_subtract(const struct sum *a, const struct sum *b)
{
	struct sum r;

	FE_EACH(i) r.v[i] = _mm512_sub_epi64(a->v[i], b->v[i]);
	return r;
}

fe_inline struct fe
fe_select(__mmask8 mask, const struct fe *a, const struct fe *b)
{
	struct fe r;

	FE_EACH(i) r.v[i] = _mm512_mask_blend_epi64(mask, b->v[i], a->v[i]);
	return r;
}

/* Bytes to limbs; bit 255 is ignored and values >= p are taken (RFC 7748 section 5). */
void fe_load(struct fe *r, const uint8_t *const in[FE_LANES]);

/* Four little-endian words of each lane's scalar, clamped (decodeScalar25519). */
void scalar_load(__m512i w[4], const uint8_t *const in[FE_LANES]);

/* a becomes canonical: the value below p, limbs below 2^51. */
void fe_freeze(struct fe *a);

/* The lanes of a canonical a that are 0. */
__mmask8 fe_zeros(const struct fe *a);

/* Canonical bytes of a, which is made canonical. Returns the mask of lanes that are 0. */
unsigned fe_store(uint8_t *const out[FE_LANES], struct fe *a);

/* r = 1 / a, and 0 where a is 0 */
void fe_invert(struct fe *r, const struct fe *a);

#endif
