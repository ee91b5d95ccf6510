/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "kpke.h"

#include <assert.h>
#include <string.h>

#include "ct.h"
#include "fault.h"

#define ROUND64(n) (((n) + 63) / 64 * 64)

_Static_assert(SAMPLE_ITEMS_MAX == KEM_GROUP_MAX, "one group");
_Static_assert(
    ROUND64(sizeof(struct group)) +
	    (4 * MATRIX_POLYS_MAX + KEM_GROUP_MAX + 2) * sizeof(struct poly) <=
	MLKEM_WORK_BYTES,
    "the largest group fits into work");

/*
 * Arrays are as long as this group needs, one behind the other: a lone item works in,
 * and has wiped, a fourth of what eight need.
 */
struct group *
group_init(
    uint8_t *work, const struct backend *backend, const struct mlkem_set *set, size_t n)
{
	struct group *group = (struct group *)work;
	struct poly *p = (struct poly *)(work + ROUND64(sizeof *group));
	unsigned k = set->k;

	assert((uintptr_t)work % 64 == 0 && n <= KEM_GROUP_MAX);
	sponge_init(&group->sponge, backend);
	memset(group->item, 0, sizeof group->item);
	group->backend = backend;
	group->set = set;
	group->n = (unsigned)n;
	group->riding = NULL;
	group->s = p;
	group->e = group->s + n * k;
	group->e2 = group->e + n * k;
	group->sum = group->e2 + n;
	group->mu = group->sum + 1;
	group->ring = group->mu + 1;
	group->cache = (struct mulcache *)(group->ring + matrix_ring_size(group->n, k));
	group->used = (size_t)((uint8_t *)(group->cache + n * k) - work);
	return group;
}

/*
 * Kernels spill registers and keep states and polynomials in locals: what they left lies
 * below their caller's frame, which is ours now. No call chain of kem/ is deeper than
 * 2 KiB (tests/kem/check_residue.c), so that this covers them all; a sanitizer adds to
 * each local.
 */
#define STACK_BYTES (MLKEMD_RANGE_ASSERTS ? 16384 : 4096)

static __attribute__((noinline)) void
stack_wipe(void)
{
	uint8_t below[STACK_BYTES];

	ct_wipe(below, sizeof below);
}

/* Padding lanes and all (FIPS 203 3.3): what was not written is not wiped either. */
void
group_fini(struct group *group)
{
	if (!fault("kem-no-wipe-work"))
		ct_wipe(group, group->used);
	if (!fault("kem-no-wipe-stack"))
		stack_wipe();
}

void
kpke_expand(struct group *group, bool new_key)
{
	struct matrix *matrix = &group->matrix;
	unsigned k = group->set->k;

	matrix_init(matrix, group->backend, group->n, k, !new_key, group->ring);
	for (unsigned i = 0; i < group->n; i++) {
		struct group_item *item = &group->item[i];

		matrix->rho[i] = new_key ? item->seed : item->ek + POLY_BYTES * k;
	}
	sponge_add_last(&group->sponge, &matrix->job);
}

/* Noise from sigma or r, before all that waits; its blocks are few. */
static void
kpke_noise(struct group *group, unsigned eta_second, struct poly *last)
{
	struct noise *noise = &group->noise;

	noise->backend = group->backend;
	for (unsigned i = 0; i < group->n; i++)
		noise->seed[i] = group->item[i].seed + 32;
	noise->first = group->s;
	noise->second = group->e;
	noise->last = last;
	noise->n = group->n;
	noise->k = group->set->k;
	noise->eta_first = group->set->eta1;
	noise->eta_second = eta_second;
	noise_init(noise);
	sponge_add_first(&group->sponge, &noise->job);
	noise_wait(noise, &group->sponge);
}

/* s or y into the NTT domain, with its cache. */
static void
kpke_transform(struct group *group, unsigned i)
{
	unsigned k = group->set->k;
	struct poly *s = group->s + i * k;

	for (unsigned j = 0; j < k; j++)
		poly_ntt(group->backend, &s[j]);
	polyvec_mulcache(group->backend, group->cache + i * k, s, k);
}

void
kpke_keygen(struct group *group)
{
	const struct backend *backend = group->backend;
	unsigned k = group->set->k;

	kpke_expand(group, true);
	group->ek_missing = POLY_BYTES * k + 32;
	kpke_noise(group, group->set->eta1, NULL);
	for (unsigned i = 0; i < group->n; i++) {
		struct group_item *item = &group->item[i];

		kpke_transform(group, i);
		polyvec_encode(backend, item->secret_out, group->s + i * k, k);
		memcpy(item->ek_out + POLY_BYTES * k, item->seed, 32);
	}
	for (unsigned row = 0; row < k; row++) {
		matrix_wait(&group->matrix, &group->sponge);
		for (unsigned i = 0; i < group->n; i++) {
			struct poly *e = &group->e[i * k + row];
			uint8_t *out = group->item[i].ek_out + POLY_BYTES * row;

			poly_ntt(backend, e);
			polyvec_basemul(backend, group->sum,
			    matrix_next(&group->matrix), group->s + i * k,
			    group->cache + i * k, k);
			poly_tomont(backend, group->sum);
			poly_add(backend, group->sum, e);
			polyvec_encode(backend, out, group->sum, 1);
		}
		group->ek_missing -= POLY_BYTES;
		if (row == 0 && group->riding != NULL)
			sponge_add_first(&group->sponge, group->riding);
	}
	group->ek_missing = 0;
}

/* One polynomial of the ciphertext: out, or only compared (Alg. 18 line 8). */
static void
kpke_put(struct group *group, struct group_item *item, size_t offset, enum compress d)
{
	const struct backend *backend = group->backend;

	if (item->ct_out != NULL) {
		backend->compress[d](item->ct_out + offset, group->sum->c);
		return;
	}
	/* What nobody may do: stop at the first difference. */
	if (fault("kem-early-compare") && item->differs != 0)
		return;
	backend->compress[d](group->packed, group->sum->c);
	item->differs |=
	    backend->compare(group->packed, item->ct + offset, compress_bytes(d));
}

/* v = NTT^-1(t^ y^) + e2 + Decompress_1(m). in sum: < 8q + 2 + (q + 1) / 2 */
static void
kpke_put_v(struct group *group, unsigned i)
{
	const struct backend *backend = group->backend;
	const struct mlkem_set *set = group->set;
	struct group_item *item = &group->item[i];
	unsigned k = set->k;

	polyvec_decode(backend, group->ring, item->ek, k);
	polyvec_basemul(backend, group->sum, group->ring, group->s + i * k,
	    group->cache + i * k, k);
	poly_invntt(backend, group->sum);
	polyvec_decompress(backend, group->mu, COMPRESS_1, item->m, 1);
	poly_add(backend, group->mu, &group->e2[i]);
	poly_add(backend, group->sum, group->mu);
	kpke_put(group, item, compress_bytes(set->du) * k, set->dv);
}

void
kpke_encrypt(struct group *group)
{
	const struct backend *backend = group->backend;
	const struct mlkem_set *set = group->set;
	unsigned k = set->k;

	kpke_noise(group, 2, group->e2);
	for (unsigned i = 0; i < group->n; i++)
		kpke_transform(group, i);
	for (unsigned row = 0; row < k; row++) {
		matrix_wait(&group->matrix, &group->sponge);
		for (unsigned i = 0; i < group->n; i++) {
			polyvec_basemul(backend, group->sum,
			    matrix_next(&group->matrix), group->s + i * k,
			    group->cache + i * k, k);
			poly_invntt(backend, group->sum);
			poly_add(backend, group->sum, &group->e[i * k + row]);
			kpke_put(group, &group->item[i], compress_bytes(set->du) * row,
			    set->du);
		}
	}
	for (unsigned i = 0; i < group->n; i++)
		kpke_put_v(group, i);
}

void
kpke_decrypt(struct group *group)
{
	const struct backend *backend = group->backend;
	const struct mlkem_set *set = group->set;
	unsigned k = set->k;

	for (unsigned i = 0; i < group->n; i++) {
		struct group_item *item = &group->item[i];
		const uint8_t *c2 = item->ct + compress_bytes(set->du) * k;

		polyvec_decompress(backend, group->s + i * k, set->du, item->ct, k);
		kpke_transform(group, i);
		polyvec_decode(backend, group->ring, item->s, k);
		polyvec_basemul(backend, group->sum, group->ring, group->s + i * k,
		    group->cache + i * k, k);
		poly_invntt(backend, group->sum);
		polyvec_decompress(backend, group->mu, set->dv, c2, 1);
		poly_rsub(backend, group->sum, group->mu);
		backend->compress[COMPRESS_1](item->message, group->sum->c);
	}
}
