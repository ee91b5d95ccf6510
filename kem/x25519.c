/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "x25519.h"

#include <assert.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include "arch/backend.h"
#include "context.h"
#include "wipe.h"

#define X25519_BYTES 32

/* A stand-in for a public half that is not known, the base point. */
static const uint8_t base_point[X25519_BYTES] = {9};

/*
 * Both halves are given where a private key is loaded: without the public one OpenSSL
 * would compute it (25 us), and the derivation never looks at it.
 */
static EVP_PKEY *
pkey_load(EVP_PKEY_CTX *loader, const uint8_t *private_key, const uint8_t *public_key)
{
	OSSL_PARAM params[3], *p = params;
	EVP_PKEY *pkey = NULL;

	if (private_key)
		*p++ = OSSL_PARAM_construct_octet_string(
		    OSSL_PKEY_PARAM_PRIV_KEY, (void *)private_key, X25519_BYTES);
	if (public_key)
		*p++ = OSSL_PARAM_construct_octet_string(
		    OSSL_PKEY_PARAM_PUB_KEY, (void *)public_key, X25519_BYTES);
	*p = OSSL_PARAM_construct_end();
	if (EVP_PKEY_fromdata(loader, &pkey,
		private_key ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, params) != 1) {
		EVP_PKEY_free(pkey);
		return NULL;
	}
	return pkey;
}

static EVP_PKEY_CTX *
loader_new(const struct kem *kem)
{
	EVP_PKEY_CTX *loader = EVP_PKEY_CTX_new_from_name(kem->libctx, "X25519", NULL);

	if (!loader)
		return NULL;
	if (EVP_PKEY_fromdata_init(loader) != 1) {
		EVP_PKEY_CTX_free(loader);
		return NULL;
	}
	return loader;
}

static int
public_one(EVP_PKEY_CTX *loader, const uint8_t *private_key, uint8_t *public_key)
{
	EVP_PKEY *pkey = pkey_load(loader, private_key, NULL);
	size_t len = 0;
	int r = KEM_FAIL_OPENSSL;

	if (!pkey)
		return r;
	if (EVP_PKEY_get_octet_string_param(
		pkey, OSSL_PKEY_PARAM_PUB_KEY, public_key, X25519_BYTES, &len) == 1 &&
	    len == X25519_BYTES)
		r = 0;
	EVP_PKEY_free(pkey);
	return r;
}

static int
openssl_public(const struct kem *kem, struct x25519_public_item *items, size_t n)
{
	EVP_PKEY_CTX *loader;
	int r;

	ERR_set_mark();
	loader = loader_new(kem);
	r = loader ? 0 : KEM_FAIL_OPENSSL;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = public_one(loader, items[i].private_key, items[i].public_key);
	EVP_PKEY_CTX_free(loader);
	ERR_pop_to_mark();
	return r;
}

/*
 * OpenSSL answers an all-zero result with a failed derivation, after it has written the
 * result. It is told from any other failure by the output itself, which was not zero.
 */
static int
derive_result(int derived, size_t len, const uint8_t *shared, bool *is_zerop)
{
	uint8_t sum = 0;

	for (size_t i = 0; i < X25519_BYTES; i++)
		sum |= shared[i];
	*is_zerop = sum == 0;
	if (sum == 0 || (derived == 1 && len == X25519_BYTES))
		return 0;
	return KEM_FAIL_OPENSSL;
}

static int
shared_one(const struct kem *kem, EVP_PKEY_CTX *loader, struct x25519_item *item)
{
	EVP_PKEY *own, *peer = NULL;
	EVP_PKEY_CTX *ctx = NULL;
	size_t len = X25519_BYTES;
	int r = KEM_FAIL_OPENSSL;

	own = pkey_load(loader, item->private_key,
	    item->public_key ? item->public_key : base_point);
	if (!own)
		goto out;
	peer = pkey_load(loader, NULL, item->peer);
	if (!peer)
		goto out;
	ctx = EVP_PKEY_CTX_new_from_pkey(kem->libctx, own, NULL);
	if (!ctx || EVP_PKEY_derive_init(ctx) != 1)
		goto out;
	if (EVP_PKEY_derive_set_peer_ex(ctx, peer, 0) != 1)
		goto out;
	memset(item->shared, 0xff, X25519_BYTES);
	r = EVP_PKEY_derive(ctx, item->shared, &len);
	r = derive_result(r, len, item->shared, &item->is_zero);
out:
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(peer);
	EVP_PKEY_free(own);
	return r;
}

static int
openssl_shared(const struct kem *kem, struct x25519_item *items, size_t n)
{
	EVP_PKEY_CTX *loader;
	int r;

	ERR_set_mark();
	loader = loader_new(kem);
	r = loader ? 0 : KEM_FAIL_OPENSSL;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = shared_one(kem, loader, &items[i]);
	EVP_PKEY_CTX_free(loader);
	ERR_pop_to_mark();
	return r;
}

/* One call of the kernels: lanes that no item fills work on item 0 and waste it. */
struct lanes {
	_Alignas(64) uint8_t work[X25519_WORK_BYTES];
	uint8_t waste[X25519_LANES][X25519_BYTES];
};

_Static_assert(sizeof(struct lanes) <= MLKEM_WORK_BYTES, "work of the group");
_Static_assert(X25519_LANES >= KEM_GROUP_MAX, "a group is one call");

static void
lanes_public(const struct backend *backend, struct x25519_public_item *items, size_t n,
    struct lanes *lanes)
{
	const uint8_t *key[X25519_LANES];
	uint8_t *out[X25519_LANES];

	for (size_t i = 0; i < X25519_LANES; i++) {
		key[i] = items[i < n ? i : 0].private_key;
		out[i] = i < n ? items[i].public_key : lanes->waste[i];
	}
	backend->x25519_base8(out, key, lanes->work);
	kem_wipe(lanes->waste, sizeof(lanes->waste));
}

static void
lanes_shared(const struct backend *backend, struct x25519_item *items, size_t n,
    struct lanes *lanes)
{
	const uint8_t *key[X25519_LANES], *peer[X25519_LANES];
	uint8_t *out[X25519_LANES];
	unsigned zeros;

	for (size_t i = 0; i < X25519_LANES; i++) {
		key[i] = items[i < n ? i : 0].private_key;
		peer[i] = items[i < n ? i : 0].peer;
		out[i] = i < n ? items[i].shared : lanes->waste[i];
	}
	zeros = backend->x25519_shared8(out, key, peer, lanes->work);
	for (size_t i = 0; i < n; i++)
		items[i].is_zero = (zeros >> i) & 1;
	kem_wipe(lanes->waste, sizeof(lanes->waste));
}

/*
 * Lanes are taken wherever a backend has them, for a lone item too. Measured on a Zen 4
 * (gcc 12, OpenSSL 3.0): one call of the comb 9.3 us against 36.7 us for one public key,
 * one of the ladder 36.5 us against 38.2 us for one secret.
 */
int
x25519_public(const struct kem *kem, struct x25519_public_item *items, size_t n,
    struct kem_scratch *scratch)
{
	int r = 0;

	assert(n <= KEM_GROUP_MAX);
	if (n == 0)
		return 0;
	if (kem->backend->x25519_base8)
		lanes_public(kem->backend, items, n, (struct lanes *)kem_work(scratch));
	else
		r = openssl_public(kem, items, n);
	libcrypto_stack_wipe();
	return r;
}

int
x25519_shared(const struct kem *kem, struct x25519_item *items, size_t n,
    struct kem_scratch *scratch)
{
	int r = 0;

	assert(n <= KEM_GROUP_MAX);
	if (n == 0)
		return 0;
	if (kem->backend->x25519_shared8)
		lanes_shared(kem->backend, items, n, (struct lanes *)kem_work(scratch));
	else
		r = openssl_shared(kem, items, n);
	libcrypto_stack_wipe();
	return r;
}
