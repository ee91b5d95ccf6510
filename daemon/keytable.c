/* SPDX-License-Identifier: Apache-2.0 */
#include "keytable.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "kem/fault.h"
#include "metrics.h"
#include "secmem.h"

/*
 * One waiting key. Only its secret is in the arena; the share is public, and the handle
 * is worth nothing on any other connection.
 */
struct slot {
	uint8_t handle[WIRE_HANDLE_BYTES];
	uint64_t conn_id;
	uint64_t expires_us;
	enum kem_alg alg;
	uint32_t *owned; /* how many its user has */
	uint8_t *secret; /* KEM_SECRET_MAX bytes of arena */
	uint8_t *share;  /* KEM_SHARE_MAX bytes */
	LIST_ENTRY(slot) by_handle;
	LIST_ENTRY(slot) by_conn;
	TAILQ_ENTRY(slot) by_age; /* or, while free, the free list */
};

LIST_HEAD(slot_bucket, slot);
TAILQ_HEAD(slot_queue, slot);

/*
 * Two hashes over the same slots: by handle, to find one, and by connection, to end all
 * of one. Handles are random and connections are counted, so their low bits spread
 * without further mixing, and no peer can choose them.
 */
struct keytable {
	const struct kem *kem;
	struct metrics_shard *metrics;
	struct slot *slots;
	uint8_t *shares;
	uint8_t *secrets; /* the arena's */
	struct slot_bucket *by_handle, *by_conn;
	struct slot_queue live; /* soonest to expire first */
	struct slot_queue free;
	uint32_t mask; /* buckets - 1 of either hash */
	uint32_t max_keys, n_keys;
};

size_t
keytable_arena_bytes(uint32_t max_keys)
{
	return (size_t)max_keys * KEM_SECRET_MAX;
}

static uint32_t
buckets_for(uint32_t max_keys)
{
	uint32_t n = 1;

	while (n < max_keys && n < 1u << 31)
		n *= 2;
	return n;
}

int
keytable_new(struct keytable **tablep, uint32_t max_keys, const struct kem *kem,
    struct secmem *secmem, struct metrics_shard *metrics)
{
	struct keytable *table = calloc(1, sizeof(*table));
	uint32_t n_buckets = buckets_for(max_keys);

	if (table == NULL)
		return -ENOMEM;
	table->kem = kem;
	table->metrics = metrics;
	table->mask = n_buckets - 1;
	table->max_keys = max_keys;
	table->slots = calloc(max_keys ? max_keys : 1, sizeof(*table->slots));
	table->shares = malloc(max_keys ? (size_t)max_keys * KEM_SHARE_MAX : 1);
	table->by_handle = calloc(n_buckets, sizeof(*table->by_handle));
	table->by_conn = calloc(n_buckets, sizeof(*table->by_conn));
	table->secrets = secmem_carve(secmem, keytable_arena_bytes(max_keys));
	if (table->slots == NULL || table->shares == NULL || table->by_handle == NULL ||
	    table->by_conn == NULL || table->secrets == NULL) {
		keytable_free(table);
		return -ENOMEM;
	}

	TAILQ_INIT(&table->live);
	TAILQ_INIT(&table->free);
	for (uint32_t i = 0; i < max_keys; i++) {
		struct slot *slot = &table->slots[i];

		slot->secret = table->secrets + (size_t)i * KEM_SECRET_MAX;
		slot->share = table->shares + (size_t)i * KEM_SHARE_MAX;
		TAILQ_INSERT_TAIL(&table->free, slot, by_age);
	}
	*tablep = table;
	return 0;
}

struct keytable *
keytable_free(struct keytable *table)
{
	if (table == NULL)
		return NULL;
	if (table->secrets != NULL)
		kem_wipe(table->secrets, keytable_arena_bytes(table->max_keys));
	free(table->slots);
	free(table->shares);
	free(table->by_handle);
	free(table->by_conn);
	free(table);
	return NULL;
}

uint32_t
keytable_size(const struct keytable *table)
{
	return table->max_keys;
}

uint32_t
keytable_room(const struct keytable *table)
{
	return table->max_keys - table->n_keys;
}

uint32_t
keytable_count(const struct keytable *table)
{
	return table->n_keys;
}

static struct slot_bucket *
handle_bucket(const struct keytable *table, const uint8_t handle[WIRE_HANDLE_BYTES])
{
	uint32_t word;

	memcpy(&word, handle, sizeof(word));
	return &table->by_handle[word & table->mask];
}

static struct slot_bucket *
conn_bucket(const struct keytable *table, uint64_t conn_id)
{
	return &table->by_conn[conn_id & table->mask];
}

/* Whatever the reason, an answer of NULL is the same: there is no such key. */
static struct slot *
slot_find(const struct keytable *table, uint64_t conn_id,
    const uint8_t handle[WIRE_HANDLE_BYTES], uint64_t now_us)
{
	struct slot *slot;

	for (slot = LIST_FIRST(handle_bucket(table, handle)); slot != NULL;
	     slot = LIST_NEXT(slot, by_handle)) {
		if (kem_compare(slot->handle, handle, WIRE_HANDLE_BYTES) != 0)
			continue;
		if (slot->conn_id != conn_id || slot->expires_us <= now_us)
			return NULL;
		return slot;
	}
	return NULL;
}

/* ended is the counter of the way in which the key ends. */
static void
slot_release(struct keytable *table, struct slot *slot, _Atomic uint64_t *ended)
{
	if (!fault("keytable-no-wipe"))
		kem_wipe(slot->secret, KEM_SECRET_MAX);
	kem_wipe(slot->handle, WIRE_HANDLE_BYTES);
	LIST_REMOVE(slot, by_handle);
	LIST_REMOVE(slot, by_conn);
	TAILQ_REMOVE(&table->live, slot, by_age);
	TAILQ_INSERT_HEAD(&table->free, slot, by_age);
	table->n_keys--;
	--*slot->owned;
	metrics_set(&table->metrics->handles, table->n_keys);
	metrics_add(ended, 1);
}

/* A lifetime shortened by a reload is the only reason to look further than the tail. */
static void
live_insert(struct keytable *table, struct slot *slot)
{
	struct slot *before = TAILQ_LAST(&table->live, slot_queue);

	while (before != NULL && before->expires_us > slot->expires_us)
		before = TAILQ_PREV(before, slot_queue, by_age);
	if (before == NULL)
		TAILQ_INSERT_HEAD(&table->live, slot, by_age);
	else
		TAILQ_INSERT_AFTER(&table->live, before, slot, by_age);
}

int
keytable_add(struct keytable *table, uint64_t conn_id, enum kem_alg alg,
    const uint8_t *share, const uint8_t *secret, uint64_t expires_us, uint32_t *owned,
    uint8_t handle[WIRE_HANDLE_BYTES])
{
	const struct kem_alg_info *info = kem_alg_info(alg);
	struct slot *slot = TAILQ_FIRST(&table->free);
	int r;

	if (slot == NULL)
		return KEYTABLE_E_FULL;
	r = kem_random(table->kem, slot->handle, WIRE_HANDLE_BYTES);
	if (r != 0)
		return r;

	TAILQ_REMOVE(&table->free, slot, by_age);
	slot->conn_id = conn_id;
	slot->alg = alg;
	slot->owned = owned;
	slot->expires_us = expires_us;
	memcpy(slot->secret, secret, info->secret_bytes);
	memcpy(slot->share, share, info->share_bytes);
	memcpy(handle, slot->handle, WIRE_HANDLE_BYTES);
	LIST_INSERT_HEAD(handle_bucket(table, handle), slot, by_handle);
	LIST_INSERT_HEAD(conn_bucket(table, conn_id), slot, by_conn);
	live_insert(table, slot);
	table->n_keys++;
	++*owned;
	metrics_set(&table->metrics->handles, table->n_keys);
	return 0;
}

bool
keytable_peek(const struct keytable *table, uint64_t conn_id,
    const uint8_t handle[WIRE_HANDLE_BYTES], uint64_t now_us, enum kem_alg *algp)
{
	const struct slot *slot = slot_find(table, conn_id, handle, now_us);

	if (slot == NULL)
		return false;
	*algp = slot->alg;
	return true;
}

bool
keytable_take(struct keytable *table, uint64_t conn_id,
    const uint8_t handle[WIRE_HANDLE_BYTES], uint64_t now_us, uint8_t *secret,
    uint8_t *share)
{
	struct slot *slot = slot_find(table, conn_id, handle, now_us);
	const struct kem_alg_info *info;

	if (slot == NULL)
		return false;
	info = kem_alg_info(slot->alg);
	memcpy(secret, slot->secret, info->secret_bytes);
	memcpy(share, slot->share, info->share_bytes);
	slot_release(table, slot, &table->metrics->handles_used_total);
	return true;
}

bool
keytable_release(
    struct keytable *table, uint64_t conn_id, const uint8_t handle[WIRE_HANDLE_BYTES])
{
	struct slot *slot = slot_find(table, conn_id, handle, 0);

	if (slot == NULL)
		return false;
	slot_release(table, slot, &table->metrics->handles_released_total);
	return true;
}

void
keytable_conn_gone(struct keytable *table, uint64_t conn_id)
{
	struct slot *slot = LIST_FIRST(conn_bucket(table, conn_id));

	while (slot != NULL) {
		struct slot *next = LIST_NEXT(slot, by_conn);

		if (slot->conn_id == conn_id)
			slot_release(
			    table, slot, &table->metrics->handles_dropped_total);
		slot = next;
	}
}

void
keytable_expire(struct keytable *table, uint64_t now_us)
{
	struct slot *slot;

	while ((slot = TAILQ_FIRST(&table->live)) != NULL && slot->expires_us <= now_us)
		slot_release(table, slot, &table->metrics->handles_expired_total);
}
