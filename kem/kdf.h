/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * kdf.h: the two steps of HKDF (RFC 5869) apart, for kem_hkdf() and for tests of values
 * that give the pseudorandom key. A struct hkdf belongs to one call and holds secrets.
 */
#ifndef MLKEMD_KEM_KDF_H
#define MLKEMD_KEM_KDF_H

#include <openssl/evp.h>

#include "kem.h"

#define HKDF_HASH_MAX 48

struct hkdf {
	EVP_MAC_CTX *hmac;
	size_t hash_bytes;
	uint8_t prk[HKDF_HASH_MAX];
	uint8_t t[HKDF_HASH_MAX]; /* T(i) of section 2.3 */
};

/* All return 0, or KEM_FAIL_OPENSSL. hkdf_fini() wipes, and takes any state. */
kem_must_check int hkdf_init(
    struct hkdf *hkdf, const struct kem *kem, enum kem_hash hash);
void hkdf_fini(struct hkdf *hkdf);

/* Section 2.2: to hkdf->prk. No salt means one of zeros. */
kem_must_check int hkdf_extract(struct hkdf *hkdf, const uint8_t *salt, size_t salt_len,
    const uint8_t *ikm, size_t ikm_len);

/* Section 2.3. out_len is 1 to KEM_HKDF_MAX. */
kem_must_check int hkdf_expand(struct hkdf *hkdf, const uint8_t *prk, size_t prk_len,
    const uint8_t *info, size_t info_len, uint8_t *out, size_t out_len);

#endif
