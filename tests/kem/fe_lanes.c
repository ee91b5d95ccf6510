/* SPDX-License-Identifier: Apache-2.0 */
#include "fe_lanes.h"

#include "kem/arch/x86_64-avx512/fe.h"

_Static_assert(LANES_FE_MAX == FE_MAX && LANES_LIMB_MAX == LIMB_MAX, "");
_Static_assert(LANES_PRODUCT_MAX == PRODUCT_MAX && LANES_BIASED_MAX == BIASED_MAX, "");
_Static_assert(LANES_SUM_MAX == SUM_MAX, "");

static void
limbs_load(__m512i v[FE_LIMBS], const struct fe_lanes *a)
{
	for (unsigned i = 0; i < FE_LIMBS; i++)
		v[i] = _mm512_loadu_si512(a->limb[i]);
}

static void
limbs_store(struct fe_lanes *r, const __m512i v[FE_LIMBS])
{
	for (unsigned i = 0; i < FE_LIMBS; i++)
		_mm512_storeu_si512(r->limb[i], v[i]);
}

void
fe_lanes_multiply(
    struct fe_lanes *r, const struct fe_lanes *a, const struct fe_lanes *b, bool biased)
{
	struct sum product;
	struct fe x, y;

	limbs_load(x.v, a);
	limbs_load(y.v, b);
	product = biased ? fe_multiply(&x, &y, true) : fe_multiply(&x, &y, false);
	limbs_store(r, product.v);
}

void
fe_lanes_square(struct fe_lanes *r, const struct fe_lanes *a, bool biased)
{
	struct sum product;
	struct fe x;

	limbs_load(x.v, a);
	product = biased ? fe_square(&x, true) : fe_square(&x, false);
	limbs_store(r, product.v);
}

void
fe_lanes_carry(struct fe_lanes *r, const struct fe_lanes *a)
{
	struct sum x;
	struct fe y;

	limbs_load(x.v, a);
	y = sum_carry(&x);
	limbs_store(r, y.v);
}

void
fe_lanes_subtract(
    struct fe_lanes *r, const struct fe_lanes *a, const struct fe_lanes *b)
{
	struct sum x, y;

	limbs_load(x.v, a);
	limbs_load(y.v, b);
	x = sum_subtract(&x, &y);
	limbs_store(r, x.v);
}

void
fe_lanes_load(struct fe_lanes *r, const uint8_t *const in[8])
{
	struct fe x;

	fe_load(&x, in);
	limbs_store(r, x.v);
}

unsigned
fe_lanes_store(uint8_t *const out[8], const struct fe_lanes *a)
{
	struct fe x;

	limbs_load(x.v, a);
	return fe_store(out, &x);
}

void
fe_lanes_invert(struct fe_lanes *r, const struct fe_lanes *a)
{
	struct fe x;

	limbs_load(x.v, a);
	fe_invert(&x, &x);
	limbs_store(r, x.v);
}
