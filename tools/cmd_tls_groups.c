/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_tls_groups.c: the groups that `mlkemctl tls` knows by name, and a share of each. Those
 * with ML-KEM are made by libmlkemclient in this process, the classical ones by libcrypto.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd_tls.h"

/* IANA TLS Supported Groups; sizes from RFC 8446 4.2.8, RFC 10024 3 and FIPS 203. */
static const struct tls_group groups[] = {
    {0x11ec, "X25519MLKEM768", NULL, NULL, true, true, 1120},
    {0x001d, "x25519", "X25519", "X25519", false, true, 32},
    {0x0017, "secp256r1", "P-256", "P-256", false, true, 65},
    {0x0018, "secp384r1", "P-384", "P-384", false, true, 97},
    {0x0019, "secp521r1", "P-521", "P-521", false, true, 133},
    {0x001e, "x448", "X448", "X448", false, true, 56},
    {0x0200, "MLKEM512", "ML-KEM-512", NULL, true, true, 768},
    {0x0201, "MLKEM768", "ML-KEM-768", NULL, true, true, 1088},
    {0x0202, "MLKEM1024", "ML-KEM-1024", NULL, true, true, 1568},
    {0x11eb, "SecP256r1MLKEM768", NULL, NULL, true, false, 1153},
    {0x11ed, "SecP384r1MLKEM1024", NULL, NULL, true, false, 1665},
    {0x6399, "X25519Kyber768Draft00", NULL, NULL, true, false, 1120},
    {0x0100, "ffdhe2048", NULL, NULL, false, false, 256},
    {0x0101, "ffdhe3072", NULL, NULL, false, false, 384},
};
#define N_GROUPS (sizeof(groups) / sizeof(groups[0]))

const struct tls_group *
tls_group_find(uint16_t id)
{
	for (size_t i = 0; i < N_GROUPS; i++) {
		if (groups[i].id == id)
			return &groups[i];
	}
	return NULL;
}

/* By name in any case, or by number as "0x11ec". Returns 0 if it is neither. */
static uint16_t
parse_one(const char *word)
{
	unsigned long id;
	char *end;

	for (size_t i = 0; i < N_GROUPS; i++) {
		if (strcasecmp(word, groups[i].name) == 0 ||
		    (groups[i].other && strcasecmp(word, groups[i].other) == 0))
			return groups[i].id;
	}
	if (strncasecmp(word, "0x", 2) != 0)
		return 0;
	errno = 0;
	id = strtoul(word + 2, &end, 16);
	return errno || *end || id > 0xffff ? 0 : (uint16_t)id;
}

int
tls_groups_parse(
    const struct ctl *ctl, const char *list, uint16_t *ids, size_t *n_groupsp)
{
	size_t n = 0;

	for (const char *at = list; *at;) {
		size_t len = strcspn(at, ":,");
		char word[40];

		if (len == 0 || len >= sizeof(word))
			return ctl_fail(ctl, CTL_USAGE,
			    "--groups takes names with colons between them");
		memcpy(word, at, len);
		word[len] = '\0';
		if (n == TLS_MAX_GROUPS)
			return ctl_fail(ctl, CTL_USAGE, "--groups: at most %d groups",
			    TLS_MAX_GROUPS);
		ids[n] = parse_one(word);
		if (ids[n] == 0)
			return ctl_fail(ctl, CTL_USAGE,
			    "--groups: there is no group %s; known are "
			    "X25519MLKEM768, MLKEM512, MLKEM768, MLKEM1024, X25519, "
			    "X448, P-256, P-384, P-521, and any number as 0x11ec",
			    word);
		n++;
		at += len;
		at += *at != '\0';
	}
	if (n == 0)
		return ctl_fail(ctl, CTL_USAGE, "--groups: the list is empty");
	*n_groupsp = n;
	return CTL_OK;
}

static int
make_classical(const struct ctl *ctl, const char *type, struct tls_share *share)
{
	EVP_PKEY *key;
	unsigned char *encoded = NULL;
	size_t len;
	int status = CTL_OK;

	key = type[0] == 'P' ? EVP_PKEY_Q_keygen(NULL, NULL, "EC", type)
			     : EVP_PKEY_Q_keygen(NULL, NULL, type);
	len = key ? EVP_PKEY_get1_encoded_public_key(key, &encoded) : 0;
	if (len == 0 || len > sizeof(share->bytes)) {
		status =
		    ctl_fail(ctl, CTL_FAILED, "libcrypto cannot make a %s key", type);
	} else {
		memcpy(share->bytes, encoded, len);
		share->len = len;
	}
	OPENSSL_free(encoded);
	EVP_PKEY_free(key);
	return status;
}

static int
make_mlkem(const struct ctl *ctl, uint16_t id, struct tls_share *share)
{
	struct ctl here = *ctl;
	struct mlkemclient *client = NULL;
	struct mlkemclient_key *key = NULL;
	struct mlkemclient_sizes sizes;
	enum mlkemclient_alg alg = (enum mlkemclient_alg)id;
	int status, error;

	/* The peer is what is looked at: no daemon is needed for that. */
	here.local = true;
	status = ctl_client_new(&here, false, &client);
	if (status)
		return status;
	error = mlkemclient_get_sizes(alg, &sizes);
	if (!error)
		error =
		    mlkemclient_keygen(client, alg, share->bytes, sizes.share, &key);
	if (error)
		status = ctl_client_fail(ctl, client, error, "key generation");
	else
		share->len = sizes.share;
	mlkemclient_key_free(client, key);
	mlkemclient_free(client);
	return status;
}

int
tls_share_make(const struct ctl *ctl, uint16_t id, struct tls_share *share)
{
	const struct tls_group *group = tls_group_find(id);

	share->group = id;
	if (!group || !group->made)
		return ctl_fail(ctl, CTL_USAGE,
		    "no share of the group %s (0x%04x) can be made here; name "
		    "another one first",
		    group ? group->name : "?", id);
	if (group->key_type)
		return make_classical(ctl, group->key_type, share);
	return make_mlkem(ctl, id, share);
}
