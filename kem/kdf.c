/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * HKDF (RFC 5869) over the HMAC of kem_open(). OpenSSL's own HKDF is not used: it takes
 * no info beyond 2048 bytes and looks its digest up by name on every call.
 */
#include <assert.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "context.h"

#define HASH_MAX 48

struct hkdf {
	EVP_MAC_CTX *hmac;
	size_t hash_bytes;
	uint8_t prk[HASH_MAX];
	uint8_t t[HASH_MAX]; /* T(i) of section 2.3 */
};

static int
mac_final(EVP_MAC_CTX *hmac, uint8_t *out, size_t hash_bytes)
{
	size_t len = 0;

	if (EVP_MAC_final(hmac, out, &len, hash_bytes) != 1 || len != hash_bytes)
		return KEM_FAIL_OPENSSL;
	return 0;
}

/* Section 2.2; no salt means one of zeros. */
static int
hkdf_extract(struct hkdf *hkdf, const uint8_t *salt, size_t salt_len,
    const uint8_t *ikm, size_t ikm_len)
{
	static const uint8_t zeros[HASH_MAX];

	if (salt_len == 0) {
		salt = zeros;
		salt_len = hkdf->hash_bytes;
	}
	if (EVP_MAC_init(hkdf->hmac, salt, salt_len, NULL) != 1 ||
	    (ikm_len > 0 && EVP_MAC_update(hkdf->hmac, ikm, ikm_len) != 1))
		return KEM_FAIL_OPENSSL;
	return mac_final(hkdf->hmac, hkdf->prk, hkdf->hash_bytes);
}

/* Section 2.3. */
static int
hkdf_expand(struct hkdf *hkdf, const uint8_t *info, size_t info_len, uint8_t *out,
    size_t out_len)
{
	size_t t_len = 0, n;

	for (uint8_t i = 1; out_len > 0; i++) {
		if (EVP_MAC_init(hkdf->hmac, hkdf->prk, hkdf->hash_bytes, NULL) != 1 ||
		    (t_len > 0 && EVP_MAC_update(hkdf->hmac, hkdf->t, t_len) != 1) ||
		    (info_len > 0 && EVP_MAC_update(hkdf->hmac, info, info_len) != 1) ||
		    EVP_MAC_update(hkdf->hmac, &i, 1) != 1)
			return KEM_FAIL_OPENSSL;
		if (mac_final(hkdf->hmac, hkdf->t, hkdf->hash_bytes) < 0)
			return KEM_FAIL_OPENSSL;
		t_len = hkdf->hash_bytes;
		n = out_len < t_len ? out_len : t_len;
		memcpy(out, hkdf->t, n);
		out += n;
		out_len -= n;
	}
	return 0;
}

int
kem_hkdf(const struct kem *kem, enum kem_hash hash, const uint8_t *ikm, size_t ikm_len,
    const uint8_t *salt, size_t salt_len, const uint8_t *info, size_t info_len,
    uint8_t *out, size_t out_len)
{
	struct hkdf hkdf = {.hash_bytes = hash == KEM_HASH_SHA384 ? 48 : 32};
	int r = KEM_FAIL_OPENSSL;

	assert(out_len >= 1 && out_len <= KEM_HKDF_MAX(hash));
	ERR_set_mark();
	hkdf.hmac = EVP_MAC_CTX_dup(kem->hmac[hash]);
	if (!hkdf.hmac)
		goto out;
	r = hkdf_extract(&hkdf, salt, salt_len, ikm, ikm_len);
	if (r < 0)
		goto out;
	r = hkdf_expand(&hkdf, info, info_len, out, out_len);
out:
	EVP_MAC_CTX_free(hkdf.hmac);
	ERR_pop_to_mark();
	kem_wipe(&hkdf, sizeof(hkdf));
	if (r < 0)
		kem_wipe(out, out_len);
	return r;
}
