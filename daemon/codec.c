/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to a request. The way back is in codec_encode.c. */
#include "codec.h"

#include <string.h>

#include "mlkemd.pb-c.h"
#include "proto/wire.h"

/*
 * What codec memory must hold, at most.
 *
 * While decoding: the staged message (len), and what protobuf-c makes of it: the values
 * of its bytes fields (len in all, since each byte of a message is the value of at most
 * one field without children), and for each field
 *   64 bytes in its list of fields (32 an entry; the list grows by doubling),
 *   16 bytes because values are rounded up to 16, and
 *   80 bytes of a DecapsulateItem (72), or of an entry in the list of unknown fields
 *      (24) or of items (16).
 * wire_prescan() has counted the fields: at most WIRE_MAX_FIELDS and WIRE_MAX_ITEMS,
 * and no field is shorter than two bytes. Request and its operation: under 512 bytes.
 *
 * Afterwards the staged message is gone; to the rest come this project's request and
 * items, and what service allocates for each item. The most is a key generation with
 * export of ML-KEM-1024: share, secret and dk 1568 + 1600 + 3168, handle 16, and a
 * message of 208. With a kdf: WIRE_MAX_KDF_BYTES for all items of a request together,
 * but then at most ciphertext or (share and secret), 64 bytes of ephemeral and 64 of
 * shared secret an item.
 */
#define DECODE_FIELD_BYTES (64u + 16u + 80u)
#define DECODE_FIELDS_MAX  (WIRE_MAX_FIELDS + WIRE_MAX_ITEMS)
#define DECODE_FIXED_BYTES 1024u

#define ANSWER_KEYGEN_BYTES \
 (KEM_SHARE_MAX + KEM_SECRET_MAX + KEM_DK_MAX + WIRE_HANDLE_BYTES)
#define ANSWER_DECAPS_BYTES \
 (KEM_SHARE_MAX + KEM_SECRET_MAX + 128u + WIRE_MAX_KDF_BYTES / WIRE_MAX_ITEMS + 16u)
#define ANSWER_MESSAGE_BYTES (WIRE_MAX_MESSAGE_TEXT + 16u)
#define ANSWER_BYTES                                                                  \
 (WIRE_MAX_ITEMS *                                                                    \
	 (ANSWER_KEYGEN_BYTES + ANSWER_MESSAGE_BYTES + sizeof(struct request_item)) + \
     sizeof(struct request) + ANSWER_MESSAGE_BYTES + 64u)

_Static_assert(ANSWER_DECAPS_BYTES <= ANSWER_KEYGEN_BYTES, "the worst answer");
_Static_assert(2u * WIRE_MAX_FRAME_BYTES + DECODE_FIXED_BYTES +
		       DECODE_FIELDS_MAX * DECODE_FIELD_BYTES + 16u <=
		   CODEC_MEM_BYTES,
    "one message of any shape can be decoded");
_Static_assert(WIRE_MAX_FRAME_BYTES + DECODE_FIXED_BYTES +
		       DECODE_FIELDS_MAX * DECODE_FIELD_BYTES + ANSWER_BYTES <=
		   CODEC_MEM_BYTES,
    "and answered");

static size_t
decode_bound(size_t len)
{
	size_t n_fields = len / 2 + 1;

	if (n_fields > DECODE_FIELDS_MAX)
		n_fields = DECODE_FIELDS_MAX;
	return len + n_fields * DECODE_FIELD_BYTES + DECODE_FIXED_BYTES;
}

bool
codec_mem_fits(const struct mem *mem, size_t len)
{
	size_t staged = len + 16;
	size_t more = staged > ANSWER_BYTES ? staged : ANSWER_BYTES;

	return decode_bound(len) + more <= mem_room(mem);
}

/* What protobuf-c may take of mem for one message. It gives nothing back. */
struct allowance {
	struct mem *mem;
	size_t end; /* of mem->used */
};

static void *
allowance_alloc(void *data, size_t size)
{
	struct allowance *allowance = data;

	if (allowance->mem->used + size > allowance->end)
		return NULL;
	return mem_alloc(allowance->mem, size);
}

static void
allowance_free(void *data, void *pointer)
{
	(void)data, (void)pointer;
}

static Mlkemd__V1__Request *
message_unpack(struct mem *mem, const uint8_t *message, size_t len)
{
	struct allowance allowance = {mem, mem->used + decode_bound(len)};
	ProtobufCAllocator allocator = {allowance_alloc, allowance_free, &allowance};

	return mlkemd__v1__request__unpack(&allocator, len, message);
}

/* An empty field of bytes has no address that may be relied on. */
static struct request_bytes
bytes_of(ProtobufCBinaryData data)
{
	if (data.len == 0)
		return (struct request_bytes){0};
	return (struct request_bytes){data.data, data.len};
}

static enum request_op
op_of(uint32_t field)
{
	switch (field) {
	case MLKEMD__V1__REQUEST__OP_HELLO:
		return REQUEST_HELLO;
	case MLKEMD__V1__REQUEST__OP_PING:
		return REQUEST_PING;
	case MLKEMD__V1__REQUEST__OP_INFO:
		return REQUEST_INFO;
	case MLKEMD__V1__REQUEST__OP_GENERATE_KEYS:
		return REQUEST_KEYGEN;
	case MLKEMD__V1__REQUEST__OP_ENCAPSULATE:
		return REQUEST_ENCAPS;
	case MLKEMD__V1__REQUEST__OP_DECAPSULATE:
		return REQUEST_DECAPS;
	case MLKEMD__V1__REQUEST__OP_RELEASE:
		return REQUEST_RELEASE;
	case MLKEMD__V1__REQUEST__OP_CANCEL:
		return REQUEST_CANCEL;
	case MLKEMD__V1__REQUEST__OP_STATS:
		return REQUEST_STATS;
	case MLKEMD__V1__REQUEST__OP_DRAIN:
		return REQUEST_DRAIN;
	case MLKEMD__V1__REQUEST__OP_RESUME:
		return REQUEST_RESUME;
	case MLKEMD__V1__REQUEST__OP_RELOAD:
		return REQUEST_RELOAD;
	case MLKEMD__V1__REQUEST__OP_SELF_TEST:
		return REQUEST_SELFTEST;
	default:
		return REQUEST_NONE;
	}
}

/* Sets req->status and returns false if this daemon does not have the algorithm. */
static bool
alg_decode(struct request *req, Mlkemd__V1__Algorithm algorithm)
{
	switch ((int)algorithm) {
	case MLKEMD__V1__ALGORITHM__ML_KEM_512:
		req->alg = KEM_ALG_MLKEM512;
		break;
	case MLKEMD__V1__ALGORITHM__ML_KEM_768:
		req->alg = KEM_ALG_MLKEM768;
		break;
	case MLKEMD__V1__ALGORITHM__ML_KEM_1024:
		req->alg = KEM_ALG_MLKEM1024;
		break;
	case MLKEMD__V1__ALGORITHM__X25519MLKEM768:
		req->alg = KEM_ALG_X25519MLKEM768;
		break;
	default:
		request_fail(req, STATUS_UNSUPPORTED,
		    "algorithm %d is unknown here; there are ML_KEM_512 (512), "
		    "ML_KEM_768 (513), ML_KEM_1024 (514) and X25519MLKEM768 (4588)",
		    (int)algorithm);
		return false;
	}
	req->secret_bytes = kem_alg_info(req->alg)->shared_bytes;
	return true;
}

/* As alg_decode(), for the hash. That the length is in order is service's to judge. */
static bool
kdf_decode(struct request *req, const Mlkemd__V1__Kdf *kdf)
{
	if (kdf == NULL)
		return true;

	switch ((int)kdf->hash) {
	case MLKEMD__V1__KDF_HASH__KDF_NONE:
		if (kdf->length == 0 && kdf->salt.len == 0 && kdf->info.len == 0)
			return true;
		request_fail(req, STATUS_INVALID_REQUEST,
		    "kdf without a hash: name HKDF_SHA256 (1) or HKDF_SHA384 (2), or "
		    "leave kdf out");
		return false;
	case MLKEMD__V1__KDF_HASH__HKDF_SHA256:
		req->kdf.hash = KEM_HASH_SHA256;
		break;
	case MLKEMD__V1__KDF_HASH__HKDF_SHA384:
		req->kdf.hash = KEM_HASH_SHA384;
		break;
	default:
		request_fail(req, STATUS_UNSUPPORTED,
		    "kdf hash %d is unknown here; there are HKDF_SHA256 (1) and "
		    "HKDF_SHA384 (2)",
		    (int)kdf->hash);
		return false;
	}
	req->kdf.used = true;
	req->kdf.salt = bytes_of(kdf->salt);
	req->kdf.info = bytes_of(kdf->info);
	req->kdf.length = kdf->length;
	req->secret_bytes = kdf->length;
	return true;
}

static bool
items_new(struct request *req, size_t n)
{
	if (n == 0)
		return true;
	req->items = mem_alloc(req->mem, n * sizeof(*req->items));
	if (req->items == NULL) {
		request_fail(req, STATUS_RESOURCE_EXHAUSTED, "no memory for the items");
		return false;
	}
	req->n_items = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		req->items[i].request = req;
	return true;
}

static void
hello_decode(struct request *req, const Mlkemd__V1__Hello *hello)
{
	req->min_version = hello->min_version;
	req->max_version = hello->max_version;
	req->client_name = hello->client_name;
	req->fallbacks = hello->fallbacks;
	req->auto_daemon = hello->auto_daemon;
	req->auto_local = hello->auto_local;
	if (strlen(req->client_name) > WIRE_MAX_CLIENT_NAME) {
		req->client_name = "";
		request_fail(req, STATUS_INVALID_REQUEST,
		    "client_name is longer than %u bytes", WIRE_MAX_CLIENT_NAME);
	}
}

static void
keygen_decode(struct request *req, const Mlkemd__V1__GenerateKeys *op)
{
	if (!alg_decode(req, op->algorithm))
		return;
	req->export_private = op->export_private;
	if (op->count == 0)
		request_fail(req, STATUS_INVALID_REQUEST,
		    "count is 0; it may be 1 to %u", WIRE_MAX_ITEMS);
	else if (op->count > WIRE_MAX_ITEMS)
		request_fail(req, STATUS_TOO_MANY_ITEMS,
		    "count is %u; it may be 1 to %u", op->count, WIRE_MAX_ITEMS);
	else
		items_new(req, op->count);
}

static void
encaps_decode(struct request *req, const Mlkemd__V1__Encapsulate *op)
{
	if (!alg_decode(req, op->algorithm) || !kdf_decode(req, op->kdf) ||
	    !items_new(req, op->n_shares))
		return;
	for (size_t i = 0; i < op->n_shares; i++)
		req->items[i].share = bytes_of(op->shares[i]);
}

static void
decaps_decode(struct request *req, const Mlkemd__V1__Decapsulate *op)
{
	if (!alg_decode(req, op->algorithm) || !kdf_decode(req, op->kdf) ||
	    !items_new(req, op->n_items))
		return;
	for (size_t i = 0; i < op->n_items; i++) {
		req->items[i].handle = bytes_of(op->items[i]->handle);
		req->items[i].private_key = bytes_of(op->items[i]->private_key);
		req->items[i].ciphertext = bytes_of(op->items[i]->ciphertext);
	}
}

static void
release_decode(struct request *req, const Mlkemd__V1__Release *op)
{
	if (!items_new(req, op->n_handles))
		return;
	for (size_t i = 0; i < op->n_handles; i++)
		req->items[i].handle = bytes_of(op->handles[i]);
}

static void
op_decode(struct request *req, const Mlkemd__V1__Request *message)
{
	switch (req->op) {
	case REQUEST_HELLO:
		hello_decode(req, message->hello);
		break;
	case REQUEST_KEYGEN:
		keygen_decode(req, message->generate_keys);
		break;
	case REQUEST_ENCAPS:
		encaps_decode(req, message->encapsulate);
		break;
	case REQUEST_DECAPS:
		decaps_decode(req, message->decapsulate);
		break;
	case REQUEST_RELEASE:
		release_decode(req, message->release);
		break;
	case REQUEST_CANCEL:
		req->cancel_id = message->cancel->id;
		break;
	default:
		break; /* nothing inside */
	}
}

/* What can be refused without decoding. */
static bool
shape_ok(struct request *req, const struct wire_prescan *seen)
{
	if (seen->n_ops == 0)
		request_fail(
		    req, STATUS_INVALID_REQUEST, "no operation that is known here");
	else if (seen->n_ops > 1)
		request_fail(req, STATUS_INVALID_REQUEST,
		    "%u operations in one request", seen->n_ops);
	else if (seen->n_kdfs > 1)
		request_fail(
		    req, STATUS_INVALID_REQUEST, "%u kdf in one request", seen->n_kdfs);
	else if (seen->n_items > WIRE_MAX_ITEMS)
		request_fail(req, STATUS_TOO_MANY_ITEMS,
		    "%u items in one request; at most %u", seen->n_items,
		    WIRE_MAX_ITEMS);
	else if (seen->n_fields > WIRE_MAX_FIELDS)
		request_fail(req, STATUS_INVALID_REQUEST,
		    "%u fields in one request; at most %u", seen->n_fields,
		    WIRE_MAX_FIELDS);
	return req->status == STATUS_OK;
}

static uint64_t
deadline_of(uint64_t arrived_us, uint64_t timeout_us)
{
	return timeout_us > UINT64_MAX - arrived_us ? UINT64_MAX
						    : arrived_us + timeout_us;
}

static int
request_make(struct mem *mem, const uint8_t *message, size_t len, uint64_t arrived_us,
    uint64_t default_timeout_us, struct request **reqp)
{
	const Mlkemd__V1__Request *decoded;
	struct wire_prescan seen;
	struct request *req;

	if (len > WIRE_MAX_FRAME_BYTES || wire_prescan(message, len, &seen) != 0)
		return CODEC_E_BROKEN;
	req = mem_alloc(mem, sizeof(*req));
	if (req == NULL)
		return CODEC_E_BROKEN;

	req->mem = mem;
	req->id = seen.id;
	req->arrived_us = arrived_us;
	req->deadline_us = deadline_of(arrived_us, default_timeout_us);
	*reqp = req;
	if (seen.n_ops == 1)
		req->op = op_of(seen.op);
	if (!shape_ok(req, &seen))
		return 0;

	decoded = message_unpack(mem, message, len);
	if (decoded == NULL || (uint32_t)decoded->op_case != seen.op)
		return CODEC_E_BROKEN;
	if (decoded->timeout_us != 0)
		req->deadline_us = deadline_of(arrived_us, decoded->timeout_us);
	op_decode(req, decoded);
	return 0;
}

int
codec_decode(struct mem *mem, const uint8_t *message, size_t len, uint64_t arrived_us,
    uint64_t default_timeout_us, struct request **reqp)
{
	size_t mark = mem->used;
	int r;

	r = request_make(mem, message, len, arrived_us, default_timeout_us, reqp);
	mem_unstage(mem);
	if (r != 0) {
		mem_rewind(mem, mark);
		*reqp = NULL;
	}
	return r;
}
