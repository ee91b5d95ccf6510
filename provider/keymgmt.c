/* SPDX-License-Identifier: Apache-2.0 */
/* KEYMGMT: the tables, and what asks or compares keys: provider-keymgmt(7). */
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/params.h>

#include "keydata.h"
#include "provider.h"

static OSSL_FUNC_keymgmt_free_fn keymgmt_free;
static OSSL_FUNC_keymgmt_has_fn keymgmt_has;
static OSSL_FUNC_keymgmt_match_fn keymgmt_match;
static OSSL_FUNC_keymgmt_validate_fn keymgmt_validate;
static OSSL_FUNC_keymgmt_dup_fn keymgmt_dup;
static OSSL_FUNC_keymgmt_load_fn keymgmt_load;
static OSSL_FUNC_keymgmt_get_params_fn keymgmt_get_params;
static OSSL_FUNC_keymgmt_gettable_params_fn keymgmt_gettable_params;
static OSSL_FUNC_keymgmt_set_params_fn keymgmt_set_params;
static OSSL_FUNC_keymgmt_settable_params_fn keymgmt_settable_params;

/* OpenSSL 3.0 has no name for the last; 3.6 has. */
#define PARAM_SEED     "seed"
#define PARAM_CATEGORY "security-category"

static void
keymgmt_free(void *keydata)
{
	keydata_free(keydata);
}

static int
keymgmt_has(const void *keydata, int selection)
{
	const struct keydata *key = keydata;

	if (key == NULL)
		return 0;
	if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) != 0 && !key->has_share)
		return 0;
	return (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) == 0 ||
	       keydata_has_private(key);
}

/* A private key has its public one, and is another if that is another. */
static int
keymgmt_match(const void *keydata1, const void *keydata2, int selection)
{
	const struct keydata *a = keydata1, *b = keydata2;

	if (a->alg != b->alg)
		return 0;
	if ((selection & OSSL_KEYMGMT_SELECT_KEYPAIR) == 0)
		return 1;
	return a->has_share && b->has_share &&
	       memcmp(a->share, b->share, a->alg->share) == 0;
}

static int
private_belongs(const struct keydata *key)
{
	uint8_t share[MLKEMCLIENT_MAX_SHARE];
	size_t len;
	const uint8_t *p = keydata_private(key, &len);

	if (key->one_time != NULL)
		return 1;
	if (exchange_share_of(key->provider, key->alg, p, len, share) != 0)
		return 0;
	if (memcmp(share, key->share, key->alg->share) == 0)
		return 1;
	raise_error(key->provider, REASON_MISMATCH, NULL);
	return 0;
}

/* Parts are checked when they come in: this is for who wants to know it now. */
static int
keymgmt_validate(const void *keydata, int selection, int check_type)
{
	const struct keydata *key = keydata;
	bool pair =
	    (selection & OSSL_KEYMGMT_SELECT_KEYPAIR) == OSSL_KEYMGMT_SELECT_KEYPAIR;

	if (!keymgmt_has(key, selection)) {
		raise_error(key->provider,
		    key->has_share ? REASON_NO_PRIVATE : REASON_NO_PUBLIC, NULL);
		return 0;
	}
	if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) != 0 &&
	    !alg_share_is_reduced(key->alg, key->share)) {
		raise_error(
		    key->provider, REASON_CLIENT - MLKEMCLIENT_E_BAD_SHARE, NULL);
		return 0;
	}
	if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0 && !private_belongs(key))
		return 0;
	return !pair || keydata_check_pairwise(key);
}

static void *
keymgmt_dup(const void *keydata, int selection)
{
	const struct keydata *key = keydata;

	/*
	 * Without a part of the pair: what OpenSSL calls parameters. The type is all.
	 */
	if ((selection & OSSL_KEYMGMT_SELECT_KEYPAIR) == 0)
		return keydata_new(key->provider, key->alg);
	return keydata_copy(key, (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0 &&
				     keydata_has_private(key));
}

/* The reference is the address of a key, which changes hands. */
static void *
keymgmt_load(const void *reference, size_t reference_sz)
{
	struct keydata *key, **from;

	if (reference == NULL || reference_sz != sizeof(void *))
		return NULL;
	from = (struct keydata **)reference;
	key = *from;
	*from = NULL;
	return key;
}

static const OSSL_PARAM gettable[] = {
    OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL),
    OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
    OSSL_PARAM_int(PARAM_CATEGORY, NULL),
    OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL),
    OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
    OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
    OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
    OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, NULL, 0),
    OSSL_PARAM_octet_string(PARAM_SEED, NULL, 0),
    OSSL_PARAM_END,
};

static const OSSL_PARAM *
keymgmt_gettable_params(void *provctx)
{
	return gettable;
}

static int
get_number(OSSL_PARAM params[], const char *name, size_t value)
{
	OSSL_PARAM *p = OSSL_PARAM_locate(params, name);

	return p == NULL || OSSL_PARAM_set_size_t(p, value);
}

/* A part that is not there is not an error: its parameter stays unset. */
static int
get_bytes(OSSL_PARAM params[], const char *name, const uint8_t *bytes, size_t len)
{
	OSSL_PARAM *p = OSSL_PARAM_locate(params, name);

	return p == NULL || bytes == NULL || OSSL_PARAM_set_octet_string(p, bytes, len);
}

static int
keymgmt_get_params(void *keydata, OSSL_PARAM params[])
{
	const struct keydata *key = keydata;
	const struct alg *alg = key->alg;
	const uint8_t *share = key->has_share ? key->share : NULL;
	OSSL_PARAM *p = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_GROUP_NAME);

	if (p != NULL && !OSSL_PARAM_set_utf8_string(p, alg->group))
		return 0;
	return get_number(params, OSSL_PKEY_PARAM_BITS, alg->bits) &&
	       get_number(params, OSSL_PKEY_PARAM_SECURITY_BITS, alg->security_bits) &&
	       get_number(params, PARAM_CATEGORY, alg->category) &&
	       get_number(params, OSSL_PKEY_PARAM_MAX_SIZE, alg->ciphertext) &&
	       get_bytes(
		   params, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, share, alg->share) &&
	       get_bytes(params, OSSL_PKEY_PARAM_PUB_KEY, share, alg->share) &&
	       get_bytes(
		   params, OSSL_PKEY_PARAM_PRIV_KEY, key->expanded, alg->expanded) &&
	       get_bytes(params, PARAM_SEED, key->seed, alg->seed);
}

static const OSSL_PARAM settable[] = {
    OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
    OSSL_PARAM_END,
};

static const OSSL_PARAM *
keymgmt_settable_params(void *provctx)
{
	return settable;
}

/* How the server's libssl brings the share of the client in. */
static int
keymgmt_set_params(void *keydata, const OSSL_PARAM params[])
{
	struct keydata *key = keydata;
	const OSSL_PARAM *p =
	    OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY);

	if (p == NULL)
		return 1;
	if (p->data_type != OSSL_PARAM_OCTET_STRING || p->data == NULL) {
		raise_error(key->provider, REASON_NULL, NULL);
		return 0;
	}
	return keydata_set_share(key, p->data, p->data_size);
}

/* The core does not say for which algorithm it calls: each has two of its own. */
static OSSL_FUNC_keymgmt_new_fn new_mlkem512, new_mlkem768, new_mlkem1024, new_hybrid;
static OSSL_FUNC_keymgmt_gen_init_fn gen_init_mlkem512, gen_init_mlkem768,
    gen_init_mlkem1024, gen_init_hybrid;

static void *
new_mlkem512(void *provctx)
{
	return keydata_new(provctx, &algs[ALG_MLKEM512]);
}

static void *
new_mlkem768(void *provctx)
{
	return keydata_new(provctx, &algs[ALG_MLKEM768]);
}

static void *
new_mlkem1024(void *provctx)
{
	return keydata_new(provctx, &algs[ALG_MLKEM1024]);
}

static void *
new_hybrid(void *provctx)
{
	return keydata_new(provctx, &algs[ALG_X25519MLKEM768]);
}

static void *
gen_init_mlkem512(void *provctx, int selection, const OSSL_PARAM params[])
{
	return gen_init_for(provctx, &algs[ALG_MLKEM512], selection, params);
}

static void *
gen_init_mlkem768(void *provctx, int selection, const OSSL_PARAM params[])
{
	return gen_init_for(provctx, &algs[ALG_MLKEM768], selection, params);
}

static void *
gen_init_mlkem1024(void *provctx, int selection, const OSSL_PARAM params[])
{
	return gen_init_for(provctx, &algs[ALG_MLKEM1024], selection, params);
}

static void *
gen_init_hybrid(void *provctx, int selection, const OSSL_PARAM params[])
{
	return gen_init_for(provctx, &algs[ALG_X25519MLKEM768], selection, params);
}

#define FUNCTION(id, function)                       \
 {                                                   \
  OSSL_FUNC_KEYMGMT_##id, (void (*)(void))(function) \
 }
#define KEYMGMT_FUNCTIONS(new, gen_init)                                              \
 {                                                                                    \
  FUNCTION(NEW, new), FUNCTION(GEN_INIT, gen_init), FUNCTION(FREE, keymgmt_free),     \
      FUNCTION(LOAD, keymgmt_load), FUNCTION(GEN, gen_run),                           \
      FUNCTION(GEN_CLEANUP, gen_cleanup), FUNCTION(GEN_SET_PARAMS, gen_set_params),   \
      FUNCTION(GEN_SETTABLE_PARAMS, gen_settable_params),                             \
      FUNCTION(GET_PARAMS, keymgmt_get_params),                                       \
      FUNCTION(GETTABLE_PARAMS, keymgmt_gettable_params),                             \
      FUNCTION(SET_PARAMS, keymgmt_set_params),                                       \
      FUNCTION(SETTABLE_PARAMS, keymgmt_settable_params), FUNCTION(HAS, keymgmt_has), \
      FUNCTION(MATCH, keymgmt_match), FUNCTION(VALIDATE, keymgmt_validate),           \
      FUNCTION(DUP, keymgmt_dup), FUNCTION(IMPORT, key_import),                       \
      FUNCTION(IMPORT_TYPES, key_import_types), FUNCTION(EXPORT, key_export),         \
      FUNCTION(EXPORT_TYPES, key_export_types),                                       \
  {                                                                                   \
   0, NULL                                                                            \
  }                                                                                   \
 }

static const OSSL_DISPATCH mlkem512[] =
    KEYMGMT_FUNCTIONS(new_mlkem512, gen_init_mlkem512);
static const OSSL_DISPATCH mlkem768[] =
    KEYMGMT_FUNCTIONS(new_mlkem768, gen_init_mlkem768);
static const OSSL_DISPATCH mlkem1024[] =
    KEYMGMT_FUNCTIONS(new_mlkem1024, gen_init_mlkem1024);
static const OSSL_DISPATCH hybrid[] = KEYMGMT_FUNCTIONS(new_hybrid, gen_init_hybrid);

const OSSL_DISPATCH *const keymgmt_functions[N_ALGS] = {
    [ALG_MLKEM512] = mlkem512,
    [ALG_MLKEM768] = mlkem768,
    [ALG_MLKEM1024] = mlkem1024,
    [ALG_X25519MLKEM768] = hybrid,
};
