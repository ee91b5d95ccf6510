/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The three operations for any number of items: lengths are checked here, good items are
 * gathered into groups, randomness is drawn once a group, the ML-KEM half goes to
 * mlkem.c and the X25519 half to hybrid.c. All secrets of this file lie at the front of
 * the scratch (struct kem_front).
 */
#include <string.h>

#include "alg.h"
#include "context.h"
#include "fault.h"
#include "hybrid.h"
#include "internal.h"
#include "x25519.h"

static void
front_wipe(struct kem_scratch *scratch)
{
	if (!fault("kem-no-wipe-front"))
		kem_wipe(kem_front(scratch), sizeof(struct kem_front));
}

static void
keygen_zero(enum kem_alg alg, struct kem_keygen_item *item)
{
	const struct kem_alg_info *info = kem_alg_info(alg);

	kem_wipe(item->share, info->share_bytes);
	kem_wipe(item->secret, info->secret_bytes);
}

/* Alg. 19 for up to KEM_GROUP_MAX items; those with a seed draw nothing. */
static int
keygen_group(const struct kem *kem, enum kem_alg alg, struct kem_keygen_item *items,
    size_t n, struct kem_scratch *scratch)
{
	const struct alg_half *half = alg_half(alg);
	const size_t seed_bytes = kem_alg_info(alg)->seed_bytes;
	struct kem_front *front = kem_front(scratch);
	const uint8_t *seeds[KEM_GROUP_MAX];
	size_t n_drawn = 0;
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		seeds[i] = items[i].seed;
		if (!seeds[i])
			seeds[i] = front->draw + seed_bytes * n_drawn++;
	}
	r = random_fill(kem->random, front->draw, seed_bytes * n_drawn);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		front->item.keygen[i] = (struct mlkem_keygen_item){
		    .d = seeds[i],
		    .z = seeds[i] + 32,
		    .ek = items[i].share,
		    .secret = items[i].secret,
		};
		items[i].status = KEM_OK;
	}
	mlkem_keygen(kem->backend, half->set, front->item.keygen, n, kem_work(scratch));
	if (half->is_hybrid)
		r = hybrid_keygen(kem, items, seeds, n, scratch);
	return r;
}

int
kem_keygen(const struct kem *kem, enum kem_alg alg, struct kem_keygen_item *items,
    size_t n, struct kem_scratch *scratch)
{
	size_t n_group;
	int r = 0;

	for (size_t first = 0; r == 0 && first < n; first += n_group) {
		n_group = n - first < KEM_GROUP_MAX ? n - first : KEM_GROUP_MAX;
		r = keygen_group(kem, alg, items + first, n_group, scratch);
	}
	front_wipe(scratch);
	for (size_t i = 0; r < 0 && i < n; i++) {
		keygen_zero(alg, &items[i]);
		items[i].status = KEM_E_INTERNAL;
	}
	return r;
}

static void
encaps_zero(enum kem_alg alg, struct kem_encaps_item *item)
{
	kem_wipe(item->ct, kem_alg_info(alg)->ct_bytes);
	kem_wipe(item->shared, sizeof(*item->shared));
}

struct encaps_group {
	struct kem_encaps_item *items[KEM_GROUP_MAX];
	const uint8_t *m[KEM_GROUP_MAX]; /* NULL: to be drawn */
	const struct kem_x25519 *ephemerals[KEM_GROUP_MAX];
	size_t n;
};

/*
 * One draw for all that the group lacks: m where it was not given, then the private
 * keys of missing ephemerals.
 */
static int
encaps_draw(const struct kem *kem, bool is_hybrid, struct encaps_group *group,
    struct kem_scratch *scratch)
{
	struct kem_front *front = kem_front(scratch);
	struct x25519_public_item x[KEM_GROUP_MAX];
	uint8_t *next = front->draw;
	size_t n_pairs = 0;
	int r;

	for (size_t i = 0; i < group->n; i++) {
		if (group->m[i])
			continue;
		group->m[i] = next;
		next += 32;
	}
	for (size_t i = 0; is_hybrid && i < group->n; i++) {
		group->ephemerals[i] = group->items[i]->ephemeral;
		if (group->ephemerals[i])
			continue;
		group->ephemerals[i] = &front->pair[n_pairs];
		x[n_pairs].private_key = next + X25519_KEY_BYTES * n_pairs;
		x[n_pairs].public_key = front->pair[n_pairs].public_key;
		n_pairs++;
	}
	r = random_fill(kem->random, front->draw,
	    (size_t)(next - front->draw) + X25519_KEY_BYTES * n_pairs);
	if (r < 0 || n_pairs == 0)
		return r;
	for (size_t i = 0; i < n_pairs; i++)
		memcpy(front->pair[i].private_key, x[i].private_key, X25519_KEY_BYTES);
	return x25519_public(kem, x, n_pairs, scratch);
}

/* Alg. 20 (Alg. 17 where m is given) for the gathered items. */
static int
encaps_run(const struct kem *kem, enum kem_alg alg, struct encaps_group *group,
    struct kem_scratch *scratch)
{
	const struct alg_half *half = alg_half(alg);
	struct kem_front *front = kem_front(scratch);
	struct kem_encaps_item *item;
	int r;

	r = encaps_draw(kem, half->is_hybrid, group, scratch);
	if (r < 0)
		return r;
	for (size_t i = 0; i < group->n; i++) {
		item = group->items[i];
		memset(item->shared, 0, sizeof(*item->shared));
		front->item.encaps[i] = (struct mlkem_encaps_item){
		    .ek = item->share,
		    .m = group->m[i],
		    .ct = item->ct,
		    .shared = item->shared->bytes,
		};
	}
	mlkem_encaps(
	    kem->backend, half->set, front->item.encaps, group->n, kem_work(scratch));
	for (size_t i = 0; i < group->n; i++)
		group->items[i]->status = front->item.encaps[i].status;
	if (half->is_hybrid)
		r = hybrid_encaps(
		    kem, group->items, group->ephemerals, group->n, scratch);
	for (size_t i = 0; r == 0 && i < group->n; i++) {
		if (group->items[i]->status != KEM_OK)
			encaps_zero(alg, group->items[i]);
	}
	group->n = 0;
	return r;
}

static int
encaps_all(const struct kem *kem, enum kem_alg alg, struct kem_encaps_item *items,
    size_t n, const uint8_t (*m)[32], struct kem_scratch *scratch)
{
	const size_t share_bytes = kem_alg_info(alg)->share_bytes;
	struct encaps_group group = {.n = 0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		if (!items[i].share || items[i].share_len != share_bytes) {
			encaps_zero(alg, &items[i]);
			items[i].status = KEM_E_LENGTH;
			continue;
		}
		group.m[group.n] = m ? m[i] : NULL;
		group.items[group.n++] = &items[i];
		if (group.n == KEM_GROUP_MAX)
			r = encaps_run(kem, alg, &group, scratch);
	}
	if (r == 0 && group.n > 0)
		r = encaps_run(kem, alg, &group, scratch);
	front_wipe(scratch);
	for (size_t i = 0; r < 0 && i < n; i++) {
		encaps_zero(alg, &items[i]);
		items[i].status = KEM_E_INTERNAL;
	}
	return r;
}

int
kem_encaps(const struct kem *kem, enum kem_alg alg, struct kem_encaps_item *items,
    size_t n, struct kem_scratch *scratch)
{
	return encaps_all(kem, alg, items, n, NULL, scratch);
}

int
kem_encaps_derand(const struct kem *kem, enum kem_alg alg,
    struct kem_encaps_item *items, size_t n, const uint8_t (*m)[32],
    struct kem_scratch *scratch)
{
	return encaps_all(kem, alg, items, n, m, scratch);
}

struct decaps_group {
	struct kem_decaps_item *items[KEM_GROUP_MAX];
	size_t n;
};

/*
 * Alg. 21 for the gathered items. A rejected ciphertext is like any other here: mlkem.c
 * keeps the flag to itself (FIPS 203 6.3).
 */
static int
decaps_run(const struct kem *kem, enum kem_alg alg, struct decaps_group *group,
    struct kem_scratch *scratch)
{
	const struct alg_half *half = alg_half(alg);
	struct kem_front *front = kem_front(scratch);
	struct kem_decaps_item *item;
	int r = 0;

	for (size_t i = 0; i < group->n; i++) {
		item = group->items[i];
		memset(item->shared, 0, sizeof(*item->shared));
		front->item.decaps[i] = (struct mlkem_decaps_item){
		    .s = item->key->s,
		    .ek = item->key->ek,
		    .h = item->key->h,
		    .z = item->key->z,
		    .trusted = item->key->trusted,
		    .ct = item->ct,
		    .shared = item->shared->bytes,
		};
	}
	mlkem_decaps(
	    kem->backend, half->set, front->item.decaps, group->n, kem_work(scratch));
	for (size_t i = 0; i < group->n; i++)
		group->items[i]->status = front->item.decaps[i].status;
	if (half->is_hybrid)
		r = hybrid_decaps(kem, group->items, group->n, scratch);
	for (size_t i = 0; r == 0 && i < group->n; i++) {
		if (group->items[i]->status != KEM_OK)
			kem_wipe(group->items[i]->shared, sizeof(struct kem_shared));
	}
	group->n = 0;
	return r;
}

static enum kem_status
decaps_check(enum kem_alg alg, const struct kem_decaps_item *item)
{
	if (item->key->alg != alg)
		return KEM_E_ALG;
	if (!item->ct || item->ct_len != kem_alg_info(alg)->ct_bytes)
		return KEM_E_LENGTH;
	return KEM_OK;
}

int
kem_decaps(const struct kem *kem, enum kem_alg alg, struct kem_decaps_item *items,
    size_t n, struct kem_scratch *scratch)
{
	struct decaps_group group = {.n = 0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		items[i].status = decaps_check(alg, &items[i]);
		if (items[i].status != KEM_OK) {
			kem_wipe(items[i].shared, sizeof(*items[i].shared));
			continue;
		}
		group.items[group.n++] = &items[i];
		if (group.n == KEM_GROUP_MAX)
			r = decaps_run(kem, alg, &group, scratch);
	}
	if (r == 0 && group.n > 0)
		r = decaps_run(kem, alg, &group, scratch);
	front_wipe(scratch);
	for (size_t i = 0; r < 0 && i < n; i++) {
		kem_wipe(items[i].shared, sizeof(*items[i].shared));
		items[i].status = KEM_E_INTERNAL;
	}
	return r;
}
