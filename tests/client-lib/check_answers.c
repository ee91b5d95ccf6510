/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Answers that come late, in pieces, or not at all: whatever the peer does, a call ends
 * in time with its own result or with an error and zeros.
 */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "peer.h"

#define HYBRID       MLKEMCLIENT_X25519MLKEM768
#define SHARE        1216
#define CT           1120
#define SECRET       64
#define PLENTY_US    30000000u
#define LENGTH_OF(a) (sizeof(a) / sizeof((a)[0]))

/*
 * The library's send and recv come by here (ld --wrap): one byte at a time, and every
 * third call is as if a signal or a full buffer had come between.
 */
static bool drip;
static unsigned n_io;
ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __real_recv(int fd, void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t len, int flags);

static bool
io_disturbed(void)
{
	if (++n_io % 3 != 0)
		return false;
	errno = n_io % 2 ? EINTR : EAGAIN;
	return true;
}

ssize_t
__wrap_send(int fd, const void *data, size_t len, int flags)
{
	ck_assert(flags & MSG_NOSIGNAL);
	if (drip && io_disturbed())
		return -1;
	return __real_send(fd, data, drip && len > 1 ? 1 : len, flags);
}

ssize_t
__wrap_recv(int fd, void *data, size_t len, int flags)
{
	if (drip && io_disturbed())
		return -1;
	return __real_recv(fd, data, drip && len > 1 ? 1 : len, flags);
}

/* Every second answer waits for the next request and comes just before that one's. */
static void
script_late(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;
	uint8_t *held = NULL;
	size_t held_len = 0;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		if (held == NULL) {
			held = peer_reply(request, NULL, &held_len);
			continue;
		}
		peer_write(fd, held, held_len);
		free(held);
		held = NULL;
		peer_answer(fd, request);
	}
}

struct tally {
	unsigned n_good, n_foreign, n_timeouts;
};

/* A busy machine keeps a short deadline seldom: then a longer one is tried. */
enum { LATE_US = 3000, LATE_MAX_US = 400000 };

static struct tally
late_rounds(unsigned n, uint32_t deadline_us)
{
	struct peer peer;
	struct mlkemclient *client;
	struct mlkemclient_counts counts;
	struct tally tally = {0};

	peer_start(&peer, script_late);
	client = peer_client(&peer, true, deadline_us);
	for (unsigned i = 0; i < n; i++) {
		breaker_reset(&client->live->breaker);
		switch (peer_encaps(client, i * 2654435761u)) {
		case 0:
			tally.n_good++;
			break;
		case PEER_FOREIGN:
			tally.n_foreign++;
			break;
		}
	}
	mlkemclient_get_counts(client, &counts);
	tally.n_timeouts = (unsigned)counts.timeouts;
	mlkemclient_free(client);
	peer_stop(&peer);
	return tally;
}

START_TEST(late_answers_are_dropped)
{
	unsigned n_good = 0, n_timeouts = 0, n = 1000;

	for (uint32_t us = LATE_US; n_good < 20 && us < LATE_MAX_US; us *= 4) {
		struct tally tally = late_rounds(n, us);

		ck_assert_uint_eq(tally.n_foreign, 0);
		n_good += tally.n_good;
		n_timeouts += tally.n_timeouts;
		n = n > 160 ? n / 4 : 40;
	}
	ck_assert_uint_ge(n_good, 20);
	ck_assert_uint_ge(n_timeouts, 300);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: a library that takes any answer gives a foreign secret away. */
START_TEST(late_answers_taken_are_noticed)
{
	unsigned n_foreign = 0;

	setenv("MLKEMD_FAULT", "client-any-id", 1);

	/* On a busy machine an answer may come so late that nobody waits any more. */
	for (uint32_t us = LATE_US; n_foreign == 0 && us < LATE_MAX_US; us += us / 2)
		n_foreign = late_rounds(20, us).n_foreign;
	ck_assert_uint_gt(n_foreign, 0);
}
END_TEST
#endif

static void
script_half_then_silence(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;
	uint8_t *frame;
	size_t len;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		frame = peer_reply(request, NULL, &len);
		if (atomic_fetch_add(&counts->step, 1) == 0)
			peer_write(fd, frame, len / 2);
		else
			peer_write(fd, frame, len);
	}
}

START_TEST(silence_inside_a_frame_closes)
{
	struct peer peer;
	struct mlkemclient *client;

	peer_start(&peer, script_half_then_silence);
	client = peer_client(&peer, true, 1500000);
	ck_assert_int_eq(peer_encaps(client, 1), MLKEMCLIENT_E_TIMEOUT);
	ck_assert(!link_is_open(client));
	breaker_reset(&client->live->breaker);
	client->deadline_us = PLENTY_US;
	ck_assert_int_eq(peer_encaps(client, 2), 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 2);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* One answer, and no more. */
static void
script_silent(int fd, struct peer_counts *counts)
{
	peer_greet(fd, counts);
	peer_answer(fd, peer_read(fd, counts));
	while (peer_read(fd, counts) != NULL)
		continue;
}

START_TEST(third_silence_in_a_row_closes)
{
	struct peer peer;
	struct mlkemclient *client;
	struct mlkemclient_counts counts;
	unsigned n = 0;

	peer_start(&peer, script_silent);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	client->deadline_us = 100000;
	/* On a busy machine some are never sent: those are no silence of the peer. */
	do
		ck_assert_int_eq(mlkemclient_ping(client), MLKEMCLIENT_E_TIMEOUT);
	while (++n < 100 && link_is_open(client));
	ck_assert(!link_is_open(client));
	ck_assert_uint_ge(n, 3);
	peer_wait(&peer.counts->ended, 1);
	ck_assert_uint_eq(atomic_load(&peer.counts->requests), 2 + 3);
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.timeouts, n);
	ck_assert_uint_eq(counts.connects, 1);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

static void
on_alarm(int sig)
{
	(void)sig;
}

START_TEST(bytes_may_come_one_at_a_time)
{
	const struct itimerval every_ms = {{0, 1000}, {0, 1000}},
			       off = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
	struct peer peer;
	struct mlkemclient *client;
	struct mlkemclient_counts counts;

	peer_start(&peer, peer_honest);
	client = peer_client(&peer, true, PLENTY_US);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every_ms, NULL);
	drip = true;
	for (uint32_t i = 0; i < 100; i++)
		ck_assert_int_eq(peer_encaps(client, i * 40503u), 0);
	drip = false;
	for (uint32_t i = 0; i < 10000; i++)
		ck_assert_int_eq(peer_encaps(client, i * 40503u), 0);
	setitimer(ITIMER_REAL, &off, NULL);
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.connects, 1);
	ck_assert_uint_eq(counts.by_daemon, 10100);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/*
 * Holds two large answers back, and writes them only when the third request begins to
 * come, before reading it: both sides then write to each other.
 */
static void
script_writes_before_it_reads(int fd, struct peer_counts *counts)
{
	const int small = 1;
	uint8_t *held[2], first;
	size_t held_len[2];

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	peer_greet(fd, counts);
	for (int i = 0; i < 2; i++)
		held[i] = peer_reply(peer_read(fd, counts), NULL, &held_len[i]);
	if (recv(fd, &first, 1, MSG_PEEK) != 1)
		return;
	for (int i = 0; i < 2; i++)
		peer_write(fd, held[i], held_len[i]);
	peer_answer(fd, peer_read(fd, counts));
	peer_read(fd, counts);
}

static int
encaps_64(struct mlkemclient *client)
{
	static uint8_t shares[64][SHARE], cts[64][CT], secrets[64][SECRET];
	struct mlkemclient_encaps_item items[64];
	int err;

	for (int i = 0; i < 64; i++) {
		memset(shares[i], i + 1, SHARE);
		items[i] = (struct mlkemclient_encaps_item){
		    shares[i], SHARE, cts[i], secrets[i], 1};
	}
	err = mlkemclient_encaps_batch(client, HYBRID, items, 64);
	for (int i = 0; i < 64 && err == 0; i++)
		ck_assert(items[i].error == 0 &&
			  peer_secret_matches(secrets[i], SECRET, shares[i]));
	return err;
}

/* deadline_us: of the third call, the one that both sides write in. */
static int
both_sides_write(uint32_t deadline_us)
{
	const int small = 1;
	struct peer peer;
	struct mlkemclient *client;
	int err;

	peer_start(&peer, script_writes_before_it_reads);
	client = peer_client(&peer, true, 1500000);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(encaps_64(client), MLKEMCLIENT_E_TIMEOUT);
		breaker_reset(&client->live->breaker);
		if (i == 0)
			setsockopt(client->channel->fd, SOL_SOCKET, SO_SNDBUF, &small,
			    sizeof(small));
	}
	client->deadline_us = deadline_us;
	err = encaps_64(client);
	mlkemclient_free(client);
	peer_stop(&peer);
	return err;
}

START_TEST(both_sides_writing_is_no_deadlock)
{
	ck_assert_int_eq(both_sides_write(30000000), 0);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: a library that only waits for room to send waits for ever. */
START_TEST(both_sides_writing_would_be_a_deadlock)
{
	setenv("MLKEMD_FAULT", "client-send-blind", 1);
	ck_assert_int_eq(both_sides_write(2000000), MLKEMCLIENT_E_TIMEOUT);
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("answers");
	TCase *tc = tcase_create("answers");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, late_answers_are_dropped);
	tcase_add_test(tc, silence_inside_a_frame_closes);
	tcase_add_test(tc, third_silence_in_a_row_closes);
	tcase_add_test(tc, bytes_may_come_one_at_a_time);
	tcase_add_test(tc, both_sides_writing_is_no_deadlock);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, late_answers_taken_are_noticed);
	tcase_add_test(tc, both_sides_writing_would_be_a_deadlock);
#endif
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
