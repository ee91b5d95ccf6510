/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h: the shard's queue of items, grouped by operation and algorithm, worked in
 * groups of at most KEM_GROUP_MAX once per turn. Shard thread only. Owns nothing but
 * its lists: items lie in codec memory until the turn's end.
 */
#ifndef MLKEMD_BATCH_H
#define MLKEMD_BATCH_H

#include "request.h"

struct keypool;
struct metrics_shard;

enum batch_op { BATCH_KEYGEN, BATCH_ENCAPS, BATCH_DECAPS, BATCH_N_OPS };

struct batch {
	const struct kem *kem;
	struct kem_scratch *scratch; /* in the arena */
	struct metrics_shard *metrics;
	_Atomic uint64_t *groups_by_backend; /* in metrics; NULL: a backend of tests */
	struct keypool *pool; /* gets the ephemerals of idle lanes; NULL: they idle */
	uint32_t fill_milli;  /* recent mean of items in a group, x 1000 */
	uint64_t n_runs;      /* that had items */
	uint32_t n_items;     /* queued now */
	int failed; /* a KEM_FAIL_... that service met; batch_run() returns it */
	struct request_item_list queues[BATCH_N_OPS][KEM_N_ALGS];
};

void batch_init(struct batch *batch, const struct kem *kem, struct kem_scratch *scratch,
    struct metrics_shard *metrics);

/*
 * Queues an item whose inputs are set and whose outputs point to room. Counts it in
 * req->n_pending.
 */
void batch_add(struct batch *batch, struct request_item *item);

/*
 * Takes the items of a request that waits here out again, unworked, wiped and with
 * STATUS_CANCELLED. Returns the request, for the caller to finish, or NULL.
 */
struct request *batch_cancel(struct batch *batch, uint64_t conn_id, uint64_t id);

/*
 * batch_run() works all that is queued. Deadlines are checked before a group and before
 * the answer; item statuses are set, a kdf is applied, req->settle(item) is called for
 * each item that succeeded and req->done(req) for each request whose last item this was.
 * Returns 0, or a negative KEM_FAIL_... when the random generator or libcrypto failed:
 * the daemon must stop (fate four).
 */
__attribute__((warn_unused_result)) int batch_run(struct batch *batch);

#endif
