/* SPDX-License-Identifier: Apache-2.0 */
/* What decoding makes of messages that are in order. */
#include <string.h>

#include "message.h"
#include "mlkemd.pb-c.h"

static struct request *
decode(const Mlkemd__V1__Request *message)
{
	static struct message packed;

	packed.len = mlkemd__v1__request__get_packed_size(message);
	ck_assert_uint_le(packed.len, sizeof(packed.data));
	mlkemd__v1__request__pack(message, packed.data);
	return message_decode(&packed);
}

#define REQUEST(name)                                  \
 Mlkemd__V1__Request name = MLKEMD__V1__REQUEST__INIT; \
 name.id = 0xfedcba9876543210u

START_TEST(hello_comes_over)
{
	REQUEST(message);
	Mlkemd__V1__Hello hello = MLKEMD__V1__HELLO__INIT;
	struct request *req;

	hello.min_version = 1;
	hello.max_version = 3;
	hello.client_name = (char *)"a client";
	hello.fallbacks = 1ull << 40;
	hello.auto_daemon = 5;
	hello.auto_local = 1ull << 41;
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
	ck_assert_uint_eq(req->auto_daemon, 5);
	ck_assert_uint_eq(req->auto_local, 1ull << 41);
	ck_assert_uint_eq(req->arrived_us, MESSAGE_ARRIVED_US);
	ck_assert_uint_eq(req->deadline_us, MESSAGE_ARRIVED_US + MESSAGE_DEFAULT_US);
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
	ck_assert_uint_eq(
	    decode(&message)->deadline_us, MESSAGE_ARRIVED_US + MESSAGE_DEFAULT_US);
	message.timeout_us = 1;
	ck_assert_uint_eq(decode(&message)->deadline_us, MESSAGE_ARRIVED_US + 1);
	message.timeout_us = UINT64_MAX;
	ck_assert_uint_eq(decode(&message)->deadline_us, UINT64_MAX);
	message.timeout_us = UINT64_MAX - MESSAGE_ARRIVED_US;
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
	static struct message op, message;

	op.len = message.len = 0;
	message_put_number(&op, 1, algorithm);
	message_put_number(&op, 2, count);
	message_put_number(&message, 1, 5);
	message_put_bytes(&message, 20, op.data, op.len);
	return message_decode(&message);
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
		static struct message message;
		struct request *req;

		message.len = 0;
		message_put_bytes(&message, ops[i].field, NULL, 0);
		req = message_decode(&message);
		ck_assert_int_eq(req->status, STATUS_OK);
		ck_assert_int_eq(req->op, ops[i].op);
		ck_assert_uint_eq(req->id, 0);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("codec");
	TCase *tc = tcase_create("codec");

	tcase_add_checked_fixture(tc, message_setup, message_teardown);
	tcase_set_timeout(tc, 60);
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
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
