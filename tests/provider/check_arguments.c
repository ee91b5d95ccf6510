/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments at the border: sizes asked for, buffers too small, nothing where something
 * has to be, the wrong order, keys without the part that is needed. What is refused
 * leaves the buffers as they were.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "host.h"

#define CANARY 0xa5

static struct host host;

static void
setup(void)
{
	host_open(&host, settings("/nonexistent/mlkemd.sock", "local", NULL));
}

static void
teardown(void)
{
	host_close(&host);
}

/* Buffers with canaries behind them, and the lengths as they are told. */
struct buffers {
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT + 16];
	uint8_t secret[MLKEMCLIENT_MAX_SECRET + 16];
	size_t ct_len, secret_len;
};

static void
buffers_reset(struct buffers *b, size_t ct_len, size_t secret_len)
{
	memset(b->ct, CANARY, sizeof(b->ct));
	memset(b->secret, CANARY, sizeof(b->secret));
	b->ct_len = ct_len;
	b->secret_len = secret_len;
}

static void
buffers_are_untouched(const struct buffers *b)
{
	ck_assert(bytes_are(b->ct, sizeof(b->ct), CANARY));
	ck_assert(bytes_are(b->secret, sizeof(b->secret), CANARY));
	ck_assert_ptr_nonnull(strstr(host_errors(), "mlkemd"));
}

static void
encaps_arguments(EVP_PKEY_CTX *ctx, const struct alg *alg)
{
	struct buffers b;

	/* Sizes, all of them or one. */
	buffers_reset(&b, 0, 0);
	must(EVP_PKEY_encapsulate(ctx, NULL, &b.ct_len, NULL, &b.secret_len));
	ck_assert_uint_eq(b.ct_len, alg->ciphertext);
	ck_assert_uint_eq(b.secret_len, alg->secret);
	buffers_reset(&b, 0, 0);
	must(EVP_PKEY_encapsulate(ctx, NULL, &b.ct_len, NULL, NULL));
	ck_assert_uint_eq(b.ct_len, alg->ciphertext);
	must(EVP_PKEY_encapsulate(ctx, NULL, NULL, NULL, &b.secret_len));
	ck_assert_uint_eq(b.secret_len, alg->secret);
	ck_assert_int_le(EVP_PKEY_encapsulate(ctx, NULL, NULL, NULL, NULL), 0);

	/* Too small by one, or nothing. */
	for (int i = 0; i < 4; i++) {
		buffers_reset(&b, alg->ciphertext, alg->secret);
		*(i & 1 ? &b.ct_len : &b.secret_len) =
		    i & 2 ? 0 : (i & 1 ? alg->ciphertext : alg->secret) - 1;
		ck_assert_int_le(
		    EVP_PKEY_encapsulate(ctx, b.ct, &b.ct_len, b.secret, &b.secret_len),
		    0);
		buffers_are_untouched(&b);
	}
	buffers_reset(&b, alg->ciphertext, alg->secret);
	ck_assert_int_le(
	    EVP_PKEY_encapsulate(ctx, b.ct, NULL, b.secret, &b.secret_len), 0);
	buffers_are_untouched(&b);
	ck_assert_int_le(EVP_PKEY_encapsulate(ctx, b.ct, &b.ct_len, b.secret, NULL), 0);
	buffers_are_untouched(&b);

	/* More room than needed: no byte behind the result. */
	buffers_reset(&b, SIZE_MAX, SIZE_MAX);
	must(EVP_PKEY_encapsulate(ctx, b.ct, &b.ct_len, b.secret, &b.secret_len));
	ck_assert_uint_eq(b.ct_len, alg->ciphertext);
	ck_assert_uint_eq(b.secret_len, alg->secret);
	ck_assert(bytes_are(b.ct + alg->ciphertext, 16, CANARY));
	ck_assert(bytes_are(b.secret + alg->secret, 16, CANARY));
}

static void
decaps_arguments(EVP_PKEY_CTX *ctx, const struct alg *alg, const uint8_t *ct)
{
	struct buffers b;

	buffers_reset(&b, 0, 0);
	must(EVP_PKEY_decapsulate(ctx, NULL, &b.secret_len, ct, alg->ciphertext));
	ck_assert_uint_eq(b.secret_len, alg->secret);
	ck_assert_int_le(EVP_PKEY_decapsulate(ctx, NULL, NULL, ct, alg->ciphertext), 0);
	for (int i = 0; i < 2; i++) {
		buffers_reset(&b, 0, i == 0 ? alg->secret - 1 : 0);
		ck_assert_int_le(EVP_PKEY_decapsulate(
				     ctx, b.secret, &b.secret_len, ct, alg->ciphertext),
		    0);
		buffers_are_untouched(&b);
	}
	buffers_reset(&b, 0, alg->secret);
	ck_assert_int_le(
	    EVP_PKEY_decapsulate(ctx, b.secret, NULL, ct, alg->ciphertext), 0);
	buffers_are_untouched(&b);

	/* A ciphertext of another length: an error at every call (FIPS 203 7.3). */
	for (int i = 0; i < 4; i++) {
		size_t lens[] = {alg->ciphertext - 1, alg->ciphertext + 1, 0, 1};

		buffers_reset(&b, 0, alg->secret);
		ck_assert_int_le(
		    EVP_PKEY_decapsulate(ctx, b.secret, &b.secret_len, ct, lens[i]), 0);
		ck_assert(bytes_are(b.secret, alg->secret, 0) ||
			  bytes_are(b.secret, alg->secret, CANARY));
		ck_assert(bytes_are(b.secret + alg->secret, 16, CANARY));
		ERR_clear_error();
	}
	buffers_reset(&b, 0, SIZE_MAX);
	must(EVP_PKEY_decapsulate(ctx, b.secret, &b.secret_len, ct, alg->ciphertext));
	ck_assert_uint_eq(b.secret_len, alg->secret);
	ck_assert(bytes_are(b.secret + alg->secret, 16, CANARY));
}

START_TEST(arguments)
{
	const struct alg *alg = &algs[_i];
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT + 1], secret[MLKEMCLIENT_MAX_SECRET];
	size_t ct_len = alg->ciphertext, secret_len = alg->secret;
	EVP_PKEY *own;
	EVP_PKEY_CTX *ctx;

	own = pkey_generate(&host, alg, false);
	must(pkey_try_encaps(&host, alg, own, ct, secret));
	ctx = EVP_PKEY_CTX_new_from_pkey(host.libctx, own, "provider=mlkemd");

	/* Not begun, or begun as the other: -1 and -2 are failures too. */
	ck_assert_int_le(
	    EVP_PKEY_encapsulate(ctx, ct, &ct_len, secret, &secret_len), 0);
	ck_assert_int_le(EVP_PKEY_decapsulate(ctx, secret, &secret_len, ct, ct_len), 0);
	must(EVP_PKEY_encapsulate_init(ctx, NULL));
	ck_assert_int_le(EVP_PKEY_decapsulate(ctx, secret, &secret_len, ct, ct_len), 0);
	encaps_arguments(ctx, alg);
	must(EVP_PKEY_decapsulate_init(ctx, NULL));
	ck_assert_int_le(
	    EVP_PKEY_encapsulate(ctx, ct, &ct_len, secret, &secret_len), 0);
	decaps_arguments(ctx, alg, ct);
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(own);
}
END_TEST

/* Keys that lack what the operation needs. */
START_TEST(missing_parts)
{
	const struct alg *alg = &algs[_i];
	uint8_t share[MLKEMCLIENT_MAX_SHARE], ct[MLKEMCLIENT_MAX_CIPHERTEXT];
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	EVP_PKEY *own, *empty, *public;

	own = pkey_generate(&host, alg, false);
	empty = pkey_parameters(&host, alg);
	pkey_bytes(own, "pub", share, sizeof(share));
	public = pkey_try_peer(&host, alg, share, alg->share);
	ck_assert_ptr_nonnull(public);
	ck_assert_int_le(pkey_try_encaps(&host, alg, empty, ct, secret), 0);
	ck_assert_ptr_nonnull(strstr(host_errors(), "no public part"));
	ck_assert_int_le(pkey_try_decaps(&host, alg, empty, ct, secret), 0);
	ck_assert_ptr_nonnull(strstr(host_errors(), "no private part"));
	must(pkey_try_encaps(&host, alg, public, ct, secret));
	ck_assert_int_le(pkey_try_decaps(&host, alg, public, ct, secret), 0);
	/* Parts of a key do not change any more. */
	ck_assert_int_le(
	    EVP_PKEY_set1_encoded_public_key(public, share, alg->share), 0);
	ck_assert_ptr_nonnull(strstr(host_errors(), "takes no others"));
	EVP_PKEY_free(public);
	EVP_PKEY_free(empty);
	EVP_PKEY_free(own);
}
END_TEST

/* Buffers that are big enough, told to be small: nothing else would write there. */
START_TEST(planted)
{
	const struct alg *alg = &algs[ALG_X25519MLKEM768];
	struct buffers b;
	EVP_PKEY *own;
	EVP_PKEY_CTX *ctx;

	own = pkey_generate(&host, alg, false);
	ctx = EVP_PKEY_CTX_new_from_pkey(host.libctx, own, "provider=mlkemd");
	must(EVP_PKEY_encapsulate_init(ctx, NULL));
	setenv("MLKEMD_FAULT", "provider-short-buffers", 1);
	buffers_reset(&b, alg->ciphertext - 1, alg->secret);
	must(EVP_PKEY_encapsulate(ctx, b.ct, &b.ct_len, b.secret, &b.secret_len));
	ck_assert(!bytes_are(b.ct, sizeof(b.ct), CANARY));
	unsetenv("MLKEMD_FAULT");
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(own);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("provider arguments");
	TCase *tcase = tcase_create("all");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, arguments, 0, N_ALGS);
	tcase_add_loop_test(tcase, missing_parts, 0, N_ALGS);
	if (host_has_hooks())
		tcase_add_test(tcase, planted);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
