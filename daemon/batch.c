/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include <assert.h>
#include <string.h>

#include "kem/fault.h"
#include "keypool.h"
#include "metrics.h"
#include "proto/wire.h"

_Static_assert((int)BATCH_N_OPS == (int)METRICS_N_OPS &&
		   (int)BATCH_KEYGEN == (int)METRICS_KEYGEN &&
		   (int)BATCH_ENCAPS == (int)METRICS_ENCAPS,
    "counted under their numbers");

/* Items of one operation and one algorithm that are worked at once. */
struct group {
	struct request_item *items[KEM_GROUP_MAX];
	size_t n;
	uint64_t begin_us;
};

/* The counter that shows which kernels are at work, and not only which were chosen. */
static _Atomic uint64_t *
groups_counter(struct metrics_shard *metrics, const char *backend)
{
	if (strcmp(backend, "avx512") == 0)
		return &metrics->groups_avx512_total;
	if (strcmp(backend, "avx2") == 0)
		return &metrics->groups_avx2_total;
	if (strcmp(backend, "generic") == 0)
		return &metrics->groups_generic_total;
	return NULL;
}

void
batch_init(struct batch *batch, const struct kem *kem, struct kem_scratch *scratch,
    struct metrics_shard *metrics)
{
	*batch = (struct batch){.kem = kem, .scratch = scratch, .metrics = metrics};
	batch->groups_by_backend = groups_counter(metrics, kem_backend_name(kem));
	for (int op = 0; op < BATCH_N_OPS; op++)
		for (int alg = 0; alg < KEM_N_ALGS; alg++)
			STAILQ_INIT(&batch->queues[op][alg]);
}

static enum batch_op
op_of(const struct request *req)
{
	switch (req->op) {
	case REQUEST_KEYGEN:
		return BATCH_KEYGEN;
	case REQUEST_ENCAPS:
		return BATCH_ENCAPS;
	default:
		assert(req->op == REQUEST_DECAPS);
		return BATCH_DECAPS;
	}
}

void
batch_add(struct batch *batch, struct request_item *item)
{
	struct request *req = item->request;

	STAILQ_INSERT_TAIL(&batch->queues[op_of(req)][req->alg], item, next);
	req->n_pending++;
	batch->n_items++;
}

/* Wipes what an item has no more use for once its answer is settled. */
static void
intermediates_wipe(struct request_item *item)
{
	const struct kem_alg_info *alg = kem_alg_info(item->request->alg);

	if (fault("batch-no-wipe"))
		return;
	if (item->secret != NULL)
		kem_wipe(item->secret, alg->secret_bytes);
	if (item->ephemeral != NULL)
		kem_wipe(item->ephemeral, sizeof(*item->ephemeral));
	if (item->shared != NULL && item->shared->bytes != item->out_secret)
		kem_wipe(item->shared, sizeof(*item->shared));
}

/* An item that failed gives nothing away, whatever had been computed by then. */
static void
outputs_wipe(struct request_item *item)
{
	const struct request *req = item->request;

	if (item->out_secret != NULL)
		kem_wipe(item->out_secret, req->secret_bytes);
	if (item->out_dk != NULL)
		kem_wipe(item->out_dk, kem_alg_info(req->alg)->dk_bytes);
	if (item->out_handle != NULL)
		kem_wipe(item->out_handle, WIRE_HANDLE_BYTES);
}

/* The item has its status: counts it, and the request is done with its last one. */
static void
item_finish(struct batch *batch, struct request_item *item)
{
	struct request *req = item->request;

	if (item->status != STATUS_OK) {
		outputs_wipe(item);
		metrics_add(&batch->metrics->items_failed_total, 1);
	} else if (req->op == REQUEST_ENCAPS) {
		metrics_add(&batch->metrics->items_encaps_total, 1);
	} else if (req->op == REQUEST_DECAPS) {
		metrics_add(&batch->metrics->items_decaps_total, 1);
	}
	intermediates_wipe(item);
	assert(req->n_pending > 0);
	if (--req->n_pending == 0)
		req->done(req);
}

static void
item_late(struct batch *batch, struct request_item *item)
{
	request_item_fail(item, STATUS_DEADLINE_EXCEEDED, "not in time");
	metrics_add(&batch->metrics->deadline_total, 1);
}

/* The next live items of a queue; those past their deadline are finished on the way. */
static void
group_take(struct batch *batch, struct request_item_list *queue, struct group *group)
{
	uint64_t now_us = request_now_us();
	struct request_item *item;

	group->n = 0;
	group->begin_us = now_us;
	while (group->n < KEM_GROUP_MAX && (item = STAILQ_FIRST(queue)) != NULL) {
		STAILQ_REMOVE_HEAD(queue, next);
		batch->n_items--;
		if (item->request->deadline_us <= now_us) {
			item_late(batch, item);
			item_finish(batch, item);
			continue;
		}
		group->items[group->n++] = item;
	}
}

static int
keygen_work(struct batch *batch, enum kem_alg alg, struct group *group)
{
	struct kem_keygen_item work[KEM_GROUP_MAX];
	int r;

	for (size_t i = 0; i < group->n; i++)
		work[i] = (struct kem_keygen_item){.share = group->items[i]->out_share,
		    .secret = group->items[i]->secret};
	r = kem_keygen(batch->kem, alg, work, group->n, batch->scratch);
	for (size_t i = 0; i < group->n; i++)
		request_item_kem_status(
		    group->items[i], work[i].status, KEM_PART_KEY, 0);
	return r;
}

static void
spare_begin(struct batch *batch, struct kem_spare *spare)
{
	*spare = (struct kem_spare){0};
	if (batch->pool != NULL)
		keypool_lend(batch->pool, spare);
}

/* How many lanes were left over is as public as the number of items. */
static void
spare_end(struct batch *batch, struct kem_spare *spare)
{
	metrics_add(&batch->metrics->lanes_used_total, spare->used);
	metrics_add(&batch->metrics->lanes_refilled_total, spare->n);
	metrics_add(&batch->metrics->lanes_idle_total, spare->idle);
	if (batch->pool != NULL)
		keypool_keep(batch->pool, spare, request_now_us());
}

static int
encaps_work(struct batch *batch, enum kem_alg alg, struct group *group)
{
	struct kem_encaps_item work[KEM_GROUP_MAX];
	struct kem_spare spare;
	int r;

	for (size_t i = 0; i < group->n; i++) {
		struct request_item *item = group->items[i];

		work[i] = (struct kem_encaps_item){.share = item->share.data,
		    .share_len = item->share.len,
		    .ephemeral = item->ephemeral,
		    .ct = item->out_ciphertext,
		    .shared = item->shared};
	}
	spare_begin(batch, &spare);
	r = kem_encaps_spare(batch->kem, alg, work, group->n, &spare, batch->scratch);
	spare_end(batch, &spare);
	for (size_t i = 0; i < group->n; i++)
		request_item_kem_status(
		    group->items[i], work[i].status, KEM_PART_SHARE, work[i].share_len);
	return r;
}

/* Keys that came as seeds are expanded first, as a group of their own. */
static int
seeds_work(struct batch *batch, enum kem_alg alg, struct group *group)
{
	struct kem_keygen_item work[KEM_GROUP_MAX];
	struct request_item *seeded[KEM_GROUP_MAX];
	size_t n = 0;
	int r;

	for (size_t i = 0; i < group->n; i++) {
		struct request_item *item = group->items[i];

		if (item->seed == NULL)
			continue;
		work[n] = (struct kem_keygen_item){.seed = item->seed,
		    .share = item->key_share,
		    .secret = item->secret};
		seeded[n++] = item;
	}
	if (n == 0)
		return 0;
	r = kem_keygen(batch->kem, alg, work, n, batch->scratch);
	for (size_t i = 0; i < n; i++)
		kem_private_from_parts(
		    &seeded[i]->key, alg, work[i].secret, work[i].share);
	return r;
}

static int
decaps_work(struct batch *batch, enum kem_alg alg, struct group *group)
{
	struct kem_decaps_item work[KEM_GROUP_MAX];
	struct kem_spare spare;
	int r = seeds_work(batch, alg, group);

	for (size_t i = 0; i < group->n; i++) {
		struct request_item *item = group->items[i];

		work[i] = (struct kem_decaps_item){.key = &item->key,
		    .ct = item->ciphertext.data,
		    .ct_len = item->ciphertext.len,
		    .shared = item->shared,
		    .status = KEM_E_INTERNAL};
	}
	spare_begin(batch, &spare);
	if (r == 0)
		r = kem_decaps_spare(
		    batch->kem, alg, work, group->n, &spare, batch->scratch);
	spare_end(batch, &spare);
	for (size_t i = 0; i < group->n; i++)
		request_item_kem_status(group->items[i], work[i].status,
		    work[i].status == KEM_E_LENGTH ? KEM_PART_CT : KEM_PART_KEY,
		    work[i].ct_len);
	return r;
}

static int
group_work(struct batch *batch, enum batch_op op, enum kem_alg alg, struct group *group)
{
	uint32_t now_milli = (uint32_t)group->n * 1000;

	metrics_add(&batch->metrics->groups_total, 1);
	if (batch->groups_by_backend != NULL)
		metrics_add(batch->groups_by_backend, 1);
	metrics_add(&batch->metrics->group_items_total, group->n);
	/* A mean over about the last eight groups. */
	if (batch->fill_milli == 0)
		batch->fill_milli = now_milli;
	else
		batch->fill_milli = (batch->fill_milli * 7 + now_milli + 4) / 8;

	switch (op) {
	case BATCH_KEYGEN:
		return keygen_work(batch, alg, group);
	case BATCH_ENCAPS:
		return encaps_work(batch, alg, group);
	default:
		return decaps_work(batch, alg, group);
	}
}

static int
kdf_apply(struct batch *batch, struct request_item *item)
{
	const struct request *req = item->request;
	const struct request_kdf *kdf = &req->kdf;

	return kem_hkdf(batch->kem, kdf->hash, item->shared->bytes,
	    kem_alg_info(req->alg)->shared_bytes, kdf->salt.data, kdf->salt.len,
	    kdf->info.data, kdf->info.len, item->out_secret, kdf->length);
}

/* What follows the arithmetic of one item: its deadline, its kdf, its handle. */
static int
item_settle(struct batch *batch, struct request_item *item, uint64_t now_us)
{
	struct request *req = item->request;
	int r = 0;

	if (item->status == STATUS_OK && req->deadline_us <= now_us)
		item_late(batch, item);
	if (item->status == STATUS_OK && req->kdf.used)
		r = kdf_apply(batch, item);
	if (item->status == STATUS_OK && r == 0 && req->settle != NULL)
		r = req->settle(item);
	if (r != 0)
		request_item_kem_status(item, KEM_E_INTERNAL, KEM_PART_KEY, 0);
	item_finish(batch, item);
	return r;
}

static uint32_t
clipped_us(uint64_t us)
{
	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* How the group's items waited, and with how many others they were worked how long. */
static void
group_note(
    struct batch *batch, enum batch_op op, const struct group *group, uint64_t now_us)
{
	struct metrics_shard *metrics = batch->metrics;
	uint64_t work_us = now_us - group->begin_us;

	metrics_observe(&metrics->batch_duration[op], METRICS_LATENCY, work_us);
	metrics_observe(&metrics->batch_items[op], METRICS_ITEMS, group->n);
	for (size_t i = 0; i < group->n; i++) {
		struct request *req = group->items[i]->request;
		uint64_t wait_us = group->begin_us > req->arrived_us
				       ? group->begin_us - req->arrived_us
				       : 0;

		metrics_observe(&metrics->queue_wait[op], METRICS_LATENCY, wait_us);
		req->queue_us = clipped_us(wait_us);
		req->work_us = clipped_us(work_us);
		req->batch_items = (uint32_t)group->n;
	}
}

/*
 * One group. Once something has failed for good, no more is computed, but every request
 * still gets its answer.
 */
static int
group_run(
    struct batch *batch, enum batch_op op, enum kem_alg alg, struct group *group, int r)
{
	uint64_t now_us;

	if (r == 0) {
		r = group_work(batch, op, alg, group);
	} else {
		for (size_t i = 0; i < group->n; i++)
			request_item_kem_status(
			    group->items[i], KEM_E_INTERNAL, KEM_PART_KEY, 0);
	}
	now_us = request_now_us();
	group_note(batch, op, group, now_us);
	for (size_t i = 0; i < group->n; i++) {
		int failed = item_settle(batch, group->items[i], now_us);

		if (r == 0)
			r = failed;
	}
	return r;
}

int
batch_run(struct batch *batch)
{
	struct group group;
	int r = batch->failed;

	if (batch->n_items == 0)
		return r;
	for (int op = 0; op < BATCH_N_OPS; op++) {
		for (int alg = 0; alg < KEM_N_ALGS; alg++) {
			struct request_item_list *queue = &batch->queues[op][alg];

			while (!STAILQ_EMPTY(queue)) {
				group_take(batch, queue, &group);
				if (group.n > 0)
					r = group_run(batch, op, alg, &group, r);
			}
		}
	}
	assert(batch->n_items == 0);
	batch->n_runs++;
	return r;
}

struct request *
batch_cancel(struct batch *batch, uint64_t conn_id, uint64_t id)
{
	struct request *found = NULL;

	for (int i = 0; i < BATCH_N_OPS * KEM_N_ALGS; i++) {
		struct request_item_list *queue =
		    &batch->queues[i / KEM_N_ALGS][i % KEM_N_ALGS];
		struct request_item_list rest = STAILQ_HEAD_INITIALIZER(rest);
		struct request_item *item;

		while ((item = STAILQ_FIRST(queue)) != NULL) {
			struct request *req = item->request;

			STAILQ_REMOVE_HEAD(queue, next);
			if (req->conn_id != conn_id || req->id != id) {
				STAILQ_INSERT_TAIL(&rest, item, next);
				continue;
			}
			found = req;
			item->status = STATUS_CANCELLED;
			outputs_wipe(item);
			intermediates_wipe(item);
			req->n_pending--;
			batch->n_items--;
		}
		STAILQ_CONCAT(queue, &rest);
	}
	return found;
}
