/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * link.h: the connection to the daemon, one for all threads of a process. A caller
 * sends its request and waits for the answer that bears its id. One of those who wait,
 * the leader, sleeps at the socket, outside the lock, and gives every answer to its
 * asker; when it has its own it makes another the leader. Nobody else is woken for
 * nothing.
 *   exchange.c   connects, says Hello, asks again once if the connection was lost
 *   link.c       one question: sends, waits, leads
 *   answers.c    takes in what came, and finds whose it is
 *   transport.c  system calls
 */
#ifndef MLKEMCLIENT_LINK_H
#define MLKEMCLIENT_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client-lib/job.h"
#include "client-lib/room.h"
#include "proto/wire.h"

#define LINK_MAX_ABANDONED 64
#define LINK_MAX_IN_A_ROW  3
#define MESSAGE_MAX        256

/* Positive: conditions inside the library; negative: enum mlkemclient_error. */
enum {
	LINK_E_LOST = 1, /* the peer closed, between frames or inside one */
};

struct lease_rack;

/* One question to the daemon. */
enum call_op {
	CALL_HELLO,
	CALL_PING,
	CALL_INFO,
	CALL_JOB,
	CALL_RELEASE,
	CALL_LEASE,
	CALL_LATE, /* never asked: an answer whose asker has gone */
};
struct call {
	enum call_op op;
	struct job *job;               /* CALL_JOB: the items that are by_daemon */
	struct mlkemclient_info *info; /* CALL_INFO: out */
	struct lease_rack *rack;       /* CALL_LEASE */
	const uint8_t (*handles)[WIRE_HANDLE_BYTES]; /* CALL_RELEASE */
	unsigned n_handles;
	bool needs_key; /* a key of this connection: never asked on another */
	bool heeds_breaker;
	/* out */
	bool draining; /* the daemon said so */
	uint32_t batch_fill_milli, service_us;
	uint32_t wait_us;          /* from question to answer */
	char message[MESSAGE_MAX]; /* what it said, or what is wrong with it */
};

__attribute__((format(printf, 3, 4))) int call_fail(
    struct call *call, int error, const char *format, ...);

/* A caller in link_call(), on its stack. */
enum waiter_state { WAITER_TO_SEND, WAITER_SENDING, WAITER_SENT, WAITER_DONE };
struct waiter {
	struct call *call;
	enum waiter_state state;
	uint64_t id, deadline_us, sent_us;
	int error; /* once done */
	pthread_cond_t changed;
	struct waiter *next;
};

/* A socket, on the heap: closed by the last that looks at it, never under a poll(). */
struct channel {
	int fd;
	unsigned n_polls;
};

/* A question for whose answer nobody waits, and what is done with that. */
enum late { LATE_DROP, LATE_KEYS_RELEASE, LATE_HELLO };
struct abandoned {
	uint64_t id;
	enum late late;
};

/* Part of struct live. Buffers lie in room. */
struct link {
	bool ready; /* Hello was answered */
	bool opening;
	int open_error;        /* of the last one who tried */
	pthread_cond_t opened; /* or failed to */
	uint64_t generation;   /* counts connections; a key remembers its own */
	uint64_t next_id;
	struct abandoned abandoned[LINK_MAX_ABANDONED];
	unsigned n_abandoned;
	uint8_t unwanted[WIRE_MAX_ITEMS][WIRE_HANDLE_BYTES]; /* to be released */
	unsigned n_unwanted;
	unsigned timeouts_in_a_row;
	uint64_t last_silent_id; /* questions up to it are counted in that */
	uint64_t connection;     /* the daemon's number for it */
	uint32_t handle_lifetime_ms;
	struct waiter *waiters, *leader;
	struct room *room;
	bool large; /* room is for more than one item */
	uint8_t *out, *in;
	size_t out_size, out_len, out_sent; /* out_len 0: free */
	size_t in_size, in_len;
	struct arena arena; /* for encoding and decoding */
};

/*
 * All below are called with the handle's lock; those that wait give it back meanwhile.
 */

/* exchange.c. Returns 0 when the answer is in, or a negative MLKEMCLIENT_E_... */
must_check int exchange_run(
    struct mlkemclient *client, struct call *call, uint64_t deadline_us);

/*
 * link.c. link_call() asks on the open connection; may give LINK_E_LOST. link_tell()
 * asks without waiting, and only if that takes no waiting: 0, or positive if it did
 * not. The answer goes to its rack, or is dropped.
 */
must_check int link_call(
    struct mlkemclient *client, struct call *call, uint64_t deadline_us);
int link_tell(struct mlkemclient *client, struct call *call, uint64_t *idp);
/* All who wait get error (LINK_E_LOST: they may ask again elsewhere). */
void link_close(struct mlkemclient *client, int error);
bool link_is_open(const struct mlkemclient *client);
void waiter_done(struct waiter *waiter, int error);

/* answers.c. answers_take() takes in what has come, without waiting. May close the link. */
void answers_take(struct mlkemclient *client);
/* False when too many are open: then only closing keeps later replies apart. */
bool link_abandon(struct link *link, uint64_t id, enum late late);
/*
 * A key of this connection that nobody will use: link_release() tells the daemon of all
 * such as soon as that takes no waiting. What finds no place ends with its lifetime.
 */
void link_unwanted(struct link *link, const uint8_t handle[WIRE_HANDLE_BYTES]);
void link_release(struct mlkemclient *client);

/*
 * message_encode.c, message_decode.c: the only ones that see protobuf. message_encode()
 * writes frame header and message into link.out and returns the length, or a negative
 * MLKEMCLIENT_E_... message_decode() takes the answer in: 0, a negative
 * MLKEMCLIENT_E_... (the daemon refused), or MESSAGE_E_LIE (the answer can't be right:
 * nothing of it was used).
 */
enum { MESSAGE_E_LIE = 1 };
must_check ssize_t message_encode(struct mlkemclient *client, const struct call *call,
    uint64_t id, uint64_t timeout_us);
must_check int message_decode(
    struct mlkemclient *client, struct call *call, const uint8_t *message, size_t len);

/*
 * transport.c: bytes. transport_connect() ends by deadline_us with
 * MLKEMCLIENT_E_TIMEOUT; transport_wait(), called without the lock, returns what there
 * is, 0 if nothing by then, and looks for spin_us before it sleeps (*hitp: that was
 * enough). The others don't wait, and give LINK_E_LOST when the peer is gone.
 */
void server_user_find(struct mlkemclient *client);
must_check int transport_connect(
    struct mlkemclient *client, uint64_t deadline_us, int fd);
short transport_wait(const struct mlkemclient *client, int fd, short events,
    uint64_t deadline_us, uint32_t spin_us, bool *hitp);
must_check int transport_send(int fd, const uint8_t *data, size_t len, size_t *sentp);
must_check int transport_recv(int fd, uint8_t *data, size_t size, size_t *gotp);

#endif
