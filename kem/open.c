/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* kem_open() and what needs no algorithm: randomness, ephemerals, wiping, comparing. */
#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>

#include "arch/backend.h"
#include "arch/dispatch.h"
#include "context.h"
#include "ct.h"
#include "internal.h"
#include "x25519.h"

static int
context_fetch(struct kem *kem)
{
	kem->libctx = OSSL_LIB_CTX_new();
	if (!kem->libctx)
		return KEM_FAIL_OPENSSL;
	kem->provider = OSSL_PROVIDER_load(kem->libctx, "default");
	if (!kem->provider)
		return KEM_FAIL_OPENSSL;
	kem->x25519 = EVP_KEYMGMT_fetch(kem->libctx, "X25519", NULL);
	kem->x25519_exchange = EVP_KEYEXCH_fetch(kem->libctx, "X25519", NULL);
	kem->sha256 = EVP_MD_fetch(kem->libctx, "SHA256", NULL);
	kem->sha384 = EVP_MD_fetch(kem->libctx, "SHA384", NULL);
	kem->hkdf = EVP_KDF_fetch(kem->libctx, "HKDF", NULL);
	if (!kem->x25519 || !kem->x25519_exchange || !kem->sha256 || !kem->sha384 ||
	    !kem->hkdf)
		return KEM_FAIL_OPENSSL;
	kem->random = random_source_new(kem->libctx, kem->sha256);
	return kem->random ? 0 : KEM_FAIL_OPENSSL;
}

int
kem_open_with(struct kem **kemp, const struct backend *backend)
{
	struct kem *kem = calloc(1, sizeof(*kem));
	int r;

	*kemp = NULL;
	if (!kem)
		return KEM_FAIL_OPENSSL;
	kem->backend = backend;
	ERR_set_mark();
	r = context_fetch(kem);
	ERR_pop_to_mark();
	if (r < 0)
		kem = kem_free(kem);
	*kemp = kem;
	return r;
}

int
kem_open(struct kem **kemp, const char *name)
{
	const struct backend *backend;
	int r;

	*kemp = NULL;
	r = backend_choose(name, &backend);
	if (r < 0)
		return r;
	return kem_open_with(kemp, backend);
}

struct kem *
kem_free(struct kem *kem)
{
	if (!kem)
		return NULL;
	random_source_free(kem->random);
	EVP_KDF_free(kem->hkdf);
	EVP_MD_free(kem->sha384);
	EVP_MD_free(kem->sha256);
	EVP_KEYEXCH_free(kem->x25519_exchange);
	EVP_KEYMGMT_free(kem->x25519);
	if (kem->provider)
		OSSL_PROVIDER_unload(kem->provider);
	OSSL_LIB_CTX_free(kem->libctx);
	free(kem);
	return NULL;
}

const struct backend *
kem_backend(const struct kem *kem)
{
	return kem->backend;
}

const char *
kem_backend_name(const struct kem *kem)
{
	return kem->backend->name;
}

const char *
kem_backend_known(unsigned n)
{
	const struct backend *backend = backend_number(n);

	return backend ? backend->name : NULL;
}

unsigned
kem_backend_lanes(const struct kem *kem)
{
	return kem->backend->lanes;
}

unsigned
kem_x25519_lanes(const struct kem *kem)
{
	return kem->backend->x25519_shared8 ? X25519_LANES : 1;
}

int
kem_random(const struct kem *kem, uint8_t *out, size_t len)
{
	return random_fill(kem->random, out, len);
}

/*
 * The pairs are drawn whole, so that the private keys land where they stay and no copy
 * needs a wipe; the second half of each draw is overwritten by the public key.
 */
int
kem_x25519_keygen(const struct kem *kem, struct kem_x25519 *pairs, size_t n,
    struct kem_scratch *scratch)
{
	struct x25519_public_item items[KEM_GROUP_MAX];
	size_t n_group;
	int r = 0;

	for (size_t first = 0; r == 0 && first < n; first += n_group) {
		n_group = n - first < KEM_GROUP_MAX ? n - first : KEM_GROUP_MAX;
		for (size_t i = 0; i < n_group; i++) {
			items[i].private_key = pairs[first + i].private_key;
			items[i].public_key = pairs[first + i].public_key;
		}
		r = random_fill(
		    kem->random, (uint8_t *)&pairs[first], n_group * sizeof(pairs[0]));
		if (r == 0)
			r = x25519_public(kem, items, n_group, scratch);
	}
	if (r < 0)
		kem_wipe(pairs, n * sizeof(pairs[0]));
	return r;
}

void
kem_wipe(void *p, size_t len)
{
	ct_wipe(p, len);
}

int
kem_compare(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) != 0;
}
