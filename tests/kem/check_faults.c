/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planted faults of kem/ (kem/fault.h), each of which has to be seen; built with test
 * hooks alone. And the stream that replaces randomness there, since others search
 * memory for what it yields.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kem/fault.h"
#include "tests/kem/kemtest.h"

#define N 17

static struct test_item items[N];
static struct kem_keygen_item keygen[N];
static struct kem_encaps_item encaps[N];
static struct kem_decaps_item decaps[N];

static void
prepare(enum kem_alg alg)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "faults");
	for (size_t i = 0; i < N; i++) {
		test_item_make(&items[i], alg, &stream);
		keygen[i] = test_keygen_item(&items[i], &items[i]);
		keygen[i].seed = NULL;
		encaps[i] = test_encaps_item(&items[i], &items[i]);
		decaps[i] = test_decaps_item(&items[i], &items[i]);
	}
}

static void
plant(const char *names)
{
	ck_assert_int_eq(setenv("MLKEMD_FAULT", names, 1), 0);
}

START_TEST(test_names)
{
	plant("one,rng-fail,three");
	ck_assert(fault("one"));
	ck_assert(fault("rng-fail"));
	ck_assert(fault("three"));
	ck_assert(!fault("rng"));
	ck_assert(!fault("rng-fail,three"));
	ck_assert(!fault(""));
	plant("");
	ck_assert(!fault("one"));
	unsetenv("MLKEMD_FAULT");
	ck_assert(!fault("one"));
}
END_TEST

/* No randomness: an error, every status says so, every output is zero. */
START_TEST(test_rng_fail)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const struct kem_alg_info *info = kem_alg_info(alg);
	struct kem_x25519 pairs[N];
	uint8_t out[100];

	prepare(alg);
	encaps[3].share_len--;
	plant("rng-fail");
	memset(out, 0x66, sizeof(out));
	memset(pairs, 0x66, sizeof(pairs));
	ck_assert_int_eq(kem_random(test_kem(), out, sizeof(out)), KEM_FAIL_RNG);
	ck_assert(test_is_zero(out, sizeof(out)));
	ck_assert_int_eq(
	    kem_x25519_keygen(test_kem(), pairs, N, test_scratch()), KEM_FAIL_RNG);
	ck_assert(test_is_zero(pairs, sizeof(pairs)));
	ck_assert_int_eq(
	    kem_encaps(test_kem(), alg, encaps, N, test_scratch()), KEM_FAIL_RNG);
	ck_assert_int_eq(kem_decaps(test_kem(), alg, decaps, N, test_scratch()), 0);
	ck_assert_int_eq(
	    kem_keygen(test_kem(), alg, keygen, N, test_scratch()), KEM_FAIL_RNG);
	for (size_t i = 0; i < N; i++) {
		ck_assert_int_eq(keygen[i].status, KEM_E_INTERNAL);
		ck_assert_int_eq(encaps[i].status, KEM_E_INTERNAL);
		ck_assert(test_is_zero(items[i].share, info->share_bytes));
		ck_assert(test_is_zero(items[i].secret, info->secret_bytes));
		ck_assert(test_is_zero(items[i].ct, info->ct_bytes));
		ck_assert(test_is_zero(&items[i].made, 64));
		test_item_check(&items[i]);
	}
	ck_assert_int_eq(kem_pairwise_check(test_kem(), alg, items[0].secret,
			     items[0].share, test_scratch()),
	    KEM_FAIL_RNG);
}
END_TEST

/* Nor is a pair left that spare lanes began; what draws for them alone fails too. */
START_TEST(test_rng_fail_spare)
{
	struct kem_x25519 pairs[KEM_SPARE_MAX];
	struct kem_spare spare = {.pairs = pairs, .wanted = KEM_SPARE_MAX};
	const enum kem_alg alg = KEM_ALG_X25519MLKEM768;
	bool lanes = kem_x25519_lanes(test_kem()) > 1;

	prepare(alg);
	ck_assert_int_eq(kem_encaps(test_kem(), alg, encaps, 1, test_scratch()), 0);
	plant("rng-fail");
	memset(pairs, 0x66, sizeof(pairs));
	ck_assert_int_eq(
	    kem_decaps_spare(test_kem(), alg, decaps, 1, &spare, test_scratch()),
	    lanes ? KEM_FAIL_RNG : 0);
	ck_assert_uint_eq(spare.n, 0);
	ck_assert_int_eq(test_is_zero(pairs, sizeof(pairs)), lanes);
	ck_assert_int_eq(test_is_zero(&items[0].found, 64), lanes);
	ck_assert_int_eq(decaps[0].status, lanes ? KEM_E_INTERNAL : KEM_OK);
	memset(pairs, 0x66, sizeof(pairs));
	ck_assert_int_eq(
	    kem_encaps_spare(test_kem(), alg, encaps, 1, &spare, test_scratch()),
	    KEM_FAIL_RNG);
	ck_assert_uint_eq(spare.n, 0);
	ck_assert_int_eq(test_is_zero(pairs, sizeof(pairs)), lanes);
}
END_TEST

/* Where nothing is drawn, a broken generator does not matter. */
START_TEST(test_rng_fail_is_not_asked)
{
	prepare(KEM_ALG_X25519MLKEM768);
	plant("rng-fail");
	keygen[0].seed = items[0].seed;
	ck_assert_int_eq(
	    kem_keygen(test_kem(), KEM_ALG_X25519MLKEM768, keygen, 1, test_scratch()),
	    0);
	ck_assert_int_eq(keygen[0].status, KEM_OK);
	ck_assert_int_eq(kem_encaps_derand(test_kem(), KEM_ALG_X25519MLKEM768, encaps,
			     1, (const uint8_t(*)[32]) & items[0].m, test_scratch()),
	    0);
	ck_assert_int_eq(encaps[0].status, KEM_OK);
}
END_TEST

static const char *const steps[] = {
    "keygen", "encaps", "decaps", "reject", "x25519", "hybrid"};

START_TEST(test_selftest_names_the_step)
{
	const char *step = NULL;
	char name[32] = "selftest-";

	plant(strcat(name, steps[_i]));
	ck_assert_int_eq(
	    kem_selftest(test_kem(), test_scratch(), &step), KEM_FAIL_SELFTEST);
	ck_assert_str_eq(step, steps[_i]);
	unsetenv("MLKEMD_FAULT");
	ck_assert_int_eq(kem_selftest(test_kem(), test_scratch(), &step), 0);
	ck_assert_ptr_null(step);
}
END_TEST

START_TEST(test_pairwise_corrupt)
{
	const enum kem_alg alg = (enum kem_alg)_i;

	prepare(alg);
	plant("kem-pairwise-corrupt");
	ck_assert_int_eq(kem_pairwise_check(test_kem(), alg, items[0].secret,
			     items[0].share, test_scratch()),
	    KEM_E_KEY);
}
END_TEST

/* Block n of the test stream, computed as kem/fault.h tells it. */
static void
stream_block(uint8_t out[32], const char *text, uint64_t n)
{
	uint8_t in[64];
	size_t len = strlen(text);

	memcpy(in, text, len);
	for (size_t i = 0; i < 8; i++)
		in[len + i] = (uint8_t)(n >> (56 - 8 * i));
	test_sha256(out, in, len + 8);
}

static void
stream_bytes(uint8_t *out, size_t len, const char *text, uint64_t n)
{
	uint8_t block[32];

	for (; len > 0; n++) {
		size_t take = len < 32 ? len : 32;

		stream_block(block, text, n);
		memcpy(out, block, take);
		out += take;
		len -= take;
	}
}

START_TEST(test_stream)
{
	struct kem *kem = NULL;
	uint8_t out[70], expected[70];

	setenv("MLKEMD_TEST_RANDOM", "known", 1);
	for (int round = 0; round < 2; round++) {
		ck_assert_int_eq(kem_open_with(&kem, test_backend()), 0);
		ck_assert_int_eq(kem_random(kem, out, 70), 0);
		stream_bytes(expected, 70, "known", 0);
		ck_assert_mem_eq(out, expected, 70);
		/* the third block was used in part, the next draw begins with the fourth */
		ck_assert_int_eq(kem_random(kem, out, 1), 0);
		ck_assert_int_eq(kem_random(kem, out, 32), 0);
		stream_bytes(expected, 32, "known", 4);
		ck_assert_mem_eq(out, expected, 32);
		kem_free(kem);
	}
}
END_TEST

/*
 * The layout that fault.h promises: 17 keys are draws of 8, 8 and 1; m and ephemerals
 * of a group are one draw. And with it the scratch can be searched.
 */
START_TEST(test_stream_layout)
{
	static uint8_t draw[8 * 96];
	const enum kem_alg alg = KEM_ALG_X25519MLKEM768;
	struct test_item again;
	struct kem_keygen_item k;
	struct kem_encaps_item e;
	struct kem *kem = NULL;

	prepare(alg);
	setenv("MLKEMD_TEST_RANDOM", "layout", 1);
	ck_assert_int_eq(kem_open_with(&kem, test_backend()), 0);
	ck_assert_int_eq(kem_keygen(kem, alg, keygen, N, test_scratch()), 0);
	stream_bytes(draw, 8 * 96, "layout", 24);
	memcpy(again.seed, draw + 3 * 96, 96); /* item 11 */
	k = test_keygen_item(&again, &again);
	ck_assert_int_eq(kem_keygen(kem, alg, &k, 1, test_scratch()), 0);
	ck_assert_mem_eq(again.secret, items[11].secret, 1248);

	for (size_t i = 0; i < N; i += 2)
		encaps[i].ephemeral = NULL;
	ck_assert_int_eq(kem_encaps(kem, alg, encaps, 8, test_scratch()), 0);
	stream_bytes(draw, 8 * 32 + 4 * 32, "layout", 24 + 24 + 3);
	e = encaps[6];
	e.ct = again.ct;
	e.shared = &again.made;
	ck_assert_int_eq(
	    kem_encaps_derand(kem, alg, &e, 1,
		(const uint8_t(*)[32])(void *)(draw + 6 * 32), test_scratch()),
	    0);
	ck_assert_mem_eq(again.made.bytes, items[6].made.bytes, 32);
	ck_assert_mem_eq(again.ct, items[6].ct, 1088);
	kem_free(kem);
}
END_TEST

/* Is any block that the first n_blocks draws yielded left in the scratch? */
static bool
scratch_has_stream(const char *text, uint64_t n_blocks)
{
	uint8_t block[32];

	for (uint64_t n = 0; n < n_blocks; n++) {
		stream_block(block, text, n);
		if (test_is_within(
			test_scratch(), sizeof(struct kem_scratch), block, 32))
			return true;
	}
	return false;
}

START_TEST(test_no_wipe_front)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	struct kem *kem = NULL;

	prepare(alg);
	setenv("MLKEMD_TEST_RANDOM", "wipe", 1);
	ck_assert_int_eq(kem_open_with(&kem, test_backend()), 0);
	ck_assert_int_eq(kem_keygen(kem, alg, keygen, N, test_scratch()), 0);
	ck_assert_int_eq(kem_encaps(kem, alg, encaps, N, test_scratch()), 0);
	ck_assert(!scratch_has_stream("wipe", 150));
	plant("kem-no-wipe-front");
	ck_assert_int_eq(kem_encaps(kem, alg, encaps, 3, test_scratch()), 0);
	ck_assert(scratch_has_stream("wipe", 150));
	unsetenv("MLKEMD_FAULT");
	ck_assert_int_eq(kem_encaps(kem, alg, encaps, N, test_scratch()), 0);
	ck_assert(!scratch_has_stream("wipe", 200));
	kem_free(kem);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("faults");
	TCase *tc = tcase_create("faults");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_names);
	tcase_add_loop_test(tc, test_rng_fail, 0, KEM_N_ALGS);
	tcase_add_test(tc, test_rng_fail_spare);
	tcase_add_test(tc, test_rng_fail_is_not_asked);
	tcase_add_loop_test(tc, test_selftest_names_the_step, 0, 6);
	tcase_add_loop_test(tc, test_pairwise_corrupt, 0, KEM_N_ALGS);
	tcase_add_test(tc, test_stream);
	tcase_add_test(tc, test_stream_layout);
	tcase_add_loop_test(tc, test_no_wipe_front, 0, KEM_N_ALGS);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
