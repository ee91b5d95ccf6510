/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * hybrid.h: the X25519 half of X25519MLKEM768 (RFC 10024 section 4) for one group whose
 * ML-KEM half kem.c has worked. Both halves of every item are always computed, whatever
 * came out of the other one. On failure outputs may hold anything.
 */
#ifndef MLKEMD_KEM_HYBRID_H
#define MLKEMD_KEM_HYBRID_H

#include "kem.h"

/*
 * Writes the X25519 halves of share and secret; seeds[i] is d || z || x25519 private.
 * Returns 0, or KEM_FAIL_OPENSSL.
 */
kem_must_check int hybrid_keygen(const struct kem *kem, struct kem_keygen_item *items,
    const uint8_t *const *seeds, size_t n, struct kem_scratch *scratch);

/*
 * Write the X25519 halves of ct and shared. An all-zero result makes KEM_E_ZERO of the
 * item's status, whatever it was. The public halves of n_fresh pairs, whose private ones
 * are there, are computed in lanes that the items leave: n + n_fresh are at most
 * KEM_GROUP_MAX. Return 0, or KEM_FAIL_OPENSSL.
 */
kem_must_check int hybrid_encaps(const struct kem *kem,
    struct kem_encaps_item *const *items, const struct kem_x25519 *const *ephemerals,
    size_t n, struct kem_x25519 *fresh, size_t n_fresh, struct kem_scratch *scratch);
kem_must_check int hybrid_decaps(const struct kem *kem,
    struct kem_decaps_item *const *items, size_t n, struct kem_x25519 *fresh,
    size_t n_fresh, struct kem_scratch *scratch);

#endif
