/* SPDX-License-Identifier: Apache-2.0 */
#include "keydata.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include "kem/fault.h"
#include "provider.h"

struct keydata *
keydata_new(struct provider *provider, const struct alg *alg)
{
	struct keydata *key = OPENSSL_zalloc(sizeof(*key));

	if (key == NULL) {
		raise_error(provider, ERR_R_MALLOC_FAILURE, NULL);
		return NULL;
	}
	key->provider = provider;
	key->alg = alg;
	return key;
}

uint8_t *
private_alloc(const struct provider *provider, size_t len)
{
	uint8_t *p = OPENSSL_secure_zalloc(len);

	if (p == NULL)
		raise_error(provider, ERR_R_MALLOC_FAILURE, NULL);
	return p;
}

void
private_free(uint8_t *p, size_t len)
{
	OPENSSL_secure_clear_free(p, len);
}

static void
keydata_drop_private(struct keydata *key)
{
	private_free(key->expanded, key->alg->expanded);
	private_free(key->seed, key->alg->seed);
	key->expanded = key->seed = NULL;
}

void
keydata_free(struct keydata *key)
{
	if (key == NULL)
		return;
	mlkemclient_key_free(key->provider->exchange.tls, key->one_time);
	keydata_drop_private(key);
	OPENSSL_free(key);
}

bool
keydata_has_private(const struct keydata *key)
{
	return key->one_time != NULL || key->expanded != NULL || key->seed != NULL;
}

const uint8_t *
keydata_private(const struct keydata *key, size_t *lenp)
{
	*lenp = key->expanded != NULL ? key->alg->expanded : key->alg->seed;
	return key->expanded != NULL ? key->expanded : key->seed;
}

static int
keydata_is_empty(const struct keydata *key)
{
	if (!key->has_share && !keydata_has_private(key))
		return 1;
	raise_error(key->provider, REASON_IMMUTABLE, NULL);
	return 0;
}

static int
length_is(const struct keydata *key, const char *what, size_t len, size_t right)
{
	if (len == right)
		return 1;
	raise_error(key->provider, REASON_CLIENT - MLKEMCLIENT_E_LENGTH,
	    "a %s of %s has %zu bytes, not %zu", what, key->alg->name, right, len);
	return 0;
}

static int
share_is_right(const struct keydata *key, const uint8_t *share, size_t share_len)
{
	if (!length_is(key, "public key", share_len, key->alg->share))
		return 0;
	if (alg_share_is_reduced(key->alg, share))
		return 1;
	raise_error(key->provider, REASON_CLIENT - MLKEMCLIENT_E_BAD_SHARE, NULL);
	return 0;
}

int
keydata_set_share(struct keydata *key, const uint8_t *share, size_t share_len)
{
	if (!keydata_is_empty(key) || !share_is_right(key, share, share_len))
		return 0;
	memcpy(key->share, share, share_len);
	key->has_share = true;
	return 1;
}

static int
private_set(
    struct keydata *key, uint8_t **p, const uint8_t *bytes, size_t len, size_t right)
{
	if (bytes == NULL)
		return 1;
	if (!length_is(key, "private key", len, right))
		return 0;
	*p = private_alloc(key->provider, len);
	if (*p == NULL)
		return 0;
	memcpy(*p, bytes, len);
	return 1;
}

static int
private_is_right(struct keydata *key, const uint8_t *share, size_t share_len)
{
	size_t len;
	const uint8_t *p = keydata_private(key, &len);

	if (exchange_share_of(key->provider, key->alg, p, len, key->share) != 0 ||
	    !share_is_right(key, key->share, key->alg->share))
		return 0;
	if (share != NULL && (share_len != key->alg->share ||
				 memcmp(share, key->share, share_len) != 0)) {
		raise_error(key->provider, REASON_MISMATCH,
		    "the public key is not that of the private key");
		return 0;
	}
	return 1;
}

/*
 * A key that came as a seed has the expanded form too, as those of OpenSSL 3.5 do:
 * others may know only that one, and it decapsulates faster. If both came they have to
 * be one key.
 */
static int
private_complete(struct keydata *key)
{
	uint8_t *expanded;
	int agrees;

	if (key->seed == NULL || fault("provider-seed-alone"))
		return 1;
	expanded = private_alloc(key->provider, key->alg->expanded);
	if (expanded == NULL)
		return 0;
	if (exchange_expand(key->provider, key->alg, key->seed, expanded) != 0) {
		private_free(expanded, key->alg->expanded);
		return 0;
	}
	if (key->expanded == NULL) {
		key->expanded = expanded;
		return 1;
	}
	agrees = CRYPTO_memcmp(expanded, key->expanded, key->alg->expanded) == 0 ||
		 fault("provider-no-form-check");
	private_free(expanded, key->alg->expanded);
	if (!agrees)
		raise_error(key->provider, REASON_MISMATCH,
		    "the seed is not that of the expanded private key");
	return agrees;
}

int
keydata_set_private(struct keydata *key, const uint8_t *expanded, size_t expanded_len,
    const uint8_t *seed, size_t seed_len, const uint8_t *share, size_t share_len)
{
	const struct alg *alg = key->alg;

	if (!keydata_is_empty(key))
		return 0;
	if (private_set(key, &key->expanded, expanded, expanded_len, alg->expanded) &&
	    private_set(key, &key->seed, seed, seed_len, alg->seed) &&
	    private_is_right(key, share, share_len) && private_complete(key)) {
		key->has_share = true;
		return 1;
	}
	keydata_drop_private(key);
	memset(key->share, 0, sizeof(key->share));
	return 0;
}

static int
form_agrees(const struct keydata *key, const uint8_t *private_key,
    size_t private_key_len, const uint8_t *ct, const uint8_t *sent)
{
	uint8_t got[MLKEMCLIENT_MAX_SECRET];
	int agrees;

	if (private_key == NULL)
		return 1;
	agrees = exchange_decaps_with(key->provider, key->alg, private_key,
		     private_key_len, ct, key->alg->ciphertext, got) == 0 &&
		 CRYPTO_memcmp(got, sent, key->alg->secret) == 0;
	OPENSSL_cleanse(got, sizeof(got));
	return agrees;
}

int
keydata_check_pairwise(const struct keydata *key)
{
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT], sent[MLKEMCLIENT_MAX_SECRET];
	int agrees = exchange_encaps_own(key->provider, key, ct, sent) == 0;

	if (agrees && key->one_time == NULL)
		agrees =
		    form_agrees(key, key->expanded, key->alg->expanded, ct, sent) &&
		    form_agrees(key, key->seed, key->alg->seed, ct, sent);
	OPENSSL_cleanse(sent, sizeof(sent));
	return agrees;
}

static int
private_copy(struct keydata *copy, uint8_t **p, const uint8_t *bytes, size_t len)
{
	return private_set(copy, p, bytes, len, len);
}

struct keydata *
keydata_copy(const struct keydata *key, bool with_private)
{
	struct keydata *copy;

	if (with_private && key->one_time != NULL) {
		raise_error(key->provider, REASON_ONE_TIME, NULL);
		return NULL;
	}
	copy = keydata_new(key->provider, key->alg);
	if (copy == NULL)
		return NULL;
	if (with_private &&
	    (!private_copy(copy, &copy->expanded, key->expanded, key->alg->expanded) ||
		!private_copy(copy, &copy->seed, key->seed, key->alg->seed))) {
		keydata_free(copy);
		return NULL;
	}
	copy->has_share = key->has_share;
	memcpy(copy->share, key->share, sizeof(copy->share));
	return copy;
}
