/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * random.h: the one door through which randomness comes into this project. Every draw
 * is made afresh by OpenSSL's private DRBG of our own library context, with 32 bytes of
 * getrandom(2) as additional input; nothing is kept for the next draw, so that neither
 * a fork nor a copy of the memory can repeat one.
 */
#ifndef MLKEMD_KEM_RANDOM_H
#define MLKEMD_KEM_RANDOM_H

#include <openssl/evp.h>

#include "kem.h"

struct random_source;

/*
 * Both are borrowed and must outlive the source. Returns NULL if memory or the generator
 * of the context can't be had.
 */
struct random_source *random_source_new(OSSL_LIB_CTX *libctx, const EVP_MD *sha256);
struct random_source *random_source_free(struct random_source *source);

/* Fills out. Returns 0, or KEM_FAIL_RNG with out zero. Any thread. */
kem_must_check int random_fill(struct random_source *source, uint8_t *out, size_t len);

#endif
