/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * HKDF (RFC 5869) over the HMAC of kem_open(). OpenSSL's own HKDF is not used: it takes
 * no info beyond 2048 bytes and looks its digest up by name on every call.
 */
#include "kdf.h"

#include <assert.h>
#include <string.h>

#include <openssl/err.h>

#include "context.h"
#include "wipe.h"

int
hkdf_init(struct hkdf *hkdf, const struct kem *kem, enum kem_hash hash)
{
	memset(hkdf, 0, sizeof(*hkdf));
	hkdf->hash_bytes = hash == KEM_HASH_SHA384 ? 48 : 32;
	hkdf->hmac = EVP_MAC_CTX_dup(kem->hmac[hash]);
	return hkdf->hmac ? 0 : KEM_FAIL_OPENSSL;
}

void
hkdf_fini(struct hkdf *hkdf)
{
	EVP_MAC_CTX_free(hkdf->hmac);
	kem_wipe(hkdf, sizeof(*hkdf));
}

static int
mac_final(EVP_MAC_CTX *hmac, uint8_t *out, size_t hash_bytes)
{
	size_t len = 0;

	if (EVP_MAC_final(hmac, out, &len, hash_bytes) != 1 || len != hash_bytes)
		return KEM_FAIL_OPENSSL;
	return 0;
}

int
hkdf_extract(struct hkdf *hkdf, const uint8_t *salt, size_t salt_len,
    const uint8_t *ikm, size_t ikm_len)
{
	static const uint8_t zeros[HKDF_HASH_MAX];

	if (salt_len == 0) {
		salt = zeros;
		salt_len = hkdf->hash_bytes;
	}
	if (EVP_MAC_init(hkdf->hmac, salt, salt_len, NULL) != 1 ||
	    (ikm_len > 0 && EVP_MAC_update(hkdf->hmac, ikm, ikm_len) != 1))
		return KEM_FAIL_OPENSSL;
	return mac_final(hkdf->hmac, hkdf->prk, hkdf->hash_bytes);
}

int
hkdf_expand(struct hkdf *hkdf, const uint8_t *prk, size_t prk_len, const uint8_t *info,
    size_t info_len, uint8_t *out, size_t out_len)
{
	size_t t_len = 0, n;

	for (uint8_t i = 1; out_len > 0; i++) {
		if (EVP_MAC_init(hkdf->hmac, prk, prk_len, NULL) != 1 ||
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
	struct hkdf hkdf;
	int r;

	assert(out_len >= 1 && out_len <= KEM_HKDF_MAX(hash));
	ERR_set_mark();
	r = hkdf_init(&hkdf, kem, hash);
	if (r == 0)
		r = hkdf_extract(&hkdf, salt, salt_len, ikm, ikm_len);
	if (r == 0)
		r = hkdf_expand(
		    &hkdf, hkdf.prk, hkdf.hash_bytes, info, info_len, out, out_len);
	hkdf_fini(&hkdf);
	ERR_pop_to_mark();
	stack_wipe();
	if (r < 0)
		kem_wipe(out, out_len);
	return r;
}
