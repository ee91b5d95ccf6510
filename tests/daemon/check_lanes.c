/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c and keypool.c: lanes of X25519 that a group leaves fill the pool. */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "rig.h"
#include "tests/kem/kemtest.h"

#define POOL   16u
#define HYBRID KEM_ALG_X25519MLKEM768

static struct rig rig;
static struct rig_pair pair;

static void
setup(void)
{
	struct kem *kem = NULL;

	ck_assert_int_eq(kem_open(&kem, "avx512"), 0);
	rig_open_kem(&rig, POOL, kem);
	rig.batch.pool = rig.pool;
	rig_pair_make(&rig, HYBRID, &pair);
}

static void
teardown(void)
{
	rig_close(&rig);
}

/* An encapsulation of n items, worked; its first ciphertext and secret. */
static void
encaps(enum kem_alg alg, uint32_t n, uint8_t *ct, struct kem_shared *shared)
{
	struct request *req = rig_request(&rig, REQUEST_ENCAPS, alg, n);

	for (uint32_t i = 0; i < n; i++) {
		struct request_item *item = &req->items[i];

		rig_bytes(&item->share, pair.share, kem_alg_info(alg)->share_bytes);
		item->out_ciphertext = mem_alloc(&rig.mem, KEM_CT_MAX);
		item->shared = mem_alloc(&rig.mem, sizeof(*item->shared));
		item->out_secret = item->shared->bytes;
		batch_add(&rig.batch, item);
	}
	ck_assert_int_eq(batch_run(&rig.batch), 0);
	for (uint32_t i = 0; i < n; i++)
		ck_assert_int_eq(req->items[i].status, STATUS_OK);
	memcpy(ct, req->items[0].out_ciphertext, kem_alg_info(alg)->ct_bytes);
	*shared = *req->items[0].shared;
	mem_wipe(&rig.mem);
}

static void
decaps(const uint8_t *ct, struct kem_shared *shared)
{
	struct request *req = rig_request(&rig, REQUEST_DECAPS, HYBRID, 1);
	struct request_item *item = &req->items[0];

	rig_bytes(&item->ciphertext, ct, kem_alg_info(HYBRID)->ct_bytes);
	kem_private_from_parts(&item->key, HYBRID, pair.secret, pair.share);
	item->shared = mem_alloc(&rig.mem, sizeof(*item->shared));
	item->out_secret = item->shared->bytes;
	batch_add(&rig.batch, item);
	ck_assert_int_eq(batch_run(&rig.batch), 0);
	ck_assert_int_eq(item->status, STATUS_OK);
	*shared = *item->shared;
	mem_wipe(&rig.mem);
}

static void
lanes_are(uint64_t used, uint64_t refilled, uint64_t idle)
{
	ck_assert_uint_eq(rig.metrics.lanes_used_total, used);
	ck_assert_uint_eq(rig.metrics.lanes_refilled_total, refilled);
	ck_assert_uint_eq(rig.metrics.lanes_idle_total, idle);
}

static bool
is_pair(const struct kem_x25519 *x)
{
	EVP_PKEY *pkey =
	    EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, x->private_key, 32);
	uint8_t public_key[32];
	size_t len = sizeof(public_key);

	ck_assert_int_eq(EVP_PKEY_get_raw_public_key(pkey, public_key, &len), 1);
	EVP_PKEY_free(pkey);
	return memcmp(public_key, x->public_key, 32) == 0;
}

START_TEST(a_lone_item_leaves_seven_ephemerals)
{
	struct kem_shared ours, theirs;
	struct kem_x25519 taken[14];
	uint8_t ct[KEM_CT_MAX];

	encaps(HYBRID, 1, ct, &ours);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_X25519), 7);
	lanes_are(1, 7, 0);
	ck_assert_uint_eq(rig.metrics.pool_x25519, 7);
	ck_assert_uint_eq(rig.metrics.pool_made_total, 7);
	decaps(ct, &theirs);
	ck_assert_mem_eq(&ours, &theirs, sizeof(ours));
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_X25519), 14);
	lanes_are(2, 14, 0);
	for (unsigned i = 0; i < 14; i++) {
		ck_assert(keypool_take_x25519(rig.pool, &taken[i]));
		ck_assert(is_pair(&taken[i]));
		ck_assert(!rig_in_arena(&rig, taken[i].private_key, 32));
		for (unsigned j = 0; j < i; j++)
			ck_assert_mem_ne(&taken[i], &taken[j], 32);
	}
	ck_assert(!keypool_take_x25519(rig.pool, &taken[0]));
}
END_TEST

/* Around the ring, never above high water, and no lane is counted twice or not at all. */
START_TEST(the_pool_never_overflows)
{
	struct kem_shared shared;
	struct kem_x25519 taken;
	uint8_t ct[KEM_CT_MAX];
	uint64_t used = 0;

	for (uint32_t i = 0; i < 40; i++) {
		uint32_t n = i % 10 + 1, groups = (n + 7) / 8;
		uint64_t before = rig.metrics.lanes_used_total +
				  rig.metrics.lanes_refilled_total +
				  rig.metrics.lanes_idle_total;

		encaps(HYBRID, n, ct, &shared);
		used += n;
		ck_assert_uint_eq(rig.metrics.lanes_used_total, used);
		ck_assert_uint_eq(rig.metrics.lanes_used_total +
				      rig.metrics.lanes_refilled_total +
				      rig.metrics.lanes_idle_total,
		    before + 8 * groups);
		ck_assert_uint_le(keypool_level(rig.pool, KEYPOOL_X25519), POOL);
		ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_HYBRID), 0);
		if (i % 3 == 0 && keypool_take_x25519(rig.pool, &taken))
			ck_assert(is_pair(&taken));
	}
	encaps(HYBRID, 1, ct, &shared);
	encaps(HYBRID, 1, ct, &shared);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_X25519), POOL);
	ck_assert_uint_gt(rig.metrics.lanes_idle_total, 0);
}
END_TEST

START_TEST(they_idle_where_nobody_wants_them)
{
	struct kem_shared shared;
	uint8_t ct[KEM_CT_MAX];

	rig.config.pool.high[KEYPOOL_X25519] = 0;
	keypool_set_limits(rig.pool, &rig.config.pool);
	encaps(HYBRID, 1, ct, &shared);
	lanes_are(1, 0, 7);
	rig.batch.pool = NULL;
	encaps(HYBRID, 3, ct, &shared);
	lanes_are(4, 0, 12);
	ck_assert_uint_eq(rig.metrics.pool_made_total, 0);
	/* No X25519 in it, no lanes. */
	rig.batch.pool = rig.pool;
	encaps(KEM_ALG_MLKEM768, 1, ct, &shared);
	lanes_are(4, 0, 12);
}
END_TEST

START_TEST(a_missing_wipe_is_seen)
{
	struct kem_shared shared;
	struct kem_x25519 taken;
	uint8_t ct[KEM_CT_MAX];

	if (!rig_hooks())
		return;
	rig_fault("keypool-no-wipe-fresh");
	encaps(HYBRID, 1, ct, &shared);
	ck_assert(keypool_take_x25519(rig.pool, &taken));
	ck_assert(rig_in_arena(&rig, taken.private_key, 32));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("lanes");
	TCase *tc = tcase_create("lanes");
	struct kem *kem = NULL;

	if (kem_open(&kem, "avx512") != 0) {
		printf("no lanes of X25519: this CPU can't run avx512\n");
		return TEST_SKIPPED;
	}
	kem_free(kem);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_lone_item_leaves_seven_ephemerals);
	tcase_add_test(tc, the_pool_never_overflows);
	tcase_add_test(tc, they_idle_where_nobody_wants_them);
	tcase_add_test(tc, a_missing_wipe_is_seen);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
