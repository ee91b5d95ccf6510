/* SPDX-License-Identifier: Apache-2.0 */
#include "service_kem.h"

#include "batch.h"
#include "config.h"
#include "kem/fault.h"
#include "keypool.h"
#include "keytable.h"
#include "mem.h"
#include "metrics.h"
#include "proto/wire.h"

static bool
keygen_room(struct request *req)
{
	const struct kem_alg_info *alg = kem_alg_info(req->alg);

	for (uint32_t i = 0; i < req->n_items; i++) {
		struct request_item *item = &req->items[i];

		item->out_share = mem_alloc(req->mem, alg->share_bytes);
		item->secret = mem_alloc(req->mem, alg->secret_bytes);
		if (req->export_private)
			item->out_dk = mem_alloc(req->mem, alg->dk_bytes);
		else
			item->out_handle = mem_alloc(req->mem, WIRE_HANDLE_BYTES);
		if (item->out_share == NULL || item->secret == NULL ||
		    (item->out_dk == NULL && item->out_handle == NULL))
			return false;
	}
	return true;
}

/* A new pair is there: it is exported, or waits under a handle. */
static int
keygen_settle(struct request_item *item)
{
	struct request *req = item->request;
	struct service *service = req->service;
	int r;

	if (req->export_private) {
		kem_private_export(
		    req->alg, item->secret, item->out_share, item->out_dk);
	} else {
		r = keytable_add(service->keys, req->conn_id, req->alg, item->out_share,
		    item->secret,
		    request_now_us() +
			(uint64_t)service->config->handle_lifetime_ms * 1000,
		    item->out_handle);
		if (r < 0)
			return r;
		if (r == KEYTABLE_E_FULL) {
			request_item_fail(item, STATUS_RESOURCE_EXHAUSTED,
			    "no room for another private key");
			return 0;
		}
	}
	metrics_add(&service->metrics->items_keygen_total, 1);
	return 0;
}

static bool
pool_take(struct service *service, struct request_item *item)
{
	switch (item->request->alg) {
	case KEM_ALG_X25519MLKEM768:
		return keypool_take_pair(
		    service->pool, KEYPOOL_HYBRID, item->out_share, item->secret);
	case KEM_ALG_MLKEM768:
		return keypool_take_pair(
		    service->pool, KEYPOOL_MLKEM768, item->out_share, item->secret);
	default:
		return false;
	}
}

/* Served from the pool, in this very call. False: it has to be computed. */
static bool
keygen_from_pool(struct service *service, struct request_item *item)
{
	int r;

	if (!pool_take(service, item))
		return false;
	r = keygen_settle(item);
	if (r < 0) {
		request_item_kem_status(item, KEM_E_INTERNAL, KEM_PART_KEY, 0);
		service->batch->failed = r;
	}
	if (item->status != STATUS_OK)
		metrics_add(&service->metrics->items_failed_total, 1);
	if (!fault("service-no-wipe"))
		kem_wipe(item->secret, kem_alg_info(item->request->alg)->secret_bytes);
	return true;
}

/* Handles that can still be promised, those of the waiting batch taken off. */
static uint32_t
handles_left(struct service *service)
{
	uint32_t room = keytable_room(service->keys);

	if (service->batch->n_items == 0)
		service->n_reserved = 0; /* the batch has kept its promises */
	return room > service->n_reserved ? room - service->n_reserved : 0;
}

bool
service_keygen(struct service *service, struct request *req)
{
	uint32_t n_left = req->n_items;

	if (service_refuse_draining(service, req))
		return false;
	if (req->export_private && !service->config->export_private) {
		request_fail(req, STATUS_EXPORT_DISABLED,
		    "private keys stay in the daemon; the key export-private-keys of "
		    "section [kem] of its configuration allows their export");
		return false;
	}
	if (!req->export_private)
		n_left = handles_left(service);
	if (!keygen_room(req))
		return service_out_of_memory(req);

	req->settle = keygen_settle;
	for (uint32_t i = 0; i < req->n_items; i++) {
		struct request_item *item = &req->items[i];

		if (n_left == 0) {
			request_item_fail(item, STATUS_RESOURCE_EXHAUSTED,
			    "no room for another private key");
			metrics_add(&service->metrics->items_failed_total, 1);
			metrics_add(&service->metrics->shed_total, 1);
			continue;
		}
		n_left--;
		if (keygen_from_pool(service, item))
			continue;
		if (!req->export_private)
			service->n_reserved++;
		batch_add(service->batch, item);
	}
	return req->n_pending > 0;
}

void
service_kem_undo(struct service *service, struct request_item *item)
{
	const struct request *req = item->request;

	if (req->op != REQUEST_KEYGEN || req->export_private)
		return;
	if (item->status == STATUS_OK)
		keytable_release(service->keys, req->conn_id, item->out_handle);
	else if (item->status == STATUS_CANCELLED && service->n_reserved > 0)
		service->n_reserved--;
}
