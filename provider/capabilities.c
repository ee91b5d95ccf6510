/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS groups, as libssl wants them told: provider-base(7), "TLS-GROUP". */
#include <strings.h>

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/prov_ssl.h>

#include "provider.h"

#define GROUP_PARAMS 10

/*
 * A KEM group exists in TLS 1.3 alone (RFC 10024 section 1); max 0 says "no end", -1
 * "never": there is no DTLS 1.3 in any OpenSSL 3.
 */
static int
group_tell(const struct alg *alg, OSSL_CALLBACK *tell, void *arg)
{
	unsigned id = (unsigned)alg->id, security_bits = alg->security_bits, is_kem = 1;
	int min_tls = TLS1_3_VERSION, max_tls = 0, min_dtls = -1, max_dtls = -1;
	char *group = (char *)alg->group, *name = (char *)alg->name;
	OSSL_PARAM params[GROUP_PARAMS + 1], *p = params;

	*p++ =
	    OSSL_PARAM_construct_utf8_string(OSSL_CAPABILITY_TLS_GROUP_NAME, group, 0);
	*p++ = OSSL_PARAM_construct_utf8_string(
	    OSSL_CAPABILITY_TLS_GROUP_NAME_INTERNAL, group, 0);
	*p++ = OSSL_PARAM_construct_utf8_string(OSSL_CAPABILITY_TLS_GROUP_ALG, name, 0);
	*p++ = OSSL_PARAM_construct_uint(OSSL_CAPABILITY_TLS_GROUP_ID, &id);
	*p++ = OSSL_PARAM_construct_uint(
	    OSSL_CAPABILITY_TLS_GROUP_SECURITY_BITS, &security_bits);
	*p++ = OSSL_PARAM_construct_uint(OSSL_CAPABILITY_TLS_GROUP_IS_KEM, &is_kem);
	*p++ = OSSL_PARAM_construct_int(OSSL_CAPABILITY_TLS_GROUP_MIN_TLS, &min_tls);
	*p++ = OSSL_PARAM_construct_int(OSSL_CAPABILITY_TLS_GROUP_MAX_TLS, &max_tls);
	*p++ = OSSL_PARAM_construct_int(OSSL_CAPABILITY_TLS_GROUP_MIN_DTLS, &min_dtls);
	*p++ = OSSL_PARAM_construct_int(OSSL_CAPABILITY_TLS_GROUP_MAX_DTLS, &max_dtls);
	*p = OSSL_PARAM_construct_end();
	return tell(params, arg);
}

int
provider_get_capabilities(
    void *provctx, const char *capability, OSSL_CALLBACK *tell, void *arg)
{
	static const int order[N_ALGS] = {
	    ALG_X25519MLKEM768, ALG_MLKEM768, ALG_MLKEM1024, ALG_MLKEM512};
	const struct provider *provider = provctx;

	if (strcasecmp(capability, "TLS-GROUP") != 0)
		return 0;
	/*
	 * Where libssl has these groups of its own, two of a kind would be there. None
	 * is a good answer: an SSL_CTX of OpenSSL 3.5 can't be made if this fails.
	 */
	for (int i = 0; i < N_ALGS && provider->offers_groups; i++)
		if (!group_tell(&algs[order[i]], tell, arg))
			return 0;
	return 1;
}
