/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * ML-KEM (FIPS 203 ch. 6) for a group. The order in which streams are queued is what
 * keeps the lanes full: what others wait for goes first, and the long hashes, nine
 * blocks of H(ek) or J(z || c) one after the other, start as early as they can and ride
 * beside the matrix. Eight items of ML-KEM-768 on 8 lanes leave no lane empty: 43
 * permutations for key generation (1 G, 6 noise, 27 matrix, 9 H), 44 for encapsulation
 * (9, 1, 7, 27), 53 for decapsulation with the hash check (1, 7, 27, 9 H, 9 J), 44
 * without. One item alone takes 14 (1 + 4 + 9), 11 (9 + 1 + 1) and 9: there is nothing
 * beside the nine blocks of H or J that it waits for.
 */
#include "mlkem.h"

#include <assert.h>
#include <string.h>

#include "ct.h"
#include "fault.h"
#include "kpke.h"

static const struct mlkem_set mlkem_sets[] = {
    [KEM_ALG_MLKEM512] = {.k = 2, .eta1 = 3, .du = COMPRESS_10, .dv = COMPRESS_4},
    [KEM_ALG_MLKEM768] = {.k = 3, .eta1 = 2, .du = COMPRESS_10, .dv = COMPRESS_4},
    [KEM_ALG_MLKEM1024] = {.k = 4, .eta1 = 2, .du = COMPRESS_11, .dv = COMPRESS_5},
};

static const struct mlkem_set *
set_get(enum kem_alg alg)
{
	assert(alg <= KEM_ALG_MLKEM1024);
	return &mlkem_sets[alg];
}

static size_t
set_ek_bytes(const struct mlkem_set *set)
{
	return POLY_BYTES * set->k + 32;
}

static size_t
set_ct_bytes(const struct mlkem_set *set)
{
	return compress_bytes(set->du) * set->k + compress_bytes(set->dv);
}

enum hash_kind { HASH_G, HASH_H, HASH_J };

/* G, H or J (4.1) of some items of a group, as a job of its sponge. */
struct hash {
	struct stream_job job;
	const uint8_t *head[KEM_GROUP_MAX]; /* 32 bytes, or NULL */
	const uint8_t *part[KEM_GROUP_MAX];
	size_t part_len;
	uint8_t *to[KEM_GROUP_MAX];
	uint8_t to_len;
	uint8_t k; /* not 0: the byte that key generation appends to d in G */
	const size_t *missing; /* bytes of the parts that are still to come, or NULL */
};

static void
hash_start(void *ctx, unsigned index, struct stream *stream)
{
	struct hash *hash = ctx;

	if (hash->head[index] != NULL) {
		memcpy(stream->head, hash->head[index], 32);
		stream->head[32] = hash->k;
		stream->head_len = hash->k != 0 ? 33 : 32;
	}
	stream->part = hash->part[index];
	stream->len = hash->part_len;
	stream->missing = hash->missing;
	stream->n_blocks = 1;
	stream->to = hash->to[index];
}

static bool
hash_take(void *ctx, void *to, unsigned *progress, const uint8_t *bytes, size_t len)
{
	const struct hash *hash = ctx;

	memcpy(to, bytes, hash->to_len);
	return false;
}

static const struct stream_kind hash_kinds[] = {
    [HASH_G] = {SHA3_512_WORDS, SHA3_SUFFIX, true, hash_start, hash_take},
    [HASH_H] = {SHA3_256_WORDS, SHA3_SUFFIX, false, hash_start, hash_take},
    [HASH_J] = {SHAKE256_WORDS, SHAKE_SUFFIX, false, hash_start, hash_take},
};

static void
hash_init(struct hash *hash, enum hash_kind kind, size_t part_len)
{
	memset(hash, 0, sizeof *hash);
	hash->job.kind = &hash_kinds[kind];
	hash->job.ctx = hash;
	hash->part_len = part_len;
	hash->to_len = kind == HASH_G ? 64 : 32;
}

static void
hash_item(struct hash *hash, const uint8_t *head, const uint8_t *part, uint8_t *to)
{
	unsigned i = hash->job.limit++;

	hash->head[i] = head;
	hash->part[i] = part;
	hash->to[i] = to;
}

static void
hash_wait(struct hash *hash, struct group *group)
{
	sponge_run(&group->sponge, &hash->job, hash->job.limit);
}

/*
 * One item of k < 4 and one long hash: the 3 k^2 blocks of the matrix fit into three
 * lanes beside the blocks of the hash (9 for k = 3, 6 for k = 2). Where half the lanes
 * cost half, the others are left to what is short: no permutation more, and most of them
 * at half the price.
 */
static void
group_confine(struct group *group)
{
	if (group->n == 1 && group->set->k < 4)
		sponge_narrow(&group->sponge, group->backend->narrow);
}

/* (K, r) = G(m || H(ek)), before all that waits (Alg. 17 line 1, Alg. 18 line 6). */
static void
group_derive(struct group *group, struct hash *g)
{
	hash_init(g, HASH_G, 32);
	for (unsigned i = 0; i < group->n; i++) {
		struct group_item *item = &group->item[i];

		hash_item(g, item->m, item->h, item->seed);
	}
	sponge_add_first(&group->sponge, &g->job);
}

void
mlkem_keygen(const struct backend *backend, enum kem_alg alg,
    struct mlkem_keygen_item *items, size_t n, uint8_t *work)
{
	const struct mlkem_set *set = set_get(alg);
	struct group *group = group_init(work, backend, set, n);
	struct hash g, h;

	hash_init(&g, HASH_G, 0);
	/* The parameter set's own domain (Alg. 13 line 1). */
	g.k = fault("kem-no-k") ? 0 : (uint8_t)set->k;
	hash_init(&h, HASH_H, set_ek_bytes(set));
	for (size_t i = 0; i < n; i++) {
		struct group_item *item = &group->item[i];
		uint8_t *secret = items[i].secret;

		item->ek_out = items[i].ek;
		item->secret_out = secret;
		hash_item(&g, items[i].d, NULL, item->seed);
		hash_item(&h, NULL, items[i].ek, secret + POLY_BYTES * set->k);
		memcpy(secret + POLY_BYTES * set->k + 32, items[i].z, 32);
	}
	group_confine(group);
	sponge_add_last(&group->sponge, &g.job);
	hash_wait(&g, group);
	/*
	 * H hashes row 0 of t^ while rows 1, 2 ... are made, where that leaves lanes idle
	 * and rows to be made. Measured: 15 % (avx2) and 5 % (avx512) of one key of
	 * ML-KEM-768, 5 % of two; three lose.
	 */
	if (n <= SPONGE_PARKED_MAX && set->k > 2 && backend->lanes > 1) {
		h.missing = &group->ek_missing;
		group->riding = &h.job;
	}
	kpke_keygen(group);
	if (group->riding == NULL)
		sponge_add_last(&group->sponge, &h.job);
	hash_wait(&h, group);
	group_fini(group);
}

/* The items whose key passes the modulus check; the others get status and zeros. */
static unsigned
encaps_admit(const struct backend *backend, const struct mlkem_set *set,
    struct mlkem_encaps_item *items, size_t n, uint8_t admitted[KEM_GROUP_MAX])
{
	unsigned n_admitted = 0;

	for (size_t i = 0; i < n; i++) {
		if (polyvec_check(backend, items[i].ek, set->k) != 0) {
			memset(items[i].ct, 0, set_ct_bytes(set));
			memset(items[i].shared, 0, 32);
			items[i].status = KEM_E_SHARE;
			continue;
		}
		items[i].status = KEM_OK;
		admitted[n_admitted++] = (uint8_t)i;
	}
	return n_admitted;
}

void
mlkem_encaps(const struct backend *backend, enum kem_alg alg,
    struct mlkem_encaps_item *items, size_t n, uint8_t *work)
{
	const struct mlkem_set *set = set_get(alg);
	uint8_t admitted[KEM_GROUP_MAX];
	unsigned n_admitted = encaps_admit(backend, set, items, n, admitted);
	struct group *group = group_init(work, backend, set, n_admitted);
	struct hash g, h;

	hash_init(&h, HASH_H, set_ek_bytes(set));
	for (unsigned i = 0; i < n_admitted; i++) {
		const struct mlkem_encaps_item *from = &items[admitted[i]];
		struct group_item *item = &group->item[i];

		item->ek = from->ek;
		item->ct_out = from->ct;
		item->m = from->m;
		item->h = item->hash;
		hash_item(&h, NULL, from->ek, item->hash);
	}
	group_confine(group);
	sponge_add_last(&group->sponge, &h.job);
	kpke_expand(group, false);
	hash_wait(&h, group);
	group_derive(group, &g);
	hash_wait(&g, group);
	kpke_encrypt(group);
	for (unsigned i = 0; i < n_admitted; i++)
		memcpy(items[admitted[i]].shared, group->item[i].seed, 32);
	group_fini(group);
}

/*
 * K' or J(z || c), by mask (Alg. 18 line 9-11); whether c was refused stays in differs
 * and dies with the group. A key that contradicts its hash gives nothing: that is no
 * secret.
 */
static void
decaps_finish(struct group *group, struct mlkem_decaps_item *items)
{
	const struct backend *backend = group->backend;

	for (unsigned i = 0; i < group->n; i++) {
		struct group_item *item = &group->item[i];
		uint64_t reject = ct_mask_nonzero(item->differs);

		items[i].status = KEM_OK;
		if (!items[i].trusted && backend->compare(item->hash, item->h, 32) != 0)
			items[i].status = KEM_E_KEY;
		if (items[i].status == KEM_OK)
			backend->select(
			    items[i].shared, item->rejected, item->seed, 32, reject);
		else
			memset(items[i].shared, 0, 32);
	}
}

void
mlkem_decaps(const struct backend *backend, enum kem_alg alg,
    struct mlkem_decaps_item *items, size_t n, uint8_t *work)
{
	const struct mlkem_set *set = set_get(alg);
	struct group *group = group_init(work, backend, set, n);
	struct hash g, h, j;

	hash_init(&j, HASH_J, set_ct_bytes(set));
	hash_init(&h, HASH_H, set_ek_bytes(set));
	for (size_t i = 0; i < n; i++) {
		struct group_item *item = &group->item[i];

		item->ek = items[i].ek;
		item->s = items[i].s;
		item->ct = items[i].ct;
		item->m = item->message;
		item->h = items[i].h;
		hash_item(&j, items[i].z, items[i].ct, item->rejected);
		if (!items[i].trusted)
			hash_item(&h, NULL, items[i].ek, item->hash);
	}
	if (h.job.limit == 0)
		group_confine(group);
	kpke_decrypt(group);
	group_derive(group, &g);
	sponge_add_last(&group->sponge, &j.job);
	sponge_add_last(&group->sponge, &h.job);
	kpke_expand(group, false);
	hash_wait(&g, group);
	kpke_encrypt(group);
	hash_wait(&j, group);
	hash_wait(&h, group);
	decaps_finish(group, items);
	group_fini(group);
}

void
mlkem_check_ek(const struct backend *backend, enum kem_alg alg,
    struct mlkem_encaps_item *items, size_t n, uint8_t *work)
{
	const struct mlkem_set *set = set_get(alg);

	for (size_t i = 0; i < n; i++) {
		items[i].status = KEM_OK;
		if (polyvec_check(backend, items[i].ek, set->k) != 0)
			items[i].status = KEM_E_SHARE;
	}
}

void
mlkem_check_dk(const struct backend *backend, enum kem_alg alg,
    struct mlkem_decaps_item *items, size_t n, uint8_t *work)
{
	const struct mlkem_set *set = set_get(alg);
	struct group *group = group_init(work, backend, set, n);
	struct hash h;

	hash_init(&h, HASH_H, set_ek_bytes(set));
	for (size_t i = 0; i < n; i++)
		hash_item(&h, NULL, items[i].ek, group->item[i].hash);
	sponge_add_last(&group->sponge, &h.job);
	hash_wait(&h, group);
	for (size_t i = 0; i < n; i++) {
		items[i].status = KEM_OK;
		if (backend->compare(group->item[i].hash, items[i].h, 32) != 0)
			items[i].status = KEM_E_KEY;
	}
	group_fini(group);
}
