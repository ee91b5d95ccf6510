/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The local route when memory, randomness or time run out. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "peer.h"

/* The library's memory comes by here (ld --wrap): call number n_until_failure fails. */
static int n_until_failure = -1;
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_mmap(void *p, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *p, size_t len, int prot, int flags, int fd, off_t offset);

static bool
memory_fails(void)
{
	if (n_until_failure < 0 || n_until_failure-- > 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return memory_fails() ? NULL : __real_calloc(n, size);
}

void *
__wrap_mmap(void *p, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (memory_fails())
		return MAP_FAILED;
	return __real_mmap(p, len, prot, flags, fd, offset);
}

static struct mlkemclient *
local_client(void)
{
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	return client;
}

static uint8_t shares[64][MLKEMCLIENT_MAX_SHARE];
static struct mlkemclient_keygen_item keygen_items[64];

static void
batch_items(size_t n)
{
	memset(shares, 0xee, sizeof(shares));
	for (size_t i = 0; i < n; i++)
		keygen_items[i] = (struct mlkemclient_keygen_item){shares[i], NULL, 1};
}

/* Wherever memory runs out: an error, zeros, and nothing lost. */
START_TEST(memory_may_run_out_anywhere)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	int n = 0, n_failed = 0;
	bool done = false;

	for (; !done && n < 100; n++) {
		struct mlkemclient_options opts = {
		    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
		struct mlkemclient *client;
		int err;

		batch_items(20);
		n_until_failure = n;
		err = mlkemclient_new(&client, &opts);
		if (err == 0)
			err = mlkemclient_keygen_batch(client, alg, keygen_items, 20);
		done = n_until_failure >= 0;
		n_until_failure = -1;
		if (client == NULL) {
			ck_assert_int_eq(err, MLKEMCLIENT_E_INTERNAL);
			n_failed++;
			continue;
		}
		for (int i = 0; i < 20; i++) {
			ck_assert((keygen_items[i].error == 0) ==
				  (keygen_items[i].key != NULL));
			ck_assert(
			    (keygen_items[i].error == 0) == !is_zero(shares[i], 1216));
			n_failed += keygen_items[i].error != 0;
			mlkemclient_key_free(client, keygen_items[i].key);
		}
		mlkemclient_free(client);
	}
	ck_assert(done);
	ck_assert_int_ge(n_failed, n - 1);
}
END_TEST

START_TEST(deadline_holds_here_too)
{
	struct mlkemclient *client = local_client();

	client->deadline_us = 1;
	batch_items(64);
	ck_assert_int_eq(
	    mlkemclient_keygen_batch(client, MLKEMCLIENT_ML_KEM_1024, keygen_items, 64),
	    MLKEMCLIENT_E_TIMEOUT);
	for (int i = 0; i < 64; i++)
		ck_assert(keygen_items[i].error == MLKEMCLIENT_E_TIMEOUT &&
			  keygen_items[i].key == NULL);
	mlkemclient_free(client);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
START_TEST(randomness_may_fail)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	static uint8_t share[1216], ct[1120], secret[64];
	struct mlkemclient *client = local_client();
	struct mlkemclient_key *key;

	ck_assert_int_eq(mlkemclient_keygen(client, alg, share, 1216, &key), 0);
	setenv("MLKEMD_FAULT", "rng-fail", 1);
	memset(ct, 0xee, sizeof(ct));
	memset(secret, 0xee, sizeof(secret));
	ck_assert_int_eq(
	    mlkemclient_encaps(client, alg, share, 1216, ct, 1120, secret, 64),
	    MLKEMCLIENT_E_INTERNAL);
	ck_assert(is_zero(ct, 1120) && is_zero(secret, 64));
	mlkemclient_key_free(client, key);
	key = (struct mlkemclient_key *)share;
	ck_assert_int_eq(
	    mlkemclient_keygen(client, alg, share, 1216, &key), MLKEMCLIENT_E_INTERNAL);
	ck_assert(is_zero(share, 1216) && key == NULL);
	batch_items(64);
	ck_assert_int_eq(mlkemclient_keygen_batch(client, alg, keygen_items, 64),
	    MLKEMCLIENT_E_INTERNAL);
	for (int i = 0; i < 64; i++)
		ck_assert(keygen_items[i].error == MLKEMCLIENT_E_INTERNAL &&
			  keygen_items[i].key == NULL && is_zero(shares[i], 1216));
	mlkemclient_free(client);
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("local faults");
	TCase *tc = tcase_create("local faults");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, memory_may_run_out_anywhere);
	tcase_add_test(tc, deadline_holds_here_too);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, randomness_may_fail);
#endif
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
