/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user.h: whom the connections belong to, and what each user holds. A user is a uid; all
 * who are refused are one user together. One user may hold its share (limits.user-share)
 * of connections and live keys, and of what is made in advance as soon as others are
 * there; of the buffers it may hold seven times what it leaves free; of a turn, as much
 * as any other user who has requests.
 *
 * struct user is a shard's own. struct user_seat counts the connections of a user in the
 * whole daemon: main takes a seat when it accepts, the shard gives it back.
 */
#ifndef MLKEMD_USER_H
#define MLKEMD_USER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#define USER_POOLS 3u /* KEYPOOL_N_KINDS */

struct conn;
struct user_table;
TAILQ_HEAD(conn_list, conn);
TAILQ_HEAD(user_list, user);

struct user {
	uid_t uid;
	bool refused; /* nobody in particular */
	struct user_table *table;
	uint32_t n_conns;
	uint32_t n_in, n_out; /* buffer blocks that its connections hold */
	uint32_t n_reserved;  /* and those promised to replies of this turn */
	uint32_t n_keys;      /* live handles */
	uint32_t n_promised;  /* handles promised to the batch that waits, ... */
	uint64_t promised_to; /* ... and to which one */
	struct user_pooled {
		uint32_t n;        /* entries taken, in the second that ... */
		uint64_t since_us; /* ... began then */
	} pooled[USER_POOLS];
	struct conn_list ready;  /* its connections that have a whole request */
	struct conn_list hungry; /* and that wait for buffers, in that order */
	TAILQ_ENTRY(user) all_link, ready_link, hungry_link;
};

struct user_table {
	struct user_list all, ready, hungry; /* who has connections there */
	uint32_t n_users;                    /* those refused not counted */
};

void user_table_init(struct user_table *table);

/* One more connection of that user. NULL: out of memory. */
struct user *user_join(struct user_table *table, uid_t uid, bool refused);
/* One less; the user goes with the last. */
void user_leave(struct user *user);

/* Whether it may hold n more blocks when n_idle are free. Who holds none always may. */
bool user_may_hold(const struct user *user, uint32_t n, uint32_t n_idle);

/*
 * Whether an entry of that pool (of USER_POOLS), which holds size of them, is for it now;
 * counts it if so.
 */
bool user_take_pooled(struct user *user, unsigned pool, uint32_t size,
    uint32_t share_percent, uint64_t now_us);

/* A part of n, at least one. */
uint32_t user_share(uint32_t n, uint32_t share_percent);

struct user_seat {
	uid_t uid;
	_Atomic uint32_t n_taken;
	struct user_seat *next;
};

/*
 * A seat of uid's for one more connection, if it has fewer than most. Main's thread.
 * NULL: it has as many, or out of memory.
 */
struct user_seat *user_seat_take(struct user_seat **seats, uid_t uid, uint32_t most);
void user_seat_give(struct user_seat *seat); /* any thread; NULL is fine */
void user_seats_free(struct user_seat *seats);

#endif
