/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "kem/internal.h"
#include "rig.h"
#include "tests/kem/generic8.h"

#define POOL 16u

static struct rig rig;

static void
setup(void)
{
	rig_open(&rig, POOL);
}

static void
setup_eight_lanes(void)
{
	struct kem *kem = NULL;

	ck_assert_int_eq(kem_open_with(&kem, &backend_generic8), 0);
	rig_open_kem(&rig, POOL, kem);
}

static void
teardown(void)
{
	rig_close(&rig);
}

struct taken {
	uint8_t share[KEM_SHARE_MAX], secret[KEM_SECRET_MAX];
};

static bool
take(enum keypool_kind kind, struct taken *taken)
{
	struct kem_x25519 pair;

	if (kind != KEYPOOL_X25519)
		return keypool_take_pair(rig.pool, kind, taken->share, taken->secret);
	if (!keypool_take_x25519(rig.pool, &pair))
		return false;
	memcpy(taken->share, pair.public_key, 32);
	memcpy(taken->secret, pair.private_key, 32);
	return true;
}

/* A stretch of each kind's secret that no other entry has. */
static const uint8_t *
mark(const struct taken *taken)
{
	return taken->secret;
}

START_TEST(it_fills_to_the_top_and_then_rests)
{
	unsigned n = 0;

	ck_assert(keypool_wants_fill(rig.pool));
	while (keypool_wants_fill(rig.pool)) {
		ck_assert_int_eq(keypool_fill_group(rig.pool, 0), 0);
		n++;
	}
	/* One lane: a key a group. */
	ck_assert_uint_eq(n, 3 * POOL);
	for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++)
		ck_assert_uint_eq(keypool_level(rig.pool, kind), POOL);
	ck_assert_uint_eq(rig.metrics.pool_hybrid, POOL);
	ck_assert_uint_eq(rig.metrics.pool_mlkem768, POOL);
	ck_assert_uint_eq(rig.metrics.pool_x25519, POOL);
	ck_assert_uint_eq(rig.metrics.pool_made_total, 3 * POOL);
	ck_assert_int_eq(keypool_fill_group(rig.pool, 0), 0);
	ck_assert_uint_eq(rig.metrics.pool_made_total, 3 * POOL);
}
END_TEST

START_TEST(the_emptiest_is_filled_first)
{
	for (unsigned i = 1; i <= POOL; i++) {
		for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++)
			ck_assert_int_eq(keypool_fill_group(rig.pool, 0), 0);
		for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++)
			ck_assert_uint_eq(keypool_level(rig.pool, kind), i);
	}
}
END_TEST

START_TEST(filling_begins_below_low_water_and_goes_to_the_top)
{
	struct taken taken;

	rig_fill(&rig);
	for (unsigned i = 0; i < POOL / 2; i++) {
		ck_assert(take(KEYPOOL_HYBRID, &taken));
		ck_assert(!keypool_wants_fill(rig.pool));
	}
	ck_assert(take(KEYPOOL_HYBRID, &taken));
	ck_assert(keypool_wants_fill(rig.pool));
	for (unsigned i = POOL / 2 - 1; i < POOL; i++) {
		ck_assert(keypool_wants_fill(rig.pool));
		ck_assert_int_eq(keypool_fill_group(rig.pool, 0), 0);
	}
	ck_assert(!keypool_wants_fill(rig.pool));
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_HYBRID), POOL);
}
END_TEST

START_TEST(an_empty_ring_is_filled_even_with_no_low_water)
{
	rig.config.pool.low_percent = 0;
	keypool_set_limits(rig.pool, &rig.config.pool);
	ck_assert(keypool_wants_fill(rig.pool));
	rig_fill(&rig);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_X25519), POOL);
}
END_TEST

/* More than once around the ring: nothing comes twice, and what is gone is wiped. */
START_TEST(each_entry_leaves_once_and_is_wiped)
{
	static struct taken taken[4 * POOL];
	unsigned n = 0;

	while (n < 4 * POOL) {
		rig_fill(&rig);
		for (unsigned i = 0; i < 11 && n < 4 * POOL; i++, n++) {
			ck_assert(take(_i, &taken[n]));
			ck_assert(!rig_in_arena(&rig, mark(&taken[n]), 32));
			for (unsigned j = 0; j < n; j++) {
				ck_assert_mem_ne(taken[n].share, taken[j].share, 32);
				ck_assert_mem_ne(taken[n].secret, taken[j].secret, 32);
			}
		}
	}
	ck_assert_uint_eq(rig.metrics.pool_taken_total, 4 * POOL);
	ck_assert_uint_eq(rig.metrics.pool_missed_total, 0);
}
END_TEST

START_TEST(a_missing_wipe_is_seen)
{
	struct taken taken;

	if (!rig_hooks())
		return;
	rig_fill(&rig);
	rig_fault("keypool-no-wipe");
	ck_assert(take(_i, &taken));
	ck_assert(rig_in_arena(&rig, mark(&taken), 32));
}
END_TEST

START_TEST(an_empty_pool_misses)
{
	struct taken taken;

	ck_assert(!take(_i, &taken));
	ck_assert_uint_eq(rig.metrics.pool_missed_total, 1);
	rig_fill(&rig);
	for (unsigned i = 0; i < POOL; i++)
		ck_assert(take(_i, &taken));
	ck_assert(!take(_i, &taken));
	ck_assert_uint_eq(rig.metrics.pool_missed_total, 2);
	ck_assert_uint_eq(keypool_level(rig.pool, _i), 0);
}
END_TEST

START_TEST(pairs_from_the_pool_agree_with_themselves)
{
	static const enum kem_alg algs[] = {KEM_ALG_X25519MLKEM768, KEM_ALG_MLKEM768};

	rig_fill(&rig);
	for (unsigned i = 0; i < POOL; i++) {
		struct taken taken;
		struct kem_shared ours, theirs;
		uint8_t ct[KEM_CT_MAX];
		struct kem_private key;
		struct kem_decaps_item item = {
		    .key = &key, .ct = ct, .shared = &theirs};

		ck_assert(take(_i, &taken));
		rig_encaps(&rig, algs[_i], taken.share, ct, &ours);
		kem_private_from_parts(&key, algs[_i], taken.secret, taken.share);
		item.ct_len = kem_alg_info(algs[_i])->ct_bytes;
		ck_assert_int_eq(
		    kem_decaps(rig.kem, algs[_i], &item, 1, rig.scratch), 0);
		ck_assert_mem_eq(&ours, &theirs, sizeof(ours));
	}
}
END_TEST

/* An ephemeral whose halves did not belong together would give two secrets. */
START_TEST(ephemerals_from_the_pool_work)
{
	struct rig_pair pair;
	struct kem_private key;

	rig_fill(&rig);
	rig_pair_make(&rig, KEM_ALG_X25519MLKEM768, &pair);
	kem_private_from_parts(&key, KEM_ALG_X25519MLKEM768, pair.secret, pair.share);
	for (unsigned i = 0; i < POOL; i++) {
		struct kem_x25519 ephemeral;
		struct kem_shared ours, theirs;
		uint8_t ct[1120];
		struct kem_encaps_item encaps = {.share = pair.share,
		    .share_len = 1216,
		    .ephemeral = &ephemeral,
		    .ct = ct,
		    .shared = &ours};
		struct kem_decaps_item decaps = {
		    .key = &key, .ct = ct, .ct_len = sizeof(ct), .shared = &theirs};

		ck_assert(keypool_take_x25519(rig.pool, &ephemeral));
		ck_assert_int_eq(kem_encaps(rig.kem, KEM_ALG_X25519MLKEM768, &encaps, 1,
				     rig.scratch),
		    0);
		ck_assert_mem_eq(ct + 1088, ephemeral.public_key, 32);
		ck_assert_int_eq(kem_decaps(rig.kem, KEM_ALG_X25519MLKEM768, &decaps, 1,
				     rig.scratch),
		    0);
		ck_assert_mem_eq(&ours, &theirs, sizeof(ours));
	}
}
END_TEST

START_TEST(the_oldest_are_wiped_at_the_age_limit)
{
	const uint64_t age_us = 30000000;
	unsigned n = 0;

	while (keypool_wants_fill(rig.pool))
		ck_assert_int_eq(keypool_fill_group(rig.pool, 1000 + n++ / 3), 0);
	keypool_expire(rig.pool, 1000 + age_us);
	ck_assert_uint_eq(rig.metrics.pool_expired_total, 0);
	keypool_expire(rig.pool, 1000 + age_us + 1);
	ck_assert_uint_eq(rig.metrics.pool_expired_total, 3);
	for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++)
		ck_assert_uint_eq(keypool_level(rig.pool, kind), POOL - 1);
	keypool_expire(rig.pool, 1000 + age_us + POOL);
	ck_assert_uint_eq(rig.metrics.pool_expired_total, 3 * POOL);
	ck_assert_uint_eq(rig.metrics.pool_x25519, 0);
	ck_assert(keypool_wants_fill(rig.pool));
	/* A clock that was read before an entry was made is no reason to drop it. */
	ck_assert_int_eq(keypool_fill_group(rig.pool, 5000), 0);
	keypool_expire(rig.pool, 4000);
	ck_assert_uint_eq(rig.metrics.pool_expired_total, 3 * POOL);
}
END_TEST

static bool
arena_pool_is_zero(void)
{
	const uint8_t *pool =
	    rig.secmem.base + sizeof(struct kem_scratch) + CODEC_MEM_BYTES;

	for (size_t i = 0; i < keypool_arena_bytes(&rig.config.pool); i++)
		if (pool[i] != 0)
			return false;
	return true;
}

START_TEST(a_flush_leaves_nothing)
{
	ck_assert(arena_pool_is_zero());
	rig_fill(&rig);
	ck_assert(!arena_pool_is_zero());
	keypool_flush(rig.pool);
	ck_assert(arena_pool_is_zero());
	ck_assert_uint_eq(rig.metrics.pool_hybrid, 0);
	ck_assert(keypool_wants_fill(rig.pool));
	rig_fill(&rig);
	ck_assert_uint_eq(rig.metrics.pool_hybrid, POOL);
}
END_TEST

START_TEST(new_limits_drop_what_is_over_and_are_clipped)
{
	struct keypool_limits limits = {
	    .high = {4, 0, 1000}, .low_percent = 50, .max_age_ms = 30000};

	rig_fill(&rig);
	keypool_set_limits(rig.pool, &limits);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_HYBRID), 4);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_MLKEM768), 0);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_X25519), POOL);
	ck_assert(!keypool_wants_fill(rig.pool));
	keypool_flush(rig.pool);
	rig_fill(&rig);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_HYBRID), 4);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_MLKEM768), 0);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_X25519), POOL);
}
END_TEST

START_TEST(a_kind_that_is_off_is_no_miss)
{
	struct keypool_limits off = {.max_age_ms = 30000};
	struct taken taken;

	keypool_set_limits(rig.pool, &off);
	ck_assert(!keypool_wants_fill(rig.pool));
	ck_assert(!take(KEYPOOL_HYBRID, &taken));
	ck_assert(!take(KEYPOOL_X25519, &taken));
	ck_assert_uint_eq(rig.metrics.pool_missed_total, 0);
}
END_TEST

START_TEST(no_randomness_no_entry)
{
	if (!rig_hooks())
		return;
	rig_fault("rng-fail");
	for (int i = 0; i < 3; i++)
		ck_assert_int_lt(keypool_fill_group(rig.pool, 0), 0);
	ck_assert_uint_eq(rig.metrics.pool_made_total, 0);
	ck_assert(arena_pool_is_zero());
}
END_TEST

START_TEST(a_pair_that_fails_its_check_never_enters)
{
	if (!rig_hooks())
		return;
	keypool_set_pairwise_check(rig.pool, true);
	rig_fault("keypool-corrupt-pair");
	ck_assert_int_eq(keypool_fill_group(rig.pool, 0), KEM_FAIL_SELFTEST);
	ck_assert_uint_eq(rig.metrics.pool_made_total, 0);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_HYBRID), 0);
	ck_assert(arena_pool_is_zero());
}
END_TEST

/* The controls: it is the check that refuses it, and good pairs pass the check. */
START_TEST(without_the_check_a_bad_pair_enters_and_with_it_a_good_one)
{
	if (rig_hooks()) {
		rig_fault("keypool-corrupt-pair");
		ck_assert_int_eq(keypool_fill_group(rig.pool, 0), 0);
		ck_assert_uint_eq(rig.metrics.pool_made_total, 1);
		rig_fault(NULL);
	}
	keypool_set_pairwise_check(rig.pool, true);
	rig_fill(&rig);
	ck_assert_uint_eq(rig.metrics.pool_made_total, 3 * POOL);
}
END_TEST

/* As many keys a group as there are lanes; around the end of the ring; never too many. */
START_TEST(eight_lanes_make_eight_keys_a_group)
{
	static struct taken taken[3 * POOL];
	unsigned n = 0;

	keypool_set_pairwise_check(rig.pool, true);
	for (unsigned i = 1; i <= 3 * POOL / 8; i++) {
		ck_assert_int_eq(keypool_fill_group(rig.pool, 0), 0);
		ck_assert_uint_eq(rig.metrics.pool_made_total, 8 * i);
	}
	ck_assert(!keypool_wants_fill(rig.pool));
	while (n < 3 * POOL) {
		for (unsigned i = 0; i < 11 && n < 3 * POOL; i++, n++) {
			ck_assert(take(_i, &taken[n]));
			ck_assert(!rig_in_arena(&rig, mark(&taken[n]), 32));
			for (unsigned j = 0; j < n; j++)
				ck_assert_mem_ne(taken[n].share, taken[j].share, 32);
		}
		rig_fill(&rig);
		ck_assert_uint_ge(keypool_level(rig.pool, _i), POOL / 2);
		ck_assert_uint_le(keypool_level(rig.pool, _i), POOL);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("keypool");
	TCase *tc = tcase_create("keypool");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, it_fills_to_the_top_and_then_rests);
	tcase_add_test(tc, the_emptiest_is_filled_first);
	tcase_add_test(tc, filling_begins_below_low_water_and_goes_to_the_top);
	tcase_add_test(tc, an_empty_ring_is_filled_even_with_no_low_water);
	tcase_add_loop_test(
	    tc, each_entry_leaves_once_and_is_wiped, 0, KEYPOOL_N_KINDS);
	tcase_add_loop_test(tc, a_missing_wipe_is_seen, 0, KEYPOOL_N_KINDS);
	tcase_add_loop_test(tc, an_empty_pool_misses, 0, KEYPOOL_N_KINDS);
	tcase_add_loop_test(tc, pairs_from_the_pool_agree_with_themselves, 0, 2);
	tcase_add_test(tc, ephemerals_from_the_pool_work);
	tcase_add_test(tc, the_oldest_are_wiped_at_the_age_limit);
	tcase_add_test(tc, a_flush_leaves_nothing);
	tcase_add_test(tc, new_limits_drop_what_is_over_and_are_clipped);
	tcase_add_test(tc, a_kind_that_is_off_is_no_miss);
	tcase_add_test(tc, no_randomness_no_entry);
	tcase_add_test(tc, a_pair_that_fails_its_check_never_enters);
	tcase_add_test(tc, without_the_check_a_bad_pair_enters_and_with_it_a_good_one);
	suite_add_tcase(suite, tc);

	tc = tcase_create("eight lanes");
	tcase_add_checked_fixture(tc, setup_eight_lanes, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(
	    tc, eight_lanes_make_eight_keys_a_group, 0, KEYPOOL_N_KINDS);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
