/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Eight threads share one handle while the real daemon is killed, frozen and started
 * again under them. Whatever happens, a secret is the one of its own exchange, and what
 * fails is a key that was in a daemon.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"
#include "rig.h"

#define N_THREADS 8
#define SHARE     1216
#define CT        1120
#define SECRET    64

struct worker {
	pthread_t thread;
	struct mlkemclient *client;
	const atomic_bool *stop;
	unsigned n_good, n_gone, n_late, n_wrong;
	int error;
	char message[128];
};

/* As rig_exchange(), on its own stack. */
static int
exchange(struct mlkemclient *client, bool *equalp)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	uint8_t share[SHARE], ct[CT], sent[SECRET], received[SECRET];
	struct mlkemclient_key *key = NULL;
	int err;

	*equalp = false;
	err = mlkemclient_keygen(client, alg, share, SHARE, &key);
	if (err != 0)
		return err;
	err = mlkemclient_encaps(client, alg, share, SHARE, ct, CT, sent, SECRET);
	if (err == 0) {
		err = mlkemclient_decaps(client, key, ct, CT, received, SECRET);
		if (err == 0)
			*equalp = memcmp(sent, received, SECRET) == 0;
		else if (err != MLKEMCLIENT_E_KEY_GONE && err != MLKEMCLIENT_E_TIMEOUT)
			err = MLKEMCLIENT_E_INTERNAL;
	} else {
		err = MLKEMCLIENT_E_INTERNAL; /* nothing that starts may fail */
	}
	mlkemclient_key_free(client, key);
	return err;
}

static atomic_bool wrong_seen;

static void *
work(void *arg)
{
	struct worker *worker = arg;

	while (!atomic_load(worker->stop)) {
		bool equal;
		int err = exchange(worker->client, &equal);

		if (err == 0 && equal) {
			worker->n_good++;
		} else if (err == 0) {
			worker->n_wrong++;
			atomic_store(&wrong_seen, true);
		} else if (err == MLKEMCLIENT_E_KEY_GONE) {
			worker->n_gone++;
		} else if (err == MLKEMCLIENT_E_TIMEOUT) {
			worker->n_late++;
		} else {
			worker->error = err;
			mlkemclient_copy_message(
			    worker->client, worker->message, sizeof(worker->message));
			break;
		}
	}
	return NULL;
}

static void
workers_start(struct worker *workers, struct mlkemclient *client, atomic_bool *stop)
{
	for (int i = 0; i < N_THREADS; i++) {
		workers[i] = (struct worker){.client = client, .stop = stop};
		ck_assert_int_eq(
		    pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
}

static unsigned
workers_end(struct worker *workers, atomic_bool *stop)
{
	unsigned n_good = 0, n_wrong = 0, n_gone = 0, n_late = 0;

	atomic_store(stop, true);
	for (int i = 0; i < N_THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		ck_assert_msg(workers[i].error == 0, "thread %d: %d %s", i,
		    workers[i].error, workers[i].message);
		ck_assert_uint_gt(workers[i].n_good, 0);
		n_good += workers[i].n_good;
		n_wrong += workers[i].n_wrong;
		n_gone += workers[i].n_gone;
		n_late += workers[i].n_late;
	}
	printf("%u good, %u keys gone, %u late\n", n_good, n_gone, n_late);
	return n_wrong;
}

static void
freeze(const struct daemon *daemon)
{
	int status;

	kill(daemon->pid, SIGSTOP);
	ck_assert_int_eq(waitpid(daemon->pid, &status, WUNTRACED), daemon->pid);
	usleep(100000);
	kill(daemon->pid, SIGCONT);
}

static struct mlkemclient *
shared_client(
    const struct daemon *daemon, enum mlkemclient_route route, unsigned leases)
{
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = daemon->path,
	    .route = route,
	    .leases = leases,
	    .deadline_us = 20000000,
	    .daemon_deadline_us = 50000};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	/* The first calls need not find the time to connect, too. */
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	client->deadline_us = 1000000;
	return client;
}

static unsigned
n_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static const struct storm {
	enum mlkemclient_route route;
	unsigned leases;
} storms[] = {
    {MLKEMCLIENT_ROUTE_DAEMON, 0},
    {MLKEMCLIENT_ROUTE_DAEMON, 32},
    {MLKEMCLIENT_ROUTE_AUTO, 0},
};

/* A machine may be so busy that the daemon is left alone for a while at the start. */
static void
wait_for_daemon(const struct mlkemclient *client)
{
	struct mlkemclient_counts counts = {0};

	for (int i = 0; i < 12000 && counts.by_daemon == 0; i++) {
		usleep(10000);
		mlkemclient_get_counts(client, &counts);
	}
}

START_TEST(storm)
{
	unsigned n_rounds = getenv("MLKEMD_LONG") != NULL ? 60 : 2;
	struct worker workers[N_THREADS];
	struct mlkemclient_counts counts;
	struct mlkemclient *client;
	atomic_bool stop = false;
	struct daemon daemon;
	unsigned n_before;

	daemon_start(&daemon, NULL);
	n_before = n_descriptors();
	client = shared_client(&daemon, storms[_i].route, storms[_i].leases);
	workers_start(workers, client, &stop);
	if (storms[_i].route == MLKEMCLIENT_ROUTE_DAEMON)
		wait_for_daemon(client);
	for (unsigned round = 0; round < n_rounds; round++) {
		usleep(200000 + rig_draw(100000));
		daemon_kill(&daemon);
		usleep(rig_draw(100000));
		daemon_run(&daemon);
		usleep(200000 + rig_draw(100000));
		freeze(&daemon);
	}
	usleep(200000);
	ck_assert_uint_eq(workers_end(workers, &stop), 0);
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_gt(counts.by_local, 0);
	if (storms[_i].route == MLKEMCLIENT_ROUTE_DAEMON)
		ck_assert_uint_gt(counts.by_daemon, 0);
	mlkemclient_free(client);
	ck_assert_uint_eq(n_descriptors(), n_before);
	daemon_stop(&daemon);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: swapped answers do not go unnoticed among so many. */
START_TEST(swapped_answers_show)
{
	struct worker workers[N_THREADS];
	struct mlkemclient *client;
	atomic_bool stop = false;
	struct daemon daemon;
	unsigned n_wrong = 0;

	daemon_start(&daemon, NULL);
	setenv("MLKEMD_FAULT", "client-answers-swapped", 1);
	client = shared_client(&daemon, MLKEMCLIENT_ROUTE_DAEMON, 0);
	workers_start(workers, client, &stop);
	for (int i = 0; i < 1200 && !atomic_load(&wrong_seen); i++)
		usleep(100000);
	atomic_store(&stop, true);
	for (int i = 0; i < N_THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		n_wrong += workers[i].n_wrong;
	}
	ck_assert_uint_gt(n_wrong, 0);
	mlkemclient_free(client);
	unsetenv("MLKEMD_FAULT");
	daemon_stop(&daemon);
}
END_TEST
#endif

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("storm");
	TCase *tc = tcase_create("storm");

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 250);
	tcase_add_loop_test(tc, storm, 0, sizeof(storms) / sizeof(storms[0]));
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, swapped_answers_show);
#endif
	return rig_main(argc, argv, suite);
}
