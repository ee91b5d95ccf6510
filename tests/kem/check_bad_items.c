/* SPDX-License-Identifier: Apache-2.0 */
/* kem.c: a bad item gets its status and zeros, wherever it stands; others don't notice. */
#include <check.h>
#include <string.h>

#include "tests/kem/kembatch.h"

static const size_t bad_counts[] = {1, 2, 7, 8, 9, 17};

/* Every wrong length of a share, at every place of a group and behind it. */
START_TEST(test_share_length)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const size_t right = kem_alg_info(alg)->share_bytes;
	const size_t wrong[] = {
	    0, 1, 32, right - 1, right + 1, 800, 1184, 1216, 1568, (size_t)-1};

	for (size_t c = 0; c < sizeof(bad_counts) / sizeof(bad_counts[0]); c++) {
		const size_t n = bad_counts[c];

		batch_prepare(alg, n, "share");
		for (size_t bad = 0; bad < n; bad++) {
			const size_t len = wrong[(bad + c) % 10];

			if (len == right)
				continue;
			for (size_t i = 0; i < n; i++)
				test_item_blank(&batch[i], alg);
			encaps[bad].share_len = len;
			ck_assert_int_eq(kem_encaps_derand(test_kem(), alg, encaps, n,
					     m, test_scratch()),
			    0);
			for (size_t i = 0; i < n; i++) {
				if (i == bad)
					assert_encaps_failed(i, KEM_E_LENGTH);
				else
					assert_encaps_equal(i);
			}
			encaps[bad].share_len = right;
		}
	}
}
END_TEST

/* A value of q at the first, the last and a middle place (FIPS 203 7.2). */
START_TEST(test_share_modulus)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const size_t ek_values = kem_alg_info(alg)->secret_bytes / 384 * 256;
	const size_t places[] = {
	    0, 1, 255, 256, ek_values / 2, ek_values - 2, ek_values - 1};
	uint8_t *share, kept[3];

	batch_prepare(alg, 9, "modulus");
	for (size_t bad = 0; bad < 9; bad++) {
		const size_t place = places[bad % 7];

		share = single[bad].share + place / 2 * 3;
		memcpy(kept, share, 3);
		if (place % 2 == 0) {
			share[0] = 0x01;
			share[1] = (uint8_t)((share[1] & 0xf0) | 0x0d);
		} else {
			share[1] = (uint8_t)((share[1] & 0x0f) | 0x10);
			share[2] = 0xd0;
		}
		ck_assert_int_eq(kem_check_share(test_kem(), alg, single[bad].share,
				     kem_alg_info(alg)->share_bytes, test_scratch()),
		    KEM_E_SHARE);
		ck_assert_int_eq(
		    kem_encaps_derand(test_kem(), alg, encaps, 9, m, test_scratch()),
		    0);
		for (size_t i = 0; i < 9; i++) {
			if (i == bad)
				assert_encaps_failed(i, KEM_E_SHARE);
			else
				assert_encaps_equal(i);
		}
		memcpy(share, kept, 3);
	}
}
END_TEST

START_TEST(test_ct_length)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const size_t right = kem_alg_info(alg)->ct_bytes;
	const size_t wrong[] = {
	    0, 1, 32, right - 1, right + 1, 768, 1088, 1120, 1568, (size_t)-1};

	batch_prepare(alg, 17, "ct");
	for (size_t bad = 0; bad < 17; bad++) {
		const size_t len = wrong[bad % 10];

		if (len == right)
			continue;
		for (size_t i = 0; i < 17; i++)
			test_item_blank(&batch[i], alg);
		decaps[bad].ct_len = len;
		ck_assert_int_eq(
		    kem_decaps(test_kem(), alg, decaps, 17, test_scratch()), 0);
		for (size_t i = 0; i < 17; i++) {
			if (i == bad)
				assert_decaps_failed(i, KEM_E_LENGTH);
			else
				assert_decaps_equal(i);
		}
		decaps[bad].ct_len = right;
	}
}
END_TEST

START_TEST(test_key_of_another_algorithm)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	struct test_stream stream;
	struct test_item other;

	batch_prepare(alg, 9, "alg");
	test_stream_init(&stream, test_seed(), "other");
	for (int o = 0; o < KEM_N_ALGS; o++) {
		if ((enum kem_alg)o == alg)
			continue;
		test_item_make(&other, (enum kem_alg)o, &stream);
		for (size_t bad = 0; bad < 9; bad++) {
			decaps[bad].key = &other.key;
			ck_assert_int_eq(
			    kem_decaps(test_kem(), alg, decaps, 9, test_scratch()), 0);
			for (size_t i = 0; i < 9; i++) {
				if (i == bad)
					assert_decaps_failed(i, KEM_E_ALG);
				else
					assert_decaps_equal(i);
			}
			decaps[bad].key = &single[bad].key;
		}
	}
}
END_TEST

/* FIPS 203 7.3: the hash of the encapsulation key, wrong in itself or of another key. */
START_TEST(test_key_hash)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const struct kem_alg_info *info = kem_alg_info(alg);
	static struct kem_private views[9];

	batch_prepare(alg, 9, "hash");
	for (size_t i = 0; i < 9; i++) {
		ck_assert_int_eq(
		    kem_private_from_dk(&views[i], alg, single[i].dk, info->dk_bytes),
		    KEM_OK);
		ck_assert(!views[i].trusted);
		decaps[i].key = &views[i];
	}
	for (size_t bad = 0; bad < 9; bad++) {
		uint8_t *where = single[bad].dk +
				 (size_t)((bad % 2 ? views[bad].h : views[bad].ek) -
					  single[bad].dk) +
				 bad;

		*where ^= 0x10;
		ck_assert_int_eq(kem_check_dk(test_kem(), alg, single[bad].dk,
				     info->dk_bytes, test_scratch()),
		    KEM_E_KEY);
		ck_assert_int_eq(
		    kem_decaps(test_kem(), alg, decaps, 9, test_scratch()), 0);
		for (size_t i = 0; i < 9; i++) {
			if (i == bad)
				assert_decaps_failed(i, KEM_E_KEY);
			else
				assert_decaps_equal(i);
		}
		*where ^= 0x10;
		ck_assert_int_eq(kem_check_dk(test_kem(), alg, single[bad].dk,
				     info->dk_bytes, test_scratch()),
		    KEM_OK);
	}
}
END_TEST

/*
 * Every rejected value is exactly J(z || ct), computed by other code, and status and
 * neighbours show nothing; z itself is free to be anything.
 */
START_TEST(test_implicit_rejection)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const size_t ct_bytes = kem_alg_info(alg)->ct_bytes;
	const size_t ml_bytes = ct_bytes - (alg == KEM_ALG_X25519MLKEM768 ? 32 : 0);
	struct test_stream stream;
	struct kem_shared expected[9];

	batch_prepare(alg, 9, "reject");
	test_stream_init(&stream, test_seed(), "flips");
	for (int round = 0; round < 60; round++) {
		for (size_t i = 0; i < 9; i++)
			expected[i] = single[i].made;
		for (size_t i = round % 9; i < 9;
		     i += 1 + test_stream_below(&stream, 4)) {
			single[i].ct[test_stream_below(&stream, (uint32_t)ml_bytes)] ^=
			    (uint8_t)(1u << test_stream_below(&stream, 8));
			test_rejected(
			    &expected[i], &single[i], single[i].ct, &single[i].made);
		}
		ck_assert_int_eq(
		    kem_decaps(test_kem(), alg, decaps, 9, test_scratch()), 0);
		for (size_t i = 0; i < 9; i++) {
			ck_assert_int_eq(decaps[i].status, KEM_OK);
			ck_assert_mem_eq(
			    &batch[i].found, &expected[i], sizeof(expected[i]));
			single[i].found = single[i].made;
		}
		for (size_t i = 0; i < 9; i++) {
			ck_assert_int_eq(
			    kem_encaps_derand(test_kem(), alg,
				&(struct kem_encaps_item){.share = single[i].share,
				    .share_len = kem_alg_info(alg)->share_bytes,
				    .ephemeral = &single[i].ephemeral,
				    .ct = single[i].ct,
				    .shared = &single[i].found},
				1, &m[i], test_scratch()),
			    0);
		}
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("bad items");
	TCase *tc = tcase_create("bad items");

	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, test_share_length, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_share_modulus, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_ct_length, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_key_of_another_algorithm, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_key_hash, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_implicit_rejection, 0, KEM_N_ALGS);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
