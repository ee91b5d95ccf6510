/* SPDX-License-Identifier: Apache-2.0 */
/* The values of RFC 5869 and RFC 7748 as files (the tree has them too: tests/kem). */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "kem/x25519.h"
#include "vectors.h"

START_TEST(test_rfc5869)
{
	const char *path = "rfc/rfc5869_hkdf_sha256.json";
	struct json_object *file = vectors_json(path);
	struct json_object *tests = json_get(file, "tests");
	size_t n;

	json_only(file, "source tests");
	for (n = 0; n < json_len(tests); n++) {
		struct json_object *test = json_at(tests, n);
		struct bytes ikm = json_bytes(test, "ikm");
		struct bytes salt = json_bytes(test, "salt");
		struct bytes info = json_bytes(test, "info");
		struct bytes okm = json_bytes(test, "okm"),
			     out = bytes_new(okm.p, okm.len);

		/* prk stays inside of OpenSSL; a wrong one would give another okm. */
		json_only(test, "tcId hash ikm salt info L prk okm");
		ck_assert_str_eq(json_text(test, "hash"), "SHA-256");
		ck_assert_uint_eq(json_number(test, "L"), okm.len);
		memset(out.p, 0, out.len);
		ck_assert_int_eq(
		    kem_hkdf(test_kem(), KEM_HASH_SHA256, ikm.p, ikm.len, salt.p,
			salt.len, info.p, info.len, out.p, out.len),
		    0);
		ck_assert_mem_eq(out.p, okm.p, okm.len);
		ikm.p[0] ^= 1;
		ck_assert_int_eq(
		    kem_hkdf(test_kem(), KEM_HASH_SHA256, ikm.p, ikm.len, salt.p,
			salt.len, info.p, info.len, out.p, out.len),
		    0);
		ck_assert_mem_ne(out.p, okm.p, okm.len);
	}
	vectors_ran(path, n, 3);
}
END_TEST

static struct bytes
x25519(struct bytes scalar, struct bytes u)
{
	struct bytes out = {vectors_alloc(32), 32};
	struct x25519_item item = {
	    .private_key = scalar.p, .peer = u.p, .shared = out.p};

	ck_assert_uint_eq(scalar.len, 32);
	ck_assert_uint_eq(u.len, 32);
	ck_assert_int_eq(x25519_shared(test_kem(), &item, 1, test_scratch()), 0);
	return out;
}

static void
exchange_check(struct json_object *test)
{
	struct bytes alice = json_bytes(test, "alice_sk"),
		     bob = json_bytes(test, "bob_sk");
	struct bytes shared = json_bytes(test, "shared");
	uint8_t out[2][32];
	struct x25519_public_item items[2] = {{alice.p, out[0]}, {bob.p, out[1]}};

	json_only(test, "alice_sk alice_pk bob_sk bob_pk shared");
	ck_assert_int_eq(x25519_public(test_kem(), items, 2, test_scratch()), 0);
	ck_assert_mem_eq(out[0], json_bytes(test, "alice_pk").p, 32);
	ck_assert_mem_eq(out[1], json_bytes(test, "bob_pk").p, 32);
	ck_assert_mem_eq(x25519(alice, json_bytes(test, "bob_pk")).p, shared.p, 32);
	ck_assert_mem_eq(x25519(bob, json_bytes(test, "alice_pk")).p, shared.p, 32);
	alice.p[1] ^= 1;
	ck_assert_mem_ne(x25519(alice, json_bytes(test, "bob_pk")).p, shared.p, 32);
}

static void
iteration_check(struct json_object *test)
{
	static const uint8_t nine[32] = {9};
	struct bytes k = bytes_new(nine, 32), u = bytes_new(nine, 32), out;

	json_only(test, "n k");
	for (size_t i = 0; i < json_number(test, "n"); i++) {
		out = x25519(k, u);
		u = k;
		k = out;
	}
	ck_assert_mem_eq(k.p, json_bytes(test, "k").p, 32);
	ck_assert_mem_ne(u.p, json_bytes(test, "k").p, 32);
}

START_TEST(test_rfc7748)
{
	const char *path = "rfc/rfc7748_x25519.json";
	struct json_object *file = vectors_json(path);
	struct json_object *tests = json_get(file, "scalarmult");
	struct json_object *iterated = json_get(file, "iterated");
	size_t n = 1;

	json_only(file, "source scalarmult diffie_hellman iterated iterated_rule");
	for (size_t i = 0; i < json_len(tests); i++, n++) {
		struct json_object *test = json_at(tests, i);

		json_only(test, "scalar u out");
		ck_assert_mem_eq(
		    x25519(json_bytes(test, "scalar"), json_bytes(test, "u")).p,
		    json_bytes(test, "out").p, 32);
	}
	exchange_check(json_get(file, "diffie_hellman"));
	for (size_t i = 0; i < json_len(iterated); i++, n++)
		iteration_check(json_at(iterated, i));
	vectors_ran(path, n, 5);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("rfc");
	TCase *tc = tcase_create("rfc");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, NULL, vectors_forget);
	tcase_add_test(tc, test_rfc5869);
	tcase_add_test(tc, test_rfc7748);
	suite_add_tcase(suite, tc);
	return vectors_main(argc, argv, suite);
}
