/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.h: connections: bytes between a socket and the slab, whole requests in rotation,
 * answers in one send a turn, deadlines, and who is dropped when buffers run short. A
 * struct conn_set is what one thread has: a shard's, or main's of the control socket.
 * All on that thread. Nothing here knows what a request means.
 */
#ifndef MLKEMD_CONN_H
#define MLKEMD_CONN_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "codec.h"
#include "request.h"
#include "slab.h"
#include "user.h"

struct config;
struct conn_set;
struct metrics_shard;

/* In which queue of the set's a connection stands for its next request. */
enum conn_queue {
	CONN_QUEUE_NONE,    /* it has none, or waits for its own output to go out */
	CONN_QUEUE_READY,   /* a whole frame (or a broken one) is at the front */
	CONN_QUEUE_STARVED, /* the slab has no room for the reply */
};

/* Which deadline runs; each list of the set's is in the order of since_us. */
enum conn_deadline {
	CONN_DEADLINE_NONE,
	CONN_DEADLINE_HELLO, /* from the connection's first moment */
	CONN_DEADLINE_FRAME, /* from the first byte of a frame that isn't whole */
};

/* Whom main let in, or not. */
struct conn_peer {
	uint64_t id; /* the connection's number, told in Hello, for the log */
	uid_t uid;
	enum request_status refusal; /* STATUS_OK, or what Hello is answered with */
	struct user_seat *seat;      /* given back at the end; NULL: it has none */
};

struct conn {
	struct conn_set *set;
	int fd;
	struct conn_peer peer;
	struct user *user;
	bool greeted; /* Hello was answered OK */
	bool eof;     /* the peer sends nothing more */
	bool closing; /* nothing more is taken; ends when the output is out */
	bool dead;    /* stands in set->dead */

	struct event read_event, write_event;
	bool reading, writing; /* the events are added */

	struct chain in, out;
	size_t frame_size;    /* of the frame at the front of in, 0 if not known */
	size_t reserved;      /* reply bytes promised to requests of this turn */
	size_t wanted;        /* reply bytes that the next request waits for, or 0 */
	uint32_t n_in, n_out; /* blocks, as the user's count has them */
	struct request_list open; /* requests of this turn */
	uint32_t n_deferred;      /* answered in a later turn (control) */

	/*
	 * When requests last waited for room for their answers, and until when unless they
	 * still do; by_peer: since those before them are not read. For the slow ones' log.
	 */
	bool held, held_by_peer;
	uint64_t held_us, released_us;

	uint64_t n_fallbacks, n_auto_daemon, n_auto_local; /* told in Hello so far */

	enum conn_queue queue;
	enum conn_deadline deadline;
	bool dirty, stalled;  /* stands in that list of the set's */
	bool hungry;          /* its bytes wait for room; stands in its user's list */
	uint64_t since_us;    /* of the deadline */
	uint64_t progress_us; /* when output last went out, while stalled */
	uint64_t spared_us;   /* hungry at its deadline for Hello; 0: not yet */
	TAILQ_ENTRY(conn) all_link, queue_link, deadline_link, hungry_link, dirty_link,
	    stalled_link;
};

/* What the set's owner does. */
struct conn_ops {
	/* Takes a request; ends in one req->done(req), this turn, or conn_defer(). */
	void (*handle)(void *owner, struct request *req);
	/* A connection has ended; called outside of a batch. */
	void (*gone)(void *owner, const struct conn_peer *peer);
};

struct conn_set {
	struct event_base *base;
	struct slab *slab;
	struct mem *mem;
	struct metrics_shard *metrics;
	const struct config *config;
	const struct conn_ops *ops;
	void *owner;
	bool control;
	size_t max_message; /* bytes, at most WIRE_MAX_FRAME_BYTES */
	struct codec_about about;

	/* private */
	struct user_table users; /* whose requests are ready, who is hungry */
	struct conn_list all, starved, dirty, stalled, dead;
	struct conn_list hello, partial;
	uint32_t n_conns;
	uint32_t n_reserved; /* blocks promised to replies of this turn */
	struct event tick_event;
	bool ticking;      /* the timer is armed */
	bool ticking_soon; /* for the short time */
	uint64_t woke_us;  /* the first callback of this turn; 0: none yet */
};

/* The fields above "private" are set. Returns 0, or -ENOMEM. */
__attribute__((warn_unused_result)) int conn_set_init(struct conn_set *set);
void conn_set_fini(struct conn_set *set); /* closes all connections */

/*
 * Takes fd over (non-blocking), and the peer's seat. Returns 0, or -ENOMEM with fd closed
 * and the seat given back.
 */
__attribute__((warn_unused_result)) int conn_set_add(
    struct conn_set *set, int fd, const struct conn_peer *peer);

/*
 * The steps of a turn, in this order: conn_set_arm(), the event loop, conn_set_collect(),
 * (the batch), conn_set_flush(). Collect takes whole requests, one a user in rotation and
 * within a user one a connection, starting behind the last served, up to n_items items.
 */
void conn_set_arm(struct conn_set *set);
void conn_set_collect(struct conn_set *set, uint32_t n_items);
void conn_set_flush(struct conn_set *set);

/* True if conn_set_collect() would find something now. */
bool conn_set_has_work(const struct conn_set *set);
/* True if no request waits, a Hello still to come included, and every answer is out. */
bool conn_set_is_quiet(const struct conn_set *set);

/* Notes the time of the first callback of a turn. */
void conn_set_woke(struct conn_set *set);

/* Closes the connections of those that the (new) configuration does not let in. */
void conn_set_recheck(struct conn_set *set);

/*
 * A handler that can't answer in this turn gives the request up (it dies with the turn)
 * and answers later, with one of its own making that has the same id and op, if the
 * connection still lives.
 */
void conn_defer(struct request *req);
void conn_answer_deferred(struct conn_set *set, struct request *req);

#endif
