/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * lease.h: key pairs fetched from the daemon before they are asked for, so that making
 * one is a copy (lease.c). A rack holds the shares and handles of one algorithm. When
 * half are left the next ones are asked for; nobody waits for that answer, a later call
 * finds it. What is too old for its handle to be worth anything is dropped, and all are
 * when the connection ends, when the daemon drains, and in a child.
 */
#ifndef MLKEMCLIENT_LEASE_H
#define MLKEMCLIENT_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-lib/job.h"
#include "client-lib/room.h"
#include "proto/wire.h"

#define LEASE_SHARE_MAX 1216 /* of the algorithms that have a rack */

struct lease {
	uint8_t handle[WIRE_HANDLE_BYTES];
	uint64_t until_us; /* by client_age_now(): not given out any more */
	uint8_t share[LEASE_SHARE_MAX];
};

/* Part of struct live; a ring in a room. All under the lock. */
struct lease_rack {
	enum kem_alg alg;
	struct room *room; /* MLKEMCLIENT_MAX_LEASES of struct lease */
	unsigned first, n;
	unsigned n_wanted; /* grows while they are used up, shrinks when they age */
	uint64_t asked_id; /* the refill under way; 0: none */
	unsigned n_asked;
	uint64_t asked_us, asked_age_us, not_before_us;
};

/* The rack of the algorithm, NULL if none is to be had. */
struct lease_rack *lease_rack_of(struct mlkemclient *client, enum kem_alg alg);

/* Makes the job's one key of a lease. False: there is none ready. */
bool lease_take(
    struct mlkemclient *client, struct lease_rack *rack, struct job_item *item);

/* Asks for more if it is time to. */
void lease_tend(struct mlkemclient *client, struct lease_rack *rack, uint64_t now_us);

/* Which rack asked with this id; NULL: none did. */
struct lease_rack *lease_find(struct mlkemclient *client, uint64_t id);

/* One key of an answer, and its end: 0, or why there are no more. */
void lease_put(struct mlkemclient *client, struct lease_rack *rack,
    const uint8_t *share, const uint8_t *handle);
void lease_answered(struct mlkemclient *client, struct lease_rack *rack, int error);

void lease_drop_all(struct mlkemclient *client);
void lease_link_gone(struct mlkemclient *client); /* and what was asked */

#endif
