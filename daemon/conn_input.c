/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of whom. Each connection reads as its bytes come, while there is room that
 * its user may have; once there is none its bytes wait, in their socket, in the order of
 * their coming. Who comes while others of the same user wait stands behind them.
 */
#include <errno.h>
#include <sys/socket.h>

#include "conn_priv.h"
#include "kem/fault.h"

/* Blocks of pipelined small requests that one connection may hold. */
#define INPUT_BLOCKS 16u
/* Connections that waited and are read from in one turn. */
#define FEED_MAX 64

/*
 * How many blocks the input may hold now. Each takes at most its share of what is free,
 * so that greedy connections leave some to modest ones; only the oldest unfinished frame
 * may go on to its end.
 */
static uint32_t
conn_input_limit(const struct conn *conn)
{
	const struct conn_set *set = conn->set;
	uint32_t room = slab_input_room(set->slab), share, limit = INPUT_BLOCKS;
	uint32_t frame = conn->frame_size ? conn_blocks_for(conn->frame_size) + 1 : 0;

	if (conn->peer.refusal)
		return 1;
	if (frame > limit)
		limit = frame;
	if (conn == TAILQ_FIRST(&set->partial))
		return limit;
	share = room > CONN_FRAME_BLOCKS ? (room - CONN_FRAME_BLOCKS) / CONN_SHARE : 0;
	if (!share)
		share = 1;
	return limit < share ? limit : share;
}

/*
 * So that somebody always gets on. While requests of its user's are ready it waits like
 * the others, for these give blocks back.
 */
static bool
conn_may_exceed(const struct conn *conn)
{
	return conn == TAILQ_FIRST(&conn->set->partial) &&
	       TAILQ_EMPTY(&conn->user->ready);
}

/* There is a block that it may have, were it its turn. */
static bool
conn_may_grow(const struct conn *conn)
{
	uint32_t room = slab_input_room(conn->set->slab);

	return room && conn->in.n_blocks < conn_input_limit(conn) &&
	       (conn_may_exceed(conn) || user_may_hold(conn->user, 1, room));
}

static bool
conn_others_wait(const struct conn *conn)
{
	return !TAILQ_EMPTY(&conn->user->hungry) && !fault("read-before-hungry");
}

static bool
conn_has_room(const struct conn *conn)
{
	const struct slab_block *last = TAILQ_LAST(&conn->in.blocks, slab_block_list);

	return last && last->end < SLAB_BLOCK_BYTES;
}

bool
conn_can_read(const struct conn *conn)
{
	return conn_has_room(conn) || (!conn_others_wait(conn) && conn_may_grow(conn));
}

void
conn_mark_hungry(struct conn *conn, bool hungry)
{
	struct user *user = conn->user;

	if (conn->hungry == hungry)
		return;
	conn->hungry = hungry;
	if (hungry) {
		if (TAILQ_EMPTY(&user->hungry))
			TAILQ_INSERT_TAIL(&user->table->hungry, user, hungry_link);
		if (fault("hungry-last-first"))
			TAILQ_INSERT_HEAD(&user->hungry, conn, hungry_link);
		else
			TAILQ_INSERT_TAIL(&user->hungry, conn, hungry_link);
	} else {
		TAILQ_REMOVE(&user->hungry, conn, hungry_link);
		if (TAILQ_EMPTY(&user->hungry))
			TAILQ_REMOVE(&user->table->hungry, user, hungry_link);
	}
}

/* One recv, into n_blocks in all, or what is left of the last one. */
static void
conn_read(struct conn *conn, uint32_t n_blocks)
{
	struct slab *slab = conn->set->slab;
	struct iovec iov[CONN_IOV_BLOCKS];
	struct msghdr msg = {.msg_iov = iov};
	int err;
	ssize_t n;

	msg.msg_iovlen = (size_t)chain_prepare(&conn->in, slab, n_blocks, iov);
	/* Descriptors that a peer attaches are dropped by the kernel: no msg_control. */
	n = recvmsg(conn->fd, &msg, MSG_DONTWAIT);
	err = errno;
	chain_received(&conn->in, slab, n > 0 ? (size_t)n : 0, request_now_us());
	if (n < 0 && err != EAGAIN && err != EINTR) {
		conn_kill(conn);
		return;
	}
	if (!n)
		conn->eof = true;
	conn_update(conn);
}

void
conn_readable(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;

	conn_set_woke(conn->set);
	if (!conn_others_wait(conn) && conn_may_grow(conn)) {
		conn_read(conn, conn_input_limit(conn));
	} else if (conn_has_room(conn)) {
		conn_read(conn, 0);
	} else {
		conn_mark_hungry(conn, true);
		conn_update(conn);
	}
}

static void
conn_feed(struct conn *conn)
{
	conn_mark_hungry(conn, false);
	conn_read(conn, conn_input_limit(conn));
}

/*
 * In order; but who has its share and is not the oldest holds nobody up. Such are no more
 * than there are blocks, so the search is short. Returns how many were read from.
 */
static int
user_feed(struct user *user, struct slab *slab, int n_most)
{
	struct conn *conn, *next, *last = TAILQ_LAST(&user->hungry, conn_list);
	int n = 0;

	for (conn = TAILQ_FIRST(&user->hungry); conn && n < n_most; conn = next) {
		next = conn == last ? NULL : TAILQ_NEXT(conn, hungry_link);
		if (conn_may_grow(conn)) {
			conn_feed(conn);
			n++;
		} else if (!user_may_hold(user, 1, slab_input_room(slab))) {
			break;
		}
	}
	return n;
}

void
conn_set_feed_hungry(struct conn_set *set)
{
	struct user_list *hungry = &set->users.hungry;
	struct user *user, *last;
	struct conn *oldest = TAILQ_FIRST(&set->partial);
	int n = 0;

	if (oldest && oldest->hungry && conn_may_exceed(oldest) &&
	    conn_may_grow(oldest))
		conn_feed(oldest);
	/* Only now: that user may have left the list. */
	last = TAILQ_LAST(hungry, user_list);
	while (n < FEED_MAX && (user = TAILQ_FIRST(hungry))) {
		TAILQ_REMOVE(hungry, user, hungry_link);
		TAILQ_INSERT_TAIL(hungry, user, hungry_link);
		n += user_feed(user, set->slab, FEED_MAX - n);
		if (user == last)
			break;
	}
}
