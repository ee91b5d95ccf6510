/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "daemon/frame.h"
#include "proto/wire.h"
#include "rig.h"

#define MEMORY (1024u * 1024u)

static uint8_t memory[MEMORY] __attribute__((aligned(64)));
static uint8_t mem_memory[MEMORY] __attribute__((aligned(64)));
static struct slab slab;
static struct chain chain;
static struct mem mem;

static void
setup(void)
{
	ck_assert_int_eq(slab_init(&slab, memory, sizeof(memory)), 0);
	chain_init(&chain);
	mem_init(&mem, mem_memory, sizeof(mem_memory));
}

static void
teardown(void)
{
	mem_unstage(&mem);
	chain_drain(&chain, &slab, chain.len);
	slab_fini(&slab);
}

static void
add(const void *data, size_t len)
{
	ck_assert(chain_append(&chain, &slab, data, len));
}

static enum frame_state
peek(size_t *size)
{
	return frame_peek(&chain, WIRE_MAX_FRAME_BYTES, size);
}

START_TEST(every_length)
{
	static const struct {
		uint32_t length;
		enum frame_state state;
	} cases[] = {
	    {0, FRAME_BROKEN}, {1, FRAME_PARTIAL},
	    {WIRE_MAX_FRAME_BYTES, FRAME_PARTIAL},
	    {WIRE_MAX_FRAME_BYTES + 1, FRAME_BROKEN}, {0x7fffffff, FRAME_BROKEN},
	    {0x80000000, FRAME_BROKEN},
	    {0xfffffffb, FRAME_BROKEN}, /* where header and length wrap */
	    {0xfffffffc, FRAME_BROKEN}, {0xffffffff, FRAME_BROKEN},
	    {0x01000000, FRAME_BROKEN}, /* 1 in the other byte order */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t header[WIRE_HEADER_BYTES];
		size_t size;

		wire_put_length(header, cases[i].length);
		add(header, sizeof(header));
		ck_assert_int_eq(peek(&size), cases[i].state);
		ck_assert_uint_eq(size,
		    cases[i].state == FRAME_BROKEN ? 0 : 4 + (size_t)cases[i].length);
		chain_drain(&chain, &slab, sizeof(header));
	}
}
END_TEST

START_TEST(a_lower_limit_holds)
{
	uint8_t header[WIRE_HEADER_BYTES];
	size_t size;

	wire_put_length(header, 101);
	add(header, sizeof(header));
	ck_assert_int_eq(frame_peek(&chain, 101, &size), FRAME_PARTIAL);
	ck_assert_int_eq(frame_peek(&chain, 100, &size), FRAME_BROKEN);
}
END_TEST

START_TEST(whole_at_its_last_byte_and_not_before)
{
	uint8_t bytes[4 + 300];
	size_t size;

	memset(bytes, 7, sizeof(bytes));
	wire_put_length(bytes, 300);
	ck_assert_int_eq(peek(&size), FRAME_NONE);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		add(bytes + i, 1);
		ck_assert_int_eq(
		    peek(&size), i + 1 < sizeof(bytes) ? FRAME_PARTIAL : FRAME_WHOLE);
		ck_assert_uint_eq(size, i < 3 ? 0 : sizeof(bytes));
	}
	add("x", 1); /* of the next one: no matter */
	ck_assert_int_eq(peek(&size), FRAME_WHOLE);
}
END_TEST

START_TEST(a_message_is_staged_only_if_it_must_be)
{
	static uint8_t bytes[10000];
	size_t size;

	for (size_t i = 4; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	wire_put_length(bytes, 1000);
	add(bytes, 1004);
	ck_assert_int_eq(peek(&size), FRAME_WHOLE);
	ck_assert_mem_eq(frame_message(&chain, size, &mem), bytes + 4, 1000);
	ck_assert_uint_eq(mem.staged, 0);
	chain_drain(&chain, &slab, size);

	wire_put_length(bytes, sizeof(bytes) - 4);
	add(bytes, sizeof(bytes));
	ck_assert_int_eq(peek(&size), FRAME_WHOLE);
	ck_assert_mem_eq(
	    frame_message(&chain, size, &mem), bytes + 4, sizeof(bytes) - 4);
	ck_assert_uint_gt(mem.staged, 0);
}
END_TEST

START_TEST(no_room_to_stage)
{
	static uint8_t bytes[10000];
	size_t size;

	wire_put_length(bytes, sizeof(bytes) - 4);
	add(bytes, sizeof(bytes));
	ck_assert_int_eq(peek(&size), FRAME_WHOLE);
	ck_assert_ptr_nonnull(mem_alloc(&mem, mem_room(&mem) - 4096));
	ck_assert_ptr_null(frame_message(&chain, size, &mem));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("frame");
	TCase *tcase = tcase_create("frame");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, every_length);
	tcase_add_test(tcase, a_lower_limit_holds);
	tcase_add_test(tcase, whole_at_its_last_byte_and_not_before);
	tcase_add_test(tcase, a_message_is_staged_only_if_it_must_be);
	tcase_add_test(tcase, no_room_to_stage);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
