/* SPDX-License-Identifier: Apache-2.0 */
/* How a request of the data socket ended. Only what its client is told is counted. */
#include <assert.h>

#include "metrics.h"
#include "request.h"

static const struct {
	enum request_status status;
	const char *name;
} statuses[METRICS_N_STATUSES] = {
    {STATUS_OK, "OK"},
    {STATUS_INVALID_REQUEST, "INVALID_REQUEST"},
    {STATUS_UNSUPPORTED, "UNSUPPORTED"},
    {STATUS_TOO_MANY_ITEMS, "TOO_MANY_ITEMS"},
    {STATUS_DENIED, "DENIED"},
    {STATUS_EXPORT_DISABLED, "EXPORT_DISABLED"},
    {STATUS_BAD_LENGTH, "BAD_LENGTH"},
    {STATUS_BAD_SHARE, "BAD_SHARE"},
    {STATUS_BAD_KEY, "BAD_KEY"},
    {STATUS_ALGORITHM_MISMATCH, "ALGORITHM_MISMATCH"},
    {STATUS_ZERO_X25519, "ZERO_X25519"},
    {STATUS_KEY_NOT_FOUND, "KEY_NOT_FOUND"},
    {STATUS_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"},
    {STATUS_DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"},
    {STATUS_DRAINING, "DRAINING"},
    {STATUS_CANCELLED, "CANCELLED"},
    {STATUS_INTERNAL, "INTERNAL"},
};

/* The control socket's operations count as "other", should they come here. */
static const char *const op_names[METRICS_N_REQUEST_OPS] = {
    [REQUEST_NONE] = "other",
    [REQUEST_HELLO] = "hello",
    [REQUEST_PING] = "ping",
    [REQUEST_INFO] = "info",
    [REQUEST_KEYGEN] = "keygen",
    [REQUEST_ENCAPS] = "encaps",
    [REQUEST_DECAPS] = "decaps",
    [REQUEST_RELEASE] = "release",
    [REQUEST_CANCEL] = "cancel",
};

const char *
metrics_status_name(unsigned index)
{
	assert(index < METRICS_N_STATUSES);
	return statuses[index].name;
}

const char *
metrics_request_op_name(unsigned index)
{
	assert(index < METRICS_N_REQUEST_OPS);
	return op_names[index];
}

static unsigned
status_index(enum request_status status)
{
	unsigned i = 0;

	while (i < METRICS_N_STATUSES - 1 && statuses[i].status != status)
		i++;
	return i;
}

static void
items_done(struct metrics_shard *metrics, const struct request *req, enum metrics_op op)
{
	if (req->status != STATUS_OK) {
		metrics_add(&metrics->items_failed[op][status_index(req->status)],
		    req->n_items);
		return;
	}
	for (uint32_t i = 0; i < req->n_items; i++) {
		enum request_status status = req->items[i].status;

		if (status == STATUS_OK)
			metrics_add(&metrics->items_done[op][req->alg], 1);
		else
			metrics_add(
			    &metrics->items_failed[op][status_index(status)], 1);
	}
}

void
metrics_request_done(
    struct metrics_shard *metrics, const struct request *req, uint32_t took_us)
{
	unsigned op = req->op < METRICS_N_REQUEST_OPS ? req->op : REQUEST_NONE;
	enum metrics_op kem_op;

	metrics_add(&metrics->requests[op][status_index(req->status)], 1);
	switch (req->op) {
	case REQUEST_KEYGEN:
		kem_op = METRICS_KEYGEN;
		break;
	case REQUEST_ENCAPS:
		kem_op = METRICS_ENCAPS;
		break;
	case REQUEST_DECAPS:
		kem_op = METRICS_DECAPS;
		break;
	default:
		return;
	}
	items_done(metrics, req, kem_op);
	/* A refusal was no work: it would only make the rest look fast. */
	if (req->status == STATUS_OK)
		metrics_observe(
		    &metrics->duration[kem_op][req->alg], METRICS_LATENCY, took_us);
}
