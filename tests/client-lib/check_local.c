/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The local route: the same face, worked in this process. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

#define N_MAX 64

static const enum mlkemclient_alg algs[] = {MLKEMCLIENT_ML_KEM_512,
    MLKEMCLIENT_ML_KEM_768, MLKEMCLIENT_ML_KEM_1024, MLKEMCLIENT_X25519MLKEM768};
enum { N_ALGS = sizeof(algs) / sizeof(algs[0]) };

static uint8_t shares[N_MAX][MLKEMCLIENT_MAX_SHARE];
static uint8_t cts[N_MAX][MLKEMCLIENT_MAX_CIPHERTEXT];
static uint8_t sent[N_MAX][MLKEMCLIENT_MAX_SECRET];
static uint8_t received[N_MAX][MLKEMCLIENT_MAX_SECRET];

static struct mlkemclient *
local_client(void)
{
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	return client;
}

static struct mlkemclient_sizes
sizes_of(enum mlkemclient_alg alg)
{
	struct mlkemclient_sizes sizes;

	ck_assert_int_eq(mlkemclient_get_sizes(alg, &sizes), 0);
	return sizes;
}

START_TEST(single_round_trips)
{
	enum mlkemclient_alg alg = algs[_i];
	struct mlkemclient_sizes sizes = sizes_of(alg);
	struct mlkemclient *client = local_client();
	struct mlkemclient_counts counts;

	for (int round = 0; round < 50; round++) {
		struct mlkemclient_key *key;

		ck_assert_int_eq(
		    mlkemclient_keygen(client, alg, shares[0], sizes.share, &key), 0);
		ck_assert(!mlkemclient_key_in_daemon(key));
		ck_assert_int_eq(mlkemclient_key_alg(key), alg);
		ck_assert_int_eq(mlkemclient_encaps(client, alg, shares[0], sizes.share,
				     cts[0], sizes.ciphertext, sent[0], sizes.secret),
		    0);
		ck_assert(!is_zero(sent[0], sizes.secret));
		if (round % 2 == 1)
			cts[0][round] ^= 1;
		ck_assert_int_eq(mlkemclient_decaps(client, key, cts[0],
				     sizes.ciphertext, received[0], sizes.secret),
		    0);
		ck_assert((memcmp(sent[0], received[0], 32) == 0) == (round % 2 == 0));

		/* a key is used once */
		ck_assert_int_eq(mlkemclient_decaps(client, key, cts[0],
				     sizes.ciphertext, received[0], sizes.secret),
		    MLKEMCLIENT_E_KEY_GONE);
		ck_assert(is_zero(received[0], sizes.secret));
		mlkemclient_key_free(client, key);
	}
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.by_local, 150);
	ck_assert_uint_eq(counts.fallbacks, 0);
	ck_assert_uint_eq(counts.connects, 0);
	mlkemclient_free(client);
}
END_TEST

START_TEST(refused_length_leaves_the_key)
{
	struct mlkemclient *client = local_client();
	enum mlkemclient_alg alg = MLKEMCLIENT_ML_KEM_768;
	struct mlkemclient_key *key;

	ck_assert_int_eq(mlkemclient_keygen(client, alg, shares[0], 1184, &key), 0);
	ck_assert_int_eq(
	    mlkemclient_encaps(client, alg, shares[0], 1184, cts[0], 1088, sent[0], 32),
	    0);
	ck_assert_int_eq(mlkemclient_decaps(client, key, cts[0], 1087, received[0], 32),
	    MLKEMCLIENT_E_LENGTH);
	ck_assert_int_eq(mlkemclient_decaps(client, key, cts[0], 1120, received[0], 32),
	    MLKEMCLIENT_E_LENGTH);
	ck_assert_int_eq(
	    mlkemclient_decaps(client, key, cts[0], 1088, received[0], 32), 0);
	ck_assert_mem_eq(sent[0], received[0], 32);
	mlkemclient_key_free(client, key);
	mlkemclient_free(client);
}
END_TEST

static struct mlkemclient_keygen_item keygen_items[N_MAX];
static struct mlkemclient_encaps_item encaps_items[N_MAX];
static struct mlkemclient_decaps_item decaps_items[N_MAX];

static void
batch_items(enum mlkemclient_alg alg, size_t n)
{
	struct mlkemclient_sizes sizes = sizes_of(alg);

	for (size_t i = 0; i < n; i++) {
		keygen_items[i] = (struct mlkemclient_keygen_item){shares[i], NULL, 1};
		encaps_items[i] = (struct mlkemclient_encaps_item){
		    shares[i], sizes.share, cts[i], sent[i], 1};
	}
}

static void
batch_decaps_items(enum mlkemclient_alg alg, size_t n)
{
	for (size_t i = 0; i < n; i++)
		decaps_items[i] = (struct mlkemclient_decaps_item){keygen_items[i].key,
		    cts[i], sizes_of(alg).ciphertext, received[i], 1};
}

/* Batches of every awkward size, with one bad item at each end and in the middle. */
START_TEST(batches_and_a_bad_item)
{
	static const size_t counts[] = {1, 2, 7, 8, 9, 33, 63, 64};
	size_t n = counts[_i % 8];
	enum mlkemclient_alg alg = algs[_i / 8];
	struct mlkemclient_sizes sizes = sizes_of(alg);
	struct mlkemclient *client = local_client();

	for (size_t bad = 0; bad <= n; bad += n > 2 ? n / 2 : 1) {
		batch_items(alg, n);
		ck_assert_int_eq(
		    mlkemclient_keygen_batch(client, alg, keygen_items, n), 0);
		if (bad < n)
			memset(shares[bad], 0xff, 3); /* over the modulus */
		memset(cts, 0xee, sizeof(cts));
		memset(sent, 0xee, sizeof(sent));
		ck_assert_int_eq(
		    mlkemclient_encaps_batch(client, alg, encaps_items, n), 0);
		batch_decaps_items(alg, n);
		ck_assert_int_eq(
		    mlkemclient_decaps_batch(client, alg, decaps_items, n), 0);
		for (size_t i = 0; i < n; i++) {
			ck_assert_int_eq(keygen_items[i].error, 0);
			ck_assert_int_eq(encaps_items[i].error,
			    i == bad ? MLKEMCLIENT_E_BAD_SHARE : 0);
			/* zeros are a legal ML-KEM ciphertext, but no X25519 share */
			ck_assert_int_eq(decaps_items[i].error,
			    i == bad && sizes.secret == 64 ? MLKEMCLIENT_E_ZERO_X25519
							   : 0);
			if (i == bad)
				ck_assert(is_zero(cts[i], sizes.ciphertext) &&
					  is_zero(sent[i], sizes.secret));
			else
				ck_assert_mem_eq(sent[i], received[i], sizes.secret);
			mlkemclient_key_free(client, keygen_items[i].key);
		}
	}
	mlkemclient_free(client);
}
END_TEST

START_TEST(same_key_thrice)
{
	struct mlkemclient *client = local_client();
	enum mlkemclient_alg alg = MLKEMCLIENT_ML_KEM_512;

	batch_items(alg, 1);
	ck_assert_int_eq(mlkemclient_keygen_batch(client, alg, keygen_items, 1), 0);
	ck_assert_int_eq(mlkemclient_encaps_batch(client, alg, encaps_items, 1), 0);
	for (int i = 1; i < 3; i++) {
		keygen_items[i] = keygen_items[0];
		memcpy(cts[i], cts[0], sizeof(cts[0]));
	}
	batch_decaps_items(alg, 3);
	ck_assert_int_eq(mlkemclient_decaps_batch(client, alg, decaps_items, 3), 0);
	ck_assert_int_eq(decaps_items[0].error, 0);
	ck_assert_int_eq(decaps_items[1].error, MLKEMCLIENT_E_KEY_GONE);
	ck_assert_int_eq(decaps_items[2].error, MLKEMCLIENT_E_KEY_GONE);
	ck_assert_mem_eq(sent[0], received[0], 32);
	ck_assert(is_zero(received[1], 32) && is_zero(received[2], 32));
	mlkemclient_key_free(client, keygen_items[0].key);
	mlkemclient_free(client);
}
END_TEST

START_TEST(keys_of_others)
{
	struct mlkemclient *client = local_client(), *other = local_client();
	struct mlkemclient_key *key, *small;

	ck_assert_int_eq(
	    mlkemclient_keygen(client, MLKEMCLIENT_ML_KEM_768, shares[0], 1184, &key),
	    0);
	ck_assert_int_eq(
	    mlkemclient_keygen(client, MLKEMCLIENT_ML_KEM_512, shares[1], 800, &small),
	    0);
	ck_assert_int_eq(mlkemclient_decaps(other, key, cts[0], 1088, received[0], 32),
	    MLKEMCLIENT_E_INVALID);
	keygen_items[0].key = key;
	keygen_items[1].key = small;
	batch_decaps_items(MLKEMCLIENT_ML_KEM_768, 2);
	ck_assert_int_eq(
	    mlkemclient_decaps_batch(client, MLKEMCLIENT_ML_KEM_768, decaps_items, 2),
	    0);
	ck_assert_int_eq(decaps_items[0].error, 0);
	ck_assert_int_eq(decaps_items[1].error, MLKEMCLIENT_E_ALGORITHM);
	ck_assert_ptr_nonnull(strstr(mlkemclient_last_message(client), "ML-KEM-512"));
	mlkemclient_key_free(client, key);
	mlkemclient_key_free(client, small);
	mlkemclient_free(other);
	mlkemclient_free(client);
}
END_TEST

/* More keys than a block holds, freed in another order: each keeps its own secret. */
START_TEST(many_keys_at_once)
{
	static uint8_t many_shares[200][800], secret[32], again[32], ct[768];
	struct mlkemclient *client = local_client();
	struct mlkemclient_key *keys[200];
	enum mlkemclient_alg alg = MLKEMCLIENT_ML_KEM_512;

	for (int i = 0; i < 200; i++)
		ck_assert_int_eq(
		    mlkemclient_keygen(client, alg, many_shares[i], 800, &keys[i]), 0);
	for (int i = 0; i < 200; i += 3)
		mlkemclient_key_free(client, keys[i]);
	for (int i = 0; i < 200; i += 3)
		ck_assert_int_eq(
		    mlkemclient_keygen(client, alg, many_shares[i], 800, &keys[i]), 0);
	for (int i = 199; i >= 0; i--) {
		ck_assert_int_eq(mlkemclient_encaps(client, alg, many_shares[i], 800,
				     ct, 768, secret, 32),
		    0);
		ck_assert_int_eq(
		    mlkemclient_decaps(client, keys[i], ct, 768, again, 32), 0);
		ck_assert_mem_eq(secret, again, 32);
		mlkemclient_key_free(client, keys[i]);
	}
	mlkemclient_free(client);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("local");
	TCase *tc = tcase_create("local");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, single_round_trips, 0, N_ALGS);
	tcase_add_test(tc, refused_length_leaves_the_key);
	tcase_add_loop_test(tc, batches_and_a_bad_item, 0, N_ALGS * 8);
	tcase_add_test(tc, same_key_thrice);
	tcase_add_test(tc, keys_of_others);
	tcase_add_test(tc, many_keys_at_once);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
