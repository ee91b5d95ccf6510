/* SPDX-License-Identifier: Apache-2.0 */
/* From the bytes at the front of a connection to a request, and from its answer back. */
#include <assert.h>
#include <stdio.h>

#include "config.h"
#include "conn_priv.h"
#include "frame.h"
#include "log.h"
#include "metrics.h"
#include "proto/wire.h"
#include "service.h"

/*
 * What one connection's Hellos may add to counters, in all. Fallbacks are for an alarm;
 * what route auto placed is as much as a long-lived client does.
 */
#define CONN_FALLBACKS_MAX UINT64_C(1000000)
#define CONN_AUTO_MAX      UINT64_C(1000000000)

struct conn_sink {
	struct codec_sink sink;
	struct conn *conn;
	bool ok;
};

static void
conn_sink_append(struct codec_sink *sink, const uint8_t *data, size_t len)
{
	struct conn_sink *conn_sink = (struct conn_sink *)sink;
	struct conn *conn = conn_sink->conn;

	if (conn_sink->ok)
		conn_sink->ok = chain_append(&conn->out, conn->set->slab, data, len);
}

static void
conn_encode(struct conn *conn, const struct request *req)
{
	struct conn_set *set = conn->set;
	struct conn_sink sink = {
	    .sink.append = conn_sink_append, .conn = conn, .ok = true};

	set->about.connection = conn->peer.id;
	codec_encode(req, &set->about, &sink.sink);
	conn_mark_dirty(conn);
	if (!sink.ok) {
		/* Room was reserved for it: service_reply_bound() was wrong. */
		log_event_limited(LOG_ERR, "reply-lost",
		    "connection %llu: no buffer for a reply",
		    (unsigned long long)conn->peer.id);
		chain_drain(&conn->out, set->slab, conn->out.len);
		conn_close_after_output(conn);
	}
}

/* One wait lasts until all answers are out, however often some room comes free. */
static void
conn_note_held(struct conn *conn)
{
	if (conn->held)
		return;
	conn->held = true;
	conn->held_by_peer = conn->out.len + conn->reserved;
	conn->held_us = request_now_us();
}

void
conn_note_released(struct conn *conn)
{
	if (!conn->held || conn->wanted)
		return;
	conn->released_us = request_now_us();
	conn->held = conn->out.len || !STAILQ_EMPTY(&conn->open);
}

/* What a request waited for, for most of its time. */
static const char *
conn_waited_for(const struct conn *conn, const struct request *req, uint32_t took_us)
{
	uint64_t end_us = conn->held ? request_now_us() : conn->released_us;
	uint64_t begin_us =
	    conn->held_us > req->arrived_us ? conn->held_us : req->arrived_us;

	if (!conn->held_us || end_us < begin_us + took_us / 2)
		return "its turn";
	return conn->held_by_peer ? "its client to read" : "room in limits.buffers";
}

/* The line by which "was it mlkemd?" is answered: both ids are the client's too. */
static void
conn_log_slow(const struct conn *conn, const struct request *req, uint32_t took_us)
{
	char batch[64] = "no batch";

	if (req->batch_items)
		snprintf(batch, sizeof(batch), "queue %u us, batch %u, %u us",
		    req->queue_us, req->batch_items, req->work_us);
	log_event_limited(LOG_NOTICE, "slow-request",
	    "connection %llu, request %llu: %s%s%s, items %u, status %d: %u us (%s; "
	    "waited for %s)",
	    (unsigned long long)conn->peer.id, (unsigned long long)req->id,
	    metrics_request_op_name(req->op), req->n_items ? " " : "",
	    req->n_items ? kem_alg_info(req->alg)->name : "", req->n_items,
	    (int)req->status, took_us, batch, conn_waited_for(conn, req, took_us));
}

/* Counts it, and keeps the recent mean from arrival to answer: a sixteenth each. */
static void
conn_note_done(struct conn *conn, const struct request *req)
{
	struct conn_set *set = conn->set;
	uint64_t now_us = request_now_us();
	int64_t took =
	    now_us > req->arrived_us ? (int64_t)(now_us - req->arrived_us) : 0;
	int64_t mean = set->about.service_us;
	uint32_t slow_us = set->config->slow_request_us;

	if (took > UINT32_MAX / 2)
		took = UINT32_MAX / 2;
	mean += (took - mean) / 16;
	set->about.service_us = (uint32_t)mean;
	metrics_request_done(set->metrics, req, (uint32_t)took);
	if (slow_us && took >= slow_us && !set->control) {
		metrics_add(&set->metrics->slow_requests_total, 1);
		conn_log_slow(conn, req, (uint32_t)took);
	}
}

static void
conn_done(struct request *req)
{
	struct conn *conn = req->owner;

	STAILQ_REMOVE(&conn->open, req, request, next);
	conn_note_done(conn, req);
	if (req->op == REQUEST_HELLO && req->status == STATUS_OK) {
		conn->greeted = true;
		log_event(LOG_DEBUG, "hello", "connection %llu, uid %u: \"%s\"",
		    (unsigned long long)conn->peer.id, conn->peer.uid,
		    req->client_name ? req->client_name : "");
	}
	conn_encode(conn, req);
}

void
conn_defer(struct request *req)
{
	struct conn *conn = req->owner;

	STAILQ_REMOVE(&conn->open, req, request, next);
	conn->n_deferred++;
}

void
conn_answer_deferred(struct conn_set *set, struct request *req)
{
	struct conn *conn;

	TAILQ_FOREACH(conn, &set->all, all_link) {
		if (conn->peer.id == req->conn_id && conn->n_deferred && !conn->dead) {
			conn->n_deferred--;
			conn_encode(conn, req);
			conn_update(conn);
			return;
		}
	}
}

/* Fate one of four: this connection ends, after the answers that it has coming. */
static int
conn_broken(struct conn *conn, const char *why)
{
	metrics_add(&conn->set->metrics->broken_frames_total, 1);
	log_event_limited(LOG_NOTICE, "frame-broken",
	    "connection %llu of uid %u is closed: %s",
	    (unsigned long long)conn->peer.id, conn->peer.uid, why);
	conn_close_after_output(conn);
	return CONN_E_CLOSED;
}

static bool
conn_id_in_use(const struct conn *conn, uint64_t id)
{
	const struct request *req;

	STAILQ_FOREACH(req, &conn->open, next) {
		if (req->id == id)
			return true;
	}
	return false;
}

/* The one answer that somebody gets who may not come in, or not again. */
static void
conn_refuse(struct conn *conn, struct request *req)
{
	req->status = conn->peer.refusal;
	if (req->status == STATUS_DENIED)
		req->message = "this user may not use this socket; the daemon's log "
			       "names the line of the configuration that allows it";
	else
		req->message = "this user has as many connections as one may have "
			       "(limits.user-share of limits.max-connections)";
	conn_done(req);
	conn_close_after_output(conn);
}

static uint64_t
claim_take(uint64_t claim, uint64_t *takenp, uint64_t most)
{
	uint64_t n = claim < most - *takenp ? claim : most - *takenp;

	*takenp += n;
	return n;
}

/* Counters of what clients say of themselves take only so much of one connection. */
static void
conn_limit_claims(struct conn *conn, struct request *req)
{
	req->fallbacks =
	    claim_take(req->fallbacks, &conn->n_fallbacks, CONN_FALLBACKS_MAX);
	req->auto_daemon =
	    claim_take(req->auto_daemon, &conn->n_auto_daemon, CONN_AUTO_MAX);
	req->auto_local =
	    claim_take(req->auto_local, &conn->n_auto_local, CONN_AUTO_MAX);
}

/* Decodes what is at the front and sees whether its reply has room; undoes it if not. */
static int
conn_decode(struct conn *conn, uint32_t n_items, bool first, struct request **reqp,
    size_t *bound)
{
	struct conn_set *set = conn->set;
	struct mem *mem = set->mem;
	size_t mark = mem->used, len = conn->frame_size - WIRE_HEADER_BYTES;
	const uint8_t *message;

	if (!codec_mem_fits(mem, len))
		return CONN_E_TURN_FULL;
	message = frame_message(&conn->in, conn->frame_size, mem);
	if (!message)
		return CONN_E_TURN_FULL;
	if (codec_decode(mem, message, len,
		chain_written_us(&conn->in, conn->frame_size),
		set->config->default_timeout_us, reqp))
		return conn_broken(conn, "a message that is no Request");
	(*reqp)->control = set->control;
	if (!first && (*reqp)->n_items > n_items) {
		mem_rewind(mem, mark);
		return CONN_E_TURN_FULL;
	}
	*bound = service_reply_bound(*reqp);
	if (!conn_reply_fits(conn, *bound)) {
		mem_rewind(mem, mark);
		conn->wanted = *bound;
		conn_note_held(conn);
		return CONN_E_WAITS;
	}
	return 0;
}

/*
 * Takes the request at the front and has it handled. n_items is how many the turn still
 * takes, first whether it has none yet (then any number is good). *takenp is what it
 * counts for. Returns 0, or a CONN_E_...
 */
int
conn_take_request(struct conn *conn, uint32_t n_items, bool first, uint32_t *takenp)
{
	struct conn_set *set = conn->set;
	struct request *req;
	uint32_t n_blocks;
	size_t bound = 0;
	int r;

	if (frame_peek(&conn->in, conn_max_message(conn), &conn->frame_size) !=
	    FRAME_WHOLE)
		return conn_broken(conn, "a frame's length is 0 or over the limit");
	r = conn_decode(conn, n_items, first, &req, &bound);
	if (r)
		return r;
	chain_drain(&conn->in, set->slab, conn->frame_size);
	conn->frame_size = 0;
	if (!conn->greeted && req->op != REQUEST_HELLO)
		return conn_broken(conn, "the first message is not Hello");
	if (conn_id_in_use(conn, req->id))
		return conn_broken(conn, "an id that is in use");
	*takenp = req->n_items ? req->n_items : 1;
	conn->reserved += bound;
	n_blocks = conn_blocks_for(bound);
	set->n_reserved += n_blocks;
	conn->user->n_reserved += n_blocks;
	req->user = conn->user;
	req->conn_id = conn->peer.id;
	req->owner = conn;
	req->done = conn_done;
	STAILQ_INSERT_TAIL(&conn->open, req, next);
	conn_mark_dirty(conn);
	if (req->op == REQUEST_HELLO)
		conn_limit_claims(conn, req);
	if (conn->peer.refusal)
		conn_refuse(conn, req);
	else
		set->ops->handle(set->owner, req);
	return 0;
}
