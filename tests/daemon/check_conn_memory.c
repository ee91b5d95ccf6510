/* SPDX-License-Identifier: Apache-2.0 */
/* What connections and users may hold of turns and buffers, and who makes room. */
#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn_rig.h"
#include "proto/wire.h"

/* 100 000 requests by somebody who does not read: memory is bounded, others are served,
 * and in the end every answer comes. */
START_TEST(who_does_not_read)
{
	static uint8_t many[1000 * PING_BYTES];
	unsigned sent = 0, got = 0, idle = 0;
	uint32_t low = slab.n_blocks;
	int small = 4096;

	for (unsigned i = 0; i < 1000; i++)
		put_ping(many + i * PING_BYTES, i % 100);
	join(0);
	join(1);
	setsockopt(conn_of(0)->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	while (idle < 500) {
		bool all = sent < 100000 && send(peers[0], many, sizeof(many),
						MSG_NOSIGNAL) == (ssize_t)sizeof(many);

		sent += all ? 1000 : 0;
		idle = all ? 0 : idle + 1;
		turn();
		low = slab.n_idle < low ? slab.n_idle : low;
	}
	ck_assert_uint_lt(sent, 100000);
	ck_assert_uint_gt(low, slab.n_blocks / 2);
	ck_assert(!conn_set_has_work(&set)); /* it does not spin */
	ck_assert(!conn_of(0)->reading);
	say(1, many, PING_BYTES);
	turns(2);
	ck_assert_int_eq(hear(1), 1);
	while (got < sent) {
		int n = hear(0);

		ck_assert_int_ge(n, 0);
		got += (unsigned)n;
		turn();
		ck_assert_uint_lt(n_turns, 1000000);
	}
	ck_assert_uint_eq(slab.n_idle, slab.n_blocks);
}
END_TEST

/* Unfinished frames alone fill what input may have: the oldest go, others are served. */
START_TEST(partial_frames_fill_the_slab)
{
	uint8_t header[8] = {0, 8, 0, 0, 0, 0, 0, 0}, ping[PING_BYTES];
	int n = 300;

	put_ping(ping, 1);
	for (int i = 0; i <= n; i++)
		join_as(i, 1000 + (uid_t)i);
	for (int i = 0; i < n; i++)
		say(i, header, sizeof(header));
	turns(20);
	ck_assert_uint_eq(slab_input_room(&slab), 0);
	ck_assert_uint_gt(slab.n_idle, slab.n_blocks / 5); /* kept for answers */
	say(n, ping, sizeof(ping));
	turns(3);
	ck_assert_int_eq(hear(n), 0);
	ck_assert(!conn_of(n)->reading); /* it would spin */
	turns_for_ms(500);
	ck_assert_int_eq(hear(n), 1);
	ck_assert_ptr_null(conn_of(0));
	ck_assert_uint_gt(metrics.frame_timeouts_total, 0);
	ck_assert_uint_lt(metrics.frame_timeouts_total, (unsigned)n);
	ck_assert_ptr_nonnull(conn_of(n - 1));
}
END_TEST

/* Many large frames at once: the oldest always gets to its end, so all do. */
START_TEST(large_frames_at_once)
{
	enum { N = 12, MESSAGE = 500 * 1024 };
	uint8_t *bytes = malloc(MESSAGE + 100);
	size_t len = put_padded(bytes, 1, MESSAGE), at[N] = {0};
	unsigned answers = 0;

	for (int i = 0; i < N; i++)
		join(i);
	while (answers < N) {
		for (int i = 0; i < N; i++) {
			ssize_t n =
			    send(peers[i], bytes + at[i], len - at[i], MSG_NOSIGNAL);
			int heard = hear(i);

			at[i] += n > 0 ? (size_t)n : 0;
			ck_assert_int_ge(heard, 0);
			answers += (unsigned)heard;
		}
		turn();
		ck_assert_uint_lt(n_turns, 20000);
	}
	ck_assert_uint_eq(metrics.frame_timeouts_total, 0);
	free(bytes);
}
END_TEST

/* Answers that nobody reads fill the slab: who has not moved for a second goes. */
START_TEST(stalled_readers_make_room)
{
	uint8_t infos[100 * PING_BYTES];
	int n = 560, small = 1;
	uint64_t begin_us;

	for (unsigned i = 0; i < 100; i++) {
		put_ping(infos + i * PING_BYTES, i);
		infos[i * PING_BYTES + 6] = 0x62; /* Info: a longer answer */
	}
	for (int i = 0; i < n; i++) {
		join(i);
		setsockopt(
		    conn_of(i)->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	}
	for (int i = 0; i < n; i++)
		say(i, infos, sizeof(infos));
	turns(1000);
	ck_assert(!TAILQ_EMPTY(&set.stalled));
	begin_us = request_now_us();
	open_raw(n, false);
	say(n, infos + HELLO_BYTES, put_hello(infos + HELLO_BYTES));
	for (unsigned heard = 0; heard < 2;) {
		int n_frames;

		turns_for_ms(20);
		n_frames = hear(n);
		ck_assert_int_ge(n_frames, 0);
		if (n_frames)
			say(n, infos, PING_BYTES);
		heard += (unsigned)n_frames;
		ck_assert_uint_lt(request_now_us() - begin_us, 10000000);
	}
	ck_assert_uint_gt(metrics.frame_timeouts_total, 0);
}
END_TEST

/* One user's many connections, each with more than a turn takes of all of them. */
static unsigned
turns_until_other_user(void)
{
	enum { GREEDY = 200, PINGS = 100 };
	static uint8_t many[PINGS * PING_BYTES];
	unsigned before;

	for (unsigned i = 0; i < PINGS; i++)
		put_ping(many + i * PING_BYTES, i);
	for (int i = 0; i < GREEDY; i++)
		join_as(i, 1000);
	join_as(GREEDY, 1001);
	for (int i = 0; i < GREEDY; i++)
		say(i, many, sizeof(many));
	turns(2);
	say(GREEDY, many, PING_BYTES);
	for (before = n_turns; n_turns - before < 100;) {
		turn();
		if (hear(GREEDY))
			break;
	}
	return n_turns - before;
}

START_TEST(users_take_turns)
{
	ck_assert_uint_le(turns_until_other_user(), 2);
}
END_TEST

START_TEST(control_without_user_rotation_it_waits)
{
	if (!rig_hooks())
		return;
	rig_fault("user-no-rotation");
	ck_assert_uint_gt(turns_until_other_user(), 2);
}
END_TEST

/* Unfinished frames of one user; another says Hello. True: it is answered at once. */
static bool
other_user_is_heard(void)
{
	const uint8_t header[4] = {0, 7, 0xff, 0xff};
	const int n = 560;

	for (int i = 0; i < n; i++)
		join_as(i, 1000);
	for (int i = 0; i < n; i++)
		say(i, header, sizeof(header));
	turns(20);
	open_as(n, 1001, STATUS_OK);
	say(n, (uint8_t[HELLO_BYTES]){0, 0, 0, 8, 0x08, 0x7f, 0x52, 4, 8, 1, 16, 1},
	    HELLO_BYTES);
	turns(4);
	return hear(n) == 1;
}

START_TEST(one_user_leaves_buffers_to_others)
{
	ck_assert(other_user_is_heard());
	ck_assert_uint_gt(slab_input_room(&slab), 0);
}
END_TEST

START_TEST(control_without_limit_none_are_left)
{
	if (!rig_hooks())
		return;
	rig_fault("user-no-limit");
	ck_assert(!other_user_is_heard());
}
END_TEST

/* Its own that do not move make room for its own that wait. */
START_TEST(a_full_user_makes_room_for_itself)
{
	const uint8_t header[4] = {0, 7, 0xff, 0xff};
	const int n = 560;
	uint8_t ping[PING_BYTES];

	put_ping(ping, 1);
	for (int i = 0; i <= n; i++)
		join_as(i, i == 0 ? 1001 : 1000);
	for (int i = 0; i < n; i++)
		say(i, header, sizeof(header));
	turns(20);
	say(n, ping, sizeof(ping));
	turns(3);
	ck_assert_int_eq(hear(n), 0);
	turns_for_ms(600);
	ck_assert_int_eq(hear(n), 1);
	ck_assert_ptr_nonnull(conn_of(0)); /* the other user's has lost nothing */
	ck_assert_ptr_null(conn_of(1));
}
END_TEST

START_TEST(too_many_connections_is_said_once)
{
	uint8_t hello[HELLO_BYTES];

	open_as(0, 1000, STATUS_RESOURCE_EXHAUSTED);
	say(0, hello, put_hello(hello));
	turns(2);
	ck_assert_int_eq(hear(0), 1);
	ck_assert_int_eq(hear(0), -1);
	ck_assert_uint_eq(n_handled, 0);
}
END_TEST

static bool no_memory;

static void *
scarce_realloc(void *p, size_t size)
{
	return no_memory ? NULL : realloc(p, size);
}

static void *
scarce_malloc(size_t size)
{
	return scarce_realloc(NULL, size);
}

/* libevent has no memory for its event: it is closed, which is counted; others go on. */
static void
lose_one(uint64_t expected)
{
	uint8_t ping[PING_BYTES];

	put_ping(ping, 1);
	join(0);
	no_memory = true;
	open_raw(1, false);
	no_memory = false;
	turns(2);
	ck_assert_int_eq(hear(1), -1);
	ck_assert_uint_eq(n_gone, 1);
	ck_assert_uint_eq(atomic_load(&metrics.shed_total), expected);
	say(0, ping, PING_BYTES);
	turns(2);
	ck_assert_int_eq(hear(0), 1);
}

START_TEST(no_memory_for_an_event)
{
	lose_one(1);
}
END_TEST

START_TEST(control_lost_unseen)
{
	if (!rig_hooks())
		return;
	rig_fault("conn-lost-unseen");
	lose_one(0);
}
END_TEST

int
main(void)
{
	event_set_mem_functions(scarce_malloc, scarce_realloc, free);

	Suite *suite = suite_create("conn_memory");
	TCase *tcase = tcase_create("conn_memory");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, conn_rig_setup, conn_rig_teardown);
	tcase_add_test(tcase, who_does_not_read);
	tcase_add_test(tcase, partial_frames_fill_the_slab);
	tcase_add_test(tcase, large_frames_at_once);
	tcase_add_test(tcase, stalled_readers_make_room);
	tcase_add_test(tcase, users_take_turns);
	tcase_add_test(tcase, control_without_user_rotation_it_waits);
	tcase_add_test(tcase, one_user_leaves_buffers_to_others);
	tcase_add_test(tcase, control_without_limit_none_are_left);
	tcase_add_test(tcase, a_full_user_makes_room_for_itself);
	tcase_add_test(tcase, too_many_connections_is_said_once);
	tcase_add_test(tcase, no_memory_for_an_event);
	tcase_add_test(tcase, control_lost_unseen);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
