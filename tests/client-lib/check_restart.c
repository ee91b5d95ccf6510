/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The real daemon is restarted, killed, stopped, and shared by children. */
#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"
#include "rig.h"

#define PLENTY_US 30000000u

static uint8_t share[1216], ct[1120], sent[64], received[64];

START_TEST(restart_between_calls)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_counts counts;
	struct mlkemclient_key *key;
	struct mlkemclient *client;
	struct daemon daemon;

	daemon_start(&daemon, NULL);
	client = daemon_client(&daemon, true, PLENTY_US);
	for (int round = 0; round < 5; round++) {
		ck_assert_int_eq(rig_exchange(client, client, alg, false), 0);
		ck_assert_int_eq(mlkemclient_keygen(client, alg, share, 1216, &key), 0);
		daemon_kill(&daemon);
		if (round % 2 == 1)
			ck_assert_int_eq(rig_exchange(client, client, alg, false),
			    MLKEMCLIENT_E_UNAVAILABLE);
		daemon_run(&daemon);
		ck_assert_int_eq(
		    mlkemclient_decaps(client, key, ct, 1120, received, 64),
		    MLKEMCLIENT_E_KEY_GONE);
		ck_assert(is_zero(received, 64));
		mlkemclient_key_free(client, key);
		ck_assert_int_eq(rig_exchange(client, client, alg, false), 0);
	}
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.connects, 6);
	ck_assert_uint_eq(counts.timeouts, 0);
	mlkemclient_free(client);
	daemon_stop(&daemon);
}
END_TEST

/*
 * kill -9 and restart while a child goes on exchanging keys. With require its calls may
 * fail for want of a daemon or of a key, and for nothing else; without, only the keys
 * that died with the daemon may fail.
 */
static void
go_on(const struct daemon *daemon, bool require, const atomic_bool *stop)
{
	struct mlkemclient *client = daemon_client(daemon, require, PLENTY_US);
	unsigned n_good = 0;

	/* However slow the machine is, a good many have to go well. */
	while (!atomic_load(stop) || n_good <= 100) {
		int err =
		    rig_exchange(client, client, MLKEMCLIENT_X25519MLKEM768, false);

		n_good += err == 0;
		if (err == MLKEMCLIENT_E_UNAVAILABLE && require)
			usleep(1000);
		else if (err != 0 && err != MLKEMCLIENT_E_KEY_GONE)
			_exit(1);
	}
	client->require = true;
	if (rig_exchange(client, client, MLKEMCLIENT_X25519MLKEM768, false) != 0)
		_exit(2);
	mlkemclient_free(client);
	_exit(0);
}

START_TEST(restarts_under_use)
{
	atomic_bool *stop = mmap(NULL, sizeof(*stop), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct daemon daemon;
	int status;
	pid_t pid;

	ck_assert(stop != MAP_FAILED);
	daemon_start(&daemon, NULL);
	pid = fork();
	if (pid == 0)
		go_on(&daemon, _i == 0, stop);
	for (int i = 0; i < 5; i++) {
		usleep(150000 + rig_draw(50000));
		daemon_kill(&daemon);
		if (i == 2)
			usleep(300000);
		daemon_run(&daemon);
	}
	usleep(200000);
	atomic_store(stop, true);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	munmap(stop, sizeof(*stop));
	ck_assert_msg(status == 0, "the client ended with %#x", status);
	daemon_stop(&daemon);
}
END_TEST

START_TEST(stopped_daemon)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_key *key;
	struct mlkemclient *client, *soft;
	struct daemon daemon;
	uint64_t start;
	int status;

	daemon_start(&daemon, NULL);
	client = daemon_client(&daemon, true, PLENTY_US);
	soft = daemon_client(&daemon, false, PLENTY_US);
	ck_assert_int_eq(mlkemclient_keygen(client, alg, share, 1216, &key), 0);
	ck_assert_int_eq(
	    mlkemclient_encaps(client, alg, share, 1216, ct, 1120, sent, 64), 0);
	ck_assert_int_eq(rig_exchange(soft, soft, alg, false), 0);
	kill(daemon.pid, SIGSTOP);
	ck_assert_int_eq(waitpid(daemon.pid, &status, WUNTRACED), daemon.pid);
	client->deadline_us = 500000;
	soft->daemon_deadline_us = 500000;

	start = rig_now_us();
	ck_assert_int_eq(mlkemclient_ping(client), MLKEMCLIENT_E_TIMEOUT);
	ck_assert_uint_ge(rig_now_us() - start, 500000);
	client->live->breaker.until_us += PLENTY_US; /* and does not end here */
	ck_assert_int_eq(
	    rig_exchange(client, client, alg, false), MLKEMCLIENT_E_UNAVAILABLE);
	ck_assert_uint_eq(client->live->counts.timeouts, 1);
	breaker_reset(&client->live->breaker);
	/* goes on here, late once, and then by a probe a second at most */
	start = rig_now_us();
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(rig_exchange(soft, soft, alg, false), 0);
	ck_assert_uint_ge(soft->live->counts.timeouts, 1);
	ck_assert_uint_le(
	    soft->live->counts.timeouts, 1 + (rig_now_us() - start) / 1000000);

	/* Awake again: late answers are dropped, the key of before still works. */
	kill(daemon.pid, SIGCONT);
	client->deadline_us = PLENTY_US;
	soft->daemon_deadline_us = PLENTY_US;
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_int_eq(mlkemclient_decaps(client, key, ct, 1120, received, 64), 0);
	ck_assert_int_eq(mlkemclient_ping(soft), 0);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(rig_exchange(client, client, alg, false), 0);
		ck_assert_int_eq(rig_exchange(soft, soft, alg, false), 0);
	}
	ck_assert_uint_eq(client->live->counts.connects, 1);
	mlkemclient_key_free(client, key);
	mlkemclient_free(client);
	mlkemclient_free(soft);
	daemon_stop(&daemon);
}
END_TEST

START_TEST(children_of_one_handle)
{
	struct mlkemclient *client;
	struct daemon daemon;
	pid_t pids[8];

	daemon_start(&daemon, NULL);
	client = daemon_client(&daemon, true, PLENTY_US);
	ck_assert_int_eq(
	    rig_exchange(client, client, MLKEMCLIENT_ML_KEM_512, false), 0);
	for (int i = 0; i < 8; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			for (int round = 0; round < 500; round++)
				if (rig_exchange(client, client, MLKEMCLIENT_ML_KEM_512,
					false) != 0)
					_exit(1);
			_exit(0);
		}
	}
	for (int i = 0; i < 8; i++) {
		int status;

		for (int round = 0; round < 50; round++)
			ck_assert_int_eq(
			    rig_exchange(client, client, MLKEMCLIENT_ML_KEM_512, false),
			    0);
		waitpid(pids[i], &status, 0);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_uint_eq(client->live->counts.connects, 1);
	mlkemclient_free(client);
	daemon_stop(&daemon);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("restart");
	TCase *tc = tcase_create("restart");

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 180);
	tcase_add_test(tc, restart_between_calls);
	tcase_add_loop_test(tc, restarts_under_use, 0, 2);
	tcase_add_test(tc, stopped_daemon);
	tcase_add_test(tc, children_of_one_handle);
	return rig_main(argc, argv, suite);
}
