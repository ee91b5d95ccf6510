/* SPDX-License-Identifier: Apache-2.0 */
/* Encapsulation and decapsulation. */
#include "service_kem.h"

#include "batch.h"
#include "config.h"
#include "keypool.h"
#include "keytable.h"
#include "mem.h"
#include "metrics.h"
#include "proto/wire.h"
#include "user.h"

bool
service_refuse_draining(const struct service *service, struct request *req)
{
	if (!service->draining)
		return false;
	request_fail(req, STATUS_DRAINING,
	    "draining: no new operations here; live handles still decapsulate");
	return true;
}

bool
service_out_of_memory(struct request *req)
{
	request_fail(req, STATUS_RESOURCE_EXHAUSTED,
	    "no request memory for %u items in this turn", req->n_items);
	return false;
}

bool
service_may_take(
    const struct service *service, const struct request *req, unsigned kind)
{
	_Static_assert(USER_POOLS == KEYPOOL_N_KINDS, "one count each");

	return user_take_pooled(req->user, kind, keypool_size(service->pool, kind),
	    service->config->user_share, request_now_us());
}

bool
service_kdf_ok(const struct request *req)
{
	const struct request_kdf *kdf = &req->kdf;

	if (!kdf->used)
		return true;
	return kdf->length >= 1 && kdf->length <= KEM_HKDF_MAX(kdf->hash) &&
	       kdf->info.len <= KEM_HKDF_MAX_INFO &&
	       (uint64_t)kdf->length * req->n_items <= WIRE_MAX_KDF_BYTES;
}

static bool
refuse_kdf(struct request *req)
{
	const struct request_kdf *kdf = &req->kdf;

	if (service_kdf_ok(req))
		return false;
	if (kdf->length < 1 || kdf->length > KEM_HKDF_MAX(kdf->hash))
		request_fail(req, STATUS_INVALID_REQUEST,
		    "kdf length is %u; this hash gives 1 to %u", kdf->length,
		    KEM_HKDF_MAX(kdf->hash));
	else if (kdf->info.len > KEM_HKDF_MAX_INFO)
		request_fail(req, STATUS_INVALID_REQUEST,
		    "kdf info has %zu bytes; at most %u are allowed", kdf->info.len,
		    KEM_HKDF_MAX_INFO);
	else
		request_fail(req, STATUS_TOO_MANY_ITEMS,
		    "kdf length %u for %u items is over %u bytes in all", kdf->length,
		    req->n_items, WIRE_MAX_KDF_BYTES);
	return true;
}

/* Takes memory for the secret of an answer, and for what comes before the kdf. */
static bool
secret_room(struct request_item *item)
{
	struct request *req = item->request;

	item->shared = mem_alloc(req->mem, sizeof(*item->shared));
	if (item->shared == NULL)
		return false;
	item->out_secret = req->kdf.used ? mem_alloc(req->mem, req->secret_bytes)
					 : item->shared->bytes;
	return item->out_secret != NULL;
}

static bool
encaps_room(struct request *req)
{
	const struct kem_alg_info *alg = kem_alg_info(req->alg);

	for (uint32_t i = 0; i < req->n_items; i++) {
		struct request_item *item = &req->items[i];

		item->out_ciphertext = mem_alloc(req->mem, alg->ct_bytes);
		if (item->out_ciphertext == NULL || !secret_room(item))
			return false;
		if (req->alg == KEM_ALG_X25519MLKEM768) {
			item->ephemeral = mem_alloc(req->mem, sizeof(*item->ephemeral));
			if (item->ephemeral == NULL)
				return false;
		}
	}
	return true;
}

bool
service_encaps(struct service *service, struct request *req)
{
	const struct kem_alg_info *alg = kem_alg_info(req->alg);

	if (service_refuse_draining(service, req) || refuse_kdf(req))
		return false;
	if (!encaps_room(req))
		return service_out_of_memory(req);

	for (uint32_t i = 0; i < req->n_items; i++) {
		struct request_item *item = &req->items[i];

		if (item->share.len != alg->share_bytes) {
			request_item_kem_status(
			    item, KEM_E_LENGTH, KEM_PART_SHARE, item->share.len);
			metrics_add(&service->metrics->items_failed_total, 1);
			continue;
		}
		if (item->ephemeral != NULL &&
		    (!service_may_take(service, req, KEYPOOL_X25519) ||
			!keypool_take_x25519(service->pool, item->ephemeral)))
			item->ephemeral = NULL;
		batch_add(service->batch, item);
	}
	return req->n_pending > 0;
}

static bool
decaps_room(struct request *req)
{
	const struct kem_alg_info *alg = kem_alg_info(req->alg);

	for (uint32_t i = 0; i < req->n_items; i++) {
		struct request_item *item = &req->items[i];

		if (!secret_room(item))
			return false;
		if (item->private_key.len == alg->dk_bytes)
			continue; /* used where it lies */
		item->secret = mem_alloc(req->mem, alg->secret_bytes);
		item->key_share = mem_alloc(req->mem, alg->share_bytes);
		if (item->secret == NULL || item->key_share == NULL)
			return false;
	}
	return true;
}

/* Spends the handle. Sets the item's status and leaves the handle if it may not be. */
static void
handle_take(struct service *service, struct request_item *item, uint64_t now_us)
{
	const struct request *req = item->request;
	enum kem_alg alg;

	if (item->handle.len != WIRE_HANDLE_BYTES) {
		request_item_fail(item, STATUS_BAD_LENGTH,
		    "handle of %zu bytes; a handle has %u", item->handle.len,
		    WIRE_HANDLE_BYTES);
		return;
	}
	if (!keytable_peek(
		service->keys, req->conn_id, item->handle.data, now_us, &alg)) {
		request_item_fail(
		    item, STATUS_KEY_NOT_FOUND, "no key with this handle");
		return;
	}
	if (alg != req->alg) {
		request_item_fail(item, STATUS_ALGORITHM_MISMATCH,
		    "this handle's key is of %s; the request is for %s",
		    kem_alg_info(alg)->name, kem_alg_info(req->alg)->name);
		return;
	}
	if (!keytable_take(service->keys, req->conn_id, item->handle.data, now_us,
		item->secret, item->key_share)) {
		request_item_fail(
		    item, STATUS_KEY_NOT_FOUND, "no key with this handle");
		return;
	}
	kem_private_from_parts(&item->key, alg, item->secret, item->key_share);
}

/* A private key that came with the request: a seed or the expanded form, by length. */
static void
private_key_take(struct service *service, struct request_item *item)
{
	const struct request *req = item->request;
	const struct kem_alg_info *alg = kem_alg_info(req->alg);
	const struct request_bytes *key = &item->private_key;
	enum kem_status status;
	enum kem_alg other;

	if (service->draining) {
		request_item_fail(item, STATUS_DRAINING,
		    "draining: live handles decapsulate, and nothing else");
		return;
	}
	if (key->len == alg->seed_bytes) {
		item->seed = key->data;
		return;
	}
	if (key->len == alg->dk_bytes)
		status = kem_private_from_dk(&item->key, req->alg, key->data, key->len);
	else if (kem_alg_of_length(KEM_PART_KEY, key->len, &other) == 0)
		status = KEM_E_ALG;
	else
		status = KEM_E_LENGTH;
	request_item_kem_status(item, status, KEM_PART_KEY, key->len);
}

static void
decaps_item(struct service *service, struct request_item *item, uint64_t now_us)
{
	const struct request *req = item->request;
	bool by_handle = item->handle.len > 0, by_key = item->private_key.len > 0;

	if (by_handle == by_key) {
		request_item_fail(item, STATUS_INVALID_REQUEST,
		    by_handle ? "both a handle and a private key; one of them"
			      : "neither a handle nor a private key");
		return;
	}
	if (item->ciphertext.len != kem_alg_info(req->alg)->ct_bytes) {
		request_item_kem_status(
		    item, KEM_E_LENGTH, KEM_PART_CT, item->ciphertext.len);
		return;
	}
	if (by_handle)
		handle_take(service, item, now_us);
	else
		private_key_take(service, item);
}

static bool
has_handle(const struct request *req)
{
	for (uint32_t i = 0; i < req->n_items; i++)
		if (req->items[i].handle.len > 0)
			return true;
	return false;
}

bool
service_decaps(struct service *service, struct request *req)
{
	uint64_t now_us = request_now_us();

	if ((!has_handle(req) && service_refuse_draining(service, req)) ||
	    refuse_kdf(req))
		return false;
	if (!decaps_room(req))
		return service_out_of_memory(req);

	for (uint32_t i = 0; i < req->n_items; i++) {
		struct request_item *item = &req->items[i];

		decaps_item(service, item, now_us);
		if (item->status == STATUS_OK)
			batch_add(service->batch, item);
		else
			metrics_add(&service->metrics->items_failed_total, 1);
	}
	return req->n_pending > 0;
}
