/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * local.h: work in this process (bench.c, local.c, share.c). As many threads as there
 * are benches work at once; the handle's lock is held only to take a bench and to give
 * it back, and the pool of X25519 pairs is looked after at the same two moments.
 */
#ifndef MLKEMCLIENT_LOCAL_H
#define MLKEMCLIENT_LOCAL_H

#include <pthread.h>
#include <stdint.h>

#include "client-lib/job.h"
#include "kem/kem.h"

#define LOCAL_MAX_BENCHES 16        /* more would only wait for processors */
#define LOCAL_MAX_PAIRS   16        /* X25519 ephemerals that are kept */
#define LOCAL_MAX_AGE_US  30000000u /* of them, as in the daemon's pool */

/* All that passes through here in the clear, in one locked mapping. */
struct bench {
	struct kem_scratch scratch;
	struct kem_shared shared[KEM_GROUP_MAX];
	uint8_t secret[KEM_GROUP_MAX][KEM_SECRET_MAX];
	uint8_t share[KEM_GROUP_MAX][KEM_SHARE_MAX];
	struct kem_x25519 pairs[KEM_GROUP_MAX]; /* to be used */
	struct kem_x25519 made[KEM_GROUP_MAX];  /* on the way, for the pool */
	size_t n_pairs, n_made;
	const struct kem *kem;
	struct bench *next;
};

/* Part of struct live: all zero in a child, pairs included. */
struct local {
	struct bench *idle;
	unsigned n_benches;
	pthread_cond_t given_back;
	size_t n_pairs;
	struct kem_x25519 pairs[LOCAL_MAX_PAIRS]; /* oldest first */
	uint64_t made_us[LOCAL_MAX_PAIRS];        /* by client_age_now() */
};

/*
 * bench_take() waits for one if all are taken; the first opens the kem. NULL: there is
 * no memory, or no kem (told in the thread's message). Both without the lock.
 */
struct bench *bench_take(struct mlkemclient *client);
void bench_give(struct mlkemclient *client, struct bench *bench, size_t n_done);

/* Up to n pairs for the bench out of the pool, and what it made into it. */
void bench_trade_pairs(struct mlkemclient *client, struct bench *bench, size_t n);
/* Wipes those that are too old, under the lock; the machine may have slept meanwhile. */
void pairs_drop_old(struct mlkemclient *client);
void bench_wipe(
    struct bench *bench); /* after each group; the scratch is wiped by kem */

/*
 * local.c: works every pending item of the job, up to deadline_us (a started group
 * ends). Each gets its error.
 */
void local_run(struct mlkemclient *client, struct job *job, uint64_t deadline_us);

#endif
