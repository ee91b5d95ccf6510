/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "daemon/slab.h"
#include "rig.h"

#define BLOCKS 16u
#define MEMORY (BLOCKS * SLAB_BLOCK_BYTES)

static uint8_t memory[MEMORY];
static uint8_t text[MEMORY], out[MEMORY];
static struct slab slab;
static struct chain chain;

static void
setup(void)
{
	memset(memory, 0, sizeof(memory));
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(1 + i % 251);
	ck_assert_int_eq(slab_init(&slab, memory, sizeof(memory)), 0);
	chain_init(&chain);
}

static void
teardown(void)
{
	rig_fault(NULL);
	chain_drain(&chain, &slab, chain.len);
	slab_fini(&slab);
}

static bool
memory_is_zero(void)
{
	for (size_t i = 0; i < sizeof(memory); i++)
		if (memory[i])
			return false;
	return true;
}

/* What a socket would do: writes len bytes where iov says. */
static void
receive(uint32_t n_blocks, size_t len, const uint8_t *data)
{
	struct iovec iov[BLOCKS + 1];
	int n = chain_prepare(&chain, &slab, n_blocks, iov);
	size_t left = len;

	for (int i = 0; i < n && left; i++) {
		size_t part = left < iov[i].iov_len ? left : iov[i].iov_len;

		memcpy(iov[i].iov_base, data, part);
		data += part;
		left -= part;
	}
	ck_assert_uint_eq(left, 0);
	chain_received(&chain, &slab, len, 42);
}

START_TEST(bytes_come_out_in_order)
{
	static const size_t sizes[] = {1, 4095, 4096, 4097, 3 * 4096 + 5};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ck_assert(chain_append(&chain, &slab, text, sizes[i]));
		ck_assert_uint_eq(chain.len, sizes[i]);
		ck_assert_uint_eq(chain.n_blocks,
		    (sizes[i] + SLAB_BLOCK_BYTES - 1) / SLAB_BLOCK_BYTES);
		chain_copy(&chain, 0, out, sizes[i]);
		ck_assert_mem_eq(out, text, sizes[i]);
		chain_drain(&chain, &slab, sizes[i]);
		ck_assert_uint_eq(slab.n_idle, BLOCKS);
	}
}
END_TEST

/* Against a plain queue, many random steps. */
START_TEST(behaves_like_a_queue)
{
	size_t head = 0, tail = 0; /* positions in an endless text */
	unsigned seed = 20261130;

	for (int step = 0; step < 20000; step++) {
		size_t n = (size_t)rand_r(&seed) % 6000;
		bool room = chain.len + n < 8 * SLAB_BLOCK_BYTES;

		switch (rand_r(&seed) % 3) {
		case 0:
			if (room) {
				receive(10, n, text + tail % 251);
				tail += n;
			}
			break;
		case 1:
			if (room) {
				ck_assert(
				    chain_append(&chain, &slab, text + tail % 251, n));
				tail += n;
			}
			break;
		default:
			n = n < chain.len ? n : chain.len;
			chain_copy(&chain, 0, out, n);
			ck_assert_mem_eq(out, text + head % 251, n);
			chain_drain(&chain, &slab, n);
			head += n;
			break;
		}
		ck_assert_uint_eq(chain.len, tail - head);
		ck_assert_uint_eq(slab.n_idle + chain.n_blocks, BLOCKS);
		ck_assert(chain.len || !chain.n_blocks);
	}
}
END_TEST

START_TEST(blocks_not_written_to_go_back)
{
	receive(8, 1, text);
	ck_assert_uint_eq(chain.n_blocks, 1);
	receive(8, 4095, text);
	ck_assert_uint_eq(chain.n_blocks, 1);
	receive(8, 0, text);
	ck_assert_uint_eq(chain.n_blocks, 1);
	receive(8, 4097, text);
	ck_assert_uint_eq(chain.n_blocks, 3);
	ck_assert_uint_eq(slab.n_idle, BLOCKS - 3);
}
END_TEST

START_TEST(the_last_quarter_is_for_answers)
{
	struct iovec iov[BLOCKS + 1];
	struct chain answers;

	receive(BLOCKS, 12 * SLAB_BLOCK_BYTES, text);
	ck_assert_uint_eq(slab.n_idle, 4);
	ck_assert_uint_eq(slab_input_room(&slab), 0);
	ck_assert_int_eq(chain_prepare(&chain, &slab, BLOCKS, iov), 0);
	chain_received(&chain, &slab, 0, 0);
	chain_init(&answers);
	ck_assert(chain_append(&answers, &slab, text, 4 * SLAB_BLOCK_BYTES));
	ck_assert(!chain_append(&answers, &slab, text, 1));
	chain_drain(&answers, &slab, answers.len);
}
END_TEST

START_TEST(what_leaves_is_wiped)
{
	receive(8, 10000, text);
	ck_assert(!memory_is_zero());
	chain_drain(&chain, &slab, 5000);
	/* The part that is gone of a block that stays, too. */
	for (size_t i = 0; i < 5000; i++)
		ck_assert_uint_eq(memory[i], 0);
	chain_drain(&chain, &slab, 5000);
	ck_assert(memory_is_zero());
	ck_assert(chain_append(&chain, &slab, text, 9000));
	chain_drain(&chain, &slab, 9000);
	ck_assert(memory_is_zero());
}
END_TEST

START_TEST(control_a_missing_wipe_is_seen)
{
	if (!rig_hooks())
		return;
	rig_fault("conn-no-wipe");
	receive(8, 10000, text);
	chain_drain(&chain, &slab, 10000);
	ck_assert(!memory_is_zero());
}
END_TEST

START_TEST(in_one_block_or_not)
{
	ck_assert_ptr_null(chain_contiguous(&chain, 0, 1));
	receive(8, 5000, text);
	ck_assert_mem_eq(chain_contiguous(&chain, 4, 4092), text + 4, 4092);
	ck_assert_ptr_null(chain_contiguous(&chain, 4, 4093));
	ck_assert_mem_eq(chain_contiguous(&chain, 4096, 904), text + 4096, 904);
	ck_assert_ptr_null(chain_contiguous(&chain, 4096, 905));
	ck_assert_ptr_null(chain_contiguous(&chain, 5000, 1));
}
END_TEST

START_TEST(times_are_of_the_blocks)
{
	struct iovec iov[BLOCKS + 1];

	receive(8, 100, text); /* at 42 */
	chain_prepare(&chain, &slab, 8, iov);
	chain_received(&chain, &slab, 6000, 77);
	ck_assert_uint_eq(chain_written_us(&chain, 100), 77); /* of its block */
	ck_assert_uint_eq(chain_written_us(&chain, 6100), 77);
	chain_drain(&chain, &slab, 6100);
	receive(8, 1, text);
	ck_assert_uint_eq(chain_written_us(&chain, 1), 42);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("slab");
	TCase *tcase = tcase_create("slab");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, bytes_come_out_in_order);
	tcase_add_test(tcase, behaves_like_a_queue);
	tcase_add_test(tcase, blocks_not_written_to_go_back);
	tcase_add_test(tcase, the_last_quarter_is_for_answers);
	tcase_add_test(tcase, what_leaves_is_wiped);
	tcase_add_test(tcase, control_a_missing_wipe_is_seen);
	tcase_add_test(tcase, in_one_block_or_not);
	tcase_add_test(tcase, times_are_of_the_blocks);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
