/* SPDX-License-Identifier: Apache-2.0 */
/* Codec memory, alone and under messages of every shape. */
#include <stdlib.h>
#include <string.h>

#include "message.h"

START_TEST(memory_is_aligned_zero_and_bounded)
{
	uint8_t *p, *staged;

	p = mem_alloc(&message_mem, 1);
	ck_assert_uint_eq((uintptr_t)p % 16, 0);
	ck_assert_ptr_eq(mem_alloc(&message_mem, 16), p + 16);
	ck_assert_ptr_nonnull(mem_alloc(&message_mem, 0));
	memset(p, 0xaa, 32);
	staged = mem_stage(&message_mem, 100);
	memset(staged, 0xbb, 100);
	ck_assert_uint_eq(mem_room(&message_mem), CODEC_MEM_BYTES - 32 - 112);
	ck_assert_ptr_null(mem_alloc(&message_mem, mem_room(&message_mem) + 1));
	ck_assert_ptr_null(mem_alloc(&message_mem, SIZE_MAX));
	p = mem_alloc(&message_mem, mem_room(&message_mem));
	ck_assert_ptr_nonnull(p);
	memset(p, 0xcc, 100);
	ck_assert_uint_eq(mem_room(&message_mem), 0);
	ck_assert_ptr_null(mem_alloc(&message_mem, 1));
	mem_unstage(&message_mem);
	ck_assert_ptr_null(rig_find(message_mem.base, message_mem.size, "\xbb", 1));
	mem_rewind(&message_mem, 32);
	p = mem_alloc(&message_mem, 64);
	for (unsigned i = 0; i < 64; i++)
		ck_assert_uint_eq(p[i], 0);
	ck_assert_ptr_null(mem_stage(&message_mem, CODEC_MEM_BYTES));
	mem_wipe(&message_mem);
	ck_assert(rig_zero(message_mem.base, message_mem.size));
	ck_assert_uint_eq(mem_room(&message_mem), CODEC_MEM_BYTES);
}
END_TEST

enum shape {
	SHAPE_ONE_BIG,                /* one value that fills the frame */
	SHAPE_ITEMS,                  /* 64 decapsulations of 8 KiB each */
	SHAPE_UNKMESSAGE_ARRIVED_USN, /* as many unknown fields as may be, sharing the frame */
	SHAPE_UNKMESSAGE_ARRIVED_USN_SMALL, /* the same, of two bytes */
	SHAPE_IN_ITEM, /* as many fields as may be, all in one item */
	SHAPE_N,
};

static void
shape_make(enum shape shape, struct message *message)
{
	static struct message op, item, fill;

	message->len = op.len = item.len = 0;
	memset(fill.data, 0x5a, sizeof(fill.data));
	message_put_number(message, 1, 1);
	message_put_number(&op, 1, 514);
	switch (shape) {
	case SHAPE_ONE_BIG:
		message_put_bytes(&op, 2, fill.data, WIRE_MAX_FRAME_BYTES - 32);
		message_put_bytes(message, 21, op.data, op.len);
		break;
	case SHAPE_ITEMS:
		for (unsigned i = 0; i < WIRE_MAX_ITEMS; i++) {
			item.len = 0;
			message_put_bytes(&item, 1, fill.data, 20);
			message_put_bytes(&item, 2, fill.data, 4000);
			message_put_bytes(&item, 3, fill.data, 4100);
			message_put_bytes(&op, 2, item.data, item.len);
		}
		message_put_bytes(message, 22, op.data, op.len);
		break;
	case SHAPE_UNKMESSAGE_ARRIVED_USN:
		message_put_bytes(message, 21, op.data, op.len);
		for (unsigned i = 0; i < WIRE_MAX_FIELDS - 3; i++)
			message_put_bytes(message, 100, fill.data, 505);
		break;
	case SHAPE_UNKMESSAGE_ARRIVED_USN_SMALL:
		message_put_bytes(message, 21, op.data, op.len);
		for (unsigned i = 0; i < WIRE_MAX_FIELDS - 3; i++)
			message_put_bytes(message, 15, NULL, 0);
		break;
	default:
		for (unsigned i = 0; i < WIRE_MAX_FIELDS - 3; i++)
			message_put_bytes(&item, 3, fill.data, 17);
		for (unsigned i = 0; i < WIRE_MAX_ITEMS; i++)
			message_put_bytes(
			    &op, 2, i ? NULL : item.data, i ? 0 : item.len);
		message_put_bytes(message, 22, op.data, op.len);
		break;
	}
}

/* No message of any shape is refused for want of memory, and all of it is wiped. */
START_TEST(every_shape_finds_room)
{
	static struct message message;
	struct request *req;
	size_t spare;

	shape_make(_i, &message);
	ck_assert(codec_mem_fits(&message_mem, message.len));
	ck_assert_int_eq(message_decode_raw(message.data, message.len, &req), 0);
	ck_assert_int_eq(req->status, STATUS_OK);
	mem_wipe(&message_mem);
	ck_assert(rig_zero(message_mem.base, message_mem.size));

	/* With just as much room as codec_mem_fits() asks for it is the same. */
	for (spare = 0; codec_mem_fits(&message_mem, message.len); spare += 4096)
		ck_assert_ptr_nonnull(mem_alloc(&message_mem, 4096));
	mem_rewind(&message_mem, spare - 4096);
	ck_assert_int_eq(message_decode_raw(message.data, message.len, &req), 0);
	ck_assert_int_eq(req->status, STATUS_OK);
}
END_TEST

START_TEST(fields_beyond_the_limit_are_refused_undecoded)
{
	static struct message message;
	struct request *req;

	message.len = 0;
	message_put_number(&message, 1, 6);
	message_put_bytes(&message, 11, NULL, 0);
	for (unsigned i = 0; i < WIRE_MAX_FIELDS; i++)
		message_put_number(&message, 15, 0);
	req = message_decode(&message);
	ck_assert_int_eq(req->status, STATUS_INVALID_REQUEST);
	ck_assert_uint_eq(req->id, 6);
	ck_assert_uint_lt(message_mem.used, 4096);
}
END_TEST

START_TEST(the_largest_message_always_fits_an_empty_memory)
{
	for (size_t len = 1; len <= WIRE_MAX_FRAME_BYTES; len += 1 + len / 64)
		ck_assert(codec_mem_fits(&message_mem, len));
	ck_assert(codec_mem_fits(&message_mem, WIRE_MAX_FRAME_BYTES));
	ck_assert_ptr_nonnull(mem_alloc(&message_mem, CODEC_MEM_BYTES - 65536));
	ck_assert(!codec_mem_fits(&message_mem, 1));
}
END_TEST

START_TEST(a_missing_wipe_is_seen)
{
	static struct message message;
	struct request *req;

	if (!rig_hooks())
		return;
	shape_make(SHAPE_ITEMS, &message);
	rig_fault("codec-no-wipe");
	ck_assert_int_eq(message_decode_raw(message.data, message.len, &req), 0);
	mem_wipe(&message_mem);
	ck_assert(!rig_zero(message_mem.base, message_mem.size));
	kem_wipe(message_mem.base, message_mem.size);
	rig_fault("codec-no-unstage-wipe");
	ck_assert_int_eq(message_decode_raw(message.data, message.len, &req), 0);
	mem_wipe(&message_mem);
	ck_assert(!rig_zero(message_mem.base, message_mem.size));
}
END_TEST

/* Messages with a few bytes changed: any answer is good, but memory stays in order. */
START_TEST(changed_messages_are_decoded_or_refused)
{
	static struct message message, changed;
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
		r = message_decode_raw(changed.data, message.len, &req);
		ck_assert(r == 0 || r == CODEC_E_BROKEN);
		ck_assert_int_eq(r == 0, req != NULL);
		n_good += r == 0;
		n_broken += r != 0;
		mem_wipe(&message_mem);
	}
	ck_assert_uint_gt(n_good, 0);
	ck_assert_uint_gt(n_broken, 0);
	ck_assert(rig_zero(message_mem.base, message_mem.size));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("mem");
	TCase *tc = tcase_create("mem");

	tcase_add_checked_fixture(tc, message_setup, message_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, memory_is_aligned_zero_and_bounded);
	tcase_add_loop_test(tc, every_shape_finds_room, 0, SHAPE_N);
	tcase_add_test(tc, fields_beyond_the_limit_are_refused_undecoded);
	tcase_add_test(tc, the_largest_message_always_fits_an_empty_memory);
	tcase_add_test(tc, a_missing_wipe_is_seen);
	tcase_add_test(tc, changed_messages_are_decoded_or_refused);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
