/* SPDX-License-Identifier: Apache-2.0 */
/* hybrid.c: which half lies where, and what an all-zero X25519 result does. */
#include <check.h>
#include <string.h>

#include "kem/x25519.h"
#include "tests/kem/kemtest.h"

#define HYBRID KEM_ALG_X25519MLKEM768
#define N      9

static struct test_item items[N];
static struct kem_encaps_item encaps[N];
static struct kem_decaps_item decaps[N];
static uint8_t m[N][32];

static void
prepare(void)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "hybrid");
	for (size_t i = 0; i < N; i++) {
		test_item_make(&items[i], HYBRID, &stream);
		encaps[i] = test_encaps_item(&items[i], &items[i]);
		decaps[i] = test_decaps_item(&items[i], &items[i]);
		memcpy(m[i], items[i].m, 32);
	}
}

static void
x25519_plain(uint8_t out[32], const uint8_t *private_key, const uint8_t *peer)
{
	struct x25519_item item = {
	    .private_key = private_key, .peer = peer, .shared = out};

	ck_assert_int_eq(x25519_shared(test_kem(), &item, 1, test_scratch()), 0);
}

/* ek || x, ct || x, mlkem || x25519, each half as the parts alone give it. */
START_TEST(test_layout)
{
	struct test_item plain;
	struct kem_keygen_item k;
	struct kem_encaps_item e;
	struct kem_decaps_item d;
	uint8_t x_pub[32], x_shared[32];
	struct x25519_public_item x = {.public_key = x_pub};

	prepare();
	test_item_blank(&plain, KEM_ALG_MLKEM768);
	memcpy(plain.seed, items[0].seed, 64);
	k = test_keygen_item(&plain, &plain);
	ck_assert_int_eq(
	    kem_keygen(test_kem(), KEM_ALG_MLKEM768, &k, 1, test_scratch()), 0);
	e = test_encaps_item(&plain, &plain);
	ck_assert_int_eq(kem_encaps_derand(test_kem(), KEM_ALG_MLKEM768, &e, 1, &m[0],
			     test_scratch()),
	    0);
	kem_private_from_parts(&plain.key, KEM_ALG_MLKEM768, plain.secret, plain.share);
	d = test_decaps_item(&plain, &plain);
	ck_assert_int_eq(
	    kem_decaps(test_kem(), KEM_ALG_MLKEM768, &d, 1, test_scratch()), 0);
	ck_assert(test_is_zero(plain.made.bytes + 32, 32));
	ck_assert(test_is_zero(plain.found.bytes + 32, 32));

	ck_assert_mem_eq(items[0].share, plain.share, 1184);
	x.private_key = items[0].seed + 64;
	ck_assert_int_eq(x25519_public(test_kem(), &x, 1, test_scratch()), 0);
	ck_assert_mem_eq(items[0].share + 1184, x_pub, 32);
	ck_assert_mem_eq(items[0].secret, plain.secret, 1216);
	ck_assert_mem_eq(items[0].secret + 1216, items[0].seed + 64, 32);
	ck_assert_mem_eq(items[0].ct, plain.ct, 1088);
	ck_assert_mem_eq(items[0].ct + 1088, items[0].ephemeral.public_key, 32);
	ck_assert_mem_eq(items[0].made.bytes, plain.made.bytes, 32);
	x25519_plain(x_shared, items[0].seed + 64, items[0].ephemeral.public_key);
	ck_assert_mem_eq(items[0].made.bytes + 32, x_shared, 32);
}
END_TEST

/*
 * One composed exchange, with the digests (SHA-256) of both shares: values made by two
 * other implementations, one for each half.
 */
START_TEST(test_composed)
{
	static const char *const seed =
	    "fc6e138e6e8231b051158f66a29a1e1413d37c70db136f2fe028412421b0be81"
	    "4ac7ffbe86b7d21474695841922208de1dbb97bc9cc85eaf67746099d8d9e3a6"
	    "129f16c90f5b1c6880510b4a3656246ac1c8be2e31f28346d69d021eb908be8e";
	static const char *const m_hex =
	    "be6accf5f7b71b142b5839d0f11754a8ffbd4885b952922a6ad1026627d81de6";
	static const char *const server_key =
	    "78c7d3ee2212e05716d004c0a46e47e7d0ffdb159c03d7e0725ee4f9c0200297";
	static const char *const share_digest =
	    "665d87c9a61af89ff89b97da9cf003304638839744f2cd6693584e2f4b3ddb2b";
	static const char *const ct_digest =
	    "3bf5c929ed4f484e80ff0b53a4f1d85bc8298faf0d0b186b58a07dd76bb7c307";
	static const char *const shared =
	    "392459a5689b70538eacf9361cecc57d47c770ec8939d79d69270e30dcdd6f34"
	    "a328981534834081b7573128e3e0d8a82089adfd3512c9446342b99c9e32423e";
	struct test_item item;
	struct kem_keygen_item k;
	struct kem_encaps_item e;
	struct kem_decaps_item d;
	struct x25519_public_item x = {
	    item.ephemeral.private_key, item.ephemeral.public_key};
	uint8_t expected[64], digest[32];

	test_item_blank(&item, HYBRID);
	test_hex(item.seed, 96, seed);
	test_hex(m[0], 32, m_hex);
	test_hex(item.ephemeral.private_key, 32, server_key);
	ck_assert_int_eq(x25519_public(test_kem(), &x, 1, test_scratch()), 0);
	k = test_keygen_item(&item, &item);
	e = test_encaps_item(&item, &item);
	d = test_decaps_item(&item, &item);
	ck_assert_int_eq(kem_keygen(test_kem(), HYBRID, &k, 1, test_scratch()), 0);
	test_sha256(digest, item.share, 1216);
	test_hex(expected, 32, share_digest);
	ck_assert_mem_eq(digest, expected, 32);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), HYBRID, &e, 1, &m[0], test_scratch()), 0);
	test_sha256(digest, item.ct, 1120);
	test_hex(expected, 32, ct_digest);
	ck_assert_mem_eq(digest, expected, 32);
	kem_private_from_parts(&item.key, HYBRID, item.secret, item.share);
	ck_assert_int_eq(kem_decaps(test_kem(), HYBRID, &d, 1, test_scratch()), 0);
	test_hex(expected, 64, shared);
	ck_assert_mem_eq(&item.made, expected, 64);
	ck_assert_mem_eq(&item.found, expected, 64);
}
END_TEST

/* The five points of order 1, 2, 4 and 8 (two of them) by their canonical encodings. */
static const char *const low_order[] = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
};

START_TEST(test_zero_share_in_encaps)
{
	const size_t bad = (size_t)_i;
	struct test_item before[N];

	prepare();
	memcpy(before, items, sizeof(before));
	for (size_t i = 0; i < N; i++) {
		memset(items[i].ct, 0x55, 1120);
		memset(&items[i].made, 0x55, 64);
	}
	test_hex(items[bad].share + 1184, 32, low_order[bad % 5]);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), HYBRID, encaps, N, m, test_scratch()), 0);
	for (size_t i = 0; i < N; i++) {
		if (i == bad) {
			ck_assert_int_eq(encaps[i].status, KEM_E_ZERO);
			ck_assert(test_is_zero(items[i].ct, 1120));
			ck_assert(test_is_zero(&items[i].made, 64));
		} else {
			ck_assert_int_eq(encaps[i].status, KEM_OK);
			ck_assert_mem_eq(items[i].ct, before[i].ct, 1120);
			ck_assert_mem_eq(&items[i].made, &before[i].made, 64);
		}
		test_item_check(&items[i]);
	}
}
END_TEST

START_TEST(test_zero_share_in_decaps)
{
	const size_t bad = (size_t)_i;

	prepare();
	test_hex(items[bad].ct + 1088, 32, low_order[bad % 5]);
	for (size_t i = 0; i < N; i++)
		memset(&items[i].found, 0x55, 64);
	ck_assert_int_eq(kem_decaps(test_kem(), HYBRID, decaps, N, test_scratch()), 0);
	for (size_t i = 0; i < N; i++) {
		ck_assert_int_eq(decaps[i].status, i == bad ? KEM_E_ZERO : KEM_OK);
		if (i == bad)
			ck_assert(test_is_zero(&items[i].found, 64));
		else
			ck_assert_mem_eq(&items[i].found, &items[i].made, 64);
	}
}
END_TEST

/*
 * {good, bad} ML-KEM ciphertext x {good, zero} X25519. A zero is the same error
 * whatever the other half is, a bad ciphertext beside a good X25519 is success.
 */
START_TEST(test_no_oracle_between_halves)
{
	struct kem_shared expected;

	prepare();
	items[1].ct[7] ^= 4;
	items[3].ct[1087] ^= 0x80;
	memset(items[2].ct + 1088, 0, 32);
	memset(items[3].ct + 1088, 0, 32);
	ck_assert_int_eq(kem_decaps(test_kem(), HYBRID, decaps, 4, test_scratch()), 0);
	ck_assert_int_eq(decaps[0].status, KEM_OK);
	ck_assert_mem_eq(&items[0].found, &items[0].made, 64);
	ck_assert_int_eq(decaps[1].status, KEM_OK);
	test_rejected(&expected, &items[1], items[1].ct, &items[1].made);
	ck_assert_mem_eq(&items[1].found, &expected, 64);
	ck_assert_int_eq(decaps[2].status, KEM_E_ZERO);
	ck_assert(test_is_zero(&items[2].found, 64));
	ck_assert_int_eq(decaps[3].status, KEM_E_ZERO);
	ck_assert(test_is_zero(&items[3].found, 64));
}
END_TEST

/* Both halves bad: the X25519 one decides; a bad hash or modulus alone is its own. */
START_TEST(test_both_halves_bad)
{
	struct kem_private view;

	prepare();
	items[0].share[0] = 0xff;
	items[0].share[1] = 0xff;
	items[1].share[0] = 0xff;
	items[1].share[1] = 0xff;
	memset(items[1].share + 1184, 0, 32);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), HYBRID, encaps, 3, m, test_scratch()), 0);
	ck_assert_int_eq(encaps[0].status, KEM_E_SHARE);
	ck_assert_int_eq(encaps[1].status, KEM_E_ZERO);
	ck_assert_int_eq(encaps[2].status, KEM_OK);

	items[2].dk[1152] ^= 1;
	ck_assert_int_eq(kem_private_from_dk(&view, HYBRID, items[2].dk, 2432), KEM_OK);
	decaps[2].key = &view;
	ck_assert_int_eq(
	    kem_decaps(test_kem(), HYBRID, &decaps[2], 1, test_scratch()), 0);
	ck_assert_int_eq(decaps[2].status, KEM_E_KEY);
	ck_assert(test_is_zero(&items[2].found, 64));
	memset(items[2].ct + 1088, 0, 32);
	ck_assert_int_eq(
	    kem_decaps(test_kem(), HYBRID, &decaps[2], 1, test_scratch()), 0);
	ck_assert_int_eq(decaps[2].status, KEM_E_ZERO);
}
END_TEST

/* Bit 255 of a peer's share is not looked at; the ciphertext keeps our own bytes. */
START_TEST(test_high_bit_is_ignored)
{
	struct kem_shared before;

	prepare();
	before = items[0].made;
	items[0].share[1215] ^= 0x80;
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), HYBRID, encaps, 1, m, test_scratch()), 0);
	ck_assert_int_eq(encaps[0].status, KEM_OK);
	ck_assert_mem_eq(items[0].made.bytes + 32, before.bytes + 32, 32);
	items[0].share[1215] ^= 0x80;
	items[0].ct[1119] ^= 0x80;
	ck_assert_int_eq(kem_decaps(test_kem(), HYBRID, decaps, 1, test_scratch()), 0);
	ck_assert_int_eq(decaps[0].status, KEM_OK);
	ck_assert_mem_eq(items[0].found.bytes + 32, before.bytes + 32, 32);
}
END_TEST

/* Without an ephemeral one is made, new for every item, and the peer agrees. */
START_TEST(test_ephemerals_are_made)
{
	prepare();
	for (size_t i = 0; i < N; i++)
		encaps[i].ephemeral = NULL;
	ck_assert_int_eq(kem_encaps(test_kem(), HYBRID, encaps, N, test_scratch()), 0);
	ck_assert_int_eq(kem_decaps(test_kem(), HYBRID, decaps, N, test_scratch()), 0);
	for (size_t i = 0; i < N; i++) {
		ck_assert_int_eq(decaps[i].status, KEM_OK);
		ck_assert_mem_eq(&items[i].made, &items[i].found, 64);
		ck_assert_mem_ne(items[i].ct + 1088, items[i].ephemeral.public_key, 32);
		for (size_t j = 0; j < i; j++)
			ck_assert_mem_ne(items[i].ct + 1088, items[j].ct + 1088, 32);
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("hybrid");
	TCase *tc = tcase_create("hybrid");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_layout);
	tcase_add_test(tc, test_composed);
	tcase_add_loop_test(tc, test_zero_share_in_encaps, 0, N);
	tcase_add_loop_test(tc, test_zero_share_in_decaps, 0, N);
	tcase_add_test(tc, test_no_oracle_between_halves);
	tcase_add_test(tc, test_both_halves_bad);
	tcase_add_test(tc, test_high_bit_is_ignored);
	tcase_add_test(tc, test_ephemerals_are_made);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
