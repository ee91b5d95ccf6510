/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * context.h: what a struct kem holds, for the files of kem/ alone. All of it is set by
 * kem_open() and only read after that, so any thread may use it. (random counts blocks in
 * builds with test hooks.)
 */
#ifndef MLKEMD_KEM_CONTEXT_H
#define MLKEMD_KEM_CONTEXT_H

#include <openssl/evp.h>
#include <openssl/provider.h>

#include "kem.h"
#include "mlkem.h"
#include "random.h"

/* The library context is our own: a host's openssl.cnf, default properties or
 * providers (ours among them) never reach it. */
struct kem {
	const struct backend *backend;
	OSSL_LIB_CTX *libctx;
	OSSL_PROVIDER *provider;
	/* Some are looked up by name at each use: held, so that the cache keeps them. */
	EVP_KEYMGMT *x25519;
	EVP_KEYEXCH *x25519_exchange;
	EVP_MD *sha256, *sha384;
	EVP_KDF *hkdf;
	struct random_source *random;
};

/*
 * What kem.c and hybrid.c keep at the front of the scratch for one group: the drawn
 * randomness and the views of the items, so that no secret lies on the stack.
 * draw: key generation d || z [|| x25519] an item; encapsulation m an item (32 bytes
 * each), then the X25519 private keys of the items that brought no ephemeral.
 */
struct kem_front {
	uint8_t draw[KEM_GROUP_MAX * KEM_SEED_MAX];
	struct kem_x25519 pair[KEM_GROUP_MAX];
	union {
		struct mlkem_keygen_item keygen[KEM_GROUP_MAX];
		struct mlkem_encaps_item encaps[KEM_GROUP_MAX];
		struct mlkem_decaps_item decaps[KEM_GROUP_MAX];
	} item;
};

/* What lies behind it, up to KEM_FRONT_BYTES, no operation touches. */
#define KEM_SPARE_OFFSET 2048

_Static_assert(sizeof(struct kem_front) <= KEM_SPARE_OFFSET, "front of the scratch");

static inline struct kem_front *
kem_front(struct kem_scratch *scratch)
{
	return (struct kem_front *)(void *)scratch->bytes;
}

/* Room of the self-test and the pair-wise check, who wipe it: their stack stays small. */
static inline void *
kem_spare(struct kem_scratch *scratch)
{
	return scratch->bytes + KEM_SPARE_OFFSET;
}

static inline uint8_t *
kem_work(struct kem_scratch *scratch)
{
	return scratch->bytes + KEM_FRONT_BYTES;
}

#endif
