/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * internal.h: what the self-test and the tests may do and nobody else: open a backend
 * that is not in the dispatch table, and encapsulate without randomness (FIPS 203 ch. 6:
 * the internal functions are no application interface).
 */
#ifndef MLKEMD_KEM_INTERNAL_H
#define MLKEMD_KEM_INTERNAL_H

#include "kem.h"

struct backend;

kem_must_check int kem_open_with(struct kem **kemp, const struct backend *backend);
const struct backend *kem_backend(const struct kem *kem);

/* Alg. 17 with m given, one 32-byte m an item; the hybrid takes item.ephemeral. */
kem_must_check int kem_encaps_derand(const struct kem *kem, enum kem_alg alg,
    struct kem_encaps_item *items, size_t n, const uint8_t (*m)[32],
    struct kem_scratch *scratch);

#endif
