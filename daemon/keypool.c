/* SPDX-License-Identifier: Apache-2.0 */
#include "keypool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kem/fault.h"
#include "metrics.h"
#include "secmem.h"

_Static_assert(
    (int)KEYPOOL_N_KINDS == METRICS_N_POOLS, "each kind is counted by itself");

/*
 * One kind of entry: a ring, oldest first. Entry i has its secret part in the arena at
 * secrets + i * secret_bytes, its public part at shares + i * share_bytes.
 */
struct ring {
	struct metrics_pool *metrics;
	uint8_t *secrets;
	uint8_t *shares;
	uint64_t *made_us;
	uint32_t size; /* entries that there is room for */
	uint32_t high; /* filled up to here; at most size */
	uint32_t low;  /* filling begins below */
	uint32_t first, level;
	uint32_t secret_bytes, share_bytes;
	bool filling;
};

struct keypool {
	struct ring rings[KEYPOOL_N_KINDS];
	const struct kem *kem;
	struct kem_scratch *scratch;
	struct metrics_shard *metrics;
	struct kem_x25519 *fresh; /* KEM_GROUP_MAX, in the arena */
	uint64_t max_age_us;
	uint64_t
	    now_us; /* of this turn, near enough for the age of what is given out */
	bool pairwise_check;
};

static enum kem_alg
kind_alg(enum keypool_kind kind)
{
	return kind == KEYPOOL_HYBRID ? KEM_ALG_X25519MLKEM768 : KEM_ALG_MLKEM768;
}

static uint32_t
kind_secret_bytes(enum keypool_kind kind)
{
	return kind == KEYPOOL_X25519 ? 32 : kem_alg_info(kind_alg(kind))->secret_bytes;
}

static size_t
carve_bytes(size_t size)
{
	return (size + 63) & ~(size_t)63;
}

size_t
keypool_arena_bytes(const struct keypool_limits *limits)
{
	size_t bytes = carve_bytes(KEM_GROUP_MAX * sizeof(struct kem_x25519));

	for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++)
		bytes +=
		    carve_bytes((size_t)limits->high[kind] * kind_secret_bytes(kind));
	return bytes;
}

static int
ring_init(
    struct ring *ring, enum keypool_kind kind, uint32_t size, struct secmem *secmem)
{
	ring->size = size;
	ring->secret_bytes = kind_secret_bytes(kind);
	ring->share_bytes =
	    kind == KEYPOOL_X25519 ? 32 : kem_alg_info(kind_alg(kind))->share_bytes;
	ring->secrets = secmem_carve(secmem, (size_t)size * ring->secret_bytes);
	ring->shares = malloc(size ? (size_t)size * ring->share_bytes : 1);
	ring->made_us = calloc(size ? size : 1, sizeof(*ring->made_us));
	if (ring->secrets == NULL || ring->shares == NULL || ring->made_us == NULL)
		return -ENOMEM;
	return 0;
}

int
keypool_new(struct keypool **poolp, const struct keypool_limits *limits,
    const struct kem *kem, struct secmem *secmem, struct kem_scratch *scratch,
    struct metrics_shard *metrics)
{
	struct keypool *pool = calloc(1, sizeof(*pool));
	int r = 0;

	if (pool == NULL)
		return -ENOMEM;
	pool->kem = kem;
	pool->scratch = scratch;
	pool->metrics = metrics;
	pool->fresh = secmem_carve(secmem, KEM_GROUP_MAX * sizeof(*pool->fresh));
	if (pool->fresh == NULL)
		r = -ENOMEM;
	for (int kind = 0; r == 0 && kind < KEYPOOL_N_KINDS; kind++) {
		pool->rings[kind].metrics = &metrics->pool[kind];
		r = ring_init(&pool->rings[kind], kind, limits->high[kind], secmem);
	}
	if (r != 0) {
		keypool_free(pool);
		return r;
	}
	keypool_set_limits(pool, limits);
	*poolp = pool;
	return 0;
}

struct keypool *
keypool_free(struct keypool *pool)
{
	if (pool == NULL)
		return NULL;
	for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++) {
		struct ring *ring = &pool->rings[kind];

		if (ring->secrets != NULL)
			kem_wipe(
			    ring->secrets, (size_t)ring->size * ring->secret_bytes);
		free(ring->shares);
		free(ring->made_us);
	}
	free(pool);
	return NULL;
}

static uint32_t
ring_slot(const struct ring *ring, uint32_t nth)
{
	uint32_t slot = ring->first + nth;

	return slot < ring->size ? slot : slot - ring->size;
}

static uint8_t *
ring_secret(const struct ring *ring, uint32_t slot)
{
	return ring->secrets + (size_t)slot * ring->secret_bytes;
}

static uint8_t *
ring_share(const struct ring *ring, uint32_t slot)
{
	return ring->shares + (size_t)slot * ring->share_bytes;
}

static void
ring_update(struct ring *ring)
{
	metrics_set(&ring->metrics->oldest_us,
	    ring->level > 0 ? ring->made_us[ring->first] : 0);
	if (ring->level >= ring->high)
		ring->filling = false;
	else if (ring->level < ring->low)
		ring->filling = true;
}

/* The oldest entry goes: wiped, and its place free. */
static void
ring_drop(struct ring *ring)
{
	if (!fault("keypool-no-wipe"))
		kem_wipe(ring_secret(ring, ring->first), ring->secret_bytes);
	ring->first = ring_slot(ring, 1);
	ring->level--;
	ring_update(ring);
}

static void
show_levels(struct keypool *pool)
{
	metrics_set(&pool->metrics->pool_hybrid, pool->rings[KEYPOOL_HYBRID].level);
	metrics_set(&pool->metrics->pool_mlkem768, pool->rings[KEYPOOL_MLKEM768].level);
	metrics_set(&pool->metrics->pool_x25519, pool->rings[KEYPOOL_X25519].level);
}

static bool
ring_take(struct keypool *pool, struct ring *ring, uint8_t *share, uint8_t *secret)
{
	uint64_t age_us = 0;

	if (ring->level == 0) {
		if (ring->high > 0) {
			metrics_add(&pool->metrics->pool_missed_total, 1);
			metrics_add(&ring->metrics->missed, 1);
		}
		return false;
	}
	if (pool->now_us > ring->made_us[ring->first])
		age_us = pool->now_us - ring->made_us[ring->first];
	metrics_observe(&pool->metrics->pool_age, METRICS_AGE, age_us);
	metrics_add(&ring->metrics->taken, 1);
	memcpy(share, ring_share(ring, ring->first), ring->share_bytes);
	memcpy(secret, ring_secret(ring, ring->first), ring->secret_bytes);
	ring_drop(ring);
	metrics_add(&pool->metrics->pool_taken_total, 1);
	show_levels(pool);
	return true;
}

bool
keypool_take_pair(
    struct keypool *pool, enum keypool_kind kind, uint8_t *share, uint8_t *secret)
{
	assert(kind == KEYPOOL_HYBRID || kind == KEYPOOL_MLKEM768);
	return ring_take(pool, &pool->rings[kind], share, secret);
}

bool
keypool_take_x25519(struct keypool *pool, struct kem_x25519 *pair)
{
	return ring_take(
	    pool, &pool->rings[KEYPOOL_X25519], pair->public_key, pair->private_key);
}

bool
keypool_wants_fill(const struct keypool *pool)
{
	for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++)
		if (pool->rings[kind].filling)
			return true;
	return false;
}

static int
pairs_make(struct keypool *pool, struct ring *ring, enum kem_alg alg, uint32_t n)
{
	struct kem_keygen_item items[KEM_GROUP_MAX] = {0};
	int r;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t slot = ring_slot(ring, ring->level + i);

		items[i].share = ring_share(ring, slot);
		items[i].secret = ring_secret(ring, slot);
	}
	r = kem_keygen(pool->kem, alg, items, n, pool->scratch);
	if (fault("keypool-corrupt-pair"))
		items[n - 1].secret[0] ^= 1;
	for (uint32_t i = 0; r == 0 && i < n; i++)
		if (items[i].status != KEM_OK)
			r = KEM_FAIL_RNG;
	for (uint32_t i = 0; r == 0 && pool->pairwise_check && i < n; i++) {
		r = kem_pairwise_check(
		    pool->kem, alg, items[i].secret, items[i].share, pool->scratch);
		if (r > 0)
			r = KEM_FAIL_SELFTEST;
	}
	for (uint32_t i = 0; r != 0 && i < n; i++)
		kem_wipe(items[i].secret, ring->secret_bytes);
	return r;
}

/* From fresh behind the youngest entry; fresh is wiped, they count as entries later. */
static void
ephemerals_put(struct keypool *pool, struct ring *ring, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t slot = ring_slot(ring, ring->level + i);

		memcpy(ring_share(ring, slot), pool->fresh[i].public_key, 32);
		memcpy(ring_secret(ring, slot), pool->fresh[i].private_key, 32);
	}
	if (!fault("keypool-no-wipe-fresh"))
		kem_wipe(pool->fresh, KEM_GROUP_MAX * sizeof(*pool->fresh));
}

static int
ephemerals_make(struct keypool *pool, struct ring *ring, uint32_t n)
{
	int r = kem_x25519_keygen(pool->kem, pool->fresh, n, pool->scratch);

	ephemerals_put(pool, ring, r == 0 ? n : 0);
	return r;
}

/* The kind that is lowest in proportion to its high water, of those being filled. */
static enum keypool_kind
lowest_kind(const struct keypool *pool)
{
	enum keypool_kind lowest = KEYPOOL_N_KINDS;
	uint64_t least = UINT64_MAX;

	for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++) {
		const struct ring *ring = &pool->rings[kind];
		uint64_t part;

		if (!ring->filling)
			continue;
		part = ((uint64_t)ring->level << 32) / ring->high;
		if (part < least) {
			least = part;
			lowest = kind;
		}
	}
	return lowest;
}

/* The n entries behind the youngest are there. */
static void
ring_grow(struct keypool *pool, struct ring *ring, uint32_t n, uint64_t now_us)
{
	for (uint32_t i = 0; i < n; i++)
		ring->made_us[ring_slot(ring, ring->level + i)] = now_us;
	ring->level += n;
	ring_update(ring);
	pool->now_us = now_us;
	metrics_add(&pool->metrics->pool_made_total, n);
	metrics_add(&ring->metrics->made, n);
	show_levels(pool);
}

int
keypool_fill_group(struct keypool *pool, uint64_t now_us)
{
	enum keypool_kind kind = lowest_kind(pool);
	uint32_t n = kem_backend_lanes(pool->kem);
	struct ring *ring;
	int r;

	if (kind == KEYPOOL_N_KINDS)
		return 0;
	ring = &pool->rings[kind];
	if (n < 1)
		n = 1;
	if (n > KEM_GROUP_MAX)
		n = KEM_GROUP_MAX;
	if (n > ring->high - ring->level)
		n = ring->high - ring->level;

	if (kind == KEYPOOL_X25519)
		r = ephemerals_make(pool, ring, n);
	else
		r = pairs_make(pool, ring, kind_alg(kind), n);
	if (r != 0)
		return r;

	ring_grow(pool, ring, n, now_us);
	return 0;
}

void
keypool_lend(struct keypool *pool, struct kem_spare *spare)
{
	const struct ring *ring = &pool->rings[KEYPOOL_X25519];
	uint32_t wanted = ring->high - ring->level;

	*spare = (struct kem_spare){.pairs = pool->fresh,
	    .wanted = wanted < KEM_SPARE_MAX ? wanted : KEM_SPARE_MAX};
}

void
keypool_keep(struct keypool *pool, struct kem_spare *spare, uint64_t now_us)
{
	struct ring *ring = &pool->rings[KEYPOOL_X25519];
	uint32_t n = (uint32_t)spare->n;

	assert(spare->pairs == pool->fresh && n <= ring->high - ring->level);
	if (n == 0)
		return;
	ephemerals_put(pool, ring, n);
	ring_grow(pool, ring, n, now_us);
	*spare = (struct kem_spare){0};
}

void
keypool_expire(struct keypool *pool, uint64_t now_us)
{
	uint64_t n = 0;

	pool->now_us = now_us;
	for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++) {
		struct ring *ring = &pool->rings[kind];

		while (ring->level > 0 &&
		       ring->made_us[ring->first] + pool->max_age_us < now_us) {
			ring_drop(ring);
			metrics_add(&ring->metrics->expired, 1);
			n++;
		}
	}
	if (n == 0)
		return;
	metrics_add(&pool->metrics->pool_expired_total, n);
	show_levels(pool);
}

void
keypool_flush(struct keypool *pool)
{
	for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++) {
		struct ring *ring = &pool->rings[kind];

		metrics_add(&ring->metrics->flushed, ring->level);
		while (ring->level > 0)
			ring_drop(ring);
	}
	show_levels(pool);
}

void
keypool_set_limits(struct keypool *pool, const struct keypool_limits *limits)
{
	for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++) {
		struct ring *ring = &pool->rings[kind];
		uint32_t high = limits->high[kind];

		ring->high = high < ring->size ? high : ring->size;
		ring->low =
		    (uint32_t)((uint64_t)ring->high * limits->low_percent / 100);
		if (ring->low == 0 && ring->high > 0)
			ring->low = 1; /* an empty ring is always filled */
		while (ring->level > ring->high) {
			ring_drop(ring);
			metrics_add(&ring->metrics->flushed, 1);
		}
		ring_update(ring);
	}
	pool->max_age_us = (uint64_t)limits->max_age_ms * 1000;
	show_levels(pool);
}

void
keypool_set_pairwise_check(struct keypool *pool, bool on)
{
	pool->pairwise_check = on;
}

uint32_t
keypool_size(const struct keypool *pool, enum keypool_kind kind)
{
	return pool->rings[kind].high;
}

uint32_t
keypool_level(const struct keypool *pool, enum keypool_kind kind)
{
	return pool->rings[kind].level;
}
