/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The field arithmetic under X25519 in lanes against OpenSSL's big numbers, with limbs at
 * the bounds that fe.h states, alone and in every combination, and at random.
 */
#include <check.h>
#include <stdlib.h>

#include "fe_value.h"

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
multiply_check(const struct fe_lanes *a, const struct fe_lanes *b)
{
	struct fe_lanes r;

	fe_lanes_multiply(&r, a, b, false);
	ck_assert_uint_eq(product_wrong(&r, a, b), 0);
	ck_assert_uint_eq(limbs_over(&r, LANES_PRODUCT_MAX), 0);
	fe_lanes_multiply(&r, a, b, true);
	ck_assert_uint_eq(product_wrong(&r, a, b), 0);
	ck_assert_uint_eq(limbs_over(&r, LANES_BIASED_MAX), 0);
}

static void
square_check(const struct fe_lanes *a)
{
	struct fe_lanes r;

	fe_lanes_square(&r, a, false);
	ck_assert_uint_eq(product_wrong(&r, a, a), 0);
	ck_assert_uint_eq(limbs_over(&r, LANES_PRODUCT_MAX), 0);
	fe_lanes_square(&r, a, true);
	ck_assert_uint_eq(product_wrong(&r, a, a), 0);
	ck_assert_uint_eq(limbs_over(&r, LANES_BIASED_MAX), 0);
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

		lanes_random(&a, &stream, LANES_FE_MAX);
		lanes_random(&b, &stream, LANES_LIMB_MAX);
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
	return same_wrong(&r, a) + limbs_over(&r, LANES_FE_MAX);
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
		lanes_random(&a, &stream, LANES_SUM_MAX);
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
		ck_assert_uint_eq(limbs_over(&r, UINT64_C(1) << 60), 0);
		/* r + b = 0 (mod p) */
		for (unsigned k = 0; k < 5; k++)
			for (unsigned lane = 0; lane < 8; lane++)
				minus.limb[k][lane] = r.limb[k][lane] + b.limb[k][lane];
		ck_assert_uint_eq(same_wrong(&minus, &zero), 0);
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
	suite_add_tcase(suite, tcase);
	if (!lanes_can_run()) {
		srunner_free(srunner_create(suite));
		return 77;
	}
	return test_main(argc, argv, suite);
}
