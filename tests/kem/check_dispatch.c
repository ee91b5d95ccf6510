/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of a backend: by name, by environment, by default; never another one than
 * was asked for. And that no table has a hole.
 */
#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kem/arch/backend.h"
#include "kem/arch/dispatch.h"
#include "tests/kem/kemtest.h"

static const char *const impossible[] = {"", " ", "Generic", "generic ", "generic8",
    "gener", "avx2,generic", "auto", "sse9", "../generic"};

START_TEST(test_by_name)
{
	const struct backend *backend = NULL;

	setenv("MLKEMD_BACKEND", "no-such", 1); /* the argument wins */
	ck_assert_int_eq(backend_choose("generic", &backend), 0);
	ck_assert_ptr_eq(backend, &backend_generic);
	for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
		backend = &backend_generic;
		ck_assert_int_eq(
		    backend_choose(impossible[i], &backend), KEM_FAIL_BACKEND);
		ck_assert_ptr_null(backend);
	}
}
END_TEST

START_TEST(test_by_environment)
{
	const struct backend *backend = NULL;

	setenv("MLKEMD_BACKEND", "generic", 1);
	ck_assert_int_eq(backend_choose(NULL, &backend), 0);
	ck_assert_ptr_eq(backend, &backend_generic);
	for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
		setenv("MLKEMD_BACKEND", impossible[i], 1);
		backend = &backend_generic;
		ck_assert_int_eq(backend_choose(NULL, &backend), KEM_FAIL_BACKEND);
		ck_assert_ptr_null(backend);
	}
	unsetenv("MLKEMD_BACKEND");
	ck_assert_int_eq(backend_choose(NULL, &backend), 0);
	ck_assert_ptr_nonnull(backend);
}
END_TEST

/*
 * All members behind `lanes` are pointers to functions; the two of X25519 are there or
 * not, but both.
 */
static unsigned
holes(const struct backend *backend)
{
	const size_t first = offsetof(struct backend, keccak);
	const size_t last = offsetof(struct backend, x25519_base8);
	unsigned n = 0;

	_Static_assert((sizeof(struct backend) - offsetof(struct backend, keccak)) %
			       sizeof(void *) ==
			   0,
	    "pointers only");
	_Static_assert(offsetof(struct backend, x25519_base8) + 2 * sizeof(void *) ==
			   sizeof(struct backend),
	    "X25519 comes last");
	n += (backend->x25519_base8 == NULL) != (backend->x25519_shared8 == NULL);
	for (size_t at = first; at < last; at += sizeof(void *)) {
		void *pointer;

		memcpy(&pointer, (const char *)backend + at, sizeof pointer);
		n += pointer == NULL;
	}
	return n;
}

START_TEST(test_table)
{
	const struct backend *backend = test_backend();
	const char *asked_for = getenv("MLKEMD_BACKEND");
	struct backend bad = *backend;

	if (asked_for)
		ck_assert_str_eq(backend->name, asked_for);
	ck_assert(backend->lanes == 1 || backend->lanes == 4 || backend->lanes == 8);
	ck_assert_uint_eq(holes(backend), 0);
	bad.decompress[COMPRESS_11] = NULL;
	bad.select = NULL;
	ck_assert_uint_eq(holes(&bad), 2);
	bad = backend_generic;
	bad.x25519_base8 =
	    (void (*)(uint8_t *const *, const uint8_t *const *, uint8_t *))(uintptr_t)1;
	ck_assert_uint_eq(holes(&bad), 1);
}
END_TEST

/*
 * CPUs of the tests: what leaves 0, 1 and 7 answer, and XCR0. All bits of a leaf that
 * aren't asked for are set, so that nothing else may be taken for a yes.
 */
static struct {
	uint32_t max_leaf, leaf1_ecx, leaf7_ebx, leaf7_ecx;
	uint64_t xcr0;
	unsigned n_xgetbv;
} cpu;

#define OSXSAVE (UINT32_C(1) << 27)
#define AVX     (UINT32_C(1) << 28)

static const struct {
	const char *name;
	unsigned bit;
	bool in_ecx, for_avx2;
} extensions[] = {
    {"BMI1", 3, false, true},
    {"AVX2", 5, false, true},
    {"BMI2", 8, false, true},
    {"AVX512F", 16, false, false},
    {"AVX512DQ", 17, false, false},
    {"AVX512IFMA", 21, false, false},
    {"AVX512BW", 30, false, false},
    {"AVX512VL", 31, false, false},
    {"AVX512VBMI", 1, true, false},
    {"AVX512VBMI2", 6, true, false},
};

#define N_EXTENSIONS (sizeof extensions / sizeof extensions[0])

static void
cpuid_planted(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
	ck_assert_uint_eq(subleaf, 0);
	ck_assert(leaf <= cpu.max_leaf); /* it would answer with another leaf */
	memset(regs, 0xff, 4 * sizeof regs[0]);
	if (leaf == 0)
		regs[0] = cpu.max_leaf;
	if (leaf == 1)
		regs[2] = cpu.leaf1_ecx;
	if (leaf == 7) {
		regs[1] = cpu.leaf7_ebx;
		regs[2] = cpu.leaf7_ecx;
	}
}

/* Without OSXSAVE the instruction is an illegal one. */
static uint64_t
xgetbv_planted(void)
{
	ck_assert(cpu.leaf1_ecx & OSXSAVE);
	cpu.n_xgetbv++;
	return cpu.xcr0;
}

static const struct cpu_probe planted = {cpuid_planted, xgetbv_planted};

static void
cpu_reset(void)
{
	cpu.max_leaf = 0x20;
	cpu.leaf1_ecx = UINT32_MAX;
	cpu.leaf7_ebx = UINT32_MAX;
	cpu.leaf7_ecx = UINT32_MAX;
	cpu.xcr0 = 0xe7;
	cpu.n_xgetbv = 0;
}

static const char *
chosen(unsigned features)
{
	const struct backend *backend = NULL;

	ck_assert_int_eq(backend_choose_for(features, NULL, &backend), 0);
	return backend->name;
}

/* What a build without those kernels has instead. */
static const char *
best_of(const char *const *names)
{
	const struct backend *backend;

	for (; *names != NULL; names++) {
		for (unsigned n = 0; (backend = backend_number(n)) != NULL; n++) {
			if (strcmp(backend->name, *names) == 0)
				return backend->name;
		}
	}
	return NULL;
}

static const char *const names[] = {"avx512", "avx2", "generic", NULL};

static void
features_are(unsigned features)
{
	unsigned skip = features & CPU_AVX512 ? 0 : features & CPU_AVX2 ? 1 : 2;

	ck_assert_uint_eq(cpu_features(&planted), features);
	ck_assert_str_eq(chosen(features), best_of(names + skip));
}

/* AVX and AVX-512 only where the system saves their registers: XCR0, bit by bit. */
START_TEST(test_system)
{
	static const struct {
		uint64_t xcr0;
		unsigned features;
	} cases[] = {{0x1, 0}, {0x2, 0}, {0x3, 0}, {0x4, 0}, {0x5, 0}, {0xe0, 0},
	    {0xe3, 0}, {0xe5, 0}, {0x7, CPU_AVX2}, {0x6, CPU_AVX2}, {0x27, CPU_AVX2},
	    {0x47, CPU_AVX2}, {0x67, CPU_AVX2}, {0x87, CPU_AVX2}, {0xa7, CPU_AVX2},
	    {0xc7, CPU_AVX2}, {0xe7, CPU_AVX2 | CPU_AVX512},
	    {0xe6, CPU_AVX2 | CPU_AVX512}, {0x602e7, CPU_AVX2 | CPU_AVX512},
	    {UINT64_C(0xe700000000), 0}};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cpu_reset();
		cpu.xcr0 = cases[i].xcr0;
		features_are(cases[i].features);
	}
	cpu_reset();
	cpu.leaf1_ecx = ~OSXSAVE; /* XCR0 would say yes, if it were asked */
	features_are(0);
	ck_assert_uint_eq(cpu.n_xgetbv, 0);
	cpu.leaf1_ecx = ~AVX;
	features_are(0);
}
END_TEST

/* Each extension missing, each one alone, and AVX-512 of the first kind. */
START_TEST(test_extensions)
{
	uint32_t ebx = 0, ecx = 0;

	for (size_t i = 0; i < N_EXTENSIONS; i++) {
		uint32_t bit = UINT32_C(1) << extensions[i].bit;

		cpu_reset();
		*(extensions[i].in_ecx ? &cpu.leaf7_ecx : &cpu.leaf7_ebx) &= ~bit;
		features_are(extensions[i].for_avx2 ? 0 : CPU_AVX2);
		cpu.leaf7_ebx = extensions[i].in_ecx ? 0 : bit;
		cpu.leaf7_ecx = extensions[i].in_ecx ? bit : 0;
		features_are(0);
		if (!extensions[i].for_avx2)
			continue;
		ebx |= bit;
	}
	cpu_reset();
	cpu.leaf7_ecx = ecx;
	cpu.leaf7_ebx = ebx | 1u << 16 | 1u << 26 | 1u << 27 | 1u << 28;
	features_are(CPU_AVX2); /* F, PF, ER, CD: Knights Landing */
	for (size_t i = 0; i < N_EXTENSIONS; i++)
		*(extensions[i].in_ecx ? &ecx : &ebx) |= UINT32_C(1)
							 << extensions[i].bit;
	cpu.leaf7_ebx = ebx;
	cpu.leaf7_ecx = ecx;
	features_are(CPU_AVX2 | CPU_AVX512); /* these, and no others, are enough */
	cpu.max_leaf = 7;
	features_are(CPU_AVX2 | CPU_AVX512);
	cpu.max_leaf = 6;
	features_are(0);
	cpu.max_leaf = 0;
	features_are(0);
}
END_TEST

/* A backend that this CPU can't run is not had by its name either. */
START_TEST(test_impossible)
{
	const struct backend *backend, *named;

	for (unsigned n = 0; (backend = backend_number(n)) != NULL; n++) {
		int want = backend == &backend_generic ? 0 : KEM_FAIL_BACKEND;

		named = &backend_generic;
		ck_assert_int_eq(backend_choose_for(0, backend->name, &named), want);
		ck_assert_ptr_eq(named, want == 0 ? backend : NULL);
		ck_assert_int_eq(
		    backend_choose_for(UINT_MAX, backend->name, &named), 0);
		ck_assert_ptr_eq(named, backend);
	}
	ck_assert_int_eq(
	    backend_choose_for(CPU_AVX2, "avx512", &named), KEM_FAIL_BACKEND);
	/* The real CPU is asked, and gets its best. */
	unsetenv("MLKEMD_BACKEND");
	ck_assert_int_eq(backend_choose(NULL, &named), 0);
	ck_assert_str_eq(named->name, chosen(cpu_features(&cpu_probe_real)));
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("dispatch");
	TCase *tcase = tcase_create("dispatch");

	tcase_add_test(tcase, test_by_name);
	tcase_add_test(tcase, test_by_environment);
	tcase_add_test(tcase, test_table);
	tcase_add_test(tcase, test_system);
	tcase_add_test(tcase, test_extensions);
	tcase_add_test(tcase, test_impossible);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
