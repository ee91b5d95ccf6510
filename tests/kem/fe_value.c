/* SPDX-License-Identifier: Apache-2.0 */
#include "fe_value.h"

#include <check.h>

static BN_CTX *ctx;
static BIGNUM *p;

void
field_init(void)
{
	ctx = BN_CTX_new();
	ck_assert_int_ne(BN_hex2bn(&p, "7fffffffffffffffffffffffffffffff"
				       "ffffffffffffffffffffffffffffffed"),
	    0);
}

void
field_fini(void)
{
	BN_free(p);
	BN_CTX_free(ctx);
	p = NULL;
}

void
lane_value(BIGNUM *r, const struct fe_lanes *a, unsigned lane)
{
	BIGNUM *limb = BN_new();

	BN_zero(r);
	for (unsigned i = 5; i-- > 0;) {
		BN_set_word(limb, a->limb[i][lane]);
		BN_lshift(r, r, 51);
		BN_add(r, r, limb);
	}
	BN_free(limb);
}

void
lane_residue(BIGNUM *r, const struct fe_lanes *a, unsigned lane)
{
	lane_value(r, a, lane);
	BN_mod(r, r, p, ctx);
}

unsigned
limbs_over(const struct fe_lanes *a, uint64_t max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 5; i++)
		for (unsigned lane = 0; lane < 8; lane++)
			n += a->limb[i][lane] > max;
	return n;
}

unsigned
product_wrong(
    const struct fe_lanes *r, const struct fe_lanes *a, const struct fe_lanes *b)
{
	BIGNUM *x = BN_new(), *y = BN_new(), *z = BN_new();
	unsigned n = 0;

	for (unsigned lane = 0; lane < 8; lane++) {
		lane_value(x, a, lane);
		lane_value(y, b, lane);
		lane_residue(z, r, lane);
		BN_mod_mul(x, x, y, p, ctx);
		n += BN_cmp(x, z) != 0;
	}
	BN_free(x);
	BN_free(y);
	BN_free(z);
	return n;
}

unsigned
same_wrong(const struct fe_lanes *r, const struct fe_lanes *a)
{
	struct fe_lanes one = {0};

	for (unsigned lane = 0; lane < 8; lane++)
		one.limb[0][lane] = 1;
	return product_wrong(r, a, &one);
}

void
lanes_random(struct fe_lanes *r, struct test_stream *stream, uint64_t max)
{
	test_stream_fill(stream, r, sizeof *r);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned lane = 0; lane < 8; lane++)
			r->limb[i][lane] %= max + 1;
}
