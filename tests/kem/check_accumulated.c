/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accumulated hash of 10 000 rounds, after the recipe of C2SP/CCTV with the final
 * FIPS 203: all inputs are one SHAKE128 stream over nothing (per round d, z, m and a
 * random ciphertext), all outputs go into another one (ek, dk, ct, K, K of the random
 * ciphertext), of which 32 bytes are compared. The rounds are worked in groups and
 * batches of many sizes, which may not change the hash.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "tests/kem/kemtest.h"

#define N_ROUNDS 10000
#define N_MAX    64

static const struct {
	enum kem_alg alg;
	const char *with_dk, *no_dk;
} accumulated[] = {
    {KEM_ALG_MLKEM512,
	"705dcffc87f4e67e35a09dcaa31772e86f3341bd3ccf1e78a5fef99ae6a35a13",
	"e0112db334d4240ca6feed5b0beab1318925edd4ff7d840c2ebe6d61971fc14c"},
    {KEM_ALG_MLKEM768,
	"f959d18d3d1180121433bf0e05f11e7908cf9d03edc150b2b07cb90bef5bc1c1",
	"8a518cc63da366322a8e7a818c7a0d63483cb3528d34a4cf42f35d5ad73f22fc"},
    {KEM_ALG_MLKEM1024,
	"e3bf82b013307b2e9d47dde791ff6dfc82e694e6382404abdb948b908b75bad5",
	"f1a3925c9cf8538bb104c56efb2f5ecb74cc3df25087460b73f6c873e96bcb6a"},
};

static const size_t sizes[] = {1, 8, 2, 64, 7, 1, 9, 33, 3, 16};

/* The values of a batch of rounds. */
static struct test_item items[N_MAX];
static struct kem_shared rejected[N_MAX];
static uint8_t m[N_MAX][32];

/* OpenSSL 3.0 squeezes once only, so the whole stream is made at once. */
static uint8_t *
stream_new(size_t len)
{
	uint8_t *stream = malloc(len);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	ck_assert_ptr_nonnull(stream);
	ck_assert_int_eq(EVP_DigestInit_ex(ctx, EVP_shake128(), NULL), 1);
	ck_assert_int_eq(EVP_DigestFinalXOF(ctx, stream, len), 1);
	EVP_MD_CTX_free(ctx);
	return stream;
}

static EVP_MD_CTX *
hash_new(void)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	ck_assert_int_eq(EVP_DigestInit_ex(ctx, EVP_shake128(), NULL), 1);
	return ctx;
}

static void
hash_add(EVP_MD_CTX *ctx, const void *p, size_t len)
{
	ck_assert_int_eq(EVP_DigestUpdate(ctx, p, len), 1);
}

static void
hash_is(EVP_MD_CTX *ctx, const char *expected_hex)
{
	uint8_t out[32], expected[32];

	ck_assert_int_eq(EVP_DigestFinalXOF(ctx, out, sizeof(out)), 1);
	test_hex(expected, sizeof(expected), expected_hex);
	ck_assert_mem_eq(out, expected, sizeof(out));
	EVP_MD_CTX_free(ctx);
}

/* n rounds, whose random bytes stand at stream, round_bytes each. */
static void
rounds_run(enum kem_alg alg, size_t n, const uint8_t *stream, size_t round_bytes)
{
	const struct kem_alg_info *info = kem_alg_info(alg);
	struct kem_keygen_item keygen[N_MAX];
	struct kem_encaps_item encaps[N_MAX];
	struct kem_decaps_item decaps[N_MAX], reject[N_MAX];

	for (size_t i = 0; i < n; i++) {
		const uint8_t *round = stream + i * round_bytes;

		keygen[i] = test_keygen_item(&items[i], &items[i]);
		keygen[i].seed = round;
		memcpy(m[i], round + 64, 32);
		items[i].alg = alg;
		encaps[i] = test_encaps_item(&items[i], &items[i]);
		decaps[i] = test_decaps_item(&items[i], &items[i]);
		reject[i] = decaps[i];
		reject[i].ct = round + 96;
		reject[i].shared = &rejected[i];
		kem_private_from_parts(
		    &items[i].key, alg, items[i].secret, items[i].share);
	}
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, n, test_scratch()), 0);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, n, m, test_scratch()), 0);
	ck_assert_int_eq(kem_decaps(test_kem(), alg, decaps, n, test_scratch()), 0);
	ck_assert_int_eq(kem_decaps(test_kem(), alg, reject, n, test_scratch()), 0);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(keygen[i].status, KEM_OK);
		ck_assert_int_eq(encaps[i].status, KEM_OK);
		ck_assert_int_eq(decaps[i].status, KEM_OK);
		ck_assert_int_eq(reject[i].status, KEM_OK);
		ck_assert_mem_eq(&items[i].made, &items[i].found, 64);
		kem_private_export(alg, items[i].secret, items[i].share, items[i].dk);
	}
	ck_assert_uint_eq(info->ct_bytes + 96, round_bytes);
}

START_TEST(test_accumulated)
{
	const enum kem_alg alg = accumulated[_i].alg;
	const struct kem_alg_info *info = kem_alg_info(alg);
	const size_t round_bytes = 96 + info->ct_bytes;
	uint8_t *stream = stream_new(N_ROUNDS * round_bytes);
	EVP_MD_CTX *with_dk = hash_new(), *no_dk = hash_new();
	size_t n;

	for (size_t done = 0, s = 0; done < N_ROUNDS; done += n, s++) {
		n = sizes[s % (sizeof(sizes) / sizeof(sizes[0]))];
		if (n > N_ROUNDS - done)
			n = N_ROUNDS - done;
		rounds_run(alg, n, stream + done * round_bytes, round_bytes);
		for (size_t i = 0; i < n; i++) {
			hash_add(with_dk, items[i].share, info->share_bytes);
			hash_add(with_dk, items[i].dk, info->dk_bytes);
			hash_add(with_dk, items[i].ct, info->ct_bytes);
			hash_add(with_dk, &items[i].made, 32);
			hash_add(with_dk, &rejected[i], 32);
			hash_add(no_dk, items[i].share, info->share_bytes);
			hash_add(no_dk, items[i].ct, info->ct_bytes);
			hash_add(no_dk, &items[i].made, 32);
			hash_add(no_dk, &rejected[i], 32);
		}
	}
	hash_is(with_dk, accumulated[_i].with_dk);
	hash_is(no_dk, accumulated[_i].no_dk);
	free(stream);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("accumulated");
	TCase *tc = tcase_create("10000 rounds");

	tcase_set_timeout(tc, 600);
	tcase_add_loop_test(tc, test_accumulated, 0, 3);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
