/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "rig.h"

#define HYBRID KEM_ALG_X25519MLKEM768

static struct rig rig;
static struct rig_pair pair;

static void
setup(void)
{
	rig_open(&rig, 8);
}

static void
teardown(void)
{
	rig_close(&rig);
}

enum fate { SPENT, LEFT };

static const struct fate_case {
	const char *what;
	enum fate fate;
	enum request_status item;    /* of the item, */
	enum request_status request; /* or of the request if that was refused */
} fates[] = {
    {"good", SPENT, STATUS_OK, STATUS_OK},
    {"wrong ciphertext", SPENT, STATUS_OK, STATUS_OK},
    {"all-zero X25519", SPENT, STATUS_ZERO_X25519, STATUS_OK},
    {"late in the batch", SPENT, STATUS_DEADLINE_EXCEEDED, STATUS_OK},
    {"cancelled in the batch", SPENT, STATUS_CANCELLED, STATUS_CANCELLED},
    {"late on arrival", LEFT, STATUS_OK, STATUS_DEADLINE_EXCEEDED},
    {"short ciphertext", LEFT, STATUS_BAD_LENGTH, STATUS_OK},
    {"no ciphertext", LEFT, STATUS_BAD_LENGTH, STATUS_OK},
    {"another algorithm", LEFT, STATUS_ALGORITHM_MISMATCH, STATUS_OK},
    {"with a key beside it", LEFT, STATUS_INVALID_REQUEST, STATUS_OK},
    {"kdf length 0", LEFT, STATUS_OK, STATUS_INVALID_REQUEST},
    {"kdf too long", LEFT, STATUS_OK, STATUS_INVALID_REQUEST},
    {"no memory", LEFT, STATUS_OK, STATUS_RESOURCE_EXHAUSTED},
    {"another connection", LEFT, STATUS_KEY_NOT_FOUND, STATUS_OK},
};
#define N_FATES (int)(sizeof(fates) / sizeof(fates[0]))

static bool
is(const struct fate_case *fate, const char *what)
{
	return !strcmp(fate->what, what);
}

static void
fate_prepare(const struct fate_case *fate, struct request *req, uint8_t *ct)
{
	struct request_item *item = &req->items[0];

	if (is(fate, "wrong ciphertext"))
		ct[17] ^= 4;
	else if (is(fate, "all-zero X25519"))
		memset(ct + 1088, 0, 32);
	else if (is(fate, "late on arrival"))
		req->deadline_us = request_now_us();
	else if (is(fate, "short ciphertext"))
		item->ciphertext.len--;
	else if (is(fate, "no ciphertext"))
		rig_bytes(&item->ciphertext, NULL, 0);
	else if (is(fate, "with a key beside it"))
		rig_bytes(&item->private_key, pair.dk, 2432);
	else if (is(fate, "kdf length 0"))
		req->kdf = (struct request_kdf){.used = true};
	else if (is(fate, "kdf too long"))
		req->kdf = (struct request_kdf){.used = true, .length = 255 * 32 + 1};
	else if (is(fate, "another connection"))
		req->conn_id++;
	else if (is(fate, "another algorithm")) {
		req->alg = KEM_ALG_MLKEM512;
		item->ciphertext.len = 768;
	} else if (is(fate, "no memory"))
		ck_assert_ptr_nonnull(mem_alloc(&rig.mem, mem_room(&rig.mem) - 512));
}

START_TEST(each_handle_has_its_fate)
{
	const struct fate_case *fate = &fates[_i];
	struct request *made = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 1), *req;
	struct request_item *item;
	struct kem_shared shared;
	uint8_t ct[1120];
	enum kem_alg alg;

	ck_assert_int_eq(rig_status(&rig, made), STATUS_OK);
	rig_encaps(&rig, HYBRID, made->items[0].out_share, ct, &shared);
	req = rig_request(&rig, REQUEST_DECAPS, HYBRID, 1);
	item = &req->items[0];
	rig_bytes(&item->handle, made->items[0].out_handle, WIRE_HANDLE_BYTES);
	rig_bytes(&item->ciphertext, ct, sizeof(ct));
	fate_prepare(fate, req, ct);

	rig.n_done = 0;
	service_handle(&rig.service, req);
	if (is(fate, "late in the batch"))
		req->deadline_us = 1;
	if (is(fate, "cancelled in the batch")) {
		struct request *cancel = rig_request(&rig, REQUEST_CANCEL, 0, 0);

		service_handle(&rig.service, cancel);
		ck_assert_int_eq(cancel->status, STATUS_OK);
		rig.n_done--;
	}
	ck_assert_int_eq(batch_run(&rig.batch), 0);
	ck_assert_uint_eq(rig.n_done, 1);

	ck_assert_int_eq(req->status, fate->request);
	ck_assert_int_eq(item->status, fate->item);
	if (is(fate, "good"))
		ck_assert_mem_eq(item->out_secret, shared.bytes, 64);
	else if (is(fate, "wrong ciphertext"))
		ck_assert_mem_ne(item->out_secret, shared.bytes, 32);
	else if (item->out_secret != NULL)
		ck_assert(rig_zero(item->out_secret, 64));
	ck_assert_int_eq(keytable_peek(rig.keys, RIG_CONN, made->items[0].out_handle,
			     request_now_us(), &alg),
	    fate->fate == LEFT);
}
END_TEST

/* The first spends it, and nothing is counted twice. */
START_TEST(one_handle_three_times_is_spent_once)
{
	struct request *made = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 1), *req;
	struct kem_shared shared;
	uint8_t ct[1120];

	ck_assert_int_eq(rig_status(&rig, made), STATUS_OK);
	rig_encaps(&rig, HYBRID, made->items[0].out_share, ct, &shared);
	req = rig_request(&rig, REQUEST_DECAPS, HYBRID, 3);
	for (uint32_t i = 0; i < 3; i++) {
		rig_bytes(&req->items[i].handle, made->items[0].out_handle, 16);
		rig_bytes(&req->items[i].ciphertext, ct, sizeof(ct));
	}
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	ck_assert_int_eq(req->items[0].status, STATUS_OK);
	ck_assert_mem_eq(req->items[0].out_secret, shared.bytes, 64);
	ck_assert_int_eq(req->items[1].status, STATUS_KEY_NOT_FOUND);
	ck_assert_int_eq(req->items[2].status, STATUS_KEY_NOT_FOUND);
	ck_assert_uint_eq(rig.metrics.handles, 0);
	ck_assert_uint_eq(rig.metrics.items_decaps_total, 1);
	ck_assert_uint_eq(rig.metrics.items_failed_total, 2);
}
END_TEST

/* Used, foreign, expired and never known: nobody can tell one from another. */
START_TEST(all_that_is_not_found_looks_the_same)
{
	struct request *made = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 3), *req;
	uint8_t ct[1120] = {0}, unknown[16] = {0};
	const char *message = NULL;

	ck_assert_int_eq(rig_status(&rig, made), STATUS_OK);
	ck_assert(keytable_release(rig.keys, RIG_CONN, made->items[0].out_handle));
	for (unsigned i = 0; i < 4; i++) {
		req = rig_request(&rig, REQUEST_DECAPS, HYBRID, 1);
		rig_bytes(&req->items[0].ciphertext, ct, sizeof(ct));
		rig_bytes(&req->items[0].handle,
		    i == 3 ? unknown : made->items[i].out_handle, 16);
		if (i == 1)
			req->conn_id = 12345;
		if (i == 2)
			keytable_expire(rig.keys, UINT64_MAX);
		ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
		ck_assert_int_eq(req->items[0].status, STATUS_KEY_NOT_FOUND);
		if (message != NULL)
			ck_assert_str_eq(req->items[0].message, message);
		message = req->items[0].message;
	}
}
END_TEST

/* Every kind of bad share, ciphertext and key among good ones. */
START_TEST(each_bad_item_leaves_the_others_right)
{
	enum kem_alg alg = (enum kem_alg)_i;
	const struct kem_alg_info *info = kem_alg_info(alg);
	static uint8_t bad[KEM_SHARE_MAX];
	const size_t lengths[] = {0, 1, 32, 64, (size_t)info->share_bytes - 1,
	    (size_t)info->share_bytes + 1, 800, 1184, 1216, 1568};
	const uint32_t n_lengths = sizeof(lengths) / sizeof(lengths[0]);
	struct request *req = rig_request(&rig, REQUEST_ENCAPS, alg, 2 * n_lengths + 2);

	rig_pair_make(&rig, alg, &pair);
	memcpy(bad, pair.share, sizeof(bad));
	bad[0] = 0x01; /* the first coefficient is 3329 (A07) */
	bad[1] = (bad[1] & 0xf0) | 0x0d;
	for (uint32_t i = 0; i < req->n_items; i++) {
		struct request_item *item = &req->items[i];

		if (i == 1)
			rig_bytes(&item->share, bad, info->share_bytes);
		else if (i % 2 == 0)
			rig_bytes(&item->share, pair.share, info->share_bytes);
		else
			rig_bytes(&item->share, pair.share, lengths[i / 2 - 1]);
	}
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	for (uint32_t i = 0; i < req->n_items; i++) {
		const struct request_item *item = &req->items[i];
		struct kem_private key;
		struct kem_shared shared;
		struct kem_decaps_item back = {.key = &key,
		    .ct = item->out_ciphertext,
		    .ct_len = info->ct_bytes,
		    .shared = &shared};

		if (i == 1) {
			ck_assert_int_eq(item->status, STATUS_BAD_SHARE);
			ck_assert(rig_zero(item->out_secret, info->shared_bytes));
			continue;
		}
		if (i % 2 != 0 && lengths[i / 2 - 1] != info->share_bytes) {
			ck_assert_int_eq(item->status, STATUS_BAD_LENGTH);
			ck_assert_ptr_nonnull(strstr(item->message, info->name));
			ck_assert(rig_zero(item->out_secret, info->shared_bytes));
			continue;
		}
		ck_assert_int_eq(item->status, STATUS_OK);
		kem_private_from_parts(&key, alg, pair.secret, pair.share);
		ck_assert_int_eq(kem_decaps(rig.kem, alg, &back, 1, rig.scratch), 0);
		ck_assert_mem_eq(shared.bytes, item->out_secret, info->shared_bytes);
	}
}
END_TEST

START_TEST(private_keys_are_told_apart_by_length)
{
	enum kem_alg alg = (enum kem_alg)_i, other = (enum kem_alg)((_i + 1) % 4);
	const struct kem_alg_info *info = kem_alg_info(alg);
	uint8_t seed[KEM_SEED_MAX], ct[KEM_CT_MAX];
	static uint8_t tampered[KEM_DK_MAX];
	struct kem_keygen_item made = {
	    .seed = seed, .share = pair.share, .secret = pair.secret};
	struct kem_shared shared;
	struct request *req = rig_request(&rig, REQUEST_DECAPS, alg, 9);
	static const enum request_status statuses[] = {STATUS_OK, STATUS_OK,
	    STATUS_BAD_KEY, STATUS_BAD_KEY, STATUS_OK, STATUS_ALGORITHM_MISMATCH,
	    STATUS_BAD_LENGTH, STATUS_INVALID_REQUEST, STATUS_BAD_LENGTH};
	/* dk = s 384k, ek 384k + 32, H(ek) 32, z 32 */
	size_t s_bytes = alg == KEM_ALG_MLKEM512    ? 768
			 : alg == KEM_ALG_MLKEM1024 ? 1536
						    : 1152;

	ck_assert_int_eq(kem_random(rig.kem, seed, sizeof(seed)), 0);
	ck_assert_int_eq(kem_keygen(rig.kem, alg, &made, 1, rig.scratch), 0);
	kem_private_export(alg, pair.secret, pair.share, pair.dk);
	rig_encaps(&rig, alg, pair.share, ct, &shared);
	for (uint32_t i = 0; i < 9; i++)
		rig_bytes(&req->items[i].ciphertext, ct, info->ct_bytes);
	rig_bytes(&req->items[0].private_key, seed, info->seed_bytes);
	rig_bytes(&req->items[1].private_key, pair.dk, info->dk_bytes);
	for (uint32_t i = 2; i <= 4; i++) {
		static const int where[] = {0, 1, 2};
		uint8_t *dk = i == 2 ? tampered : mem_alloc(&rig.mem, KEM_DK_MAX);

		memcpy(dk, pair.dk, info->dk_bytes);
		if (where[i - 2] == 0)
			dk[2 * s_bytes + 32] ^= 1; /* H(ek) */
		else if (where[i - 2] == 1)
			dk[s_bytes + 10] ^= 1; /* ek */
		else
			dk[2 * s_bytes + 64] ^= 1; /* z is free */
		rig_bytes(&req->items[i].private_key, dk, info->dk_bytes);
	}
	rig_bytes(&req->items[5].private_key, pair.dk, kem_alg_info(other)->dk_bytes);
	rig_bytes(&req->items[6].private_key, pair.dk, 65);
	rig_bytes(&req->items[8].handle, seed, 15);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	for (uint32_t i = 0; i < 9; i++) {
		ck_assert_int_eq(req->items[i].status, statuses[i]);
		if (statuses[i] == STATUS_OK)
			ck_assert_mem_eq(
			    req->items[i].out_secret, shared.bytes, info->shared_bytes);
		else
			ck_assert(
			    rig_zero(req->items[i].out_secret, info->shared_bytes));
	}
	/* The mismatch names both. */
	ck_assert_ptr_nonnull(strstr(req->items[5].message, info->name));
	ck_assert_ptr_nonnull(strstr(req->items[5].message, kem_alg_info(other)->name));
}
END_TEST

START_TEST(encapsulation_takes_ephemerals_and_forgets_them)
{
	struct request *req;

	rig_fill(&rig);
	rig_pair_make(&rig, HYBRID, &pair);
	req = rig_request(&rig, REQUEST_ENCAPS, HYBRID, 9);
	for (uint32_t i = 0; i < 9; i++)
		rig_bytes(&req->items[i].share, pair.share, 1216);
	rig_bytes(&req->items[3].share, pair.share, 1184);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	ck_assert_uint_eq(rig_count(req, STATUS_OK), 8);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_X25519), 0);
	for (uint32_t i = 0; i < 9; i++)
		if (req->items[i].ephemeral != NULL)
			ck_assert(rig_zero((uint8_t *)req->items[i].ephemeral, 64));
	/* A plain set needs none. */
	rig_pair_make(&rig, KEM_ALG_MLKEM768, &pair);
	req = rig_request(&rig, REQUEST_ENCAPS, KEM_ALG_MLKEM768, 1);
	rig_bytes(&req->items[0].share, pair.share, 1184);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	ck_assert_uint_eq(rig.metrics.pool_missed_total, 0);
}
END_TEST

START_TEST(kdf_has_its_limits)
{
	static const struct {
		enum kem_hash hash;
		uint32_t length, n;
		size_t info_len;
		enum request_status status;
	} cases[] = {
	    {KEM_HASH_SHA256, 1, 1, 0, STATUS_OK},
	    {KEM_HASH_SHA256, 255 * 32, 1, 0, STATUS_OK},
	    {KEM_HASH_SHA256, 255 * 32 + 1, 1, 0, STATUS_INVALID_REQUEST},
	    {KEM_HASH_SHA384, 255 * 48, 1, 0, STATUS_OK},
	    {KEM_HASH_SHA384, 255 * 48 + 1, 1, 0, STATUS_INVALID_REQUEST},
	    {KEM_HASH_SHA256, 0, 1, 0, STATUS_INVALID_REQUEST},
	    {KEM_HASH_SHA256, UINT32_MAX, 64, 0, STATUS_INVALID_REQUEST},
	    {KEM_HASH_SHA256, 1024, 64, 0, STATUS_OK},
	    {KEM_HASH_SHA256, 1025, 64, 0, STATUS_TOO_MANY_ITEMS},
	    {KEM_HASH_SHA256, 8160, 8, 0, STATUS_OK},
	    {KEM_HASH_SHA256, 8160, 9, 0, STATUS_TOO_MANY_ITEMS},
	    {KEM_HASH_SHA384, 32, 2, 2048, STATUS_OK},
	    {KEM_HASH_SHA256, 32, 2, 2049, STATUS_INVALID_REQUEST},
	    {KEM_HASH_SHA384, 32, 1, 65536, STATUS_INVALID_REQUEST},
	};
	static const uint8_t info[65536];

	rig_pair_make(&rig, KEM_ALG_MLKEM512, &pair);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct request *req =
		    rig_request(&rig, REQUEST_ENCAPS, KEM_ALG_MLKEM512, cases[i].n);

		for (uint32_t j = 0; j < cases[i].n; j++)
			rig_bytes(&req->items[j].share, pair.share, 800);
		req->kdf = (struct request_kdf){
		    .used = true, .hash = cases[i].hash, .length = cases[i].length};
		rig_bytes(&req->kdf.info, info, cases[i].info_len);
		req->secret_bytes = cases[i].length;
		ck_assert_int_eq(rig_status(&rig, req), cases[i].status);
		if (req->status == STATUS_OK)
			ck_assert_uint_eq(rig_count(req, STATUS_OK), cases[i].n);
		mem_wipe(&rig.mem);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("service_kem");
	TCase *tc = tcase_create("service_kem");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, each_handle_has_its_fate, 0, N_FATES);
	tcase_add_test(tc, one_handle_three_times_is_spent_once);
	tcase_add_test(tc, all_that_is_not_found_looks_the_same);
	tcase_add_loop_test(tc, each_bad_item_leaves_the_others_right, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, private_keys_are_told_apart_by_length, 0, KEM_N_ALGS);
	tcase_add_test(tc, encapsulation_takes_ephemerals_and_forgets_them);
	tcase_add_test(tc, kdf_has_its_limits);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
