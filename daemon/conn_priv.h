/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_priv.h: within conn*.c: conn.c has one connection's bytes and the lists that it
 * stands in, conn_input.c what is read of whom, conn_request.c requests and answers,
 * conn_turn.c whose turn it is, conn_set.c all of a thread's.
 */
#ifndef MLKEMD_CONN_PRIV_H
#define MLKEMD_CONN_PRIV_H

#include "conn.h"
#include "proto/wire.h"

/* Blocks of the longest frame, wherever in a block it begins. */
#define CONN_FRAME_BLOCKS (WIRE_MAX_FRAME_BYTES / SLAB_BLOCK_BYTES + 1)
#define CONN_IOV_BLOCKS   (CONN_FRAME_BLOCKS + 1)
/* One connection's part of what is free; what is left is for those who come later. */
#define CONN_SHARE 8u

static inline uint32_t
conn_blocks_for(size_t bytes)
{
	return (uint32_t)((bytes + SLAB_BLOCK_BYTES - 1) / SLAB_BLOCK_BYTES);
}

/* conn.c */
struct conn *conn_new(struct conn_set *set, int fd, const struct conn_peer *peer);
void conn_free(struct conn *conn);
void conn_update(struct conn *conn);
void conn_send(struct conn *conn);
void conn_kill(struct conn *conn);

/* One was closed, or never came in, because memory was short: counts it, and says so. */
void conn_set_count_lost(struct conn_set *set);
void conn_close_after_output(struct conn *conn);
size_t conn_max_message(const struct conn *conn);
bool conn_reply_fits(const struct conn *conn, size_t bytes);
/* Its user holds so much that the reply waits, whatever room others leave. */
bool conn_user_is_full(const struct conn *conn, size_t bytes);
void conn_count_blocks(struct conn *conn);
void conn_mark_dirty(struct conn *conn);

/* conn_input.c */
void conn_readable(evutil_socket_t fd, short what, void *arg);
/* There is room that it may have, and nobody of its user's waits for some. */
bool conn_can_read(const struct conn *conn);
/* It has bytes to be read and no room for them, or no longer. */
void conn_mark_hungry(struct conn *conn, bool hungry);
/* Blocks have come back: those that are hungry are read from. */
void conn_set_feed_hungry(struct conn_set *set);

/* conn_turn.c */
/* conn stands in its user's ready list, at the end, or no longer. */
void conn_turn_add(struct user *user, struct conn *conn);
void conn_turn_remove(struct user *user, struct conn *conn);
/* The next user's next connection. NULL: nobody has a request. */
struct conn *conn_turn_next(const struct user_table *table);
/* It had its turn and has more: behind the others of its user, who goes behind all. */
void conn_turn_pass(struct user *user, struct conn *conn);

/* conn_request.c */
enum {
	CONN_E_TURN_FULL = 1, /* the request waits for the next turn */
	CONN_E_WAITS,         /* ... for room for its reply */
	CONN_E_CLOSED,        /* broken: the connection ends */
};
void conn_note_released(struct conn *conn);
int conn_take_request(
    struct conn *conn, uint32_t n_items, bool first, uint32_t *takenp);

#endif
