/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison, selection and wiping: every length to 100, every byte, every bit, at any
 * alignment. That they take the same time for all values is not shown here.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kem/arch/backend.h"
#include "kem/ct.h"
#include "tests/kem/kemtest.h"

#define LEN_MAX 100
#define ONES    UINT64_MAX

START_TEST(test_masks)
{
	ck_assert_uint_eq(ct_mask_nonzero(0), 0);
	ck_assert_uint_eq(ct_mask_bit(0), 0);
	for (unsigned i = 0; i < 64; i++) {
		uint64_t x = UINT64_C(1) << i;

		ck_assert_uint_eq(ct_mask_nonzero(x), ONES);
		ck_assert_uint_eq(ct_mask_nonzero(ONES - x), ONES);
		ck_assert_uint_eq(ct_mask_nonzero(0 - x), ONES);
		ck_assert_uint_eq(ct_mask_bit(x), i == 0 ? ONES : 0);
		ck_assert_uint_eq(ct_mask_bit(x | 1), ONES);
		ck_assert_uint_eq(ct_mask_bit(ONES - x), i == 0 ? 0 : ONES);
		ck_assert_uint_eq(ct_barrier(x), x);
		ck_assert_uint_eq(ct_select(0, x, ~x), ~x);
		ck_assert_uint_eq(ct_select(ONES, x, ~x), x);
	}
	ck_assert_uint_eq(ct_mask_nonzero(2), ONES);
	ck_assert_uint_eq(ct_mask_nonzero(255), ONES);
}
END_TEST

static unsigned
compare_is_wrong(const struct backend *backend)
{
	struct test_stream stream;
	unsigned wrong = 0;

	test_stream_init(&stream, test_seed(), "compare");
	for (size_t len = 0; len <= LEN_MAX; len++) {
		/* Each ends where its memory does, and neither is aligned. */
		uint8_t *a_memory = malloc(len + 1), *b_memory = malloc(len + 5);
		uint8_t *a, *b;

		ck_assert(a_memory != NULL && b_memory != NULL);
		a = a_memory + 1;
		b = b_memory + 5;
		test_stream_fill(&stream, a, len);
		memcpy(b, a, len);
		wrong += backend->compare(a, b, len) != 0;
		for (size_t i = 0; i < len; i++) {
			for (unsigned bit = 0; bit < 8; bit++) {
				b[i] ^= (uint8_t)(1u << bit);
				wrong += backend->compare(a, b, len) == 0;
				wrong += ct_mask_nonzero(backend->compare(b, a, len)) !=
					 ONES;
				b[i] ^= (uint8_t)(1u << bit);
			}
		}
		/* Differences that would cancel in a sum or an exclusive or. */
		for (size_t i = 1; i < len; i++) {
			b[i] ^= 0x81;
			b[i - 1] ^= 0x81;
			wrong += backend->compare(a, b, len) == 0;
			b[i] ^= 0x81;
			b[i - 1] ^= 0x81;
		}
		free(a_memory);
		free(b_memory);
	}
	return wrong;
}

/* The length of a whole ciphertext, one bit at each position. */
START_TEST(test_compare_long)
{
	static uint8_t a[1568], b[1568];

	for (size_t i = 0; i < sizeof b; i++) {
		b[i] = 1;
		ck_assert_uint_ne(test_backend()->compare(a, b, sizeof b), 0);
		b[i] = 0;
	}
	ck_assert_uint_eq(test_backend()->compare(a, b, sizeof b), 0);
}
END_TEST

static unsigned
select_is_wrong(const struct backend *backend)
{
	struct test_stream stream;
	unsigned wrong = 0;

	test_stream_init(&stream, test_seed(), "select");
	for (size_t len = 0; len <= LEN_MAX; len++) {
		for (unsigned i = 0; i < 6; i++) {
			uint8_t a[1 + LEN_MAX], b[2 + LEN_MAX], other[3 + LEN_MAX + 1];
			uint8_t want[LEN_MAX];
			uint8_t *out = i < 2 ? other + 3 : i < 4 ? a + 1 : b + 2;
			uint64_t mask = i & 1 ? ONES : 0;

			test_stream_fill(&stream, a, sizeof a);
			test_stream_fill(&stream, b, sizeof b);
			memset(other, 0xc5, sizeof other);
			memcpy(want, mask ? a + 1 : b + 2, len);
			backend->select(out, a + 1, b + 2, len, mask);
			wrong += memcmp(out, want, len) != 0;
			wrong += other[2] != 0xc5 || other[3 + LEN_MAX] != 0xc5;
			wrong += i < 2 && len < LEN_MAX && other[3 + len] != 0xc5;
		}
	}
	return wrong;
}

START_TEST(test_compare)
{
	ck_assert_uint_eq(compare_is_wrong(test_backend()), 0);
}
END_TEST

START_TEST(test_select)
{
	ck_assert_uint_eq(select_is_wrong(test_backend()), 0);
}
END_TEST

START_TEST(test_wipe)
{
	uint8_t bytes[LEN_MAX];

	for (size_t len = 0; len <= LEN_MAX; len++) {
		memset(bytes, 0xc5, sizeof bytes);
		ct_wipe(bytes, len);
		for (size_t i = 0; i < LEN_MAX; i++)
			ck_assert_uint_eq(bytes[i], i < len ? 0 : 0xc5);
	}
	ct_wipe(NULL, 0);
}
END_TEST

static uint64_t
compare_planted(const uint8_t *a, const uint8_t *b, size_t len)
{
	return test_backend()->compare(a, b, len & ~(size_t)7); /* without the tail */
}

static void
select_planted(
    uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask)
{
	/* A conditional move that moves nothing, where vectors would. */
	if (len < 32)
		test_backend()->select(out, a, b, len, mask);
}

START_TEST(test_control)
{
	struct backend bad = *test_backend();

	bad.compare = compare_planted;
	bad.select = select_planted;
	ck_assert_uint_gt(compare_is_wrong(&bad), 0);
	ck_assert_uint_gt(select_is_wrong(&bad), 0);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("ct");
	TCase *tcase = tcase_create("ct");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_masks);
	tcase_add_test(tcase, test_compare);
	tcase_add_test(tcase, test_compare_long);
	tcase_add_test(tcase, test_select);
	tcase_add_test(tcase, test_wipe);
	tcase_add_test(tcase, test_control);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
