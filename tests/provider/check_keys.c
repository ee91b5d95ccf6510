/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that come in, go out, are copied and compared, by selection; and every way on
 * which a bad one could come in (FIPS 203 7.1 to 7.3).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_dispatch.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include "host.h"

static struct host host;
static const struct alg *alg;
/* With room for a length that is one too large. */
static uint8_t pub[MLKEMCLIENT_MAX_SHARE + 1], priv[MLKEMCLIENT_MAX_PRIVATE_KEY + 1];
static uint8_t seed[96 + 1];

static void
setup(int i)
{
	alg = &algs[i];
	host_open(&host, settings("/nonexistent/mlkemd.sock", "local", NULL));
}

static void
teardown(void)
{
	host_close(&host);
}

static EVP_PKEY *
try_import(bool with_pub, bool with_priv, bool with_seed)
{
	struct parts parts = {with_pub ? pub : NULL, with_priv ? priv : NULL,
	    with_seed ? seed : NULL, alg->share, alg->expanded, alg->seed};

	return pkey_try_import(&host, alg, &parts,
	    with_priv || with_seed ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY);
}

static void
refuse(bool with_pub, bool with_priv, bool with_seed, const char *error)
{
	EVP_PKEY *pkey = try_import(with_pub, with_priv, with_seed);
	const char *errors = host_errors();

	ck_assert_ptr_null(pkey);
	ck_assert_msg(strstr(errors, error) != NULL, "%s, not: %s", errors, error);
}

/* A pair with its parts in pub, priv and, from_seed, seed. */
static EVP_PKEY *
make_pair(bool from_seed)
{
	EVP_PKEY *pkey;

	if (!from_seed) {
		pkey = pkey_generate(&host, alg, false);
		ck_assert_uint_eq(
		    pkey_bytes(pkey, "priv", priv, sizeof(priv)), alg->expanded);
	} else {
		must(RAND_bytes(seed, 96));
		pkey = try_import(false, false, true);
		if (pkey == NULL)
			host_fail("seed", __LINE__);
		ck_assert_uint_eq(
		    pkey_bytes(pkey, "seed", seed, sizeof(seed)), alg->seed);
	}
	ck_assert_uint_eq(pkey_bytes(pkey, "pub", pub, sizeof(pub)), alg->share);
	return pkey;
}

START_TEST(import_forms)
{
	EVP_PKEY *own, *copies[4];

	setup(_i);
	own = make_pair(false);
	copies[0] = try_import(true, true, false);
	copies[1] = try_import(false, true, false);
	copies[2] = try_import(true, false, false);
	EVP_PKEY_free(own);
	for (int i = 0; i < 3; i++) {
		if (copies[i] == NULL)
			host_fail("import", __LINE__);
		ck_assert_int_eq(EVP_PKEY_eq(copies[0], copies[i]), 1);
		ck_assert(pkeys_agree(&host, alg, copies[i], copies[0]));
		if (i < 2)
			ck_assert(pkeys_agree(&host, alg, copies[2], copies[i]));
	}
	own = make_pair(true);
	copies[3] = try_import(true, false, true);
	ck_assert_ptr_nonnull(copies[3]);
	ck_assert_int_eq(EVP_PKEY_eq(own, copies[3]), 1);
	ck_assert_int_eq(EVP_PKEY_eq(own, copies[0]), 0);
	ck_assert(pkeys_agree(&host, alg, own, copies[3]));
	ck_assert(pkeys_agree(&host, alg, copies[3], own));
	EVP_PKEY_free(own);
	for (int i = 0; i < 4; i++)
		EVP_PKEY_free(copies[i]);
	teardown();
}
END_TEST

/* Generation from a given seed, as OpenSSL 3.5 has it. */
START_TEST(generate_from_seed)
{
	OSSL_PARAM params[] = {OSSL_PARAM_construct_octet_string("seed", seed, 0),
	    OSSL_PARAM_construct_end()};
	EVP_PKEY_CTX *ctx;
	EVP_PKEY *imported, *generated = NULL;

	setup(_i);
	imported = make_pair(true);
	ctx = EVP_PKEY_CTX_new_from_name(host.libctx, alg->name, "provider=mlkemd");
	must(EVP_PKEY_keygen_init(ctx));
	params[0].data_size = alg->seed - 1;
	ck_assert_int_le(EVP_PKEY_CTX_set_params(ctx, params), 0);
	params[0].data_size = alg->seed;
	must(EVP_PKEY_CTX_set_params(ctx, params));
	must(EVP_PKEY_generate(ctx, &generated));
	ck_assert_int_eq(EVP_PKEY_eq(imported, generated), 1);
	ck_assert(pkeys_agree(&host, alg, imported, generated));
	EVP_PKEY_free(generated);
	EVP_PKEY_free(imported);
	EVP_PKEY_CTX_free(ctx);
	teardown();
}
END_TEST

/* Lengths that are off by one, and no part at all. */
START_TEST(wrong_lengths)
{
	struct parts parts;

	setup(_i);
	EVP_PKEY_free(make_pair(true));
	EVP_PKEY_free(make_pair(false));
	for (int off = -1; off <= 1; off += 2) {
		for (int i = 0; i < 3; i++) {
			parts = (struct parts){0};
			if (i == 0)
				parts.pub = pub, parts.pub_len = alg->share + off;
			else if (i == 1)
				parts.priv = priv, parts.priv_len = alg->expanded + off;
			else
				parts.seed = seed, parts.seed_len = alg->seed + off;
			ck_assert_ptr_null(
			    pkey_try_import(&host, alg, &parts, EVP_PKEY_KEYPAIR));
			ck_assert_ptr_nonnull(strstr(host_errors(), "length"));
		}
	}
	parts = (struct parts){0};
	ck_assert_ptr_null(pkey_try_import(&host, alg, &parts, EVP_PKEY_KEYPAIR));
	ck_assert_ptr_nonnull(strstr(host_errors(), "neither"));
	/* A private part is not taken where a public key is asked for. */
	parts = (struct parts){.priv = priv, .priv_len = alg->expanded};
	ck_assert_ptr_null(pkey_try_import(&host, alg, &parts, EVP_PKEY_PUBLIC_KEY));
	ERR_clear_error();
	teardown();
}
END_TEST

/* A flipped bit of H(ek) or of ek, FIPS 203 7.3; one in z is another, right key. */
START_TEST(hash_check)
{
	size_t ek, x;
	EVP_PKEY *own, *other;

	setup(_i);
	own = make_pair(false);
	x = alg->share - alg->ek;
	ek = alg->expanded - x - 64 - alg->ek;
	priv[ek + alg->ek] ^= 1;
	refuse(false, true, false, "hash check");
	priv[ek + alg->ek] ^= 1;
	priv[ek + 7] ^= 1;
	refuse(false, true, false, "hash check");
	priv[ek + 7] ^= 1;
	priv[alg->expanded - x - 1] ^= 1;
	other = try_import(false, true, false);
	ck_assert_ptr_nonnull(other);
	ck_assert(pkeys_agree(&host, alg, own, other));
	EVP_PKEY_free(other);
	EVP_PKEY_free(own);
	teardown();
}
END_TEST

/* Parts that are right each, and do not belong together. */
START_TEST(parts_of_others)
{
	static uint8_t other_pub[MLKEMCLIENT_MAX_SHARE];
	EVP_PKEY *own;

	setup(_i);
	EVP_PKEY_free(make_pair(false));
	memcpy(other_pub, pub, alg->share);
	own = make_pair(true);
	/* Seed and public key of another pair. */
	memcpy(pub, other_pub, alg->share);
	refuse(true, false, true, "is not that of the private key");
	/* Expanded key and seed of another pair; expanded and another public key. */
	refuse(false, true, true, "is not that of the expanded private key");
	pkey_bytes(own, "pub", pub, sizeof(pub));
	refuse(true, true, false, "is not that of the private key");
	EVP_PKEY_free(own);
	teardown();
}
END_TEST

/* q itself and the largest value, first and last: never a share (FIPS 203 7.2). */
static void
unreduce(uint8_t *ek, int which)
{
	size_t last = alg->ek - 32 - 3;

	if (which == 0) {
		ek[0] = 0x01;
		ek[1] = (uint8_t)((ek[1] & 0xf0) | 0x0d);
	} else if (which == 1) {
		ek[last + 1] = (uint8_t)((ek[last + 1] & 0x0f) | 0x10);
		ek[last + 2] = 0xd0;
	} else {
		memset(ek, 0xff, alg->ek);
	}
}

/* The ways in through EVP; those of the library and the daemon have their own tests. */
START_TEST(unreduced_shares)
{
	struct parts parts = {.pub = pub};

	setup(_i);
	for (int which = 0; which < 3; which++) {
		EVP_PKEY_free(make_pair(false));
		unreduce(pub, which);
		ck_assert_ptr_null(pkey_try_peer(&host, alg, pub, alg->share));
		ck_assert_ptr_nonnull(strstr(host_errors(), "modulus check"));
		parts.pub_len = alg->share;
		ck_assert_ptr_null(
		    pkey_try_import(&host, alg, &parts, EVP_PKEY_PUBLIC_KEY));
		ck_assert_ptr_nonnull(strstr(host_errors(), "modulus check"));
		refuse(true, true, false, "is not that of the private key");
	}
	for (int i = 0; i < 5; i++) {
		size_t lens[] = {0, 1, 32, alg->share - 1, alg->share + 1};

		ck_assert_ptr_null(pkey_try_peer(&host, alg, pub, lens[i]));
		ERR_clear_error();
	}
	teardown();
}
END_TEST

/* What EVP_PKEY_dup() makes of a public key, of a pair, and of nothing. */
START_TEST(dup)
{
	EVP_PKEY *own, *public, *copy;
	uint8_t bytes[MLKEMCLIENT_MAX_PRIVATE_KEY];

	setup(_i);
	for (int from_seed = 0; from_seed < 2; from_seed++) {
		own = make_pair(from_seed);
		copy = EVP_PKEY_dup(own);
		if (copy == NULL)
			host_fail("dup of a pair", __LINE__);
		ck_assert_int_eq(EVP_PKEY_eq(own, copy), 1);
		ck_assert(pkeys_agree(&host, alg, copy, own));
		EVP_PKEY_free(own);
		ck_assert(pkeys_agree(&host, alg, copy, copy));
		ck_assert_uint_eq(
		    pkey_bytes(copy, from_seed ? "seed" : "priv", bytes, sizeof(bytes)),
		    from_seed ? alg->seed : alg->expanded);
		ck_assert_mem_eq(bytes, from_seed ? seed : priv,
		    from_seed ? alg->seed : alg->expanded);
		public = try_import(true, false, false);
		EVP_PKEY_free(copy);
		copy = EVP_PKEY_dup(public);
		ck_assert_ptr_nonnull(copy);
		ck_assert_int_eq(EVP_PKEY_eq(public, copy), 1);
		ck_assert_uint_eq(pkey_bytes(copy, "priv", bytes, sizeof(bytes)), 0);
		EVP_PKEY_free(copy);
		EVP_PKEY_free(public);
	}
	public = pkey_parameters(&host, alg);
	copy = EVP_PKEY_dup(public);
	ck_assert_ptr_nonnull(copy);
	ck_assert_int_eq(EVP_PKEY_parameters_eq(public, copy), 1);
	EVP_PKEY_free(copy);
	EVP_PKEY_free(public);
	ERR_clear_error();
	teardown();
}
END_TEST

static size_t
param_len(const OSSL_PARAM *params, const char *name)
{
	const OSSL_PARAM *p = OSSL_PARAM_locate_const(params, name);

	return p != NULL ? p->data_size : 0;
}

/* Export by selection; what comes out goes in again, and is the same. */
START_TEST(export)
{
	OSSL_PARAM *params = NULL;
	EVP_PKEY *own, *again = NULL, *one_time;
	EVP_PKEY_CTX *ctx;

	setup(_i);
	for (int from_seed = 0; from_seed < 2; from_seed++) {
		own = make_pair(from_seed);
		must(EVP_PKEY_todata(own, EVP_PKEY_PUBLIC_KEY, &params));
		ck_assert_uint_eq(param_len(params, "pub"), alg->share);
		ck_assert_uint_eq(param_len(params, "priv"), 0);
		ck_assert_uint_eq(param_len(params, "seed"), 0);
		OSSL_PARAM_free(params);
		must(EVP_PKEY_todata(own, EVP_PKEY_KEYPAIR, &params));
		ck_assert_uint_eq(param_len(params, from_seed ? "seed" : "priv"),
		    from_seed ? alg->seed : alg->expanded);
		ctx = EVP_PKEY_CTX_new_from_name(
		    host.libctx, alg->name, "provider=mlkemd");
		must(EVP_PKEY_fromdata_init(ctx));
		must(EVP_PKEY_fromdata(ctx, &again, EVP_PKEY_KEYPAIR, params));
		ck_assert_int_eq(EVP_PKEY_eq(own, again), 1);
		ck_assert(pkeys_agree(&host, alg, own, again));
		OSSL_PARAM_free(params);
		EVP_PKEY_CTX_free(ctx);
		EVP_PKEY_free(again);
		EVP_PKEY_free(own);
		again = NULL;
	}
	one_time = pkey_generate(&host, alg, true);
	must(EVP_PKEY_todata(one_time, EVP_PKEY_PUBLIC_KEY, &params));
	OSSL_PARAM_free(params);
	ck_assert_int_le(EVP_PKEY_todata(one_time, EVP_PKEY_KEYPAIR, &params), 0);
	ck_assert_ptr_nonnull(strstr(host_errors(), "one-time key"));
	EVP_PKEY_free(one_time);
	one_time = pkey_parameters(&host, alg);
	ck_assert_int_le(EVP_PKEY_todata(one_time, EVP_PKEY_PUBLIC_KEY, &params), 0);
	ERR_clear_error();
	EVP_PKEY_free(one_time);
	teardown();
}
END_TEST

static int
check(EVP_PKEY *pkey, int (*how)(EVP_PKEY_CTX *ctx))
{
	EVP_PKEY_CTX *ctx =
	    EVP_PKEY_CTX_new_from_pkey(host.libctx, pkey, "provider=mlkemd");
	int r = how(ctx);

	EVP_PKEY_CTX_free(ctx);
	ERR_clear_error();
	return r;
}

/* Both forms of one key, as a file may hold them: A09. */
START_TEST(validate)
{
	EVP_PKEY *own, *public, *one_time;

	setup(_i);
	for (int from_seed = 0; from_seed < 2; from_seed++) {
		own = make_pair(from_seed);
		ck_assert_int_eq(check(own, EVP_PKEY_check), 1);
		ck_assert_int_eq(check(own, EVP_PKEY_public_check), 1);
		ck_assert_int_eq(check(own, EVP_PKEY_private_check), 1);
		ck_assert_int_eq(check(own, EVP_PKEY_pairwise_check), 1);
		EVP_PKEY_free(own);
	}
	public = try_import(true, false, false);
	ck_assert_int_eq(check(public, EVP_PKEY_public_check), 1);
	ck_assert_int_le(check(public, EVP_PKEY_private_check), 0);
	ck_assert_int_le(check(public, EVP_PKEY_pairwise_check), 0);
	EVP_PKEY_free(public);
	one_time = pkey_generate(&host, alg, true);
	ck_assert_int_eq(check(one_time, EVP_PKEY_public_check), 1);
	EVP_PKEY_free(one_time);
	teardown();
}
END_TEST

/* Each check, taken out, lets in what the tests above say is refused. */
START_TEST(planted)
{
	EVP_PKEY *pkey;

	setup(_i);
	EVP_PKEY_free(make_pair(false));
	unreduce(pub, 0);
	setenv("MLKEMD_FAULT", "provider-no-modulus-check", 1);
	pkey = pkey_try_peer(&host, alg, pub, alg->share);
	ck_assert_ptr_nonnull(pkey);
	EVP_PKEY_free(pkey);
	setenv("MLKEMD_FAULT", "provider-no-form-check", 1);
	EVP_PKEY_free(make_pair(true));
	pkey = try_import(false, true, true);
	ck_assert_ptr_nonnull(pkey);
	EVP_PKEY_free(pkey);
	setenv("MLKEMD_FAULT", "provider-work-for-parameters", 1);
	ck_assert_ptr_null(pkey_try_peer(&host, alg, pub, alg->share));
	ck_assert_ptr_nonnull(strstr(host_errors(), "takes no others"));
	unsetenv("MLKEMD_FAULT");
	teardown();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("provider keys");
	TCase *tcase = tcase_create("all");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, import_forms, 0, N_ALGS);
	tcase_add_loop_test(tcase, generate_from_seed, 0, N_ALGS);
	tcase_add_loop_test(tcase, wrong_lengths, 0, N_ALGS);
	tcase_add_loop_test(tcase, hash_check, 0, N_ALGS);
	tcase_add_loop_test(tcase, parts_of_others, 0, N_ALGS);
	tcase_add_loop_test(tcase, unreduced_shares, 0, N_ALGS);
	tcase_add_loop_test(tcase, dup, 0, N_ALGS);
	tcase_add_loop_test(tcase, export, 0, N_ALGS);
	tcase_add_loop_test(tcase, validate, 0, N_ALGS);
	if (host_has_hooks())
		tcase_add_loop_test(tcase, planted, 0, N_ALGS);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
