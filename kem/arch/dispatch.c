/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "backend.h"

#if defined(__x86_64__)
# include <cpuid.h>

static void
cpuid_real(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
	__cpuid_count(leaf, subleaf, regs[0], regs[1], regs[2], regs[3]);
}

/* By hand: the intrinsic would ask for -mxsave, and this file has no flags. */
static uint64_t
xgetbv_real(void)
{
	uint32_t lo, hi;

	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (uint64_t)hi << 32 | lo;
}
#else
/* A CPU without leaves. */
static void
cpuid_real(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
	memset(regs, 0, 4 * sizeof regs[0]);
}

static uint64_t
xgetbv_real(void)
{
	return 0;
}
#endif

const struct cpu_probe cpu_probe_real = {cpuid_real, xgetbv_real};

/* CPUID leaf 1, ecx. */
#define LEAF1_OSXSAVE (UINT32_C(1) << 27)
#define LEAF1_AVX     (UINT32_C(1) << 28)

/* CPUID leaf 7, ebx and ecx. */
#define LEAF7_BMI1       (UINT32_C(1) << 3)
#define LEAF7_AVX2       (UINT32_C(1) << 5)
#define LEAF7_BMI2       (UINT32_C(1) << 8)
#define LEAF7_AVX512F    (UINT32_C(1) << 16)
#define LEAF7_AVX512DQ   (UINT32_C(1) << 17)
#define LEAF7_AVX512IFMA (UINT32_C(1) << 21)
#define LEAF7_AVX512BW   (UINT32_C(1) << 30)
#define LEAF7_AVX512VL   (UINT32_C(1) << 31)
#define LEAF7C_VBMI      (UINT32_C(1) << 1)
#define LEAF7C_VBMI2     (UINT32_C(1) << 6)

#define AVX2_EBX (LEAF7_BMI1 | LEAF7_AVX2 | LEAF7_BMI2)
#define AVX512_EBX \
 (LEAF7_AVX512F | LEAF7_AVX512DQ | LEAF7_AVX512IFMA | LEAF7_AVX512BW | LEAF7_AVX512VL)
#define AVX512_ECX (LEAF7C_VBMI | LEAF7C_VBMI2)

/* XCR0: xmm and ymm; and the mask registers, the upper halves of zmm0-15, zmm16-31. */
#define XCR0_YMM UINT64_C(0x06)
#define XCR0_ZMM UINT64_C(0xe6)

static bool
has_all(uint64_t have, uint64_t want)
{
	return (have & want) == want;
}

unsigned
cpu_features(const struct cpu_probe *probe)
{
	enum { EAX, EBX, ECX, EDX };
	uint32_t leaf0[4], leaf1[4], leaf7[4];
	uint64_t xcr0;

	/* A leaf above the highest one answers with another leaf's bits. */
	probe->cpuid(0, 0, leaf0);
	if (leaf0[EAX] < 7)
		return 0;
	probe->cpuid(1, 0, leaf1);
	if (!has_all(leaf1[ECX], LEAF1_OSXSAVE | LEAF1_AVX))
		return 0;
	xcr0 = probe->xgetbv();
	probe->cpuid(7, 0, leaf7);
	if (!has_all(xcr0, XCR0_YMM) || !has_all(leaf7[EBX], AVX2_EBX))
		return 0;
	if (!has_all(xcr0, XCR0_ZMM) || !has_all(leaf7[EBX], AVX512_EBX) ||
	    !has_all(leaf7[ECX], AVX512_ECX))
		return CPU_AVX2;
	return CPU_AVX2 | CPU_AVX512;
}

/* The best first. */
static const struct choice {
	const struct backend *backend;
	unsigned needs;
} choices[] = {
#if MLKEMD_HAVE_AVX512
    {&backend_avx512, CPU_AVX512},
#endif
#if MLKEMD_HAVE_AVX2
    {&backend_avx2, CPU_AVX2},
#endif
    {&backend_generic, 0},
};

#define N_CHOICES (sizeof choices / sizeof choices[0])

const struct backend *
backend_number(unsigned n)
{
	return n < N_CHOICES ? choices[n].backend : NULL;
}

int
backend_choose_for(unsigned features, const char *name, const struct backend **backendp)
{
	*backendp = NULL;
	for (size_t i = 0; i < N_CHOICES; i++) {
		if (!has_all(features, choices[i].needs))
			continue;
		if (name == NULL || strcmp(name, choices[i].backend->name) == 0) {
			*backendp = choices[i].backend;
			return 0;
		}
	}
	return KEM_FAIL_BACKEND;
}

int
backend_choose(const char *name, const struct backend **backendp)
{
	if (name == NULL)
		name = secure_getenv("MLKEMD_BACKEND");
	return backend_choose_for(cpu_features(&cpu_probe_real), name, backendp);
}
