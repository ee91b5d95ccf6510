/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.h: the provider's two handles of libmlkemclient. "tls" takes the configured
 * route and holds one-time keys; "own" works in this process alone, with private keys
 * that live long. Both are made by exchange_open(), which connects nothing, and are
 * shared by all threads.
 */
#ifndef MLKEMD_PROVIDER_EXCHANGE_H
#define MLKEMD_PROVIDER_EXCHANGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "alg.h"

struct config;
struct keydata;
struct provider;

struct exchange {
	struct mlkemclient *tls, *own;
	_Atomic uint64_t fallbacks_told; /* of the counter of tls */
	_Atomic uint64_t tell_next_us;   /* not before: one line a minute */
};

/* Returns 0, or a negative MLKEMCLIENT_E_... */
int exchange_open(struct exchange *exchange, const struct config *config);
void exchange_close(struct exchange *exchange);

/*
 * The operations. Sizes are the algorithm's. They raise OpenSSL's error themselves and
 * leave outputs zero then; return 0, or a negative MLKEMCLIENT_E_...
 */

/* A one-time key by the configured route: key->share and key->one_time. */
int exchange_keygen_one_time(struct provider *provider, struct keydata *key);
/* One that lives here: key->share and key->expanded, which has room. */
int exchange_keygen_own(struct provider *provider, struct keydata *key);
/* By the configured route; the second in this process, whatever the route. */
int exchange_encaps(
    struct provider *provider, const struct keydata *key, uint8_t *ct, uint8_t *secret);
int exchange_encaps_own(
    struct provider *provider, const struct keydata *key, uint8_t *ct, uint8_t *secret);
/* With either kind of key; ct_len is checked here. */
int exchange_decaps(struct provider *provider, const struct keydata *key,
    const uint8_t *ct, size_t ct_len, uint8_t *secret);
/* The same with these bytes, expanded or seed. */
int exchange_decaps_with(struct provider *provider, const struct alg *alg,
    const uint8_t *private_key, size_t private_key_len, const uint8_t *ct,
    size_t ct_len, uint8_t *secret);
/* The share of a private key: an expanded one is checked by FIPS 203 7.3. */
int exchange_share_of(struct provider *provider, const struct alg *alg,
    const uint8_t *private_key, size_t private_key_len, uint8_t *share);
/* The expanded form of a seed. */
int exchange_expand(struct provider *provider, const struct alg *alg,
    const uint8_t *seed, uint8_t *expanded);

#endif
