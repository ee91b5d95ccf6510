/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The Montgomery ladder (RFC 7748 section 5). Three things differ from the text there.
 *
 * A point (X : Z) is kept as X + Z and X - Z, the only form in which the formulas read
 * it; these two are made of unreduced products, so that X and Z are never carried.
 *
 * Nothing is swapped. After each step one point is what was doubled, the other the sum.
 * Adding is symmetric in the two, and the point to be doubled next is the sum exactly if
 * this bit of the scalar differs from the one before: one selection a step.
 *
 * Bit 254 of a clamped scalar is set and bits 0 to 2 are clear: the first step is one
 * doubling, the last three are doublings only.
 */
#include "x25519.h"

#include "fe.h"

#define A24      121666 /* (486662 + 2) / 4, to go with BB instead of AA */
#define BIT_HIGH 254
#define BIT_LOW  3

struct point {
	struct fe plus;  /* X + Z */
	struct fe minus; /* X - Z */
};

/*
 * x 2^51i mod p for i = 0 .. 4, so that multiplying by x needs no fold. Row i + 1 is row
 * i moved up one limb, its top limb t coming back below as 19t = low[i] + 2^51 c; c < 19
 * is added to the limb above, which in row i was limb 0: moved[i].
 *   row 0: x[0]   x[1]     x[2]     x[3]     x[4]
 *   row 1: low[0] moved[0] x[1]     x[2]     x[3]
 *   row 2: low[1] moved[1] moved[0] x[1]     x[2]   ...
 * All < 2^51 + 19.
 */
struct multiplier {
	struct fe x;
	__m512i low[4];
	__m512i moved[4];
};

struct work {
	struct multiplier base;
	__m512i differs[4]; /* bit t: bits t and t + 1 of the scalar differ */
};

_Static_assert(sizeof(struct work) <= X25519_WORK_BYTES, "work area too small");

static void
multiplier_init(struct multiplier *m, const struct fe *x)
{
	__m512i limb0 = x->v[0];

	m->x = *x;
	for (unsigned i = 0; i < 4; i++) {
		__m512i t = _mm512_mullo_epi64(x->v[4 - i], nineteen());

		m->low[i] = _mm512_and_si512(t, _mm512_set1_epi64(FE_MASK));
		m->moved[i] = add(limb0, _mm512_srli_epi64(t, 51));
		limb0 = m->low[i];
	}
}

/* in: a reduced; out: <= 5 * 2^52 + 38 * 5 * 2^50.1 < PRODUCT_MAX */
fe_inline struct sum
multiplier_apply(const struct multiplier *m, const struct fe *a)
{
	const __m512i zero = _mm512_setzero_si512();
	const __m512i *x = m->x.v, *low = m->low, *moved = m->moved, *y = a->v;
	__m512i c0, c1, c2, c3, c4, c5;
	struct sum r;

	limbs_check(y, FE_MAX);
	c1 = hi(zero, y[0], x[0]);
	c2 = hi(zero, y[0], x[1]);
	c3 = hi(zero, y[0], x[2]);
	c4 = hi(zero, y[0], x[3]);
	c5 = hi(zero, y[0], x[4]);
	c1 = hi(c1, y[1], low[0]);
	c2 = hi(c2, y[1], moved[0]);
	c3 = hi(c3, y[1], x[1]);
	c4 = hi(c4, y[1], x[2]);
	c5 = hi(c5, y[1], x[3]);
	c1 = hi(c1, y[2], low[1]);
	c2 = hi(c2, y[2], moved[1]);
	c3 = hi(c3, y[2], moved[0]);
	c4 = hi(c4, y[2], x[1]);
	c5 = hi(c5, y[2], x[2]);
	c1 = hi(c1, y[3], low[2]);
	c2 = hi(c2, y[3], moved[2]);
	c3 = hi(c3, y[3], moved[1]);
	c4 = hi(c4, y[3], moved[0]);
	c5 = hi(c5, y[3], x[1]);
	c1 = hi(c1, y[4], low[3]);
	c2 = hi(c2, y[4], moved[3]);
	c3 = hi(c3, y[4], moved[2]);
	c4 = hi(c4, y[4], moved[1]);
	c5 = hi(c5, y[4], moved[0]);
	c0 = fold(zero, twice(c5));
	c1 = twice(c1);
	c2 = twice(c2);
	c3 = twice(c3);
	c4 = twice(c4);
	c0 = lo(c0, y[0], x[0]);
	c1 = lo(c1, y[0], x[1]);
	c2 = lo(c2, y[0], x[2]);
	c3 = lo(c3, y[0], x[3]);
	c4 = lo(c4, y[0], x[4]);
	c0 = lo(c0, y[1], low[0]);
	c1 = lo(c1, y[1], moved[0]);
	c2 = lo(c2, y[1], x[1]);
	c3 = lo(c3, y[1], x[2]);
	c4 = lo(c4, y[1], x[3]);
	c0 = lo(c0, y[2], low[1]);
	c1 = lo(c1, y[2], moved[1]);
	c2 = lo(c2, y[2], moved[0]);
	c3 = lo(c3, y[2], x[1]);
	c4 = lo(c4, y[2], x[2]);
	c0 = lo(c0, y[3], low[2]);
	c1 = lo(c1, y[3], moved[2]);
	c2 = lo(c2, y[3], moved[1]);
	c3 = lo(c3, y[3], moved[0]);
	c4 = lo(c4, y[3], x[1]);
	c0 = lo(c0, y[4], low[3]);
	c1 = lo(c1, y[4], moved[3]);
	c2 = lo(c2, y[4], moved[2]);
	c3 = lo(c3, y[4], moved[1]);
	c4 = lo(c4, y[4], moved[0]);
	r = (struct sum){{c0, c1, c2, c3, c4}};
	limbs_check(r.v, PRODUCT_MAX);
	return r;
}

/* a + A24 b. in: reduced; limbs before the carry: < 2^51.1 + 2^52 + 38 * 2^17 */
fe_inline struct fe
add_a24(const struct fe *a, const struct fe *b)
{
	const __m512i zero = _mm512_setzero_si512();
	const __m512i a24 = _mm512_set1_epi64(A24);
	__m512i high[FE_LIMBS];
	struct sum r;

	FE_EACH(i) high[i] = twice(hi(zero, b->v[i], a24));
	FE_EACH(i) r.v[i] = lo(a->v[i], b->v[i], a24);
	r.v[0] = lo(r.v[0], high[4], nineteen());
	r.v[1] = add(r.v[1], high[0]);
	r.v[2] = add(r.v[2], high[1]);
	r.v[3] = add(r.v[3], high[2]);
	r.v[4] = add(r.v[4], high[3]);
	return sum_carry(&r);
}

/* The X and Z of 2P. x: biased, z: a product */
fe_inline void
point_double(struct sum *x, struct sum *z, const struct point *p)
{
	struct sum aa_sum = fe_square(&p->plus, true);
	struct sum bb_sum = fe_square(&p->minus, false);
	struct sum e_sum = sum_subtract(&aa_sum, &bb_sum);
	struct fe aa = sum_carry(&aa_sum), bb = sum_carry(&bb_sum);
	struct fe e = sum_carry(&e_sum), t = add_a24(&bb, &e);

	*x = fe_multiply(&aa, &bb, true);
	*z = fe_multiply(&e, &t, false);
}

/* in: x biased, z <= PRODUCT_MAX */
fe_inline struct point
point_of(const struct sum *x, const struct sum *z)
{
	struct sum plus = sum_add(x, z), minus = sum_subtract(x, z);

	return (struct point){sum_carry(&plus), sum_carry(&minus)};
}

fe_inline struct point
point_select(__mmask8 mask, const struct point *p, const struct point *q)
{
	return (struct point){
	    fe_select(mask, &p->plus, &q->plus), fe_select(mask, &p->minus, &q->minus)};
}

/*
 * One step: doubled becomes twice the sum where mask is set, else twice itself; sum
 * becomes their sum, base being the u of their difference. The doubling and the addition
 * don't depend on each other. They are interleaved, so that one has products to form
 * while the other waits for a carry; this order was the best of some hundred on Zen 4,
 * and a tenth faster than one after the other.
 */
fe_inline void
ladder_step(struct point *doubled, struct point *sum, __mmask8 mask,
    const struct multiplier *base)
{
	struct point p = point_select(mask, sum, doubled);
	struct sum aa_sum = fe_square(&p.plus, true);
	struct sum bb_sum = fe_square(&p.minus, false);
	struct sum da_sum = fe_multiply(&sum->minus, &doubled->plus, true);
	struct fe aa = sum_carry(&aa_sum);
	struct sum e_sum = sum_subtract(&aa_sum, &bb_sum);
	struct fe e = sum_carry(&e_sum);
	struct sum cb_sum = fe_multiply(&sum->plus, &doubled->minus, false);
	struct fe bb = sum_carry(&bb_sum);
	struct sum minus_sum = sum_subtract(&da_sum, &cb_sum);
	struct fe minus = sum_carry(&minus_sum);
	struct sum x_doubled = fe_multiply(&aa, &bb, true);
	struct sum plus_sum = sum_add(&da_sum, &cb_sum);
	struct fe plus = sum_carry(&plus_sum);
	struct fe t = add_a24(&bb, &e);
	struct sum square_sum = fe_square(&minus, false);
	struct fe square = sum_carry(&square_sum);
	struct sum z_doubled = fe_multiply(&e, &t, false);
	struct sum x_sum = fe_square(&plus, true);
	struct sum z_sum = multiplier_apply(base, &square);

	*doubled = point_of(&x_doubled, &z_doubled);
	*sum = point_of(&x_sum, &z_sum);
}

static inline __mmask8
bit_mask(const __m512i w[4], unsigned bit)
{
	return _mm512_test_epi64_mask(
	    w[bit / 64], _mm512_set1_epi64((int64_t)(UINT64_C(1) << bit % 64)));
}

/* The point (u : 1) */
static struct point
point_load(const struct fe *u)
{
	struct sum x, z = {{_mm512_set1_epi64(1)}};

	for (unsigned i = 0; i < FE_LIMBS; i++)
		x.v[i] = add(u->v[i], bias(true, i, 9));
	return point_of(&x, &z);
}

/*
 * The X and Z of the scalar times the point of base. x: biased, z: a product. A frame of
 * its own, gone before the inversion needs one.
 */
static __attribute__((noinline)) void
ladder(struct sum *x, struct sum *z, const struct work *work)
{
	struct point sum = point_load(&work->base.x), doubled;

	point_double(x, z, &sum);
	doubled = point_of(x, z);
	for (unsigned bit = BIT_HIGH - 1; bit >= BIT_LOW; bit--) {
		__mmask8 mask = bit_mask(work->differs, bit);

		ladder_step(&doubled, &sum, mask, &work->base);
		if (bit == 100 && fault("x25519-lanes-carry"))
			doubled.plus.v[3] = _mm512_mask_sub_epi64(doubled.plus.v[3],
			    1 << 5, doubled.plus.v[3], _mm512_set1_epi64(1));
	}
	doubled = point_select(bit_mask(work->differs, BIT_LOW - 1), &sum, &doubled);
	for (unsigned bit = 0; bit < BIT_LOW; bit++) {
		point_double(x, z, &doubled);
		doubled = point_of(x, z);
	}
}

unsigned
x25519_shared8_avx512(uint8_t *const out[X25519_LANES],
    const uint8_t *const private_key[X25519_LANES],
    const uint8_t *const peer[X25519_LANES], uint8_t *work_bytes)
{
	struct work *work = (struct work *)work_bytes;
	struct sum x_sum, z_sum;
	struct fe x, z;
	__m512i w[4];

	scalar_load(w, private_key);
	for (unsigned i = 0; i < 4; i++) {
		__m512i above = i < 3 ? w[i + 1] : _mm512_setzero_si512();

		work->differs[i] =
		    _mm512_xor_si512(w[i], _mm512_shrdi_epi64(w[i], above, 1));
	}
	fe_load(&x, peer);
	multiplier_init(&work->base, &x);
	ladder(&x_sum, &z_sum, work);
	x = sum_carry(&x_sum);
	z = sum_carry(&z_sum);
	fe_invert(&z, &z);
	x_sum = fe_multiply(&x, &z, false);
	x = sum_carry(&x_sum);
	ct_wipe(work, sizeof *work);
	return fe_store(out, &x);
}
