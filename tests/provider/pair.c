/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"

#include <openssl/rand.h>

struct host host;
const struct alg *alg;
uint8_t pub[MLKEMCLIENT_MAX_SHARE + 1], priv[MLKEMCLIENT_MAX_PRIVATE_KEY + 1];
uint8_t seed[96 + 1];

void
pair_setup(int i)
{
	alg = &algs[i];
	host_open(&host, settings("/nonexistent/mlkemd.sock", "local", NULL));
}

void
pair_teardown(void)
{
	host_close(&host);
}

EVP_PKEY *
try_import(bool with_pub, bool with_priv, bool with_seed)
{
	struct parts parts = {with_pub ? pub : NULL, with_priv ? priv : NULL,
	    with_seed ? seed : NULL, alg->share, alg->expanded, alg->seed};

	return pkey_try_import(&host, alg, &parts,
	    with_priv || with_seed ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY);
}

EVP_PKEY *
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
