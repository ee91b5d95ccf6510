/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Where a call is worked: by the daemon, by a second try of it, or here. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

#define ALG       MLKEMCLIENT_ML_KEM_768
#define SHARE     1184
#define CT        1088
#define PLENTY_US 5000000u

static uint8_t share[SHARE];

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

START_TEST(overload_is_worked_here)
{
	struct peer peer;
	struct mlkemclient *client;

	status_now = MLKEMD__V1__STATUS__RESOURCE_EXHAUSTED;
	peer_start(&peer, script_status);
	client = peer_client(&peer, false, PLENTY_US);
	for (unsigned i = 1; i <= 3; i++) {
		ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
		ck_assert_uint_eq(atomic_load(&peer.counts->jobs), i);
	}
	client->require = true;
	ck_assert_int_eq(peer_keygen_where(client), MLKEMCLIENT_E_EXHAUSTED);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* What is wrong with the input is wrong everywhere, and what is forbidden stays so. */
START_TEST(refused_input_is_not_worked_here)
{
	static const uint32_t statuses[] = {MLKEMD__V1__STATUS__BAD_SHARE,
	    MLKEMD__V1__STATUS__ZERO_X25519, MLKEMD__V1__STATUS__INVALID_REQUEST};
	struct peer peer;
	struct mlkemclient *client;
	struct mlkemclient_counts counts;
	uint8_t private_key[2400];

	status_now = statuses[_i];
	peer_start(&peer, script_status);
	client = peer_client(&peer, false, PLENTY_US);
	ck_assert_int_lt(peer_encaps(client, 1), 0);
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.by_local, 0);
	mlkemclient_free(client);
	peer_stop(&peer);

	status_now = MLKEMD__V1__STATUS__EXPORT_DISABLED;
	peer_start(&peer, script_status);
	client = peer_client(&peer, false, PLENTY_US);
	ck_assert_int_eq(mlkemclient_keygen_export(client, ALG, share, SHARE,
			     private_key, sizeof(private_key)),
	    MLKEMCLIENT_E_NO_EXPORT);
	ck_assert(is_zero(private_key, sizeof(private_key)));
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

static void
full_at_second_item(Mlkemd__V1__Response *response)
{
	static Mlkemd__V1__KeyItem full = MLKEMD__V1__KEY_ITEM__INIT;

	full.status = MLKEMD__V1__STATUS__RESOURCE_EXHAUSTED;
	response->keys->items[1] = &full;
}

static void
script_full_at_second(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		bool keys = request->op_case == MLKEMD__V1__REQUEST__OP_GENERATE_KEYS;
		size_t len;
		uint8_t *frame =
		    peer_reply(request, keys ? full_at_second_item : NULL, &len);

		peer_write(fd, frame, len);
	}
}

START_TEST(items_go_where_they_can)
{
	static uint8_t shares[3][SHARE], cts[3][CT], secrets[3][32];
	struct mlkemclient_keygen_item items[3] = {{0}};
	struct mlkemclient_decaps_item decaps[3] = {{0}};
	struct peer peer;
	struct mlkemclient *client;
	struct mlkemclient_counts counts;

	peer_start(&peer, script_full_at_second);
	client = peer_client(&peer, false, PLENTY_US);
	for (int i = 0; i < 3; i++)
		items[i].share = shares[i];
	ck_assert_int_eq(mlkemclient_keygen_batch(client, ALG, items, 3), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(items[i].error, 0);
		ck_assert(mlkemclient_key_in_daemon(items[i].key) == (i != 1));
		ck_assert(!is_zero(shares[i], SHARE));
		decaps[i] = (struct mlkemclient_decaps_item){
		    items[i].key, cts[i], CT, secrets[i], 1};
	}
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.by_daemon, 2);
	ck_assert_uint_eq(counts.by_local, 1);
	ck_assert_uint_eq(counts.fallbacks, 1);

	/* Keys of both kinds in one batch. */
	ck_assert_int_eq(mlkemclient_decaps_batch(client, ALG, decaps, 3), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(decaps[i].error, 0);
		ck_assert(peer_secret_matches(secrets[i], 32, cts[i]) == (i != 1));
		mlkemclient_key_free(client, items[i].key);
	}
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* Closes after each answered job, as a daemon that is restarted between calls. */
static void
script_one_job(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	request = peer_read(fd, counts);
	if (request != NULL)
		peer_answer(fd, request);
}

START_TEST(lost_connection_is_followed_by_one_new)
{
	static const uint8_t ciphertext[CT];
	struct mlkemclient_key *key;
	struct peer peer;
	struct mlkemclient *client;
	uint8_t secret[32];

	peer_start(&peer, script_one_job);
	client = peer_client(&peer, true, PLENTY_US);
	for (uint32_t i = 1; i <= 20; i++) {
		ck_assert_int_eq(peer_encaps(client, i), 0);
		ck_assert_uint_eq(atomic_load(&peer.counts->connections), i);
		ck_assert_uint_eq(atomic_load(&peer.counts->jobs), i);
	}
	/* The key of a lost connection is gone, without a new one. */
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &key), 0);
	usleep(20000);
	ck_assert_int_eq(mlkemclient_decaps(client, key, ciphertext, CT, secret, 32),
	    MLKEMCLIENT_E_KEY_GONE);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 21);
	/* And stays so on the next connection. */
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_int_eq(mlkemclient_decaps(client, key, ciphertext, CT, secret, 32),
	    MLKEMCLIENT_E_KEY_GONE);
	mlkemclient_key_free(client, key);
	ck_assert_uint_eq(atomic_load(&peer.counts->releases), 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

static void
script_no_job(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL &&
	       request->op_case == MLKEMD__V1__REQUEST__OP_PING)
		peer_answer(fd, request);
}

START_TEST(second_loss_is_the_end)
{
	struct peer peer;
	struct mlkemclient *client;

	peer_start(&peer, script_no_job);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(peer_encaps(client, 1), MLKEMCLIENT_E_UNAVAILABLE);
	ck_assert_uint_eq(atomic_load(&peer.counts->jobs), 1);
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_int_eq(peer_encaps(client, 1), MLKEMCLIENT_E_UNAVAILABLE);
	ck_assert_uint_eq(atomic_load(&peer.counts->jobs), 3);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 3);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

START_TEST(no_daemon_at_all)
{
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = "/tmp/mlkemd-there-is-nothing-here.sock",
	    .route = MLKEMCLIENT_ROUTE_DAEMON};
	struct mlkemclient *client;
	struct mlkemclient_counts counts;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.fallbacks, 1);
	ck_assert_uint_eq(counts.connects, 0);
	ck_assert_int_eq(mlkemclient_ping(client), MLKEMCLIENT_E_UNAVAILABLE);
	client->require = true;
	ck_assert_int_eq(peer_keygen_where(client), MLKEMCLIENT_E_UNAVAILABLE);
	ck_assert_ptr_nonnull(
	    strstr(mlkemclient_last_message(client), "No such file or directory"));
	mlkemclient_free(client);
}
END_TEST

START_TEST(fallbacks_are_told_in_hello)
{
	struct peer peer;
	struct mlkemclient *client;

	status_now = MLKEMD__V1__STATUS__RESOURCE_EXHAUSTED;
	peer_start(&peer, script_status);
	client = peer_client(&peer, false, PLENTY_US);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	ck_assert_uint_eq(atomic_load(&peer.counts->fallbacks), 0);
	link_close(client, LINK_E_LOST);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	ck_assert_uint_eq(atomic_load(&peer.counts->fallbacks), 5);
	link_close(client, LINK_E_LOST);
	ck_assert_int_eq(peer_keygen_where(client), PEER_BY_LOCAL);
	ck_assert_uint_eq(atomic_load(&peer.counts->fallbacks), 1);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

START_TEST(unused_keys_are_released)
{
	struct mlkemclient_key *key;
	struct peer peer;
	struct mlkemclient *client;

	peer_start(&peer, peer_honest);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &key), 0);
	mlkemclient_key_free(client, key);
	/* Nobody waits for that answer; it is there before the next one. */
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->releases), 1);
	ck_assert_uint_eq(client->live->link.n_abandoned, 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("route");
	TCase *tc = tcase_create("route");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, overload_is_worked_here);
	tcase_add_loop_test(tc, refused_input_is_not_worked_here, 0, 3);
	tcase_add_test(tc, items_go_where_they_can);
	tcase_add_test(tc, lost_connection_is_followed_by_one_new);
	tcase_add_test(tc, second_loss_is_the_end);
	tcase_add_test(tc, no_daemon_at_all);
	tcase_add_test(tc, fallbacks_are_told_in_hello);
	tcase_add_test(tc, unused_keys_are_released);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
