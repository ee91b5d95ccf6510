/* SPDX-License-Identifier: Apache-2.0 */
/* alg.c and key.c: sizes, names, sentences; the forms of a private key. */
#include "kem/alg.h"

#include <check.h>
#include <string.h>

#include "tests/kem/kemtest.h"

/* The tables of FIPS 203 (section 8) and RFC 10024 (section 4.1), typed again. */
static const struct kem_alg_info table[KEM_N_ALGS] = {
    {"ML-KEM-512", 800, 768, 32, 768 + 64, 1632, 64},
    {"ML-KEM-768", 1184, 1088, 32, 1152 + 64, 2400, 64},
    {"ML-KEM-1024", 1568, 1568, 32, 1536 + 64, 3168, 64},
    {"X25519MLKEM768", 1216, 1120, 64, 1152 + 64 + 32, 2432, 96},
};

START_TEST(test_sizes)
{
	const struct kem_alg_info *info = kem_alg_info((enum kem_alg)_i);
	const struct alg_half *half = alg_half((enum kem_alg)_i);
	const unsigned x = half->is_hybrid ? 32 : 0;

	ck_assert_str_eq(info->name, table[_i].name);
	ck_assert_uint_eq(info->share_bytes, table[_i].share_bytes);
	ck_assert_uint_eq(info->ct_bytes, table[_i].ct_bytes);
	ck_assert_uint_eq(info->shared_bytes, table[_i].shared_bytes);
	ck_assert_uint_eq(info->secret_bytes, table[_i].secret_bytes);
	ck_assert_uint_eq(info->dk_bytes, table[_i].dk_bytes);
	ck_assert_uint_eq(info->seed_bytes, table[_i].seed_bytes);
	ck_assert_uint_eq(info->share_bytes, half->ek_bytes + x);
	ck_assert_uint_eq(info->ct_bytes, half->ct_bytes + x);
	ck_assert_uint_eq(info->secret_bytes, half->secret_bytes + x);
	ck_assert_uint_eq(info->dk_bytes, half->dk_bytes + x);
	ck_assert_uint_eq(half->s_bytes + half->ek_bytes + 64, half->dk_bytes);
	ck_assert_uint_le(info->share_bytes, KEM_SHARE_MAX);
	ck_assert_uint_le(info->ct_bytes, KEM_CT_MAX);
	ck_assert_uint_le(info->shared_bytes, KEM_SHARED_MAX);
	ck_assert_uint_le(info->secret_bytes, KEM_SECRET_MAX);
	ck_assert_uint_le(info->dk_bytes, KEM_DK_MAX);
	ck_assert_uint_le(info->seed_bytes, KEM_SEED_MAX);
}
END_TEST

static const struct {
	const char *name;
	int alg; /* -1: unknown */
} names[] = {
    {"mlkem512", KEM_ALG_MLKEM512},
    {"MLKEM512", KEM_ALG_MLKEM512},
    {"ML-KEM-768", KEM_ALG_MLKEM768},
    {"mlkem768", KEM_ALG_MLKEM768},
    {"ML_KEM_768", KEM_ALG_MLKEM768},
    {"ml-kem-1024", KEM_ALG_MLKEM1024},
    {"ML_KEM_1024", KEM_ALG_MLKEM1024},
    {"X25519MLKEM768", KEM_ALG_X25519MLKEM768},
    {"x25519mlkem768", KEM_ALG_X25519MLKEM768},
    {"X25519-MLKEM-768", KEM_ALG_X25519MLKEM768},
    {"x25519_ml_kem_768", KEM_ALG_X25519MLKEM768},
    {"", -1},
    {"-", -1},
    {"mlkem", -1},
    {"mlkem7680", -1},
    {"mlkem76", -1},
    {" mlkem768", -1},
    {"mlkem768 ", -1},
    {"kyber768", -1},
    {"X25519Kyber768Draft00", -1},
    {"mlkem768x25519-sha256", -1},
    {"SecP256r1MLKEM768", -1},
    {"mlkem768mlkem768mlkem768mlkem768mlkem768mlkem768", -1},
};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

START_TEST(test_names)
{
	enum kem_alg alg = KEM_N_ALGS;

	ck_assert_int_eq(
	    kem_alg_parse(names[_i].name, &alg), names[_i].alg < 0 ? -1 : 0);
	if (names[_i].alg >= 0)
		ck_assert_int_eq(alg, names[_i].alg);
	else
		ck_assert_int_eq(alg, KEM_N_ALGS);
	ck_assert_int_eq(kem_alg_parse(NULL, &alg), -1);
}
END_TEST

START_TEST(test_of_length)
{
	enum kem_alg alg;

	for (int a = 0; a < KEM_N_ALGS; a++) {
		ck_assert_int_eq(
		    kem_alg_of_length(KEM_PART_SHARE, table[a].share_bytes, &alg), 0);
		ck_assert_int_eq(alg, a);
		ck_assert_int_eq(
		    kem_alg_of_length(KEM_PART_CT, table[a].ct_bytes, &alg), 0);
		ck_assert_int_eq(alg, a);
		ck_assert_int_eq(
		    kem_alg_of_length(KEM_PART_KEY, table[a].dk_bytes, &alg), 0);
		ck_assert_int_eq(alg, a);
	}
	ck_assert_int_eq(kem_alg_of_length(KEM_PART_KEY, 96, &alg), 0);
	ck_assert_int_eq(alg, KEM_ALG_X25519MLKEM768);
	ck_assert_int_eq(kem_alg_of_length(KEM_PART_KEY, 64, &alg), -1);
	ck_assert_int_eq(kem_alg_of_length(KEM_PART_SHARE, 0, &alg), -1);
	ck_assert_int_eq(kem_alg_of_length(KEM_PART_SHARE, 1120, &alg), -1);
	ck_assert_int_eq(kem_alg_of_length(KEM_PART_CT, (size_t)-1, &alg), -1);
}
END_TEST

START_TEST(test_explain)
{
	char text[160];

	kem_explain(text, sizeof(text), KEM_E_LENGTH, KEM_ALG_X25519MLKEM768,
	    KEM_PART_CT, 1088);
	ck_assert_str_eq(text, "ciphertext share of 1088 bytes is of ML-KEM-768; "
			       "X25519MLKEM768 takes 1120");
	kem_explain(
	    text, sizeof(text), KEM_E_LENGTH, KEM_ALG_MLKEM512, KEM_PART_SHARE, 799);
	ck_assert_str_eq(text, "public share of 799 bytes is of no algorithm; "
			       "ML-KEM-512 takes 800");
	kem_explain(
	    text, sizeof(text), KEM_E_LENGTH, KEM_ALG_MLKEM1024, KEM_PART_KEY, 2400);
	ck_assert_str_eq(text, "private key of 2400 bytes is of ML-KEM-768; "
			       "ML-KEM-1024 takes 3168 (or a seed of 64)");
	kem_explain(
	    text, sizeof(text), KEM_E_ALG, KEM_ALG_X25519MLKEM768, KEM_PART_KEY, 2400);
	ck_assert_str_eq(text, "private key is of ML-KEM-768 (2400 bytes) but the "
			       "operation is of X25519MLKEM768");
	kem_explain(text, sizeof(text), KEM_E_ALG, KEM_ALG_MLKEM512, KEM_PART_KEY, 0);
	ck_assert_str_eq(text,
	    "private key is of another algorithm than the operation's ML-KEM-512");
}
END_TEST

/* Every sentence fits, ends, and is cut cleanly where it does not fit. */
START_TEST(test_explain_fits)
{
	char text[160 + 8];

	for (int status = 0; status <= KEM_N_STATUS; status++) {
		for (int alg = 0; alg < KEM_N_ALGS; alg++) {
			for (int part = 0; part < 3; part++) {
				size_t full;

				kem_explain(text, 160, (enum kem_status)status,
				    (enum kem_alg)alg, (enum kem_part)part, (size_t)-1);
				full = strlen(text);
				ck_assert_uint_gt(full, 10);
				ck_assert_uint_lt(full, 159);
				memset(text, 'x', sizeof(text));
				kem_explain(text, 10, (enum kem_status)status,
				    (enum kem_alg)alg, (enum kem_part)part, (size_t)-1);
				ck_assert_uint_eq(strlen(text), 9);
				ck_assert_int_eq(text[10], 'x');
			}
		}
	}
	for (int fail = 1; fail > -8; fail--)
		ck_assert_uint_gt(strlen(kem_strerror(fail)), 5);
	ck_assert_str_ne(kem_strerror(KEM_FAIL_RNG), kem_strerror(KEM_FAIL_OPENSSL));
	ck_assert_str_ne(
	    kem_strerror(KEM_FAIL_BACKEND), kem_strerror(KEM_FAIL_SELFTEST));
}
END_TEST

/* Compact, expanded and viewed again: the same parts, the same secret. */
START_TEST(test_key_forms)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const struct kem_alg_info *info = kem_alg_info(alg);
	const struct alg_half *half = alg_half(alg);
	struct test_stream stream;
	struct test_item item;
	struct kem_private view;
	struct kem_decaps_item decaps;

	test_stream_init(&stream, test_seed(), "forms");
	test_item_make(&item, alg, &stream);
	ck_assert(item.key.trusted);
	ck_assert_int_eq(
	    kem_private_from_dk(&view, alg, item.dk, info->dk_bytes), KEM_OK);
	ck_assert(!view.trusted);
	ck_assert_mem_eq(view.s, item.key.s, half->s_bytes);
	ck_assert_mem_eq(view.ek, item.share, half->ek_bytes);
	ck_assert_mem_eq(view.h, item.key.h, 32);
	ck_assert_mem_eq(view.z, item.seed + 32, 32);
	if (half->is_hybrid) {
		ck_assert_mem_eq(view.x_priv, item.seed + 64, 32);
		ck_assert_mem_eq(item.key.x_pub, item.share + 1184, 32);
	} else {
		ck_assert_ptr_null(view.x_priv);
		ck_assert_ptr_null(item.key.x_priv);
	}
	decaps = test_decaps_item(&item, &item);
	decaps.key = &view;
	memset(&item.found, 0xee, sizeof(item.found));
	ck_assert_int_eq(kem_decaps(test_kem(), alg, &decaps, 1, test_scratch()), 0);
	ck_assert_int_eq(decaps.status, KEM_OK);
	ck_assert_mem_eq(&item.found, &item.made, sizeof(item.made));
}
END_TEST

START_TEST(test_dk_length)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const size_t right = kem_alg_info(alg)->dk_bytes;
	const size_t wrong[] = {
	    0, 1, 64, 96, right - 1, right + 1, 1632, 2400, 2432, 3168};
	uint8_t dk[KEM_DK_MAX + 1] = {0};
	struct kem_private key;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (wrong[i] == right)
			continue;
		ck_assert_int_eq(
		    kem_private_from_dk(&key, alg, dk, wrong[i]), KEM_E_LENGTH);
		ck_assert_ptr_null(key.s);
		ck_assert_int_eq(
		    kem_check_dk(test_kem(), alg, dk, wrong[i], test_scratch()),
		    KEM_E_LENGTH);
	}
	ck_assert_int_eq(kem_private_from_dk(&key, alg, NULL, right), KEM_E_LENGTH);
	/* the hash of a key of zeros is not zero */
	ck_assert_int_eq(
	    kem_check_dk(test_kem(), alg, dk, right, test_scratch()), KEM_E_KEY);
}
END_TEST

START_TEST(test_share_check)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const size_t right = kem_alg_info(alg)->share_bytes;
	uint8_t share[KEM_SHARE_MAX + 1] = {0};

	ck_assert_int_eq(
	    kem_check_share(test_kem(), alg, share, right, test_scratch()), KEM_OK);
	ck_assert_int_eq(
	    kem_check_share(test_kem(), alg, share, right - 1, test_scratch()),
	    KEM_E_LENGTH);
	ck_assert_int_eq(
	    kem_check_share(test_kem(), alg, share, right + 1, test_scratch()),
	    KEM_E_LENGTH);
	ck_assert_int_eq(
	    kem_check_share(test_kem(), alg, NULL, 0, test_scratch()), KEM_E_LENGTH);
	memset(share, 0xff, sizeof(share));
	ck_assert_int_eq(kem_check_share(test_kem(), alg, share, right, test_scratch()),
	    KEM_E_SHARE);
	/* rho and the X25519 half may be anything */
	memset(share, 0, alg_half(alg)->s_bytes);
	ck_assert_int_eq(
	    kem_check_share(test_kem(), alg, share, right, test_scratch()), KEM_OK);
}
END_TEST

START_TEST(test_pairwise)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	struct test_stream stream;
	struct test_item item, other;

	test_stream_init(&stream, test_seed(), "pairwise");
	test_item_make(&item, alg, &stream);
	test_item_make(&other, alg, &stream);
	ck_assert_int_eq(kem_pairwise_check(
			     test_kem(), alg, item.secret, item.share, test_scratch()),
	    0);
	ck_assert_int_eq(kem_pairwise_check(
			     test_kem(), alg, item.secret, other.share, test_scratch()),
	    KEM_E_KEY);
	ck_assert(test_is_zero(test_scratch(), 8192));
	item.secret[100] ^= 1;
	ck_assert_int_eq(kem_pairwise_check(
			     test_kem(), alg, item.secret, item.share, test_scratch()),
	    KEM_E_KEY);
	item.secret[100] ^= 1;
	memset(item.share, 0xff, 384);
	ck_assert_int_eq(kem_pairwise_check(
			     test_kem(), alg, item.secret, item.share, test_scratch()),
	    KEM_E_KEY);
}
END_TEST

START_TEST(test_wipe_and_compare)
{
	uint8_t a[100], b[100];

	memset(a, 0x11, sizeof(a));
	memset(b, 0x11, sizeof(b));
	ck_assert_int_eq(kem_compare(a, b, sizeof(a)), 0);
	ck_assert_int_eq(kem_compare(a, b, 0), 0);
	for (size_t i = 0; i < sizeof(a); i++) {
		b[i] ^= (uint8_t)(1 << i % 8);
		ck_assert_int_eq(kem_compare(a, b, sizeof(a)), 1);
		ck_assert_int_eq(kem_compare(a, b, i), 0);
		b[i] = a[i];
	}
	kem_wipe(a + 1, sizeof(a) - 2);
	ck_assert_uint_eq(a[0], 0x11);
	ck_assert_uint_eq(a[sizeof(a) - 1], 0x11);
	ck_assert(test_is_zero(a + 1, sizeof(a) - 2));
	kem_wipe(NULL, 0);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("alg");
	TCase *tc = tcase_create("algorithms");

	tcase_add_loop_test(tc, test_sizes, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_names, 0, (int)N_NAMES);
	tcase_add_test(tc, test_of_length);
	tcase_add_test(tc, test_explain);
	tcase_add_test(tc, test_explain_fits);
	suite_add_tcase(suite, tc);
	tc = tcase_create("keys");
	tcase_add_loop_test(tc, test_key_forms, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_dk_length, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_share_check, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_pairwise, 0, KEM_N_ALGS);
	tcase_add_test(tc, test_wipe_and_compare);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
