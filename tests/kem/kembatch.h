/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kembatch.h: items worked one by one, and views of them for a batch: what single calls
 * made stands in single[i], what a batch makes of the same inputs goes to batch[i].
 */
#ifndef MLKEMD_TESTS_KEMBATCH_H
#define MLKEMD_TESTS_KEMBATCH_H

#include "tests/kem/kemtest.h"

#define N_MAX 64

extern struct test_item single[N_MAX], batch[N_MAX];
extern struct kem_keygen_item keygen[N_MAX];
extern struct kem_encaps_item encaps[N_MAX];
extern struct kem_decaps_item decaps[N_MAX];
extern uint8_t m[N_MAX][32];

/* Makes n whole exchanges, blank outputs for a batch, and its items. */
void batch_prepare(enum kem_alg alg, size_t n, const char *label);

/* Item i of the batch came out as alone, or failed with zeros for outputs. */
void assert_keygen_equal(size_t i);
void assert_encaps_equal(size_t i);
void assert_encaps_failed(size_t i, enum kem_status status);
void assert_decaps_equal(size_t i);
void assert_decaps_failed(size_t i, enum kem_status status);

#endif
