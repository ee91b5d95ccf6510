/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mlkemd.pb-c.h"
#include "proto/wire.h"
#include "rig.h"

#define NOW     1000000u
#define DEFAULT 5000u

static struct secmem secmem;
static struct mem mem;

static void
setup(void)
{
	ck_assert_int_eq(secmem_init(&secmem, CODEC_MEM_BYTES, SECMEM_OFF), 0);
	mem_init(&mem, secmem_carve(&secmem, CODEC_MEM_BYTES), CODEC_MEM_BYTES);
}

static void
teardown(void)
{
	rig_fault(NULL);
	secmem_fini(&secmem);
}

static bool
mem_is_zero(void)
{
	for (size_t i = 0; i < mem.size; i++)
		if (mem.base[i] != 0)
			return false;
	return true;
}

/* A message put together by hand, for what no library would write. */
struct bytes {
	uint8_t data[WIRE_MAX_FRAME_BYTES];
	size_t len;
};

static void
put(struct bytes *to, const void *data, size_t len)
{
	ck_assert_uint_le(to->len + len, sizeof(to->data));
	if (len > 0)
		memcpy(to->data + to->len, data, len);
	to->len += len;
}

static void
put_varint(struct bytes *to, uint64_t value)
{
	do {
		uint8_t byte = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);

		put(to, &byte, 1);
		value >>= 7;
	} while (value != 0);
}

static void
put_number(struct bytes *to, uint32_t field, uint64_t value)
{
	put_varint(to, (uint64_t)field << 3);
	put_varint(to, value);
}

static void
put_bytes(struct bytes *to, uint32_t field, const void *data, size_t len)
{
	put_varint(to, (uint64_t)field << 3 | 2);
	put_varint(to, len);
	put(to, data, len);
}

/* Decodes a message from where the daemon would have staged it. */
static int
decode_raw(const void *data, size_t len, struct request **reqp)
{
	uint8_t *staged = mem_stage(&mem, len);

	ck_assert_ptr_nonnull(staged);
	if (len > 0)
		memcpy(staged, data, len);
	return codec_decode(&mem, staged, len, NOW, DEFAULT, reqp);
}

static struct request *
decode_bytes(const struct bytes *from)
{
	struct request *req = NULL;

	ck_assert_int_eq(decode_raw(from->data, from->len, &req), 0);
	ck_assert_ptr_nonnull(req);
	ck_assert_uint_eq(mem.staged, 0);
	return req;
}

static struct request *
decode(const Mlkemd__V1__Request *message)
{
	static struct bytes packed;

	packed.len = mlkemd__v1__request__get_packed_size(message);
	ck_assert_uint_le(packed.len, sizeof(packed.data));
	mlkemd__v1__request__pack(message, packed.data);
	return decode_bytes(&packed);
}

#define REQUEST(name)                                  \
 Mlkemd__V1__Request name = MLKEMD__V1__REQUEST__INIT; \
 name.id = 0xfedcba9876543210u

START_TEST(memory_is_aligned_zero_and_bounded)
{
	uint8_t *p, *staged;

	p = mem_alloc(&mem, 1);
	ck_assert_uint_eq((uintptr_t)p % 16, 0);
	ck_assert_ptr_eq(mem_alloc(&mem, 16), p + 16);
	ck_assert_ptr_nonnull(mem_alloc(&mem, 0));
	memset(p, 0xaa, 32);
	staged = mem_stage(&mem, 100);
	memset(staged, 0xbb, 100);
	ck_assert_uint_eq(mem_room(&mem), CODEC_MEM_BYTES - 32 - 112);
	ck_assert_ptr_null(mem_alloc(&mem, mem_room(&mem) + 1));
	ck_assert_ptr_null(mem_alloc(&mem, SIZE_MAX));
	ck_assert_ptr_nonnull(mem_alloc(&mem, mem_room(&mem)));
	ck_assert_uint_eq(mem_room(&mem), 0);
	ck_assert_ptr_null(mem_alloc(&mem, 1));
	mem_unstage(&mem);
	ck_assert_ptr_null(rig_find(mem.base, mem.size, "\xbb", 1));
	mem_rewind(&mem, 32);
	p = mem_alloc(&mem, 64);
	for (unsigned i = 0; i < 64; i++)
		ck_assert_uint_eq(p[i], 0);
	ck_assert_ptr_null(mem_stage(&mem, CODEC_MEM_BYTES));
	mem_wipe(&mem);
	ck_assert(mem_is_zero());
	ck_assert_uint_eq(mem_room(&mem), CODEC_MEM_BYTES);
}
END_TEST

/* ---- what decoding makes of each operation ---- */

START_TEST(hello_comes_over)
{
	REQUEST(message);
	Mlkemd__V1__Hello hello = MLKEMD__V1__HELLO__INIT;
	struct request *req;

	hello.min_version = 1;
	hello.max_version = 3;
	hello.client_name = (char *)"a client";
	hello.fallbacks = 1ull << 40;
	message.op_case = MLKEMD__V1__REQUEST__OP_HELLO;
	message.hello = &hello;
	req = decode(&message);
	ck_assert_int_eq(req->status, STATUS_OK);
	ck_assert_int_eq(req->op, REQUEST_HELLO);
	ck_assert_uint_eq(req->id, 0xfedcba9876543210u);
	ck_assert_uint_eq(req->min_version, 1);
	ck_assert_uint_eq(req->max_version, 3);
	ck_assert_str_eq(req->client_name, "a client");
	ck_assert_uint_eq(req->fallbacks, 1ull << 40);
	ck_assert_uint_eq(req->arrived_us, NOW);
	ck_assert_uint_eq(req->deadline_us, NOW + DEFAULT);
}
END_TEST

START_TEST(a_client_name_has_at_most_64_bytes)
{
	REQUEST(message);
	Mlkemd__V1__Hello hello = MLKEMD__V1__HELLO__INIT;
	char name[WIRE_MAX_CLIENT_NAME + 2];
	struct request *req;

	memset(name, 'x', sizeof(name));
	hello.client_name = name;
	message.op_case = MLKEMD__V1__REQUEST__OP_HELLO;
	message.hello = &hello;
	name[WIRE_MAX_CLIENT_NAME] = '\0';
	ck_assert_int_eq(decode(&message)->status, STATUS_OK);
	name[WIRE_MAX_CLIENT_NAME] = 'x';
	name[WIRE_MAX_CLIENT_NAME + 1] = '\0';
	req = decode(&message);
	ck_assert_int_eq(req->status, STATUS_INVALID_REQUEST);
	ck_assert_int_eq(req->op, REQUEST_HELLO);
	ck_assert_str_eq(req->client_name, "");
}
END_TEST

START_TEST(timeouts_become_deadlines)
{
	REQUEST(message);
	Mlkemd__V1__Ping ping = MLKEMD__V1__PING__INIT;

	message.op_case = MLKEMD__V1__REQUEST__OP_PING;
	message.ping = &ping;
	ck_assert_uint_eq(decode(&message)->deadline_us, NOW + DEFAULT);
	message.timeout_us = 1;
	ck_assert_uint_eq(decode(&message)->deadline_us, NOW + 1);
	message.timeout_us = UINT64_MAX;
	ck_assert_uint_eq(decode(&message)->deadline_us, UINT64_MAX);
	message.timeout_us = UINT64_MAX - NOW;
	ck_assert_uint_eq(decode(&message)->deadline_us, UINT64_MAX);
}
END_TEST

START_TEST(key_generation_comes_over)
{
	static const struct {
		Mlkemd__V1__Algorithm wire;
		enum kem_alg alg;
	} algs[] = {
	    {MLKEMD__V1__ALGORITHM__ML_KEM_512, KEM_ALG_MLKEM512},
	    {MLKEMD__V1__ALGORITHM__ML_KEM_768, KEM_ALG_MLKEM768},
	    {MLKEMD__V1__ALGORITHM__ML_KEM_1024, KEM_ALG_MLKEM1024},
	    {MLKEMD__V1__ALGORITHM__X25519MLKEM768, KEM_ALG_X25519MLKEM768},
	};

	for (size_t i = 0; i < 4; i++) {
		REQUEST(message);
		Mlkemd__V1__GenerateKeys op = MLKEMD__V1__GENERATE_KEYS__INIT;
		struct request *req;

		op.algorithm = algs[i].wire;
		op.count = 3;
		op.export_private = i % 2;
		message.op_case = MLKEMD__V1__REQUEST__OP_GENERATE_KEYS;
		message.generate_keys = &op;
		req = decode(&message);
		ck_assert_int_eq(req->status, STATUS_OK);
		ck_assert_int_eq(req->op, REQUEST_KEYGEN);
		ck_assert_int_eq(req->alg, algs[i].alg);
		ck_assert_int_eq(req->export_private, i % 2);
		ck_assert_uint_eq(req->n_items, 3);
		for (unsigned j = 0; j < 3; j++)
			ck_assert_ptr_eq(req->items[j].request, req);
	}
}
END_TEST

static struct request *
keygen(uint32_t algorithm, uint64_t count)
{
	static struct bytes op, message;

	op.len = message.len = 0;
	put_number(&op, 1, algorithm);
	put_number(&op, 2, count);
	put_number(&message, 1, 5);
	put_bytes(&message, 20, op.data, op.len);
	return decode_bytes(&message);
}

START_TEST(counts_and_algorithms_have_limits)
{
	ck_assert_int_eq(keygen(513, 64)->status, STATUS_OK);
	ck_assert_int_eq(keygen(513, 0)->status, STATUS_INVALID_REQUEST);
	ck_assert_int_eq(keygen(513, 65)->status, STATUS_TOO_MANY_ITEMS);
	ck_assert_int_eq(keygen(513, UINT32_MAX)->status, STATUS_TOO_MANY_ITEMS);
	ck_assert_int_eq(keygen(0, 1)->status, STATUS_UNSUPPORTED);
	ck_assert_int_eq(keygen(9999, 1)->status, STATUS_UNSUPPORTED);
	ck_assert_int_eq(keygen(UINT32_MAX, 1)->status, STATUS_UNSUPPORTED);
	ck_assert_uint_eq(keygen(513, UINT32_MAX)->n_items, 0);
	ck_assert_ptr_nonnull(strstr(keygen(9999, 1)->message, "9999"));
	ck_assert_ptr_nonnull(strstr(keygen(9999, 1)->message, "4588"));
}
END_TEST

START_TEST(encapsulation_comes_over)
{
	REQUEST(message);
	Mlkemd__V1__Encapsulate op = MLKEMD__V1__ENCAPSULATE__INIT;
	Mlkemd__V1__Kdf kdf = MLKEMD__V1__KDF__INIT;
	uint8_t one[1216], two[3] = {1, 2, 3};
	ProtobufCBinaryData shares[] = {{sizeof(one), one}, {3, two}, {0, NULL}};
	struct request *req;

	memset(one, 0x11, sizeof(one));
	kdf.hash = MLKEMD__V1__KDF_HASH__HKDF_SHA384;
	kdf.salt = (ProtobufCBinaryData){3, two};
	kdf.length = 77;
	op.algorithm = MLKEMD__V1__ALGORITHM__X25519MLKEM768;
	op.n_shares = 3;
	op.shares = shares;
	op.kdf = &kdf;
	message.op_case = MLKEMD__V1__REQUEST__OP_ENCAPSULATE;
	message.encapsulate = &op;
	req = decode(&message);
	ck_assert_int_eq(req->status, STATUS_OK);
	ck_assert_int_eq(req->op, REQUEST_ENCAPS);
	ck_assert_uint_eq(req->n_items, 3);
	ck_assert_uint_eq(req->items[0].share.len, sizeof(one));
	ck_assert_mem_eq(req->items[0].share.data, one, sizeof(one));
	ck_assert_mem_eq(req->items[1].share.data, two, 3);
	/* An empty field has no address (lesson: garbage behind a length of 0). */
	ck_assert_uint_eq(req->items[2].share.len, 0);
	ck_assert_ptr_null(req->items[2].share.data);
	ck_assert(req->kdf.used);
	ck_assert_int_eq(req->kdf.hash, KEM_HASH_SHA384);
	ck_assert_mem_eq(req->kdf.salt.data, two, 3);
	ck_assert_ptr_null(req->kdf.info.data);
	ck_assert_uint_eq(req->kdf.length, 77);
	ck_assert_uint_eq(req->secret_bytes, 77);
	op.kdf = NULL;
	ck_assert_uint_eq(decode(&message)->secret_bytes, 64);
}
END_TEST

START_TEST(kdf_hashes_are_known_or_refused)
{
	static const struct {
		int hash;
		uint32_t length;
		enum request_status status;
	} cases[] = {
	    {0, 0, STATUS_OK},
	    {0, 32, STATUS_INVALID_REQUEST},
	    {1, 32, STATUS_OK},
	    {2, 32, STATUS_OK},
	    {3, 32, STATUS_UNSUPPORTED},
	    {9999, 32, STATUS_UNSUPPORTED},
	    {-1, 32, STATUS_UNSUPPORTED},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		REQUEST(message);
		Mlkemd__V1__Decapsulate op = MLKEMD__V1__DECAPSULATE__INIT;
		Mlkemd__V1__Kdf kdf = MLKEMD__V1__KDF__INIT;
		struct request *req;

		kdf.hash = (Mlkemd__V1__KdfHash)cases[i].hash;
		kdf.length = cases[i].length;
		op.algorithm = MLKEMD__V1__ALGORITHM__ML_KEM_512;
		op.kdf = &kdf;
		message.op_case = MLKEMD__V1__REQUEST__OP_DECAPSULATE;
		message.decapsulate = &op;
		req = decode(&message);
		ck_assert_int_eq(req->status, cases[i].status);
		ck_assert_int_eq(
		    req->kdf.used, cases[i].status == STATUS_OK && cases[i].hash != 0);
	}
}
END_TEST

START_TEST(decapsulation_comes_over)
{
	REQUEST(message);
	Mlkemd__V1__Decapsulate op = MLKEMD__V1__DECAPSULATE__INIT;
	Mlkemd__V1__DecapsulateItem one = MLKEMD__V1__DECAPSULATE_ITEM__INIT, two = one,
				    *items[] = {&one, &two};
	uint8_t handle[16] = "0123456789abcde", key[64] = {7}, ct[768] = {9};
	struct request *req;

	one.handle = (ProtobufCBinaryData){sizeof(handle), handle};
	two.private_key = (ProtobufCBinaryData){sizeof(key), key};
	two.ciphertext = (ProtobufCBinaryData){sizeof(ct), ct};
	op.algorithm = MLKEMD__V1__ALGORITHM__ML_KEM_512;
	op.n_items = 2;
	op.items = items;
	message.op_case = MLKEMD__V1__REQUEST__OP_DECAPSULATE;
	message.decapsulate = &op;
	req = decode(&message);
	ck_assert_int_eq(req->op, REQUEST_DECAPS);
	ck_assert_uint_eq(req->n_items, 2);
	ck_assert_mem_eq(req->items[0].handle.data, handle, 16);
	ck_assert_ptr_null(req->items[0].private_key.data);
	ck_assert_ptr_null(req->items[0].ciphertext.data);
	ck_assert_uint_eq(req->items[1].handle.len, 0);
	ck_assert_mem_eq(req->items[1].private_key.data, key, sizeof(key));
	ck_assert_mem_eq(req->items[1].ciphertext.data, ct, sizeof(ct));
}
END_TEST

START_TEST(release_and_cancel_come_over)
{
	REQUEST(message);
	Mlkemd__V1__Release release = MLKEMD__V1__RELEASE__INIT;
	Mlkemd__V1__Cancel cancel = MLKEMD__V1__CANCEL__INIT;
	uint8_t handle[16] = "0123456789abcde";
	ProtobufCBinaryData handles[] = {{16, handle}, {0, NULL}};
	struct request *req;

	release.n_handles = 2;
	release.handles = handles;
	message.op_case = MLKEMD__V1__REQUEST__OP_RELEASE;
	message.release = &release;
	req = decode(&message);
	ck_assert_int_eq(req->op, REQUEST_RELEASE);
	ck_assert_uint_eq(req->n_items, 2);
	ck_assert_mem_eq(req->items[0].handle.data, handle, 16);

	cancel.id = 77;
	message.op_case = MLKEMD__V1__REQUEST__OP_CANCEL;
	message.cancel = &cancel;
	req = decode(&message);
	ck_assert_int_eq(req->op, REQUEST_CANCEL);
	ck_assert_uint_eq(req->cancel_id, 77);
}
END_TEST

START_TEST(operations_without_content_come_over)
{
	static const struct {
		uint32_t field;
		enum request_op op;
	} ops[] = {{11, REQUEST_PING}, {12, REQUEST_INFO}, {40, REQUEST_STATS},
	    {41, REQUEST_DRAIN}, {42, REQUEST_RESUME}, {43, REQUEST_RELOAD},
	    {44, REQUEST_SELFTEST}};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		static struct bytes message;
		struct request *req;

		message.len = 0;
		put_bytes(&message, ops[i].field, NULL, 0);
		req = decode_bytes(&message);
		ck_assert_int_eq(req->status, STATUS_OK);
		ck_assert_int_eq(req->op, ops[i].op);
		ck_assert_uint_eq(req->id, 0);
	}
}
END_TEST

/* ---- what is wrong with a message ---- */

START_TEST(too_many_items_keep_the_id_and_are_not_decoded)
{
	static struct bytes op, message;
	struct request *req;

	for (unsigned n = 64; n <= 65; n++) {
		op.len = message.len = 0;
		put_number(&op, 1, 513);
		for (unsigned i = 0; i < n; i++)
			put_bytes(&op, 2, "", 0);
		put_bytes(&message, 21, op.data, op.len);
		put_number(&message, 1, 42);
		req = decode_bytes(&message);
		ck_assert_int_eq(
		    req->status, n == 64 ? STATUS_OK : STATUS_TOO_MANY_ITEMS);
		ck_assert_uint_eq(req->id, 42);
		ck_assert_int_eq(req->op, REQUEST_ENCAPS);
	}
	/* The same by the frame's limit: 2 bytes an item (E02). */
	mem_wipe(&mem);
	op.len = message.len = 0;
	put_number(&message, 1, 43);
	while (op.len + 16 < WIRE_MAX_FRAME_BYTES)
		put_bytes(&op, 2, "", 0);
	put_bytes(&message, 21, op.data, op.len);
	req = decode_bytes(&message);
	ck_assert_int_eq(req->status, STATUS_TOO_MANY_ITEMS);
	ck_assert_uint_eq(req->id, 43);
	ck_assert_uint_lt(mem.used, 4096);
}
END_TEST

/* Two operations, or one twice, which protobuf would merge (E09). */
START_TEST(two_operations_are_refused)
{
	static const uint32_t pairs[][2] = {{11, 12}, {21, 21}, {22, 23}, {10, 10}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		static struct bytes message;
		struct request *req;

		message.len = 0;
		put_number(&message, 1, 9);
		put_bytes(&message, pairs[i][0], "", 0);
		put_bytes(&message, pairs[i][1], "", 0);
		req = decode_bytes(&message);
		ck_assert_int_eq(req->status, STATUS_INVALID_REQUEST);
		ck_assert_uint_eq(req->id, 9);
		ck_assert_int_eq(req->op, REQUEST_NONE);
	}
}
END_TEST

/* Not every library merges two of them alike: protobuf-c forgets the first's hash. */
START_TEST(two_kdfs_are_refused)
{
	for (uint32_t field = 21; field <= 22; field++) {
		static struct bytes op, message;
		struct request *req;

		op.len = message.len = 0;
		put_number(&op, 1, 513);
		put_bytes(&op, 3, "\x08\x01", 2);
		put_bytes(&op, 3, "\x20\x20", 2);
		put_number(&message, 1, 8);
		put_bytes(&message, field, op.data, op.len);
		req = decode_bytes(&message);
		ck_assert_int_eq(req->status, STATUS_INVALID_REQUEST);
		ck_assert_uint_eq(req->id, 8);
	}
}
END_TEST

START_TEST(no_operation_or_an_unknown_one_is_refused)
{
	static struct bytes message;

	message.len = 0;
	put_number(&message, 1, 3);
	ck_assert_int_eq(decode_bytes(&message)->status, STATUS_INVALID_REQUEST);
	put_bytes(&message, 39, "abc", 3);
	ck_assert_int_eq(decode_bytes(&message)->status, STATUS_INVALID_REQUEST);
	ck_assert_uint_eq(decode_bytes(&message)->id, 3);
}
END_TEST

/* Fields of a later version are passed over, wherever they stand. */
START_TEST(unknown_fields_do_no_harm)
{
	static struct bytes op, message;
	struct request *req;

	op.len = message.len = 0;
	put_number(&op, 1, 513);
	put_number(&op, 2, 2);
	put_bytes(&op, 200, "later", 5);
	put_number(&message, 1, 5);
	put_number(&message, 100, 1);
	put_bytes(&message, 101, "later", 5);
	put_bytes(&message, 20, op.data, op.len);
	put(&message,
	    "\xa5\x06"
	    "1234",
	    6); /* field 100, 32 bits */
	put(&message,
	    "\xa1\x06"
	    "12345678",
	    10); /* field 100, 64 bits */
	req = decode_bytes(&message);
	ck_assert_int_eq(req->status, STATUS_OK);
	ck_assert_uint_eq(req->n_items, 2);
}
END_TEST

START_TEST(each_field_a_hundred_times_is_one)
{
	static struct bytes op, kdf, message;
	struct request *req;
	size_t used;

	kdf.len = op.len = message.len = 0;
	for (unsigned i = 0; i < 100; i++) {
		put_number(&kdf, 1, 2 - i % 2);
		put_bytes(&kdf, 2, "salt", 4);
		put_number(&kdf, 4, i);
	}
	put_number(&op, 1, 512);
	put_number(&op, 1, 513);
	put_bytes(&op, 2, "share", 5);
	put_bytes(&op, 3, kdf.data, kdf.len);
	put_number(&message, 1, 1);
	put_number(&message, 1, 2);
	put_bytes(&message, 21, op.data, op.len);
	for (unsigned i = 0; i < 3; i++) {
		req = decode_bytes(&message);
		ck_assert_msg(req->status == STATUS_OK, "%s", req->message);
		ck_assert_uint_eq(req->id, 2);
		ck_assert_int_eq(req->alg, KEM_ALG_MLKEM768);
		ck_assert_int_eq(req->kdf.hash, KEM_HASH_SHA256);
		ck_assert_uint_eq(req->kdf.length, 99);
		ck_assert_uint_eq(req->kdf.salt.len, 4);
		used = mem.used;
		mem_wipe(&mem);
		ck_assert_uint_lt(used, 65536);
		ck_assert(mem_is_zero());
	}
}
END_TEST

START_TEST(broken_messages_leave_nothing)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
	    {"", 0},                         /* an empty message is checked below */
	    {"\xf8\xff\xff\xff\x7f\x00", 6}, /* E04: the tag shifts out */
	    {"\x5a\x00\xf8\xff\xff\xff\x7f\x00", 8}, /* behind a Ping */
	    {"\xf8\xff\xff\xff\x7f\x00\x5a\x00", 8}, /* before it */
	    {"\x08", 1},                             /* a number without a value */
	    {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12},
	    {"\x5a\x05\x00", 3},         /* longer than the message */
	    {"\x5b\x5c", 2},             /* a group */
	    {"\x5e", 1},                 /* a wire type that is none */
	    {"\x58\x01", 2},             /* Ping as a number */
	    {"\x00\x00", 2},             /* field number 0 */
	    {"\xaa\x01\x02\x1a\x05", 5}, /* kdf longer than its Encapsulate */
	    {"\xaa\x01\x06\x1a\x04\x12\xff\xff\x03", 9},
	    {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10},
	};

	for (size_t i = 1; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct request *req = (struct request *)&mem;

		ck_assert_int_eq(
		    decode_raw(cases[i].bytes, cases[i].len, &req), CODEC_E_BROKEN);
		ck_assert_ptr_null(req);
		ck_assert_uint_eq(mem.used, 0);
		ck_assert(mem_is_zero());
	}
}
END_TEST

START_TEST(empty_repeated_fields_do_no_harm)
{
	/* For each number: the field as bytes of length 0, alone and inside (E05). */
	for (uint32_t field = 1; field < 50; field++) {
		static struct bytes op, message;
		struct request *req;

		op.len = message.len = 0;
		put_bytes(&message, field, NULL, 0);
		(void)!decode_raw(message.data, message.len, &req);
		for (uint32_t inner = 1; inner < 6; inner++) {
			op.len = message.len = 0;
			put_bytes(&op, inner, NULL, 0);
			put_bytes(&message, field, op.data, op.len);
			(void)!decode_raw(message.data, message.len, &req);
		}
		mem_wipe(&mem);
	}
	ck_assert(mem_is_zero());
}
END_TEST

START_TEST(a_message_over_the_limit_is_broken)
{
	uint8_t *big = calloc(1, WIRE_MAX_FRAME_BYTES + 1);
	struct request *req;

	ck_assert_int_eq(
	    codec_decode(&mem, big, WIRE_MAX_FRAME_BYTES + 1, NOW, DEFAULT, &req),
	    CODEC_E_BROKEN);
	free(big);
}
END_TEST

/* ---- memory ---- */

enum shape {
	SHAPE_ONE_BIG,       /* one value that fills the frame */
	SHAPE_ITEMS,         /* 64 decapsulations of 8 KiB each */
	SHAPE_UNKNOWN,       /* as many unknown fields as may be, sharing the frame */
	SHAPE_UNKNOWN_SMALL, /* the same, of two bytes */
	SHAPE_IN_ITEM,       /* as many fields as may be, all in one item */
	SHAPE_N,
};

static void
shape_make(enum shape shape, struct bytes *message)
{
	static struct bytes op, item, fill;

	message->len = op.len = item.len = 0;
	memset(fill.data, 0x5a, sizeof(fill.data));
	put_number(message, 1, 1);
	put_number(&op, 1, 514);
	switch (shape) {
	case SHAPE_ONE_BIG:
		put_bytes(&op, 2, fill.data, WIRE_MAX_FRAME_BYTES - 32);
		put_bytes(message, 21, op.data, op.len);
		break;
	case SHAPE_ITEMS:
		for (unsigned i = 0; i < WIRE_MAX_ITEMS; i++) {
			item.len = 0;
			put_bytes(&item, 1, fill.data, 20);
			put_bytes(&item, 2, fill.data, 4000);
			put_bytes(&item, 3, fill.data, 4100);
			put_bytes(&op, 2, item.data, item.len);
		}
		put_bytes(message, 22, op.data, op.len);
		break;
	case SHAPE_UNKNOWN:
		put_bytes(message, 21, op.data, op.len);
		for (unsigned i = 0; i < WIRE_MAX_FIELDS - 3; i++)
			put_bytes(message, 100, fill.data, 505);
		break;
	case SHAPE_UNKNOWN_SMALL:
		put_bytes(message, 21, op.data, op.len);
		for (unsigned i = 0; i < WIRE_MAX_FIELDS - 3; i++)
			put_bytes(message, 15, NULL, 0);
		break;
	default:
		for (unsigned i = 0; i < WIRE_MAX_FIELDS - 3; i++)
			put_bytes(&item, 3, fill.data, 17);
		for (unsigned i = 0; i < WIRE_MAX_ITEMS; i++)
			put_bytes(&op, 2, i ? NULL : item.data, i ? 0 : item.len);
		put_bytes(message, 22, op.data, op.len);
		break;
	}
}

/* No message of any shape is refused for want of memory, and all of it is wiped. */
START_TEST(every_shape_finds_room)
{
	static struct bytes message;
	struct request *req;
	size_t spare;

	shape_make(_i, &message);
	ck_assert(codec_mem_fits(&mem, message.len));
	ck_assert_int_eq(decode_raw(message.data, message.len, &req), 0);
	ck_assert_int_eq(req->status, STATUS_OK);
	mem_wipe(&mem);
	ck_assert(mem_is_zero());

	/* With just as much room as codec_mem_fits() asks for it is the same. */
	for (spare = 0; codec_mem_fits(&mem, message.len); spare += 4096)
		ck_assert_ptr_nonnull(mem_alloc(&mem, 4096));
	mem_rewind(&mem, spare - 4096);
	ck_assert_int_eq(decode_raw(message.data, message.len, &req), 0);
	ck_assert_int_eq(req->status, STATUS_OK);
}
END_TEST

START_TEST(fields_beyond_the_limit_are_refused_undecoded)
{
	static struct bytes message;
	struct request *req;

	message.len = 0;
	put_number(&message, 1, 6);
	put_bytes(&message, 11, NULL, 0);
	for (unsigned i = 0; i < WIRE_MAX_FIELDS; i++)
		put_number(&message, 15, 0);
	req = decode_bytes(&message);
	ck_assert_int_eq(req->status, STATUS_INVALID_REQUEST);
	ck_assert_uint_eq(req->id, 6);
	ck_assert_uint_lt(mem.used, 4096);
}
END_TEST

START_TEST(the_largest_message_always_fits_an_empty_memory)
{
	for (size_t len = 1; len <= WIRE_MAX_FRAME_BYTES; len += 1 + len / 64)
		ck_assert(codec_mem_fits(&mem, len));
	ck_assert(codec_mem_fits(&mem, WIRE_MAX_FRAME_BYTES));
	ck_assert_ptr_nonnull(mem_alloc(&mem, CODEC_MEM_BYTES - 65536));
	ck_assert(!codec_mem_fits(&mem, 1));
}
END_TEST

START_TEST(a_missing_wipe_is_seen)
{
	static struct bytes message;
	struct request *req;

	if (!rig_hooks())
		return;
	shape_make(SHAPE_ITEMS, &message);
	rig_fault("codec-no-wipe");
	ck_assert_int_eq(decode_raw(message.data, message.len, &req), 0);
	mem_wipe(&mem);
	ck_assert(!mem_is_zero());
	kem_wipe(mem.base, mem.size);
	rig_fault("codec-no-unstage-wipe");
	ck_assert_int_eq(decode_raw(message.data, message.len, &req), 0);
	mem_wipe(&mem);
	ck_assert(!mem_is_zero());
}
END_TEST

/* Messages with a few bytes changed: any answer is good, but memory stays in order. */
START_TEST(changed_messages_are_decoded_or_refused)
{
	static struct bytes message, changed;
	unsigned n_broken = 0, n_good = 0;

	srandom(4);
	for (unsigned round = 0; round < 4000; round++) {
		struct request *req = NULL;
		int r;

		if (round % 100 == 0) {
			shape_make((enum shape)(round / 100 % SHAPE_N), &message);
			if (message.len > 20000)
				message.len = 20000;
		}
		memcpy(changed.data, message.data, message.len);
		for (unsigned i = 0; i < 1 + round % 4; i++)
			changed.data[(size_t)random() % (i % 2 ? 64 : message.len)] =
			    (uint8_t)random();
		r = decode_raw(changed.data, message.len, &req);
		ck_assert(r == 0 || r == CODEC_E_BROKEN);
		ck_assert_int_eq(r == 0, req != NULL);
		n_good += r == 0;
		n_broken += r != 0;
		mem_wipe(&mem);
	}
	ck_assert_uint_gt(n_good, 0);
	ck_assert_uint_gt(n_broken, 0);
	ck_assert(mem_is_zero());
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("codec");
	TCase *tc = tcase_create("decode");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, memory_is_aligned_zero_and_bounded);
	tcase_add_test(tc, hello_comes_over);
	tcase_add_test(tc, a_client_name_has_at_most_64_bytes);
	tcase_add_test(tc, timeouts_become_deadlines);
	tcase_add_test(tc, key_generation_comes_over);
	tcase_add_test(tc, counts_and_algorithms_have_limits);
	tcase_add_test(tc, encapsulation_comes_over);
	tcase_add_test(tc, kdf_hashes_are_known_or_refused);
	tcase_add_test(tc, decapsulation_comes_over);
	tcase_add_test(tc, release_and_cancel_come_over);
	tcase_add_test(tc, operations_without_content_come_over);
	tcase_add_test(tc, too_many_items_keep_the_id_and_are_not_decoded);
	tcase_add_test(tc, two_operations_are_refused);
	tcase_add_test(tc, two_kdfs_are_refused);
	tcase_add_test(tc, no_operation_or_an_unknown_one_is_refused);
	tcase_add_test(tc, unknown_fields_do_no_harm);
	tcase_add_test(tc, each_field_a_hundred_times_is_one);
	tcase_add_test(tc, broken_messages_leave_nothing);
	tcase_add_test(tc, empty_repeated_fields_do_no_harm);
	tcase_add_test(tc, a_message_over_the_limit_is_broken);
	tcase_add_loop_test(tc, every_shape_finds_room, 0, SHAPE_N);
	tcase_add_test(tc, fields_beyond_the_limit_are_refused_undecoded);
	tcase_add_test(tc, the_largest_message_always_fits_an_empty_memory);
	tcase_add_test(tc, a_missing_wipe_is_seen);
	tcase_add_test(tc, changed_messages_are_decoded_or_refused);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
