/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pairs that spare lanes of X25519 make: as many as there is room for, each public
 * half what OpenSSL says of its private one, no two the same, and nothing of the items
 * changes by them.
 */
#include <check.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kem/kembatch.h"

#define N_PAIRS (KEM_SPARE_MAX + 3)
#define HYBRID  KEM_ALG_X25519MLKEM768

static struct kem_x25519 pairs[N_PAIRS];
static struct kem_spare spare;

static void
spare_ask(size_t wanted)
{
	memset(pairs, 0x5a, sizeof(pairs));
	spare = (struct kem_spare){.pairs = pairs, .wanted = wanted, .n = 99};
}

/* The other implementation: a public key by libcrypto, whatever the backend does. */
static bool
is_pair(const struct kem_x25519 *pair)
{
	EVP_PKEY *pkey =
	    EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, pair->private_key, 32);
	uint8_t public_key[32];
	size_t len = sizeof(public_key);

	ck_assert_ptr_nonnull(pkey);
	ck_assert_int_eq(EVP_PKEY_get_raw_public_key(pkey, public_key, &len), 1);
	EVP_PKEY_free(pkey);
	return memcmp(public_key, pair->public_key, 32) == 0;
}

static bool
all_differ(size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (memcmp(pairs[i].private_key, pairs[j].private_key, 32) == 0)
				return false;
	return true;
}

/* The lanes that a call of n items works, and those that its last group leaves. */
static size_t
lanes_used(size_t n)
{
	return kem_x25519_lanes(test_kem()) == 1 ? 0 : n;
}

static size_t
lanes_left(size_t n)
{
	size_t lanes = kem_x25519_lanes(test_kem());

	if (n == 0 || lanes == 1)
		return 0;
	return (lanes - n % lanes) % lanes;
}

static void
spare_check(size_t n)
{
	const size_t left = lanes_left(n);
	const size_t expected = spare.wanted < left ? spare.wanted : left;

	ck_assert_uint_eq(spare.n, expected);
	ck_assert_uint_eq(spare.used, lanes_used(n));
	ck_assert_uint_eq(spare.idle, left - expected);
	for (size_t i = 0; i < spare.n; i++)
		ck_assert(is_pair(&pairs[i]));
	ck_assert(all_differ(spare.n));
	for (size_t i = spare.n * sizeof(pairs[0]); i < sizeof(pairs); i++)
		ck_assert_uint_eq(((const uint8_t *)pairs)[i], 0x5a);
}

static const size_t counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17};
#define N_COUNTS (sizeof(counts) / sizeof(counts[0]))

static void
encaps_check(size_t n, size_t wanted)
{
	batch_prepare(HYBRID, n, "spare");
	spare_ask(wanted);
	ck_assert_int_eq(
	    kem_encaps_spare(test_kem(), HYBRID, encaps, n, &spare, test_scratch()), 0);
	spare_check(n);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(encaps[i].status, KEM_OK);
		decaps[i].ct = batch[i].ct;
	}
	spare_ask(wanted);
	ck_assert_int_eq(
	    kem_decaps_spare(test_kem(), HYBRID, decaps, n, &spare, test_scratch()), 0);
	spare_check(n);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(decaps[i].status, KEM_OK);
		ck_assert_mem_eq(&batch[i].found, &batch[i].made, 64);
		test_item_check(&batch[i]);
	}
}

START_TEST(test_all_counts)
{
	for (size_t wanted = 0; wanted <= N_PAIRS; wanted++)
		encaps_check(counts[_i], wanted);
}
END_TEST

/* An encapsulation that makes its own ephemeral draws in front of the spare ones. */
START_TEST(test_without_ephemerals)
{
	for (size_t n = 1; n <= 8; n++) {
		batch_prepare(HYBRID, n, "spare");
		for (size_t i = 0; i < n; i += 2)
			encaps[i].ephemeral = NULL;
		spare_ask(N_PAIRS);
		ck_assert_int_eq(kem_encaps_spare(test_kem(), HYBRID, encaps, n, &spare,
				     test_scratch()),
		    0);
		spare_check(n);
		for (size_t i = 0; i < n; i++) {
			const uint8_t *own = batch[i].ct + 1088;

			for (size_t j = 0; j < spare.n; j++)
				ck_assert_mem_ne(own, pairs[j].public_key, 32);
			decaps[i].ct = batch[i].ct;
		}
		ck_assert_int_eq(
		    kem_decaps(test_kem(), HYBRID, decaps, n, test_scratch()), 0);
		for (size_t i = 0; i < n; i++)
			ck_assert_mem_eq(&batch[i].found, &batch[i].made, 64);
	}
}
END_TEST

/* Given m: what lies beside in the lanes has no say in an item's result. */
START_TEST(test_items_are_the_same)
{
	batch_prepare(HYBRID, 3, "same");
	for (size_t i = 0; i < 3; i++)
		decaps[i].ct = single[i].ct;
	spare_ask(KEM_SPARE_MAX);
	ck_assert_int_eq(
	    kem_decaps_spare(test_kem(), HYBRID, decaps, 3, &spare, test_scratch()), 0);
	spare_check(3);
	for (size_t i = 0; i < 3; i++)
		assert_decaps_equal(i);
}
END_TEST

/* A bad item spoils no pair: a zero share, a wrong length, a share out of range. */
START_TEST(test_bad_items)
{
	batch_prepare(HYBRID, 4, "bad");
	memset(single[1].share + 1184, 0, 32);
	encaps[2].share_len--;
	memset(single[3].share, 0xff, 3);
	spare_ask(KEM_SPARE_MAX);
	ck_assert_int_eq(
	    kem_encaps_spare(test_kem(), HYBRID, encaps, 4, &spare, test_scratch()), 0);
	ck_assert_int_eq(encaps[0].status, KEM_OK);
	assert_encaps_failed(1, KEM_E_ZERO);
	assert_encaps_failed(2, KEM_E_LENGTH);
	assert_encaps_failed(3, KEM_E_SHARE);
	spare_check(3); /* one never came so far */
}
END_TEST

/* Nothing to work, nothing made; nor where there is no X25519. */
START_TEST(test_none)
{
	batch_prepare(KEM_ALG_MLKEM768, 2, "none");
	spare_ask(KEM_SPARE_MAX);
	ck_assert_int_eq(kem_encaps_spare(test_kem(), KEM_ALG_MLKEM768, encaps, 2,
			     &spare, test_scratch()),
	    0);
	ck_assert_uint_eq(spare.n, 0);
	ck_assert_uint_eq(spare.idle, 0);
	spare_ask(KEM_SPARE_MAX);
	ck_assert_int_eq(kem_decaps_spare(test_kem(), KEM_ALG_MLKEM768, decaps, 2,
			     &spare, test_scratch()),
	    0);
	ck_assert_uint_eq(spare.n, 0);
	ck_assert_uint_eq(pairs[0].private_key[0], 0x5a);

	batch_prepare(HYBRID, 1, "none");
	encaps[0].share_len = 0;
	spare_ask(KEM_SPARE_MAX);
	ck_assert_int_eq(
	    kem_encaps_spare(test_kem(), HYBRID, encaps, 1, &spare, test_scratch()), 0);
	ck_assert_uint_eq(spare.n, 0);
	ck_assert_int_eq(
	    kem_encaps_spare(test_kem(), HYBRID, encaps, 1, NULL, test_scratch()), 0);
}
END_TEST

/* The checks above can fail: one wrong bit of a public key, one pair twice. */
START_TEST(test_control)
{
	ck_assert_int_eq(kem_x25519_keygen(test_kem(), pairs, 3, test_scratch()), 0);
	ck_assert(is_pair(&pairs[1]) && all_differ(3));
	pairs[1].public_key[17] ^= 4;
	ck_assert(!is_pair(&pairs[1]));
	pairs[2] = pairs[0];
	ck_assert(!all_differ(3));
}
END_TEST

START_TEST(test_faults)
{
	if (!test_has_hooks() || kem_x25519_lanes(test_kem()) == 1)
		return;
	batch_prepare(HYBRID, 1, "faults");
	setenv("MLKEMD_FAULT", "kem-spare-wrong-point", 1);
	spare_ask(KEM_SPARE_MAX);
	ck_assert_int_eq(
	    kem_encaps_spare(test_kem(), HYBRID, encaps, 1, &spare, test_scratch()), 0);
	ck_assert_uint_eq(spare.n, KEM_SPARE_MAX);
	ck_assert(!is_pair(&pairs[0]));
	setenv("MLKEMD_FAULT", "kem-spare-repeats", 1);
	spare_ask(KEM_SPARE_MAX);
	ck_assert_int_eq(
	    kem_encaps_spare(test_kem(), HYBRID, encaps, 1, &spare, test_scratch()), 0);
	ck_assert(is_pair(&pairs[0]));
	ck_assert(!all_differ(spare.n));
	unsetenv("MLKEMD_FAULT");
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("spare");
	TCase *tc = tcase_create("spare");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_all_counts, 0, N_COUNTS);
	tcase_add_test(tc, test_without_ephemerals);
	tcase_add_test(tc, test_items_are_the_same);
	tcase_add_test(tc, test_bad_items);
	tcase_add_test(tc, test_none);
	tcase_add_test(tc, test_control);
	tcase_add_test(tc, test_faults);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
