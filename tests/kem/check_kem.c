/* SPDX-License-Identifier: Apache-2.0 */
/* kem.c and open.c: fresh keys differ; the host, other backends and threads. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "tests/kem/kembatch.h"

START_TEST(test_random_keys_differ)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const struct kem_alg_info *info = kem_alg_info(alg);

	batch_prepare(alg, 17, "random");
	for (size_t i = 0; i < 17; i++) {
		keygen[i].seed = NULL;
		encaps[i].share = batch[i].share;
		encaps[i].ephemeral = NULL;
		decaps[i].ct = batch[i].ct;
		single[i].key.alg = alg;
		kem_private_from_parts(
		    &single[i].key, alg, batch[i].secret, batch[i].share);
	}
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, 17, test_scratch()), 0);
	ck_assert_int_eq(kem_encaps(test_kem(), alg, encaps, 17, test_scratch()), 0);
	ck_assert_int_eq(kem_decaps(test_kem(), alg, decaps, 17, test_scratch()), 0);
	for (size_t i = 0; i < 17; i++) {
		ck_assert_int_eq(keygen[i].status, KEM_OK);
		ck_assert_int_eq(encaps[i].status, KEM_OK);
		ck_assert_int_eq(decaps[i].status, KEM_OK);
		ck_assert_mem_eq(
		    &batch[i].made, &batch[i].found, sizeof(struct kem_shared));
		for (size_t j = 0; j < i; j++) {
			ck_assert_mem_ne(batch[i].share, batch[j].share, 32);
			ck_assert_mem_ne(batch[i].share + info->share_bytes - 32,
			    batch[j].share + info->share_bytes - 32, 32);
			ck_assert_mem_ne(batch[i].secret + info->secret_bytes - 32,
			    batch[j].secret + info->secret_bytes - 32, 32);
			ck_assert_mem_ne(batch[i].ct, batch[j].ct, 32);
			ck_assert_mem_ne(&batch[i].made, &batch[j].made, 32);
		}
	}
	/* one key, many encapsulations */
	for (size_t i = 0; i < 9; i++)
		encaps[i].share = batch[16].share;
	ck_assert_int_eq(kem_encaps(test_kem(), alg, encaps, 9, test_scratch()), 0);
	for (size_t i = 1; i < 9; i++)
		ck_assert_mem_ne(&batch[i].made, &batch[0].made, 32);
}
END_TEST

/* Some items with a seed, some without: the seeded ones come out as always. */
START_TEST(test_seeds_among_random)
{
	const enum kem_alg alg = (enum kem_alg)_i;

	batch_prepare(alg, 17, "mixed");
	for (size_t i = 0; i < 17; i += 3)
		keygen[i].seed = NULL;
	for (size_t i = 0; i < 17; i += 2)
		encaps[i].ephemeral = NULL;
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, 17, test_scratch()), 0);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, 17, m, test_scratch()), 0);
	for (size_t i = 0; i < 17; i++) {
		ck_assert_int_eq(keygen[i].status, KEM_OK);
		ck_assert_int_eq(encaps[i].status, KEM_OK);
		if (i % 3)
			assert_keygen_equal(i);
		else
			ck_assert_mem_ne(batch[i].share, single[i].share, 32);
		ck_assert_mem_eq(&batch[i].made, &single[i].made, 32);
		if (i % 2)
			assert_encaps_equal(i);
		else if (alg == KEM_ALG_X25519MLKEM768)
			ck_assert_mem_ne(
			    batch[i].made.bytes + 32, single[i].made.bytes + 32, 32);
	}
}
END_TEST

/* The host's error queue and default properties are its own. */
START_TEST(test_host_is_left_alone)
{
	struct kem *kem = NULL;

	batch_prepare(KEM_ALG_X25519MLKEM768, 3, "host");
	ERR_clear_error();
	ERR_raise(ERR_LIB_USER, 42);
	ck_assert_int_eq(EVP_set_default_properties(NULL, "fips=yes"), 1);
	ck_assert_ptr_null(EVP_MD_fetch(NULL, "SHA256", NULL));
	ERR_clear_error();
	ERR_raise(ERR_LIB_USER, 42);
	ck_assert_int_eq(kem_open_with(&kem, test_backend()), 0);
	memset(single[1].share + 1184, 0, 32);
	ck_assert_int_eq(kem_encaps_derand(
			     kem, KEM_ALG_X25519MLKEM768, encaps, 3, m, test_scratch()),
	    0);
	assert_encaps_equal(0);
	assert_encaps_failed(1, KEM_E_ZERO);
	ck_assert_int_eq(ERR_GET_REASON(ERR_get_error()), 42);
	ck_assert_uint_eq(ERR_get_error(), 0);
	kem = kem_free(kem);
	ck_assert_ptr_null(kem);
	ck_assert_ptr_null(kem_free(NULL));
	EVP_set_default_properties(NULL, "");
}
END_TEST

START_TEST(test_unknown_backend)
{
	struct kem *kem = (struct kem *)1;

	ck_assert_int_eq(kem_open(&kem, "none-such"), KEM_FAIL_BACKEND);
	ck_assert_ptr_null(kem);
	setenv("MLKEMD_BACKEND", "none-such", 1);
	ck_assert_int_eq(kem_open(&kem, NULL), KEM_FAIL_BACKEND);
	ck_assert_ptr_null(kem);
	ck_assert_int_eq(kem_open(&kem, "generic"), 0);
	ck_assert_str_eq(kem_backend_name(kem), "generic");
	ck_assert_uint_eq(kem_backend_lanes(kem), 1);
	kem_free(kem);
}
END_TEST

/* One kem, many threads, each with a scratch of its own. */
static void *
thread_rounds(void *arg)
{
	struct kem_scratch *scratch = aligned_alloc(64, sizeof(*scratch));
	struct test_item item;
	const enum kem_alg alg = *(const enum kem_alg *)arg;
	struct kem_keygen_item k = {.share = item.share, .secret = item.secret};
	struct kem_encaps_item e = {.share = item.share,
	    .share_len = kem_alg_info(alg)->share_bytes,
	    .ct = item.ct,
	    .shared = &item.made};
	struct kem_decaps_item d = {.key = &item.key,
	    .ct = item.ct,
	    .ct_len = kem_alg_info(alg)->ct_bytes,
	    .shared = &item.found};
	size_t n_bad = 0;

	for (int i = 0; i < 20; i++) {
		if (kem_keygen(test_kem(), alg, &k, 1, scratch) < 0)
			n_bad++;
		kem_private_from_parts(&item.key, alg, item.secret, item.share);
		if (kem_encaps(test_kem(), alg, &e, 1, scratch) < 0 ||
		    kem_decaps(test_kem(), alg, &d, 1, scratch) < 0 ||
		    memcmp(&item.made, &item.found, sizeof(item.made)) != 0)
			n_bad++;
	}
	free(scratch);
	return (void *)n_bad;
}

START_TEST(test_threads)
{
	pthread_t threads[8];
	enum kem_alg algs[8];
	void *n_bad;

	(void)test_kem();
	for (size_t i = 0; i < 8; i++) {
		algs[i] = (enum kem_alg)(i % KEM_N_ALGS);
		ck_assert_int_eq(
		    pthread_create(&threads[i], NULL, thread_rounds, &algs[i]), 0);
	}
	for (size_t i = 0; i < 8; i++) {
		pthread_join(threads[i], &n_bad);
		ck_assert_ptr_null(n_bad);
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("kem");
	TCase *tc = tcase_create("kem");

	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, test_random_keys_differ, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_seeds_among_random, 0, KEM_N_ALGS);
	tcase_add_test(tc, test_host_is_left_alone);
	tcase_add_test(tc, test_unknown_backend);
	tcase_add_test(tc, test_threads);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
