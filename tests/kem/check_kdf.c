/* SPDX-License-Identifier: Apache-2.0 */
/* kdf.c against RFC 5869: appendix A, and sections 2.2 and 2.3 written out over HMAC. */
#include <check.h>
#include <string.h>

#include <openssl/evp.h>

#include "tests/kem/kemtest.h"

static const struct {
	size_t ikm_len, salt_len, info_len, out_len;
	uint8_t ikm_first, salt_first, info_first;
	bool counts_up; /* else all bytes of ikm are the first */
	const char *okm;
} rfc5869[] = {
    {22, 13, 10, 42, 0x0b, 0x00, 0xf0, false,
	"3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
	"34007208d5b887185865"},
    {80, 80, 80, 82, 0x00, 0x60, 0xb0, true,
	"b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
	"59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
	"cc30c58179ec3e87c14c01d5c1f3434f1d87"},
    {22, 0, 0, 42, 0x0b, 0x00, 0x00, false,
	"8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
	"9d201395faa4b61a96c8"},
};

static void
count_from(uint8_t *out, size_t len, uint8_t first)
{
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)(first + i);
}

START_TEST(test_rfc5869)
{
	uint8_t ikm[80], salt[80], info[80], out[82], expected[82];
	const size_t len = rfc5869[_i].out_len;

	memset(ikm, rfc5869[_i].ikm_first, sizeof(ikm));
	if (rfc5869[_i].counts_up)
		count_from(ikm, sizeof(ikm), rfc5869[_i].ikm_first);
	count_from(salt, sizeof(salt), rfc5869[_i].salt_first);
	count_from(info, sizeof(info), rfc5869[_i].info_first);
	test_hex(expected, len, rfc5869[_i].okm);
	ck_assert_int_eq(
	    kem_hkdf(test_kem(), KEM_HASH_SHA256, ikm, rfc5869[_i].ikm_len, salt,
		rfc5869[_i].salt_len, info, rfc5869[_i].info_len, out, len),
	    0);
	ck_assert_mem_eq(out, expected, len);
	if (rfc5869[_i].salt_len == 0) {
		ck_assert_int_eq(kem_hkdf(test_kem(), KEM_HASH_SHA256, ikm,
				     rfc5869[_i].ikm_len, NULL, 0, NULL, 0, out, len),
		    0);
		ck_assert_mem_eq(out, expected, len);
	}
}
END_TEST

static void
hmac(enum kem_hash hash, const uint8_t *key, size_t key_len, const uint8_t *data,
    size_t len, uint8_t *out)
{
	ck_assert_ptr_nonnull(
	    EVP_Q_mac(NULL, "HMAC", NULL, hash == KEM_HASH_SHA384 ? "SHA384" : "SHA256",
		NULL, key, key_len, data, len, out, 48, NULL));
}

/* T(i) = HMAC(PRK, T(i - 1) || info || i); their beginnings are out. */
static void
hkdf_by_hand(enum kem_hash hash, const uint8_t *ikm, size_t ikm_len,
    const uint8_t *salt, size_t salt_len, const uint8_t *info, size_t info_len,
    uint8_t *out, size_t len)
{
	const size_t hash_len = hash == KEM_HASH_SHA384 ? 48 : 32;
	uint8_t prk[48], block[48 + KEM_HKDF_MAX_INFO + 1], t[48];
	size_t t_len = 0, n;

	hmac(hash, salt, salt_len, ikm, ikm_len, prk);
	for (uint8_t i = 1; len > 0; i++) {
		memcpy(block, t, t_len);
		memcpy(block + t_len, info, info_len);
		block[t_len + info_len] = i;
		hmac(hash, prk, hash_len, block, t_len + info_len + 1, t);
		t_len = hash_len;
		n = len < t_len ? len : t_len;
		memcpy(out, t, n);
		out += n;
		len -= n;
	}
}

/* Lengths and infos up to their limits, salts shorter and longer than a block. */
START_TEST(test_equal_to_hmac)
{
	static uint8_t out[KEM_HKDF_MAX(KEM_HASH_SHA384) + 1], expected[sizeof(out)];
	static const size_t salts[] = {1, 31, 32, 48, 64, 65, 128, 129, 300};
	const enum kem_hash hash = (enum kem_hash)_i;
	uint8_t ikm[64], salt[300], info[KEM_HKDF_MAX_INFO];
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "hkdf");
	for (size_t round = 0; round < 200; round++) {
		size_t ikm_len = 1 + test_stream_below(&stream, 64);
		size_t info_len = test_stream_below(&stream, KEM_HKDF_MAX_INFO + 1);
		size_t len = 1 + test_stream_below(&stream, 200);

		if (round % 50 == 49)
			info_len = KEM_HKDF_MAX_INFO;
		if (round < 4)
			len = KEM_HKDF_MAX(hash) - round;
		if (round > 150)
			len = round - 150;
		test_stream_fill(&stream, ikm, sizeof(ikm));
		test_stream_fill(&stream, salt, sizeof(salt));
		test_stream_fill(&stream, info, sizeof(info));
		test_stream_fill(&stream, info, sizeof(info));
		memset(out, 0x33, sizeof(out));
		ck_assert_int_eq(kem_hkdf(test_kem(), hash, ikm, ikm_len, salt,
				     salts[round % 9], info, info_len, out, len),
		    0);
		hkdf_by_hand(hash, ikm, ikm_len, salt, salts[round % 9], info, info_len,
		    expected, len);
		ck_assert_mem_eq(out, expected, len);
		ck_assert_uint_eq(out[len], 0x33);
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("kdf");
	TCase *tc = tcase_create("hkdf");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, test_rfc5869, 0, 3);
	tcase_add_loop_test(tc, test_equal_to_hmac, 0, 2);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
