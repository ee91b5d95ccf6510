/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How long a daemon that is silent, or that drains, is left alone. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

#define ALG       MLKEMCLIENT_ML_KEM_768
#define SHARE     1184
#define CT        1088
#define PLENTY_US 30000000u

static uint8_t share[SHARE];

static void
script_silent(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL)
		if (atomic_load(&counts->step) == 1)
			peer_answer(fd, request);
}

static uint64_t
timeouts_of(const struct mlkemclient *client)
{
	struct mlkemclient_counts counts;

	mlkemclient_get_counts(client, &counts);
	return counts.timeouts;
}

/* With the clock so far from the end of the pause, calls ask nothing and don't wait. */
static void
left_alone(struct mlkemclient *client, uint64_t before_us)
{
	uint64_t timeouts = timeouts_of(client);

	peer_clock_stop();
	peer_clock_ahead_us +=
	    client->live->breaker.until_us - before_us - client_now(client);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	ck_assert_uint_eq(timeouts_of(client), timeouts);
	peer_clock_go();
}

START_TEST(silent_daemon_is_left_alone)
{
	struct peer peer;
	struct mlkemclient *client;
	struct mlkemclient_counts counts;
	uint64_t start;

	peer_start(&peer, script_silent);
	client = peer_client(&peer, false, 2000000);
	ck_assert_uint_eq(client->daemon_deadline_us, 1000000);

	/*
	 * The first call waits half its deadline, and is done here in the other half.
	 */
	start = peer_now_us();
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	ck_assert_uint_ge(peer_now_us() - start, 990000);
	peer_wait(&peer.counts->jobs, 1);
	client->deadline_us = 120000000;
	client->daemon_deadline_us = 60000000;

	/* Left alone for 1 s, then one probe, shorter than a call; then 2 s ... 30 s. */
	for (uint64_t pause = 1; pause <= 64; pause *= 2) {
		uint64_t pause_us = (pause < 30 ? pause : 30) * 1000000u;
		uint64_t timeouts = timeouts_of(client);

		ck_assert_uint_eq(client->live->breaker.pause_us, pause_us);
		left_alone(client, pause_us);
		left_alone(client, 1);
		peer_clock_ahead_us += 1;
		start = peer_now_us();
		ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
		ck_assert_uint_lt(peer_now_us() - start, 30000000);
		ck_assert_uint_eq(timeouts_of(client), timeouts + 1);
	}
	/* A busy machine lets the time of a probe pass before it could be sent. */
	ck_assert_uint_le(atomic_load(&peer.counts->jobs), 8);

	/*
	 * It answers again: what asks it brings it back, and the next pause is 1 s. A probe
	 * would; here a ping, which has time on any machine.
	 */
	atomic_store(&peer.counts->step, 1);
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_DAEMON);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_DAEMON);
	ck_assert_int_eq(client->live->breaker.error, 0);

	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.timeouts, 8);
	ck_assert_uint_eq(counts.by_daemon, 2);
	ck_assert_uint_eq(counts.by_local, counts.fallbacks);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* A probe that is answered. One that had no time for that is followed by another. */
START_TEST(a_probe_brings_it_back)
{
	struct peer peer;
	struct mlkemclient *client;
	int n = 0;

	peer_start(&peer, script_silent);
	client = peer_client(&peer, false, 400000);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	ck_assert_int_ne(client->live->breaker.error, 0);
	atomic_store(&peer.counts->step, 1);
	left_alone(client, 1000);
	do
		peer_clock_ahead_us += 30000000;
	while (peer_keygen_where(client) == PEER_BY_LOCAL && n++ < 200);
	ck_assert_int_eq(client->live->breaker.error, 0);
	ck_assert_uint_eq(client->live->counts.by_daemon, 1);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

START_TEST(required_daemon_that_is_silent)
{
	struct peer peer;
	struct mlkemclient *client;
	uint64_t start;

	peer_start(&peer, script_silent);
	client = peer_client(&peer, true, 2000000);
	start = peer_now_us();
	ck_assert_int_eq(peer_keygen_where(client), MLKEMCLIENT_E_TIMEOUT);
	ck_assert_uint_ge(peer_now_us() - start, 1990000);
	peer_clock_stop();
	peer_clock_ahead_us -= client_now(client) + 1 - client->live->breaker.until_us;
	ck_assert_int_eq(peer_keygen_where(client), MLKEMCLIENT_E_UNAVAILABLE);
	peer_clock_go();
	ck_assert_uint_eq(timeouts_of(client), 1);
	peer_wait(&peer.counts->jobs, 1);

	/* A ping asks nevertheless, and brings it back. */
	client->deadline_us = PLENTY_US;
	atomic_store(&peer.counts->step, 1);
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_DAEMON);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* A key there can't be used elsewhere: it is asked for as long as its connection is. */
START_TEST(key_in_silent_daemon)
{
	static const uint8_t ciphertext[CT];
	struct mlkemclient_key *key;
	struct peer peer;
	struct mlkemclient *client;
	uint8_t secret[32];
	int err, n_late = 0;

	peer_start(&peer, script_silent);
	atomic_store(&peer.counts->step, 1);
	client = peer_client(&peer, false, 2 * PLENTY_US);
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &key), 0);
	ck_assert(mlkemclient_key_in_daemon(key));
	client->deadline_us = 100000;
	atomic_store(&peer.counts->step, 0);
	/* On a busy machine some are never sent: those are no silence of the daemon. */
	do
		err = mlkemclient_decaps(client, key, ciphertext, CT, secret, 32);
	while (err == MLKEMCLIENT_E_TIMEOUT && n_late++ < 100);
	ck_assert_int_eq(err, MLKEMCLIENT_E_KEY_GONE);
	ck_assert_int_ge(n_late, 3);
	peer_wait(&peer.counts->ended, 1);
	ck_assert_uint_eq(atomic_load(&peer.counts->jobs), 4);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 1);
	mlkemclient_key_free(client, key);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

static uint32_t status_now;

static void
script_status(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL)
		if (atomic_load(&counts->step) == 1)
			peer_answer(fd, request);
		else
			peer_refuse(fd, request, status_now);
}

START_TEST(draining_daemon_is_asked_again_each_second)
{
	struct peer peer;
	struct mlkemclient *client;

	status_now = MLKEMD__V1__STATUS__DRAINING;
	peer_start(&peer, script_status);
	client = peer_client(&peer, false, PLENTY_US);
	peer_clock_stop();
	for (unsigned i = 1; i <= 5; i++) {
		ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
		ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
		ck_assert_uint_eq(atomic_load(&peer.counts->jobs), i);
		peer_clock_ahead_us += 1000000;
	}
	atomic_store(&peer.counts->step, 1);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_DAEMON);
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

/* Draining begins after the first answer; keys that live still decapsulate. */
static void
script_draining(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		bool draining = atomic_load(&counts->step) == 1;
		size_t len;
		uint8_t *frame =
		    peer_reply(request, draining ? says_draining : NULL, &len);

		peer_write(fd, frame, len);
	}
}

START_TEST(any_answer_may_say_draining)
{
	static const uint8_t ciphertext[CT];
	struct mlkemclient_key *first, *second;
	struct peer peer;
	struct mlkemclient *client;
	uint8_t secret[32];

	peer_start(&peer, script_draining);
	client = peer_client(&peer, false, PLENTY_US);
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &first), 0);
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &second), 0);
	atomic_store(&peer.counts->step, 1);
	ck_assert_int_eq(
	    mlkemclient_decaps(client, first, ciphertext, CT, secret, 32), 0);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	ck_assert_int_eq(
	    mlkemclient_decaps(client, second, ciphertext, CT, secret, 32), 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->jobs), 4);
	mlkemclient_key_free(client, first);
	mlkemclient_key_free(client, second);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("breaker");
	TCase *tc = tcase_create("breaker");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, silent_daemon_is_left_alone);
	tcase_add_test(tc, a_probe_brings_it_back);
	tcase_add_test(tc, required_daemon_that_is_silent);
	tcase_add_test(tc, key_in_silent_daemon);
	tcase_add_test(tc, draining_daemon_is_asked_again_each_second);
	tcase_add_test(tc, any_answer_may_say_draining);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
