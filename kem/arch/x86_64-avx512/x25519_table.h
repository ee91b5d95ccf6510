/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * x25519_table.h: multiples of the base point for the comb of x25519_base.c, made by
 * x25519_table.py when the project is built, checked by tests/kem/check_x25519_lanes.c.
 *
 * Bit i = COMB_STEPS (COMB_TEETH c + t) + j of a scalar is tooth t of comb c in step j.
 * Entry v of comb c is, with P = 4B and P_t = 2^(COMB_STEPS (COMB_TEETH c + t)) P,
 *   P_5 +- P_4 +- P_3 +- P_2 +- P_1 +- P_0, tooth t with + where bit t of v is set,
 * as three field elements in limbs of radix 2^51: y + x, y - x and 2dxy of the twisted
 * Edwards curve (RFC 8032 section 5.1). The entries of one limb lie side by side.
 */
#ifndef MLKEMD_KEM_AVX512_X25519_TABLE_H
#define MLKEMD_KEM_AVX512_X25519_TABLE_H

#include <stdint.h>

#define COMB_TEETH   6
#define COMB_ENTRIES 32
#define COMB_STEPS   3
#define COMBS        14

struct comb {
	_Alignas(64) uint64_t plus[5][COMB_ENTRIES];  /* y + x */
	_Alignas(64) uint64_t minus[5][COMB_ENTRIES]; /* y - x */
	_Alignas(64) uint64_t xy2d[5][COMB_ENTRIES];  /* 2dxy */
};

extern const struct comb x25519_combs[COMBS];

/*
 * Where the sum starts: the scalar that the comb multiplies P by is not quite the one
 * asked for (x25519_base.c), and COMB_STEPS - 1 doublings are to come:
 * 2^-(COMB_STEPS - 1) (3 * 2^251 - 1) P, in the order plus, minus, xy2d / d.
 */
extern const uint64_t x25519_start[3][5];

#endif
