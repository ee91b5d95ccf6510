/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * x25519.h: X25519 (RFC 7748) for one group, in the backend's lanes or by OpenSSL.
 * Constant-time in the private keys; whether a result is all zero becomes public with the
 * item's status.
 */
#ifndef MLKEMD_KEM_X25519_H
#define MLKEMD_KEM_X25519_H

#include "kem.h"

struct x25519_item {
	const uint8_t *private_key; /* 32 */
	const uint8_t *public_key;  /* 32, its public half; NULL if not known */
	const uint8_t
	    *peer;       /* 32; bit 255 is ignored, any value is taken (section 5) */
	uint8_t *shared; /* out: 32; zero if is_zero */
	bool is_zero;    /* out: the result is all zero (section 6.1) */
};

struct x25519_public_item {
	const uint8_t *private_key; /* 32 */
	uint8_t *public_key;        /* out: 32 */
};

/*
 * n is at most KEM_GROUP_MAX. The group's work area of the scratch is used and wiped.
 * Returns 0, or KEM_FAIL_OPENSSL; then outputs may hold anything.
 */
kem_must_check int x25519_public(const struct kem *kem,
    struct x25519_public_item *items, size_t n, struct kem_scratch *scratch);

/* The same. Returns 0 with every item done, or KEM_FAIL_OPENSSL. */
kem_must_check int x25519_shared(const struct kem *kem, struct x25519_item *items,
    size_t n, struct kem_scratch *scratch);

#endif
