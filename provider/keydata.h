/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keydata.h: the key object behind an EVP_PKEY. Empty, public, or with a private part
 * of one of two kinds: a one-time key of libmlkemclient (made for a TLS group), or
 * bytes that live here, in OpenSSL's secure heap if the program has one. Once it has a
 * part it does not change, so that threads may share it.
 */
#ifndef MLKEMD_PROVIDER_KEYDATA_H
#define MLKEMD_PROVIDER_KEYDATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alg.h"

struct provider;

struct keydata {
	struct provider *provider;
	const struct alg *alg;
	bool has_share;
	struct mlkemclient_key *one_time;
	uint8_t *expanded,
	    *seed; /* none, the first or both; of the algorithm's sizes */
	uint8_t share[MLKEMCLIENT_MAX_SHARE];
};

struct keydata *keydata_new(struct provider *provider, const struct alg *alg);
void keydata_free(struct keydata *key);

bool keydata_has_private(const struct keydata *key);
/* The form that decapsulates fastest. */
const uint8_t *keydata_private(const struct keydata *key, size_t *lenp);

/*
 * Each returns 1, or 0 with an error raised and the key as it was.
 * keydata_set_share() checks length and modulus (FIPS 203 7.2). keydata_set_private()
 * takes expanded or seed or both (NULL: not given) and, if given, the share that has to
 * belong to them; all of it is checked (7.1, 7.3), and a seed is expanded.
 */
int keydata_set_share(struct keydata *key, const uint8_t *share, size_t share_len);
int keydata_set_private(struct keydata *key, const uint8_t *expanded,
    size_t expanded_len, const uint8_t *seed, size_t seed_len, const uint8_t *share,
    size_t share_len);

/* Encapsulates to the key and decapsulates with each form it has; 1 if they agree. */
int keydata_check_pairwise(const struct keydata *key);

/* A copy with the public part, and the private one if so. NULL with an error raised. */
struct keydata *keydata_copy(const struct keydata *key, bool with_private);

/* Room for a private key, zero; or NULL with an error raised. */
uint8_t *private_alloc(const struct provider *provider, size_t len);
void private_free(uint8_t *p, size_t len);

#endif
