/* SPDX-License-Identifier: Apache-2.0 */
/* All connections of one thread: the rotation, the deadlines, and who must go. */
#include <assert.h>
#include <unistd.h>

#include "admission.h"
#include "config.h"
#include "conn_priv.h"
#include "kem/fault.h"
#include "log.h"
#include "metrics.h"

#define TICK_US      1000000u /* an idle thread turns once a second */
#define TICK_SOON_US 50000u   /* while a deadline runs */
/* When buffers run short: what has not moved for so long makes room for others. */
#define PARTIAL_GRACE_US 250000u
#define STALL_GRACE_US   500000u

void
conn_set_woke(struct conn_set *set)
{
	if (!set->woke_us)
		set->woke_us = request_now_us();
}

static void
conn_set_tick(evutil_socket_t fd, short what, void *arg)
{
	struct conn_set *set = arg;

	conn_set_woke(set);
	set->ticking = set->ticking_soon = false;
}

int
conn_set_init(struct conn_set *set)
{
	TAILQ_INIT(&set->all);
	user_table_init(&set->users);
	TAILQ_INIT(&set->starved);
	TAILQ_INIT(&set->dirty);
	TAILQ_INIT(&set->stalled);
	TAILQ_INIT(&set->dead);
	TAILQ_INIT(&set->hello);
	TAILQ_INIT(&set->partial);
	return evtimer_assign(&set->tick_event, set->base, conn_set_tick, set);
}

void
conn_set_count_lost(struct conn_set *set)
{
	if (fault("conn-lost-unseen"))
		return;
	metrics_add(&set->metrics->shed_total, 1);
	log_event_limited(
	    LOG_WARNING, "no-memory", "a connection was closed: out of memory");
}

int
conn_set_add(struct conn_set *set, int fd, const struct conn_peer *peer)
{
	struct conn *conn = conn_new(set, fd, peer);

	if (!conn) {
		conn_set_count_lost(set);
		close(fd);
		user_seat_give(peer->seat);
		return -1;
	}
	TAILQ_INSERT_TAIL(&set->all, conn, all_link);
	set->n_conns++;
	metrics_add(&set->metrics->connections_total, 1);
	metrics_set(&set->metrics->connections, set->n_conns);
	conn_update(conn);
	return 0;
}

/* Frees those that died. Outside of a batch: their keys go too. */
static void
conn_set_sweep(struct conn_set *set)
{
	struct conn *conn;

	while ((conn = TAILQ_FIRST(&set->dead))) {
		TAILQ_REMOVE(&set->dead, conn, queue_link);
		TAILQ_REMOVE(&set->all, conn, all_link);
		set->n_conns--;
		set->ops->gone(set->owner, &conn->peer);
		conn_free(conn);
	}
	metrics_set(&set->metrics->connections, set->n_conns);
}

void
conn_set_fini(struct conn_set *set)
{
	struct conn *conn;

	if (!set->ops)
		return;
	TAILQ_FOREACH(conn, &set->all, all_link)
		conn_kill(conn);
	conn_set_sweep(set);
	evtimer_del(&set->tick_event);
}

bool
conn_set_has_work(const struct conn_set *set)
{
	return conn_turn_next(&set->users) != NULL;
}

bool
conn_set_is_quiet(const struct conn_set *set)
{
	return !conn_set_has_work(set) && TAILQ_EMPTY(&set->starved) &&
	       TAILQ_EMPTY(&set->stalled) && TAILQ_EMPTY(&set->users.hungry) &&
	       TAILQ_EMPTY(&set->hello);
}

static bool
conn_set_is_pressed(const struct conn_set *set)
{
	return !TAILQ_EMPTY(&set->users.hungry) || !TAILQ_EMPTY(&set->starved);
}

void
conn_set_arm(struct conn_set *set)
{
	bool soon = conn_set_is_pressed(set) || !TAILQ_EMPTY(&set->hello) ||
		    !TAILQ_EMPTY(&set->partial) || !TAILQ_EMPTY(&set->stalled);
	struct timeval tv = {.tv_usec = TICK_SOON_US};

	if (set->ticking && (set->ticking_soon || !soon))
		return;
	if (!soon)
		tv = (struct timeval){.tv_sec = TICK_US / 1000000};
	set->ticking = !evtimer_add(&set->tick_event, &tv);
	set->ticking_soon = soon;
}

void
conn_set_collect(struct conn_set *set, uint32_t n_items)
{
	uint32_t left = n_items;
	struct conn *conn;

	while (left && (conn = conn_turn_next(&set->users))) {
		struct user *user = conn->user;
		uint32_t taken = 0;
		int r = conn_take_request(conn, left, left == n_items, &taken);

		if (r == CONN_E_TURN_FULL)
			break;
		left -= taken < left ? taken : left;
		/* It stands behind the others again, if it has more. */
		if (!r && !fault("skip-rotation") && !conn->closing)
			conn_turn_pass(user, conn);
		conn_update(conn);
	}
}

static void
conn_drop(
    struct conn *conn, _Atomic uint64_t *counter, const char *event, const char *why)
{
	metrics_add(counter, 1);
	log_event_limited(LOG_NOTICE, event, "connection %llu of uid %u is closed: %s",
	    (unsigned long long)conn->peer.id, conn->peer.uid, why);
	conn_kill(conn);
}

static bool
conn_is_overdue(const struct conn *conn, uint64_t now_us, uint64_t timeout_us)
{
	return conn && now_us >= conn->since_us + timeout_us;
}

/*
 * It is not its fault that nothing of it is read, for want of room; but nobody would see
 * that it is gone, so its reprieve ends with limits.frame-timeout.
 */
static bool
conn_is_spared(struct conn *conn, uint64_t now_us)
{
	if (!conn->hungry)
		return false;
	if (!conn->spared_us)
		conn->spared_us = now_us;
	return now_us - conn->spared_us < conn->set->config->frame_timeout_ms * 1000ull;
}

static void
conn_set_expire(struct conn_set *set, uint64_t now_us)
{
	struct conn *conn, *next;

	while (conn = TAILQ_FIRST(&set->hello),
	    conn_is_overdue(conn, now_us, set->config->hello_timeout_ms * 1000ull)) {
		if (conn_is_spared(conn, now_us)) {
			TAILQ_REMOVE(&set->hello, conn, deadline_link);
			TAILQ_INSERT_TAIL(&set->hello, conn, deadline_link);
			conn->since_us = now_us;
			continue;
		}
		conn_drop(conn, &set->metrics->hello_timeouts_total, "hello-timeout",
		    "no Hello within limits.hello-timeout");
	}
	while (conn = TAILQ_FIRST(&set->partial),
	    conn_is_overdue(conn, now_us, set->config->frame_timeout_ms * 1000ull))
		conn_drop(conn, &set->metrics->frame_timeouts_total, "frame-timeout",
		    "a frame took longer than limits.frame-timeout");
	/* Who is to be closed and does not read its last answers. */
	for (conn = TAILQ_FIRST(&set->stalled); conn; conn = next) {
		next = TAILQ_NEXT(conn, stalled_link);
		if (conn->closing &&
		    now_us >=
			conn->progress_us + set->config->frame_timeout_ms * 1000ull)
			conn_kill(conn);
	}
}

/* Who of user (NULL: of all) has held buffers for longest without getting on, or NULL. */
static struct conn *
conn_set_oldest(
    struct conn_set *set, bool for_input, const struct user *user, uint64_t now_us)
{
	struct conn *conn;

	if (for_input) {
		TAILQ_FOREACH(conn, &set->hello, deadline_link) {
			if (!conn_is_overdue(conn, now_us, PARTIAL_GRACE_US))
				break;
			if (conn->in.n_blocks && (!user || conn->user == user))
				return conn;
		}
		TAILQ_FOREACH(conn, &set->partial, deadline_link) {
			if (!conn_is_overdue(conn, now_us, PARTIAL_GRACE_US))
				break;
			if (!user || conn->user == user)
				return conn;
		}
	}
	TAILQ_FOREACH(conn, &set->stalled, stalled_link) {
		if (now_us < conn->progress_us + STALL_GRACE_US)
			break;
		if (!user || conn->user == user)
			return conn;
	}
	return NULL;
}

static void
conn_drop_holder(struct conn *conn)
{
	conn_drop(conn, &conn->set->metrics->frame_timeouts_total, "buffers-full",
	    "it held buffers that others wait for (limits.buffers)");
}

/*
 * Somebody waits whose own user holds what one user may: that user makes room, and for
 * more than one for the same reason as below.
 */
static void
conn_set_relieve_users(struct conn_set *set, uint64_t now_us)
{
	const struct conn *starved = TAILQ_FIRST(&set->starved);
	uint32_t some = set->slab->n_blocks / 16;
	struct user *user, *next;
	struct conn *conn;

	if (starved && conn_user_is_full(starved, starved->wanted)) {
		while (!user_may_hold(starved->user, some, set->slab->n_idle) &&
		       (conn = conn_set_oldest(set, false, starved->user, now_us)))
			conn_drop_holder(conn);
	}
	for (user = TAILQ_FIRST(&set->users.hungry); user; user = next) {
		next = TAILQ_NEXT(user, hungry_link);
		if (user_may_hold(user, 1, slab_input_room(set->slab)))
			continue;
		while (!user_may_hold(user, some, slab_input_room(set->slab)) &&
		       (conn = conn_set_oldest(set, true, user, now_us)))
			conn_drop_holder(conn);
	}
}

/*
 * Somebody waits for blocks and there are none: those that hold some and do not move are
 * dropped, the oldest first, until an eighth of the slab is free (a few blocks would only
 * go to the next who does not move). While requests are ready, room comes from them.
 */
static void
conn_set_relieve(struct conn_set *set, uint64_t now_us)
{
	const struct conn *starved = TAILQ_FIRST(&set->starved);
	bool for_input =
	    !TAILQ_EMPTY(&set->users.hungry) && !slab_input_room(set->slab);
	bool for_output = starved && !conn_reply_fits(starved, starved->wanted);
	uint32_t enough = set->slab->n_blocks / 8;
	struct conn *conn;

	if (conn_set_has_work(set))
		return;
	while (((for_input && slab_input_room(set->slab) < enough) ||
		   (for_output && set->slab->n_idle < enough)) &&
	       (conn = conn_set_oldest(set, for_input, NULL, now_us)))
		conn_drop_holder(conn);
	conn_set_relieve_users(set, now_us);
}

/*
 * Blocks have come back: those that wait for them go on, in order. Who waits for its own
 * user's blocks holds nobody else up.
 */
static void
conn_set_feed(struct conn_set *set)
{
	struct conn *conn, *next;

	for (conn = TAILQ_FIRST(&set->starved); conn; conn = next) {
		next = TAILQ_NEXT(conn, queue_link);
		if (conn_reply_fits(conn, conn->wanted))
			conn_update(conn);
		else if (!conn_user_is_full(conn, conn->wanted))
			break;
	}
	conn_set_feed_hungry(set);
}

void
conn_set_flush(struct conn_set *set)
{
	uint64_t now_us = request_now_us();
	struct conn *conn;

	set->n_reserved = 0;
	mem_wipe(set->mem);
	while ((conn = TAILQ_FIRST(&set->dirty))) {
		TAILQ_REMOVE(&set->dirty, conn, dirty_link);
		conn->dirty = false;
		conn->reserved = 0;
		conn->user->n_reserved = 0;
		conn_send(conn);
		conn_update(conn);
	}
	conn_set_expire(set, now_us);
	if (conn_set_is_pressed(set))
		conn_set_relieve(set, now_us);
	conn_set_sweep(set);
	if (conn_set_is_pressed(set))
		conn_set_feed(set);
}

void
conn_set_recheck(struct conn_set *set)
{
	struct conn *conn;

	TAILQ_FOREACH(conn, &set->all, all_link) {
		if (conn->peer.refusal || conn->dead ||
		    admission_allows(conn->fd, set->config, NULL))
			continue;
		log_event_limited(LOG_NOTICE, "peer-removed",
		    "connection %llu of uid %u is closed: no longer allowed",
		    (unsigned long long)conn->peer.id, conn->peer.uid);
		conn_kill(conn);
	}
}
