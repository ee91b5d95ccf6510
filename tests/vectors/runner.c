/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a list of cases on every direct path. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kem/alg.h"
#include "kem/x25519.h"
#include "vectors.h"

#define N_MAX          64
#define N_PRINTED_MAX  5
#define NO_BAD_ITEM    ((size_t)-1)
#define N_ENCAPS_KINDS 3
#define N_DECAPS_KINDS 4

/* A case with what its items point at; one whose key can't be viewed runs no operation. */
struct prepared {
	const struct vector *vector;
	bool runs;
	enum kem_status status; /* if it does not run */
	struct kem_private key;
	struct kem_x25519 ephemeral;
	struct bytes secret, share; /* of a key that is given as a seed */
};

/* The cases of one operation and one algorithm. */
struct part {
	enum vector_op op;
	enum kem_alg alg;
	struct prepared *cases;
	size_t n;
	const struct prepared *good; /* one that succeeds, to make bad items of */
	size_t n_wrong;
	const char *path;
};

static struct test_item out[N_MAX];
static struct kem_keygen_item keygen[N_MAX];
static struct kem_encaps_item encaps[N_MAX];
static struct kem_decaps_item decaps[N_MAX];
static uint8_t m[N_MAX][32];

static enum kem_status
key_from_seed(struct prepared *p)
{
	const struct kem_alg_info *info = kem_alg_info(p->vector->alg);
	struct kem_keygen_item item;

	if (p->vector->seed.len != info->seed_bytes)
		return KEM_E_LENGTH;
	p->secret =
	    (struct bytes){vectors_alloc(info->secret_bytes), info->secret_bytes};
	p->share = (struct bytes){vectors_alloc(info->share_bytes), info->share_bytes};
	item = (struct kem_keygen_item){
	    .seed = p->vector->seed.p, .share = p->share.p, .secret = p->secret.p};
	ck_assert_int_eq(
	    kem_keygen(test_kem(), p->vector->alg, &item, 1, test_scratch()), 0);
	kem_private_from_parts(&p->key, p->vector->alg, p->secret.p, p->share.p);
	return KEM_OK;
}

static void
prepare(struct prepared *p, const struct vector *v)
{
	struct x25519_public_item x = {
	    p->ephemeral.private_key, p->ephemeral.public_key};

	p->vector = v;
	p->status = KEM_OK;
	if (v->op == VECTOR_KEYGEN && v->seed.len != kem_alg_info(v->alg)->seed_bytes)
		p->status = KEM_E_LENGTH;
	if (v->op == VECTOR_DECAPS && v->dk.p)
		p->status = kem_private_from_dk(&p->key, v->alg, v->dk.p, v->dk.len);
	else if (v->op == VECTOR_DECAPS)
		p->status = key_from_seed(p);
	if (v->op == VECTOR_ENCAPS) {
		ck_assert_uint_eq(v->m.len, 32);
		ck_assert_uint_eq(v->x_priv.len, alg_half(v->alg)->is_hybrid ? 32 : 0);
		if (v->x_priv.len > 0) {
			memcpy(p->ephemeral.private_key, v->x_priv.p, 32);
			ck_assert_int_eq(
			    x25519_public(test_kem(), &x, 1, test_scratch()), 0);
		}
	}
	p->runs = p->status == KEM_OK;
}

static bool
bytes_differ(struct bytes expected, const uint8_t *p, size_t len)
{
	if (!expected.p)
		return false;
	return expected.len != len || memcmp(expected.p, p, len) != 0;
}

static bool
shared_is_wrong(const struct vector *v, const struct kem_shared *shared)
{
	const size_t len = kem_alg_info(v->alg)->shared_bytes;

	return bytes_differ(v->shared, shared->bytes, len) ||
	       test_is_zero(shared, 32) ||
	       !test_is_zero(shared->bytes + len, sizeof(*shared) - len);
}

static bool
keygen_is_wrong(
    const struct vector *v, enum kem_status status, const struct test_item *o)
{
	const struct kem_alg_info *info = kem_alg_info(v->alg);
	uint8_t dk[KEM_DK_MAX];

	if (status != v->status)
		return true;
	kem_private_export(v->alg, o->secret, o->share, dk);
	return bytes_differ(v->share, o->share, info->share_bytes) ||
	       bytes_differ(v->dk, dk, info->dk_bytes);
}

static bool
encaps_is_wrong(
    const struct vector *v, enum kem_status status, const struct test_item *o)
{
	const size_t ct_bytes = kem_alg_info(v->alg)->ct_bytes;

	if (status != v->status)
		return true;
	if (status != KEM_OK)
		return !test_is_zero(o->ct, ct_bytes) || !test_is_zero(&o->made, 64);
	return bytes_differ(v->ct, o->ct, ct_bytes) || shared_is_wrong(v, &o->made);
}

static bool
decaps_is_wrong(
    const struct vector *v, enum kem_status status, const struct test_item *o)
{
	if (status != v->status)
		return true;
	if (status != KEM_OK)
		return !test_is_zero(&o->found, 64);
	return shared_is_wrong(v, &o->found);
}

static void
count_wrong(struct part *part, const struct vector *v, size_t n, size_t i)
{
	if (part->n_wrong++ < N_PRINTED_MAX && part->path)
		printf("%s: case %u of %s is wrong as item %zu of %zu\n", part->path,
		    v->id, kem_alg_info(part->alg)->name, i, n);
}

/* The bad items: each kind with the status that it has to get. */
static enum kem_status
encaps_spoil(const struct part *part, struct kem_encaps_item *item, size_t kind)
{
	static uint8_t share[KEM_SHARE_MAX];
	const struct kem_alg_info *info = kem_alg_info(part->alg);

	memset(share, 0, sizeof(share));
	if (part->good)
		memcpy(share, part->good->vector->share.p, info->share_bytes);
	item->share = share;
	item->share_len = info->share_bytes;
	switch (kind % N_ENCAPS_KINDS) {
	case 0:
		item->share_len -= 1;
		return KEM_E_LENGTH;
	case 1:
		memset(share, 0xff, 3);
		return KEM_E_SHARE;
	default:
		memset(share + info->share_bytes - 32, 0, 32);
		if (alg_half(part->alg)->is_hybrid)
			return KEM_E_ZERO;
		item->share_len += 1;
		return KEM_E_LENGTH;
	}
}

static enum kem_status
decaps_spoil(const struct part *part, struct kem_decaps_item *item, size_t kind)
{
	static uint8_t ct[KEM_CT_MAX], hash[32];
	static struct kem_private key;
	const struct kem_alg_info *info = kem_alg_info(part->alg);

	memcpy(ct, part->good->vector->ct.p, info->ct_bytes);
	key = part->good->key;
	item->key = &key;
	item->ct = ct;
	item->ct_len = info->ct_bytes;
	switch (kind % N_DECAPS_KINDS) {
	case 0:
		item->ct_len += 1;
		return KEM_E_LENGTH;
	case 1:
		key.alg = part->alg == KEM_ALG_MLKEM768 ? KEM_ALG_X25519MLKEM768
							: KEM_ALG_MLKEM768;
		return KEM_E_ALG;
	case 2:
		memcpy(hash, key.h, 32);
		hash[31] ^= 0x40;
		key.h = hash;
		key.trusted = false;
		return KEM_E_KEY;
	default:
		memset(ct + info->ct_bytes - 32, 0, 32);
		if (alg_half(part->alg)->is_hybrid)
			return KEM_E_ZERO;
		item->ct_len = 0;
		return KEM_E_LENGTH;
	}
}

static void
keygen_batch(struct part *part, const struct prepared *const *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		keygen[i] = (struct kem_keygen_item){.seed = cases[i]->vector->seed.p,
		    .share = out[i].share,
		    .secret = out[i].secret};
	}
	ck_assert_int_eq(
	    kem_keygen(test_kem(), part->alg, keygen, n, test_scratch()), 0);
	for (size_t i = 0; i < n; i++) {
		if (keygen_is_wrong(cases[i]->vector, keygen[i].status, &out[i]))
			count_wrong(part, cases[i]->vector, n, i);
	}
}

static void
encaps_batch(
    struct part *part, const struct prepared *const *cases, size_t n, size_t bad)
{
	enum kem_status status = KEM_OK;

	for (size_t i = 0; i < n; i++) {
		const struct vector *v = cases[i]->vector;

		encaps[i] = (struct kem_encaps_item){.share = v->share.p,
		    .share_len = v->share.len,
		    .ephemeral = &cases[i]->ephemeral,
		    .ct = out[i].ct,
		    .shared = &out[i].made};
		memcpy(m[i], v->m.p, 32);
	}
	if (bad < n)
		status = encaps_spoil(part, &encaps[bad], bad);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), part->alg, encaps, n, m, test_scratch()), 0);
	for (size_t i = 0; i < n; i++) {
		struct vector spoiled = {.alg = part->alg, .status = status};
		const struct vector *v = i == bad ? &spoiled : cases[i]->vector;

		if (encaps_is_wrong(v, encaps[i].status, &out[i]))
			count_wrong(part, v, n, i);
	}
}

static void
decaps_batch(
    struct part *part, const struct prepared *const *cases, size_t n, size_t bad)
{
	enum kem_status status = KEM_OK;

	for (size_t i = 0; i < n; i++) {
		decaps[i] = (struct kem_decaps_item){.key = &cases[i]->key,
		    .ct = cases[i]->vector->ct.p,
		    .ct_len = cases[i]->vector->ct.len,
		    .shared = &out[i].found};
	}
	if (bad < n)
		status = decaps_spoil(part, &decaps[bad], bad);
	ck_assert_int_eq(
	    kem_decaps(test_kem(), part->alg, decaps, n, test_scratch()), 0);
	for (size_t i = 0; i < n; i++) {
		struct vector spoiled = {.alg = part->alg, .status = status};
		const struct vector *v = i == bad ? &spoiled : cases[i]->vector;

		if (decaps_is_wrong(v, decaps[i].status, &out[i]))
			count_wrong(part, v, n, i);
	}
}

static void
batch_run(struct part *part, const struct prepared *const *cases, size_t n, size_t bad)
{
	for (size_t i = 0; i < n; i++)
		test_item_blank(&out[i], part->alg);
	switch (part->op) {
	case VECTOR_KEYGEN:
		keygen_batch(part, cases, n);
		break;
	case VECTOR_ENCAPS:
		encaps_batch(part, cases, n, bad);
		break;
	case VECTOR_DECAPS:
		decaps_batch(part, cases, n, bad);
		break;
	}
	for (size_t i = 0; i < n; i++)
		test_item_check(&out[i]);
}

/*
 * Batches of n, going round the cases until each was in one and, if bad items are asked
 * for, each place was bad once. The case that a bad item displaces comes in the next.
 */
static void
path_run(struct part *part, size_t n, bool with_bad)
{
	const struct prepared *cases[N_MAX];
	size_t next = 0, n_done = 0, bad = with_bad ? 0 : NO_BAD_ITEM;

	while (n_done < part->n || (with_bad && bad < n)) {
		for (size_t i = 0; i < n; i++) {
			cases[i] = &part->cases[next];
			if (i != bad)
				next = (next + 1) % part->n;
		}
		batch_run(part, cases, n, bad);
		n_done += with_bad ? n - 1 : n;
		if (with_bad)
			bad++;
		if (with_bad && bad == n && n_done < part->n)
			bad = 0;
	}
}

/* An emulated CPU has time for one group and one batch. */
static bool
is_short_run(void)
{
	const char *length = getenv("MLKEMD_TEST_LENGTH");

	return length && strcmp(length, "quick") == 0;
}

static void
part_run(struct part *part, bool singly)
{
	static const size_t groups[] = {8, 2, 7}, batches[] = {9, 33, 64};
	const size_t n_paths = singly ? 0 : is_short_run() ? 1 : 3;
	const bool with_bad =
	    part->op == VECTOR_ENCAPS || (part->op == VECTOR_DECAPS && part->good);

	if (part->n == 0)
		return;
	path_run(part, 1, false);
	for (size_t i = 0; i < n_paths; i++)
		path_run(part, groups[i], false);
	for (size_t i = 0; i < n_paths; i++)
		path_run(part, batches[i], with_bad);
}

static size_t
list_run(const struct vector_list *list, bool singly, bool quiet)
{
	struct prepared *cases = vectors_alloc(list->n * sizeof(*cases));
	size_t n_wrong = 0;

	for (int op = 0; op < 3; op++) {
		for (int alg = 0; alg < KEM_N_ALGS; alg++) {
			struct part part = {.op = (enum vector_op)op,
			    .alg = (enum kem_alg)alg,
			    .cases = cases,
			    .path = quiet ? NULL : list->path};

			for (size_t i = 0; i < list->n; i++) {
				const struct vector *v = &list->vectors[i];
				struct prepared *p = &cases[part.n];

				if (v->op != part.op || v->alg != part.alg)
					continue;
				prepare(p, v);
				if (!p->runs) {
					if (p->status != v->status)
						count_wrong(&part, v, 0, 0);
					continue;
				}
				if (!part.good && v->status == KEM_OK)
					part.good = p;
				part.n++;
			}
			part_run(&part, singly);
			n_wrong += part.n_wrong;
		}
	}
	return n_wrong;
}

size_t
vectors_run(const struct vector_list *list)
{
	return list_run(list, false, false);
}

/* Spoils the which-th thing that is expected of a case; false if there are not so many. */
static bool
vector_spoil(struct vector *v, unsigned which, struct bytes *spoiled)
{
	struct bytes *fields[3];
	unsigned n = 0;

	if (which == 0) {
		v->status = v->status == KEM_OK ? KEM_E_SHARE : KEM_OK;
		return true;
	}
	if (v->op == VECTOR_KEYGEN) {
		fields[n++] = &v->share;
		fields[n++] = &v->dk;
	} else if (v->status == KEM_OK) {
		fields[n++] = &v->shared;
		if (v->op == VECTOR_ENCAPS)
			fields[n++] = &v->ct;
	}
	if (which > n || !fields[which - 1]->p)
		return false;
	*spoiled = bytes_new(fields[which - 1]->p, fields[which - 1]->len);
	spoiled->p[(v->id * 31u) % spoiled->len] ^= (uint8_t)(1u << v->id % 8);
	*fields[which - 1] = *spoiled;
	return true;
}

void
vectors_check(const struct vector_list *list)
{
	struct vector_list control = *list;
	struct bytes spoiled;
	size_t n_controls = 0;

	ck_assert_uint_eq(vectors_run(list), 0);
	for (unsigned which = 0; which < 3; which++) {
		control.vectors = vectors_alloc(list->n * sizeof(struct vector));
		control.n = 0;
		for (size_t i = 0; i < list->n; i++) {
			struct vector v = list->vectors[i];

			if (vector_spoil(&v, which, &spoiled))
				control.vectors[control.n++] = v;
		}
		n_controls += control.n;
		ck_assert_uint_eq(list_run(&control, true, true), control.n);
	}
	ck_assert_uint_ge(n_controls, list->n);
}
