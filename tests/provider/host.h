/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h: what a program that uses OpenSSL sees of the provider: a library context made
 * from an openssl.cnf with mlkemd.so (MLKEMD_PROVIDER names it), and short forms of the
 * EVP calls. Everything that fails ends the test with OpenSSL's errors, unless its name
 * says "try".
 */
#ifndef TESTS_PROVIDER_HOST_H
#define TESTS_PROVIDER_HOST_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#include <openssl/evp.h>
#include <openssl/provider.h>

#include "provider/alg.h"

#define MAX_SETTINGS 2000

struct host {
	OSSL_LIB_CTX *libctx;
	OSSL_PROVIDER *provider;
	char config[64];
};

/*
 * settings: the lines of mlkemd's section, each with its newline. Its algorithms are
 * preferred by default_properties, so that OpenSSL 3.5 takes them for TLS too.
 * host_try() loads it by its name, which is the one way on which OpenSSL does not
 * swallow the errors, and returns whether it was loaded; the errors are left in the
 * queue.
 */
void host_open(struct host *host, const char *settings);
bool host_try(struct host *host, const char *settings);
void host_close(struct host *host);

/* "by-daemon", "by-local", "fallbacks" ... */
uint64_t host_count(const struct host *host, const char *name);

/* The whole of OpenSSL's queue as one text, which is emptied. Static. */
const char *host_errors(void);
/* Ends the test with that text. */
_Noreturn void host_fail(const char *what, int line);
#define must(call)             \
 do {                          \
  if ((call) != 1)             \
   host_fail(#call, __LINE__); \
 } while (0)

/* A key that lives here, or one for a TLS group; NULL if it can't be made. */
EVP_PKEY *pkey_generate(const struct host *host, const struct alg *alg, bool for_tls);
EVP_PKEY *pkey_try_generate(
    const struct host *host, const struct alg *alg, bool for_tls);
/* What libssl's server does: parameters, and the client's share set in them. */
EVP_PKEY *pkey_parameters(const struct host *host, const struct alg *alg);
EVP_PKEY *pkey_try_peer(const struct host *host, const struct alg *alg,
    const uint8_t *share, size_t share_len);

/* From parts, NULL where not given; NULL if it is refused. */
struct parts {
	const uint8_t *pub, *priv, *seed;
	size_t pub_len, priv_len, seed_len;
};
EVP_PKEY *pkey_try_import(const struct host *host, const struct alg *alg,
    const struct parts *parts, int selection);

/* Fill or read buffers of the algorithm's sizes; return OpenSSL's result. */
int pkey_try_encaps(const struct host *host, const struct alg *alg, EVP_PKEY *pkey,
    uint8_t *ct, uint8_t *secret);
int pkey_try_decaps(const struct host *host, const struct alg *alg, EVP_PKEY *pkey,
    const uint8_t *ct, uint8_t *secret);
size_t pkey_bytes(EVP_PKEY *pkey, const char *name, uint8_t *buf, size_t size);

/*
 * Encapsulates to one and decapsulates with the other: whether the secrets are equal.
 */
bool pkeys_agree(
    const struct host *host, const struct alg *alg, EVP_PKEY *to, EVP_PKEY *with);

bool bytes_are(const uint8_t *p, size_t len, uint8_t value);

/* The settings of a section: socket, route, and more lines. Static. */
const char *settings(const char *socket, const char *route, const char *more);

/* Whether fault() can be planted in this build. */
bool host_has_hooks(void);
int host_main(Suite *suite);

#endif
