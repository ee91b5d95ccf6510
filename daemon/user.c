/* SPDX-License-Identifier: Apache-2.0 */
#include "user.h"

#include <stdlib.h>

#include "kem/fault.h"

#define HELD_TO_FREE   7u /* what one user may hold, of what it leaves free */
#define POOL_WINDOW_US 1000000u

void
user_table_init(struct user_table *table)
{
	TAILQ_INIT(&table->all);
	TAILQ_INIT(&table->ready);
	TAILQ_INIT(&table->hungry);
	table->n_users = 0;
}

struct user *
user_join(struct user_table *table, uid_t uid, bool refused)
{
	struct user *user;

	TAILQ_FOREACH(user, &table->all, all_link) {
		if (user->refused == refused && (refused || user->uid == uid)) {
			user->n_conns++;
			return user;
		}
	}
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	user->refused = refused;
	user->table = table;
	user->n_conns = 1;
	TAILQ_INIT(&user->ready);
	TAILQ_INIT(&user->hungry);
	TAILQ_INSERT_HEAD(&table->all, user, all_link);
	table->n_users += !refused;
	return user;
}

void
user_leave(struct user *user)
{
	if (--user->n_conns)
		return;
	TAILQ_REMOVE(&user->table->all, user, all_link);
	user->table->n_users -= !user->refused;
	free(user);
}

bool
user_may_hold(const struct user *user, uint32_t n, uint32_t n_idle)
{
	uint32_t held = user->n_in + user->n_out + user->n_reserved;

	return n <= n_idle && (!held || held + n <= HELD_TO_FREE * (n_idle - n) ||
				  fault("user-no-limit"));
}

/*
 * Alone it may have all. Beside others it gets its share of a full pool each second, and
 * beyond that its keys are made when it asks for them.
 */
bool
user_take_pooled(struct user *user, unsigned pool, uint32_t size,
    uint32_t share_percent, uint64_t now_us)
{
	struct user_pooled *pooled = &user->pooled[pool];

	if (now_us >= pooled->since_us + POOL_WINDOW_US)
		*pooled = (struct user_pooled){.since_us = now_us};
	if (user->table->n_users > 1 && pooled->n >= user_share(size, share_percent) &&
	    !fault("user-no-limit"))
		return false;
	pooled->n++;
	return true;
}

uint32_t
user_share(uint32_t n, uint32_t share_percent)
{
	uint32_t part = (uint32_t)((uint64_t)n * share_percent / 100);

	return part ? part : 1;
}

struct user_seat *
user_seat_take(struct user_seat **seats, uid_t uid, uint32_t most)
{
	struct user_seat *seat, *empty = NULL;

	for (seat = *seats; seat; seat = seat->next) {
		uint32_t n = atomic_load(&seat->n_taken);

		if (seat->uid == uid) {
			if (n >= most && !fault("user-no-limit"))
				return NULL;
			break;
		}
		if (!n)
			empty = seat;
	}
	if (!seat && empty) {
		seat = empty;
		seat->uid = uid;
	} else if (!seat) {
		seat = calloc(1, sizeof(*seat));
		if (!seat)
			return NULL;
		seat->uid = uid;
		seat->next = *seats;
		*seats = seat;
	}
	atomic_fetch_add(&seat->n_taken, 1);
	return seat;
}

void
user_seat_give(struct user_seat *seat)
{
	if (seat)
		atomic_fetch_sub(&seat->n_taken, 1);
}

void
user_seats_free(struct user_seat *seats)
{
	while (seats) {
		struct user_seat *next = seats->next;

		free(seats);
		seats = next;
	}
}
