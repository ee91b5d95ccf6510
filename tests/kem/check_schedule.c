/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many eight-lane permutations the operations take, counted by generic8 whatever the
 * backend: this is where batching pays, and where it is lost without a wrong result.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kem/generic8.h"
#include "tests/kem/grouptest.h"
#include "tests/kem/kemtest.h"

/* Key generations, of which no stream needs a fourth block. */
static void
group_without_fourth(struct group_of *g, enum kem_alg set, size_t n)
{
	unsigned k = (unsigned)set + 2;
	char label[32];

	for (unsigned tries = 0; tries < 10000; tries++) {
		snprintf(label, sizeof label, "three blocks %u", tries);
		group_reset(g, set, n, label);
		for (size_t i = 0; i < n; i++)
			g->decaps[i].trusted = false;
		generic8_reset();
		mlkem_keygen(&backend_generic8, set, g->keygen, n, group_work);
		if (generic8_counts().matrix_blocks == 3ul * k * k * n)
			return;
	}
	ck_abort_msg("no such seeds");
}

struct cost {
	unsigned long keygen, matrix, encaps, decaps, trusted;
};

/* Eight-lane permutations of a group, or of a loop over single operations. */
static struct cost
cost_of(enum kem_alg set, size_t n, size_t step)
{
	static struct group_of g;
	struct cost cost = {0};

	group_without_fourth(&g, set, n);
	generic8_reset();
	for (size_t i = 0; i < n; i += step)
		mlkem_keygen(&backend_generic8, set, g.keygen + i, step, group_work);
	cost.keygen = generic8_counts().permutations;
	cost.matrix = generic8_counts().matrix_permutations;
	generic8_reset();
	for (size_t i = 0; i < n; i += step)
		mlkem_encaps(&backend_generic8, set, g.encaps + i, step, group_work);
	cost.encaps = generic8_counts().permutations;
	generic8_reset();
	for (size_t i = 0; i < n; i += step)
		mlkem_decaps(&backend_generic8, set, g.decaps + i, step, group_work);
	cost.decaps = generic8_counts().permutations;
	for (size_t i = 0; i < n; i++)
		g.decaps[i].trusted = true;
	generic8_reset();
	for (size_t i = 0; i < n; i += step)
		mlkem_decaps(&backend_generic8, set, g.decaps + i, step, group_work);
	cost.trusted = generic8_counts().permutations;
	return cost;
}

START_TEST(test_permutations)
{
	struct cost cost = cost_of(KEM_ALG_MLKEM768, 8, 8);

	ck_assert_uint_eq(cost.matrix, 27);
	ck_assert_uint_eq(cost.keygen, 43);
	ck_assert_uint_eq(cost.encaps, 44);
	ck_assert_uint_eq(cost.decaps, 53);
	ck_assert_uint_eq(cost.trusted, 44);
	cost = cost_of(KEM_ALG_MLKEM512, 8, 8);
	ck_assert_uint_eq(cost.keygen, 27);
	ck_assert_uint_eq(cost.encaps, 26);
	ck_assert_uint_eq(cost.decaps, 32);
	cost = cost_of(KEM_ALG_MLKEM1024, 8, 8);
	ck_assert_uint_eq(cost.keygen, 69);
	ck_assert_uint_eq(cost.encaps, 70);
	ck_assert_uint_eq(cost.decaps, 82);
}
END_TEST

/* A loop over single operations is not a batch, and is seen not to be one. */
START_TEST(test_permutations_control)
{
	struct cost cost = cost_of(KEM_ALG_MLKEM768, 8, 1);

	ck_assert_uint_gt(cost.matrix, 27);
	ck_assert_uint_gt(cost.keygen, 43);
	ck_assert_uint_gt(cost.encaps, 44);
	ck_assert_uint_gt(cost.decaps, 53);
}
END_TEST

/*
 * One item alone: the nine blocks of H(ek) or J(z || ct) are the longest chain, and all
 * else fits beside it (in key generation H begins when row 0 is there, and makes no
 * more haste where all of the matrix fits into the lanes at once, for k = 2).
 */
START_TEST(test_permutations_alone)
{
	struct cost cost = cost_of(KEM_ALG_MLKEM768, 1, 1);

	ck_assert_uint_eq(cost.keygen, 1 + 4 + 9);
	ck_assert_uint_eq(cost.encaps, 9 + 1 + 1);
	ck_assert_uint_eq(cost.decaps, 9);
	ck_assert_uint_eq(cost.trusted, 9);
	cost = cost_of(KEM_ALG_MLKEM1024, 1, 1);
	ck_assert_uint_le(cost.keygen, 1 + 7 + 12);
	cost = cost_of(KEM_ALG_MLKEM512, 1, 1);
	ck_assert_uint_le(cost.keygen, 1 + 4 + 6);
}
END_TEST

/*
 * In between no more than one permutation in eight may be lost against perfect packing,
 * nor more than the chain of one item alone.
 */
START_TEST(test_permutations_between)
{
	for (size_t n = 2; n < 8; n++) {
		struct cost full = cost_of(KEM_ALG_MLKEM768, 8, 8);
		struct cost cost = cost_of(KEM_ALG_MLKEM768, n, n);

		ck_assert_uint_le(cost.encaps, (full.encaps * n + 7) / 8 + 2);
		ck_assert_uint_le(cost.decaps, (full.decaps * n + 7) / 8 + 1);
		ck_assert_uint_le(cost.trusted, (full.trusted * n + 7) / 8 + 2);
		ck_assert_uint_le(cost.keygen, (34 * n + 7) / 8 + 9 + 3);
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("schedule");
	TCase *tcase = tcase_create("schedule");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_permutations);
	tcase_add_test(tcase, test_permutations_control);
	tcase_add_test(tcase, test_permutations_alone);
	tcase_add_test(tcase, test_permutations_between);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
