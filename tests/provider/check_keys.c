/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that come in, go out, are copied and compared, by selection. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_dispatch.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include "pair.h"
#include "provider/keydata.h"
#include "provider/provider.h"

START_TEST(import_forms)
{
	EVP_PKEY *own, *copies[4];

	pair_setup(_i);
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
	pair_teardown();
}
END_TEST

/* Generation from a given seed, as OpenSSL 3.5 has it. */
START_TEST(generate_from_seed)
{
	OSSL_PARAM params[] = {OSSL_PARAM_construct_octet_string("seed", seed, 0),
	    OSSL_PARAM_construct_end()};
	EVP_PKEY_CTX *ctx;
	EVP_PKEY *imported, *generated = NULL;

	pair_setup(_i);
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
	pair_teardown();
}
END_TEST

/* What EVP_PKEY_dup() makes of a public key, of a pair, and of nothing. */
START_TEST(dup)
{
	EVP_PKEY *own, *public, *copy;
	uint8_t bytes[MLKEMCLIENT_MAX_PRIVATE_KEY];

	pair_setup(_i);
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
	pair_teardown();
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

	pair_setup(_i);
	for (int from_seed = 0; from_seed < 2; from_seed++) {
		own = make_pair(from_seed);
		must(EVP_PKEY_todata(own, EVP_PKEY_PUBLIC_KEY, &params));
		ck_assert_uint_eq(param_len(params, "pub"), alg->share);
		ck_assert_uint_eq(param_len(params, "priv"), 0);
		ck_assert_uint_eq(param_len(params, "seed"), 0);
		OSSL_PARAM_free(params);
		must(EVP_PKEY_todata(own, EVP_PKEY_KEYPAIR, &params));
		/* As OpenSSL 3.5: a key that came as a seed goes out in both forms. */
		ck_assert_uint_eq(param_len(params, "priv"), alg->expanded);
		ck_assert_uint_eq(param_len(params, "seed"), from_seed ? alg->seed : 0);
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
	pair_teardown();
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

	pair_setup(_i);
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
	pair_teardown();
}
END_TEST

/* Keys that live long lie in OpenSSL's secure heap, if the program has one. */
START_TEST(secure_heap)
{
	EVP_PKEY *own[2];
	size_t before;

	ck_assert(CRYPTO_secure_malloc_initialized() ||
		  CRYPTO_secure_malloc_init(1 << 16, 32) == 1);
	pair_setup(_i);
	/* The states of the random generators lie there too, once they are used. */
	EVP_PKEY_free(make_pair(false));
	EVP_PKEY_free(make_pair(true));
	before = CRYPTO_secure_used();
	own[0] = make_pair(false);
	ck_assert_uint_ge(CRYPTO_secure_used(), before + alg->expanded);
	own[1] = make_pair(true);
	ck_assert_uint_ge(CRYPTO_secure_used(), before + alg->expanded + alg->seed);
	EVP_PKEY_free(own[0]);
	EVP_PKEY_free(own[1]);
	ck_assert_uint_eq(CRYPTO_secure_used(), before);
	pair_teardown();
}
END_TEST

/* A reference, as a decoder hands it on: the key changes hands, once. */
START_TEST(reference)
{
	const OSSL_DISPATCH *f = keymgmt_functions[_i];
	OSSL_FUNC_keymgmt_load_fn *load = NULL;
	struct provider provider = {0};
	struct keydata *key = keydata_new(&provider, &algs[_i]), *made = key;

	for (; f->function_id != 0; f++)
		if (f->function_id == OSSL_FUNC_KEYMGMT_LOAD)
			load = OSSL_FUNC_keymgmt_load(f);
	ck_assert_ptr_nonnull(load);
	ck_assert_ptr_null(load(&key, sizeof(key) - 1));
	ck_assert_ptr_null(load(NULL, sizeof(key)));
	ck_assert_ptr_eq(key, made);
	ck_assert_ptr_eq(load(&key, sizeof(key)), made);
	ck_assert_ptr_null(key);
	ck_assert_ptr_null(load(&key, sizeof(key)));
	keydata_free(made);
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
	tcase_add_loop_test(tcase, dup, 0, N_ALGS);
	tcase_add_loop_test(tcase, export, 0, N_ALGS);
	tcase_add_loop_test(tcase, validate, 0, N_ALGS);
	tcase_add_loop_test(tcase, secure_heap, 0, N_ALGS);
	tcase_add_loop_test(tcase, reference, 0, N_ALGS);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
