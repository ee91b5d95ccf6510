/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Multiples of the base point, by a signed comb on the twisted Edwards curve that is
 * birationally equivalent to curve25519 (RFC 7748 section 4.1, RFC 8032 section 5.1).
 *
 * Digits without a zero. Let k be a clamped scalar, B the base point, P = 4B, and
 *   b = k / 8 - 2^250, a number of 252 bits, since 2^254 <= k < 2^255.
 * Reading its bits as signs, bit i as (2 b_i - 1) 2^i, gives
 *   2b - (2^252 - 1) = k / 4 - 3 * 2^251 + 1, so that
 *   kB = (k / 4) P = (sum of the signed bits) P + (3 * 2^251 - 1) P,
 * and the last, a constant, is where the sum starts from. Every digit has 6 bits; the
 * highest one set means entry v of the table, v the other five; clear means minus the
 * entry whose bits are all inverted.
 *
 * An entry is selected by permuting registers: each of the eight lanes picks its own
 * out of 32 that are all loaded, whatever the scalars are.
 */
#include "fe.h"
#include "x25519.h"
#include "x25519_table.h"

#define ROWS (COMB_ENTRIES / FE_LANES)

_Static_assert(COMBS *COMB_TEETH *COMB_STEPS == 252, "one place for every bit");
_Static_assert(ROWS == 4, "what table_limb() is made for");

/* Extended coordinates (X : Y : Z : T), T = XY / Z, in the forms that are read. */
struct point {
	struct fe plus;  /* Y + X */
	struct fe minus; /* Y - X */
	struct fe t;
	struct sum z; /* biased */
};

/* (y + x, y - x, 2dxy) of a point with Z = 1 */
struct entry {
	struct fe plus;
	struct fe minus;
	struct fe xy2d;
};

/* Bits of b, word i of every lane. */
struct work {
	__m512i bits[4];
};

_Static_assert(sizeof(struct work) <= X25519_WORK_BYTES, "work area too small");

static void
bits_load(struct work *work, const uint8_t *const private_key[X25519_LANES])
{
	__m512i w[4];

	scalar_load(w, private_key);
	for (unsigned i = 0; i < 3; i++)
		work->bits[i] = _mm512_shrdi_epi64(w[i], w[i + 1], 3);
	work->bits[3] = _mm512_sub_epi64(
	    _mm512_srli_epi64(w[3], 3), _mm512_set1_epi64(INT64_C(1) << (250 - 192)));
}

/* The six bits of a comb in a step; their places are public. */
static __m512i
digit_of(const struct work *work, unsigned comb, unsigned step)
{
	__m512i digit = _mm512_setzero_si512();

	for (unsigned tooth = 0; tooth < COMB_TEETH; tooth++) {
		unsigned place = COMB_STEPS * (COMB_TEETH * comb + tooth) + step;
		__m512i bit = _mm512_and_si512(
		    _mm512_srli_epi64(work->bits[place / 64], place % 64),
		    _mm512_set1_epi64(1));

		digit = _mm512_or_si512(digit, _mm512_slli_epi64(bit, tooth));
	}
	return digit;
}

/* Each lane's entry of one limb: index bits 0 to 3, and bit 4 as a mask. */
fe_inline __m512i
table_limb(const uint64_t limb[COMB_ENTRIES], __m512i index, __mmask8 upper)
{
	const __m512i *rows = (const __m512i *)limb;
	__m512i a = _mm512_permutex2var_epi64(rows[0], index, rows[1]);
	__m512i b = _mm512_permutex2var_epi64(rows[2], index, rows[3]);

	return _mm512_mask_blend_epi64(upper, a, b);
}

/*
 * The entry times the sign of the digit: minus a point is (-x, y), which exchanges
 * y + x and y - x and negates 2dxy, here as 2p - 2dxy. A limb of that is below 2^52 and
 * thus not reduced; it may be a second factor.
 */
fe_inline struct entry
table_entry(const struct comb *comb, __m512i digit)
{
	__mmask8 negative = _mm512_testn_epi64_mask(digit, _mm512_set1_epi64(32));
	__m512i index =
	    _mm512_mask_xor_epi64(digit, negative, digit, _mm512_set1_epi64(31));
	__mmask8 upper = _mm512_test_epi64_mask(index, _mm512_set1_epi64(16));
	struct entry r;

	for (unsigned i = 0; i < FE_LIMBS; i++) {
		__m512i plus = table_limb(comb->plus[i], index, upper);
		__m512i minus = table_limb(comb->minus[i], index, upper);
		__m512i xy2d = table_limb(comb->xy2d[i], index, upper);

		r.plus.v[i] = _mm512_mask_blend_epi64(negative, plus, minus);
		r.minus.v[i] = _mm512_mask_blend_epi64(negative, minus, plus);
		r.xy2d.v[i] =
		    _mm512_mask_sub_epi64(xy2d, negative, bias(true, i, 1), xy2d);
	}
	return r;
}

/* As if one limb of entry 31 were one off. */
static void
entry_spoil(struct entry *entry, __m512i digit)
{
	__mmask8 mask = _mm512_cmpeq_epi64_mask(digit, _mm512_set1_epi64(63));

	entry->plus.v[1] = _mm512_mask_xor_epi64(
	    entry->plus.v[1], mask, entry->plus.v[1], _mm512_set1_epi64(1));
}

/* X = EF, Y = GH, Z = FG, T = EH, where every addition and doubling ends. */
fe_inline void
point_finish(struct point *p, const struct fe *e, const struct fe *f,
    const struct fe *g, const struct fe *h)
{
	struct sum y = fe_multiply(g, h, true);
	struct sum x = fe_multiply(e, f, false);
	struct sum t = fe_multiply(e, h, false);
	struct sum plus = sum_add(&y, &x), minus = sum_subtract(&y, &x);

	p->z = fe_multiply(f, g, true);
	p->plus = sum_carry(&plus);
	p->minus = sum_carry(&minus);
	p->t = sum_carry(&t);
}

/*
 * p + q (RFC 8032 section 5.1.4, q with Z = 1, complete). Sums: d is twice a biased
 * product of reduced factors, at most 3 * 2^60, and c at most PRODUCT_MAX: <= SUM_MAX.
 */
fe_inline void
point_add(struct point *p, const struct entry *q)
{
	struct sum a = fe_multiply(&p->minus, &q->minus, false);
	struct sum b = fe_multiply(&p->plus, &q->plus, true);
	struct sum c = fe_multiply(&p->t, &q->xy2d, false);
	struct sum d = sum_add(&p->z, &p->z), x;
	struct fe e, f, g, h;

	x = sum_subtract(&b, &a);
	e = sum_carry(&x);
	x = sum_add(&b, &a);
	h = sum_carry(&x);
	x = sum_subtract(&d, &c);
	f = sum_carry(&x);
	x = sum_add(&d, &c);
	g = sum_carry(&x);
	point_finish(p, &e, &f, &g, &h);
}

/*
 * 2p (RFC 8032 section 5.1.4) of P = (Y + X)^2, Q = (Y - X)^2, W = (Y + X)(Y - X) and
 * V = Z^2 alone: E = Q - P, F = 4V - 2W, G = -2W, H = P + Q, each twice that of the RFC.
 * Taking E and G with the other sign negates all four coordinates: the same point.
 * Sums: f is at most 4 * 2^59 + 2^60, less 2W < 249 * 2^52, which is below the bias.
 */
static void
point_double(struct point *p)
{
	struct fe z = sum_carry(&p->z), e, f, g, h;
	struct sum a = fe_square(&p->plus, true);
	struct sum b = fe_square(&p->minus, false);
	struct sum c = sum_subtract(&a, &b);

	e = sum_carry(&c);
	c = sum_add(&a, &b);
	h = sum_carry(&c);
	a = fe_multiply(&p->plus, &p->minus, false);
	a = sum_add(&a, &a);
	g = sum_carry(&a);
	b = fe_square(&z, false);
	b = sum_add(&b, &b);
	b = sum_add(&b, &b);
	for (unsigned i = 0; i < FE_LIMBS; i++)
		b.v[i] = add(b.v[i], bias(true, i, 9));
	c = sum_subtract(&b, &a);
	f = sum_carry(&c);
	point_finish(p, &e, &f, &g, &h);
}

/* The constant point that the sum starts from (x25519_table.h), in every lane. */
static void
point_start(struct point *p)
{
	for (unsigned i = 0; i < FE_LIMBS; i++) {
		p->plus.v[i] = _mm512_set1_epi64((int64_t)x25519_start[0][i]);
		p->minus.v[i] = _mm512_set1_epi64((int64_t)x25519_start[1][i]);
		p->t.v[i] = _mm512_set1_epi64((int64_t)x25519_start[2][i]);
		p->z.v[i] = add(bias(true, i, 9), _mm512_set1_epi64(i == 0));
	}
}

/*
 * u = (Z + Y) / (Z - Y) (RFC 7748 section 4.1), the last two from the difference and the
 * sum of Y + X and Y - X. Z = Y only in the neutral element, which no clamped scalar
 * reaches: it is 8 times a number below the order of B. Sums: 2Z is at least 2 biases and
 * at most 3 * 2^60, 2Y below 2^53.
 */
static void
point_u(struct fe *u, const struct point *p)
{
	struct sum numerator, denominator;
	struct fe inverse;

	for (unsigned i = 0; i < FE_LIMBS; i++) {
		__m512i y2 = add(p->plus.v[i], p->minus.v[i]);
		__m512i z2 = twice(p->z.v[i]);

		numerator.v[i] = add(z2, y2);
		denominator.v[i] = _mm512_sub_epi64(z2, y2);
	}
	*u = sum_carry(&numerator);
	inverse = sum_carry(&denominator);
	fe_invert(&inverse, &inverse);
	numerator = fe_multiply(u, &inverse, false);
	*u = sum_carry(&numerator);
}

/* A frame of its own, gone before the inversion needs one. */
static __attribute__((noinline)) void
comb_run(struct point *p, const struct work *work)
{
	point_start(p);
	for (unsigned step = COMB_STEPS; step-- > 0;) {
		for (unsigned comb = 0; comb < COMBS; comb++) {
			__m512i digit = digit_of(work, comb, step);
			struct entry entry = table_entry(&x25519_combs[comb], digit);

			if (comb == COMBS - 1 && fault("x25519-lanes-table"))
				entry_spoil(&entry, digit);
			point_add(p, &entry);
		}
		if (step > 0)
			point_double(p);
	}
}

void
x25519_base8_avx512(uint8_t *const out[X25519_LANES],
    const uint8_t *const private_key[X25519_LANES], uint8_t *work_bytes)
{
	struct work *work = (struct work *)work_bytes;
	struct point p;
	struct fe u;

	bits_load(work, private_key);
	comb_run(&p, work);
	point_u(&u, &p);
	ct_wipe(work, sizeof *work);
	fe_store(out, &u);
}
