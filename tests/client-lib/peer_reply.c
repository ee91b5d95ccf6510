/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The honest answers, made of the request: whose a result is can be seen in it. */
#include <stdlib.h>
#include <string.h>

#include "kem/kem.h"
#include "peer.h"
#include "proto/wire.h"

/* Memory of a connection's process, which ends with it: nothing here is freed. */
static void *
zalloc(size_t size)
{
	void *p = calloc(1, size);

	if (p == NULL)
		abort();
	return p;
}

static ProtobufCBinaryData
filled(size_t len, const uint8_t *from, uint8_t mask)
{
	ProtobufCBinaryData data = {.len = len, .data = zalloc(len)};

	for (size_t i = 0; i < len; i++)
		data.data[i] = (uint8_t)(from[i % 32] ^ mask);
	return data;
}

bool
peer_secret_matches(const uint8_t *secret, size_t len, const uint8_t *input)
{
	for (size_t i = 0; i < len; i++)
		if (secret[i] != (input[i % 32] ^ 0x5a))
			return false;
	return true;
}

bool
is_zero(const void *p, size_t len)
{
	const uint8_t *bytes = p;

	for (size_t i = 0; i < len; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

static const struct kem_alg_info *
info_of(Mlkemd__V1__Algorithm algorithm)
{
	enum kem_alg alg;

	if (alg_from_public((enum mlkemclient_alg)algorithm, &alg) != 0)
		abort();
	return kem_alg_info(alg);
}

static size_t
secret_len(const Mlkemd__V1__Kdf *kdf, const struct kem_alg_info *info)
{
	return kdf != NULL ? kdf->length : info->shared_bytes;
}

static void
reply_keys(Mlkemd__V1__Response *response, const Mlkemd__V1__Request *request)
{
	const Mlkemd__V1__GenerateKeys *op = request->generate_keys;
	const struct kem_alg_info *info = info_of(op->algorithm);
	Mlkemd__V1__KeysResult *result = zalloc(sizeof(*result));

	mlkemd__v1__keys_result__init(result);
	result->n_items = op->count;
	result->items = zalloc(op->count * sizeof(void *));
	for (size_t i = 0; i < op->count; i++) {
		Mlkemd__V1__KeyItem *item = zalloc(sizeof(*item));
		uint8_t from[32];

		for (size_t j = 0; j < sizeof(from); j++)
			from[j] = (uint8_t)((request->id * 64 + i) >> (8 * (j % 4)) ^
					    (j * 37 + 5));
		mlkemd__v1__key_item__init(item);
		item->share = filled(info->share_bytes, from, 0x01);
		if (op->export_private)
			item->private_key = filled(info->dk_bytes, from, 0x02);
		else
			item->handle = filled(WIRE_HANDLE_BYTES, from, 0x03);
		result->items[i] = item;
	}
	response->keys = result;
	response->result_case = MLKEMD__V1__RESPONSE__RESULT_KEYS;
}

static void
reply_encaps(Mlkemd__V1__Response *response, const Mlkemd__V1__Encapsulate *op)
{
	const struct kem_alg_info *info = info_of(op->algorithm);
	Mlkemd__V1__EncapsulateResult *result = zalloc(sizeof(*result));

	mlkemd__v1__encapsulate_result__init(result);
	result->n_items = op->n_shares;
	result->items = zalloc(op->n_shares * sizeof(void *));
	for (size_t i = 0; i < op->n_shares; i++) {
		Mlkemd__V1__EncapsulatedItem *item = zalloc(sizeof(*item));

		mlkemd__v1__encapsulated_item__init(item);
		item->ciphertext = filled(info->ct_bytes, op->shares[i].data, 0x04);
		item->secret =
		    filled(secret_len(op->kdf, info), op->shares[i].data, 0x5a);
		result->items[i] = item;
	}
	response->encapsulated = result;
	response->result_case = MLKEMD__V1__RESPONSE__RESULT_ENCAPSULATED;
}

static void
reply_decaps(Mlkemd__V1__Response *response, const Mlkemd__V1__Decapsulate *op)
{
	const struct kem_alg_info *info = info_of(op->algorithm);
	Mlkemd__V1__DecapsulateResult *result = zalloc(sizeof(*result));

	mlkemd__v1__decapsulate_result__init(result);
	result->n_items = op->n_items;
	result->items = zalloc(op->n_items * sizeof(void *));
	for (size_t i = 0; i < op->n_items; i++) {
		Mlkemd__V1__DecapsulatedItem *item = zalloc(sizeof(*item));

		mlkemd__v1__decapsulated_item__init(item);
		item->secret = filled(
		    secret_len(op->kdf, info), op->items[i]->ciphertext.data, 0x5a);
		result->items[i] = item;
	}
	response->decapsulated = result;
	response->result_case = MLKEMD__V1__RESPONSE__RESULT_DECAPSULATED;
}

static void
reply_about(Mlkemd__V1__Response *response, const Mlkemd__V1__Request *request)
{
	static char version[] = "9.9.9", backend[] = "peer", memory[] = "off";

	if (request->op_case == MLKEMD__V1__REQUEST__OP_HELLO) {
		response->hello = zalloc(sizeof(*response->hello));
		mlkemd__v1__hello_result__init(response->hello);
		response->hello->version = 1;
		response->hello->connection = 77;
		response->result_case = MLKEMD__V1__RESPONSE__RESULT_HELLO;
	} else if (request->op_case == MLKEMD__V1__REQUEST__OP_INFO) {
		response->info = zalloc(sizeof(*response->info));
		mlkemd__v1__info_result__init(response->info);
		response->info->server_version = version;
		response->info->backend = backend;
		response->info->secret_memory = memory;
		response->info->lanes = 8;
		response->result_case = MLKEMD__V1__RESPONSE__RESULT_INFO;
	} else if (request->op_case == MLKEMD__V1__REQUEST__OP_RELEASE) {
		response->released = zalloc(sizeof(*response->released));
		mlkemd__v1__release_result__init(response->released);
		response->released->released = 1;
		response->result_case = MLKEMD__V1__RESPONSE__RESULT_RELEASED;
	}
}

uint8_t *
peer_frame_of(const Mlkemd__V1__Response *response, size_t *lenp)
{
	size_t len = mlkemd__v1__response__get_packed_size(response);
	uint8_t *frame = zalloc(WIRE_HEADER_BYTES + len);

	wire_put_length(frame, (uint32_t)len);
	mlkemd__v1__response__pack(response, frame + WIRE_HEADER_BYTES);
	*lenp = WIRE_HEADER_BYTES + len;
	return frame;
}

uint8_t *
peer_reply(const Mlkemd__V1__Request *request,
    void (*tamper)(Mlkemd__V1__Response *response), size_t *lenp)
{
	Mlkemd__V1__Response response = MLKEMD__V1__RESPONSE__INIT;

	response.id = request->id;
	switch (request->op_case) {
	case MLKEMD__V1__REQUEST__OP_GENERATE_KEYS:
		reply_keys(&response, request);
		break;
	case MLKEMD__V1__REQUEST__OP_ENCAPSULATE:
		reply_encaps(&response, request->encapsulate);
		break;
	case MLKEMD__V1__REQUEST__OP_DECAPSULATE:
		reply_decaps(&response, request->decapsulate);
		break;
	default:
		reply_about(&response, request);
		break;
	}
	if (tamper != NULL)
		tamper(&response);
	return peer_frame_of(&response, lenp);
}
