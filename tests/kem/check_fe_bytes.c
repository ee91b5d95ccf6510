/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way into and out of the field under X25519 in lanes, and its inversion: values
 * around multiples of p and limbs at their bounds, in every lane, against OpenSSL's big
 * numbers.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "fe_value.h"

#define ONES ((UINT64_C(1) << 51) - 1)

/* Values around multiples of p, and those whose limbs are all at the bound. */
static const struct {
	uint64_t limb0, others, limb4;
	bool is_zero;
} edges[] = {
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
			lane_residue(value, &a, lane);
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
		ck_assert_uint_eq(limbs_over(&a, ONES), 0);
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

		lanes_random(&a, &stream, LANES_FE_MAX);
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
		ck_assert_uint_eq(limbs_over(&r, LANES_FE_MAX), 0);
		fe_lanes_multiply(&product, &a, &r, false);
		ck_assert_uint_eq(same_wrong(&product, &one), 0);
		/* the inverse of 0 is 0, not just anything times 0 */
		one.limb[0][i % 8] = one.limb[0][(i + 2) % 8] = 1;
		fe_lanes_multiply(&product, &r, &one, false);
		for (unsigned lane = 0; lane < 8; lane++) {
			BIGNUM *value = BN_new();

			lane_residue(value, &product, lane);
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
	Suite *suite = suite_create("fe_bytes");
	TCase *tcase = tcase_create("fe_bytes");

	tcase_add_checked_fixture(tcase, field_init, field_fini);
	tcase_set_timeout(tcase, 60);
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
