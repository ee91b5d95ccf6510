/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Against the algorithms that OpenSSL 3.5 and later have of their own: keys of one made
 * keys of the other, and secrets both ways. Older ones have none: skipped.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

#include "host.h"

#define OURS   "provider=mlkemd"
#define THEIRS "provider=default"

static struct host host;

/* The same key in the hands of another provider. */
static EVP_PKEY *
carry_over(const struct alg *alg, EVP_PKEY *from, const char *to, int selection)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(host.libctx, alg->name, to);
	OSSL_PARAM *params = NULL;
	EVP_PKEY *pkey = NULL;

	must(EVP_PKEY_todata(from, selection, &params));
	must(EVP_PKEY_fromdata_init(ctx));
	must(EVP_PKEY_fromdata(ctx, &pkey, selection, params));
	OSSL_PARAM_free(params);
	EVP_PKEY_CTX_free(ctx);
	return pkey;
}

static void
encaps(EVP_PKEY *to, const char *query, uint8_t *ct, uint8_t *secret)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(host.libctx, to, query);
	size_t ct_len = MLKEMCLIENT_MAX_CIPHERTEXT, len = MLKEMCLIENT_MAX_SECRET;

	must(EVP_PKEY_encapsulate_init(ctx, NULL));
	must(EVP_PKEY_encapsulate(ctx, ct, &ct_len, secret, &len));
	EVP_PKEY_CTX_free(ctx);
}

static void
decaps(const struct alg *alg, EVP_PKEY *with, const char *query, const uint8_t *ct,
    uint8_t *secret)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(host.libctx, with, query);
	size_t len = MLKEMCLIENT_MAX_SECRET;

	must(EVP_PKEY_decapsulate_init(ctx, NULL));
	must(EVP_PKEY_decapsulate(ctx, secret, &len, ct, alg->ciphertext));
	ck_assert_uint_eq(len, alg->secret);
	EVP_PKEY_CTX_free(ctx);
}

/*
 * A pair made by one: its public half in the other's hands, and back; the pair as well.
 */
static void
both_ways(const struct alg *alg, const char *maker, const char *other)
{
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT];
	uint8_t a[MLKEMCLIENT_MAX_SECRET], b[MLKEMCLIENT_MAX_SECRET];
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(host.libctx, alg->name, maker);
	EVP_PKEY *own = NULL, *pub, *pair;

	must(EVP_PKEY_keygen_init(ctx));
	must(EVP_PKEY_generate(ctx, &own));
	pub = carry_over(alg, own, other, EVP_PKEY_PUBLIC_KEY);
	pair = carry_over(alg, own, other, EVP_PKEY_KEYPAIR);
	encaps(pub, other, ct, a);
	decaps(alg, own, maker, ct, b);
	ck_assert_mem_eq(a, b, alg->secret);
	encaps(own, maker, ct, a);
	decaps(alg, pair, other, ct, b);
	ck_assert_mem_eq(a, b, alg->secret);
	/* A changed ciphertext: the same other secret on both sides. */
	ct[5] ^= 4;
	decaps(alg, pair, other, ct, a);
	decaps(alg, own, maker, ct, b);
	ck_assert_mem_eq(a, b, alg->secret);
	EVP_PKEY_free(pair);
	EVP_PKEY_free(pub);
	EVP_PKEY_free(own);
	EVP_PKEY_CTX_free(ctx);
}

START_TEST(native)
{
	host_open(&host, settings("/nonexistent/mlkemd.sock", "local", NULL));
	for (int i = 0; i < 20; i++) {
		both_ways(&algs[_i], OURS, THEIRS);
		both_ways(&algs[_i], THEIRS, OURS);
	}
	host_close(&host);
}
END_TEST

int
main(void)
{
	EVP_KEM *kem = EVP_KEM_fetch(NULL, "X25519MLKEM768", THEIRS);
	Suite *suite;
	TCase *tcase;

	if (kem == NULL) {
		printf("%s has no ML-KEM of its own\n", OpenSSL_version(0));
		return 77;
	}
	EVP_KEM_free(kem);
	suite = suite_create("provider and OpenSSL's own");
	tcase = tcase_create("all");
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, native, 0, N_ALGS);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
