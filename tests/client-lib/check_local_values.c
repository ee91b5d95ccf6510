/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the local route gives, compared with OpenSSL's SHAKE256, X25519 and HKDF, which
 * know nothing of this code.
 */
#include <check.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <string.h>

#include "peer.h"

#define N_MAX 1

static const enum mlkemclient_alg algs[] = {MLKEMCLIENT_ML_KEM_512,
    MLKEMCLIENT_ML_KEM_768, MLKEMCLIENT_ML_KEM_1024, MLKEMCLIENT_X25519MLKEM768};
enum { N_ALGS = sizeof(algs) / sizeof(algs[0]) };

static uint8_t shares[N_MAX][MLKEMCLIENT_MAX_SHARE];
static uint8_t cts[N_MAX][MLKEMCLIENT_MAX_CIPHERTEXT];
static uint8_t sent[N_MAX][MLKEMCLIENT_MAX_SECRET];
static uint8_t received[N_MAX][MLKEMCLIENT_MAX_SECRET];
static uint8_t private_key[MLKEMCLIENT_MAX_PRIVATE_KEY];

static struct mlkemclient *
local_client(void)
{
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	return client;
}

static struct mlkemclient_sizes
sizes_of(enum mlkemclient_alg alg)
{
	struct mlkemclient_sizes sizes;

	ck_assert_int_eq(mlkemclient_get_sizes(alg, &sizes), 0);
	return sizes;
}

/* K = J(z || c) for a ciphertext that is no encapsulation (FIPS 203 Alg. 18). */
static void
rejection_secret(const uint8_t z[32], const uint8_t *ct, size_t ct_len, uint8_t out[32])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	ck_assert(EVP_DigestInit_ex(ctx, EVP_shake256(), NULL) == 1 &&
		  EVP_DigestUpdate(ctx, z, 32) == 1 &&
		  EVP_DigestUpdate(ctx, ct, ct_len) == 1 &&
		  EVP_DigestFinalXOF(ctx, out, 32) == 1);
	EVP_MD_CTX_free(ctx);
}

static void
x25519(const uint8_t private_half[32], const uint8_t public_half[32], uint8_t out[32])
{
	EVP_PKEY *mine =
	    EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, private_half, 32);
	EVP_PKEY *theirs =
	    EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public_half, 32);
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(mine, NULL);
	size_t len = 32;

	ck_assert(EVP_PKEY_derive_init(ctx) == 1 &&
		  EVP_PKEY_derive_set_peer(ctx, theirs) == 1 &&
		  EVP_PKEY_derive(ctx, out, &len) == 1 && len == 32);
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(theirs);
	EVP_PKEY_free(mine);
}

START_TEST(seed_against_openssl)
{
	enum mlkemclient_alg alg = algs[_i];
	struct mlkemclient_sizes sizes = sizes_of(alg);
	struct mlkemclient *client = local_client();
	bool hybrid = alg == MLKEMCLIENT_X25519MLKEM768;
	uint8_t seed[96], want[64];

	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < sizeof(seed); i++)
			seed[i] = (uint8_t)(17 * i + (size_t)round + 1);
		for (size_t i = 0; i < sizes.ciphertext; i++)
			cts[0][i] = (uint8_t)(i * 7 + (size_t)round);
		rejection_secret(
		    seed + 32, cts[0], sizes.ciphertext - (hybrid ? 32 : 0), want);
		if (hybrid)
			x25519(seed + 64, cts[0] + 1088, want + 32);
		ck_assert_int_eq(
		    mlkemclient_decaps_with(client, alg, seed, sizes.seed, cts[0],
			sizes.ciphertext, received[0], sizes.secret),
		    0);
		ck_assert_mem_eq(received[0], want, sizes.secret);
	}
	mlkemclient_free(client);
}
END_TEST

START_TEST(exported_key_decapsulates)
{
	enum mlkemclient_alg alg = algs[_i];
	struct mlkemclient_sizes sizes = sizes_of(alg);
	struct mlkemclient *client = local_client();

	ck_assert_int_eq(mlkemclient_keygen_export(client, alg, shares[0], sizes.share,
			     private_key, sizes.private_key),
	    0);
	ck_assert_int_eq(mlkemclient_encaps(client, alg, shares[0], sizes.share, cts[0],
			     sizes.ciphertext, sent[0], sizes.secret),
	    0);
	for (int round = 0; round < 2; round++) { /* not one-time */
		ck_assert_int_eq(
		    mlkemclient_decaps_with(client, alg, private_key, sizes.private_key,
			cts[0], sizes.ciphertext, received[0], sizes.secret),
		    0);
		ck_assert_mem_eq(sent[0], received[0], sizes.secret);
	}
	/* a byte of ek inside: the hash check of FIPS 203 7.3 */
	private_key[sizes.private_key / 2] ^= 1;
	ck_assert_int_eq(
	    mlkemclient_decaps_with(client, alg, private_key, sizes.private_key, cts[0],
		sizes.ciphertext, received[0], sizes.secret),
	    MLKEMCLIENT_E_BAD_KEY);
	ck_assert(is_zero(received[0], sizes.secret));
	mlkemclient_free(client);
}
END_TEST

static void
hkdf(const char *hash, const uint8_t *ikm, size_t ikm_len, const char *salt,
    const char *info, uint8_t *out, size_t out_len)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);

	ck_assert(EVP_PKEY_derive_init(ctx) == 1 &&
		  EVP_PKEY_CTX_set_hkdf_md(ctx, EVP_get_digestbyname(hash)) == 1 &&
		  EVP_PKEY_CTX_set1_hkdf_key(ctx, ikm, (int)ikm_len) == 1 &&
		  EVP_PKEY_CTX_set1_hkdf_salt(
		      ctx, (const uint8_t *)salt, (int)strlen(salt)) == 1 &&
		  EVP_PKEY_CTX_add1_hkdf_info(
		      ctx, (const uint8_t *)info, (int)strlen(info)) == 1 &&
		  EVP_PKEY_derive(ctx, out, &out_len) == 1);
	EVP_PKEY_CTX_free(ctx);
}

START_TEST(kdf_against_openssl)
{
	static const struct {
		const char *name;
		unsigned hash;
		uint32_t length;
	} cases[] = {{"SHA256", 256, 32}, {"SHA384", 384, 48}, {"SHA256", 256, 8160},
	    {"SHA384", 384, 1}};
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	static uint8_t raw[64], derived[8160], want[8160];
	struct mlkemclient *client = local_client();
	const uint8_t *salt = (const uint8_t *)"salt",
		      *info = (const uint8_t *)"information";

	ck_assert_int_eq(
	    mlkemclient_keygen_export(client, alg, shares[0], 1216, private_key, 2432),
	    0);
	ck_assert_int_eq(
	    mlkemclient_encaps(client, alg, shares[0], 1216, cts[0], 1120, raw, 64), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(mlkemclient_set_kdf(client, cases[i].hash, salt, 4,
				     info, 11, cases[i].length),
		    0);
		ck_assert_int_eq(mlkemclient_decaps_with(client, alg, private_key, 2432,
				     cts[0], 1120, derived, cases[i].length),
		    0);
		hkdf(cases[i].name, raw, 64, "salt", "information", want,
		    cases[i].length);
		ck_assert_mem_eq(derived, want, cases[i].length);
	}
	ck_assert_int_eq(mlkemclient_set_kdf(client, 0, NULL, 0, NULL, 0, 0), 0);
	ck_assert_int_eq(mlkemclient_decaps_with(
			     client, alg, private_key, 2432, cts[0], 1120, derived, 64),
	    0);
	ck_assert_mem_eq(derived, raw, 64);
	mlkemclient_free(client);
}
END_TEST

/* Of an exported key the share that came with it; of a seed the one it decapsulates. */
/* The expanded form of a seed is a key of the same share, and does the same. */
static void
check_expanded(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *seed, const uint8_t *share)
{
	struct mlkemclient_sizes sizes = sizes_of(alg);
	uint8_t expanded[MLKEMCLIENT_MAX_PRIVATE_KEY], again[MLKEMCLIENT_MAX_SHARE];
	uint8_t again_secret[MLKEMCLIENT_MAX_SECRET];

	ck_assert_int_eq(mlkemclient_expand_seed(client, alg, seed, sizes.seed,
			     expanded, sizes.private_key),
	    0);
	ck_assert_int_eq(mlkemclient_share_of(client, alg, expanded, sizes.private_key,
			     again, sizes.share),
	    0);
	ck_assert_mem_eq(again, share, sizes.share);
	ck_assert_int_eq(
	    mlkemclient_decaps_with(client, alg, expanded, sizes.private_key, cts[0],
		sizes.ciphertext, again_secret, sizes.secret),
	    0);
	ck_assert_mem_eq(sent[0], again_secret, sizes.secret);
	ck_assert_int_eq(mlkemclient_expand_seed(client, alg, seed, sizes.seed - 1,
			     expanded, sizes.private_key),
	    MLKEMCLIENT_E_LENGTH);
	ck_assert(is_zero(expanded, sizes.private_key));
	ck_assert_int_eq(mlkemclient_expand_seed(client, alg, seed, sizes.seed,
			     expanded, sizes.private_key - 1),
	    MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(
	    mlkemclient_expand_seed(client, alg, seed, sizes.seed, NULL, 0),
	    MLKEMCLIENT_E_INVALID);
}

START_TEST(share_of_private_keys)
{
	enum mlkemclient_alg alg = algs[_i];
	struct mlkemclient_sizes sizes = sizes_of(alg);
	struct mlkemclient *client = local_client();
	uint8_t share[MLKEMCLIENT_MAX_SHARE], seed[96];

	ck_assert_int_eq(mlkemclient_keygen_export(client, alg, shares[0], sizes.share,
			     private_key, sizes.private_key),
	    0);
	ck_assert_int_eq(mlkemclient_share_of(client, alg, private_key,
			     sizes.private_key, share, sizes.share),
	    0);
	ck_assert_mem_eq(share, shares[0], sizes.share);

	for (size_t i = 0; i < sizeof(seed); i++)
		seed[i] = (uint8_t)(i * 7 + 1);
	ck_assert_int_eq(
	    mlkemclient_share_of(client, alg, seed, sizes.seed, share, sizes.share), 0);
	ck_assert_int_eq(mlkemclient_encaps(client, alg, share, sizes.share, cts[0],
			     sizes.ciphertext, sent[0], sizes.secret),
	    0);
	ck_assert_int_eq(mlkemclient_decaps_with(client, alg, seed, sizes.seed, cts[0],
			     sizes.ciphertext, received[0], sizes.secret),
	    0);
	ck_assert_mem_eq(sent[0], received[0], sizes.secret);
	check_expanded(client, alg, seed, share);

	/* one bit of ek: H(ek) is another (FIPS 203 7.3) */
	private_key[sizes.private_key / 2] ^= 1;
	memset(share, 0xee, sizeof(share));
	ck_assert_int_eq(mlkemclient_share_of(client, alg, private_key,
			     sizes.private_key, share, sizes.share),
	    MLKEMCLIENT_E_BAD_KEY);
	ck_assert(is_zero(share, sizes.share));
	ck_assert_int_eq(mlkemclient_share_of(client, alg, private_key,
			     sizes.private_key - 1, share, sizes.share),
	    MLKEMCLIENT_E_LENGTH);
	ck_assert_int_eq(
	    mlkemclient_share_of(client, alg, seed, sizes.seed, share, sizes.share - 1),
	    MLKEMCLIENT_E_INVALID);
	mlkemclient_free(client);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("local values");
	TCase *tc = tcase_create("local values");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, seed_against_openssl, 0, N_ALGS);
	tcase_add_loop_test(tc, exported_key_decapsulates, 0, N_ALGS);
	tcase_add_loop_test(tc, share_of_private_keys, 0, N_ALGS);
	tcase_add_test(tc, kdf_against_openssl);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
