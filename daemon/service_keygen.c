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
#include "user.h"

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
		    &req->user->n_keys, item->out_handle);
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

/* False: there is none, or none for this user. */
static bool
pool_take(struct service *service, struct request_item *item)
{
	enum keypool_kind kind;

	switch (item->request->alg) {
	case KEM_ALG_X25519MLKEM768:
		kind = KEYPOOL_HYBRID;
		break;
	case KEM_ALG_MLKEM768:
		kind = KEYPOOL_MLKEM768;
		break;
	default:
		return false;
	}
	return service_may_take(service, item->request, kind) &&
	       keypool_take_pair(service->pool, kind, item->out_share, item->secret);
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

/*
 * Handles that can still be promised to this user, those of the waiting batch taken off:
 * of what is left in all, what its share leaves it.
 */
static uint32_t
handles_left(struct service *service, struct user *user)
{
	uint32_t room = keytable_room(service->keys), held;
	uint64_t run = service->batch->n_runs;
	uint32_t share =
	    user_share(keytable_size(service->keys), service->config->user_share);

	/* What was promised to a run that is over is kept, or is nobody's any more. */
	if (service->reserved_for != run) {
		service->reserved_for = run;
		service->n_reserved = 0;
	}
	if (user->promised_to != run) {
		user->promised_to = run;
		user->n_promised = 0;
	}
	held = user->n_keys + user->n_promised;
	room = room > service->n_reserved ? room - service->n_reserved : 0;
	share = share > held ? share - held : 0;
	return room < share || fault("user-no-limit") ? room : share;
}

static void
item_no_room(struct service *service, struct request_item *item)
{
	request_item_fail(item, STATUS_RESOURCE_EXHAUSTED,
	    "no room for another private key: this user has %u; one may have %u%% of "
	    "%u (limits.user-share, limits.max-handles)",
	    item->request->user->n_keys, service->config->user_share,
	    keytable_size(service->keys));
	metrics_add(&service->metrics->items_failed_total, 1);
	metrics_add(&service->metrics->shed_total, 1);
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
		n_left = handles_left(service, req->user);
	if (!keygen_room(req))
		return service_out_of_memory(req);

	req->settle = keygen_settle;
	for (uint32_t i = 0; i < req->n_items; i++) {
		struct request_item *item = &req->items[i];

		if (n_left == 0) {
			item_no_room(service, item);
			continue;
		}
		n_left--;
		if (keygen_from_pool(service, item))
			continue;
		if (!req->export_private) {
			service->n_reserved++;
			req->user->n_promised++;
		}
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
	if (item->status == STATUS_OK) {
		keytable_release(service->keys, req->conn_id, item->out_handle);
	} else if (item->status == STATUS_CANCELLED && service->n_reserved > 0) {
		service->n_reserved--;
		req->user->n_promised--;
	}
}
