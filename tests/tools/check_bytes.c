/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c against the C library's and OpenSSL's idea of hex and base64. */
#include <check.h>
#include <ctype.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bytes.h"

#define MAX_LEN 100

static void
fill(uint8_t *data, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)((i + seed) * 2654435761u >> 13);
}

START_TEST(test_every_byte_in_hex)
{
	for (unsigned v = 0; v < 256; v++) {
		uint8_t byte = (uint8_t)v, text[4];
		size_t len = 2;
		char expected[3];

		snprintf(expected, sizeof(expected), "%02x", v);
		ck_assert_uint_eq(bytes_encode(BYTES_HEX, &byte, 1, text), 2);
		ck_assert_mem_eq(text, expected, 2);
		text[0] = (uint8_t)toupper(text[0]);
		ck_assert_int_eq(bytes_decode(BYTES_HEX, text, &len), 0);
		ck_assert_uint_eq(len, 1);
		ck_assert_uint_eq(text[0], v);
	}
}
END_TEST

START_TEST(test_every_letter_of_hex)
{
	for (int c = 0; c < 256; c++) {
		uint8_t text[2] = {(uint8_t)c, '0'};
		size_t len = 2;
		int rc = bytes_decode(BYTES_HEX, text, &len);

		if (isxdigit(c))
			ck_assert_int_eq(rc, 0);
		else if (isspace(c))
			ck_assert_int_eq(rc, BYTES_E_ODD);
		else
			ck_assert_int_eq(rc, BYTES_E_LETTER);
	}
}
END_TEST

START_TEST(test_base64_is_openssl_s)
{
	uint8_t data[MAX_LEN], text[2 * MAX_LEN], expected[2 * MAX_LEN];

	for (size_t len = 1; len <= MAX_LEN; len++) {
		size_t n, out_len;

		fill(data, len, (unsigned)len);
		n = bytes_encode(BYTES_BASE64, data, len, text);
		ck_assert_uint_eq(n, bytes_encoded_size(BYTES_BASE64, len));
		ck_assert_int_eq(EVP_EncodeBlock(expected, data, (int)len), (int)n);
		ck_assert_mem_eq(text, expected, n);
		/* With its padding and, as some write it, without. */
		for (int padded = 0; padded < 2; padded++) {
			uint8_t copy[2 * MAX_LEN];

			memcpy(copy, text, n);
			out_len = n;
			while (!padded && copy[out_len - 1] == '=')
				out_len--;
			ck_assert_int_eq(bytes_decode(BYTES_BASE64, copy, &out_len), 0);
			ck_assert_uint_eq(out_len, len);
			ck_assert_mem_eq(copy, data, len);
		}
	}
}
END_TEST

START_TEST(test_every_letter_of_base64)
{
	static const char letters[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (int c = 1; c < 256; c++) {
		uint8_t text[4] = {'A', 'A', 'A', (uint8_t)c};
		const char *at = strchr(letters, c);
		size_t len = 4;
		int rc = bytes_decode(BYTES_BASE64, text, &len);

		if (c == '-' || c == '_') {
			ck_assert_int_eq(rc, 0);
			ck_assert_uint_eq(text[2], c == '-' ? 62 : 63);
		} else if (at) {
			ck_assert_int_eq(rc, 0);
			ck_assert_uint_eq(text[2], (unsigned)(at - letters));
		} else if (c == '=' || isspace(c)) {
			ck_assert_int_eq(rc, 0);
			ck_assert_uint_eq(len, 2);
		} else {
			ck_assert_int_eq(rc, BYTES_E_LETTER);
		}
	}
}
END_TEST

START_TEST(test_guess)
{
	uint8_t data[1216], text[3000];
	size_t n;

	fill(data, sizeof(data), 7);
	ck_assert_int_eq(bytes_guess(data, sizeof(data)), BYTES_RAW);
	n = bytes_encode(BYTES_HEX, data, sizeof(data), text);
	ck_assert_int_eq(bytes_guess(text, n), BYTES_HEX);
	ck_assert_int_eq(bytes_guess(text, n - 1), BYTES_HEX);
	text[5] = '\n';
	ck_assert_int_eq(bytes_guess(text, n), BYTES_HEX);
	n = bytes_encode(BYTES_BASE64, data, sizeof(data), text);
	ck_assert_int_eq(bytes_guess(text, n), BYTES_BASE64);
	text[n - 1] = 0;
	ck_assert_int_eq(bytes_guess(text, n), BYTES_RAW);
	ck_assert_int_eq(bytes_guess(text, 0), BYTES_RAW);
}
END_TEST

START_TEST(test_broken_ends)
{
	uint8_t hex[] = "abc", base64[] = "AAAAA";
	size_t len = 3;

	ck_assert_int_eq(bytes_decode(BYTES_HEX, hex, &len), BYTES_E_ODD);
	len = 5;
	ck_assert_int_eq(bytes_decode(BYTES_BASE64, base64, &len), BYTES_E_ODD);
}
END_TEST

START_TEST(test_names)
{
	enum bytes_format format;

	ck_assert_int_eq(bytes_format_parse("hex", &format), 0);
	ck_assert_int_eq(format, BYTES_HEX);
	ck_assert_int_eq(bytes_format_parse("base64", &format), 0);
	ck_assert_int_eq(bytes_format_parse("raw", &format), 0);
	ck_assert_int_eq(bytes_format_parse("HEX", &format), -1);
	ck_assert_int_eq(bytes_format_parse("", &format), -1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("bytes");
	TCase *tc = tcase_create("bytes");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, test_every_byte_in_hex);
	tcase_add_test(tc, test_every_letter_of_hex);
	tcase_add_test(tc, test_base64_is_openssl_s);
	tcase_add_test(tc, test_every_letter_of_base64);
	tcase_add_test(tc, test_guess);
	tcase_add_test(tc, test_broken_ends);
	tcase_add_test(tc, test_names);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
