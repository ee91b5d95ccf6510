/* SPDX-License-Identifier: Apache-2.0 */
/* KEYMGMT: import and export, in the parameters that OpenSSL 3.5 gives ML-KEM keys. */
#include <openssl/core_names.h>
#include <openssl/params.h>

#include "keydata.h"
#include "provider.h"

#define PARAM_SEED "seed"

static const OSSL_PARAM no_types[] = {OSSL_PARAM_END};
static const OSSL_PARAM public_types[] = {
    OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
    OSSL_PARAM_END,
};
static const OSSL_PARAM private_types[] = {
    OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
    OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, NULL, 0),
    OSSL_PARAM_octet_string(PARAM_SEED, NULL, 0),
    OSSL_PARAM_END,
};

static const OSSL_PARAM *
types_of(int selection)
{
	if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0)
		return private_types;
	if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) != 0)
		return public_types;
	return no_types;
}

const OSSL_PARAM *
key_import_types(int selection)
{
	return types_of(selection);
}

const OSSL_PARAM *
key_export_types(int selection)
{
	return types_of(selection);
}

struct part {
	const uint8_t *bytes; /* NULL: not given */
	size_t len;
};

/* An empty one counts as not given, as OpenSSL's own keys do. */
static int
part_find(const struct keydata *key, struct part *part, const OSSL_PARAM params[],
    const char *name)
{
	const OSSL_PARAM *p = OSSL_PARAM_locate_const(params, name);

	*part = (struct part){NULL, 0};
	if (p == NULL || p->data_size == 0)
		return 1;
	if (p->data_type != OSSL_PARAM_OCTET_STRING || p->data == NULL) {
		raise_error(key->provider, REASON_NULL, "%s has to be bytes", name);
		return 0;
	}
	*part = (struct part){p->data, p->data_size};
	return 1;
}

int
key_import(void *keydata, int selection, const OSSL_PARAM params[])
{
	struct keydata *key = keydata;
	struct part share, expanded = {NULL, 0}, seed = {NULL, 0};

	if ((selection & OSSL_KEYMGMT_SELECT_KEYPAIR) == 0)
		return 0;
	if (!part_find(key, &share, params, OSSL_PKEY_PARAM_PUB_KEY))
		return 0;
	if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0 &&
	    (!part_find(key, &expanded, params, OSSL_PKEY_PARAM_PRIV_KEY) ||
		!part_find(key, &seed, params, PARAM_SEED)))
		return 0;
	if (expanded.bytes != NULL || seed.bytes != NULL)
		return keydata_set_private(key, expanded.bytes, expanded.len,
		    seed.bytes, seed.len, share.bytes, share.len);
	if (share.bytes != NULL)
		return keydata_set_share(key, share.bytes, share.len);
	raise_error(key->provider, REASON_NULL, "there is neither %s, nor %s, nor %s",
	    OSSL_PKEY_PARAM_PUB_KEY, OSSL_PKEY_PARAM_PRIV_KEY, PARAM_SEED);
	return 0;
}

static OSSL_PARAM
part_param(const char *name, const uint8_t *bytes, size_t len)
{
	return OSSL_PARAM_construct_octet_string(name, (void *)bytes, len);
}

/* The receiver sees our own memory: no copy that somebody would have to wipe. */
int
key_export(void *keydata, int selection, OSSL_CALLBACK *receive, void *arg)
{
	const struct keydata *key = keydata;
	bool wants_private = (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0;
	OSSL_PARAM params[4], *p = params;

	if ((selection & OSSL_KEYMGMT_SELECT_KEYPAIR) == 0)
		return 0;
	if (!key->has_share) {
		raise_error(key->provider, REASON_NO_PUBLIC, NULL);
		return 0;
	}
	if (wants_private && key->one_time != NULL) {
		raise_error(key->provider, REASON_ONE_TIME, NULL);
		return 0;
	}
	if (wants_private && !keydata_has_private(key)) {
		raise_error(key->provider, REASON_NO_PRIVATE, NULL);
		return 0;
	}
	*p++ = part_param(OSSL_PKEY_PARAM_PUB_KEY, key->share, key->alg->share);
	if (wants_private && key->expanded != NULL)
		*p++ = part_param(
		    OSSL_PKEY_PARAM_PRIV_KEY, key->expanded, key->alg->expanded);
	if (wants_private && key->seed != NULL)
		*p++ = part_param(PARAM_SEED, key->seed, key->alg->seed);
	*p = OSSL_PARAM_construct_end();
	return receive(params, arg);
}
