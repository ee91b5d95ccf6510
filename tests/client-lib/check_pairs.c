/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* X25519 pairs made on the way: each is used once, by whatever thread or process. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

#define HYBRID    MLKEMCLIENT_X25519MLKEM768
#define SHARE     1216
#define CT        1120
#define SECRET    64
#define N_THREADS 8
#define N_EACH    50
#define N_ALL     (N_THREADS * N_EACH)

static uint8_t share[SHARE], publics[2 * N_ALL][32];

static struct mlkemclient *
local_client(void)
{
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient_key *key;
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	ck_assert_int_eq(mlkemclient_keygen(client, HYBRID, share, SHARE, &key), 0);
	mlkemclient_key_free(client, key);
	return client;
}

static bool
has_lanes(const struct mlkemclient *client)
{
	return kem_x25519_lanes(client->kem) > 1;
}

/* The ephemeral's public key stands at the end of the ciphertext share. */
static int
encaps(struct mlkemclient *client, uint8_t *public_key)
{
	uint8_t ct[CT], secret[SECRET];
	int err =
	    mlkemclient_encaps(client, HYBRID, share, SHARE, ct, CT, secret, SECRET);

	memcpy(public_key, ct + CT - 32, 32);
	return err;
}

static unsigned
n_repeated(size_t n)
{
	unsigned n_same = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			n_same += memcmp(publics[i], publics[j], 32) == 0;
	return n_same;
}

struct worker {
	pthread_t thread;
	struct mlkemclient *client;
	uint8_t (*publics)[32];
	int error;
};

static void *
work(void *arg)
{
	struct worker *worker = arg;

	for (unsigned i = 0; i < N_EACH && worker->error == 0; i++)
		worker->error = encaps(worker->client, worker->publics[i]);
	return NULL;
}

START_TEST(threads_share_no_pair)
{
	struct mlkemclient *client = local_client();
	struct worker workers[N_THREADS];

	for (unsigned i = 0; i < N_THREADS; i++) {
		workers[i] =
		    (struct worker){.client = client, .publics = &publics[i * N_EACH]};
		ck_assert_int_eq(
		    pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < N_THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		ck_assert_int_eq(workers[i].error, 0);
	}
	ck_assert_uint_eq(n_repeated(N_ALL), 0);
	/* Lanes that were left have filled the pool, where there are lanes. */
	ck_assert((client->live->local.n_pairs != 0) == has_lanes(client));
	ck_assert_uint_le(client->live->local.n_benches, N_THREADS);
	mlkemclient_free(client);
}
END_TEST

/* The parent's pairs are not in a child, whose pool begins anew. */
START_TEST(processes_share_no_pair)
{
	uint8_t(*shown)[32] = mmap(NULL, sizeof(publics), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct mlkemclient *client = local_client();
	int status;

	ck_assert(shown != MAP_FAILED);
	ck_assert_int_eq(encaps(client, shown[0]), 0);
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			if (client->live->local.n_pairs != 0 ||
			    !is_zero(client->live->local.pairs,
				sizeof(client->live->local.pairs)))
				_exit(1);
			for (int j = 0; j < 20; j++)
				if (encaps(client, shown[20 + i * 20 + j]) != 0)
					_exit(2);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		ck_assert_int_eq(status, 0);
	}
	for (int j = 1; j < 20; j++)
		ck_assert_int_eq(encaps(client, shown[j]), 0);
	memcpy(publics, shown, sizeof(publics));
	ck_assert_uint_eq(n_repeated(180), 0);
	munmap(shown, sizeof(publics));
	mlkemclient_free(client);
}
END_TEST

/* A day passes in which nothing is asked, and the machine may have slept through it. */
static uint64_t slept_us;

static uint64_t
clock_slept(void *arg)
{
	return clock_boottime(arg) + slept_us;
}

/* How many of the pairs that lay in the pool meanwhile are still there. */
static size_t
old_pairs_kept(void)
{
	struct mlkemclient *client = local_client();
	struct local *local = &client->live->local;
	static struct kem_x25519 before[LOCAL_MAX_PAIRS];
	struct mlkemclient_key *key;
	size_t n, n_kept = 0;

	client->age_clock = clock_slept;
	ck_assert_int_eq(encaps(client, publics[0]), 0);
	n = local->n_pairs;
	memcpy(before, local->pairs, sizeof(before));
	/* Young enough: one is taken. */
	slept_us += LOCAL_MAX_AGE_US / 2;
	ck_assert_int_eq(encaps(client, publics[1]), 0);
	ck_assert(n == 0 || memcmp(publics[1], before[n - 1].public_key, 32) == 0);
	slept_us += LOCAL_MAX_AGE_US;
	/* Whatever is asked next wipes them. */
	ck_assert_int_eq(mlkemclient_keygen(client, HYBRID, share, SHARE, &key), 0);
	mlkemclient_key_free(client, key);
	for (size_t i = 0; i < local->n_pairs; i++)
		n_kept += memcmp(&local->pairs[i], &before[i], sizeof(before[i])) == 0;
	if (local->n_pairs == 0)
		ck_assert(is_zero(local->pairs, sizeof(local->pairs)));
	mlkemclient_free(client);
	return n_kept;
}

START_TEST(old_pairs_are_wiped)
{
	ck_assert_uint_eq(old_pairs_kept(), 0);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: they would be used, after whatever time. */
START_TEST(old_pairs_would_stay)
{
	struct mlkemclient *client = local_client();
	bool lanes = has_lanes(client);

	mlkemclient_free(client);
	setenv("MLKEMD_FAULT", "client-old-pairs", 1);
	ck_assert((old_pairs_kept() != 0) == lanes);
}
END_TEST

/* The control: a pair that stays in the pool is used again, and that shows. */
START_TEST(repeated_pairs_show)
{
	struct mlkemclient *client;

	setenv("MLKEMD_FAULT", "client-pair-twice", 1);
	client = local_client();
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(encaps(client, publics[i]), 0);
	if (has_lanes(client))
		ck_assert_uint_gt(n_repeated(20), 0);
	else
		ck_assert_uint_eq(n_repeated(20), 0); /* no pool, no fault */
	mlkemclient_free(client);
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("pairs");
	TCase *tc = tcase_create("pairs");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, threads_share_no_pair);
	tcase_add_test(tc, processes_share_no_pair);
	tcase_add_test(tc, old_pairs_are_wiped);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, repeated_pairs_show);
	tcase_add_test(tc, old_pairs_would_stay);
#endif
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
