/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implicit rejection (FIPS 203 6.3): each bit of a ciphertext flipped by itself, alone and
 * in one lane of a full group. The secret has to be exactly J(z || c'), computed by
 * OpenSSL's SHAKE256, the status that of success, and the other lanes bit for bit as ever.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kem/grouptest.h"
#include "tests/kem/kemtest.h"

static struct test_stream stream;

/* Which bits of a byte get a flip: all, or where time is short another one each. */
static unsigned
bits_of_byte(size_t at, bool is_short)
{
	return is_short ? 1u << (at * 5 + at / 8) % 8 : 0xff;
}

static bool
is_short_run(void)
{
	const char *length = getenv("MLKEMD_TEST_LENGTH");

	return getenv("MLKEMD_SANITIZER") || (length && strcmp(length, "quick") == 0);
}

/* Groups of a backend without vectors are worked lane by lane, and slowly. */
static bool
is_short_group(void)
{
	return is_short_run() || (strncmp(test_backend()->name, "generic", 7) == 0 &&
				     getenv("MLKEMD_LONG") == NULL);
}

/* Bytes of ML-KEM's part of a ciphertext. */
static size_t
ml_bytes(enum kem_alg alg)
{
	return kem_alg_info(alg)->ct_bytes - (alg == KEM_ALG_X25519MLKEM768 ? 32u : 0u);
}

static unsigned
lone_is_wrong(const struct kem *kem, const struct test_item *item,
    struct kem_decaps_item *decaps, struct test_item *out)
{
	struct kem_shared want;

	test_rejected(&want, item, item->ct, &item->made);
	memset(&out->found, 0xa6, sizeof out->found);
	ck_assert_int_eq(kem_decaps(kem, item->alg, decaps, 1, test_scratch()), 0);
	return decaps->status != KEM_OK || memcmp(&out->found, &want, sizeof want) != 0;
}

/* Of flips in bytes from to to - 1 of a lone ciphertext: how many come out wrong. */
static unsigned
lone_flips_are_wrong(const struct backend *backend, enum kem_alg alg, size_t from,
    size_t to, bool is_short)
{
	static struct test_item item, out;
	struct kem_decaps_item decaps;
	struct kem *kem;
	unsigned wrong = 0;

	ck_assert_int_eq(kem_open_with(&kem, backend), 0);
	test_stream_init(&stream, test_seed(), "lone flips");
	test_item_make(&item, alg, &stream);
	test_item_blank(&out, alg);
	decaps = test_decaps_item(&item, &out);
	for (size_t at = from; at < to; at++) {
		unsigned bits = bits_of_byte(at, is_short);

		for (unsigned bit = 1; bit < 0x100; bit <<= 1) {
			if (!(bits & bit))
				continue;
			item.ct[at] ^= (uint8_t)bit;
			wrong += lone_is_wrong(kem, &item, &decaps, &out);
			item.ct[at] ^= (uint8_t)bit;
		}
	}
	test_item_check(&out);
	kem_free(kem);
	return wrong;
}

/* One call for a group, of whose items `who` has another ciphertext than was made. */
static unsigned
group_is_wrong(struct group_of *g, const struct backend *backend, size_t who)
{
	uint8_t want[32];
	unsigned wrong = 0;

	test_shake256(want, 32, g->pair[who].z, 32, g->pair[who].ct, ml_bytes(g->set));
	mlkem_decaps(backend, g->set, g->decaps, N_MAX, group_work);
	for (size_t i = 0; i < N_MAX; i++) {
		const uint8_t *k = i == who ? want : g->pair[i].made;

		wrong += g->decaps[i].status != KEM_OK ||
			 memcmp(g->pair[i].found, k, 32) != 0;
	}
	return wrong;
}

/* The lane of the flip goes round, so that each sees an eighth of all bits of each kind. */
static unsigned
group_flips_are_wrong(const struct backend *backend, enum kem_alg set, bool is_short)
{
	static struct group_of g;
	unsigned wrong = 0;

	group_reset(&g, set, N_MAX, "group flips");
	group_run(&g, &backend_generic);
	for (size_t at = 0; at < ml_bytes(set); at++) {
		unsigned bits = bits_of_byte(at, is_short);

		for (unsigned i = 0; i < 8; i++) {
			size_t who = (at + at / 8 + i) % N_MAX;

			if (!(bits >> i & 1))
				continue;
			g.pair[who].ct[at] ^= (uint8_t)(1u << i);
			wrong += group_is_wrong(&g, backend, who);
			g.pair[who].ct[at] ^= (uint8_t)(1u << i);
		}
	}
	group_canaries(&g);
	return wrong;
}

START_TEST(test_lone)
{
	const enum kem_alg alg = (enum kem_alg)_i;

	ck_assert_uint_eq(
	    lone_flips_are_wrong(test_backend(), alg, 0, ml_bytes(alg), is_short_run()),
	    0);
}
END_TEST

START_TEST(test_group)
{
	ck_assert_uint_eq(
	    group_flips_are_wrong(test_backend(), group_sets[_i], is_short_group()), 0);
}
END_TEST

/*
 * Comparisons that leave something out. A ciphertext of ML-KEM-512 is compared in pieces
 * of 320, 320 and 128 bytes.
 */
static size_t ignored;

static uint64_t
compare_but_one(const uint8_t *a, const uint8_t *b, size_t len)
{
	if (len <= ignored)
		return test_backend()->compare(a, b, len);
	return test_backend()->compare(a, b, ignored) |
	       test_backend()->compare(
		   a + ignored + 1, b + ignored + 1, len - ignored - 1);
}

static uint64_t
compare_no_tail(const uint8_t *a, const uint8_t *b, size_t len)
{
	return len == 128 ? 0 : test_backend()->compare(a, b, len);
}

static uint64_t
compare_seven_bits(const uint8_t *a, const uint8_t *b, size_t len)
{
	uint64_t differs = 0;

	for (size_t i = 0; i < len; i++)
		differs |= (a[i] ^ b[i]) & 0x7f;
	return differs;
}

static void
select_nothing(
    uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask)
{
	memcpy(out, b, len); /* a conditional move that does not */
}

/* A mask left over from the item before: the neighbour of a bad one is refused too. */
static uint64_t mask_before;

static void
select_late(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask)
{
	test_backend()->select(out, a, b, len, mask | mask_before);
	mask_before = mask;
}

static unsigned
control_flips(const struct backend *bad, size_t from, size_t to)
{
	return lone_flips_are_wrong(bad, KEM_ALG_MLKEM512, from, to, false);
}

/*
 * What is left out is found by the flips that leave the message as it was: those of high
 * bits make another one, of which the whole ciphertext is another.
 */
START_TEST(test_control)
{
	static const size_t bytes[] = {0, 7, 63, 127, 128, 255, 319};
	struct backend bad = *test_backend();
	unsigned wrong;

	bad.compare = compare_but_one;
	for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
		ignored = bytes[i];
		wrong = control_flips(&bad, ignored, ignored + 1);
		ck_assert_uint_gt(wrong, 0);
		ck_assert_uint_gt(control_flips(&bad, 320 + ignored, 321 + ignored), 0);
		ck_assert_uint_eq(control_flips(&bad, 320 + ignored + 1,
				      320 + ignored + (ignored < 319 ? 2 : 1)),
		    0);
	}
	bad.compare = compare_no_tail;
	ck_assert_uint_eq(control_flips(&bad, 630, 640), 0);
	ck_assert_uint_gt(control_flips(&bad, 640, 641), 0);
	ck_assert_uint_gt(control_flips(&bad, 767, 768), 0);
	bad.compare = compare_seven_bits;
	ck_assert_uint_gt(control_flips(&bad, 0, 64), 0);
	bad = *test_backend();
	bad.select = select_nothing;
	ck_assert_uint_eq(control_flips(&bad, 0, 8), 64);
}
END_TEST

START_TEST(test_group_control)
{
	struct backend bad = *test_backend();

	bad.select = select_late;
	ck_assert_uint_gt(group_flips_are_wrong(&bad, KEM_ALG_MLKEM512, true), 0);
	bad = *test_backend();
	bad.compare = compare_no_tail;
	ck_assert_uint_gt(group_flips_are_wrong(&bad, KEM_ALG_MLKEM512, true), 0);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("rejection");
	TCase *tcase = tcase_create("rejection");

	tcase_set_timeout(tcase, 600);
	tcase_add_loop_test(tcase, test_lone, 0, KEM_N_ALGS);
	tcase_add_loop_test(tcase, test_group, 0, 3);
	tcase_add_test(tcase, test_control);
	tcase_add_test(tcase, test_group_control);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
