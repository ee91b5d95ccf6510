/* SPDX-License-Identifier: Apache-2.0 */
/* x25519.c against RFC 7748: values of sections 5.2 and 6.1, low order, odd encodings. */
#include "kem/x25519.h"

#include <check.h>
#include <string.h>

#include "tests/kem/kemtest.h"

static void
shared_hex(uint8_t out[32], bool *is_zerop, const char *scalar, const char *u)
{
	uint8_t private_key[32], peer[32];
	struct x25519_item item = {
	    .private_key = private_key, .peer = peer, .shared = out, .is_zero = true};

	test_hex(private_key, 32, scalar);
	test_hex(peer, 32, u);
	ck_assert_int_eq(x25519_shared(test_kem(), &item, 1, test_scratch()), 0);
	*is_zerop = item.is_zero;
}

static const struct {
	const char *scalar, *u, *out;
} multiplications[] = {
    {"a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
	"e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
	"c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"},
    {"4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
	"e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
	"95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"},
};

START_TEST(test_rfc7748_multiplications)
{
	uint8_t out[32], expected[32];
	bool is_zero;

	shared_hex(out, &is_zero, multiplications[_i].scalar, multiplications[_i].u);
	test_hex(expected, 32, multiplications[_i].out);
	ck_assert(!is_zero);
	ck_assert_mem_eq(out, expected, 32);
}
END_TEST

#define ALICE        "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
#define ALICE_PUBLIC "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
#define BOB          "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"
#define BOB_PUBLIC   "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
#define SHARED       "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"

START_TEST(test_rfc7748_exchange)
{
	uint8_t alice[32], public_key[32], out[32], expected[32];
	struct x25519_public_item item = {
	    .private_key = alice, .public_key = public_key};
	bool is_zero;

	test_hex(alice, 32, ALICE);
	test_hex(expected, 32, ALICE_PUBLIC);
	ck_assert_int_eq(x25519_public(test_kem(), &item, 1, test_scratch()), 0);
	ck_assert_mem_eq(public_key, expected, 32);
	test_hex(expected, 32, SHARED);
	shared_hex(out, &is_zero, ALICE, BOB_PUBLIC);
	ck_assert_mem_eq(out, expected, 32);
	shared_hex(out, &is_zero, BOB, ALICE_PUBLIC);
	ck_assert_mem_eq(out, expected, 32);
}
END_TEST

/* Section 5.2: k and u change places; 1 and 1000 rounds. */
START_TEST(test_rfc7748_iterated)
{
	uint8_t k[32] = {9}, u[32] = {9}, out[32], expected[32];
	struct x25519_item item = {.private_key = k, .peer = u, .shared = out};

	for (int i = 1; i <= 1000; i++) {
		ck_assert_int_eq(
		    x25519_shared(test_kem(), &item, 1, test_scratch()), 0);
		memcpy(u, k, 32);
		memcpy(k, out, 32);
		if (i == 1) {
			test_hex(expected, 32,
			    "422c8e7a6227d7bca1350b3e2bb7279f"
			    "7897b87bb6854b783c60e80311ae3079");
			ck_assert_mem_eq(k, expected, 32);
		}
	}
	test_hex(expected, 32,
	    "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
	ck_assert_mem_eq(k, expected, 32);
}
END_TEST

/* All points of low order, the non-canonical ones and bit 255 included. */
static const char *const low_order[] = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
};

START_TEST(test_low_order)
{
	uint8_t out[32];
	bool is_zero;

	shared_hex(out, &is_zero, ALICE, low_order[_i]);
	ck_assert(is_zero);
	ck_assert(test_is_zero(out, 32));
}
END_TEST

/* A zero among good ones says nothing of its neighbours. */
START_TEST(test_zero_in_a_group)
{
	uint8_t alice[32], bob[32], zero[32] = {0}, out[8][32], expected[32];
	struct x25519_item items[8];

	test_hex(alice, 32, ALICE);
	test_hex(bob, 32, BOB_PUBLIC);
	test_hex(expected, 32, SHARED);
	for (size_t bad = 0; bad < 8; bad++) {
		for (size_t i = 0; i < 8; i++)
			items[i] = (struct x25519_item){.private_key = alice,
			    .peer = i == bad ? zero : bob,
			    .shared = out[i]};
		ck_assert_int_eq(
		    x25519_shared(test_kem(), items, 8, test_scratch()), 0);
		for (size_t i = 0; i < 8; i++) {
			ck_assert_int_eq(items[i].is_zero, i == bad);
			ck_assert_mem_eq(out[i], i == bad ? zero : expected, 32);
		}
	}
}
END_TEST

/* u + p and u are the same point, and bit 255 is not looked at (section 5). */
START_TEST(test_odd_encodings)
{
	/* 2^255 - 19 + 3 stands for 3, which is no low-order point */
	static const char *const three[] = {
	    "0300000000000000000000000000000000000000000000000000000000000000",
	    "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	    "0300000000000000000000000000000000000000000000000000000000000080",
	    "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	};
	uint8_t first[32], out[32];
	bool is_zero;

	shared_hex(first, &is_zero, ALICE, three[0]);
	ck_assert(!is_zero);
	for (size_t i = 1; i < 4; i++) {
		shared_hex(out, &is_zero, ALICE, three[i]);
		ck_assert(!is_zero);
		ck_assert_mem_eq(out, first, 32);
	}
}
END_TEST

/* The public half that is loaded beside the private one has no say in the result. */
START_TEST(test_public_half_is_not_used)
{
	uint8_t alice[32], bob[32], out[32], expected[32], wrong[32];
	struct x25519_item item = {.private_key = alice, .peer = bob, .shared = out};

	test_hex(alice, 32, ALICE);
	test_hex(bob, 32, BOB_PUBLIC);
	test_hex(expected, 32, SHARED);
	memset(wrong, 0x11, sizeof(wrong));
	item.public_key = wrong;
	ck_assert_int_eq(x25519_shared(test_kem(), &item, 1, test_scratch()), 0);
	ck_assert_mem_eq(out, expected, 32);
	item.public_key = bob;
	ck_assert_int_eq(x25519_shared(test_kem(), &item, 1, test_scratch()), 0);
	ck_assert_mem_eq(out, expected, 32);
}
END_TEST

START_TEST(test_keygen)
{
	static const size_t counts[] = {0, 1, 7, 8, 9, 20};
	struct kem_x25519 pairs[21];
	uint8_t public_key[32];

	for (size_t c = 0; c < 6; c++) {
		memset(pairs, 0x77, sizeof(pairs));
		ck_assert_int_eq(
		    kem_x25519_keygen(test_kem(), pairs, counts[c], test_scratch()), 0);
		for (size_t i = 0; i < counts[c]; i++) {
			struct x25519_public_item item = {
			    pairs[i].private_key, public_key};

			ck_assert_int_eq(
			    x25519_public(test_kem(), &item, 1, test_scratch()), 0);
			ck_assert_mem_eq(public_key, pairs[i].public_key, 32);
			for (size_t j = 0; j < i; j++)
				ck_assert_mem_ne(&pairs[i], &pairs[j], 32);
		}
		for (size_t i = 0; i < sizeof(pairs[0]); i++)
			ck_assert_uint_eq(((uint8_t *)&pairs[counts[c]])[i], 0x77);
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("x25519");
	TCase *tc = tcase_create("x25519");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, test_rfc7748_multiplications, 0, 2);
	tcase_add_test(tc, test_rfc7748_exchange);
	tcase_add_test(tc, test_rfc7748_iterated);
	tcase_add_loop_test(tc, test_low_order, 0, 9);
	tcase_add_test(tc, test_zero_in_a_group);
	tcase_add_test(tc, test_odd_encodings);
	tcase_add_test(tc, test_public_half_is_not_used);
	tcase_add_test(tc, test_keygen);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
