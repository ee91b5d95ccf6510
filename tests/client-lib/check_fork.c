/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * After fork() each process has its own connection, its own keys, its own randomness.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

#define N_CHILDREN 8
#define PLENTY_US  30000000u

static unsigned n_rounds = 10000;

/* Ends a child: 0 if every answer was its own. */
static void
child_rounds(struct mlkemclient *client, uint32_t base)
{
	for (uint32_t i = 0; i < n_rounds; i++)
		if (peer_encaps(client, base + i) != 0)
			_exit(1);
	_exit(0);
}

static int
fork_children(struct mlkemclient *client)
{
	pid_t pids[N_CHILDREN];
	int n_bad = 0, status;

	for (int i = 0; i < N_CHILDREN; i++) {
		pids[i] = fork();
		ck_assert_int_ge(pids[i], 0);
		if (pids[i] == 0)
			child_rounds(client, (uint32_t)(i + 1) << 24);
	}
	for (uint32_t i = 0; i < 200; i++)
		n_bad += peer_encaps(client, i) != 0;
	for (int i = 0; i < N_CHILDREN; i++) {
		waitpid(pids[i], &status, 0);
		n_bad += status != 0;
	}
	return n_bad;
}

START_TEST(children_connect_anew)
{
	struct mlkemclient_counts counts;
	struct mlkemclient *client;
	struct peer peer;

	n_rounds = 2000;
	peer_start(&peer, peer_honest);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(peer_encaps(client, 1), 0);
	ck_assert_int_eq(fork_children(client), 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 1 + N_CHILDREN);
	/* the parent's connection never noticed */
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.connects, 1);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: without the look at the process id answers cross. */
START_TEST(children_would_share_the_connection)
{
	struct mlkemclient *client;
	struct peer peer;

	n_rounds = 50;
	setenv("MLKEMD_FAULT", "client-no-pid-check", 1);
	peer_start(&peer, peer_honest);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(peer_encaps(client, 1), 0);
	client->deadline_us = 50000;
	ck_assert_int_gt(fork_children(client), 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST
#endif

static int
wait_for_exit(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(keys_stay_in_the_parent)
{
	static uint8_t share[800], ct[768], secret[32], again[32];
	enum mlkemclient_alg alg = MLKEMCLIENT_ML_KEM_512;
	enum mlkemclient_route routes[] = {
	    MLKEMCLIENT_ROUTE_DAEMON, MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient_key *key;
	struct mlkemclient *client;
	struct peer peer;
	pid_t pid;

	peer_start(&peer, peer_honest);
	client = peer_client(&peer, true, PLENTY_US);
	client->route = routes[_i];
	ck_assert_int_eq(mlkemclient_keygen(client, alg, share, 800, &key), 0);
	ck_assert_int_eq(
	    mlkemclient_encaps(client, alg, share, 800, ct, 768, secret, 32), 0);
	pid = fork();
	if (pid == 0) {
		bool empty = key->secret == NULL || is_zero(key->secret, 800);
		int err = mlkemclient_decaps(client, key, ct, 768, again, 32);

		mlkemclient_key_free(client, key);
		mlkemclient_free(client);
		_exit(err == MLKEMCLIENT_E_KEY_GONE && is_zero(again, 32) && empty ? 0
										   : 1);
	}
	ck_assert_int_eq(wait_for_exit(pid), 0);
	ck_assert_int_eq(mlkemclient_decaps(client, key, ct, 768, again, 32), 0);
	if (client->route == MLKEMCLIENT_ROUTE_LOCAL)
		ck_assert_mem_eq(secret, again, 32);
	mlkemclient_key_free(client, key);
	ck_assert_uint_eq(atomic_load(&peer.counts->releases), 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* A child works here as its parent did, with a handle that was used before. */
START_TEST(local_engine_in_a_child)
{
	static uint8_t share[1216], ct[1120], secret[64], again[64];
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient_key *key;
	struct mlkemclient *client;
	pid_t pid;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	ck_assert_int_eq(mlkemclient_keygen(client, alg, share, 1216, &key), 0);
	mlkemclient_key_free(client, key);
	pid = fork();
	if (pid == 0) {
		int err = mlkemclient_keygen(client, alg, share, 1216, &key);

		if (err == 0)
			err = mlkemclient_encaps(
			    client, alg, share, 1216, ct, 1120, secret, 64);
		if (err == 0)
			err = mlkemclient_decaps(client, key, ct, 1120, again, 64);
		_exit(err == 0 && memcmp(secret, again, 64) == 0 ? 0 : 1);
	}
	ck_assert_int_eq(wait_for_exit(pid), 0);
	mlkemclient_free(client);
}
END_TEST

#define N_TWINS 100
struct draw {
	uint8_t share[1216], ct[1120];
};

/* Drawn once before, so that a copied generator would show. */
START_TEST(children_draw_their_own)
{
	static struct draw draws[N_TWINS];
	static uint8_t share[1216], secret[64];
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient_key *key;
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	ck_assert_int_eq(mlkemclient_keygen(client, alg, share, 1216, &key), 0);
	for (int i = 0; i < N_TWINS; i++) {
		int fds[2];
		pid_t pid;

		ck_assert_int_eq(pipe(fds), 0);
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			struct draw draw;

			if (mlkemclient_keygen(client, alg, draw.share, 1216, &key) !=
				0 ||
			    mlkemclient_encaps(client, alg, share, 1216, draw.ct, 1120,
				secret, 64) != 0 ||
			    write(fds[1], &draw, sizeof(draw)) != sizeof(draw))
				_exit(1);
			_exit(0);
		}
		ck_assert_int_eq(
		    read(fds[0], &draws[i], sizeof(draws[i])), sizeof(draws[i]));
		ck_assert_int_eq(wait_for_exit(pid), 0);
		close(fds[0]);
		close(fds[1]);
	}
	for (int i = 0; i < N_TWINS; i++) {
		ck_assert_int_ne(memcmp(draws[i].share, share, 32), 0);
		for (int j = 0; j < i; j++) {
			ck_assert_int_ne(memcmp(draws[i].share, draws[j].share, 32), 0);
			ck_assert_int_ne(
			    memcmp(draws[i].share + 1184, draws[j].share + 1184, 32),
			    0);
			ck_assert_int_ne(memcmp(draws[i].ct, draws[j].ct, 32), 0);
			ck_assert_int_ne(
			    memcmp(draws[i].ct + 1088, draws[j].ct + 1088, 32), 0);
		}
	}
	mlkemclient_key_free(client, key);
	mlkemclient_free(client);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("fork");
	TCase *tc = tcase_create("fork");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, children_connect_anew);
	tcase_add_loop_test(tc, keys_stay_in_the_parent, 0, 2);
	tcase_add_test(tc, local_engine_in_a_child);
	tcase_add_test(tc, children_draw_their_own);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, children_would_share_the_connection);
#endif
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
