/* SPDX-License-Identifier: Apache-2.0 */
/* KEYMGMT: key generation, and the "parameter generation" of a TLS server. */
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>

#include "kem/fault.h"
#include "keydata.h"
#include "provider.h"

#define PARAM_SEED "seed"

/*
 * A TLS group was named: the key is made for one handshake and lives where the route
 * says. Else it may live long, and is ours.
 */
struct gen {
	struct provider *provider;
	const struct alg *alg;
	int selection;
	bool for_tls;
	uint8_t *seed;
};

void *
gen_init_for(struct provider *provider, const struct alg *alg, int selection,
    const OSSL_PARAM params[])
{
	struct gen *gen = OPENSSL_zalloc(sizeof(*gen));

	if (gen == NULL)
		return NULL;
	gen->provider = provider;
	gen->alg = alg;
	gen->selection = selection;
	if (!gen_set_params(gen, params)) {
		gen_cleanup(gen);
		return NULL;
	}
	return gen;
}

void
gen_cleanup(void *genctx)
{
	struct gen *gen = genctx;

	if (gen == NULL)
		return;
	private_free(gen->seed, gen->alg->seed);
	OPENSSL_free(gen);
}

const OSSL_PARAM *
gen_settable_params(void *genctx, void *provctx)
{
	static const OSSL_PARAM settable[] = {
	    OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
	    OSSL_PARAM_octet_string(PARAM_SEED, NULL, 0),
	    OSSL_PARAM_END,
	};

	return settable;
}

/* OpenSSL 3.5 leaves the name that its own entry of the group has for us empty. */
static int
gen_set_group(struct gen *gen, const OSSL_PARAM *p)
{
	if (p->data_type != OSSL_PARAM_UTF8_STRING || p->data == NULL) {
		raise_error(gen->provider, REASON_NULL, NULL);
		return 0;
	}
	if (((const char *)p->data)[0] != '\0' && !alg_has_name(gen->alg, p->data)) {
		raise_error(gen->provider, REASON_GROUP, "%.40s is not a group of %s",
		    (const char *)p->data, gen->alg->name);
		return 0;
	}
	gen->for_tls = true;
	return 1;
}

static int
gen_set_seed(struct gen *gen, const OSSL_PARAM *p)
{
	if (p->data_type != OSSL_PARAM_OCTET_STRING || p->data == NULL ||
	    p->data_size != gen->alg->seed) {
		raise_error(gen->provider, REASON_CLIENT - MLKEMCLIENT_E_LENGTH,
		    "a seed of %s has %zu bytes", gen->alg->name, gen->alg->seed);
		return 0;
	}
	private_free(gen->seed, gen->alg->seed);
	gen->seed = private_alloc(gen->provider, p->data_size);
	if (gen->seed == NULL)
		return 0;
	memcpy(gen->seed, p->data, p->data_size);
	return 1;
}

int
gen_set_params(void *genctx, const OSSL_PARAM params[])
{
	struct gen *gen = genctx;
	const OSSL_PARAM *p;

	if (params == NULL)
		return 1;
	p = OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_GROUP_NAME);
	if (p != NULL && !gen_set_group(gen, p))
		return 0;
	p = OSSL_PARAM_locate_const(params, PARAM_SEED);
	return p == NULL || gen_set_seed(gen, p);
}

static int
generate(const struct gen *gen, struct keydata *key)
{
	if (gen->seed != NULL)
		return keydata_set_private(
		    key, NULL, 0, gen->seed, gen->alg->seed, NULL, 0);
	if (gen->for_tls) {
		if (exchange_keygen_one_time(gen->provider, key) != 0)
			return 0;
	} else {
		key->expanded = private_alloc(gen->provider, gen->alg->expanded);
		if (key->expanded == NULL ||
		    exchange_keygen_own(gen->provider, key) != 0)
			return 0;
	}
	key->has_share = true;
	return 1;
}

/*
 * A server asks for "parameters", to set the client's share in them: it gets an empty
 * key, for which nothing is computed.
 */
void *
gen_run(void *genctx, OSSL_CALLBACK *progress, void *arg)
{
	const struct gen *gen = genctx;
	struct keydata *key = keydata_new(gen->provider, gen->alg);

	if (key == NULL || ((gen->selection & OSSL_KEYMGMT_SELECT_KEYPAIR) == 0 &&
			       !fault("provider-work-for-parameters")))
		return key;
	if (generate(gen, key))
		return key;
	keydata_free(key);
	return NULL;
}
