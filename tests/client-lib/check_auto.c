/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Route auto in its place: it goes by what calls cost, learns that, and counts. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

#define ALG       MLKEMCLIENT_ML_KEM_768
#define PLENTY_US 30000000u

/* So far apart that what a call takes on a busy machine does not reach it. */
#define CHEAP_US 20
#define DEAR_US  3000000

static struct mlkemclient *
auto_client(const struct peer *peer)
{
	struct mlkemclient *client = peer_client(peer, false, PLENTY_US);

	client->route = MLKEMCLIENT_ROUTE_AUTO;
	client_lock(client); /* enters the process */
	client_unlock(client);
	return client;
}

/* As if many calls had taken so long; key generation is judged with decapsulation. */
static void
teach(struct mlkemclient *client, uint32_t local_us, uint32_t daemon_us)
{
	struct route_auto *costs = &client->live->costs;
	static const enum auto_op ops[] = {AUTO_KEYGEN, AUTO_ENCAPS, AUTO_DECAPS};
	uint64_t now = client_now(client);

	for (int i = 0; i < 100; i++) {
		for (size_t j = 0; j < 3; j++) {
			unsigned op = ROUTE_AUTO_OP(ops[j], KEM_ALG_MLKEM768);

			route_auto_learn_local(costs, op, 1, now, local_us);
			route_auto_learn_daemon(
			    costs, op, 1, now, daemon_us, 1, 8000, 8);
			/* what a burst of probes would have come to */
			costs->kinds[op][0].choice =
			    daemon_us < local_us ? AUTO_DAEMON : AUTO_LOCAL;
		}
	}
	/* What is known gets no older: no probes by the time that a busy machine takes. */
	peer_clock_stop();
}

START_TEST(cheaper_daemon_is_used)
{
	struct mlkemclient_counts counts;
	struct mlkemclient *client;
	struct peer peer;
	unsigned n = 0;

	peer_start(&peer, peer_honest);
	client = auto_client(&peer);
	teach(client, DEAR_US, CHEAP_US);
	for (int i = 0; i < 20; i++)
		n += peer_keygen_where(client) == PEER_BY_DAEMON;
	/* Sent where it was cheaper; a probe of the other side is allowed. */
	ck_assert_uint_ge(n, 18);
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.shared_daemon, n);
	ck_assert_uint_eq(counts.by_daemon, n);
	ck_assert_uint_eq(counts.fallbacks, 0);
	/* The share is told when it connects, and again what came since. */
	ck_assert_uint_eq(atomic_load(&peer.counts->auto_daemon), 1);
	link_close(client, LINK_E_LOST);
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->auto_daemon), n - 1);
	ck_assert_uint_eq(atomic_load(&peer.counts->auto_local), 20 - n);
	link_close(client, LINK_E_LOST);
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->auto_daemon), 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

START_TEST(cheaper_process_is_used)
{
	struct mlkemclient_counts counts;
	struct mlkemclient *client;
	struct peer peer;
	unsigned n = 0;

	peer_start(&peer, peer_honest);
	client = auto_client(&peer);
	teach(client, CHEAP_US, DEAR_US);
	for (int i = 0; i < 20; i++)
		n += peer_keygen_where(client) == PEER_BY_LOCAL;
	ck_assert_uint_ge(n, 18);
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.by_local, n);
	ck_assert_uint_eq(counts.fallbacks, 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/*
 * Nothing taught: what both sides cost is found out by probes, a small share of calls.
 */
START_TEST(costs_are_found_out)
{
	const unsigned op = ROUTE_AUTO_OP(AUTO_ENCAPS, KEM_ALG_X25519MLKEM768);
	static uint8_t share[1216], ct[1120], secret[64];
	const enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_counts counts;
	struct mlkemclient_key *key;
	struct mlkemclient *client;
	struct route_auto *costs;
	uint64_t until = peer_now_us() + 600000000u;
	struct peer peer;

	peer_start(&peer, peer_honest);
	client = auto_client(&peer);
	costs = &client->live->costs;
	client->route = MLKEMCLIENT_ROUTE_LOCAL;
	ck_assert_int_eq(mlkemclient_keygen(client, alg, share, 1216, &key), 0);
	mlkemclient_key_free(client, key);
	client->route = MLKEMCLIENT_ROUTE_AUTO;
	while (route_auto_cost(costs, op, 1, AUTO_LOCAL) == 0 ||
	       route_auto_cost(costs, op, 1, AUTO_DAEMON) == 0) {
		ck_assert_uint_lt(peer_now_us(), until);
		ck_assert_int_eq(
		    mlkemclient_encaps(client, alg, share, 1216, ct, 1120, secret, 64),
		    0);
	}
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_gt(counts.route_probes, 0);
	ck_assert_uint_gt(counts.by_daemon, 0);
	ck_assert_uint_lt(counts.route_probes, counts.by_local / 64);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

START_TEST(required_daemon_is_not_a_matter_of_cost)
{
	struct mlkemclient *client;
	struct peer peer;

	peer_start(&peer, peer_honest);
	client = auto_client(&peer);
	client->require = true;
	teach(client, CHEAP_US, DEAR_US);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(peer_keygen_where(client), PEER_BY_DAEMON);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* A daemon that ends is left for this process; each call that it failed is counted. */
START_TEST(daemon_that_goes)
{
	struct mlkemclient_counts counts;
	struct mlkemclient *client;
	struct peer peer;

	peer_start(&peer, peer_honest);
	client = auto_client(&peer);
	teach(client, DEAR_US, CHEAP_US);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_DAEMON);
	peer_stop(&peer);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.by_local, 100);
	ck_assert_uint_gt(counts.fallbacks, 0);
	/* It failed, so it is not asked again and again. */
	ck_assert_uint_lt(counts.fallbacks, 20);
	mlkemclient_free(client);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("auto");
	TCase *tc = tcase_create("auto");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 240);
	tcase_add_test(tc, cheaper_daemon_is_used);
	tcase_add_test(tc, cheaper_process_is_used);
	tcase_add_test(tc, costs_are_found_out);
	tcase_add_test(tc, required_daemon_is_not_a_matter_of_cost);
	tcase_add_test(tc, daemon_that_goes);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
