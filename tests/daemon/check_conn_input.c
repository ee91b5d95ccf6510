/* SPDX-License-Identifier: Apache-2.0 */
/* In which order a user's connections are read from when there is not room for all. */
#include <stdlib.h>
#include <sys/socket.h>

#include "conn_rig.h"

#define LARGE 78000u /* a message of 64 items has about as much */
#define SHORT 8000u
/* So few blocks that MANY can't have one each; still one large request's beside these. */
#define FEW  276u
#define MANY 240

static uint8_t *request;
static size_t request_len;
static unsigned first;      /* of the requests that count */
static struct chain others; /* holds blocks that nobody here may have */

static void
setup(void)
{
	conn_rig_setup();
	chain_init(&others);
	request = malloc(LARGE + 100);
}

static void
teardown(void)
{
	chain_drain(&others, &slab, others.len);
	conn_rig_teardown();
	free(request);
}

static void
leave_blocks(uint32_t n_idle)
{
	static const uint8_t bytes[SLAB_BLOCK_BYTES];

	while (slab.n_idle > n_idle)
		ck_assert(chain_append(&others, &slab, bytes, sizeof(bytes)));
}

/* One request a turn, as one with 64 items is all that a turn takes. */
static void
turn_of_one(void)
{
	struct conn *conn;

	/* Time stands: who holds buffers while a busy machine waits is not dropped. */
	TAILQ_FOREACH(conn, &set.all, all_link)
		conn->since_us = conn->progress_us = request_now_us();
	n_turns++;
	set.woke_us = 0;
	conn_set_arm(&set);
	event_base_loop(set.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	conn_set_collect(&set, 1);
	conn_set_flush(&set);
}

/* n connections that ask again as soon as they are answered, for each times requests. */
static void
load(int n, unsigned in_flight, size_t message, unsigned each)
{
	request_len = put_padded(request, 1, message);
	for (int i = 0; i < n; i++)
		join(i);
	first = n_handled;
	for (unsigned k = 0; k < in_flight; k++)
		for (int i = 0; i < n; i++)
			say(i, request, request_len);
	while (n_handled - first < (unsigned)n * each) {
		unsigned before = n_handled;

		turn_of_one();
		for (unsigned at = before; at < n_handled; at++) {
			int i = (int)handled[at] - 1;

			ck_assert_int_eq(hear(i), 1);
			say(i, request, request_len);
		}
		ck_assert_uint_lt(n_turns, 100000);
	}
	ck_assert_uint_le(n_handled, 4096);
}

static unsigned
count_of(int i)
{
	unsigned n = 0;

	for (unsigned at = first; at < n_handled; at++)
		n += handled[at] == (uint64_t)i + 1;
	return n;
}

/* The most requests that were taken from one to the next of one connection's. */
static unsigned
longest_wait(int n)
{
	unsigned longest = 0;

	for (int i = 0; i < n; i++) {
		unsigned last = first;

		for (unsigned at = first; at <= n_handled; at++) {
			if (at < n_handled && handled[at] != (uint64_t)i + 1)
				continue;
			longest = at - last > longest ? at - last : longest;
			last = at;
		}
	}
	return longest;
}

START_TEST(a_rotation_of_large_requests)
{
	load(48, 1, LARGE, 20);
	ck_assert_uint_le(longest_wait(48), 2 * 48);
}
END_TEST

/* What is behind the request under way is no reason to be read from before others. */
START_TEST(a_rotation_of_pipelined_ones)
{
	load(48, 3, LARGE / 2, 20);
	ck_assert_uint_le(longest_wait(48), 2 * 48);
}
END_TEST

/* More connections than may have a block each. */
START_TEST(a_rotation_of_those_without_a_block)
{
	leave_blocks(FEW);
	load(MANY, 1, LARGE, 6);
	ck_assert_uint_le(longest_wait(MANY), 2 * MANY);
}
END_TEST

/* Several are read at once, as many as there is room for: that evens out. */
START_TEST(as_many_short_ones_each)
{
	unsigned least = UINT32_MAX, most = 0;

	load(48, 16, SHORT, 60);
	for (int i = 0; i < 48; i++) {
		unsigned n = count_of(i);

		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	ck_assert_uint_ge(2 * least, most);
}
END_TEST

START_TEST(control_last_come_first_read)
{
	if (!rig_hooks())
		return;
	rig_fault("hungry-last-first");
	leave_blocks(FEW);
	load(MANY, 1, LARGE, 6);
	ck_assert_uint_gt(longest_wait(MANY), 2 * MANY);
}
END_TEST

/* 100 wait when room comes; one more comes then. True: it is behind them. */
static bool
newcomer_is_last(void)
{
	uint8_t ping[PING_BYTES];
	unsigned at;

	put_ping(ping, 1);
	for (int i = 0; i <= 100; i++)
		join(i);
	first = n_handled;
	leave_blocks(0);
	for (int i = 0; i < 100; i++)
		say(i, ping, sizeof(ping));
	turns(10);
	ck_assert_uint_eq(n_handled, first);
	ck_assert(!conn_of(0)->reading); /* it would spin */
	chain_drain(&others, &slab, others.len);
	say(100, ping, sizeof(ping));
	turns(10);
	ck_assert_uint_eq(n_handled, first + 101);
	for (at = first; handled[at] != 101; at++)
		;
	return at == first + 100;
}

START_TEST(who_comes_while_others_wait)
{
	ck_assert(newcomer_is_last());
}
END_TEST

START_TEST(control_read_before_those_who_wait)
{
	if (!rig_hooks())
		return;
	rig_fault("read-before-hungry");
	ck_assert(!newcomer_is_last());
}
END_TEST

/* Another user's requests do not stand behind those of one who waits. */
START_TEST(others_of_a_user_wait_alone)
{
	uint8_t ping[PING_BYTES];

	put_ping(ping, 1);
	leave_blocks(FEW);
	request_len = put_padded(request, 1, LARGE);
	for (int i = 0; i < MANY; i++)
		join_as(i, 1000);
	join_as(MANY, 1001);
	for (int i = 0; i < MANY; i++)
		say(i, request, request_len);
	/* The event loop tells of 32 at a time. */
	for (int k = 0; k < MANY / 16; k++)
		turn_of_one();
	for (int k = 0; k < 50; k++) {
		say(MANY, ping, sizeof(ping));
		turn_of_one();
		turn_of_one();
		ck_assert_int_eq(hear(MANY), 1);
		ck_assert(!TAILQ_EMPTY(&set.users.hungry));
	}
}
END_TEST

static uint32_t
n_idle_for_room(uint32_t room)
{
	return slab.n_idle - slab_input_room(&slab) + room;
}

/*
 * The oldest unfinished frame is read from first, and its user waits no longer; another
 * user who waits, and holds too much to be read from, holds nobody up.
 */
START_TEST(the_oldest_of_the_last_user)
{
	request_len = put_padded(request, 1, LARGE);
	join_as(0, 1000);
	join_as(1, 1001);
	for (int i = 0; i < 2; i++) {
		say(i, request, 4 * SLAB_BLOCK_BYTES);
		turns(3);
		ck_assert_uint_gt(conn_of(i)->in.n_blocks, 3);
	}
	leave_blocks(n_idle_for_room(0));
	for (int i = 1; i >= 0; i--) {
		say(i, request + 4 * SLAB_BLOCK_BYTES, 2 * SLAB_BLOCK_BYTES);
		turns(3);
		ck_assert(conn_of(i)->hungry);
	}
	chain_drain(&others, &slab, SLAB_BLOCK_BYTES);
	ck_assert_uint_eq(slab_input_room(&slab), 1);
	turn();
	ck_assert(!conn_of(0)->hungry);
	ck_assert(conn_of(1)->hungry);
}
END_TEST

/* Who has nothing to be read is not hungry, whatever others hold. */
START_TEST(who_is_silent_does_not_wait)
{
	join(0);
	leave_blocks(0);
	turns(3);
	ck_assert(conn_set_is_quiet(&set));
	ck_assert(conn_of(0)->reading);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("conn_input");
	TCase *tcase = tcase_create("conn_input");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_rotation_of_large_requests);
	tcase_add_test(tcase, a_rotation_of_pipelined_ones);
	tcase_add_test(tcase, a_rotation_of_those_without_a_block);
	tcase_add_test(tcase, as_many_short_ones_each);
	tcase_add_test(tcase, control_last_come_first_read);
	tcase_add_test(tcase, who_comes_while_others_wait);
	tcase_add_test(tcase, control_read_before_those_who_wait);
	tcase_add_test(tcase, others_of_a_user_wait_alone);
	tcase_add_test(tcase, the_oldest_of_the_last_user);
	tcase_add_test(tcase, who_is_silent_does_not_wait);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
