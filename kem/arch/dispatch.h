/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * dispatch.h: which backend to use. Asked once, by kem_open(); the answer is a pointer
 * to constant data, so that there is nothing to race for.
 */
#ifndef MLKEMD_KEM_DISPATCH_H
#define MLKEMD_KEM_DISPATCH_H

#include "../kem.h"

struct backend;

/*
 * What a backend may ask for: the instructions, all that its kernels use, and a system
 * that saves the registers.
 */
enum cpu_feature {
	CPU_AVX2 = 1 << 0,   /* AVX2, BMI1 and BMI2 */
	CPU_AVX512 = 1 << 1, /* that, and AVX512 F, BW, DQ, VL, IFMA, VBMI and VBMI2 */
};

/* How to ask a CPU; the tests have others than this one. */
struct cpu_probe {
	/* eax, ebx, ecx and edx of a leaf and subleaf */
	void (*cpuid)(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]);
	/* XCR0; called only if CPUID says that the system has switched XSAVE on */
	uint64_t (*xgetbv)(void);
};

extern const struct cpu_probe cpu_probe_real;

/* The features that are there, as a mask. */
unsigned cpu_features(const struct cpu_probe *probe);

/*
 * backend_choose() takes the backend called name; if name is NULL the one that
 * MLKEMD_BACKEND names (not read in set-uid programs); if that is not set either, the
 * best one for this CPU. A name that is unknown, empty, or of a backend that can't run
 * here is an error: nobody shall measure another backend than the one asked for.
 * Returns 0, or KEM_FAIL_BACKEND with *backendp NULL.
 */
kem_must_check int backend_choose(const char *name, const struct backend **backendp);

/* The same for a CPU that has `features`. */
kem_must_check int backend_choose_for(
    unsigned features, const char *name, const struct backend **backendp);

/* The backends of this build, the best first, NULL behind the last; n counts from 0. */
const struct backend *backend_number(unsigned n);

#endif
