/* SPDX-License-Identifier: Apache-2.0 */
#include "conn_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/log.h"
#include "proto/wire.h"

uint8_t *slab_memory;
struct slab slab;
struct config config;
struct metrics_shard metrics;
struct conn_set set;
bool batching;
unsigned n_handled, n_gone, n_turns;
uint64_t handled[4096];
int peers[CONNS_MAX];

static uint8_t *mem_memory;
static struct mem mem;

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
gone(void *owner, const struct conn_peer *peer)
{
	n_gone++;
}

static const struct conn_ops ops = {.handle = handle, .gone = gone};

void
conn_rig_start(size_t slab_bytes)
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

void
conn_rig_setup(void)
{
	conn_rig_start(SMALL_SLAB);
}

bool
slab_is_zero(void)
{
	size_t i = 0;

	while (i < SMALL_SLAB && !slab_memory[i])
		i++;
	return i == SMALL_SLAB;
}

void
conn_rig_teardown(void)
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

void
turn(void)
{
	n_turns++;
	set.woke_us = 0;
	conn_set_arm(&set);
	event_base_loop(set.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	conn_set_collect(&set, TURN_ITEMS);
	conn_set_flush(&set);
}

void
turns(unsigned n)
{
	while (n--)
		turn();
}

void
turns_for_ms(unsigned ms)
{
	uint64_t end = request_now_us() + ms * 1000u;

	while (request_now_us() < end) {
		turn();
		usleep(2000);
	}
	/* A busy machine may let much of the time pass at once: for what is due by now. */
	turns(5);
}

struct conn *
conn_of(int i)
{
	struct conn *conn;

	TAILQ_FOREACH(conn, &set.all, all_link)
		if (conn->peer.id == (uint64_t)i + 1)
			return conn;
	return NULL;
}

void
open_as(int i, uid_t uid, enum request_status refusal)
{
	struct conn_peer peer = {.id = (uint64_t)i + 1, .uid = uid, .refusal = refusal};
	int pair[2];

	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
	    0);
	peers[i] = pair[0];
	ck_assert_int_eq(conn_set_add(&set, pair[1], &peer), 0);
}

void
open_raw(int i, bool denied)
{
	open_as(i, geteuid(), denied ? STATUS_DENIED : STATUS_OK);
}

size_t
put_ping(uint8_t *to, unsigned id)
{
	const uint8_t ping[PING_BYTES] = {0, 0, 0, 4, 0x08, (uint8_t)id, 0x5a, 0};

	memcpy(to, ping, sizeof(ping));
	return sizeof(ping);
}

size_t
put_hello(uint8_t *to)
{
	const uint8_t hello[HELLO_BYTES] = {
	    0, 0, 0, 8, 0x08, 0x7f, 0x52, 4, 0x08, 1, 0x10, 1};

	memcpy(to, hello, sizeof(hello));
	return sizeof(hello);
}

size_t
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

void
say(int i, const void *data, size_t len)
{
	ck_assert_int_eq(send(peers[i], data, len, MSG_NOSIGNAL), (ssize_t)len);
}

int
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

void
join_as(int i, uid_t uid)
{
	uint8_t hello[HELLO_BYTES];

	open_as(i, uid, STATUS_OK);
	say(i, hello, put_hello(hello));
	turns(2);
	ck_assert_int_eq(hear(i), 1);
}

void
join(int i)
{
	join_as(i, geteuid());
}
