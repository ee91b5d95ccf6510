/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* X25519MLKEM768: the ML-KEM half comes first everywhere (RFC 10024 section 4). */
#include "hybrid.h"

#include <string.h>

#include "alg.h"
#include "fault.h"
#include "x25519.h"

static const uint8_t base_point[X25519_KEY_BYTES] = {9};

int
hybrid_keygen(const struct kem *kem, struct kem_keygen_item *items,
    const uint8_t *const *seeds, size_t n, struct kem_scratch *scratch)
{
	const struct alg_half *half = alg_half(KEM_ALG_X25519MLKEM768);
	struct x25519_public_item x[KEM_GROUP_MAX];

	for (size_t i = 0; i < n; i++) {
		x[i].private_key = items[i].secret + half->secret_bytes;
		x[i].public_key = items[i].share + half->ek_bytes;
		memcpy(items[i].secret + half->secret_bytes, seeds[i] + SEED_DZ_BYTES,
		    X25519_KEY_BYTES);
	}
	return x25519_public(kem, x, n, scratch);
}

/*
 * A public key is the shared secret with the base point (RFC 7748 6.1): so it costs
 * nothing where the ladder has a lane to spare.
 */
static void
fresh_append(struct x25519_item *x, struct kem_x25519 *fresh, size_t n_fresh)
{
	for (size_t i = 0; i < n_fresh; i++) {
		x[i] = (struct x25519_item){
		    .private_key = fresh[i].private_key,
		    .peer = base_point,
		    .shared = fresh[i].public_key,
		};
		if (fault("kem-spare-wrong-point"))
			x[i].peer = fresh[i].private_key;
	}
}

int
hybrid_encaps(const struct kem *kem, struct kem_encaps_item *const *items,
    const struct kem_x25519 *const *ephemerals, size_t n, struct kem_x25519 *fresh,
    size_t n_fresh, struct kem_scratch *scratch)
{
	const struct alg_half *half = alg_half(KEM_ALG_X25519MLKEM768);
	struct x25519_item x[KEM_GROUP_MAX];
	int r;

	for (size_t i = 0; i < n; i++) {
		x[i].private_key = ephemerals[i]->private_key;
		x[i].public_key = ephemerals[i]->public_key;
		x[i].peer = items[i]->share + half->ek_bytes;
		x[i].shared = items[i]->shared->bytes + SHARED_HALF;
		memcpy(items[i]->ct + half->ct_bytes, ephemerals[i]->public_key,
		    X25519_KEY_BYTES);
	}
	fresh_append(x + n, fresh, n_fresh);
	r = x25519_shared(kem, x, n + n_fresh, scratch);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (x[i].is_zero)
			items[i]->status = KEM_E_ZERO;
	}
	return r;
}

int
hybrid_decaps(const struct kem *kem, struct kem_decaps_item *const *items, size_t n,
    struct kem_x25519 *fresh, size_t n_fresh, struct kem_scratch *scratch)
{
	const struct alg_half *half = alg_half(KEM_ALG_X25519MLKEM768);
	struct x25519_item x[KEM_GROUP_MAX];
	int r;

	for (size_t i = 0; i < n; i++) {
		x[i].private_key = items[i]->key->x_priv;
		x[i].public_key = items[i]->key->x_pub;
		x[i].peer = items[i]->ct + half->ct_bytes;
		x[i].shared = items[i]->shared->bytes + SHARED_HALF;
	}
	fresh_append(x + n, fresh, n_fresh);
	r = x25519_shared(kem, x, n + n_fresh, scratch);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (x[i].is_zero)
			items[i]->status = KEM_E_ZERO;
	}
	return r;
}
