/* SPDX-License-Identifier: Apache-2.0 */
/* KEM: encapsulation and decapsulation: provider-kem(7). */
#include <openssl/crypto.h>
#include <openssl/params.h>

#include "kem/fault.h"
#include "keydata.h"
#include "provider.h"

static OSSL_FUNC_kem_newctx_fn kem_newctx;
static OSSL_FUNC_kem_freectx_fn kem_freectx;
static OSSL_FUNC_kem_dupctx_fn kem_dupctx;
static OSSL_FUNC_kem_encapsulate_init_fn kem_encapsulate_init;
static OSSL_FUNC_kem_encapsulate_fn kem_encapsulate;
static OSSL_FUNC_kem_decapsulate_init_fn kem_decapsulate_init;
static OSSL_FUNC_kem_decapsulate_fn kem_decapsulate;

/* The key is the EVP_PKEY's, which outlives us: the EVP_PKEY_CTX holds both. */
struct kem_ctx {
	struct provider *provider;
	const struct keydata *key;
	enum { KEM_NONE, KEM_ENCAPSULATE, KEM_DECAPSULATE } op;
};

static void *
kem_newctx(void *provctx)
{
	struct kem_ctx *ctx = OPENSSL_zalloc(sizeof(*ctx));

	if (ctx != NULL)
		ctx->provider = provctx;
	return ctx;
}

static void
kem_freectx(void *ctx)
{
	OPENSSL_free(ctx);
}

static void *
kem_dupctx(void *vctx)
{
	return OPENSSL_memdup(vctx, sizeof(struct kem_ctx));
}

static int
kem_encapsulate_init(void *vctx, void *keydata, const OSSL_PARAM params[])
{
	struct kem_ctx *ctx = vctx;
	const struct keydata *key = keydata;

	ctx->op = KEM_NONE;
	if (key == NULL || !key->has_share) {
		raise_error(ctx->provider, REASON_NO_PUBLIC, NULL);
		return 0;
	}
	ctx->key = key;
	ctx->op = KEM_ENCAPSULATE;
	return 1;
}

static int
kem_decapsulate_init(void *vctx, void *keydata, const OSSL_PARAM params[])
{
	struct kem_ctx *ctx = vctx;
	const struct keydata *key = keydata;

	ctx->op = KEM_NONE;
	if (key == NULL || !keydata_has_private(key)) {
		raise_error(ctx->provider, REASON_NO_PRIVATE, NULL);
		return 0;
	}
	ctx->key = key;
	ctx->op = KEM_DECAPSULATE;
	return 1;
}

static int
kem_is_begun(const struct kem_ctx *ctx, int op)
{
	if ((int)ctx->op == op)
		return 1;
	raise_error(ctx->provider, REASON_NOT_INIT, NULL);
	return 0;
}

/* Without a length nobody knows how much may be written: that is an error too. */
static int
kem_has_room(const struct kem_ctx *ctx, const char *what, const void *p, size_t *lenp,
    size_t need)
{
	if (p == NULL || lenp == NULL) {
		raise_error(
		    ctx->provider, REASON_NULL, "%s%s", what, p ? ": its length" : "");
		return 0;
	}
	if (*lenp >= need || fault("provider-short-buffers"))
		return 1;
	raise_error(ctx->provider, REASON_BUFFER, "%s: %zu bytes, where %zu are needed",
	    what, *lenp, need);
	return 0;
}

static int
kem_encapsulate(void *vctx, unsigned char *out, size_t *outlen, unsigned char *secret,
    size_t *secretlen)
{
	const struct kem_ctx *ctx = vctx;
	const struct alg *alg;

	if (!kem_is_begun(ctx, KEM_ENCAPSULATE))
		return 0;
	alg = ctx->key->alg;
	if (out == NULL) {
		if (outlen == NULL && secretlen == NULL) {
			raise_error(ctx->provider, REASON_NULL, NULL);
			return 0;
		}
	} else if (!kem_has_room(ctx, "ciphertext", out, outlen, alg->ciphertext) ||
		   !kem_has_room(ctx, "secret", secret, secretlen, alg->secret) ||
		   exchange_encaps(ctx->provider, ctx->key, out, secret) != 0) {
		return 0;
	}
	if (outlen != NULL)
		*outlen = alg->ciphertext;
	if (secretlen != NULL)
		*secretlen = alg->secret;
	return 1;
}

static int
kem_decapsulate(void *vctx, unsigned char *out, size_t *outlen, const unsigned char *in,
    size_t inlen)
{
	const struct kem_ctx *ctx = vctx;
	const struct alg *alg;

	if (!kem_is_begun(ctx, KEM_DECAPSULATE))
		return 0;
	alg = ctx->key->alg;
	if (out == NULL) {
		if (outlen == NULL) {
			raise_error(ctx->provider, REASON_NULL, NULL);
			return 0;
		}
		*outlen = alg->secret;
		return 1;
	}
	if (!kem_has_room(ctx, "secret", out, outlen, alg->secret))
		return 0;
	if (in == NULL) {
		raise_error(ctx->provider, REASON_NULL, "ciphertext");
		return 0;
	}
	if (exchange_decaps(ctx->provider, ctx->key, in, inlen, out) != 0)
		return 0;
	*outlen = alg->secret;
	return 1;
}

#define FUNCTION(id, function)                   \
 {                                               \
  OSSL_FUNC_KEM_##id, (void (*)(void))(function) \
 }

const OSSL_DISPATCH kem_functions[] = {
    FUNCTION(NEWCTX, kem_newctx),
    FUNCTION(FREECTX, kem_freectx),
    FUNCTION(DUPCTX, kem_dupctx),
    FUNCTION(ENCAPSULATE_INIT, kem_encapsulate_init),
    FUNCTION(ENCAPSULATE, kem_encapsulate),
    FUNCTION(DECAPSULATE_INIT, kem_decapsulate_init),
    FUNCTION(DECAPSULATE, kem_decapsulate),
    {0, NULL},
};
