/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_message.h"

#include <stdio.h>
#include <string.h>

#include "mlkemd.pb-c.h"

int
bench_values_make(struct bench_values *values, enum mlkemclient_alg alg)
{
	struct mlkemclient_options options = {
	    .size = sizeof(options), .route = MLKEMCLIENT_ROUTE_LOCAL};
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	struct mlkemclient_key *key = NULL;
	struct mlkemclient *client;
	int error;

	values->alg = alg;
	error = mlkemclient_get_sizes(alg, &values->sizes);
	if (!error)
		error = mlkemclient_new(&client, &options);
	if (error)
		return error;
	error =
	    mlkemclient_keygen(client, alg, values->share, values->sizes.share, &key);
	if (!error)
		error = mlkemclient_encaps(client, alg, values->share,
		    values->sizes.share, values->ciphertext, values->sizes.ciphertext,
		    secret, values->sizes.secret);
	mlkemclient_wipe(secret, sizeof(secret));
	mlkemclient_key_free(client, key);
	mlkemclient_free(client);
	return error;
}

static size_t
frame_pack(uint8_t *out, Mlkemd__V1__Request *request)
{
	size_t len = mlkemd__v1__request__pack(request, out + WIRE_HEADER_BYTES);

	wire_put_length(out, (uint32_t)len);
	return WIRE_HEADER_BYTES + len;
}

static size_t
put_decaps(uint8_t *out, const struct bench_values *values, uint64_t id, unsigned n,
    const struct bench_handle *handles)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__Decapsulate op = MLKEMD__V1__DECAPSULATE__INIT;
	Mlkemd__V1__DecapsulateItem items[MLKEMCLIENT_MAX_ITEMS];
	Mlkemd__V1__DecapsulateItem *list[MLKEMCLIENT_MAX_ITEMS];

	for (unsigned i = 0; i < n; i++) {
		mlkemd__v1__decapsulate_item__init(&items[i]);
		items[i].handle = (ProtobufCBinaryData){
		    WIRE_HANDLE_BYTES, (uint8_t *)handles[i].bytes};
		items[i].ciphertext = (ProtobufCBinaryData){
		    values->sizes.ciphertext, (uint8_t *)values->ciphertext};
		list[i] = &items[i];
	}
	op.algorithm = (Mlkemd__V1__Algorithm)values->alg;
	op.items = list;
	op.n_items = n;
	request.id = id;
	request.op_case = MLKEMD__V1__REQUEST__OP_DECAPSULATE;
	request.decapsulate = &op;
	return frame_pack(out, &request);
}

static size_t
put_encaps(uint8_t *out, const struct bench_values *values, uint64_t id, unsigned n)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__Encapsulate op = MLKEMD__V1__ENCAPSULATE__INIT;
	ProtobufCBinaryData shares[MLKEMCLIENT_MAX_ITEMS];

	for (unsigned i = 0; i < n; i++)
		shares[i] = (ProtobufCBinaryData){
		    values->sizes.share, (uint8_t *)values->share};
	op.algorithm = (Mlkemd__V1__Algorithm)values->alg;
	op.shares = shares;
	op.n_shares = n;
	request.id = id;
	request.op_case = MLKEMD__V1__REQUEST__OP_ENCAPSULATE;
	request.encapsulate = &op;
	return frame_pack(out, &request);
}

static size_t
put_keygen(uint8_t *out, const struct bench_values *values, uint64_t id, unsigned n)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__GenerateKeys op = MLKEMD__V1__GENERATE_KEYS__INIT;

	op.algorithm = (Mlkemd__V1__Algorithm)values->alg;
	op.count = n;
	request.id = id;
	request.op_case = MLKEMD__V1__REQUEST__OP_GENERATE_KEYS;
	request.generate_keys = &op;
	return frame_pack(out, &request);
}

static size_t
put_hello(uint8_t *out, uint64_t id)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__Hello op = MLKEMD__V1__HELLO__INIT;

	op.min_version = op.max_version = WIRE_VERSION;
	op.client_name = (char *)"mlkemctl bench";
	request.id = id;
	request.op_case = MLKEMD__V1__REQUEST__OP_HELLO;
	request.hello = &op;
	return frame_pack(out, &request);
}

size_t
bench_frame_put(uint8_t *out, const struct bench_values *values, enum bench_kind kind,
    uint64_t id, unsigned n, const struct bench_handle *handles)
{
	switch (kind) {
	case BENCH_DO_ENCAPS:
		return put_encaps(out, values, id, n);
	case BENCH_DO_DECAPS:
		return put_decaps(out, values, id, n, handles);
	case BENCH_DO_KEYGEN:
		return put_keygen(out, values, id, n);
	case BENCH_HELLO:
		break;
	}
	return put_hello(out, id);
}

static void
note(struct bench_answer *answer, Mlkemd__V1__Status status, const char *message)
{
	if (status == MLKEMD__V1__STATUS__OK) {
		answer->n_good++;
		return;
	}
	if (answer->n_bad++ == 0)
		snprintf(answer->failure, sizeof(answer->failure), "status %d: %s",
		    (int)status, message);
}

static void
note_keys(struct bench_answer *answer, const Mlkemd__V1__KeysResult *keys)
{
	for (size_t i = 0; i < keys->n_items && i < MLKEMCLIENT_MAX_ITEMS; i++) {
		const Mlkemd__V1__KeyItem *item = keys->items[i];

		if (item->handle.len == WIRE_HANDLE_BYTES)
			memcpy(answer->handles[answer->n_good].bytes, item->handle.data,
			    WIRE_HANDLE_BYTES);
		note(answer, item->status, item->message);
	}
}

int
bench_answer_read(
    const uint8_t *message, size_t len, unsigned n_items, struct bench_answer *answer)
{
	Mlkemd__V1__Response *response =
	    mlkemd__v1__response__unpack(NULL, len, message);

	if (!response)
		return -1;
	answer->id = response->id;
	answer->n_good = answer->n_bad = 0;
	switch (response->result_case) {
	case MLKEMD__V1__RESPONSE__RESULT_ENCAPSULATED:
		for (size_t i = 0; i < response->encapsulated->n_items; i++)
			note(answer, response->encapsulated->items[i]->status,
			    response->encapsulated->items[i]->message);
		break;
	case MLKEMD__V1__RESPONSE__RESULT_DECAPSULATED:
		for (size_t i = 0; i < response->decapsulated->n_items; i++)
			note(answer, response->decapsulated->items[i]->status,
			    response->decapsulated->items[i]->message);
		break;
	case MLKEMD__V1__RESPONSE__RESULT_KEYS:
		note_keys(answer, response->keys);
		break;
	default: /* Hello's, or a refusal of the whole */
		for (unsigned i = 0; i < n_items; i++)
			note(answer, response->status, response->message);
	}
	mlkemd__v1__response__free_unpacked(response, NULL);
	return 0;
}
