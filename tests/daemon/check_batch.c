/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static struct rig rig;
static struct rig_pair pair;
static struct kem_shared expected[64];
static uint8_t cts[64][KEM_CT_MAX];

static void
setup(void)
{
	rig_open(&rig, 0);
}

static void
teardown(void)
{
	rig_close(&rig);
}

/* A decapsulation of n ciphertexts, made for the pair, ready for the batch. */
static struct request *
decaps_new(enum kem_alg alg, uint32_t n)
{
	struct request *req = rig_request(&rig, REQUEST_DECAPS, alg, n);
	const struct kem_alg_info *info = kem_alg_info(alg);

	for (uint32_t i = 0; i < n; i++) {
		struct request_item *item = &req->items[i];

		rig_encaps(&rig, alg, pair.share, cts[i], &expected[i]);
		rig_bytes(&item->ciphertext, cts[i], info->ct_bytes);
		ck_assert_int_eq(
		    kem_private_from_dk(&item->key, alg, pair.dk, info->dk_bytes),
		    KEM_OK);
		item->shared = mem_alloc(&rig.mem, sizeof(*item->shared));
		item->out_secret = item->shared->bytes;
	}
	return req;
}

static void
add_all(struct request *req)
{
	for (uint32_t i = 0; i < req->n_items; i++)
		batch_add(&rig.batch, &req->items[i]);
}

static void
run(unsigned n_requests)
{
	unsigned before = rig.n_done;

	ck_assert_int_eq(batch_run(&rig.batch), 0);
	ck_assert_uint_eq(rig.n_done, before + n_requests);
	ck_assert_uint_eq(rig.batch.n_items, 0);
}

static void
item_is_right(const struct request *req, uint32_t i)
{
	ck_assert_int_eq(req->items[i].status, STATUS_OK);
	ck_assert_mem_eq(
	    req->items[i].out_secret, expected[i].bytes, req->secret_bytes);
}

static void
item_gives_nothing(const struct request *req, uint32_t i)
{
	for (uint32_t j = 0; j < req->secret_bytes; j++)
		ck_assert_uint_eq(req->items[i].out_secret[j], 0);
}

static const uint32_t sizes[] = {1, 2, 7, 8, 9, 33, 64};

START_TEST(groups_have_at_most_eight_items)
{
	uint64_t groups = 0, items = 0;

	rig_pair_make(&rig, KEM_ALG_MLKEM512, &pair);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct request *req = decaps_new(KEM_ALG_MLKEM512, sizes[s]);

		add_all(req);
		ck_assert_uint_eq(rig.batch.n_items, sizes[s]);
		run(1);
		for (uint32_t i = 0; i < sizes[s]; i++)
			item_is_right(req, i);
		groups += (sizes[s] + 7) / 8;
		items += sizes[s];
		ck_assert_uint_eq(rig.metrics.groups_total, groups);
		ck_assert_uint_eq(rig.metrics.group_items_total, items);
		ck_assert_ptr_nonnull(rig.batch.groups_by_backend);
		ck_assert_uint_eq(*rig.batch.groups_by_backend, groups);
		ck_assert_uint_eq(rig.metrics.groups_generic_total +
				      rig.metrics.groups_avx2_total +
				      rig.metrics.groups_avx512_total,
		    groups);
		mem_wipe(&rig.mem);
	}
	ck_assert_uint_eq(rig.metrics.items_decaps_total, items);
	ck_assert_uint_eq(rig.metrics.items_failed_total, 0);
}
END_TEST

START_TEST(the_fill_follows_what_is_run)
{
	rig_pair_make(&rig, KEM_ALG_MLKEM512, &pair);
	ck_assert_uint_eq(rig.batch.fill_milli, 0);
	add_all(decaps_new(KEM_ALG_MLKEM512, 8));
	run(1);
	ck_assert_uint_eq(rig.batch.fill_milli, 8000);
	for (unsigned i = 0; i < 60; i++) {
		add_all(decaps_new(KEM_ALG_MLKEM512, 1));
		run(1);
		mem_wipe(&rig.mem);
	}
	ck_assert_uint_ge(rig.batch.fill_milli, 1000);
	ck_assert_uint_le(rig.batch.fill_milli, 1010);
}
END_TEST

/* A key that fails its hash check, at every position of a group and a bit more. */
START_TEST(a_bad_item_leaves_the_others_right)
{
	static uint8_t bad[KEM_DK_MAX];
	const uint32_t n = 9;

	rig_pair_make(&rig, KEM_ALG_X25519MLKEM768, &pair);
	memcpy(bad, pair.dk, sizeof(bad));
	bad[768 * 3 + 32] ^= 1; /* in H(ek) */
	for (uint32_t at = 0; at < n; at++) {
		struct request *req = decaps_new(KEM_ALG_X25519MLKEM768, n);

		ck_assert_int_eq(kem_private_from_dk(&req->items[at].key,
				     KEM_ALG_X25519MLKEM768, bad, 2432),
		    KEM_OK);
		add_all(req);
		run(1);
		for (uint32_t i = 0; i < n; i++) {
			if (i != at) {
				item_is_right(req, i);
				continue;
			}
			ck_assert_int_eq(req->items[i].status, STATUS_BAD_KEY);
			ck_assert_ptr_nonnull(req->items[i].message);
			item_gives_nothing(req, i);
		}
		mem_wipe(&rig.mem);
	}
	ck_assert_uint_eq(rig.metrics.items_failed_total, n);
	ck_assert_uint_eq(rig.metrics.items_decaps_total, n * (n - 1));
}
END_TEST

/* A rejected ciphertext is an answer like any other: no status, text or counter. */
START_TEST(a_rejection_leaves_no_trace)
{
	struct metrics_shard before;
	struct request *good, *bad;

	rig_pair_make(&rig, KEM_ALG_MLKEM768, &pair);
	good = decaps_new(KEM_ALG_MLKEM768, 1);
	add_all(good);
	run(1);
	before = rig.metrics;
	bad = decaps_new(KEM_ALG_MLKEM768, 1);
	cts[0][5] ^= 1;
	add_all(bad);
	run(1);
	ck_assert_int_eq(bad->items[0].status, STATUS_OK);
	ck_assert_ptr_null(bad->items[0].message);
	ck_assert_int_eq(bad->status, good->status);
	ck_assert_mem_ne(bad->items[0].out_secret, expected[0].bytes, 32);
#define SAME(field, name, help)                              \
 if (&rig.metrics.field != &rig.metrics.groups_total &&      \
     &rig.metrics.field != rig.batch.groups_by_backend &&    \
     &rig.metrics.field != &rig.metrics.group_items_total && \
     &rig.metrics.field != &rig.metrics.items_decaps_total)  \
  ck_assert_uint_eq(rig.metrics.field, before.field);
	METRICS_FIELDS(SAME)
#undef SAME
	ck_assert_uint_eq(rig.metrics.items_decaps_total, 2);
}
END_TEST

START_TEST(requests_of_all_kinds_share_a_run)
{
	struct request *decaps[KEM_N_ALGS], *keygen[KEM_N_ALGS];

	for (enum kem_alg alg = 0; alg < KEM_N_ALGS; alg++) {
		rig_pair_make(&rig, alg, &pair);
		decaps[alg] = decaps_new(alg, 3);
		for (uint32_t i = 0; i < 3; i++) {
			struct request_item *item = &decaps[alg]->items[i];
			const struct kem_alg_info *info = kem_alg_info(alg);
			uint8_t *dk = mem_alloc(&rig.mem, info->dk_bytes),
				*ct = mem_alloc(&rig.mem, info->ct_bytes),
				*shared = mem_alloc(&rig.mem, 64);

			memcpy(dk, pair.dk, info->dk_bytes);
			memcpy(ct, cts[i], info->ct_bytes);
			memcpy(shared, expected[i].bytes, 64);
			ck_assert_int_eq(
			    kem_private_from_dk(&item->key, alg, dk, info->dk_bytes),
			    KEM_OK);
			rig_bytes(&item->ciphertext, ct, info->ct_bytes);
			rig_bytes(&item->share, shared, 64); /* kept for below */
		}
		keygen[alg] = rig_request(&rig, REQUEST_KEYGEN, alg, 2);
		for (uint32_t i = 0; i < 2; i++) {
			keygen[alg]->items[i].out_share =
			    mem_alloc(&rig.mem, KEM_SHARE_MAX);
			keygen[alg]->items[i].secret =
			    mem_alloc(&rig.mem, KEM_SECRET_MAX);
		}
	}
	for (uint32_t i = 0; i < 3; i++) {
		for (int alg = 0; alg < KEM_N_ALGS; alg++) {
			batch_add(&rig.batch, &decaps[alg]->items[i]);
			if (i < 2)
				batch_add(&rig.batch, &keygen[alg]->items[i]);
		}
	}
	run(2 * KEM_N_ALGS);
	ck_assert_uint_eq(rig.metrics.groups_total, 2 * KEM_N_ALGS);
	for (int alg = 0; alg < KEM_N_ALGS; alg++) {
		for (uint32_t i = 0; i < 3; i++)
			ck_assert_mem_eq(decaps[alg]->items[i].out_secret,
			    decaps[alg]->items[i].share.data,
			    decaps[alg]->secret_bytes);
		ck_assert_mem_ne(keygen[alg]->items[0].out_share,
		    keygen[alg]->items[1].out_share, 32);
	}
}
END_TEST

START_TEST(what_is_late_is_not_computed)
{
	struct request *late, *good;

	rig_pair_make(&rig, KEM_ALG_MLKEM512, &pair);
	late = decaps_new(KEM_ALG_MLKEM512, 3);
	late->deadline_us = request_now_us();
	good = decaps_new(KEM_ALG_MLKEM512, 2);
	add_all(late);
	add_all(good);
	run(2);
	ck_assert_uint_eq(rig.metrics.group_items_total, 2);
	ck_assert_uint_eq(rig.metrics.deadline_total, 3);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(late->items[i].status, STATUS_DEADLINE_EXCEEDED);
		item_gives_nothing(late, i);
	}
	item_is_right(good, 0);
	item_is_right(good, 1);
}
END_TEST

/*
 * Its time is over while the group is worked: what was computed is not given out. The
 * deadline lies inside the work of eight decapsulations, which take far longer.
 */
START_TEST(what_gets_late_meanwhile_is_not_given_out)
{
	struct request *req, *other;

	rig_pair_make(&rig, KEM_ALG_MLKEM1024, &pair);
	req = decaps_new(KEM_ALG_MLKEM1024, 1);
	other = decaps_new(KEM_ALG_MLKEM1024, 7);
	add_all(req);
	add_all(other);
	req->deadline_us = request_now_us() + 20;
	run(2);
	ck_assert_int_eq(req->items[0].status, STATUS_DEADLINE_EXCEEDED);
	item_gives_nothing(req, 0);
	for (uint32_t i = 0; i < 7; i++)
		item_is_right(other, i);
	ck_assert_uint_eq(rig.metrics.deadline_total, 1);
}
END_TEST

START_TEST(kdf_is_hkdf_of_the_shared_secret)
{
	static const uint8_t salt[] = "salt", info[] = "info and more";

	for (int hash = 0; hash < 2; hash++) {
		struct request *req;
		uint8_t out[1000];

		rig_pair_make(&rig, KEM_ALG_X25519MLKEM768, &pair);
		req = decaps_new(KEM_ALG_X25519MLKEM768, 9);
		req->kdf = (struct request_kdf){
		    .used = true, .hash = (enum kem_hash)hash, .length = sizeof(out)};
		rig_bytes(&req->kdf.salt, salt, 4);
		rig_bytes(&req->kdf.info, info, 13);
		req->secret_bytes = sizeof(out);
		for (uint32_t i = 0; i < 9; i++)
			req->items[i].out_secret = mem_alloc(&rig.mem, sizeof(out));
		add_all(req);
		run(1);
		for (uint32_t i = 0; i < 9; i++) {
			ck_assert_int_eq(
			    kem_hkdf(rig.kem, (enum kem_hash)hash, expected[i].bytes,
				64, salt, 4, info, 13, out, sizeof(out)),
			    0);
			ck_assert_mem_eq(req->items[i].out_secret, out, sizeof(out));
			/* What went into the kdf is gone. */
			ck_assert(!rig_in_arena(&rig, expected[i].bytes, 32));
		}
	}
}
END_TEST

START_TEST(seeds_are_keys)
{
	for (enum kem_alg alg = 0; alg < KEM_N_ALGS; alg++) {
		const struct kem_alg_info *info = kem_alg_info(alg);
		uint8_t seed[KEM_SEED_MAX];
		struct kem_keygen_item item = {
		    .seed = seed, .share = pair.share, .secret = pair.secret};
		struct request *req;

		ck_assert_int_eq(kem_random(rig.kem, seed, sizeof(seed)), 0);
		ck_assert_int_eq(kem_keygen(rig.kem, alg, &item, 1, rig.scratch), 0);
		kem_private_export(alg, pair.secret, pair.share, pair.dk);
		req = decaps_new(alg, 9);
		for (uint32_t i = 0; i < 9; i += 2) { /* seeds among other keys */
			req->items[i].key = (struct kem_private){0};
			req->items[i].seed = seed;
			req->items[i].secret = mem_alloc(&rig.mem, info->secret_bytes);
			req->items[i].key_share =
			    mem_alloc(&rig.mem, info->share_bytes);
		}
		add_all(req);
		run(1);
		for (uint32_t i = 0; i < 9; i++)
			item_is_right(req, i);
		ck_assert(!rig_in_arena(&rig, pair.secret, 32));
		mem_wipe(&rig.mem);
	}
}
END_TEST

static struct request *
kdf_and_secrets_new(void)
{
	struct request *req;

	rig_pair_make(&rig, KEM_ALG_X25519MLKEM768, &pair);
	req = decaps_new(KEM_ALG_X25519MLKEM768, 1);
	req->items[0].secret = mem_alloc(&rig.mem, KEM_SECRET_MAX);
	memcpy(req->items[0].secret, pair.secret, 1248);
	kem_private_from_parts(&req->items[0].key, KEM_ALG_X25519MLKEM768,
	    req->items[0].secret, pair.share);
	req->items[0].ephemeral = mem_alloc(&rig.mem, sizeof(struct kem_x25519));
	memcpy(req->items[0].ephemeral, pair.secret + 100, 64);
	req->kdf = (struct request_kdf){.used = true, .length = 32};
	req->secret_bytes = 32;
	req->items[0].out_secret = mem_alloc(&rig.mem, 32);
	add_all(req);
	return req;
}

START_TEST(intermediates_are_wiped_before_the_turn_ends)
{
	kdf_and_secrets_new();
	ck_assert(rig_in_arena(&rig, pair.secret, 32));
	run(1);
	ck_assert(!rig_in_arena(&rig, pair.secret, 32));
	ck_assert(!rig_in_arena(&rig, pair.secret + 1216, 32));
	ck_assert(!rig_in_arena(&rig, pair.secret + 100, 32));
	ck_assert(!rig_in_arena(&rig, expected[0].bytes, 32));
	/* The same when it is too late, or cancelled. */
	kdf_and_secrets_new()->deadline_us = 1;
	run(1);
	ck_assert(!rig_in_arena(&rig, pair.secret, 32));
	kdf_and_secrets_new();
	ck_assert_ptr_nonnull(batch_cancel(&rig.batch, RIG_CONN, 0));
	ck_assert(!rig_in_arena(&rig, pair.secret, 32));
}
END_TEST

START_TEST(a_missing_wipe_is_seen)
{
	if (!rig_hooks())
		return;
	rig_fault("batch-no-wipe");
	kdf_and_secrets_new();
	run(1);
	ck_assert(rig_in_arena(&rig, pair.secret, 32));
	ck_assert(rig_in_arena(&rig, expected[0].bytes, 32));
}
END_TEST

START_TEST(a_request_is_cancelled_while_it_waits)
{
	struct request *first, *second;

	rig_pair_make(&rig, KEM_ALG_MLKEM512, &pair);
	first = decaps_new(KEM_ALG_MLKEM512, 9);
	second = decaps_new(KEM_ALG_MLKEM512, 9);
	first->id = 1;
	second->id = 2;
	for (uint32_t i = 0; i < 9; i++) {
		batch_add(&rig.batch, &first->items[i]);
		batch_add(&rig.batch, &second->items[i]);
	}
	ck_assert_ptr_null(batch_cancel(&rig.batch, RIG_CONN, 3));
	ck_assert_ptr_null(batch_cancel(&rig.batch, RIG_CONN + 1, 1));
	ck_assert_uint_eq(rig.batch.n_items, 18);
	ck_assert_ptr_eq(batch_cancel(&rig.batch, RIG_CONN, 1), first);
	ck_assert_uint_eq(rig.batch.n_items, 9);
	ck_assert_uint_eq(first->n_pending, 0);
	for (uint32_t i = 0; i < 9; i++)
		ck_assert_int_eq(first->items[i].status, STATUS_CANCELLED);
	ck_assert_ptr_null(batch_cancel(&rig.batch, RIG_CONN, 1));
	run(1); /* the caller of batch_cancel() finishes the other */
	ck_assert_ptr_eq(rig.last_done, second);
	for (uint32_t i = 0; i < 9; i++)
		item_is_right(second, i);
	ck_assert_uint_eq(rig.metrics.group_items_total, 9);
}
END_TEST

static int
settle_fails_at_two(struct request_item *item)
{
	return item == &item->request->items[2] ? KEM_FAIL_RNG : 0;
}

/* Whatever fails for good: every request has its answer, and the run says so. */
START_TEST(a_failure_for_good_answers_all_and_is_returned)
{
	struct request *one, *two;

	rig_pair_make(&rig, KEM_ALG_MLKEM512, &pair);
	one = decaps_new(KEM_ALG_MLKEM512, 3);
	two = decaps_new(KEM_ALG_MLKEM512, 33);
	one->settle = settle_fails_at_two;
	add_all(one);
	add_all(two);
	ck_assert_int_eq(batch_run(&rig.batch), KEM_FAIL_RNG);
	ck_assert_uint_eq(rig.n_done, 2);
	ck_assert_uint_eq(rig.batch.n_items, 0);
	ck_assert_int_eq(one->items[1].status, STATUS_OK);
	ck_assert_int_eq(one->items[2].status, STATUS_INTERNAL);
	item_gives_nothing(one, 2);
	/* The group in which it happened is whole; after it nothing is computed. */
	ck_assert_int_eq(two->items[4].status, STATUS_OK);
	ck_assert_int_eq(two->items[5].status, STATUS_INTERNAL);
	ck_assert_int_eq(two->items[32].status, STATUS_INTERNAL);
	ck_assert_uint_eq(rig.metrics.groups_total, 1);
}
END_TEST

START_TEST(no_randomness_stops_the_daemon)
{
	struct request *req = rig_request(&rig, REQUEST_ENCAPS, KEM_ALG_MLKEM512, 9);

	if (!rig_hooks())
		return;
	rig_pair_make(&rig, KEM_ALG_MLKEM512, &pair);
	for (uint32_t i = 0; i < 9; i++) {
		rig_bytes(&req->items[i].share, pair.share, 800);
		req->items[i].out_ciphertext = mem_alloc(&rig.mem, 768);
		req->items[i].shared = mem_alloc(&rig.mem, sizeof(struct kem_shared));
		req->items[i].out_secret = req->items[i].shared->bytes;
	}
	add_all(req);
	rig_fault("rng-fail");
	ck_assert_int_eq(batch_run(&rig.batch), KEM_FAIL_RNG);
	ck_assert_uint_eq(rig.n_done, 1);
	for (uint32_t i = 0; i < 9; i++) {
		ck_assert_int_eq(req->items[i].status, STATUS_INTERNAL);
		item_gives_nothing(req, i);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("batch");
	TCase *tc = tcase_create("batch");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, groups_have_at_most_eight_items);
	tcase_add_test(tc, the_fill_follows_what_is_run);
	tcase_add_test(tc, a_bad_item_leaves_the_others_right);
	tcase_add_test(tc, a_rejection_leaves_no_trace);
	tcase_add_test(tc, requests_of_all_kinds_share_a_run);
	tcase_add_test(tc, what_is_late_is_not_computed);
	tcase_add_test(tc, what_gets_late_meanwhile_is_not_given_out);
	tcase_add_test(tc, kdf_is_hkdf_of_the_shared_secret);
	tcase_add_test(tc, seeds_are_keys);
	tcase_add_test(tc, intermediates_are_wiped_before_the_turn_ends);
	tcase_add_test(tc, a_missing_wipe_is_seen);
	tcase_add_test(tc, a_request_is_cancelled_while_it_waits);
	tcase_add_test(tc, a_failure_for_good_answers_all_and_is_returned);
	tcase_add_test(tc, no_randomness_stops_the_daemon);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
