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

START_TEST(hello_agrees_on_a_version)
{
	static const struct {
		uint32_t min, max;
		enum request_status status;
	} cases[] = {{1, 1, STATUS_OK}, {0, 1, STATUS_OK}, {1, UINT32_MAX, STATUS_OK},
	    {2, 3, STATUS_UNSUPPORTED}, {0, 0, STATUS_UNSUPPORTED},
	    {2, 1, STATUS_INVALID_REQUEST}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct request *req = rig_request(&rig, REQUEST_HELLO, 0, 0);

		req->min_version = cases[i].min;
		req->max_version = cases[i].max;
		req->fallbacks = 10;
		req->auto_daemon = 4;
		req->auto_local = 7;
		ck_assert_int_eq(rig_status(&rig, req), cases[i].status);
		if (req->status == STATUS_UNSUPPORTED)
			ck_assert_ptr_nonnull(strstr(req->message, "version 1"));
	}
	ck_assert_uint_eq(rig.metrics.client_fallbacks_total, 30);
	ck_assert_uint_eq(rig.metrics.client_auto_daemon_total, 12);
	ck_assert_uint_eq(rig.metrics.client_auto_local_total, 21);
	ck_assert_uint_eq(rig.metrics.requests_total, 6);
	ck_assert_uint_eq(rig.metrics.requests_failed_total, 3);
}
END_TEST

START_TEST(control_operations_are_denied_on_the_data_socket)
{
	for (int op = REQUEST_STATS; op < REQUEST_N_OPS; op++) {
		struct request *req = rig_request(&rig, (enum request_op)op, 0, 0);

		ck_assert_int_eq(rig_status(&rig, req), STATUS_DENIED);
		req = rig_request(&rig, (enum request_op)op, 0, 0);
		req->control = true;
		ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	}
	ck_assert_int_eq(
	    rig_status(&rig, rig_request(&rig, REQUEST_PING, 0, 0)), STATUS_OK);
	ck_assert_int_eq(
	    rig_status(&rig, rig_request(&rig, REQUEST_INFO, 0, 0)), STATUS_OK);
	ck_assert_int_eq(rig_status(&rig, rig_request(&rig, REQUEST_NONE, 0, 0)),
	    STATUS_INVALID_REQUEST);
}
END_TEST

START_TEST(what_codec_refused_is_only_counted_and_answered)
{
	struct request *req = rig_request(&rig, REQUEST_ENCAPS, HYBRID, 0);

	request_fail(req, STATUS_TOO_MANY_ITEMS, "too many");
	ck_assert_int_eq(rig_status(&rig, req), STATUS_TOO_MANY_ITEMS);
	ck_assert_str_eq(req->message, "too many");
	ck_assert_uint_eq(rig.metrics.requests_failed_total, 1);
}
END_TEST

START_TEST(a_deadline_that_is_over_spends_nothing)
{
	struct request *req = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 1), *late;
	uint8_t ct[1120];
	struct kem_shared shared;

	rig_serve(&rig, req);
	rig_encaps(&rig, HYBRID, req->items[0].out_share, ct, &shared);
	late = rig_request(&rig, REQUEST_DECAPS, HYBRID, 1);
	rig_bytes(&late->items[0].handle, req->items[0].out_handle, 16);
	rig_bytes(&late->items[0].ciphertext, ct, sizeof(ct));
	late->deadline_us = request_now_us();
	ck_assert_int_eq(rig_status(&rig, late), STATUS_DEADLINE_EXCEEDED);
	ck_assert_uint_eq(keytable_count(rig.keys), 1);
	ck_assert_uint_eq(rig.metrics.deadline_total, 1);
	ck_assert_uint_eq(rig.metrics.groups_total, 1);
}
END_TEST

START_TEST(release_counts_what_was_live_and_ours)
{
	struct request *made = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 4), *req;
	uint8_t unknown[17] = {0};

	ck_assert_int_eq(rig_status(&rig, made), STATUS_OK);
	req = rig_request(&rig, REQUEST_RELEASE, 0, 6);
	rig_bytes(&req->items[0].handle, made->items[0].out_handle, 16);
	rig_bytes(&req->items[1].handle, made->items[0].out_handle, 16);
	rig_bytes(&req->items[2].handle, made->items[1].out_handle, 15);
	rig_bytes(&req->items[3].handle, unknown, 17);
	rig_bytes(&req->items[4].handle, NULL, 0);
	rig_bytes(&req->items[5].handle, made->items[2].out_handle, 16);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	ck_assert_uint_eq(req->n_released, 2);
	ck_assert_uint_eq(keytable_count(rig.keys), 2);

	req = rig_request(&rig, REQUEST_RELEASE, 0, 1);
	req->conn_id++;
	rig_bytes(&req->items[0].handle, made->items[3].out_handle, 16);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	ck_assert_uint_eq(req->n_released, 0);
	service_conn_gone(&rig.service, RIG_CONN + 1);
	ck_assert_uint_eq(keytable_count(rig.keys), 2);
	service_conn_gone(&rig.service, RIG_CONN);
	ck_assert_uint_eq(keytable_count(rig.keys), 0);
}
END_TEST

START_TEST(draining_refuses_all_but_live_handles)
{
	struct request *made = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 1), *req;
	struct kem_shared shared;
	uint8_t ct[1120];

	rig_fill(&rig);
	ck_assert_int_eq(rig_status(&rig, made), STATUS_OK);
	rig_pair_make(&rig, HYBRID, &pair);
	rig_encaps(&rig, HYBRID, made->items[0].out_share, ct, &shared);
	rig.service.draining = true;
	ck_assert_int_eq(rig_status(&rig, rig_request(&rig, REQUEST_KEYGEN, HYBRID, 1)),
	    STATUS_DRAINING);
	req = rig_request(&rig, REQUEST_ENCAPS, HYBRID, 1);
	rig_bytes(&req->items[0].share, pair.share, 1216);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_DRAINING);
	req = rig_request(&rig, REQUEST_DECAPS, HYBRID, 1);
	rig_bytes(&req->items[0].private_key, pair.dk, 2432);
	rig_bytes(&req->items[0].ciphertext, ct, 1120);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_DRAINING);
	ck_assert_int_eq(
	    rig_status(&rig, rig_request(&rig, REQUEST_PING, 0, 0)), STATUS_OK);
	ck_assert_int_eq(
	    rig_status(&rig, rig_request(&rig, REQUEST_INFO, 0, 0)), STATUS_OK);

	req = rig_request(&rig, REQUEST_DECAPS, HYBRID, 2);
	rig_bytes(&req->items[0].private_key, pair.dk, 2432);
	rig_bytes(&req->items[0].ciphertext, ct, 1120);
	rig_bytes(&req->items[1].handle, made->items[0].out_handle, 16);
	rig_bytes(&req->items[1].ciphertext, ct, 1120);
	ck_assert_int_eq(rig_status(&rig, req), STATUS_OK);
	ck_assert_int_eq(req->items[0].status, STATUS_DRAINING);
	ck_assert_int_eq(req->items[1].status, STATUS_OK);
	ck_assert_mem_eq(req->items[1].out_secret, shared.bytes, 64);

	rig.service.draining = false;
	ck_assert_int_eq(
	    rig_status(&rig, rig_request(&rig, REQUEST_KEYGEN, HYBRID, 1)), STATUS_OK);
}
END_TEST

START_TEST(a_cancelled_request_is_answered_once_and_leaves_no_keys)
{
	struct request *made, *cancel, *foreign;

	rig_fill(&rig);
	made = rig_request(&rig, REQUEST_KEYGEN, HYBRID,
	    12); /* eight from the pool, four in the batch */
	made->id = 5;
	service_handle(&rig.service, made);
	ck_assert_uint_eq(rig.n_done, 0);
	ck_assert_uint_eq(keytable_count(rig.keys), 8);
	foreign = rig_request(&rig, REQUEST_CANCEL, 0, 0);
	foreign->cancel_id = 5;
	foreign->conn_id++;
	service_handle(&rig.service, foreign);
	ck_assert_int_eq(foreign->status, STATUS_OK);
	ck_assert_uint_eq(rig.n_done, 1); /* of another connection: nothing happens, */
	ck_assert_int_eq(batch_run(&rig.batch), 0);
	ck_assert_uint_eq(rig.n_done, 2); /* and the batch finishes it */
	ck_assert_int_eq(made->status, STATUS_OK);
	ck_assert_uint_eq(rig_count(made, STATUS_OK), 12);
	service_conn_gone(&rig.service, RIG_CONN);
	mem_wipe(&rig.mem);

	rig_fill(&rig);
	rig.n_done = 0;
	made = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 12);
	made->id = 5;
	service_handle(&rig.service, made);
	cancel = rig_request(&rig, REQUEST_CANCEL, 0, 0);
	cancel->id = 6;
	cancel->cancel_id = 5;
	service_handle(&rig.service, cancel);
	ck_assert_uint_eq(rig.n_done, 2);
	ck_assert_int_eq(made->status, STATUS_CANCELLED);
	ck_assert_int_eq(cancel->status, STATUS_OK);
	ck_assert_uint_eq(keytable_count(rig.keys), 0);
	ck_assert_int_eq(batch_run(&rig.batch), 0);
	ck_assert_uint_eq(rig.n_done, 2);
	/* Too late to cancel, and unknown: fine as well. */
	ck_assert_int_eq(
	    rig_status(&rig, rig_request(&rig, REQUEST_CANCEL, 0, 0)), STATUS_OK);
}
END_TEST

/* Full memory refuses the request, and nothing was taken for it. */
START_TEST(without_memory_nothing_is_spent)
{
	static const enum request_op ops[] = {
	    REQUEST_KEYGEN, REQUEST_ENCAPS, REQUEST_DECAPS};

	rig_fill(&rig);
	rig_pair_make(&rig, HYBRID, &pair);
	for (size_t i = 0; i < 3; i++) {
		struct request *req = rig_request(&rig, ops[i], HYBRID, 8);

		for (uint32_t j = 0; j < 8; j++)
			rig_bytes(&req->items[j].share, pair.share, 1216);
		ck_assert_ptr_nonnull(mem_alloc(&rig.mem, mem_room(&rig.mem) - 1024));
		ck_assert_int_eq(rig_status(&rig, req), STATUS_RESOURCE_EXHAUSTED);
		mem_wipe(&rig.mem);
	}
	ck_assert_uint_eq(rig.metrics.shed_total, 3);
	ck_assert_uint_eq(rig.metrics.pool_taken_total, 0);
	ck_assert_uint_eq(keytable_count(rig.keys), 0);
}
END_TEST

START_TEST(no_randomness_for_a_handle_stops_the_daemon)
{
	struct request *req = rig_request(&rig, REQUEST_KEYGEN, HYBRID, 1);

	if (!rig_hooks())
		return;
	rig_fill(&rig);
	rig_fault("rng-fail");
	service_handle(&rig.service, req);
	ck_assert_uint_eq(rig.n_done, 1);
	ck_assert_int_eq(req->items[0].status, STATUS_INTERNAL);
	ck_assert(rig_zero(req->items[0].secret, 1248));
	ck_assert_int_eq(batch_run(&rig.batch), KEM_FAIL_RNG);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("service");
	TCase *tc = tcase_create("service");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, hello_agrees_on_a_version);
	tcase_add_test(tc, control_operations_are_denied_on_the_data_socket);
	tcase_add_test(tc, what_codec_refused_is_only_counted_and_answered);
	tcase_add_test(tc, a_deadline_that_is_over_spends_nothing);
	tcase_add_test(tc, release_counts_what_was_live_and_ours);
	tcase_add_test(tc, draining_refuses_all_but_live_handles);
	tcase_add_test(tc, a_cancelled_request_is_answered_once_and_leaves_no_keys);
	tcase_add_test(tc, without_memory_nothing_is_spent);
	tcase_add_test(tc, no_randomness_for_a_handle_stops_the_daemon);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
