/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as a whole. The three KEM operations are in service_kem.c. */
#include "service.h"

#include "batch.h"
#include "keytable.h"
#include "mem.h"
#include "metrics.h"
#include "proto/wire.h"
#include "service_kem.h"

/* Every request that was not handed to the batch ends here. */
static void
finish(struct service *service, struct request *req)
{
	struct metrics_shard *metrics = service->metrics;

	if (req->status != STATUS_OK) {
		metrics_add(&metrics->requests_failed_total, 1);
		if (req->n_items > 0)
			metrics_add(&metrics->items_failed_total, req->n_items);
	}
	if (req->status == STATUS_RESOURCE_EXHAUSTED)
		metrics_add(&metrics->shed_total, 1);
	if (req->status == STATUS_DEADLINE_EXCEEDED)
		metrics_add(&metrics->deadline_total, req->n_items ? req->n_items : 1);
	req->done(req);
}

/* What a client says of itself; conn has cut it to what one may say. */
static void
hello_count(struct metrics_shard *metrics, const struct request *req)
{
	metrics_add(&metrics->client_fallbacks_total, req->fallbacks);
	metrics_add(&metrics->client_auto_daemon_total, req->auto_daemon);
	metrics_add(&metrics->client_auto_local_total, req->auto_local);
}

static void
hello(struct service *service, struct request *req)
{
	if (req->min_version > req->max_version)
		request_fail(req, STATUS_INVALID_REQUEST,
		    "min_version %u is over max_version %u", req->min_version,
		    req->max_version);
	else if (req->min_version > WIRE_VERSION || req->max_version < WIRE_VERSION)
		request_fail(req, STATUS_UNSUPPORTED,
		    "this daemon speaks version %u; the client versions %u to %u",
		    WIRE_VERSION, req->min_version, req->max_version);
	else
		hello_count(service->metrics, req);
}

/* Handles that are not this connection's, or of another length, are passed over. */
static void
release(struct service *service, struct request *req)
{
	for (uint32_t i = 0; i < req->n_items; i++) {
		const struct request_bytes *handle = &req->items[i].handle;

		if (handle->len == WIRE_HANDLE_BYTES &&
		    keytable_release(service->keys, req->conn_id, handle->data))
			req->n_released++;
	}
}

/* What a cancelled key generation had already got out of the pool goes again. */
static void
cancelled_finish(struct service *service, struct request *req)
{
	for (uint32_t i = 0; i < req->n_items; i++)
		service_kem_undo(service, &req->items[i]);
	request_fail(req, STATUS_CANCELLED, "cancelled");
	finish(service, req);
}

static void
cancel(struct service *service, struct request *req)
{
	struct request *other =
	    batch_cancel(service->batch, req->conn_id, req->cancel_id);

	if (other != NULL)
		cancelled_finish(service, other);
}

/* Returns false if the request is refused before its operation is looked at. */
static bool
acceptable(struct service *service, struct request *req)
{
	if (req->status != STATUS_OK)
		return false; /* by codec */
	if (req->deadline_us <= request_now_us()) {
		request_fail(req, STATUS_DEADLINE_EXCEEDED,
		    "its time was over before its turn came");
		return false;
	}
	return true;
}

/* Returns true if the batch has the request now. */
static bool
operation(struct service *service, struct request *req)
{
	switch (req->op) {
	case REQUEST_HELLO:
		hello(service, req);
		return false;
	case REQUEST_PING:
	case REQUEST_INFO:
		return false;
	case REQUEST_KEYGEN:
		return service_keygen(service, req);
	case REQUEST_ENCAPS:
		return service_encaps(service, req);
	case REQUEST_DECAPS:
		return service_decaps(service, req);
	case REQUEST_RELEASE:
		release(service, req);
		return false;
	case REQUEST_CANCEL:
		cancel(service, req);
		return false;
	case REQUEST_STATS:
	case REQUEST_DRAIN:
	case REQUEST_RESUME:
	case REQUEST_RELOAD:
	case REQUEST_SELFTEST:
		if (!req->control)
			request_fail(req, STATUS_DENIED,
			    "this operation is for the control socket");
		return false;
	case REQUEST_NONE:
	case REQUEST_N_OPS:
		break;
	}
	request_fail(req, STATUS_INVALID_REQUEST, "no operation");
	return false;
}

void
service_handle(struct service *service, struct request *req)
{
	metrics_add(&service->metrics->requests_total, 1);
	req->service = service;
	if (!acceptable(service, req) || !operation(service, req))
		finish(service, req);
}

void
service_conn_gone(struct service *service, uint64_t conn_id)
{
	keytable_conn_gone(service->keys, conn_id);
}

/*
 * Sizes on the wire: a field of bytes or text takes its length, a tag of 1 or 2 bytes
 * and a length of at most 3; a number takes at most 11; a message that holds others
 * takes 6 more.
 */
#define FIELD(len)    ((size_t)(len) + 5)
#define NUMBER        ((size_t)11)
#define MESSAGE(size) ((size_t)(size) + 6)

/* Version, backend, secret memory: all of this project's own making. */
#define ABOUT_TEXT_MAX 64

static size_t
item_reply_bound(const struct request *req)
{
	const struct kem_alg_info *alg = kem_alg_info(req->alg);
	size_t failed = FIELD(WIRE_MAX_MESSAGE_TEXT), good = 0;

	switch (req->op) {
	case REQUEST_KEYGEN:
		good = FIELD(alg->share_bytes) + (req->export_private
							 ? FIELD(alg->dk_bytes)
							 : FIELD(WIRE_HANDLE_BYTES));
		break;
	case REQUEST_ENCAPS:
		good = FIELD(alg->ct_bytes) + FIELD(req->secret_bytes);
		break;
	case REQUEST_DECAPS:
		good = FIELD(req->secret_bytes);
		break;
	default:
		return 0; /* no item in the answer */
	}
	return MESSAGE(NUMBER + (good > failed ? good : failed));
}

static size_t
result_bound(const struct request *req)
{
	switch (req->op) {
	case REQUEST_HELLO:
	case REQUEST_INFO:
		return MESSAGE(3 * FIELD(ABOUT_TEXT_MAX) + 8 * NUMBER +
			       MESSAGE(4 * NUMBER) + MESSAGE(7 * NUMBER));
	case REQUEST_STATS:
		return MESSAGE(METRICS_N_FIELDS * MESSAGE(FIELD(40) + NUMBER));
	case REQUEST_SELFTEST:
		return MESSAGE(NUMBER + 2 * FIELD(ABOUT_TEXT_MAX));
	case REQUEST_RELEASE:
		return MESSAGE(NUMBER);
	default:
		return MESSAGE(req->n_items * item_reply_bound(req));
	}
}

size_t
service_reply_bound(const struct request *req)
{
	size_t fixed = WIRE_HEADER_BYTES + 2 * NUMBER + FIELD(WIRE_MAX_MESSAGE_TEXT) +
		       MESSAGE(3 * NUMBER);

	/*
	 * What will be refused has no items in its answer: a kdf length over the limit,
	 * and keys on the control socket, whose slab has no room for as many.
	 */
	if (req->status != STATUS_OK || !service_kdf_ok(req) ||
	    (req->control && req->n_items))
		return fixed;
	return fixed + result_bound(req);
}
