/* SPDX-License-Identifier: Apache-2.0 */
/* A finished request to bytes. */
#include "codec.h"

#include "metrics.h"
#include "mlkemd.pb-c.h"
#include "proto/wire.h"

#define STATUS_AGREES(name)                                            \
 _Static_assert((int)STATUS_##name == (int)MLKEMD__V1__STATUS__##name, \
     "request.h and mlkemd.proto disagree on " #name)

STATUS_AGREES(OK);
STATUS_AGREES(INVALID_REQUEST);
STATUS_AGREES(UNSUPPORTED);
STATUS_AGREES(TOO_MANY_ITEMS);
STATUS_AGREES(DENIED);
STATUS_AGREES(EXPORT_DISABLED);
STATUS_AGREES(BAD_LENGTH);
STATUS_AGREES(BAD_SHARE);
STATUS_AGREES(BAD_KEY);
STATUS_AGREES(ALGORITHM_MISMATCH);
STATUS_AGREES(ZERO_X25519);
STATUS_AGREES(KEY_NOT_FOUND);
STATUS_AGREES(RESOURCE_EXHAUSTED);
STATUS_AGREES(DEADLINE_EXCEEDED);
STATUS_AGREES(DRAINING);
STATUS_AGREES(CANCELLED);
STATUS_AGREES(INTERNAL);

/*
 * One answer as protobuf-c wants it: structs that point to where the request's outputs
 * lie. No secret is copied into it, nor by packing it: bytes fields go to the sink from
 * their place in codec memory.
 */
struct answer {
	Mlkemd__V1__Response response;
	Mlkemd__V1__Load load;
	Mlkemd__V1__Limits limits;
	union {
		Mlkemd__V1__HelloResult hello;
		Mlkemd__V1__InfoResult info;
		Mlkemd__V1__KeysResult keys;
		Mlkemd__V1__EncapsulateResult encapsulated;
		Mlkemd__V1__DecapsulateResult decapsulated;
		Mlkemd__V1__ReleaseResult released;
		Mlkemd__V1__StatsResult stats;
		Mlkemd__V1__SelfTestResult self_test;
	};
	union {
		Mlkemd__V1__KeyItem key[WIRE_MAX_ITEMS];
		Mlkemd__V1__EncapsulatedItem encapsulated[WIRE_MAX_ITEMS];
		Mlkemd__V1__DecapsulatedItem decapsulated[WIRE_MAX_ITEMS];
		Mlkemd__V1__Counter counter[METRICS_N_FIELDS];
	} items;
	union {
		Mlkemd__V1__KeyItem *key[WIRE_MAX_ITEMS];
		Mlkemd__V1__EncapsulatedItem *encapsulated[WIRE_MAX_ITEMS];
		Mlkemd__V1__DecapsulatedItem *decapsulated[WIRE_MAX_ITEMS];
		Mlkemd__V1__Counter *counter[METRICS_N_FIELDS];
	} pointers;
};

static Mlkemd__V1__Algorithm answer_algorithms[] = {
    MLKEMD__V1__ALGORITHM__X25519MLKEM768,
    MLKEMD__V1__ALGORITHM__ML_KEM_512,
    MLKEMD__V1__ALGORITHM__ML_KEM_768,
    MLKEMD__V1__ALGORITHM__ML_KEM_1024,
};
#define N_ALGORITHMS (sizeof(answer_algorithms) / sizeof(answer_algorithms[0]))

/* protobuf-c's structs are not const, though packing changes nothing. */
static char *
text(const char *s)
{
	return (char *)(s != NULL ? s : protobuf_c_empty_string);
}

static ProtobufCBinaryData
bytes(uint8_t *data, size_t len)
{
	return (ProtobufCBinaryData){.len = data != NULL ? len : 0, .data = data};
}

static void
limits_fill(Mlkemd__V1__Limits *limits, const struct codec_about *about)
{
	mlkemd__v1__limits__init(limits);
	limits->max_items = WIRE_MAX_ITEMS;
	limits->max_frame_bytes = WIRE_MAX_FRAME_BYTES;
	limits->max_kdf_bytes = WIRE_MAX_KDF_BYTES;
	limits->max_handles = about->max_handles;
	limits->handle_lifetime_ms = about->handle_lifetime_ms;
	limits->default_timeout_us = about->default_timeout_us;
	limits->export_allowed = about->export_allowed;
}

static void
hello_fill(struct answer *answer, const struct codec_about *about)
{
	limits_fill(&answer->limits, about);
	mlkemd__v1__hello_result__init(&answer->hello);
	answer->hello.version = WIRE_VERSION;
	answer->hello.server_version = text(about->server_version);
	answer->hello.connection = about->connection;
	answer->hello.backend = text(about->backend);
	answer->hello.n_algorithms = N_ALGORITHMS;
	answer->hello.algorithms = answer_algorithms;
	answer->hello.limits = &answer->limits;
	answer->response.result_case = MLKEMD__V1__RESPONSE__RESULT_HELLO;
	answer->response.hello = &answer->hello;
}

static void
info_fill(struct answer *answer, const struct codec_about *about)
{
	Mlkemd__V1__InfoResult *info = &answer->info;

	limits_fill(&answer->limits, about);
	mlkemd__v1__info_result__init(info);
	info->server_version = text(about->server_version);
	info->backend = text(about->backend);
	info->lanes = about->lanes;
	info->secret_memory = text(about->secret_memory);
	info->n_algorithms = N_ALGORITHMS;
	info->algorithms = answer_algorithms;
	info->limits = &answer->limits;
	info->shards = about->shards;
	info->shard = about->shard;
	info->uptime_s = about->uptime_s;
	info->pool_hybrid = about->pool_hybrid;
	info->pool_mlkem768 = about->pool_mlkem768;
	info->pool_x25519 = about->pool_x25519;
	answer->response.result_case = MLKEMD__V1__RESPONSE__RESULT_INFO;
	answer->response.info = info;
}

static void
keys_fill(struct answer *answer, const struct request *req)
{
	const struct kem_alg_info *alg = kem_alg_info(req->alg);

	for (uint32_t i = 0; i < req->n_items; i++) {
		const struct request_item *item = &req->items[i];
		Mlkemd__V1__KeyItem *out = &answer->items.key[i];

		mlkemd__v1__key_item__init(out);
		answer->pointers.key[i] = out;
		out->status = (Mlkemd__V1__Status)item->status;
		out->message = text(item->message);
		if (item->status != STATUS_OK)
			continue;
		out->share = bytes(item->out_share, alg->share_bytes);
		out->handle = bytes(item->out_handle, WIRE_HANDLE_BYTES);
		out->private_key = bytes(item->out_dk, alg->dk_bytes);
	}
	mlkemd__v1__keys_result__init(&answer->keys);
	answer->keys.n_items = req->n_items;
	answer->keys.items = answer->pointers.key;
	answer->response.result_case = MLKEMD__V1__RESPONSE__RESULT_KEYS;
	answer->response.keys = &answer->keys;
}

static void
encapsulated_fill(struct answer *answer, const struct request *req)
{
	for (uint32_t i = 0; i < req->n_items; i++) {
		const struct request_item *item = &req->items[i];
		Mlkemd__V1__EncapsulatedItem *out = &answer->items.encapsulated[i];

		mlkemd__v1__encapsulated_item__init(out);
		answer->pointers.encapsulated[i] = out;
		out->status = (Mlkemd__V1__Status)item->status;
		out->message = text(item->message);
		if (item->status != STATUS_OK)
			continue;
		out->ciphertext =
		    bytes(item->out_ciphertext, kem_alg_info(req->alg)->ct_bytes);
		out->secret = bytes(item->out_secret, req->secret_bytes);
	}
	mlkemd__v1__encapsulate_result__init(&answer->encapsulated);
	answer->encapsulated.n_items = req->n_items;
	answer->encapsulated.items = answer->pointers.encapsulated;
	answer->response.result_case = MLKEMD__V1__RESPONSE__RESULT_ENCAPSULATED;
	answer->response.encapsulated = &answer->encapsulated;
}

static void
decapsulated_fill(struct answer *answer, const struct request *req)
{
	for (uint32_t i = 0; i < req->n_items; i++) {
		const struct request_item *item = &req->items[i];
		Mlkemd__V1__DecapsulatedItem *out = &answer->items.decapsulated[i];

		mlkemd__v1__decapsulated_item__init(out);
		answer->pointers.decapsulated[i] = out;
		out->status = (Mlkemd__V1__Status)item->status;
		out->message = text(item->message);
		if (item->status == STATUS_OK)
			out->secret = bytes(item->out_secret, req->secret_bytes);
	}
	mlkemd__v1__decapsulate_result__init(&answer->decapsulated);
	answer->decapsulated.n_items = req->n_items;
	answer->decapsulated.items = answer->pointers.decapsulated;
	answer->response.result_case = MLKEMD__V1__RESPONSE__RESULT_DECAPSULATED;
	answer->response.decapsulated = &answer->decapsulated;
}

static void
released_fill(struct answer *answer, const struct request *req)
{
	mlkemd__v1__release_result__init(&answer->released);
	answer->released.released = req->n_released;
	answer->response.result_case = MLKEMD__V1__RESPONSE__RESULT_RELEASED;
	answer->response.released = &answer->released;
}

static void
stats_fill(struct answer *answer, const struct codec_about *about)
{
	for (unsigned i = 0; i < METRICS_N_FIELDS; i++) {
		Mlkemd__V1__Counter *out = &answer->items.counter[i];
		const char *name;

		mlkemd__v1__counter__init(out);
		answer->pointers.counter[i] = out;
		out->value = metrics_sum(about->metrics, about->n_metrics, i, &name);
		out->name = text(name);
	}
	mlkemd__v1__stats_result__init(&answer->stats);
	answer->stats.n_counters = METRICS_N_FIELDS;
	answer->stats.counters = answer->pointers.counter;
	answer->response.result_case = MLKEMD__V1__RESPONSE__RESULT_STATS;
	answer->response.stats = &answer->stats;
}

static void
self_test_fill(struct answer *answer, const struct codec_about *about)
{
	mlkemd__v1__self_test_result__init(&answer->self_test);
	answer->self_test.passed = about->selftest_passed;
	answer->self_test.backend = text(about->backend);
	answer->self_test.failed_step = text(about->selftest_step);
	answer->response.result_case = MLKEMD__V1__RESPONSE__RESULT_SELF_TEST;
	answer->response.self_test = &answer->self_test;
}

static void
result_fill(
    struct answer *answer, const struct request *req, const struct codec_about *about)
{
	switch (req->op) {
	case REQUEST_HELLO:
		hello_fill(answer, about);
		break;
	case REQUEST_INFO:
		info_fill(answer, about);
		break;
	case REQUEST_KEYGEN:
		keys_fill(answer, req);
		break;
	case REQUEST_ENCAPS:
		encapsulated_fill(answer, req);
		break;
	case REQUEST_DECAPS:
		decapsulated_fill(answer, req);
		break;
	case REQUEST_RELEASE:
		released_fill(answer, req);
		break;
	case REQUEST_STATS:
		stats_fill(answer, about);
		break;
	case REQUEST_SELFTEST:
		self_test_fill(answer, about);
		break;
	default:
		break; /* the status says it all */
	}
}

static void
answer_fill(
    struct answer *answer, const struct request *req, const struct codec_about *about)
{
	mlkemd__v1__load__init(&answer->load);
	answer->load.batch_fill_milli = about->batch_fill_milli;
	answer->load.service_us = about->service_us;
	answer->load.draining = about->draining;

	mlkemd__v1__response__init(&answer->response);
	answer->response.id = req->id;
	answer->response.status = (Mlkemd__V1__Status)req->status;
	answer->response.message = text(req->message);
	answer->response.load = &answer->load;
	if (req->status == STATUS_OK)
		result_fill(answer, req, about);
}

size_t
codec_encoded_size(const struct request *req, const struct codec_about *about)
{
	struct answer answer;

	answer_fill(&answer, req, about);
	return WIRE_HEADER_BYTES +
	       mlkemd__v1__response__get_packed_size(&answer.response);
}

struct sink_buffer {
	ProtobufCBuffer base;
	struct codec_sink *sink;
};

static void
sink_append(ProtobufCBuffer *base, size_t len, const uint8_t *data)
{
	struct codec_sink *sink = ((struct sink_buffer *)base)->sink;

	if (len > 0)
		sink->append(sink, data, len);
}

void
codec_encode(
    const struct request *req, const struct codec_about *about, struct codec_sink *sink)
{
	struct sink_buffer buffer = {{sink_append}, sink};
	struct answer answer;
	uint8_t header[WIRE_HEADER_BYTES];

	answer_fill(&answer, req, about);
	wire_put_length(
	    header, (uint32_t)mlkemd__v1__response__get_packed_size(&answer.response));
	sink->append(sink, header, sizeof(header));
	mlkemd__v1__response__pack_to_buffer(&answer.response, &buffer.base);
}
