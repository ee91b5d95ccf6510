/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of several threads on one handle, and a fork while another thread is in it. */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

#define HYBRID    MLKEMCLIENT_X25519MLKEM768
#define SHARE     1216
#define CT        1120
#define SECRET    64
#define PLENTY_US 20000000u
#define N_THREADS 8

struct caller {
	pthread_t thread;
	struct mlkemclient *client;
	uint32_t tag;
	unsigned n_calls, n_good, n_foreign;
	int error;
	uint64_t took_us;
};

static void *
encaps_all(void *arg)
{
	struct caller *caller = arg;
	uint8_t share[SHARE], ct[CT], secret[SECRET];
	uint64_t start = peer_now_us();

	for (unsigned i = 0; i < caller->n_calls; i++) {
		uint32_t tag = caller->tag + i;

		for (size_t j = 0; j < sizeof(share); j++)
			share[j] = (uint8_t)(tag >> (8 * (j % 4)) ^ j % 32);
		caller->error = mlkemclient_encaps(
		    caller->client, HYBRID, share, SHARE, ct, CT, secret, SECRET);
		if (caller->error != 0)
			break;
		if (peer_secret_matches(secret, SECRET, share))
			caller->n_good++;
		else
			caller->n_foreign++;
	}
	caller->took_us = peer_now_us() - start;
	return NULL;
}

static void
start_caller(struct caller *caller)
{
	ck_assert_int_eq(pthread_create(&caller->thread, NULL, encaps_all, caller), 0);
}

static bool
more_comes(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 1) > 0;
}

/* Takes what has been asked, and answers the last first. */
static void
script_backwards(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *held[N_THREADS];
	unsigned n = 0;

	peer_greet(fd, counts);
	for (;;) {
		if (n < N_THREADS && (n == 0 || more_comes(fd))) {
			held[n] = peer_read(fd, counts);
			if (held[n] == NULL)
				return;
			n++;
			continue;
		}
		if (n > 1)
			atomic_fetch_add(&counts->step, 1);
		while (n != 0) {
			peer_answer(fd, held[--n]);
			mlkemd__v1__request__free_unpacked(held[n], NULL);
		}
	}
}

/* Returns how many secrets were another's. */
static unsigned
rounds_of_all(unsigned n_calls, unsigned *n_overlapsp)
{
	struct caller callers[N_THREADS];
	struct mlkemclient *client;
	unsigned n_foreign = 0, n_errors = 0;
	struct peer peer;

	peer_start(&peer, script_backwards);
	client = peer_client(&peer, true, PLENTY_US);
	for (unsigned i = 0; i < N_THREADS; i++) {
		callers[i] = (struct caller){
		    .client = client, .tag = (i + 1) << 24, .n_calls = n_calls};
		start_caller(&callers[i]);
	}
	for (unsigned i = 0; i < N_THREADS; i++) {
		pthread_join(callers[i].thread, NULL);
		n_errors += callers[i].error != 0;
		n_foreign += callers[i].n_foreign;
	}
	/* An answer that was given to another leaves one that nobody asked for. */
	ck_assert(n_errors == 0 || n_foreign != 0);
	*n_overlapsp = atomic_load(&peer.counts->step);
	ck_assert_ptr_null(client->live->link.waiters);
	ck_assert_ptr_null(client->live->link.leader);
	mlkemclient_free(client);
	peer_stop(&peer);
	return n_foreign;
}

START_TEST(each_gets_its_own_answer)
{
	unsigned n_overlaps;

	ck_assert_uint_eq(rounds_of_all(300, &n_overlaps), 0);
	ck_assert_uint_gt(n_overlaps, 0);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: answers that go to another asker are noticed. */
START_TEST(swapped_answers_are_noticed)
{
	unsigned n_foreign = 0, n_overlaps;

	setenv("MLKEMD_FAULT", "client-answers-swapped", 1);
	for (int i = 0; i < 20 && n_foreign == 0; i++)
		n_foreign = rounds_of_all(20, &n_overlaps);
	ck_assert_uint_gt(n_foreign, 0);
}
END_TEST
#endif

/* The first question is never answered; the second when the test says so. */
static void
script_second_only(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *second;

	peer_greet(fd, counts);
	(void)peer_read(fd, counts);
	second = peer_read(fd, counts);
	while (atomic_load(&counts->step) == 0)
		usleep(1000);
	peer_answer(fd, second);
	(void)peer_read(fd, counts);
}

static void
wait_for_requests(const struct peer *peer, unsigned n)
{
	for (int i = 0; i < 20000 && atomic_load(&peer->counts->requests) < n; i++)
		usleep(1000);
	ck_assert_uint_ge(atomic_load(&peer->counts->requests), n);
}

static void *
ping_once(void *arg)
{
	struct caller *caller = arg;
	uint64_t start = peer_now_us();

	caller->error = mlkemclient_ping(caller->client);
	caller->took_us = peer_now_us() - start;
	return NULL;
}

/* Who leads gives up, after two seconds; what the other one waited, in us. */
static uint64_t
leader_gives_up(uint32_t other_deadline_us)
{
	struct caller first = {.tag = 1, .n_calls = 1}, second = {0};
	struct peer peer;

	peer_start(&peer, script_second_only);
	first.client = peer_client(&peer, false, other_deadline_us);
	first.client->daemon_deadline_us = 2000000;
	second.client = first.client;
	start_caller(&first);
	wait_for_requests(&peer, 2);
	ck_assert_int_eq(pthread_create(&second.thread, NULL, ping_once, &second), 0);
	wait_for_requests(&peer, 3);
	/* It is worked here then, on a share that is no key. */
	pthread_join(first.thread, NULL);
	ck_assert_int_eq(first.error, MLKEMCLIENT_E_BAD_SHARE);
	atomic_store(&peer.counts->step, 1);
	pthread_join(second.thread, NULL);
	ck_assert_int_eq(second.error, 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 1);
	mlkemclient_free(first.client);
	peer_stop(&peer);
	return second.took_us;
}

START_TEST(another_leads_when_the_leader_gives_up)
{
	ck_assert_uint_lt(leader_gives_up(PLENTY_US), PLENTY_US);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: with nobody at the socket the answer is found at the deadline only. */
START_TEST(nobody_would_lead)
{
	setenv("MLKEMD_FAULT", "client-no-handover", 1);
	ck_assert_uint_ge(leader_gives_up(6000000), 6000000);
}
END_TEST
#endif

/* The connection ends under all of them: they share the next one. */
static void
script_some_jobs(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	for (int i = 0; i < 50 && (request = peer_read(fd, counts)) != NULL; i++)
		peer_answer(fd, request);
}

START_TEST(lost_connections_are_shared_too)
{
	struct caller callers[N_THREADS];
	struct mlkemclient *client;
	struct peer peer;

	peer_start(&peer, script_some_jobs);
	client = peer_client(&peer, false, PLENTY_US);
	for (unsigned i = 0; i < N_THREADS; i++) {
		callers[i] = (struct caller){
		    .client = client, .tag = (i + 1) << 24, .n_calls = 200};
		start_caller(&callers[i]);
	}
	for (unsigned i = 0; i < N_THREADS; i++) {
		pthread_join(callers[i].thread, NULL);
		/* Lost twice in a row it is worked here, on a share that is no key. */
		ck_assert(callers[i].error == 0 ||
			  callers[i].error == MLKEMCLIENT_E_BAD_SHARE);
		ck_assert_uint_eq(callers[i].n_foreign, 0);
	}
	ck_assert_uint_ge(atomic_load(&peer.counts->connections), 2);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* What the thread does until told, for the other to fork in its midst. */
struct holder {
	pthread_t thread;
	struct mlkemclient *client;
	bool in_kem;
	int ready[2], done[2];
};

static void *
hold(void *arg)
{
	struct holder *holder = arg;
	struct bench *bench = NULL;
	char byte = 'r';

	if (holder->in_kem)
		bench = bench_take(holder->client);
	else
		client_lock(holder->client);
	ck_assert_int_eq(write(holder->ready[1], &byte, 1), 1);
	ck_assert_int_eq(read(holder->done[0], &byte, 1), 1);
	if (holder->in_kem)
		bench_give(holder->client, bench, 0);
	else
		client_unlock(holder->client);
	return NULL;
}

static void
holder_start(struct holder *holder, struct mlkemclient *client, bool in_kem)
{
	char byte;

	holder->client = client;
	holder->in_kem = in_kem;
	ck_assert_int_eq(pipe(holder->ready), 0);
	ck_assert_int_eq(pipe(holder->done), 0);
	ck_assert_int_eq(pthread_create(&holder->thread, NULL, hold, holder), 0);
	ck_assert_int_eq(read(holder->ready[0], &byte, 1), 1);
}

static void
holder_stop(struct holder *holder)
{
	ck_assert_int_eq(write(holder->done[1], "d", 1), 1);
	pthread_join(holder->thread, NULL);
	for (int i = 0; i < 2; i++) {
		close(holder->ready[i]);
		close(holder->done[i]);
	}
}

/* Ends a child: 0 if the handle works in it, in the daemon and here. */
static void
use_in_child(struct mlkemclient *client, const struct kem *parents, bool in_kem)
{
	uint8_t share[SHARE], ct[CT], secret[SECRET];
	struct mlkemclient_key *key;

	if (peer_encaps(client, 77) != 0)
		_exit(1);
	client->route = MLKEMCLIENT_ROUTE_LOCAL;
	if (mlkemclient_keygen(client, HYBRID, share, SHARE, &key) != 0 ||
	    mlkemclient_encaps(client, HYBRID, share, SHARE, ct, CT, secret, SECRET) !=
		0)
		_exit(2);
	mlkemclient_key_free(client, key);
	if ((client->kem == parents) == in_kem)
		_exit(3);
	mlkemclient_free(client);
	_exit(0);
}

/* The status of a child forked while another thread holds the lock, or works. */
static int
fork_amid(bool in_kem, unsigned patience_s)
{
	struct mlkemclient *client;
	struct bench *bench;
	struct holder holder;
	struct peer peer;
	int status;
	pid_t pid;

	peer_start(&peer, peer_honest);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(peer_encaps(client, 1), 0);
	bench = bench_take(client); /* opens the kem */
	bench_give(client, bench, 0);
	holder_start(&holder, client, in_kem);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		signal(SIGALRM, SIG_DFL); /* Check has a handler */
		alarm(patience_s);
		use_in_child(client, client->kem, in_kem);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	holder_stop(&holder);
	ck_assert_int_eq(peer_encaps(client, 2), 0);
	mlkemclient_free(client);
	peer_stop(&peer);
	return status;
}

START_TEST(fork_while_the_lock_is_held)
{
	ck_assert_int_eq(fork_amid(false, 60), 0);
}
END_TEST

/* Its libcrypto may have been left locked: a child opens another. */
START_TEST(fork_while_a_thread_works)
{
	ck_assert_int_eq(fork_amid(true, 60), 0);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: with the parent's memory the child waits for a thread that it lacks. */
START_TEST(fork_would_deadlock)
{
	int status;

	setenv("MLKEMD_FAULT", "client-no-pid-check", 1);
	status = fork_amid(false, 2);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}
END_TEST
#endif

/* What struct live relies on. */
START_TEST(zero_is_an_unlocked_mutex)
{
	static const pthread_mutex_t zero;
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	ck_assert_mem_eq(&zero, &fresh, sizeof(fresh));
}
END_TEST

static const char *
fail_one(struct mlkemclient *client)
{
	uint8_t share[SHARE] = {0}, ct[CT], secret[SECRET];
	char text[16];

	/* what another thread's call had to say is not this one's */
	if (*mlkemclient_last_message(client) != '\0')
		return "foreign message";
	if (mlkemclient_encaps(client, HYBRID, share, 1215, ct, CT, secret, SECRET) !=
		MLKEMCLIENT_E_LENGTH ||
	    strstr(mlkemclient_last_message(client), "1215") == NULL)
		return "no message of its own";
	memset(text, 'x', sizeof(text));
	mlkemclient_copy_message(client, text, sizeof(text));
	if (strlen(text) != sizeof(text) - 1)
		return "copy is not cut";
	return NULL;
}

static void *
fail_elsewhere(void *arg)
{
	return (void *)(uintptr_t)fail_one(arg);
}

START_TEST(each_thread_has_its_message)
{
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient *client, *other;
	pthread_t thread;
	void *wrong;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	ck_assert_int_eq(mlkemclient_new(&other, &opts), 0);
	ck_assert_int_eq(
	    mlkemclient_set_kdf(client, 5, NULL, 0, NULL, 0, 1), MLKEMCLIENT_E_INVALID);
	ck_assert_ptr_nonnull(strstr(mlkemclient_last_message(client), "hash 5"));
	ck_assert_str_eq(mlkemclient_last_message(other), "");
	ck_assert_int_eq(pthread_create(&thread, NULL, fail_elsewhere, client), 0);
	pthread_join(thread, &wrong);
	ck_assert_msg(wrong == NULL, "%s", (const char *)wrong);
	ck_assert_ptr_nonnull(strstr(mlkemclient_last_message(client), "hash 5"));
	mlkemclient_free(client);
	mlkemclient_free(other);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("threads");
	TCase *tc = tcase_create("threads");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, each_gets_its_own_answer);
	tcase_add_test(tc, another_leads_when_the_leader_gives_up);
	tcase_add_test(tc, lost_connections_are_shared_too);
	tcase_add_test(tc, fork_while_the_lock_is_held);
	tcase_add_test(tc, fork_while_a_thread_works);
	tcase_add_test(tc, zero_is_an_unlocked_mutex);
	tcase_add_test(tc, each_thread_has_its_message);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, swapped_answers_are_noticed);
	tcase_add_test(tc, nobody_would_lead);
	tcase_add_test(tc, fork_would_deadlock);
#endif
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
