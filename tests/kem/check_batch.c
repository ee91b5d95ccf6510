/* SPDX-License-Identifier: Apache-2.0 */
/* kem.c: any number of items in a call comes out as one by one. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kem/mlkem.h"
#include "tests/kem/generic8.h"
#include "tests/kem/kembatch.h"

static const size_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 64};
#define N_COUNTS (sizeof(counts) / sizeof(counts[0]))

/* Used scratch is zero, what was not used is as it was. */
static void
scratch_fill(void)
{
	memset(test_scratch(), 0x5a, sizeof(struct kem_scratch));
}

static void
assert_scratch_wiped(void)
{
	const uint8_t *bytes = test_scratch()->bytes;

	for (size_t i = 0; i < KEM_SCRATCH_BYTES; i++) {
		if (bytes[i] != 0 && bytes[i] != 0x5a)
			ck_abort_msg(
			    "byte %zu of the scratch holds 0x%02x", i, bytes[i]);
	}
}

START_TEST(test_batch_equals_single)
{
	const enum kem_alg alg = (enum kem_alg)(_i / (int)N_COUNTS);
	const size_t n = counts[_i % (int)N_COUNTS];

	batch_prepare(alg, n, "batch");
	scratch_fill();
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, n, test_scratch()), 0);
	assert_scratch_wiped();
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, n, m, test_scratch()), 0);
	assert_scratch_wiped();
	ck_assert_int_eq(kem_decaps(test_kem(), alg, decaps, n, test_scratch()), 0);
	assert_scratch_wiped();
	for (size_t i = 0; i < n; i++) {
		assert_keygen_equal(i);
		assert_encaps_equal(i);
		assert_decaps_equal(i);
	}
}
END_TEST

/*
 * Groups are full: 16 items take twice the permutations of 8, which are those of one call
 * of mlkem_encaps(), and bad items among them take none.
 */
START_TEST(test_groups_are_full)
{
	static _Alignas(64) uint8_t work[MLKEM_WORK_BYTES];
	const enum kem_alg alg = KEM_ALG_MLKEM768;
	struct mlkem_encaps_item direct[8];
	unsigned long n_one, n_two;

	if (test_backend() != &backend_generic8)
		return;
	batch_prepare(alg, 20, "full");
	/* one key for all, so that rejected samples don't make a difference */
	for (size_t i = 0; i < 20; i++)
		encaps[i].share = single[0].share;
	for (size_t i = 0; i < 8; i++)
		direct[i] = (struct mlkem_encaps_item){.ek = single[0].share,
		    .m = m[i],
		    .ct = batch[i].ct,
		    .shared = batch[i].made.bytes};
	generic8_reset();
	mlkem_encaps(test_backend(), alg, direct, 8, work);
	n_one = generic8_counts().permutations;
	ck_assert_uint_gt(n_one, 27);
	generic8_reset();
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, 8, m, test_scratch()), 0);
	ck_assert_uint_eq(generic8_counts().permutations, n_one);
	for (size_t i = 1; i < 20; i += 5)
		encaps[i].share_len--;
	generic8_reset();
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, 20, m, test_scratch()), 0);
	n_two = generic8_counts().permutations;
	ck_assert_uint_eq(n_two, 2 * n_one);
}
END_TEST

/* The slots behind the last item are not touched. */
START_TEST(test_slots_past_the_end)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	struct test_item before;

	batch_prepare(alg, 4, "past");
	before = batch[3];
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, 3, test_scratch()), 0);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, 3, m, test_scratch()), 0);
	ck_assert_int_eq(kem_decaps(test_kem(), alg, decaps, 3, test_scratch()), 0);
	ck_assert_mem_eq(&before, &batch[3], sizeof(before));
}
END_TEST

START_TEST(test_same_item_in_all_lanes)
{
	const enum kem_alg alg = (enum kem_alg)_i;

	batch_prepare(alg, 8, "same");
	for (size_t i = 1; i < 8; i++) {
		single[i] = single[0];
		kem_private_from_parts(
		    &single[i].key, alg, single[i].secret, single[i].share);
		memcpy(m[i], m[0], 32);
	}
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, 8, test_scratch()), 0);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, 8, m, test_scratch()), 0);
	ck_assert_int_eq(kem_decaps(test_kem(), alg, decaps, 8, test_scratch()), 0);
	for (size_t i = 0; i < 8; i++) {
		assert_keygen_equal(i);
		assert_encaps_equal(i);
		assert_decaps_equal(i);
	}
}
END_TEST

/* Inputs and outputs at every offset from a cache line. */
START_TEST(test_any_alignment)
{
	static uint8_t share[KEM_SHARE_MAX + 64], secret[KEM_SECRET_MAX + 64];
	static uint8_t ct[KEM_CT_MAX + 64], seed[KEM_SEED_MAX + 64];
	static uint8_t shared[sizeof(struct kem_shared) + 64];
	const enum kem_alg alg = (enum kem_alg)_i;
	const struct kem_alg_info *info = kem_alg_info(alg);

	batch_prepare(alg, 1, "alignment");
	for (size_t offset = 0; offset < 64; offset++) {
		struct kem_private key;
		struct kem_keygen_item k = {.seed = seed + offset,
		    .share = share + offset,
		    .secret = secret + offset};
		struct kem_encaps_item e = {.share = share + offset,
		    .share_len = info->share_bytes,
		    .ephemeral = &single[0].ephemeral,
		    .ct = ct + offset,
		    .shared = (struct kem_shared *)(shared + offset)};
		struct kem_decaps_item d = {.key = &key,
		    .ct = ct + offset,
		    .ct_len = info->ct_bytes,
		    .shared = (struct kem_shared *)(shared + offset)};

		memcpy(seed + offset, single[0].seed, info->seed_bytes);
		ck_assert_int_eq(kem_keygen(test_kem(), alg, &k, 1, test_scratch()), 0);
		ck_assert_mem_eq(share + offset, single[0].share, info->share_bytes);
		ck_assert_int_eq(
		    kem_encaps_derand(test_kem(), alg, &e, 1, m, test_scratch()), 0);
		ck_assert_mem_eq(shared + offset, &single[0].made, 64);
		kem_private_from_parts(&key, alg, secret + offset, share + offset);
		ck_assert_int_eq(kem_decaps(test_kem(), alg, &d, 1, test_scratch()), 0);
		ck_assert_mem_eq(shared + offset, &single[0].made, 64);
	}
}
END_TEST

START_TEST(test_random_rounds)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), kem_alg_info(alg)->name);
	for (size_t done = 0; done < 1000; done += N_MAX) {
		for (size_t i = 0; i < N_MAX; i++) {
			/* the direct path compares both sides itself */
			test_item_make(&single[i], alg, &stream);
			test_item_blank(&batch[i], alg);
			keygen[i] = test_keygen_item(&single[i], &batch[i]);
			encaps[i] = test_encaps_item(&single[i], &batch[i]);
			decaps[i] = test_decaps_item(&single[i], &batch[i]);
			memcpy(m[i], single[i].m, 32);
		}
		ck_assert_int_eq(
		    kem_keygen(test_kem(), alg, keygen, N_MAX, test_scratch()), 0);
		ck_assert_int_eq(kem_encaps_derand(
				     test_kem(), alg, encaps, N_MAX, m, test_scratch()),
		    0);
		ck_assert_int_eq(
		    kem_decaps(test_kem(), alg, decaps, N_MAX, test_scratch()), 0);
		for (size_t i = 0; i < N_MAX; i++) {
			assert_keygen_equal(i);
			assert_encaps_equal(i);
			assert_decaps_equal(i);
		}
	}
}
END_TEST

/* Groups of random keys, both ways; returns how many secrets differ. */
static size_t
random_group(enum kem_alg alg, bool planted)
{
	const struct kem_alg_info *info = kem_alg_info(alg);
	size_t n_differ = 0;

	for (size_t i = 0; i < KEM_GROUP_MAX; i++) {
		keygen[i] = (struct kem_keygen_item){
		    .share = batch[i].share, .secret = batch[i].secret};
		encaps[i] = (struct kem_encaps_item){.share = batch[i].share,
		    .share_len = info->share_bytes,
		    .ct = batch[i].ct,
		    .shared = &batch[i].made};
		decaps[i] = (struct kem_decaps_item){.key = &batch[i].key,
		    .ct = batch[i].ct,
		    .ct_len = info->ct_bytes,
		    .shared = &batch[i].found};
	}
	ck_assert_int_eq(
	    kem_keygen(test_kem(), alg, keygen, KEM_GROUP_MAX, test_scratch()), 0);
	ck_assert_int_eq(
	    kem_encaps(test_kem(), alg, encaps, KEM_GROUP_MAX, test_scratch()), 0);
	for (size_t i = 0; i < KEM_GROUP_MAX; i++)
		kem_private_from_parts(
		    &batch[i].key, alg, batch[i].secret, batch[i].share);
	if (planted)
		batch[3].ct[9] ^= 2;
	ck_assert_int_eq(
	    kem_decaps(test_kem(), alg, decaps, KEM_GROUP_MAX, test_scratch()), 0);
	for (size_t i = 0; i < KEM_GROUP_MAX; i++)
		n_differ +=
		    memcmp(&batch[i].made, &batch[i].found, info->shared_bytes) != 0;
	return n_differ;
}

/*
 * What goes wrong once in many runs: a thousand, or with MLKEMD_LONG=1 a million or as
 * many as fit into half a minute.
 */
START_TEST(test_many_rounds)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const bool is_long = getenv("MLKEMD_LONG") != NULL;
	const time_t end = time(NULL) + 30;
	size_t done = 0;

	for (; done < 1000 || (is_long && done < 1000000 && time(NULL) < end);
	     done += KEM_GROUP_MAX)
		ck_assert_uint_eq(random_group(alg, false), 0);
	ck_assert_uint_eq(random_group(alg, true), 1);
	if (is_long)
		printf("%s: %zu rounds\n", kem_alg_info(alg)->name, done);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("batch");
	TCase *tc = tcase_create("batch");

	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(
	    tc, test_batch_equals_single, 0, KEM_N_ALGS * (int)N_COUNTS);
	tcase_add_test(tc, test_groups_are_full);
	tcase_add_loop_test(tc, test_slots_past_the_end, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_same_item_in_all_lanes, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_any_alignment, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_random_rounds, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_many_rounds, 0, KEM_N_ALGS);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
