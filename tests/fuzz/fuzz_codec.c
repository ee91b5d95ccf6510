/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message to a request, and an answer to it back to bytes. Whatever was decoded, the
 * answer fits its bound, its size is as foretold, and protobuf reads it.
 */
#include "daemon/codec.h"
#include "daemon/metrics.h"
#include "daemon/service.h"
#include "mlkemd.pb-c.h"
#include "proto/wire.h"
#include "target.h"

#define ANSWER_MAX (2u * 1024u * 1024u)

static uint8_t *memory, *answer;
static struct metrics_shard metrics;

struct sink {
	struct codec_sink base;
	size_t len;
};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	memory = aligned_alloc(64, CODEC_MEM_BYTES);
	answer = malloc(ANSWER_MAX);
	if (!memory || !answer)
		return 1;
	memset(memory, 0, CODEC_MEM_BYTES);
	return 0;
}

static void
sink_append(struct codec_sink *base, const uint8_t *data, size_t len)
{
	struct sink *sink = (struct sink *)base;

	fuzz_require(sink->len + len <= ANSWER_MAX);
	memcpy(answer + sink->len, data, len);
	sink->len += len;
}

static uint8_t *
output(struct request *req, size_t size)
{
	return mem_alloc(req->mem, size);
}

/* Gives good items the outputs that service and batch would have given them. */
static void
items_finish(struct request *req)
{
	for (uint32_t i = 0; i < req->n_items; i++) {
		const struct kem_alg_info *alg = kem_alg_info(req->alg);
		struct request_item *item = &req->items[i];

		if (item->status != STATUS_OK)
			continue;
		if (i % 5 == 4) {
			request_item_fail(item, STATUS_BAD_SHARE, "item %u", i);
			continue;
		}
		if (req->op == REQUEST_KEYGEN) {
			item->out_share = output(req, alg->share_bytes);
			if (req->export_private)
				item->out_dk = output(req, alg->dk_bytes);
			else
				item->out_handle = output(req, WIRE_HANDLE_BYTES);
			fuzz_require(item->out_share);
		} else if (req->op == REQUEST_ENCAPS || req->op == REQUEST_DECAPS) {
			item->out_secret = output(req, req->secret_bytes);
			fuzz_require(item->out_secret);
			if (req->op == REQUEST_ENCAPS)
				item->out_ciphertext = output(req, alg->ct_bytes);
		}
	}
}

static void
answer_check(struct request *req, size_t bound)
{
	const struct metrics_shard *shards[] = {&metrics};
	const struct codec_about about = {.server_version = "fuzz",
	    .backend = "generic",
	    .secret_memory = "off",
	    .lanes = 1,
	    .shards = 1,
	    .metrics = shards,
	    .n_metrics = 1,
	    .selftest_step = "keygen"};
	struct sink sink = {.base = {.append = sink_append}};
	size_t size = codec_encoded_size(req, &about);

	codec_encode(req, &about, &sink.base);
	fuzz_require(sink.len == size);
	fuzz_require(size <= bound);
	fuzz_require(wire_get_length(answer) == size - WIRE_HEADER_BYTES);
	Mlkemd__V1__Response *response = mlkemd__v1__response__unpack(
	    NULL, size - WIRE_HEADER_BYTES, answer + WIRE_HEADER_BYTES);
	fuzz_require(response);
	fuzz_require(response->id == req->id);
	fuzz_require((int)response->status == (int)req->status);
	mlkemd__v1__response__free_unpacked(response, NULL);
}

static const char *
point_of(const struct request *req)
{
	switch (req->op) {
	case REQUEST_KEYGEN:
		return "codec-keygen";
	case REQUEST_ENCAPS:
		return req->kdf.used ? "codec-kdf" : "codec-encaps";
	case REQUEST_DECAPS:
		return "codec-decaps";
	default:
		return "codec-other";
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_prescan prescan;
	struct mem mem;
	struct request *req = NULL;

	if (size == 0 || size > WIRE_MAX_FRAME_BYTES)
		return 0;
	mem_init(&mem, memory, CODEC_MEM_BYTES);
	fuzz_require(codec_mem_fits(&mem, size));
	int scan = wire_prescan(data, size, &prescan);
	int r = codec_decode(&mem, data, size, 1, 1000, &req);
	/* What the look ahead refuses is never decoded. */
	fuzz_require(r == 0 || r == CODEC_E_BROKEN);
	fuzz_require(scan == 0 || r == CODEC_E_BROKEN);
	if (r == 0) {
		size_t bound = service_reply_bound(req);

		fuzz_require(req->n_items <= WIRE_MAX_ITEMS);
		if (req->status == STATUS_OK) {
			fuzz_point(point_of(req));
			items_finish(req);
		} else {
			fuzz_point("codec-refused");
		}
		answer_check(req, bound);
	}
	mem_wipe(&mem);
	for (size_t i = 0; i < CODEC_MEM_BYTES; i += 997)
		fuzz_require(memory[i] == 0);
	return 0;
}
