/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every number of the table of base-point multiples, computed once more by OpenSSL's big
 * numbers: the scalar of each entry from its bits, its multiple of B by doubling and
 * adding (RFC 8032 5.1.4), in affine coordinates. Runs on any CPU.
 */
#include "kem/arch/x86_64-avx512/x25519_table.h"

#include <check.h>
#include <string.h>

#include <openssl/bn.h>

#include "tests/kem/kemtest.h"

struct point {
	BIGNUM *x, *y;
};

static BN_CTX *ctx;
static BIGNUM *p, *d, *order;
static struct point base;

static void
curve_init(void)
{
	ctx = BN_CTX_new();
	BN_hex2bn(&p, "7fffffffffffffffffffffffffffffff"
		      "ffffffffffffffffffffffffffffffed");
	BN_hex2bn(&order, "1000000000000000000000000000000014def9dea2f79cd6"
			  "5812631a5cf5d3ed");
	BN_hex2bn(&d, "52036cee2b6ffe738cc740797779e89800700a4d4141d8ab"
		      "75eb4dca135978a3");
	BN_hex2bn(&base.x, "216936d3cd6e53fec0a4e231fdd6dc5c692cc7609525a7b2"
			   "c9562d608f25d51a");
	BN_hex2bn(&base.y, "6666666666666666666666666666666666666666666666666"
			   "666666666666658");
}

static void
curve_fini(void)
{
	BN_free(p);
	BN_free(d);
	BN_free(order);
	BN_free(base.x);
	BN_free(base.y);
	BN_CTX_free(ctx);
	p = d = order = base.x = base.y = NULL;
}

/* x = (x1 y2 + x2 y1) / (1 + k), y = (y1 y2 + x1 x2) / (1 - k), k = d x1 x2 y1 y2 */
static void
point_add(struct point *r, const struct point *a, const struct point *b)
{
	BIGNUM *t[4], *k, *one, *bottom;

	BN_CTX_start(ctx);
	for (unsigned i = 0; i < 4; i++)
		t[i] = BN_CTX_get(ctx);
	k = BN_CTX_get(ctx);
	one = BN_CTX_get(ctx);
	bottom = BN_CTX_get(ctx);
	BN_one(one);
	BN_mod_mul(t[0], a->x, b->y, p, ctx);
	BN_mod_mul(t[1], b->x, a->y, p, ctx);
	BN_mod_mul(t[2], a->y, b->y, p, ctx);
	BN_mod_mul(t[3], a->x, b->x, p, ctx);
	BN_mod_mul(k, t[2], t[3], p, ctx);
	BN_mod_mul(k, k, d, p, ctx);
	BN_mod_add(bottom, one, k, p, ctx);
	ck_assert_ptr_nonnull(BN_mod_inverse(bottom, bottom, p, ctx));
	BN_mod_add(t[0], t[0], t[1], p, ctx);
	BN_mod_mul(r->x, t[0], bottom, p, ctx);
	BN_mod_sub(bottom, one, k, p, ctx);
	ck_assert_ptr_nonnull(BN_mod_inverse(bottom, bottom, p, ctx));
	BN_mod_add(t[2], t[2], t[3], p, ctx);
	BN_mod_mul(r->y, t[2], bottom, p, ctx);
	BN_CTX_end(ctx);
}

static void
point_multiply(struct point *r, const BIGNUM *n)
{
	BN_zero(r->x);
	BN_one(r->y);
	for (int bit = BN_num_bits(n) - 1; bit >= 0; bit--) {
		point_add(r, r, r);
		if (BN_is_bit_set(n, bit))
			point_add(r, r, &base);
	}
}

/* The limbs, `stride` numbers apart, are canonical and mean this value. */
static unsigned
limbs_wrong(const uint64_t *limbs, size_t stride, const BIGNUM *expected)
{
	BIGNUM *value = BN_new(), *limb = BN_new();
	unsigned wrong = 0;

	BN_zero(value);
	for (unsigned i = 5; i-- > 0;) {
		wrong += limbs[i * stride] >> 51 != 0;
		BN_set_word(limb, limbs[i * stride]);
		BN_lshift(value, value, 51);
		BN_add(value, value, limb);
	}
	wrong += BN_cmp(value, expected) != 0;
	BN_free(value);
	BN_free(limb);
	return wrong;
}

/* plus, minus and x y factor of a point, n numbers from limb to limb */
static unsigned
entry_wrong(const uint64_t *plus, const uint64_t *minus, const uint64_t *xy,
    size_t stride, const BIGNUM *scalar, const BIGNUM *factor)
{
	struct point point = {BN_new(), BN_new()};
	BIGNUM *t = BN_new();
	unsigned wrong = 0;

	point_multiply(&point, scalar);
	BN_mod_add(t, point.y, point.x, p, ctx);
	wrong += limbs_wrong(plus, stride, t);
	BN_mod_sub(t, point.y, point.x, p, ctx);
	wrong += limbs_wrong(minus, stride, t);
	BN_mod_mul(t, point.x, point.y, p, ctx);
	BN_mod_mul(t, t, factor, p, ctx);
	wrong += limbs_wrong(xy, stride, t);
	BN_free(t);
	BN_free(point.x);
	BN_free(point.y);
	return wrong;
}

/* 4 (2^place5 +- 2^place4 ... +- 2^place0) mod the order of B */
static void
entry_scalar(BIGNUM *r, unsigned comb, unsigned entry)
{
	BIGNUM *power = BN_new();

	BN_zero(r);
	for (unsigned t = 0; t < COMB_TEETH; t++) {
		bool is_plus = t == COMB_TEETH - 1 || (entry >> t & 1);

		BN_one(power);
		BN_lshift(
		    power, power, (int)(2 + COMB_STEPS * (COMB_TEETH * comb + t)));
		if (is_plus)
			BN_add(r, r, power);
		else
			BN_sub(r, r, power);
	}
	BN_nnmod(r, r, order, ctx);
	BN_free(power);
}

static unsigned
comb_wrong(const struct comb *c, unsigned comb)
{
	BIGNUM *scalar = BN_new(), *d2 = BN_new();
	unsigned wrong = 0;

	BN_mod_add(d2, d, d, p, ctx);
	for (unsigned v = 0; v < COMB_ENTRIES; v++) {
		entry_scalar(scalar, comb, v);
		wrong += entry_wrong(&c->plus[0][v], &c->minus[0][v], &c->xy2d[0][v],
		    COMB_ENTRIES, scalar, d2);
	}
	BN_free(scalar);
	BN_free(d2);
	return wrong;
}

START_TEST(test_comb)
{
	ck_assert_uint_eq(comb_wrong(&x25519_combs[_i], (unsigned)_i), 0);
}
END_TEST

/* 2^(COMB_STEPS - 1) times the scalar of the start is 4 (3 * 2^251 - 1). */
START_TEST(test_start)
{
	BIGNUM *scalar = BN_new(), *half = BN_new(), *one = BN_new();

	BN_one(one);
	BN_set_word(scalar, 3);
	BN_lshift(scalar, scalar, 251);
	BN_sub_word(scalar, 1);
	BN_lshift(scalar, scalar, 2);
	BN_set_word(half, 1u << (COMB_STEPS - 1));
	ck_assert_ptr_nonnull(BN_mod_inverse(half, half, order, ctx));
	BN_mod_mul(scalar, scalar, half, order, ctx);
	ck_assert_uint_eq(entry_wrong(x25519_start[0], x25519_start[1], x25519_start[2],
			      1, scalar, one),
	    0);
	BN_free(scalar);
	BN_free(half);
	BN_free(one);
}
END_TEST

START_TEST(test_control)
{
	static struct comb bad;

	memcpy(&bad, &x25519_combs[3], sizeof bad);
	bad.minus[2][17] ^= 1;
	bad.xy2d[0][31]++;
	ck_assert_uint_eq(comb_wrong(&bad, 3), 2);
	ck_assert_uint_gt(comb_wrong(&x25519_combs[3], 4), 90);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("x25519_table");
	TCase *tcase = tcase_create("x25519_table");

	tcase_add_checked_fixture(tcase, curve_init, curve_fini);
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, test_comb, 0, COMBS);
	tcase_add_test(tcase, test_start);
	tcase_add_test(tcase, test_control);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
