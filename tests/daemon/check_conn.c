/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes, frames, deadlines and whose turn it is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn_rig.h"
#include "proto/wire.h"

START_TEST(split_at_every_byte)
{
	uint8_t both[HELLO_BYTES + PING_BYTES];

	put_hello(both);
	put_ping(both + HELLO_BYTES, 1);
	for (size_t at = 1; at < sizeof(both); at++) {
		int i = (int)at;

		open_raw(i, false);
		say(i, both, at);
		turns(2);
		say(i, both + at, sizeof(both) - at);
		turns(2);
		ck_assert_int_eq(hear(i), 2);
	}
}
END_TEST

START_TEST(byte_by_byte)
{
	uint8_t bytes[5000];
	size_t len = put_padded(bytes, 1, 4200);

	join(0);
	for (size_t i = 0; i < len; i++) {
		ck_assert_int_eq(hear(0), 0);
		say(0, bytes + i, 1);
		turn();
	}
	turns(2);
	ck_assert_int_eq(hear(0), 1);
}
END_TEST

START_TEST(idle_connections_hold_no_block)
{
	for (int i = 0; i < 20; i++)
		join(i);
	ck_assert_uint_eq(slab.n_idle, slab.n_blocks);
	ck_assert_uint_eq(metrics.connections, 20);
}
END_TEST

START_TEST(the_largest_frame)
{
	uint8_t *bytes = malloc(WIRE_MAX_FRAME_BYTES + 100);
	size_t len = put_padded(bytes, 1, WIRE_MAX_FRAME_BYTES), at = 0;

	join(0);
	while (at < len) {
		ssize_t n = send(peers[0], bytes + at, len - at, MSG_NOSIGNAL);

		if (n > 0)
			at += (size_t)n;
		turn();
		ck_assert_uint_lt(n_turns, 10000);
	}
	turns(3);
	ck_assert_int_eq(hear(0), 1);
	free(bytes);
}
END_TEST

/* What the connection does to a peer that says this after Hello (or first). */
static void
closes(bool hello, const uint8_t *data, size_t len, int answers)
{
	int i = (int)metrics.connections_total;
	uint64_t broken = metrics.broken_frames_total;

	if (hello)
		join(i);
	else
		open_raw(i, false);
	say(i, data, len);
	turns(3);
	ck_assert_int_eq(hear(i), answers ? answers : -1);
	ck_assert_int_eq(hear(i), -1);
	ck_assert_ptr_null(conn_of(i));
	ck_assert_uint_eq(metrics.broken_frames_total, broken + 1);
}

START_TEST(broken_frames_close)
{
	static const uint32_t lengths[] = {
	    0, WIRE_MAX_FRAME_BYTES + 1, 0x7fffffff, 0x80000000, 0xffffffff};
	uint8_t bytes[64];
	size_t len;

	for (size_t i = 0; i < 5; i++) {
		wire_put_length(bytes, lengths[i]);
		closes(true, bytes, 4, 0);
		closes(false, bytes, 4, 0);
		/* What was asked before is answered. */
		len = put_ping(bytes, 1);
		len += put_ping(bytes + len, 2);
		wire_put_length(bytes + len, lengths[i]);
		closes(true, bytes, len + 4, 2);
	}
	memcpy(bytes, "\0\0\0\2\xff\xff", 6); /* no protobuf */
	closes(true, bytes, 6, 0);
	len = put_ping(bytes, 1);
	closes(false, bytes, len, 0); /* no Hello first */
}
END_TEST

/* The first of them is open while the second is decoded. */
START_TEST(an_id_in_use_closes)
{
	uint8_t bytes[64];
	size_t len = put_ping(bytes, 1);

	len += put_ping(bytes + len, 1);
	join(0);
	batching = true;
	say(0, bytes, len);
	event_base_loop(set.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	conn_set_collect(&set, TURN_ITEMS);
	ck_assert_uint_eq(metrics.broken_frames_total, 1);
	{
		struct conn *conn = conn_of(0);
		struct request *req = STAILQ_FIRST(&conn->open);

		ck_assert_uint_eq(req->id, 1);
		req->done(req);
	}
	conn_set_flush(&set);
	batching = false;
	ck_assert_int_eq(hear(0), 1);
	ck_assert_int_eq(hear(0), -1);
}
END_TEST

START_TEST(half_close_is_answered)
{
	uint8_t bytes[64];
	size_t len = put_ping(bytes, 1);

	len += put_ping(bytes + len, 2);
	join(0);
	say(0, bytes, len + 3); /* and part of a third */
	shutdown(peers[0], SHUT_WR);
	turns(3);
	ck_assert_int_eq(hear(0), 2);
	ck_assert_int_eq(hear(0), -1);
	ck_assert_uint_eq(set.n_conns, 0);
	ck_assert_uint_eq(n_gone, 1);
}
END_TEST

START_TEST(denied_is_said_once)
{
	uint8_t hello[HELLO_BYTES];

	open_raw(0, true);
	say(0, hello, put_hello(hello));
	turns(2);
	ck_assert_int_eq(hear(0), 1);
	ck_assert_int_eq(hear(0), -1);
	ck_assert_uint_eq(n_handled, 0);
}
END_TEST

/* A stranger's Hello is short: nothing else of it takes any room. */
START_TEST(denied_gets_one_block)
{
	static uint8_t bytes[3 * SLAB_BLOCK_BYTES];
	const size_t most = SLAB_BLOCK_BYTES - WIRE_HEADER_BYTES;

	for (int i = 0; i < 2; i++) {
		open_raw(i, true);
		wire_put_length(bytes, (uint32_t)most + (uint32_t)i);
		say(i, bytes, sizeof(bytes));
		set.woke_us = 0;
		event_base_loop(set.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		ck_assert_uint_le(conn_of(i)->in.n_blocks, 1);
		ck_assert_uint_le(slab.n_blocks - slab.n_idle, 1);
		turns(2);
		ck_assert_int_eq(hear(i), -1);
	}
	/* In the block, no message; over it, no frame. */
	ck_assert_uint_eq(metrics.broken_frames_total, 2);
	ck_assert_uint_eq(set.n_conns, 0);
}
END_TEST

/* A Hello of any size: the rest is a field that nobody knows (number 100). */
static size_t
put_long_hello(uint8_t *to, size_t message)
{
	size_t at = put_hello(to), pad = 4 + message - at - 2 - 4;

	wire_put_length(to, (uint32_t)message);
	to[at++] = 0xa2;
	to[at++] = 0x06;
	for (int i = 0; i < 4; i++)
		to[at++] = (uint8_t)((pad >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
	memset(to + at, 'p', pad);
	return at + pad;
}

static uint8_t long_hello[WIRE_HEADER_BYTES + 200000];

START_TEST(a_long_hello_closes)
{
	static const uint32_t lengths[] = {WIRE_MAX_HELLO_BYTES + 1, 20000, 200000};
	size_t len = put_long_hello(long_hello, WIRE_MAX_HELLO_BYTES);

	open_raw(0, false);
	say(0, long_hello, len);
	turns(3);
	ck_assert_int_eq(hear(0), 1);
	ck_assert(conn_of(0)->greeted);
	for (size_t i = 0; i < 3; i++) {
		put_long_hello(long_hello, lengths[i]);
		closes(false, long_hello, WIRE_MAX_HELLO_BYTES, 0);
	}
}
END_TEST

START_TEST(control_a_long_hello_is_taken)
{
	size_t len = put_long_hello(long_hello, WIRE_MAX_HELLO_BYTES + 1);

	if (!rig_hooks())
		return;
	rig_fault("conn-long-hello");
	open_raw(0, false);
	say(0, long_hello, len);
	turns(3);
	ck_assert_int_eq(hear(0), 1);
}
END_TEST

/* Nothing of it is read, since others have every buffer: that is no endless reprieve. */
START_TEST(hungry_without_hello)
{
	static const uint8_t bytes[SLAB_BLOCK_BYTES];
	struct chain others;

	chain_init(&others);
	while (slab.n_idle)
		ck_assert(chain_append(&others, &slab, bytes, sizeof(bytes)));
	config.hello_timeout_ms = 100;
	config.frame_timeout_ms = 1000;
	open_raw(0, false);
	say(0, "\0\0", 2);
	turns_for_ms(250);
	ck_assert_int_eq(hear(0), 0);
	ck_assert(!conn_set_is_quiet(&set));
	turns_for_ms(1500);
	ck_assert_int_eq(hear(0), -1);
	ck_assert(conn_set_is_quiet(&set));
	ck_assert_uint_eq(metrics.hello_timeouts_total, 1);
	chain_drain(&others, &slab, others.len);
}
END_TEST

START_TEST(no_hello_in_time)
{
	config.hello_timeout_ms = 1200;
	open_raw(0, false);
	open_raw(1, false);
	say(1, "\0\0", 2);
	turns_for_ms(60);
	ck_assert_int_eq(hear(0), 0);
	turns_for_ms(1300);
	ck_assert_int_eq(hear(0), -1);
	ck_assert_int_eq(hear(1), -1);
	ck_assert_uint_eq(metrics.hello_timeouts_total, 2);
}
END_TEST

START_TEST(drippers_are_dropped)
{
	uint8_t ping[PING_BYTES];

	put_ping(ping, 1);
	config.frame_timeout_ms = 200;
	join(0);
	join(1);
	for (unsigned i = 0; i < 5; i++) {
		/* It goes on, but a frame has one deadline from its first byte. */
		if (conn_of(0))
			send(peers[0], ping + i, 1, MSG_NOSIGNAL);
		say(1, ping, sizeof(ping));
		turns_for_ms(70);
		ck_assert_int_eq(hear(1), 1);
	}
	ck_assert_int_eq(hear(0), -1);
	ck_assert_uint_eq(metrics.frame_timeouts_total, 1);
}
END_TEST

/* A greedy connection has 1000 requests waiting when a modest one comes with one. */
static unsigned
turns_until_modest(void)
{
	static uint8_t many[1000 * PING_BYTES];
	unsigned before;

	for (unsigned i = 0; i < 1000; i++)
		put_ping(many + i * PING_BYTES, i % 100);
	for (int i = 0; i < 5; i++)
		join(i);
	for (int i = 0; i < 4; i++)
		say(i, many, sizeof(many));
	turns(2);
	say(4, many, PING_BYTES);
	for (before = n_turns; n_turns - before < 100;) {
		turn();
		if (hear(4))
			break;
	}
	return n_turns - before;
}

START_TEST(greedy_and_modest)
{
	ck_assert_uint_le(turns_until_modest(), 2);
	/* The rotation itself: in a turn, nobody has two more than another. */
	for (int i = 0; i < 40; i++) {
		unsigned from = n_handled, counts[4] = {0};

		turn();
		for (unsigned j = from; j < n_handled; j++)
			counts[(handled[j % 4096] - 1) % 4]++;
		if (n_handled - from == TURN_ITEMS)
			for (int j = 0; j < 4; j++)
				ck_assert_uint_eq(counts[j], TURN_ITEMS / 4);
	}
}
END_TEST

START_TEST(control_without_rotation_it_waits)
{
	if (!rig_hooks())
		return;
	rig_fault("skip-rotation");
	ck_assert_uint_gt(turns_until_modest(), 2);
}
END_TEST

START_TEST(gone_in_every_state)
{
	uint8_t bytes[64];

	put_ping(bytes, 1);
	for (int i = 0; i < 4; i++)
		join(i);
	say(0, bytes, 5);          /* in the middle of a frame */
	say(1, bytes, PING_BYTES); /* with an answer on its way */
	say(2, bytes, PING_BYTES);
	shutdown(peers[2], SHUT_RD); /* can't be answered */
	for (int i = 0; i < 2; i++) {
		close(peers[i]);
		peers[i] = -1;
	}
	turns(4);
	close(peers[3]);
	peers[3] = -1;
	turns(4);
	ck_assert_uint_eq(set.n_conns, 0);
	ck_assert_uint_eq(n_gone, 4);
}
END_TEST

/* The rest of this case is teardown: it finds no byte that was not wiped. */
START_TEST(control_teardown_sees_a_missing_wipe)
{
	uint8_t ping[PING_BYTES];

	if (!rig_hooks())
		return;
	rig_fault("conn-no-wipe");
	join(0);
	say(0, ping, put_ping(ping, 1));
	turns(3);
	ck_assert_int_eq(hear(0), 1);
	ck_assert(!slab_is_zero());
	memset(slab_memory, 0, SMALL_SLAB);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("conn");
	TCase *tcase = tcase_create("conn");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, conn_rig_setup, conn_rig_teardown);
	tcase_add_test(tcase, split_at_every_byte);
	tcase_add_test(tcase, byte_by_byte);
	tcase_add_test(tcase, idle_connections_hold_no_block);
	tcase_add_test(tcase, the_largest_frame);
	tcase_add_test(tcase, broken_frames_close);
	tcase_add_test(tcase, an_id_in_use_closes);
	tcase_add_test(tcase, half_close_is_answered);
	tcase_add_test(tcase, denied_is_said_once);
	tcase_add_test(tcase, denied_gets_one_block);
	tcase_add_test(tcase, a_long_hello_closes);
	tcase_add_test(tcase, control_a_long_hello_is_taken);
	tcase_add_test(tcase, hungry_without_hello);
	tcase_add_test(tcase, no_hello_in_time);
	tcase_add_test(tcase, drippers_are_dropped);
	tcase_add_test(tcase, greedy_and_modest);
	tcase_add_test(tcase, control_without_rotation_it_waits);
	tcase_add_test(tcase, gone_in_every_state);
	tcase_add_test(tcase, control_teardown_sees_a_missing_wipe);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
