/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What nobody waits for: keys of answers that came too late, keys that were freed, the
 * counts. And who waits for a turn to send gets it, whoever else gives up.
 */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"

#define ALG       MLKEMCLIENT_ML_KEM_768
#define SHARE     1184
#define SHORT_US  100000u
#define PLENTY_US 30000000u
#define N_BATCH   5

/* Holds the answers to key generations back until something else is asked. */
static void
script_late_keys(int fd, struct peer_counts *counts)
{
	uint8_t *held = NULL, first[WIRE_HANDLE_BYTES] = {0};
	Mlkemd__V1__Request *request;
	size_t held_len = 0;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		if (request->op_case == MLKEMD__V1__REQUEST__OP_GENERATE_KEYS) {
			Mlkemd__V1__Response *response;

			held = peer_reply(request, NULL, &held_len);
			response = mlkemd__v1__response__unpack(NULL,
			    held_len - WIRE_HEADER_BYTES, held + WIRE_HEADER_BYTES);
			memcpy(first, response->keys->items[0]->handle.data,
			    sizeof(first));
			continue;
		}
		if (request->op_case == MLKEMD__V1__REQUEST__OP_RELEASE) {
			if (memcmp(request->release->handles[0].data, first,
				sizeof(first)) != 0)
				abort();
			atomic_fetch_add(
			    &counts->step, (unsigned)request->release->n_handles);
		}
		if (held != NULL)
			peer_write(fd, held, held_len);
		held = NULL;
		peer_answer(fd, request);
	}
}

/* How many handles are released, of so many keys whose caller had given up. */
static unsigned
late_keys_released(unsigned n)
{
	static uint8_t shares[N_BATCH][SHARE];
	struct mlkemclient_keygen_item items[N_BATCH] = {{0}};
	struct mlkemclient *client;
	struct peer peer;
	unsigned released, n_tries = 0;

	peer_start(&peer, script_late_keys);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	client->deadline_us = SHORT_US;
	for (unsigned i = 0; i < n; i++)
		items[i].share = shares[i];
	/* A busy machine lets the time pass before it was sent: once more. */
	do {
		breaker_reset(&client->live->breaker);
		ck_assert_int_eq(mlkemclient_keygen_batch(client, ALG, items, n),
		    MLKEMCLIENT_E_TIMEOUT);
		ck_assert(is_zero(shares, sizeof(shares)));
		n_tries++;
	} while (client->live->link.n_abandoned == 0 && n_tries < 100);
	client->deadline_us = PLENTY_US;
	/* The first brings the late answer, the second is behind the release. */
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_uint_eq(client->live->link.n_unwanted, 0);
	ck_assert_uint_eq(client->live->link.n_abandoned, 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 1);
	released = atomic_load(&peer.counts->step);
	mlkemclient_free(client);
	peer_stop(&peer);
	return released;
}

START_TEST(late_keys_are_released)
{
	ck_assert_uint_eq(late_keys_released(1), 1);
	ck_assert_uint_eq(late_keys_released(N_BATCH), N_BATCH);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: they would stay in the daemon for a minute. */
START_TEST(late_keys_would_stay)
{
	setenv("MLKEMD_FAULT", "client-keeps-late-keys", 1);
	ck_assert_uint_eq(late_keys_released(1), 0);
}
END_TEST
#endif

/* Reads nothing more, once it has made a key, until it is told to. */
static void
script_sleeps(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	request = peer_read(fd, counts);
	if (request == NULL)
		return;
	peer_answer(fd, request);
	while (atomic_load(&counts->step) == 0)
		usleep(1000);
	while ((request = peer_read(fd, counts)) != NULL)
		peer_answer(fd, request);
}

struct asker {
	pthread_t thread;
	struct mlkemclient *client;
	int error;
};

static void *
ask(void *arg)
{
	static const uint8_t share[1216] = {1};
	struct asker *asker = arg;
	uint8_t ct[1120], secret[64];

	asker->error = mlkemclient_encaps(asker->client, MLKEMCLIENT_X25519MLKEM768,
	    share, sizeof(share), ct, sizeof(ct), secret, sizeof(secret));
	return NULL;
}

static bool
is_state(struct mlkemclient *client, enum waiter_state state)
{
	bool is;

	client_lock(client);
	is = client->live->link.waiters != NULL &&
	     client->live->link.waiters->state == state;
	client_unlock(client);
	return is;
}

/* One more asks; returns when its request has come to this state. */
static void
asker_start(struct asker *asker, struct mlkemclient *client, uint32_t deadline_us,
    enum waiter_state state)
{
	client->deadline_us = deadline_us;
	*asker = (struct asker){.client = client};
	ck_assert_int_eq(pthread_create(&asker->thread, NULL, ask, asker), 0);
	while (!is_state(client, state))
		sched_yield();
}

/* Tells the peer things until no more goes into the socket. Returns how many did. */
static unsigned
fill_socket(struct mlkemclient *client)
{
	static const uint8_t handle[1][WIRE_HANDLE_BYTES];
	struct call call = {.op = CALL_RELEASE, .handles = handle, .n_handles = 1};
	const int small = 1;
	unsigned n = 0;
	uint64_t id;

	client_lock(client);
	setsockopt(client->channel->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	while (link_tell(client, &call, &id) == 0)
		n++;
	client_unlock(client);
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_lt(n, LINK_MAX_ABANDONED / 2);
	ck_assert(link_is_open(client));
	return n;
}

/*
 * The socket is full: one can't even begin to send, and gives up; one stands behind it.
 * Returns what that one gets when the peer reads again.
 */
static int
who_stands_behind(uint32_t deadline_us)
{
	struct asker impatient, behind;
	struct mlkemclient_key *key;
	struct mlkemclient *client;
	uint8_t share[SHARE];
	struct peer peer;
	unsigned n;

	peer_start(&peer, script_sleeps);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &key), 0);
	n = fill_socket(client);
	/* A key that is freed now is released later, and costs nobody the connection. */
	mlkemclient_key_free(client, key);
	ck_assert_uint_eq(client->live->link.n_unwanted, 1);
	asker_start(&impatient, client, 2000000, WAITER_SENDING);
	asker_start(&behind, client, deadline_us, WAITER_TO_SEND);
	pthread_join(impatient.thread, NULL);
	ck_assert_int_eq(impatient.error, MLKEMCLIENT_E_TIMEOUT);
	ck_assert(link_is_open(client));
	atomic_store(&peer.counts->step, 1);
	pthread_join(behind.thread, NULL);
	client->deadline_us = PLENTY_US;
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->releases), n + 1);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 1);
	mlkemclient_free(client);
	peer_stop(&peer);
	return behind.error;
}

START_TEST(a_turn_is_passed_on)
{
	ck_assert_int_eq(who_stands_behind(PLENTY_US), 0);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: nobody tells the one behind that the way is free. */
START_TEST(a_turn_would_be_lost)
{
	setenv("MLKEMD_FAULT", "client-no-turn", 1);
	ck_assert_int_eq(who_stands_behind(5000000), MLKEMCLIENT_E_TIMEOUT);
}
END_TEST
#endif

/* Refuses single keys, so that each is a fallback. */
static void
script_exhausted(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		if (request->op_case == MLKEMD__V1__REQUEST__OP_GENERATE_KEYS)
			peer_refuse(
			    fd, request, MLKEMD__V1__STATUS__RESOURCE_EXHAUSTED);
		else
			peer_answer(fd, request);
	}
}

static void
fall_back(struct mlkemclient *client, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	ck_assert_int_eq(mlkemclient_ping(client), 0);
}

/* What the second Hello of one connection said, and the third. */
static void
told_fallbacks(uint64_t told[2])
{
	struct mlkemclient *client;
	struct peer peer;

	peer_start(&peer, script_exhausted);
	client = peer_client(&peer, false, PLENTY_US);
	fall_back(client, 3);
	ck_assert_uint_eq(atomic_load(&peer.counts->fallbacks), 0);
	for (int i = 0; i < 2; i++) {
		peer_clock_ahead_us += 61000000;
		fall_back(client, 4); /* the first of them tells what was before it */
		told[i] = atomic_load(&peer.counts->fallbacks);
		atomic_store(&peer.counts->fallbacks, 0);
	}
	/* Once a minute, and not if there is nothing new. */
	fall_back(client, 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->fallbacks), 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 1);
	mlkemclient_free(client);
	peer_stop(&peer);
}

START_TEST(counts_are_told_on_a_living_connection)
{
	uint64_t told[2];

	told_fallbacks(told);
	ck_assert_uint_eq(told[0], 4);
	ck_assert_uint_eq(told[1], 4);
}
END_TEST

/* Ends the connection at the second Hello. */
static void
script_one_hello(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL &&
	       request->op_case != MLKEMD__V1__REQUEST__OP_HELLO) {
		if (request->op_case == MLKEMD__V1__REQUEST__OP_GENERATE_KEYS)
			peer_refuse(
			    fd, request, MLKEMD__V1__STATUS__RESOURCE_EXHAUSTED);
		else
			peer_answer(fd, request);
	}
}

/* What was not heard is told to whoever is there next. */
START_TEST(counts_outlive_their_connection)
{
	struct mlkemclient *client;
	struct peer peer;

	peer_start(&peer, script_one_hello);
	client = peer_client(&peer, false, PLENTY_US);
	fall_back(client, 3);
	peer_clock_ahead_us += 61000000;
	fall_back(client, 1);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 2);
	ck_assert_uint_eq(atomic_load(&peer.counts->fallbacks), 4);
	ck_assert_uint_eq(client->live->untold.fallbacks, 0);
	ck_assert_uint_eq(client->live->telling.fallbacks, 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: told at the next connection, which may never be. */
START_TEST(counts_would_wait)
{
	uint64_t told[2];

	setenv("MLKEMD_FAULT", "client-tells-once", 1);
	told_fallbacks(told);
	ck_assert_uint_eq(told[0] + told[1], 0);
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("late");
	TCase *tc = tcase_create("late");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, late_keys_are_released);
	tcase_add_test(tc, a_turn_is_passed_on);
	tcase_add_test(tc, counts_are_told_on_a_living_connection);
	tcase_add_test(tc, counts_outlive_their_connection);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, late_keys_would_stay);
	tcase_add_test(tc, a_turn_would_be_lost);
	tcase_add_test(tc, counts_would_wait);
#endif
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
