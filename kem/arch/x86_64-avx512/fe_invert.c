/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Inversion of eight elements by inverting one: their product (Montgomery's trick, over
 * lanes). The one is inverted by division steps on ordinary integers (Bernstein and Yang,
 * "Fast constant-time gcd computation and modular inversion", CHES 2019), half as long as
 * z^(p - 2) by squaring, which has no work for eight lanes either: each waits for the
 * last. The number of steps is fixed, and each does the same whatever the values are.
 *
 * A step takes (theta, f, g), f odd, to
 *   (-theta, g, (g - f) / 2)              if g is odd and theta >= 0,
 *   (theta + 1, f, (g + (g mod 2) f) / 2) otherwise.
 * theta is Bernstein and Yang's delta less 1/2, and starts from 0: with that, 590 steps
 * bring g to 0 from any f = p, 0 <= g < p below 2^256 (P. Wuille, by enumerating convex
 * hulls; the paper's own start of delta = 1 needs 742). Then f is +-gcd(p, z) = +-1.
 * Doing more steps changes nothing: 0 stays 0.
 *
 * 62 steps depend on the lowest 62 bits alone, and are collected in a matrix that is then
 * applied to f, g and to d, e, for which d z = f and e z = g (mod p) throughout.
 */
#include "fe.h"

#define BATCH_STEPS 62
#define BATCHES     10
#define LIMB_BITS   62
#define LIMB_MASK   ((INT64_C(1) << LIMB_BITS) - 1)
#define LIMBS       5
#define INVERSE_19  UINT64_C(0x6bca1af286bca1b) /* 1/19 mod 2^62 */

_Static_assert(BATCHES *BATCH_STEPS >= 590, "too few steps");
_Static_assert(((19 * INVERSE_19) & LIMB_MASK) == 1, "not the inverse of 19");

typedef __int128 wide;

/* sum of limb[i] 2^62i; limbs 0 to 3 are in [0, 2^62), limb 4 has the sign */
struct integer {
	int64_t limb[LIMBS];
};

/* 2^62 (f', g') = (u f + v g, q f + r g), |u| + |v| <= 2^62, |q| + |r| <= 2^62 */
struct matrix {
	int64_t u, v, q, r;
};

/* x is +-x, where sign is 0 or -1 */
static inline uint64_t
negate_if(uint64_t x, uint64_t sign)
{
	return (x ^ sign) - sign;
}

/* minus: -theta - 1, whose sign is the mask that is wanted. Returns the new one. */
static int64_t
steps(struct matrix *m, int64_t minus, uint64_t f, uint64_t g)
{
	uint64_t u = 1, v = 0, q = 0, r = 1;

	for (unsigned i = 0; i < BATCH_STEPS; i++) {
		uint64_t is_odd = ct_mask_bit(g);
		uint64_t is_swap = is_odd & ct_mask_bit((uint64_t)minus >> 63);

		g += negate_if(f, is_swap) & is_odd;
		q += negate_if(u, is_swap) & is_odd;
		r += negate_if(v, is_swap) & is_odd;
		/* What was g is g - f + f; the halving is done to all but g by doubling. */
		f += g & is_swap;
		u += q & is_swap;
		v += r & is_swap;
		g >>= 1;
		u <<= 1;
		v <<= 1;
		minus = (int64_t)((uint64_t)minus ^ is_swap) - 1;
	}
	*m = (struct matrix){(int64_t)u, (int64_t)v, (int64_t)q, (int64_t)r};
	return minus;
}

/* (a, b) = (u a + v b, q a + r b) / 2^62, which is exact */
static void
apply(const struct matrix *m, struct integer *a, struct integer *b)
{
	wide x = 0, y = 0;

#pragma GCC unroll 5
	for (unsigned i = 0; i < LIMBS; i++) {
		int64_t ai = a->limb[i], bi = b->limb[i];

		x += (wide)m->u * ai + (wide)m->v * bi;
		y += (wide)m->q * ai + (wide)m->r * bi;
		if (i > 0) {
			a->limb[i - 1] = (int64_t)x & LIMB_MASK;
			b->limb[i - 1] = (int64_t)y & LIMB_MASK;
		}
		x >>= LIMB_BITS;
		y >>= LIMB_BITS;
	}
	a->limb[LIMBS - 1] = (int64_t)x;
	b->limb[LIMBS - 1] = (int64_t)y;
}

/*
 * The multiple k of p with which x + k p is divisible by 2^62, |k| <= 2^61: p is -19
 * modulo 2^62.
 */
static inline int64_t
multiple(wide x)
{
	uint64_t k = (uint64_t)x * INVERSE_19 << (64 - LIMB_BITS);

	return (int64_t)k >> (64 - LIMB_BITS);
}

/*
 * As apply(), modulo p: |a| and |b| grow by at most p / 2, so that from 0 and 1 they are
 * below 6p after ten times.
 */
static void
apply_mod_p(const struct matrix *m, struct integer *a, struct integer *b)
{
	wide x = 0, y = 0;
	int64_t k = 0, l = 0;

#pragma GCC unroll 5
	for (unsigned i = 0; i < LIMBS; i++) {
		int64_t ai = a->limb[i], bi = b->limb[i];

		x += (wide)m->u * ai + (wide)m->v * bi;
		y += (wide)m->q * ai + (wide)m->r * bi;
		if (i == 0) {
			k = multiple(x);
			l = multiple(y);
			x -= (wide)k * 19;
			y -= (wide)l * 19;
		} else {
			if (i == LIMBS - 1) {
				/* 2^255 is 2^7 there */
				x += (wide)k * 128;
				y += (wide)l * 128;
			}
			a->limb[i - 1] = (int64_t)x & LIMB_MASK;
			b->limb[i - 1] = (int64_t)y & LIMB_MASK;
		}
		x >>= LIMB_BITS;
		y >>= LIMB_BITS;
	}
	a->limb[LIMBS - 1] = (int64_t)x;
	b->limb[LIMBS - 1] = (int64_t)y;
}

/* 8p + a or 8p - a, |a| < 6p, in limbs of radix 2^51; the highest is below 2^55 */
static void
integer_split(uint64_t out[FE_LIMBS], const struct integer *a, uint64_t sign)
{
	uint64_t x[LIMBS];
	int64_t carry = -8 * 19;

	for (unsigned i = 0; i < LIMBS - 1; i++) {
		carry += (int64_t)negate_if((uint64_t)a->limb[i], sign);
		x[i] = (uint64_t)(carry & LIMB_MASK);
		carry >>= LIMB_BITS;
	}
	x[4] = (uint64_t)carry + negate_if((uint64_t)a->limb[4], sign) + (8 << 7);
	out[0] = x[0] & FE_MASK;
	out[1] = (x[0] >> 51 | x[1] << 11) & FE_MASK;
	out[2] = (x[1] >> 40 | x[2] << 22) & FE_MASK;
	out[3] = (x[2] >> 29 | x[3] << 33) & FE_MASK;
	out[4] = x[3] >> 18 | x[4] << 44;
}

/* The canonical value of lane 0 */
static void
integer_load(struct integer *r, const struct fe *a)
{
	struct fe canonical = *a;
	uint64_t x[FE_LIMBS];

	fe_freeze(&canonical);
	for (unsigned i = 0; i < FE_LIMBS; i++)
		x[i] =
		    (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(canonical.v[i]));
	r->limb[0] = (int64_t)(x[0] | x[1] << 51) & LIMB_MASK;
	r->limb[1] = (int64_t)(x[1] >> 11 | x[2] << 40) & LIMB_MASK;
	r->limb[2] = (int64_t)(x[2] >> 22 | x[3] << 29) & LIMB_MASK;
	r->limb[3] = (int64_t)(x[3] >> 33 | x[4] << 18) & LIMB_MASK;
	r->limb[4] = (int64_t)(x[4] >> 44);
	ct_wipe(x, sizeof x);
}

/* 1 / a of lane 0, which is not 0, in every lane */
static struct fe
invert_one(const struct fe *a)
{
	struct integer f = {{LIMB_MASK - 18, LIMB_MASK, LIMB_MASK, LIMB_MASK, 127}};
	struct integer g, d = {{0}}, e = {{1}};
	uint64_t limbs[FE_LIMBS];
	struct matrix m;
	int64_t minus = -1;
	struct sum r;

	integer_load(&g, a);
	for (unsigned i = 0; i < BATCHES; i++) {
		minus = steps(&m, minus, (uint64_t)f.limb[0], (uint64_t)g.limb[0]);
		apply(&m, &f, &g);
		apply_mod_p(&m, &d, &e);
	}
	/* f is 1 or -1 */
	integer_split(limbs, &d, ct_mask_bit((uint64_t)f.limb[0] >> 1));
	for (unsigned i = 0; i < FE_LIMBS; i++)
		r.v[i] = _mm512_set1_epi64((int64_t)limbs[i]);
	ct_wipe(&f, sizeof f);
	ct_wipe(&g, sizeof g);
	ct_wipe(&d, sizeof d);
	ct_wipe(&e, sizeof e);
	ct_wipe(&m, sizeof m);
	ct_wipe(limbs, sizeof limbs);
	return sum_carry(&r);
}

/* The lanes in another order: each with its neighbour, neighbouring pairs, halves. */
static struct fe
exchange(const struct fe *a, unsigned distance)
{
	const __m512i lane = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
	const __m512i from = _mm512_xor_si512(lane, _mm512_set1_epi64(distance));
	struct fe r;

	for (unsigned i = 0; i < FE_LIMBS; i++)
		r.v[i] = _mm512_permutexvar_epi64(from, a->v[i]);
	return r;
}

static struct fe
multiply(const struct fe *a, const struct fe *b)
{
	struct sum product = fe_multiply(a, b, false);

	return sum_carry(&product);
}

void
fe_invert(struct fe *r, const struct fe *a)
{
	const __m512i one = _mm512_set1_epi64(1);
	struct fe x = *a, others, t;
	__mmask8 zeros;

	/* A zero must not spoil the product: it is 1 there, and 0 again at the end. */
	fe_freeze(&x);
	zeros = fe_zeros(&x);
	x.v[0] = _mm512_mask_mov_epi64(x.v[0], zeros, one);

	/* x: the product of 1, 2, 4, 8 lanes; others: of the same without this lane */
	others = exchange(&x, 1);
	x = multiply(&x, &others);
	t = exchange(&x, 2);
	others = multiply(&others, &t);
	x = multiply(&x, &t);
	t = exchange(&x, 4);
	others = multiply(&others, &t);
	x = multiply(&x, &t);

	t = invert_one(&x);
	*r = multiply(&others, &t);
	for (unsigned i = 0; i < FE_LIMBS; i++)
		r->v[i] = _mm512_maskz_mov_epi64((__mmask8)~zeros, r->v[i]);
}
