/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that are refused or broken. */
#include <stdlib.h>
#include <string.h>

#include "message.h"

START_TEST(too_many_items_keep_the_id_and_are_not_decoded)
{
	static struct message op, message;
	struct request *req;

	for (unsigned n = 64; n <= 65; n++) {
		op.len = message.len = 0;
		message_put_number(&op, 1, 513);
		for (unsigned i = 0; i < n; i++)
			message_put_bytes(&op, 2, "", 0);
		message_put_bytes(&message, 21, op.data, op.len);
		message_put_number(&message, 1, 42);
		req = message_decode(&message);
		ck_assert_int_eq(
		    req->status, n == 64 ? STATUS_OK : STATUS_TOO_MANY_ITEMS);
		ck_assert_uint_eq(req->id, 42);
		ck_assert_int_eq(req->op, REQUEST_ENCAPS);
	}
	/* The same by the frame's limit: 2 bytes an item. */
	mem_wipe(&message_mem);
	op.len = message.len = 0;
	message_put_number(&message, 1, 43);
	while (op.len + 16 < WIRE_MAX_FRAME_BYTES)
		message_put_bytes(&op, 2, "", 0);
	message_put_bytes(&message, 21, op.data, op.len);
	req = message_decode(&message);
	ck_assert_int_eq(req->status, STATUS_TOO_MANY_ITEMS);
	ck_assert_uint_eq(req->id, 43);
	ck_assert_uint_lt(message_mem.used, 4096);
}
END_TEST

/* Two operations, or one twice, which protobuf would merge. */
START_TEST(two_operations_are_refused)
{
	static const uint32_t pairs[][2] = {{11, 12}, {21, 21}, {22, 23}, {10, 10}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		static struct message message;
		struct request *req;

		message.len = 0;
		message_put_number(&message, 1, 9);
		message_put_bytes(&message, pairs[i][0], "", 0);
		message_put_bytes(&message, pairs[i][1], "", 0);
		req = message_decode(&message);
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
		static struct message op, message;
		struct request *req;

		op.len = message.len = 0;
		message_put_number(&op, 1, 513);
		message_put_bytes(&op, 3, "\x08\x01\x20\x10", 4);
		message_put_bytes(&op, 3, "\x08\x01\x20\x20", 4);
		message_put_number(&message, 1, 8);
		message_put_bytes(&message, field, op.data, op.len);
		req = message_decode(&message);
		ck_assert_int_eq(req->status, STATUS_INVALID_REQUEST);
		ck_assert_uint_eq(req->id, 8);
	}
}
END_TEST

START_TEST(no_operation_or_an_unknown_one_is_refused)
{
	static struct message message;

	message.len = 0;
	message_put_number(&message, 1, 3);
	ck_assert_int_eq(message_decode(&message)->status, STATUS_INVALID_REQUEST);
	message_put_bytes(&message, 39, "abc", 3);
	ck_assert_int_eq(message_decode(&message)->status, STATUS_INVALID_REQUEST);
	ck_assert_uint_eq(message_decode(&message)->id, 3);
}
END_TEST

/* Fields of a later version are passed over, wherever they stand. */
START_TEST(unknown_fields_do_no_harm)
{
	static struct message op, message;
	struct request *req;

	op.len = message.len = 0;
	message_put_number(&op, 1, 513);
	message_put_number(&op, 2, 2);
	message_put_bytes(&op, 200, "later", 5);
	message_put_number(&message, 1, 5);
	message_put_number(&message, 100, 1);
	message_put_bytes(&message, 101, "later", 5);
	message_put_bytes(&message, 20, op.data, op.len);
	message_put(&message,
	    "\xa5\x06"
	    "1234",
	    6); /* field 100, 32 bits */
	message_put(&message,
	    "\xa1\x06"
	    "12345678",
	    10); /* field 100, 64 bits */
	req = message_decode(&message);
	ck_assert_int_eq(req->status, STATUS_OK);
	ck_assert_uint_eq(req->n_items, 2);
}
END_TEST

START_TEST(each_field_a_hundred_times_is_one)
{
	static struct message op, kdf, message;
	struct request *req;
	size_t used;

	kdf.len = op.len = message.len = 0;
	for (unsigned i = 0; i < 100; i++) {
		message_put_number(&kdf, 1, 2 - i % 2);
		message_put_bytes(&kdf, 2, "salt", 4);
		message_put_number(&kdf, 4, i);
	}
	message_put_number(&op, 1, 512);
	message_put_number(&op, 1, 513);
	message_put_bytes(&op, 2, "share", 5);
	message_put_bytes(&op, 3, kdf.data, kdf.len);
	message_put_number(&message, 1, 1);
	message_put_number(&message, 1, 2);
	message_put_bytes(&message, 21, op.data, op.len);
	for (unsigned i = 0; i < 3; i++) {
		req = message_decode(&message);
		ck_assert_msg(req->status == STATUS_OK, "%s", req->message);
		ck_assert_uint_eq(req->id, 2);
		ck_assert_int_eq(req->alg, KEM_ALG_MLKEM768);
		ck_assert_int_eq(req->kdf.hash, KEM_HASH_SHA256);
		ck_assert_uint_eq(req->kdf.length, 99);
		ck_assert_uint_eq(req->kdf.salt.len, 4);
		used = message_mem.used;
		mem_wipe(&message_mem);
		ck_assert_uint_lt(used, 65536);
		ck_assert(rig_zero(message_mem.base, message_mem.size));
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
	    {"\xf8\xff\xff\xff\x7f\x00", 6}, /* the tag shifts out */
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
		struct request *req = (struct request *)&message_mem;

		ck_assert_int_eq(message_decode_raw(cases[i].bytes, cases[i].len, &req),
		    CODEC_E_BROKEN);
		ck_assert_ptr_null(req);
		ck_assert_uint_eq(message_mem.used, 0);
		ck_assert(rig_zero(message_mem.base, message_mem.size));
	}
}
END_TEST

/* Memory that runs out in the middle of a message: as broken, and nothing stays. */
START_TEST(a_message_without_room_leaves_nothing)
{
	static struct message op, message;
	struct request *req;
	size_t mark;

	op.len = message.len = 0;
	for (unsigned i = 0; i < 60; i++)
		message_put_bytes(&op, 2, "sixteen bytes...", 16);
	message_put_bytes(&message, 21, op.data, op.len);
	/* What a message takes goes with the size of its pointers. */
	for (size_t room = 64; room < 512 * sizeof(void *); room += 64) {
		mark = mem_room(&message_mem) - room;
		ck_assert_ptr_nonnull(mem_alloc(&message_mem, mark));
		ck_assert_int_eq(codec_decode(&message_mem, message.data, message.len,
				     MESSAGE_ARRIVED_US, MESSAGE_DEFAULT_US, &req),
		    CODEC_E_BROKEN);
		ck_assert_ptr_null(req);
		ck_assert_uint_eq(message_mem.used, mark);
		ck_assert(rig_zero(message_mem.base, message_mem.size));
		mem_wipe(&message_mem);
	}
}
END_TEST

START_TEST(empty_repeated_fields_do_no_harm)
{
	/* For each number: the field as bytes of length 0, alone and inside. */
	for (uint32_t field = 1; field < 50; field++) {
		static struct message op, message;
		struct request *req;

		op.len = message.len = 0;
		message_put_bytes(&message, field, NULL, 0);
		(void)!message_decode_raw(message.data, message.len, &req);
		for (uint32_t inner = 1; inner < 6; inner++) {
			op.len = message.len = 0;
			message_put_bytes(&op, inner, NULL, 0);
			message_put_bytes(&message, field, op.data, op.len);
			(void)!message_decode_raw(message.data, message.len, &req);
		}
		mem_wipe(&message_mem);
	}
	ck_assert(rig_zero(message_mem.base, message_mem.size));
}
END_TEST

START_TEST(a_message_over_the_limit_is_broken)
{
	uint8_t *big = calloc(1, WIRE_MAX_FRAME_BYTES + 1);
	struct request *req;

	ck_assert_int_eq(codec_decode(&message_mem, big, WIRE_MAX_FRAME_BYTES + 1,
			     MESSAGE_ARRIVED_US, MESSAGE_DEFAULT_US, &req),
	    CODEC_E_BROKEN);
	free(big);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("codec_refused");
	TCase *tc = tcase_create("codec_refused");

	tcase_add_checked_fixture(tc, message_setup, message_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, too_many_items_keep_the_id_and_are_not_decoded);
	tcase_add_test(tc, two_operations_are_refused);
	tcase_add_test(tc, two_kdfs_are_refused);
	tcase_add_test(tc, no_operation_or_an_unknown_one_is_refused);
	tcase_add_test(tc, unknown_fields_do_no_harm);
	tcase_add_test(tc, each_field_a_hundred_times_is_one);
	tcase_add_test(tc, broken_messages_leave_nothing);
	tcase_add_test(tc, a_message_without_room_leaves_nothing);
	tcase_add_test(tc, empty_repeated_fields_do_no_harm);
	tcase_add_test(tc, a_message_over_the_limit_is_broken);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
