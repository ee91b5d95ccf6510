/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alg.h: the algorithms that the provider offers, with the names under which OpenSSL
 * knows them and their sizes. Constant; any thread.
 */
#ifndef MLKEMD_PROVIDER_ALG_H
#define MLKEMD_PROVIDER_ALG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/core.h>

#include "client-lib/mlkemclient.h"

enum { ALG_MLKEM512, ALG_MLKEM768, ALG_MLKEM1024, ALG_X25519MLKEM768, N_ALGS };

/* Sizes in bytes: FIPS 203 table 3, RFC 10024 section 4.1. */
struct alg {
	enum mlkemclient_alg id; /* the code point of its TLS group */
	const char *name;
	const char *names; /* of its KEYMGMT and KEM, as OpenSSL 3.5 has them */
	const char *description;
	const char *group; /* its name in a list of TLS groups */
	unsigned bits, security_bits, category;
	size_t ek; /* of ML-KEM, in front of the share; 32 bytes of it are rho */
	size_t share, ciphertext, secret;
	size_t expanded, seed; /* private key: dk or d || z [|| x25519 private] */
};

extern const struct alg algs[N_ALGS];

/* Whether name is one of the algorithm's, or its group's; in any case. */
bool alg_has_name(const struct alg *alg, const char *name);

/* FIPS 203 7.2, modulus check: whether every coefficient of ek is less than q. */
bool alg_share_is_reduced(const struct alg *alg, const uint8_t *share);

#endif
