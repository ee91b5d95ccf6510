/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "client-lib/client.h"
#include "mlkemd.pb-c.h"

/* errors.c and mlkemclient.h speak the wire's numbers. */
_Static_assert(MLKEMD__V1__STATUS__INVALID_REQUEST == 10, "status");
_Static_assert(MLKEMD__V1__STATUS__UNSUPPORTED == 11, "status");
_Static_assert(MLKEMD__V1__STATUS__TOO_MANY_ITEMS == 12, "status");
_Static_assert(MLKEMD__V1__STATUS__DENIED == 20, "status");
_Static_assert(MLKEMD__V1__STATUS__EXPORT_DISABLED == 21, "status");
_Static_assert(MLKEMD__V1__STATUS__BAD_LENGTH == 30, "status");
_Static_assert(MLKEMD__V1__STATUS__BAD_SHARE == 31, "status");
_Static_assert(MLKEMD__V1__STATUS__BAD_KEY == 32, "status");
_Static_assert(MLKEMD__V1__STATUS__ALGORITHM_MISMATCH == 33, "status");
_Static_assert(MLKEMD__V1__STATUS__ZERO_X25519 == 34, "status");
_Static_assert(MLKEMD__V1__STATUS__KEY_NOT_FOUND == 40, "status");
_Static_assert(MLKEMD__V1__STATUS__RESOURCE_EXHAUSTED == 50, "status");
_Static_assert(MLKEMD__V1__STATUS__DEADLINE_EXCEEDED == 51, "status");
_Static_assert(MLKEMD__V1__STATUS__DRAINING == 52, "status");
_Static_assert(MLKEMD__V1__STATUS__CANCELLED == 53, "status");
_Static_assert(MLKEMD__V1__STATUS__INTERNAL == 60, "status");
_Static_assert(
    (int)MLKEMD__V1__ALGORITHM__X25519MLKEM768 == (int)MLKEMCLIENT_X25519MLKEM768,
    "algorithm");
_Static_assert((int)MLKEMD__V1__ALGORITHM__ML_KEM_1024 == (int)MLKEMCLIENT_ML_KEM_1024,
    "algorithm");

/* What a request is made of, in arena memory while it is packed. */
struct outgoing {
	Mlkemd__V1__Request request;
	Mlkemd__V1__Hello hello;
	Mlkemd__V1__Ping ping;
	Mlkemd__V1__Info info;
	Mlkemd__V1__GenerateKeys keygen;
	Mlkemd__V1__Encapsulate encaps;
	Mlkemd__V1__Decapsulate decaps;
	Mlkemd__V1__Release release;
	Mlkemd__V1__Kdf kdf;
};

static ProtobufCBinaryData
bytes_of(const uint8_t *data, size_t len)
{
	return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)data, .len = len};
}

static Mlkemd__V1__Kdf *
outgoing_kdf(struct outgoing *out, const struct kdf *kdf)
{
	if (kdf == NULL)
		return NULL;
	mlkemd__v1__kdf__init(&out->kdf);
	out->kdf.hash = kdf->hash == KEM_HASH_SHA384
			    ? MLKEMD__V1__KDF_HASH__HKDF_SHA384
			    : MLKEMD__V1__KDF_HASH__HKDF_SHA256;
	out->kdf.salt = bytes_of(kdf->salt, kdf->salt_len);
	out->kdf.info = bytes_of(kdf->info, kdf->info_len);
	out->kdf.length = kdf->length;
	return &out->kdf;
}

static void
outgoing_keygen(
    struct outgoing *out, enum kem_alg alg, size_t count, bool export_private)
{
	mlkemd__v1__generate_keys__init(&out->keygen);
	out->keygen.algorithm = (Mlkemd__V1__Algorithm)alg_to_public(alg);
	out->keygen.count = (uint32_t)count;
	out->keygen.export_private = export_private;
	out->request.op_case = MLKEMD__V1__REQUEST__OP_GENERATE_KEYS;
	out->request.generate_keys = &out->keygen;
}

static int
outgoing_encaps(struct outgoing *out, struct mlkemclient *client, const struct job *job)
{
	struct arena *arena = &client->live->link.arena;
	ProtobufCBinaryData *shares;
	size_t n = 0;

	shares = arena_alloc(arena, job_n_by_daemon(job) * sizeof(*shares));
	if (shares == NULL)
		return MLKEMCLIENT_E_INTERNAL;
	for (size_t i = 0; i < job->n_items; i++) {
		const struct job_item *item = &job->items[i];

		if (item->by_daemon)
			shares[n++] = bytes_of(item->share, item->share_len);
	}
	mlkemd__v1__encapsulate__init(&out->encaps);
	out->encaps.algorithm = (Mlkemd__V1__Algorithm)alg_to_public(job->alg);
	out->encaps.n_shares = n;
	out->encaps.shares = shares;
	out->encaps.kdf = outgoing_kdf(out, job->kdf);
	out->request.op_case = MLKEMD__V1__REQUEST__OP_ENCAPSULATE;
	out->request.encapsulate = &out->encaps;
	return 0;
}

static int
outgoing_decaps(struct outgoing *out, struct mlkemclient *client, const struct job *job)
{
	struct arena *arena = &client->live->link.arena;
	size_t n = job_n_by_daemon(job), filled = 0;
	Mlkemd__V1__DecapsulateItem *items, **pointers;

	items = arena_alloc(arena, n * sizeof(*items));
	pointers = arena_alloc(arena, n * sizeof(void *));
	if (items == NULL || pointers == NULL)
		return MLKEMCLIENT_E_INTERNAL;
	for (size_t i = 0; i < job->n_items; i++) {
		const struct job_item *from = &job->items[i];
		Mlkemd__V1__DecapsulateItem *item = &items[filled];

		if (!from->by_daemon)
			continue;
		mlkemd__v1__decapsulate_item__init(item);
		if (from->key != NULL)
			item->handle = bytes_of(from->key->handle, WIRE_HANDLE_BYTES);
		else
			item->private_key =
			    bytes_of(from->private_key, from->private_key_len);
		item->ciphertext = bytes_of(from->ciphertext, from->ciphertext_len);
		pointers[filled++] = item;
	}
	mlkemd__v1__decapsulate__init(&out->decaps);
	out->decaps.algorithm = (Mlkemd__V1__Algorithm)alg_to_public(job->alg);
	out->decaps.n_items = n;
	out->decaps.items = pointers;
	out->decaps.kdf = outgoing_kdf(out, job->kdf);
	out->request.op_case = MLKEMD__V1__REQUEST__OP_DECAPSULATE;
	out->request.decapsulate = &out->decaps;
	return 0;
}

static int
outgoing_job(struct outgoing *out, struct mlkemclient *client, const struct job *job)
{
	switch (job->op) {
	case JOB_KEYGEN:
		outgoing_keygen(
		    out, job->alg, job_n_by_daemon(job), job->export_private);
		return 0;
	case JOB_ENCAPS:
		return outgoing_encaps(out, client, job);
	case JOB_DECAPS:
		break;
	}
	return outgoing_decaps(out, client, job);
}

static void
outgoing_hello(struct outgoing *out, struct mlkemclient *client)
{
	mlkemd__v1__hello__init(&out->hello);
	out->hello.min_version = WIRE_VERSION;
	out->hello.max_version = WIRE_VERSION;
	out->hello.client_name = client->name;
	out->hello.fallbacks = client->live->telling.fallbacks;
	out->hello.auto_daemon = client->live->telling.auto_daemon;
	out->hello.auto_local = client->live->telling.auto_local;
	out->request.op_case = MLKEMD__V1__REQUEST__OP_HELLO;
	out->request.hello = &out->hello;
}

static int
outgoing_release(
    struct outgoing *out, struct mlkemclient *client, const struct call *call)
{
	struct arena *arena = &client->live->link.arena;
	ProtobufCBinaryData *handles;

	handles = arena_alloc(arena, call->n_handles * sizeof(*handles));
	if (handles == NULL)
		return MLKEMCLIENT_E_INTERNAL;
	for (unsigned i = 0; i < call->n_handles; i++)
		handles[i] = bytes_of(call->handles[i], WIRE_HANDLE_BYTES);
	mlkemd__v1__release__init(&out->release);
	out->release.n_handles = call->n_handles;
	out->release.handles = handles;
	out->request.op_case = MLKEMD__V1__REQUEST__OP_RELEASE;
	out->request.release = &out->release;
	return 0;
}

static int
outgoing_fill(struct outgoing *out, struct mlkemclient *client, const struct call *call)
{
	switch (call->op) {
	case CALL_HELLO:
		outgoing_hello(out, client);
		break;
	case CALL_PING:
		mlkemd__v1__ping__init(&out->ping);
		out->request.op_case = MLKEMD__V1__REQUEST__OP_PING;
		out->request.ping = &out->ping;
		break;
	case CALL_INFO:
		mlkemd__v1__info__init(&out->info);
		out->request.op_case = MLKEMD__V1__REQUEST__OP_INFO;
		out->request.info = &out->info;
		break;
	case CALL_RELEASE:
		return outgoing_release(out, client, call);
	case CALL_LEASE:
		outgoing_keygen(out, call->rack->alg, call->rack->n_asked, false);
		break;
	case CALL_LATE:
		return MLKEMCLIENT_E_INTERNAL;
	case CALL_JOB:
		return outgoing_job(out, client, call->job);
	}
	return 0;
}

ssize_t
message_encode(struct mlkemclient *client, const struct call *call, uint64_t id,
    uint64_t timeout_us)
{
	struct link *link = &client->live->link;
	struct outgoing *out;
	size_t len = 0;
	int err = MLKEMCLIENT_E_INTERNAL;

	out = arena_alloc(&link->arena, sizeof(*out));
	if (out == NULL)
		goto out;
	mlkemd__v1__request__init(&out->request);
	out->request.id = id;
	out->request.timeout_us = timeout_us;
	err = outgoing_fill(out, client, call);
	if (err != 0)
		goto out;

	len = mlkemd__v1__request__get_packed_size(&out->request);
	if (len > link->out_size - WIRE_HEADER_BYTES) {
		err = MLKEMCLIENT_E_INTERNAL;
		goto out;
	}
	wire_put_length(link->out, (uint32_t)len);
	mlkemd__v1__request__pack(&out->request, link->out + WIRE_HEADER_BYTES);
out:
	arena_wipe(&link->arena);
	return err != 0 ? err : (ssize_t)(WIRE_HEADER_BYTES + len);
}
