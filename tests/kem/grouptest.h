/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grouptest.h: a group of ML-KEM items with all its buffers, for the tests of mlkem.h.
 */
#ifndef MLKEMD_TESTS_GROUPTEST_H
#define MLKEMD_TESTS_GROUPTEST_H

#include "kem/arch/backend.h"
#include "kem/mlkem.h"

#define N_MAX KEM_GROUP_MAX

extern const enum kem_alg group_sets[3];

/* The work of one thread. */
extern uint8_t group_work[MLKEM_WORK_BYTES];

/* Everything of one item; outputs carry a canary behind them. */
struct pair {
	uint8_t d[32], z[32], m[32];
	uint8_t ek[KEM_SHARE_MAX + 1];
	uint8_t secret[KEM_SECRET_MAX + 1];
	uint8_t ct[KEM_CT_MAX + 1];
	uint8_t made[32 + 1], found[32 + 1];
};

struct group_of {
	enum kem_alg set;
	size_t n;
	struct pair pair[N_MAX];
	struct mlkem_keygen_item keygen[N_MAX];
	struct mlkem_encaps_item encaps[N_MAX];
	struct mlkem_decaps_item decaps[N_MAX];
};

/* d, z and m of n items from the seed and a label; every second key is trusted. */
void group_reset(struct group_of *g, enum kem_alg set, size_t n, const char *label);

/* Nothing was written behind any output. */
void group_canaries(const struct group_of *g);

/* A key generation, an encapsulation and a decapsulation of the group, or of each item. */
void group_run(struct group_of *g, const struct backend *backend);
void group_run_singly(struct group_of *g, const struct backend *backend);

#endif
