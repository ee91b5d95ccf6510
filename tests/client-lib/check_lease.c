/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Keys that were fetched before they were asked for: given out once, and in time. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"
#include "rig.h"

#define ALG         MLKEMCLIENT_ML_KEM_768
#define SHARE       1184
#define CT          1088
#define PLENTY_US   10000000u
#define LIFETIME_US 60000000u

static struct mlkemclient *
lease_client(const char *path, unsigned leases, uint32_t deadline_us)
{
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = path,
	    .route = MLKEMCLIENT_ROUTE_DAEMON,
	    .leases = leases,
	    .deadline_us = deadline_us};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	return client;
}

static struct mlkemclient *
peer_lease_client(const struct peer *peer, unsigned leases)
{
	struct mlkemclient *ahead = peer_client(peer, false, PLENTY_US);
	struct mlkemclient *client = lease_client(peer->path, leases, PLENTY_US);

	client->clock = ahead->clock; /* the one that tests move */
	client->age_clock = ahead->clock;
	mlkemclient_free(ahead);
	return client;
}

static struct mlkemclient_counts
counts_of(const struct mlkemclient *client)
{
	struct mlkemclient_counts counts;

	mlkemclient_get_counts(client, &counts);
	return counts;
}

/* The answer that a ping waits for comes behind that of any refill. */
static void
refills_are_in(struct mlkemclient *client)
{
	ck_assert_int_eq(mlkemclient_ping(client), 0);
}

static void
keygen(struct mlkemclient *client)
{
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_DAEMON);
}

START_TEST(few_questions_for_many_keys)
{
	struct mlkemclient *client;
	struct peer peer;
	unsigned jobs;

	peer_start(&peer, peer_honest);
	client = peer_lease_client(&peer, 64);
	for (int i = 0; i < 40; i++) {
		keygen(client);
		refills_are_in(client);
	}
	jobs = atomic_load(&peer.counts->jobs);
	ck_assert_uint_le(jobs, 10);
	/* All but the first are copies. */
	ck_assert_uint_eq(counts_of(client).by_lease, 39);
	ck_assert_uint_eq(counts_of(client).by_daemon, 40);
	for (int i = 0; i < 400; i++) {
		keygen(client);
		refills_are_in(client);
	}
	ck_assert_uint_eq(client->live->racks[0].n_wanted, 64);
	ck_assert_uint_le(atomic_load(&peer.counts->jobs) - jobs, 400 / 32 + 2);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

START_TEST(without_leases_none_are_fetched)
{
	struct mlkemclient *client;
	struct peer peer;

	peer_start(&peer, peer_honest);
	client = peer_lease_client(&peer, 0);
	for (int i = 0; i < 10; i++)
		keygen(client);
	ck_assert_uint_eq(atomic_load(&peer.counts->jobs), 10);
	ck_assert_uint_eq(counts_of(client).by_lease, 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* How many leases are given out when half the life of the handles has passed. */
static unsigned
old_leases_given(void)
{
	struct mlkemclient_counts counts;
	struct mlkemclient *client;
	struct peer peer;

	peer_start(&peer, peer_honest);
	client = peer_lease_client(&peer, 16);
	keygen(client);
	refills_are_in(client);
	ck_assert_uint_eq(client->live->racks[0].n, 8);
	peer_clock_ahead_us += LIFETIME_US / 2 + 1;
	keygen(client);
	refills_are_in(client);
	counts = counts_of(client);
	ck_assert_uint_eq(counts.leases_dropped, counts.by_lease == 0 ? 8 : 0);
	if (counts.by_lease == 0) /* it was too many */
		ck_assert_uint_eq(client->live->racks[0].n, 5);
	mlkemclient_free(client);
	peer_stop(&peer);
	return (unsigned)counts.by_lease;
}

START_TEST(old_leases_are_dropped)
{
	ck_assert_uint_eq(old_leases_given(), 0);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: a handle that may be dead already would be given out. */
START_TEST(old_leases_would_be_used)
{
	setenv("MLKEMD_FAULT", "client-old-leases", 1);
	ck_assert_uint_eq(old_leases_given(), 1);
}
END_TEST
#endif

/* Ends the connection when told to. */
static void
script_until_step(int fd, struct peer_counts *counts)
{
	unsigned step = atomic_load(&counts->step);
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		if (atomic_load(&counts->step) != step)
			return;
		peer_answer(fd, request);
	}
}

START_TEST(leases_end_with_their_connection)
{
	static const uint8_t ct[CT];
	struct mlkemclient_key *before, *key;
	struct mlkemclient *client;
	uint8_t share[SHARE], secret[32];
	struct peer peer;

	peer_start(&peer, script_until_step);
	client = peer_lease_client(&peer, 64);
	keygen(client);
	refills_are_in(client);
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &before), 0);
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &key), 0);
	ck_assert_uint_eq(counts_of(client).by_lease, 2);
	ck_assert_uint_eq(client->live->racks[0].n, 6);

	/* The key that finds out, and one that is known to be gone by then. */
	atomic_store(&peer.counts->step, 1);
	ck_assert_int_eq(mlkemclient_decaps(client, key, ct, CT, secret, 32),
	    MLKEMCLIENT_E_KEY_GONE);
	ck_assert(is_zero(secret, 32));
	ck_assert_uint_eq(counts_of(client).leases_lost, 1);
	ck_assert_int_eq(mlkemclient_decaps(client, before, ct, CT, secret, 32),
	    MLKEMCLIENT_E_KEY_GONE);
	ck_assert_int_eq(mlkemclient_decaps(client, before, ct, CT, secret, 32),
	    MLKEMCLIENT_E_KEY_GONE);
	ck_assert_uint_eq(counts_of(client).leases_lost, 2);
	ck_assert_uint_ge(counts_of(client).leases_dropped, 6);
	mlkemclient_key_free(client, key);
	mlkemclient_key_free(client, before);

	/* The next ones are of the next connection. */
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &key), 0);
	ck_assert_int_eq(mlkemclient_decaps(client, key, ct, CT, secret, 32), 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 2);
	mlkemclient_key_free(client, key);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

START_TEST(leases_stay_in_the_parent)
{
	struct mlkemclient *client;
	struct peer peer;
	int status;
	pid_t pid;

	peer_start(&peer, peer_honest);
	client = peer_lease_client(&peer, 64);
	keygen(client);
	refills_are_in(client);
	pid = fork();
	if (pid == 0) {
		if (peer_keygen_where(client) != PEER_BY_DAEMON)
			_exit(1);
		_exit(counts_of(client).by_lease == 0 ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 2);
	keygen(client);
	ck_assert_uint_eq(counts_of(client).by_lease, 1);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

static void
says_draining(Mlkemd__V1__Response *response)
{
	static Mlkemd__V1__Load load = MLKEMD__V1__LOAD__INIT;

	load.draining = 1;
	response->load = &load;
}

static void
script_draining(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		size_t len;
		uint8_t *frame = peer_reply(request,
		    atomic_load(&counts->step) != 0 ? says_draining : NULL, &len);

		peer_write(fd, frame, len);
	}
}

START_TEST(draining_drops_them)
{
	struct mlkemclient *client;
	struct peer peer;

	peer_start(&peer, script_draining);
	client = peer_lease_client(&peer, 64);
	keygen(client);
	refills_are_in(client);
	atomic_store(&peer.counts->step, 1);
	refills_are_in(client);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	ck_assert_uint_eq(counts_of(client).leases_dropped, 8);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* Gives single keys only. */
static void
script_no_refills(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		bool refill =
		    request->op_case == MLKEMD__V1__REQUEST__OP_GENERATE_KEYS &&
		    request->generate_keys->count > 1;

		if (!refill)
			peer_answer(fd, request);
		else if (atomic_load(&counts->step) == 0)
			peer_refuse(
			    fd, request, MLKEMD__V1__STATUS__RESOURCE_EXHAUSTED);
	}
}

START_TEST(a_full_daemon_is_asked_for_less)
{
	struct mlkemclient *client;
	struct peer peer;

	peer_start(&peer, script_no_refills);
	client = peer_lease_client(&peer, 64);
	peer_clock_stop();
	for (int i = 0; i < 10; i++) {
		keygen(client);
		refills_are_in(client);
	}
	ck_assert_uint_eq(atomic_load(&peer.counts->jobs), 11);
	ck_assert_uint_eq(client->live->racks[0].n_wanted, 5);
	peer_clock_ahead_us += 1000000;
	keygen(client);
	refills_are_in(client);
	ck_assert_uint_eq(atomic_load(&peer.counts->jobs), 13);
	ck_assert_uint_eq(client->live->racks[0].n_wanted, 3);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/*
 * A refill that is not answered holds nobody up, and is not asked for again and again.
 */
START_TEST(nobody_waits_for_a_refill)
{
	struct mlkemclient *client;
	struct peer peer;

	peer_start(&peer, script_no_refills);
	atomic_store(&peer.counts->step, 1);
	client = peer_lease_client(&peer, 64);
	peer_clock_stop();
	for (int i = 0; i < 10; i++)
		keygen(client);
	ck_assert_uint_eq(atomic_load(&peer.counts->jobs), 11);
	ck_assert_uint_eq(counts_of(client).timeouts, 0);
	/* It is given up after the deadline, and tried again a second later. */
	peer_clock_ahead_us += PLENTY_US;
	keygen(client);
	ck_assert_uint_eq(client->live->racks[0].asked_id, 0);
	keygen(client);
	peer_clock_ahead_us += 1000000;
	keygen(client);
	refills_are_in(client);
	ck_assert_uint_eq(atomic_load(&peer.counts->jobs), 15);
	ck_assert_uint_eq(counts_of(client).by_lease, 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* Real keys: each is another, and each works once. Returns how many were wrong. */
static unsigned
real_keys(unsigned n)
{
	static uint8_t shares[600][1216], ct[1120], sent[64], received[64];
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_key *keys[600];
	struct mlkemclient *client;
	struct daemon daemon;
	unsigned n_wrong = 0;

	daemon_start(&daemon, NULL);
	client = lease_client(daemon.path, 64, PLENTY_US);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_int_eq(
		    mlkemclient_keygen(client, alg, shares[i], 1216, &keys[i]), 0);
		for (unsigned j = 0; j < i; j++)
			n_wrong += memcmp(shares[i], shares[j], 1216) == 0;
		/* half are used at once, half when all are there */
		if (i % 2 == 0)
			continue;
		ck_assert_int_eq(mlkemclient_encaps(
				     client, alg, shares[i], 1216, ct, 1120, sent, 64),
		    0);
		if (mlkemclient_decaps(client, keys[i], ct, 1120, received, 64) != 0 ||
		    memcmp(sent, received, 64) != 0)
			n_wrong++;
	}
	for (unsigned i = 0; i < n; i++) {
		if (i % 2 == 0) {
			ck_assert_int_eq(mlkemclient_encaps(client, alg, shares[i],
					     1216, ct, 1120, sent, 64),
			    0);
			if (mlkemclient_decaps(
				client, keys[i], ct, 1120, received, 64) != 0 ||
			    memcmp(sent, received, 64) != 0)
				n_wrong++;
		}
		mlkemclient_key_free(client, keys[i]);
	}
	ck_assert_uint_gt(counts_of(client).by_lease, 0);
	mlkemclient_free(client);
	daemon_stop(&daemon);
	return n_wrong;
}

START_TEST(real_leases_work)
{
	ck_assert_uint_eq(real_keys(600), 0);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: a lease that stays in its rack is given out twice. */
START_TEST(leases_given_twice_show)
{
	setenv("MLKEMD_FAULT", "client-lease-twice", 1);
	ck_assert_uint_gt(real_keys(40), 0);
}
END_TEST
#endif

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("lease");
	TCase *tc = tcase_create("lease");

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, few_questions_for_many_keys);
	tcase_add_test(tc, without_leases_none_are_fetched);
	tcase_add_test(tc, old_leases_are_dropped);
	tcase_add_test(tc, leases_end_with_their_connection);
	tcase_add_test(tc, leases_stay_in_the_parent);
	tcase_add_test(tc, draining_drops_them);
	tcase_add_test(tc, a_full_daemon_is_asked_for_less);
	tcase_add_test(tc, nobody_waits_for_a_refill);
	tcase_add_test(tc, real_leases_work);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, old_leases_would_be_used);
	tcase_add_test(tc, leases_given_twice_show);
#endif
	return rig_main(argc, argv, suite);
}
