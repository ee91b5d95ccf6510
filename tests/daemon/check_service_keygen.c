/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "rig.h"

#define HYBRID KEM_ALG_X25519MLKEM768

static struct rig rig;

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

START_TEST(keys_come_from_the_pool_without_computing)
{
	static const struct {
		enum kem_alg alg;
		enum keypool_kind kind;
	} kinds[] = {{HYBRID, KEYPOOL_HYBRID}, {KEM_ALG_MLKEM768, KEYPOOL_MLKEM768}};
	struct request *req;

	rig_fill(&rig);
	for (size_t i = 0; i < 2; i++) {
		req = rig_request(&rig, REQUEST_KEYGEN, kinds[i].alg, 7);
		ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
		for (uint32_t j = 0; j < 7; j++)
			ck_assert_int_eq(req->items[j].status, STATUS_OK);
		ck_assert_uint_eq(keypool_level(rig.pool, kinds[i].kind), 1);
	}
	ck_assert_uint_eq(rig.metrics.groups_total, 0);
	ck_assert_uint_eq(rig.metrics.items_keygen_total, 14);

	/* What the pool has not is computed with the rest. */
	req = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 2);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	ck_assert_uint_eq(keypool_level(rig.pool, KEYPOOL_HYBRID), 0);
	ck_assert_uint_eq(rig.metrics.groups_total, 1);
	ck_assert_uint_eq(rig.metrics.group_items_total, 1);
	ck_assert_uint_eq(rig.metrics.items_keygen_total, 16);
}
END_TEST

/* Whether from the pool or not: the secret is in the table, and nowhere else. */
START_TEST(a_new_key_is_in_the_table_alone)
{
	struct request *req;
	uint8_t secret[KEM_SECRET_MAX], share[KEM_SHARE_MAX];

	if (_i)
		rig_fill(&rig);
	req = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 3);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert(rig_zero(req->items[i].secret, 1248));
		ck_assert(keytable_take(rig.keys, RIG_CONN, req->items[i].out_handle,
		    request_now_us(), secret, share));
		ck_assert_mem_eq(share, req->items[i].out_share, 1216);
		ck_assert(!rig_in_arena(&rig, secret, 32));
	}
}
END_TEST

START_TEST(a_missing_wipe_is_seen)
{
	struct request *req;

	if (!rig_hooks())
		return;
	rig_fill(&rig);
	rig_fault("service-no-wipe");
	req = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 1);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	ck_assert(!rig_zero(req->items[0].secret, 1248));
}
END_TEST

START_TEST(export_is_for_those_who_allow_it)
{
	struct request *req;

	for (enum kem_alg alg = 0; alg < KEM_N_ALGS; alg++) {
		const struct kem_alg_info *info = kem_alg_info(alg);
		struct kem_private key;
		struct kem_shared ours, theirs;
		uint8_t ct[KEM_CT_MAX];
		struct kem_decaps_item item = {
		    .key = &key, .ct = ct, .ct_len = info->ct_bytes, .shared = &theirs};

		rig.config.export_private = false;
		req = rig_request(&rig, REQUEST_KEYGEN, alg, 2);
		req->export_private = true;
		ck_assert_int_eq(rig_status(&rig, req), STATUS_EXPORT_DISABLED);
		ck_assert_ptr_nonnull(strstr(req->message, "export-private-keys"));

		rig.config.export_private = true;
		req = rig_request(&rig, REQUEST_KEYGEN, alg, 2);
		req->export_private = true;
		ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
		ck_assert_uint_eq(keytable_count(rig.keys), 0);
		ck_assert_ptr_null(req->items[1].out_handle);
		ck_assert_int_eq(kem_private_from_dk(
				     &key, alg, req->items[1].out_dk, info->dk_bytes),
		    KEM_OK);
		rig_encaps(&rig, alg, req->items[1].out_share, ct, &ours);
		ck_assert_int_eq(kem_decaps(rig.kem, alg, &item, 1, rig.scratch), 0);
		ck_assert_int_eq(item.status, KEM_OK);
		ck_assert_mem_eq(&ours, &theirs, sizeof(ours));
	}
}
END_TEST

/* At once, and only for those that do not fit. */
START_TEST(a_full_table_refuses_what_does_not_fit)
{
	struct request *one, *two, *three;

	if (_i)
		rig_fill(&rig);
	/* Two requests in one turn: the second knows what the first was promised. */
	one = rig_request(&rig, REQUEST_KEYGEN, HYBRID, RIG_KEYS - 2);
	two = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 5);
	service_handle(&rig.service, one);
	service_handle(&rig.service, two);
	ck_assert_uint_eq(rig_count(two, STATUS_RESOURCE_EXHAUSTED), 3);
	ck_assert_int_eq(batch_run(&rig.batch), 0);
	ck_assert_uint_eq(rig.n_done, 2);
	ck_assert_uint_eq(rig_count(one, STATUS_OK), RIG_KEYS - 2);
	ck_assert_uint_eq(rig_count(two, STATUS_OK), 2);
	ck_assert_uint_eq(rig_count(two, STATUS_RESOURCE_EXHAUSTED), 3);
	ck_assert_uint_eq(rig.metrics.shed_total, 3);
	ck_assert_uint_eq(keytable_count(rig.keys), RIG_KEYS);

	/* Export needs no room; and after a release there is room again. */
	rig.config.export_private = true;
	three = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 2);
	three->export_private = true;
	rig_serve(&rig, three);
	ck_assert_uint_eq(rig_count(three, STATUS_OK), 2);
	ck_assert(keytable_release(rig.keys, RIG_CONN, one->items[0].out_handle));
	three = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 2);
	rig_serve(&rig, three);
	ck_assert_uint_eq(rig_count(three, STATUS_OK), 1);
}
END_TEST

/* Promises that the batch did not keep (too late) are no promises any more. */
START_TEST(promised_room_comes_back)
{
	struct request *req;

	for (unsigned i = 0; i < 3; i++) {
		req = rig_request(&rig, REQUEST_KEYGEN, HYBRID, RIG_KEYS);
		service_handle(&rig.service, req);
		ck_assert_uint_eq(rig.batch.n_items, RIG_KEYS);
		req->deadline_us = 1;
		ck_assert_int_eq(batch_run(&rig.batch), 0);
		ck_assert_uint_eq(rig_count(req, STATUS_DEADLINE_EXCEEDED), RIG_KEYS);
		ck_assert_uint_eq(keytable_count(rig.keys), 0);
	}
	req = rig_request(&rig, REQUEST_KEYGEN, HYBRID, RIG_KEYS);
	rig_serve(&rig, req);
	ck_assert_uint_eq(rig_count(req, STATUS_OK), RIG_KEYS);
}
END_TEST

/* Half of the table is one user's; the other half is there for the next. */
START_TEST(one_user_may_have_its_share)
{
	struct user *other = user_join(&rig.users, 1001, false);
	struct request *first, *second, *third;

	rig.config.user_share = 50;
	if (_i)
		rig_fill(&rig);
	first = rig_request(&rig, REQUEST_KEYGEN, HYBRID, RIG_KEYS / 2 - 1);
	second = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 3);
	service_handle(&rig.service, first);
	service_handle(&rig.service, second);
	ck_assert_int_eq(batch_run(&rig.batch), 0);
	ck_assert_uint_eq(rig_count(first, STATUS_OK), RIG_KEYS / 2 - 1);
	ck_assert_uint_eq(rig_count(second, STATUS_OK), 1);
	ck_assert_uint_eq(rig_count(second, STATUS_RESOURCE_EXHAUSTED), 2);
	ck_assert_ptr_nonnull(strstr(second->items[2].message, "limits.user-share"));
	ck_assert_uint_eq(rig.user->n_keys, RIG_KEYS / 2);

	third = rig_request(&rig, REQUEST_KEYGEN, HYBRID, RIG_KEYS);
	third->user = other;
	rig_serve(&rig, third);
	ck_assert_uint_eq(rig_count(third, STATUS_OK), RIG_KEYS / 2);
	ck_assert(keytable_release(rig.keys, RIG_CONN, first->items[0].out_handle));
	ck_assert_uint_eq(rig.user->n_keys, RIG_KEYS / 2 - 1);
	keytable_conn_gone(rig.keys, RIG_CONN);
	ck_assert_uint_eq(rig.user->n_keys, 0);
	ck_assert_uint_eq(other->n_keys, 0);
	user_leave(other);
}
END_TEST

/* Whatever else the batch has, and whenever it comes: promises end with their turn. */
START_TEST(promises_end_though_others_come_first)
{
	struct rig_pair pair;
	uint8_t ct[KEM_CT_MAX];
	struct kem_shared shared;

	rig_pair_make(&rig, KEM_ALG_MLKEM512, &pair);
	rig_encaps(&rig, KEM_ALG_MLKEM512, pair.share, ct, &shared);
	for (unsigned i = 0; i < 3 * RIG_KEYS; i++) {
		struct request *other, *req;

		other = rig_request(&rig, REQUEST_ENCAPS, KEM_ALG_MLKEM512, 1);
		rig_bytes(&other->items[0].share, pair.share,
		    kem_alg_info(KEM_ALG_MLKEM512)->share_bytes);
		service_handle(&rig.service, other);
		req = rig_request(&rig, REQUEST_KEYGEN, KEM_ALG_MLKEM1024, 1);
		service_handle(&rig.service, req);
		ck_assert_int_eq(batch_run(&rig.batch), 0);
		ck_assert_uint_eq(rig_count(req, STATUS_OK), 1);
		ck_assert(
		    keytable_release(rig.keys, RIG_CONN, req->items[0].out_handle));
		mem_wipe(&rig.mem);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("service_keygen");
	TCase *tc = tcase_create("service_keygen");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, keys_come_from_the_pool_without_computing);
	tcase_add_loop_test(tc, a_new_key_is_in_the_table_alone, 0, 2);
	tcase_add_test(tc, a_missing_wipe_is_seen);
	tcase_add_test(tc, export_is_for_those_who_allow_it);
	tcase_add_loop_test(tc, a_full_table_refuses_what_does_not_fit, 0, 2);
	tcase_add_test(tc, promised_room_comes_back);
	tcase_add_test(tc, promises_end_though_others_come_first);
	tcase_add_loop_test(tc, one_user_may_have_its_share, 0, 2);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
