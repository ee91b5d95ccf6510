/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>
#include <string.h>

#include "client-lib/client.h"

struct kdf *
kdf_ref(struct kdf *kdf)
{
	if (kdf != NULL)
		kdf->n_users++;
	return kdf;
}

void
kdf_unref(struct kdf *kdf)
{
	if (kdf == NULL || --kdf->n_users != 0)
		return;
	kem_wipe(kdf, sizeof(*kdf));
	free(kdf);
}

static int
kdf_check(const struct mlkemclient *client, unsigned hash, const uint8_t *salt,
    size_t salt_len, const uint8_t *info, size_t info_len, uint32_t length)
{
	enum kem_hash kem_hash = hash == 384 ? KEM_HASH_SHA384 : KEM_HASH_SHA256;

	if (hash != 256 && hash != 384)
		return client_fail(client, MLKEMCLIENT_E_INVALID,
		    "kdf: hash %u; 256, 384 and 0 (off) are allowed", hash);
	if (salt_len > KDF_MAX_INPUT || info_len > KDF_MAX_INPUT ||
	    (salt == NULL && salt_len != 0) || (info == NULL && info_len != 0))
		return client_fail(client, MLKEMCLIENT_E_INVALID,
		    "kdf: salt and info may have up to %d bytes each", KDF_MAX_INPUT);
	if (length == 0 || length > KEM_HKDF_MAX(kem_hash))
		return client_fail(client, MLKEMCLIENT_E_INVALID,
		    "kdf: length %u; 1 to %u is allowed", length,
		    KEM_HKDF_MAX(kem_hash));
	return 0;
}

/* NULL: no memory. */
static struct kdf *
kdf_new(unsigned hash, const uint8_t *salt, size_t salt_len, const uint8_t *info,
    size_t info_len, uint32_t length)
{
	struct kdf *kdf = calloc(1, sizeof(*kdf));

	if (kdf == NULL)
		return NULL;
	kdf->n_users = 1;
	kdf->hash = hash == 384 ? KEM_HASH_SHA384 : KEM_HASH_SHA256;
	kdf->length = length;
	kdf->salt_len = salt_len;
	kdf->info_len = info_len;
	if (salt_len != 0)
		memcpy(kdf->salt, salt, salt_len);
	if (info_len != 0)
		memcpy(kdf->info, info, info_len);
	return kdf;
}

static void
kdf_replace(struct mlkemclient *client, struct kdf *kdf)
{
	struct kdf *old;

	client_lock(client);
	old = client->kdf;
	client->kdf = kdf;
	kdf_unref(old);
	client_unlock(client);
}

/* On a mistake the kdf is off: nobody should take a raw secret for a derived one. */
int
mlkemclient_set_kdf(struct mlkemclient *client, unsigned hash, const uint8_t *salt,
    size_t salt_len, const uint8_t *info, size_t info_len, uint32_t length)
{
	struct kdf *kdf = NULL;
	int err = 0;

	if (client == NULL)
		return MLKEMCLIENT_E_INVALID;
	report_clear(client);
	if (hash != 0)
		err = kdf_check(client, hash, salt, salt_len, info, info_len, length);
	if (hash != 0 && err == 0) {
		kdf = kdf_new(hash, salt, salt_len, info, info_len, length);
		if (kdf == NULL)
			err = client_fail(client, MLKEMCLIENT_E_INTERNAL, "no memory");
	}
	kdf_replace(client, kdf);
	return err;
}
