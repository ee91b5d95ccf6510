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
spare_init(struct kem_spare *spare)
{
	if (spare)
		spare->n = spare->used = spare->idle = 0;
}

/*
 * How many pairs are made beside a group of n: as many as are wanted and lanes are left.
 * All groups of a call but the last are full.
 */
static size_t
spare_count(const struct kem *kem, bool is_hybrid, size_t n, struct kem_spare *spare)
{
	size_t lanes = kem_x25519_lanes(kem);

	if (!spare || !is_hybrid || lanes == 1)
		return 0;
	spare->used += n;
	spare->n = spare->wanted < lanes - n ? spare->wanted : lanes - n;
	spare->idle = lanes - n - spare->n;
	return spare->n;
}

static void
spare_load(struct kem_spare *spare, const uint8_t *drawn, size_t n_fresh)
{
	for (size_t i = 0; i < n_fresh; i++) {
		memcpy(spare->pairs[i].private_key, drawn, X25519_KEY_BYTES);
		if (!fault("kem-spare-repeats"))
			drawn += X25519_KEY_BYTES;
	}
}

static void
spare_fail(struct kem_spare *spare)
{
	if (!spare)
		return;
	if (spare->n > 0)
		kem_wipe(spare->pairs, spare->n * sizeof(spare->pairs[0]));
	spare_init(spare);
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
	struct kem_spare *spare; /* or NULL */
	size_t n_fresh;          /* pairs of it that this group makes */
};

/*
 * One draw for all that the group lacks: m where it was not given, then the private
 * keys of missing ephemerals, then those of pairs that spare lanes make.
 */
static int
encaps_draw(const struct kem *kem, bool is_hybrid, struct encaps_group *group,
    struct kem_scratch *scratch)
{
	struct kem_front *front = kem_front(scratch);
	struct x25519_public_item x[KEM_GROUP_MAX];
	uint8_t *next = front->draw;
	size_t n_pairs = 0, n_keys;
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
	group->n_fresh = spare_count(kem, is_hybrid, group->n, group->spare);
	n_keys = n_pairs + group->n_fresh;
	r = random_fill(kem->random, front->draw,
	    (size_t)(next - front->draw) + X25519_KEY_BYTES * n_keys);
	if (r < 0)
		return r;
	spare_load(group->spare, next + X25519_KEY_BYTES * n_pairs, group->n_fresh);
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
		r = hybrid_encaps(kem, group->items, group->ephemerals, group->n,
		    group->spare ? group->spare->pairs : NULL, group->n_fresh, scratch);
	for (size_t i = 0; r == 0 && i < group->n; i++) {
		if (group->items[i]->status != KEM_OK)
			encaps_zero(alg, group->items[i]);
	}
	group->n = 0;
	return r;
}

static int
encaps_all(const struct kem *kem, enum kem_alg alg, struct kem_encaps_item *items,
    size_t n, const uint8_t (*m)[32], struct kem_spare *spare,
    struct kem_scratch *scratch)
{
	const size_t share_bytes = kem_alg_info(alg)->share_bytes;
	struct encaps_group group = {.n = 0, .spare = spare};
	int r = 0;

	spare_init(spare);
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
	if (r < 0)
		spare_fail(spare);
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
	return encaps_all(kem, alg, items, n, NULL, NULL, scratch);
}

int
kem_encaps_spare(const struct kem *kem, enum kem_alg alg, struct kem_encaps_item *items,
    size_t n, struct kem_spare *spare, struct kem_scratch *scratch)
{
	return encaps_all(kem, alg, items, n, NULL, spare, scratch);
}

int
kem_encaps_derand(const struct kem *kem, enum kem_alg alg,
    struct kem_encaps_item *items, size_t n, const uint8_t (*m)[32],
    struct kem_scratch *scratch)
{
	return encaps_all(kem, alg, items, n, m, NULL, scratch);
}

struct decaps_group {
	struct kem_decaps_item *items[KEM_GROUP_MAX];
	size_t n;
	struct kem_spare *spare; /* or NULL */
};

/* The X25519 half; a decapsulation draws for spare lanes alone. */
static int
decaps_hybrid(
    const struct kem *kem, struct decaps_group *group, struct kem_scratch *scratch)
{
	struct kem_front *front = kem_front(scratch);
	size_t n_fresh = spare_count(kem, true, group->n, group->spare);
	int r = random_fill(kem->random, front->draw, X25519_KEY_BYTES * n_fresh);

	if (r < 0)
		return r;
	spare_load(group->spare, front->draw, n_fresh);
	return hybrid_decaps(kem, group->items, group->n,
	    group->spare ? group->spare->pairs : NULL, n_fresh, scratch);
}

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
		r = decaps_hybrid(kem, group, scratch);
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
kem_decaps_spare(const struct kem *kem, enum kem_alg alg, struct kem_decaps_item *items,
    size_t n, struct kem_spare *spare, struct kem_scratch *scratch)
{
	struct decaps_group group = {.n = 0, .spare = spare};
	int r = 0;

	spare_init(spare);
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
	if (r < 0)
		spare_fail(spare);
	for (size_t i = 0; r < 0 && i < n; i++) {
		kem_wipe(items[i].shared, sizeof(*items[i].shared));
		items[i].status = KEM_E_INTERNAL;
	}
	return r;
}

int
kem_decaps(const struct kem *kem, enum kem_alg alg, struct kem_decaps_item *items,
    size_t n, struct kem_scratch *scratch)
{
	return kem_decaps_spare(kem, alg, items, n, NULL, scratch);
}
