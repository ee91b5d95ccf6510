/* SPDX-License-Identifier: Apache-2.0 */
#include "grouptest.h"

#include <check.h>
#include <string.h>

#include "tests/kem/kemtest.h"

const enum kem_alg group_sets[3] = {
    KEM_ALG_MLKEM512, KEM_ALG_MLKEM768, KEM_ALG_MLKEM1024};

_Alignas(64) uint8_t group_work[MLKEM_WORK_BYTES];

void
group_reset(struct group_of *g, enum kem_alg set, size_t n, const char *label)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed() + (uint64_t)set, label);
	memset(g, 0xc5, sizeof *g);
	g->set = set;
	g->n = n;
	for (size_t i = 0; i < n; i++) {
		struct pair *p = &g->pair[i];
		uint8_t *h = p->secret + kem_alg_info(set)->secret_bytes - 64;

		test_stream_fill(&stream, p->d, 96); /* d, z and m */
		g->keygen[i] = (struct mlkem_keygen_item){p->d, p->z, p->ek, p->secret};
		g->encaps[i] = (struct mlkem_encaps_item){
		    .ek = p->ek, .m = p->m, .ct = p->ct, .shared = p->made};
		g->decaps[i] = (struct mlkem_decaps_item){.s = p->secret,
		    .ek = p->ek,
		    .h = h,
		    .z = h + 32,
		    .trusted = i & 1,
		    .ct = p->ct,
		    .shared = p->found};
	}
}

void
group_canaries(const struct group_of *g)
{
	const struct kem_alg_info *info = kem_alg_info(g->set);

	for (size_t i = 0; i < g->n; i++) {
		const struct pair *p = &g->pair[i];

		ck_assert_uint_eq(p->ek[info->share_bytes], 0xc5);
		ck_assert_uint_eq(p->secret[info->secret_bytes], 0xc5);
		ck_assert_uint_eq(p->ct[info->ct_bytes], 0xc5);
		ck_assert_uint_eq(p->made[32], 0xc5);
		ck_assert_uint_eq(p->found[32], 0xc5);
	}
}

void
group_run(struct group_of *g, const struct backend *backend)
{
	mlkem_keygen(backend, g->set, g->keygen, g->n, group_work);
	mlkem_encaps(backend, g->set, g->encaps, g->n, group_work);
	mlkem_decaps(backend, g->set, g->decaps, g->n, group_work);
	group_canaries(g);
}

void
group_run_singly(struct group_of *g, const struct backend *backend)
{
	for (size_t i = 0; i < g->n; i++) {
		mlkem_keygen(backend, g->set, &g->keygen[i], 1, group_work);
		mlkem_encaps(backend, g->set, &g->encaps[i], 1, group_work);
		mlkem_decaps(backend, g->set, &g->decaps[i], 1, group_work);
	}
}
