/* SPDX-License-Identifier: Apache-2.0 */
/* Connections over real socket pairs, with a handler that answers at once or at the end
 * of the turn as a batch does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/conn.h"
#include "daemon/log.h"
#include "proto/wire.h"
#include "rig.h"

#define TURN_ITEMS  64u
#define CONNS_MAX   600
#define SMALL_SLAB  (384u * SLAB_BLOCK_BYTES) /* the least that may be configured */
#define HELLO_BYTES 12u
#define PING_BYTES  8u

static uint8_t *slab_memory, *mem_memory;
static struct slab slab;
static struct mem mem;
static struct config config;
static struct metrics_shard metrics;
static struct conn_set set;
static bool batching;
static unsigned n_handled, n_gone, n_turns;
static uint64_t handled[4096]; /* the connection of each request, in order */
static int peers[CONNS_MAX];

static void
handle(void *owner, struct request *req)
{
	handled[n_handled++ % 4096] = req->conn_id;
	/* As a batch does: the test calls done later in the turn. */
	if (batching && req->op == REQUEST_PING)
		return;
	req->done(req);
}

static void
gone(void *owner, uint64_t conn_id, bool denied)
{
	n_gone++;
}

static const struct conn_ops ops = {.handle = handle, .gone = gone};

static void
start(size_t slab_bytes)
{
	log_set_level(LOG_EMERG);
	slab_memory = aligned_alloc(4096, slab_bytes);
	memset(slab_memory, 0, slab_bytes);
	mem_memory = aligned_alloc(4096, CODEC_MEM_BYTES);
	memset(mem_memory, 0, CODEC_MEM_BYTES);
	ck_assert_int_eq(slab_init(&slab, slab_memory, slab_bytes), 0);
	mem_init(&mem, mem_memory, CODEC_MEM_BYTES);
	config = (struct config){.hello_timeout_ms = 1000,
	    .frame_timeout_ms = 10000,
	    .default_timeout_us = 1000000};
	memset(&metrics, 0, sizeof(metrics));
	set = (struct conn_set){.base = event_base_new(),
	    .slab = &slab,
	    .mem = &mem,
	    .metrics = &metrics,
	    .config = &config,
	    .ops = &ops,
	    .max_message = WIRE_MAX_FRAME_BYTES,
	    .about = {.server_version = "0", .backend = "b", .secret_memory = "off"}};
	ck_assert_int_eq(conn_set_init(&set), 0);
	n_handled = n_gone = n_turns = 0;
	memset(peers, -1, sizeof(peers));
}

static void
setup(void)
{
	start(SMALL_SLAB);
}

static bool
slab_is_zero(void)
{
	size_t i = 0;

	while (i < SMALL_SLAB && !slab_memory[i])
		i++;
	return i == SMALL_SLAB;
}

static void
teardown(void)
{
	rig_fault(NULL);
	conn_set_fini(&set);
	for (int i = 0; i < CONNS_MAX; i++)
		if (peers[i] >= 0)
			close(peers[i]);
	/* Whatever happened: every block is back, and wiped. */
	ck_assert_uint_eq(slab.n_idle, slab.n_blocks);
	ck_assert(slab_is_zero());
	slab_fini(&slab);
	event_base_free(set.base);
	free(slab_memory);
	free(mem_memory);
}

static void
turn(void)
{
	n_turns++;
	set.woke_us = 0;
	conn_set_arm(&set);
	event_base_loop(set.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	conn_set_collect(&set, TURN_ITEMS);
	conn_set_flush(&set);
}

static void
turns(unsigned n)
{
	while (n--)
		turn();
}

static void
turns_for_ms(unsigned ms)
{
	uint64_t end = request_now_us() + ms * 1000u;

	while (request_now_us() < end) {
		turn();
		usleep(2000);
	}
}

static struct conn *
conn_of(int i)
{
	struct conn *conn;

	TAILQ_FOREACH(conn, &set.all, all_link)
		if (conn->id == (uint64_t)i + 1)
			return conn;
	return NULL;
}

static void
open_raw(int i, bool denied)
{
	int pair[2];

	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
	    0);
	peers[i] = pair[0];
	ck_assert_int_eq(
	    conn_set_add(&set, pair[1], (uint64_t)i + 1, geteuid(), denied), 0);
}

/* Request { id; op {} } for an operation without fields; id below 128. */
static size_t
put_ping(uint8_t *to, unsigned id)
{
	const uint8_t ping[PING_BYTES] = {0, 0, 0, 4, 0x08, (uint8_t)id, 0x5a, 0};

	memcpy(to, ping, sizeof(ping));
	return sizeof(ping);
}

static size_t
put_hello(uint8_t *to)
{
	const uint8_t hello[HELLO_BYTES] = {
	    0, 0, 0, 8, 0x08, 0x7f, 0x52, 4, 0x08, 1, 0x10, 1};

	memcpy(to, hello, sizeof(hello));
	return sizeof(hello);
}

/* A Ping of any size: the rest is a field that nobody knows (number 100). */
static size_t
put_padded(uint8_t *to, unsigned id, size_t message)
{
	size_t pad = message - 4 - 2 - 4;

	wire_put_length(to, (uint32_t)message);
	put_ping(to + 64, id);
	memmove(to + 4, to + 64 + 4, 4);
	to[8] = 0xa2;
	to[9] = 0x06;
	for (int i = 0; i < 4; i++) {
		to[10 + i] = (uint8_t)((pad >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
	}
	memset(to + 14, 'p', pad);
	return 4 + message;
}

static void
say(int i, const void *data, size_t len)
{
	ck_assert_int_eq(send(peers[i], data, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Frames that the peer has got since the last call; -1 if the connection has ended. */
static int
hear(int i)
{
	static uint8_t in[1 << 20], rest[CONNS_MAX][1024];
	static size_t n_rest[CONNS_MAX];
	size_t len = n_rest[i], at = 0, size;
	ssize_t n;
	int frames = 0;

	memcpy(in, rest[i], len);
	while ((n = recv(peers[i], in + len, sizeof(in) - len, 0)) > 0)
		len += (size_t)n;
	while (len - at >= 4 && len - at >= (size = 4 + wire_get_length(in + at))) {
		at += size;
		frames++;
	}
	n_rest[i] = len - at;
	ck_assert_uint_le(n_rest[i], sizeof(rest[i]));
	memcpy(rest[i], in + at, n_rest[i]);
	if (n && errno != ECONNRESET)
		return frames;
	ck_assert_uint_eq(n_rest[i], 0);
	return frames ? frames : -1;
}

/* An open connection that has said Hello. */
static void
join(int i)
{
	uint8_t hello[HELLO_BYTES];

	open_raw(i, false);
	say(i, hello, put_hello(hello));
	turns(2);
	ck_assert_int_eq(hear(i), 1);
}

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

START_TEST(no_hello_in_time)
{
	config.hello_timeout_ms = 100;
	open_raw(0, false);
	open_raw(1, false);
	say(1, "\0\0", 2);
	turns_for_ms(60);
	ck_assert_int_eq(hear(0), 0);
	turns_for_ms(150);
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
	for (int i = 0; i < n; i++)
		join(i);
	join(n);
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
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, split_at_every_byte);
	tcase_add_test(tcase, byte_by_byte);
	tcase_add_test(tcase, idle_connections_hold_no_block);
	tcase_add_test(tcase, the_largest_frame);
	tcase_add_test(tcase, broken_frames_close);
	tcase_add_test(tcase, an_id_in_use_closes);
	tcase_add_test(tcase, half_close_is_answered);
	tcase_add_test(tcase, denied_is_said_once);
	tcase_add_test(tcase, denied_gets_one_block);
	tcase_add_test(tcase, no_hello_in_time);
	tcase_add_test(tcase, drippers_are_dropped);
	tcase_add_test(tcase, greedy_and_modest);
	tcase_add_test(tcase, control_without_rotation_it_waits);
	tcase_add_test(tcase, who_does_not_read);
	tcase_add_test(tcase, partial_frames_fill_the_slab);
	tcase_add_test(tcase, large_frames_at_once);
	tcase_add_test(tcase, stalled_readers_make_room);
	tcase_add_test(tcase, gone_in_every_state);
	tcase_add_test(tcase, control_teardown_sees_a_missing_wipe);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
