/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fe_value.h: what eight field elements in limbs stand for, by OpenSSL's big numbers.
 * Between field_init() and field_fini(), one thread.
 */
#ifndef MLKEMD_TESTS_FE_VALUE_H
#define MLKEMD_TESTS_FE_VALUE_H

#include <openssl/bn.h>

#include "fe_lanes.h"
#include "tests/kem/kemtest.h"

void field_init(void);
void field_fini(void);

/* The value of a lane, not reduced, and that mod p. */
void lane_value(BIGNUM *r, const struct fe_lanes *a, unsigned lane);
void lane_residue(BIGNUM *r, const struct fe_lanes *a, unsigned lane);

/* How many limbs of all lanes are above max. */
unsigned limbs_over(const struct fe_lanes *a, uint64_t max);

/* How many lanes of r are not a * b (mod p); not a (mod p). */
unsigned product_wrong(
    const struct fe_lanes *r, const struct fe_lanes *a, const struct fe_lanes *b);
unsigned same_wrong(const struct fe_lanes *r, const struct fe_lanes *a);

/* Limbs at random, from 0 to max. */
void lanes_random(struct fe_lanes *r, struct test_stream *stream, uint64_t max);

#endif
