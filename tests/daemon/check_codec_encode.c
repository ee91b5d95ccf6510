/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mlkemd.pb-c.h"
#include "proto/wire.h"
#include "rig.h"

static struct rig rig;
static struct codec_about about;

static void
setup(void)
{
	static const struct metrics_shard *shards[1];

	rig_open(&rig, 0);
	rig.config.export_private = true;
	shards[0] = &rig.metrics;
	about = (struct codec_about){.server_version = "1.2.3",
	    .backend = "generic",
	    .secret_memory = "mlock",
	    .lanes = 8,
	    .shards = 4,
	    .shard = 3,
	    .connection = UINT64_MAX,
	    .uptime_s = UINT64_MAX,
	    .max_handles = UINT32_MAX,
	    .handle_lifetime_ms = 60000,
	    .default_timeout_us = UINT64_MAX,
	    .export_allowed = true,
	    .draining = true,
	    .batch_fill_milli = UINT32_MAX,
	    .service_us = UINT32_MAX,
	    .pool_hybrid = 1024,
	    .pool_mlkem768 = 256,
	    .pool_x25519 = UINT32_MAX,
	    .metrics = shards,
	    .n_metrics = 1,
	    .selftest_step = "keygen"};
}

static void
teardown(void)
{
	rig_close(&rig);
}

struct collector {
	struct codec_sink base;
	uint8_t data[WIRE_MAX_FRAME_BYTES];
	size_t len;
};

static struct collector out;

static void
collect(struct codec_sink *sink, const uint8_t *data, size_t len)
{
	struct collector *collector = (struct collector *)sink;

	ck_assert_uint_gt(len, 0);
	ck_assert_uint_le(collector->len + len, sizeof(collector->data));
	memcpy(collector->data + collector->len, data, len);
	collector->len += len;
}

/* The answer as a client would see it; its size as promised before. */
static Mlkemd__V1__Response *
answer(const struct request *req, size_t bound)
{
	Mlkemd__V1__Response *response;
	struct wire_prescan seen;

	out = (struct collector){.base.append = collect};
	codec_encode(req, &about, &out.base);
	ck_assert_uint_eq(out.len, codec_encoded_size(req, &about));
	ck_assert_uint_le(out.len, bound);
	ck_assert_uint_eq(wire_get_length(out.data), out.len - 4);
	ck_assert_int_eq(wire_prescan_response(out.data + 4, out.len - 4, &seen), 0);
	response = mlkemd__v1__response__unpack(NULL, out.len - 4, out.data + 4);
	ck_assert_ptr_nonnull(response);
	ck_assert_uint_eq(response->id, req->id);
	ck_assert_int_eq((int)response->status, (int)req->status);
	ck_assert_uint_eq(response->load->batch_fill_milli, UINT32_MAX);
	ck_assert_uint_eq(response->load->service_us, UINT32_MAX);
	ck_assert(response->load->draining);
	return response;
}

/* Serves req and encodes its answer, within the bound that was told before. */
static Mlkemd__V1__Response *
serve(struct request *req)
{
	size_t bound = service_reply_bound(req);

	req->id = UINT64_MAX;
	rig_serve(&rig, req);
	return answer(req, bound);
}

static void
forget(Mlkemd__V1__Response *response)
{
	mlkemd__v1__response__free_unpacked(response, NULL);
	mem_wipe(&rig.mem);
}

START_TEST(hello_tells_what_there_is)
{
	struct request *req = rig_request(&rig, REQUEST_HELLO, 0, 0);
	Mlkemd__V1__Response *response;

	req->min_version = 0;
	req->max_version = 9;
	response = serve(req);
	ck_assert_int_eq(response->result_case, MLKEMD__V1__RESPONSE__RESULT_HELLO);
	ck_assert_uint_eq(response->hello->version, 1);
	ck_assert_str_eq(response->hello->server_version, "1.2.3");
	ck_assert_str_eq(response->hello->backend, "generic");
	ck_assert_uint_eq(response->hello->connection, UINT64_MAX);
	ck_assert_uint_eq(response->hello->n_algorithms, 4);
	ck_assert_int_eq((int)response->hello->algorithms[0], 4588);
	ck_assert_uint_eq(response->hello->limits->max_items, 64);
	ck_assert_uint_eq(response->hello->limits->max_frame_bytes, 524288);
	ck_assert_uint_eq(response->hello->limits->max_kdf_bytes, 65536);
	ck_assert_uint_eq(response->hello->limits->max_handles, UINT32_MAX);
	ck_assert_uint_eq(response->hello->limits->handle_lifetime_ms, 60000);
	ck_assert_uint_eq(response->hello->limits->default_timeout_us, UINT64_MAX);
	ck_assert(response->hello->limits->export_allowed);
	forget(response);
}
END_TEST

START_TEST(info_tells_more)
{
	Mlkemd__V1__Response *response = serve(rig_request(&rig, REQUEST_INFO, 0, 0));

	ck_assert_int_eq(response->result_case, MLKEMD__V1__RESPONSE__RESULT_INFO);
	ck_assert_str_eq(response->info->secret_memory, "mlock");
	ck_assert_uint_eq(response->info->lanes, 8);
	ck_assert_uint_eq(response->info->shards, 4);
	ck_assert_uint_eq(response->info->shard, 3);
	ck_assert_uint_eq(response->info->uptime_s, UINT64_MAX);
	ck_assert_uint_eq(response->info->pool_hybrid, 1024);
	ck_assert_uint_eq(response->info->pool_mlkem768, 256);
	ck_assert_uint_eq(response->info->pool_x25519, UINT32_MAX);
	forget(response);
}
END_TEST

START_TEST(ping_is_answered_with_nothing)
{
	Mlkemd__V1__Response *response = serve(rig_request(&rig, REQUEST_PING, 0, 0));

	ck_assert_int_eq(response->status, STATUS_OK);
	ck_assert_int_eq(response->result_case, 0);
	ck_assert_str_eq(response->message, "");
	forget(response);
}
END_TEST

START_TEST(stats_and_self_test_are_for_the_control_socket)
{
	struct request *req = rig_request(&rig, REQUEST_STATS, 0, 0);
	Mlkemd__V1__Response *response;

	req->control = true;
#define SET(field, name, help) metrics_set(&rig.metrics.field, UINT64_MAX - 1);
	METRICS_FIELDS(SET)
#undef SET
	response = serve(req);
	ck_assert_uint_eq(response->stats->n_counters, METRICS_N_FIELDS);
	ck_assert_str_eq(response->stats->counters[0]->name, "connections");
	ck_assert_uint_eq(response->stats->counters[0]->value, UINT64_MAX - 1);
	forget(response);

	req = rig_request(&rig, REQUEST_SELFTEST, 0, 0);
	req->control = true;
	response = serve(req);
	ck_assert(!response->self_test->passed);
	ck_assert_str_eq(response->self_test->failed_step, "keygen");
	forget(response);

	response = serve(rig_request(&rig, REQUEST_STATS, 0, 0));
	ck_assert_int_eq(response->status, STATUS_DENIED);
	ck_assert_int_eq(response->result_case, 0);
	forget(response);
}
END_TEST

/* Each algorithm, exported or by handle, one item and as many as may be. */
START_TEST(keys_come_out)
{
	enum kem_alg alg = (enum kem_alg)(_i / 2);
	bool export = _i % 2;
	const struct kem_alg_info *info = kem_alg_info(alg);

	for (uint32_t n = 1; n <= 64; n += 63) {
		struct request *req = rig_request(&rig, REQUEST_KEYGEN, alg, n);
		Mlkemd__V1__Response *response;

		req->export_private = export;
		response = serve(req);
		ck_assert_uint_eq(response->keys->n_items, n);
		for (uint32_t i = 0; i < n; i++) {
			const Mlkemd__V1__KeyItem *item = response->keys->items[i];

			if (!export && i >= RIG_KEYS) {
				ck_assert_int_eq(
				    item->status, STATUS_RESOURCE_EXHAUSTED);
				ck_assert_uint_eq(item->share.len, 0);
				ck_assert_uint_gt(strlen(item->message), 0);
				continue;
			}
			ck_assert_int_eq(item->status, STATUS_OK);
			ck_assert_uint_eq(item->share.len, info->share_bytes);
			ck_assert_mem_eq(item->share.data, req->items[i].out_share,
			    info->share_bytes);
			ck_assert_uint_eq(item->handle.len, export ? 0 : 16);
			ck_assert_uint_eq(
			    item->private_key.len, export ? info->dk_bytes : 0);
		}
		forget(response);
		keytable_conn_gone(rig.keys, RIG_CONN);
	}
}
END_TEST

START_TEST(secrets_come_out_whole_and_only_of_good_items)
{
	enum kem_alg alg = (enum kem_alg)(_i / 2);
	bool kdf = _i % 2;
	const struct kem_alg_info *info = kem_alg_info(alg);
	struct rig_pair pair;
	struct request *req;
	Mlkemd__V1__Response *response;

	rig_pair_make(&rig, alg, &pair);
	req = rig_request(&rig, REQUEST_ENCAPS, alg, 64);
	for (uint32_t i = 0; i < 64; i++)
		rig_bytes(&req->items[i].share, pair.share, info->share_bytes - i % 2);
	if (kdf) {
		req->kdf = (struct request_kdf){.used = true, .length = 1024};
		req->secret_bytes = 1024;
	}
	response = serve(req);
	ck_assert_uint_eq(response->encapsulated->n_items, 64);
	for (uint32_t i = 0; i < 64; i++) {
		const Mlkemd__V1__EncapsulatedItem *item =
		    response->encapsulated->items[i];

		ck_assert_int_eq(item->status, i % 2 ? STATUS_BAD_LENGTH : STATUS_OK);
		ck_assert_uint_eq(item->ciphertext.len, i % 2 ? 0 : info->ct_bytes);
		ck_assert_uint_eq(
		    item->secret.len, i % 2 ? 0 : (kdf ? 1024 : info->shared_bytes));
		if (i % 2 == 0)
			ck_assert_mem_eq(item->secret.data, req->items[i].out_secret,
			    item->secret.len);
		else
			ck_assert_uint_le(strlen(item->message), WIRE_MAX_MESSAGE_TEXT);
	}
	forget(response);
}
END_TEST

START_TEST(decapsulated_and_released_come_out)
{
	struct rig_pair pair;
	struct kem_shared shared;
	uint8_t ct[KEM_CT_MAX];
	struct request *req;
	Mlkemd__V1__Response *response;

	rig_pair_make(&rig, KEM_ALG_MLKEM512, &pair);
	rig_encaps(&rig, KEM_ALG_MLKEM512, pair.share, ct, &shared);
	req = rig_request(&rig, REQUEST_DECAPS, KEM_ALG_MLKEM512, 2);
	rig_bytes(&req->items[0].private_key, pair.dk, 1632);
	rig_bytes(&req->items[0].ciphertext, ct, 768);
	rig_bytes(&req->items[1].private_key, pair.dk, 1632);
	rig_bytes(&req->items[1].ciphertext, ct, 767);
	response = serve(req);
	ck_assert_uint_eq(response->decapsulated->n_items, 2);
	ck_assert_uint_eq(response->decapsulated->items[0]->secret.len, 32);
	ck_assert_mem_eq(
	    response->decapsulated->items[0]->secret.data, shared.bytes, 32);
	ck_assert_int_eq(response->decapsulated->items[1]->status, STATUS_BAD_LENGTH);
	ck_assert_uint_eq(response->decapsulated->items[1]->secret.len, 0);
	forget(response);

	req = rig_request(&rig, REQUEST_RELEASE, 0, 0);
	req->n_released = 5;
	response = serve(req);
	ck_assert_uint_eq(response->released->released, 5);
	forget(response);
}
END_TEST

/* Whatever has no result, and texts as long as they may be. */
START_TEST(a_refused_request_has_a_status_and_a_text)
{
	struct request *req = rig_request(&rig, REQUEST_ENCAPS, 0, 64);
	Mlkemd__V1__Response *response;
	char text[400];

	memset(text, 'm', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	request_fail(req, STATUS_INVALID_REQUEST, "%s", text);
	response = serve(req);
	ck_assert_int_eq(response->result_case, 0);
	ck_assert_uint_eq(strlen(response->message), WIRE_MAX_MESSAGE_TEXT);
	forget(response);

	/* Every item with such a text: still within the bound. */
	req = rig_request(&rig, REQUEST_DECAPS, KEM_ALG_MLKEM512, 64);
	for (uint32_t i = 0; i < 64; i++)
		request_item_fail(
		    &req->items[i], STATUS_RESOURCE_EXHAUSTED, "%s", text);
	forget(answer(req, service_reply_bound(req)));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("codec_encode");
	TCase *tc = tcase_create("encode");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, hello_tells_what_there_is);
	tcase_add_test(tc, info_tells_more);
	tcase_add_test(tc, ping_is_answered_with_nothing);
	tcase_add_test(tc, stats_and_self_test_are_for_the_control_socket);
	tcase_add_loop_test(tc, keys_come_out, 0, 2 * KEM_N_ALGS);
	tcase_add_loop_test(
	    tc, secrets_come_out_whole_and_only_of_good_items, 0, 2 * KEM_N_ALGS);
	tcase_add_test(tc, decapsulated_and_released_come_out);
	tcase_add_test(tc, a_refused_request_has_a_status_and_a_text);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
