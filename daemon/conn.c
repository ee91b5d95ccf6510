/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: bytes in, bytes out, and in which lists it stands meanwhile. */
#include "conn_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "frame.h"
#include "kem/fault.h"
#include "log.h"
#include "metrics.h"
#include "proto/wire.h"

/* Output of one connection beside a reply that is alone. */
#define OUTPUT_BYTES (128u * 1024u)

_Static_assert(WIRE_HEADER_BYTES + WIRE_MAX_HELLO_BYTES <= SLAB_BLOCK_BYTES,
    "Hello's frame fits into one block");

/*
 * Who has not come in yet has a Hello to say: it fits into the one block that everybody
 * may have, so that it never waits for room of its own.
 */
size_t
conn_max_message(const struct conn *conn)
{
	if (!conn->greeted && !fault("conn-long-hello"))
		return WIRE_MAX_HELLO_BYTES;
	return conn->set->max_message;
}

/* What its buffers hold is its user's. */
void
conn_count_blocks(struct conn *conn)
{
	conn->user->n_in += conn->in.n_blocks - conn->n_in;
	conn->user->n_out += conn->out.n_blocks - conn->n_out;
	conn->n_in = conn->in.n_blocks;
	conn->n_out = conn->out.n_blocks;
}

bool
conn_user_is_full(const struct conn *conn, size_t bytes)
{
	const struct conn_set *set = conn->set;
	const struct user *user = conn->user;
	uint32_t idle = set->slab->n_idle;

	/* One reply at a time is for everybody. */
	return user->n_out + user->n_reserved &&
	       !user_may_hold(user, conn_blocks_for(bytes),
		   idle > set->n_reserved ? idle - set->n_reserved : 0);
}

/*
 * A reply that is alone needs only to fit into the slab; beside others it must fit into
 * the connection's budget, which shrinks as the slab fills.
 */
bool
conn_reply_fits(const struct conn *conn, size_t bytes)
{
	const struct conn_set *set = conn->set;
	size_t pending = conn->out.len + conn->reserved;
	uint32_t idle = set->slab->n_idle, budget;

	if (set->n_reserved + conn_blocks_for(bytes) > idle ||
	    conn_user_is_full(conn, bytes))
		return false;
	if (!pending)
		return true;
	budget = (idle - set->n_reserved) / CONN_SHARE * SLAB_BLOCK_BYTES;
	return pending + bytes <= (budget < OUTPUT_BYTES ? budget : OUTPUT_BYTES);
}

void
conn_mark_dirty(struct conn *conn)
{
	if (!conn->dirty && !conn->dead) {
		conn->dirty = true;
		TAILQ_INSERT_TAIL(&conn->set->dirty, conn, dirty_link);
	}
}

static void
conn_enter_queue(struct conn *conn, enum conn_queue queue)
{
	struct conn_set *set = conn->set;

	if (conn->queue == queue)
		return;
	if (conn->queue == CONN_QUEUE_READY)
		conn_turn_remove(conn->user, conn);
	else if (conn->queue == CONN_QUEUE_STARVED)
		TAILQ_REMOVE(&set->starved, conn, queue_link);
	conn->queue = queue;
	if (queue == CONN_QUEUE_READY)
		conn_turn_add(conn->user, conn);
	else if (queue == CONN_QUEUE_STARVED)
		TAILQ_INSERT_TAIL(&set->starved, conn, queue_link);
}

static void
conn_run_deadline(struct conn *conn, enum conn_deadline deadline)
{
	struct conn_set *set = conn->set;

	if (conn->deadline == deadline)
		return;
	if (conn->deadline == CONN_DEADLINE_HELLO)
		TAILQ_REMOVE(&set->hello, conn, deadline_link);
	else if (conn->deadline == CONN_DEADLINE_FRAME)
		TAILQ_REMOVE(&set->partial, conn, deadline_link);
	conn->deadline = deadline;
	conn->since_us = request_now_us();
	if (deadline == CONN_DEADLINE_HELLO)
		TAILQ_INSERT_TAIL(&set->hello, conn, deadline_link);
	else if (deadline == CONN_DEADLINE_FRAME)
		TAILQ_INSERT_TAIL(&set->partial, conn, deadline_link);
}

static void
conn_mark_stalled(struct conn *conn, bool stalled)
{
	struct conn_set *set = conn->set;

	if (conn->stalled)
		TAILQ_REMOVE(&set->stalled, conn, stalled_link);
	conn->stalled = stalled;
	if (stalled) {
		conn->progress_us = request_now_us();
		TAILQ_INSERT_TAIL(&set->stalled, conn, stalled_link);
	}
}

/* There is no memory for its event: nothing that it does would be seen any more. */
static void
conn_lose(struct conn *conn)
{
	if (conn->dead)
		return;
	conn_set_count_lost(conn->set);
	conn_kill(conn);
}

static void
conn_want_read(struct conn *conn, bool reading)
{
	if (conn->reading == reading)
		return;
	conn->reading = reading;
	if (reading ? event_add(&conn->read_event, NULL) : event_del(&conn->read_event))
		conn_lose(conn);
}

static void
conn_want_write(struct conn *conn, bool writing)
{
	if (conn->writing == writing)
		return;
	conn->writing = writing;
	if (writing ? event_add(&conn->write_event, NULL)
		    : event_del(&conn->write_event))
		conn_lose(conn);
}

/* Puts the connection where it belongs, from what its buffers hold. */
void
conn_update(struct conn *conn)
{
	enum frame_state state;
	bool whole, want;

	conn_count_blocks(conn);
	if (conn->dead || conn->closing)
		return;
	state = frame_peek(&conn->in, conn_max_message(conn), &conn->frame_size);
	whole = state == FRAME_WHOLE || state == FRAME_BROKEN;
	if (conn->eof && !whole && !conn->n_deferred) {
		conn_close_after_output(conn);
		return;
	}
	if (conn->wanted && conn_reply_fits(conn, conn->wanted))
		conn->wanted = 0;
	conn_note_released(conn);
	if (conn->wanted)
		conn_enter_queue(conn, conn->out.len + conn->reserved
					   ? CONN_QUEUE_NONE
					   : CONN_QUEUE_STARVED);
	else
		conn_enter_queue(conn, whole ? CONN_QUEUE_READY : CONN_QUEUE_NONE);
	if (!conn->greeted)
		conn_run_deadline(conn, CONN_DEADLINE_HELLO);
	else
		conn_run_deadline(conn,
		    state == FRAME_PARTIAL ? CONN_DEADLINE_FRAME : CONN_DEADLINE_NONE);

	/* Whose bytes can't be read loses the event: it would fire again and again. */
	want = !conn->eof && !conn->wanted;
	conn_mark_hungry(conn, conn->hungry && want && !whole);
	conn_want_read(conn, want && !conn->hungry && (!whole || conn_can_read(conn)));
}

/* What was received and not yet taken is dropped; what is to be sent still goes out. */
void
conn_close_after_output(struct conn *conn)
{
	if (conn->dead || conn->closing)
		return;
	conn->closing = true;
	conn->wanted = 0;
	chain_drain(&conn->in, conn->set->slab, conn->in.len);
	conn_count_blocks(conn);
	conn_enter_queue(conn, CONN_QUEUE_NONE);
	conn_run_deadline(conn, CONN_DEADLINE_NONE);
	conn_mark_hungry(conn, false);
	conn_want_read(conn, false);
	conn_mark_dirty(conn);
}

/* The end, at once: its buffers are free again, itself when the turn is over. */
void
conn_kill(struct conn *conn)
{
	struct conn_set *set = conn->set;

	if (conn->dead)
		return;
	conn->closing = true;
	conn_enter_queue(conn, CONN_QUEUE_NONE);
	conn_run_deadline(conn, CONN_DEADLINE_NONE);
	conn_mark_hungry(conn, false);
	conn_mark_stalled(conn, false);
	if (conn->dirty)
		TAILQ_REMOVE(&set->dirty, conn, dirty_link);
	conn->dirty = false;
	conn->dead = true;
	conn_want_read(conn, false);
	conn_want_write(conn, false);
	chain_drain(&conn->in, set->slab, conn->in.len);
	chain_drain(&conn->out, set->slab, conn->out.len);
	conn_count_blocks(conn);
	TAILQ_INSERT_TAIL(&set->dead, conn, queue_link);
}

static void
conn_writable(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;

	conn_set_woke(conn->set);
	conn_send(conn);
	conn_update(conn);
}

/* One send of all that is there. */
void
conn_send(struct conn *conn)
{
	struct iovec iov[CONN_IOV_BLOCKS];
	struct msghdr msg = {.msg_iov = iov};
	ssize_t n = 0;

	if (conn->dead)
		return;
	if (conn->out.len) {
		msg.msg_iovlen = (size_t)chain_iov(&conn->out, iov, CONN_IOV_BLOCKS);
		n = sendmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
			conn_kill(conn);
			return;
		}
	}
	if (n > 0)
		chain_drain(&conn->out, conn->set->slab, (size_t)n);
	if (!conn->out.len && conn->closing && !conn->n_deferred) {
		conn_kill(conn);
		return;
	}
	conn_want_write(conn, conn->out.len != 0);
	if (!conn->out.len)
		conn_mark_stalled(conn, false);
	else if (n > 0 || !conn->stalled)
		conn_mark_stalled(conn, true);
}

struct conn *
conn_new(struct conn_set *set, int fd, const struct conn_peer *peer)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->set = set;
	conn->fd = fd;
	conn->peer = *peer;
	chain_init(&conn->in);
	chain_init(&conn->out);
	STAILQ_INIT(&conn->open);
	if (event_assign(&conn->read_event, set->base, fd, EV_READ | EV_PERSIST,
		conn_readable, conn) ||
	    event_assign(&conn->write_event, set->base, fd, EV_WRITE | EV_PERSIST,
		conn_writable, conn)) {
		free(conn);
		return NULL;
	}
	conn->user = user_join(&set->users, peer->uid, peer->refusal != STATUS_OK);
	if (!conn->user) {
		free(conn);
		return NULL;
	}
	return conn;
}

void
conn_free(struct conn *conn)
{
	assert(conn->dead && STAILQ_EMPTY(&conn->open));
	close(conn->fd);
	user_leave(conn->user);
	user_seat_give(conn->peer.seat);
	free(conn);
}
