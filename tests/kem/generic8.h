/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * generic8.h: the portable kernels looped over eight lanes, for the tests alone. It
 * proves the scheduling of streams before any vector instruction is involved, counts
 * permutations, and is as nasty as the contract allows: what a backend may overwrite it
 * overwrites, what it may not rely on it spoils.
 */
#ifndef MLKEMD_TESTS_GENERIC8_H
#define MLKEMD_TESTS_GENERIC8_H

#include "kem/arch/backend.h"

extern const struct backend backend_generic8;

/* The same with four lanes. */
void generic4_init(struct backend *backend);

/* Of this thread, since the last reset. */
struct generic8_counts {
	unsigned long permutations;        /* of eight lanes each */
	unsigned long matrix_permutations; /* those that a SHAKE128 block came out of */
	unsigned long matrix_blocks;
};

void generic8_reset(void);
struct generic8_counts generic8_counts(void);

#endif
