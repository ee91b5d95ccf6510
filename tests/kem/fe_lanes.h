/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fe_lanes.h: the field arithmetic of kem/arch/x86_64-avx512/fe.h for a test that is itself
 * compiled without AVX-512: eight elements in memory, limb by limb. Range assertions are
 * on, whatever the build.
 */
#ifndef MLKEMD_TESTS_FE_LANES_H
#define MLKEMD_TESTS_FE_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kem/arch/dispatch.h"

#define LANES_FE_MAX      ((UINT64_C(1) << 51) + (UINT64_C(1) << 16))
#define LANES_LIMB_MAX    ((UINT64_C(1) << 52) - 1)
#define LANES_PRODUCT_MAX (UINT64_C(3) << 58)
#define LANES_BIASED_MAX  (UINT64_C(7) << 58)
#define LANES_SUM_MAX     (UINT64_C(1) << 62)

struct fe_lanes {
	uint64_t limb[5][8];
};

void fe_lanes_multiply(struct fe_lanes *r, const struct fe_lanes *a,
    const struct fe_lanes *b, bool biased);
void fe_lanes_square(struct fe_lanes *r, const struct fe_lanes *a, bool biased);
void fe_lanes_carry(struct fe_lanes *r, const struct fe_lanes *a);
void fe_lanes_subtract(
    struct fe_lanes *r, const struct fe_lanes *a, const struct fe_lanes *b);
void fe_lanes_load(struct fe_lanes *r, const uint8_t *const in[8]);
unsigned fe_lanes_store(uint8_t *const out[8], const struct fe_lanes *a);
void fe_lanes_invert(struct fe_lanes *r, const struct fe_lanes *a);

/* Does the CPU, with the system it runs under, have what the lanes need? If not, says so. */
static inline bool
lanes_can_run(void)
{
	bool can = (cpu_features(&cpu_probe_real) & CPU_AVX512) != 0;

	if (!can)
		puts("skipped: no AVX-512 with IFMA and VBMI2 on this CPU or system");
	return can;
}

#endif
