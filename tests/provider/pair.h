/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair.h: a provider without a daemon and one key pair of an algorithm, with its parts at
 * hand to be given in again, whole or spoiled.
 */
#ifndef TESTS_PROVIDER_PAIR_H
#define TESTS_PROVIDER_PAIR_H

#include "host.h"

extern struct host host;
extern const struct alg *alg;
/* With room for a length that is one too large. */
extern uint8_t pub[MLKEMCLIENT_MAX_SHARE + 1], priv[MLKEMCLIENT_MAX_PRIVATE_KEY + 1];
extern uint8_t seed[96 + 1];

void pair_setup(int i); /* the algorithm's number */
void pair_teardown(void);

/* A new pair, its parts in pub and in priv or, from_seed, in seed. */
EVP_PKEY *make_pair(bool from_seed);

/* From these parts as they stand; NULL if that is refused. */
EVP_PKEY *try_import(bool with_pub, bool with_priv, bool with_seed);

#endif
