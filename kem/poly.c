/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "poly.h"

#include <assert.h>
#include <stdbool.h>

#define Q           MLKEM_Q
#define PRODUCT_MAX ((1 << 14) - 1) /* of basemul */

/* A branch on secrets, so never in a build that anybody uses. */
static void
poly_range(const struct poly *p, int min, int max)
{
	if (!MLKEMD_RANGE_ASSERTS)
		return;
	for (unsigned i = 0; i < MLKEM_N; i++)
		assert(p->c[i] >= min && p->c[i] <= max);
}

void
poly_ntt(const struct backend *backend, struct poly *p)
{
	poly_range(p, -Q, Q);
	backend->ntt(p->c);
	poly_range(p, -8 * Q + 1, 8 * Q - 1);
}

void
poly_invntt(const struct backend *backend, struct poly *p)
{
	poly_range(p, -PRODUCT_MAX, PRODUCT_MAX);
	backend->invntt(p->c);
	poly_range(p, -8 * Q + 1, 8 * Q - 1);
}

void
polyvec_mulcache(const struct backend *backend, struct mulcache *cache,
    const struct poly *b, unsigned k)
{
	for (unsigned j = 0; j < k; j++) {
		poly_range(&b[j], -8 * Q + 1, 8 * Q - 1);
		backend->mulcache(cache[j].c, b[j].c);
	}
}

void
polyvec_basemul(const struct backend *backend, struct poly *r, const struct poly *a,
    const struct poly *b, const struct mulcache *cache, unsigned k)
{
	for (unsigned j = 0; j < k; j++) {
		poly_range(&a[j], 0, 4095);
		poly_range(&b[j], -8 * Q + 1, 8 * Q - 1);
	}
	backend->basemul(r->c, a->c, b->c, cache->c, k);
	poly_range(r, -PRODUCT_MAX, PRODUCT_MAX);
}

void
poly_tomont(const struct backend *backend, struct poly *p)
{
	poly_range(p, -PRODUCT_MAX, PRODUCT_MAX);
	backend->tomont(p->c);
	poly_range(p, -Q, Q);
}

void
poly_add(const struct backend *backend, struct poly *r, const struct poly *a)
{
	poly_range(r, -8 * Q, 8 * Q);
	poly_range(a, -8 * Q, 8 * Q);
	backend->add(r->c, a->c);
	poly_range(r, -9 * Q, 9 * Q);
}

void
poly_rsub(const struct backend *backend, struct poly *r, const struct poly *a)
{
	poly_range(r, -8 * Q, 8 * Q);
	poly_range(a, 0, Q);
	backend->rsub(r->c, a->c);
}
