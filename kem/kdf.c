/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* HKDF is OpenSSL's: fetched by kem_open(), one context a call, which OpenSSL wipes. */
#include <assert.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "context.h"
#include "wipe.h"

static OSSL_PARAM
octets(const char *name, const uint8_t *data, size_t len)
{
	return OSSL_PARAM_construct_octet_string(name, (void *)(uintptr_t)data, len);
}

/* params has room for all that HKDF takes. What is empty is left out (RFC 5869 2.2). */
static void
params_fill(OSSL_PARAM *params, enum kem_hash hash, const uint8_t *ikm, size_t ikm_len,
    const uint8_t *salt, size_t salt_len, const uint8_t *info, size_t info_len)
{
	const char *digest = hash == KEM_HASH_SHA384 ? "SHA384" : "SHA256";

	*params++ = OSSL_PARAM_construct_utf8_string(
	    OSSL_KDF_PARAM_DIGEST, (char *)(uintptr_t)digest, 0);
	*params++ = octets(OSSL_KDF_PARAM_KEY, ikm, ikm_len);
	if (salt_len > 0)
		*params++ = octets(OSSL_KDF_PARAM_SALT, salt, salt_len);
	if (info_len > 0)
		*params++ = octets(OSSL_KDF_PARAM_INFO, info, info_len);
	*params = OSSL_PARAM_construct_end();
}

int
kem_hkdf(const struct kem *kem, enum kem_hash hash, const uint8_t *ikm, size_t ikm_len,
    const uint8_t *salt, size_t salt_len, const uint8_t *info, size_t info_len,
    uint8_t *out, size_t out_len)
{
	OSSL_PARAM params[5];
	EVP_KDF_CTX *ctx;
	int r = KEM_FAIL_OPENSSL;

	assert(ikm_len >= 1 && info_len <= KEM_HKDF_MAX_INFO);
	assert(out_len >= 1 && out_len <= KEM_HKDF_MAX(hash));
	params_fill(params, hash, ikm, ikm_len, salt, salt_len, info, info_len);
	ERR_set_mark();
	ctx = EVP_KDF_CTX_new(kem->hkdf);
	if (ctx && EVP_KDF_derive(ctx, out, out_len, params) == 1)
		r = 0;
	EVP_KDF_CTX_free(ctx);
	ERR_pop_to_mark();
	libcrypto_stack_wipe();
	if (r < 0)
		kem_wipe(out, out_len);
	return r;
}
