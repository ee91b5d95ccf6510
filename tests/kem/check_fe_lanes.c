/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The field arithmetic under X25519 in lanes against OpenSSL's big numbers, with limbs at
 * the bounds that fe.h states, alone and in every combination, and at random.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bn.h>

#include "fe_lanes.h"
#include "tests/kem/kemtest.h"

static BN_CTX *ctx;
static BIGNUM *p;

static void
field_init(void)
{
	ctx = BN_CTX_new();
	ck_assert_int_ne(BN_hex2bn(&p, "7fffffffffffffffffffffffffffffff"
				       "ffffffffffffffffffffffffffffffed"),
	    0);
}

static void
field_fini(void)
{
	BN_free(p);
	BN_CTX_free(ctx);
	p = NULL;
}

/* The value of a lane, not reduced. */
static void
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

static unsigned
over(const struct fe_lanes *a, uint64_t max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 5; i++)
		for (unsigned lane = 0; lane < 8; lane++)
			n += a->limb[i][lane] > max;
	return n;
}

/* How many lanes of r are not a * b (mod p). */
static unsigned
product_wrong(
    const struct fe_lanes *r, const struct fe_lanes *a, const struct fe_lanes *b)
{
	BIGNUM *x = BN_new(), *y = BN_new(), *z = BN_new();
	unsigned n = 0;

	for (unsigned lane = 0; lane < 8; lane++) {
		lane_value(x, a, lane);
		lane_value(y, b, lane);
		lane_value(z, r, lane);
		BN_mod_mul(x, x, y, p, ctx);
		BN_mod(z, z, p, ctx);
		n += BN_cmp(x, z) != 0;
	}
	BN_free(x);
	BN_free(y);
	BN_free(z);
	return n;
}

static unsigned
same_wrong(const struct fe_lanes *r, const struct fe_lanes *a)
{
	struct fe_lanes one = {0};

	for (unsigned lane = 0; lane < 8; lane++)
		one.limb[0][lane] = 1;
	return product_wrong(r, a, &one);
}

/* Limb i of lane is one of the n values, by digit i of a number in base n. */
static void
combine(struct fe_lanes *r, const uint64_t *values, unsigned n, unsigned number)
{
	for (unsigned lane = 0; lane < 8; lane++) {
		unsigned rest = number + lane;

		for (unsigned i = 0; i < 5; i++) {
			r->limb[i][lane] = values[rest % n];
			rest /= n;
		}
	}
}

static void
random_lanes(struct fe_lanes *r, struct test_stream *stream, uint64_t max)
{
	test_stream_fill(stream, r, sizeof *r);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned lane = 0; lane < 8; lane++)
			r->limb[i][lane] %= max + 1;
}

static void
multiply_check(const struct fe_lanes *a, const struct fe_lanes *b)
{
	struct fe_lanes r;

	fe_lanes_multiply(&r, a, b, false);
	ck_assert_uint_eq(product_wrong(&r, a, b), 0);
	ck_assert_uint_eq(over(&r, LANES_PRODUCT_MAX), 0);
	fe_lanes_multiply(&r, a, b, true);
	ck_assert_uint_eq(product_wrong(&r, a, b), 0);
	ck_assert_uint_eq(over(&r, LANES_BIASED_MAX), 0);
}

static void
square_check(const struct fe_lanes *a)
{
	struct fe_lanes r;

	fe_lanes_square(&r, a, false);
	ck_assert_uint_eq(product_wrong(&r, a, a), 0);
	ck_assert_uint_eq(over(&r, LANES_PRODUCT_MAX), 0);
	fe_lanes_square(&r, a, true);
	ck_assert_uint_eq(product_wrong(&r, a, a), 0);
	ck_assert_uint_eq(over(&r, LANES_BIASED_MAX), 0);
}

static const uint64_t reduced_limbs[] = {0, LANES_FE_MAX};
static const uint64_t any_limbs[] = {0, LANES_LIMB_MAX};

/* Every combination of limbs 0 and the highest, with every other. */
START_TEST(test_multiply_bounds)
{
	for (unsigned i = 0; i < 32; i++) {
		for (unsigned j = 0; j < 32; j++) {
			struct fe_lanes a, b;

			combine(&a, reduced_limbs, 2, i);
			combine(&b, any_limbs, 2, j);
			multiply_check(&a, &b);
		}
	}
}
END_TEST

START_TEST(test_multiply_random)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "fe multiply");
	for (unsigned i = 0; i < 2000; i++) {
		struct fe_lanes a, b;

		random_lanes(&a, &stream, LANES_FE_MAX);
		random_lanes(&b, &stream, LANES_LIMB_MAX);
		multiply_check(&a, &b);
		square_check(&a);
	}
}
END_TEST

START_TEST(test_square_bounds)
{
	static const uint64_t limbs[] = {0, 1, (UINT64_C(1) << 51) - 1, LANES_FE_MAX};

	for (unsigned i = 0; i < 1024; i += 8) {
		struct fe_lanes a;

		combine(&a, limbs, 4, i);
		square_check(&a);
	}
}
END_TEST

/* How many lanes a carry gets wrong, in value or in bound. */
static unsigned
carry_wrong(
    void (*carry)(struct fe_lanes *, const struct fe_lanes *), const struct fe_lanes *a)
{
	struct fe_lanes r;

	carry(&r, a);
	return same_wrong(&r, a) + over(&r, LANES_FE_MAX);
}

static const uint64_t sum_limbs[] = {
    0, (UINT64_C(1) << 51) - 1, UINT64_C(1) << 51, LANES_SUM_MAX - 1, LANES_SUM_MAX};

START_TEST(test_carry)
{
	struct test_stream stream;
	struct fe_lanes a;

	for (unsigned i = 0; i < 3125; i += 8) {
		combine(&a, sum_limbs, 5, i);
		ck_assert_uint_eq(carry_wrong(fe_lanes_carry, &a), 0);
	}
	test_stream_init(&stream, test_seed(), "fe carry");
	for (unsigned i = 0; i < 2000; i++) {
		random_lanes(&a, &stream, LANES_SUM_MAX);
		ck_assert_uint_eq(carry_wrong(fe_lanes_carry, &a), 0);
	}
}
END_TEST

/* A carry that comes out of limb 3 of one lane, when it is large, and gets lost. */
static void
carry_planted(struct fe_lanes *r, const struct fe_lanes *a)
{
	fe_lanes_carry(r, a);
	if (a->limb[3][6] >> 51 >= 2047)
		r->limb[4][6] -= a->limb[3][6] >> 51;
}

START_TEST(test_carry_control)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 3125; i += 8) {
		struct fe_lanes a;

		combine(&a, sum_limbs, 5, i);
		n += carry_wrong(carry_planted, &a);
	}
	ck_assert_uint_gt(n, 0);
}
END_TEST

/* The smallest that a biased product can be, less the largest product. */
START_TEST(test_subtract_bounds)
{
	struct fe_lanes zero = {0}, a, b, r;

	for (unsigned i = 0; i < 32; i++) {
		static const uint64_t limbs[] = {0, LANES_PRODUCT_MAX};
		struct fe_lanes minus;

		fe_lanes_multiply(&a, &zero, &zero, true);
		combine(&b, limbs, 2, i);
		fe_lanes_subtract(&r, &a, &b);
		ck_assert_uint_eq(over(&r, UINT64_C(1) << 60), 0);
		/* r + b = 0 (mod p) */
		for (unsigned k = 0; k < 5; k++)
			for (unsigned lane = 0; lane < 8; lane++)
				minus.limb[k][lane] = r.limb[k][lane] + b.limb[k][lane];
		ck_assert_uint_eq(same_wrong(&minus, &zero), 0);
	}
}
END_TEST

/* Values around multiples of p, and those whose limbs are all at the bound. */
static const struct {
	uint64_t limb0, others, limb4;
	bool is_zero;
} edges[] = {
#define ONES ((UINT64_C(1) << 51) - 1)
    {0, 0, 0, true},
    {1, 0, 0, false},
    {18, 0, 0, false},
    {19, 0, 0, false},
    {ONES - 19, ONES, ONES, false}, /* p - 1 */
    {ONES - 18, ONES, ONES, true},  /* p */
    {ONES - 17, ONES, ONES, false}, /* p + 1 */
    {ONES, ONES, ONES, false},      /* 2^255 - 1 */
    {ONES + 1, ONES, ONES, false},  /* carries through all limbs: 19 more than p */
    {LANES_FE_MAX, ONES, ONES, false},
    {0, ONES, LANES_FE_MAX, false},
    {LANES_FE_MAX, LANES_FE_MAX, LANES_FE_MAX, false},
};

/* Canonical bytes of each edge in each lane. Returns how many were wrong. */
static unsigned
store_wrong(void)
{
	const unsigned n_edges = sizeof edges / sizeof edges[0];
	BIGNUM *value = BN_new();
	unsigned n = 0;

	for (unsigned first = 0; first < n_edges; first++) {
		uint8_t bytes[8][32], expected[32], *out[8];
		unsigned zeros, lane;
		struct fe_lanes a;

		for (lane = 0; lane < 8; lane++) {
			unsigned e = (first + lane) % n_edges;

			a.limb[0][lane] = edges[e].limb0;
			for (unsigned i = 1; i < 4; i++)
				a.limb[i][lane] = edges[e].others;
			a.limb[4][lane] = edges[e].limb4;
			out[lane] = bytes[lane];
		}
		zeros = fe_lanes_store(out, &a);
		for (lane = 0; lane < 8; lane++) {
			lane_value(value, &a, lane);
			BN_mod(value, value, p, ctx);
			BN_bn2lebinpad(value, expected, 32);
			n += memcmp(expected, bytes[lane], 32) != 0;
			n += (zeros >> lane & 1) !=
			     edges[(first + lane) % n_edges].is_zero;
		}
	}
	BN_free(value);
	return n;
}

START_TEST(test_store)
{
	ck_assert_uint_eq(store_wrong(), 0);
}
END_TEST

START_TEST(test_store_control)
{
	if (!test_has_hooks())
		return;
	ck_assert_int_eq(setenv("MLKEMD_FAULT", "x25519-lanes-freeze", 1), 0);
	ck_assert_uint_gt(store_wrong(), 0);
	unsetenv("MLKEMD_FAULT");
}
END_TEST

/* Bit 255 is ignored and nothing else is lost. */
START_TEST(test_load)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "fe load");
	for (unsigned i = 0; i < 500; i++) {
		BIGNUM *value = BN_new(), *expected = BN_new();
		const uint8_t *in[8];
		uint8_t bytes[8][33];
		struct fe_lanes a;

		test_stream_fill(&stream, bytes, sizeof bytes);
		if (i == 0)
			memset(bytes, 0xff, sizeof bytes);
		for (unsigned lane = 0; lane < 8; lane++)
			in[lane] = bytes[lane];
		fe_lanes_load(&a, in);
		ck_assert_uint_eq(over(&a, ONES), 0);
		for (unsigned lane = 0; lane < 8; lane++) {
			lane_value(value, &a, lane);
			bytes[lane][31] &= 0x7f;
			BN_lebin2bn(bytes[lane], 32, expected);
			ck_assert_int_eq(BN_cmp(value, expected), 0);
		}
		BN_free(value);
		BN_free(expected);
	}
}
END_TEST

START_TEST(test_invert)
{
	struct test_stream stream;
	struct fe_lanes one = {0};

	for (unsigned lane = 0; lane < 8; lane++)
		one.limb[0][lane] = 1;
	test_stream_init(&stream, test_seed(), "fe invert");
	for (unsigned i = 0; i < 200; i++) {
		struct fe_lanes a, r, product;

		random_lanes(&a, &stream, LANES_FE_MAX);
		for (unsigned k = 0; k < 5; k++) {
			/* a zero, a one, p, and the largest, among the others */
			a.limb[k][i % 8] = 0;
			a.limb[k][(i + 1) % 8] = k == 0;
			a.limb[k][(i + 2) % 8] = ONES - (k == 0 ? 18 : 0);
			a.limb[k][(i + 3) % 8] = LANES_FE_MAX;
			one.limb[k][i % 8] = 0;
			one.limb[k][(i + 2) % 8] = 0;
		}
		fe_lanes_invert(&r, &a);
		ck_assert_uint_eq(over(&r, LANES_FE_MAX), 0);
		fe_lanes_multiply(&product, &a, &r, false);
		ck_assert_uint_eq(same_wrong(&product, &one), 0);
		/* the inverse of 0 is 0, not just anything times 0 */
		one.limb[0][i % 8] = one.limb[0][(i + 2) % 8] = 1;
		fe_lanes_multiply(&product, &r, &one, false);
		for (unsigned lane = 0; lane < 8; lane++) {
			BIGNUM *value = BN_new();

			lane_value(value, &product, lane);
			BN_mod(value, value, p, ctx);
			ck_assert_int_eq(
			    BN_is_zero(value), lane == i % 8 || lane == (i + 2) % 8);
			BN_free(value);
		}
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("fe_lanes");
	TCase *tcase = tcase_create("fe_lanes");

	tcase_add_checked_fixture(tcase, field_init, field_fini);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_multiply_bounds);
	tcase_add_test(tcase, test_multiply_random);
	tcase_add_test(tcase, test_square_bounds);
	tcase_add_test(tcase, test_carry);
	tcase_add_test(tcase, test_carry_control);
	tcase_add_test(tcase, test_subtract_bounds);
	tcase_add_test(tcase, test_store);
	tcase_add_test(tcase, test_store_control);
	tcase_add_test(tcase, test_load);
	tcase_add_test(tcase, test_invert);
	suite_add_tcase(suite, tcase);
	if (!lanes_can_run()) {
		srunner_free(srunner_create(suite));
		return 77;
	}
	return test_main(argc, argv, suite);
}
