/* SPDX-License-Identifier: Apache-2.0 */
/* selftest.c: it passes, and a backend with one wrong kernel does not get past it. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kem/arch/backend.h"
#include "tests/kem/kemtest.h"

START_TEST(test_passes)
{
	const char *step = "unset";
	struct timespec start, end;
	double ms, best = 1e9;

	for (int i = 0; i < 5; i++) {
		clock_gettime(CLOCK_MONOTONIC, &start);
		ck_assert_int_eq(kem_selftest(test_kem(), test_scratch(), &step), 0);
		clock_gettime(CLOCK_MONOTONIC, &end);
		ck_assert_ptr_null(step);
		ms = (double)(end.tv_sec - start.tv_sec) * 1e3 +
		     (double)(end.tv_nsec - start.tv_nsec) / 1e6;
		best = ms < best ? ms : best;
	}
	printf("self-test: %.2f ms\n", best);
	ck_assert(test_is_zero(test_scratch(), 8192));
}
END_TEST

/* What a wrong kernel is replaced by; each stands for a fault that others had. */
static void
select_nothing(
    uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask)
{
	(void)a, (void)mask;
	memmove(out, b, len);
}

static void
select_all(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask)
{
	(void)b, (void)mask;
	memmove(out, a, len);
}

static uint64_t
compare_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
	(void)a, (void)b, (void)len;
	return 0;
}

static uint64_t
compare_different(const uint8_t *a, const uint8_t *b, size_t len)
{
	(void)a, (void)b, (void)len;
	return 1;
}

static void
compress_wrong(uint8_t *out, const int16_t *a)
{
	_Alignas(64) int16_t copy[MLKEM_N];

	memcpy(copy, a, sizeof(copy));
	copy[255] = (int16_t)(copy[255] + 1000);
	test_backend()->compress[COMPRESS_4](out, copy);
}

static void
decompress_wrong(int16_t *r, const uint8_t *in)
{
	test_backend()->decompress[COMPRESS_5](r, in);
	for (int i = 0; i < MLKEM_N; i++)
		r[i] = 0;
}

static void
cbd_wrong(int16_t *r, const uint8_t *buf)
{
	test_backend()->cbd2(r, buf);
	r[255] = (int16_t)-r[255];
	r[254] = 1;
}

static void
failed_step(const struct backend *backend, const char *expected)
{
	struct kem *kem = NULL;
	const char *step = NULL;

	ck_assert_int_eq(kem_open_with(&kem, backend), 0);
	ck_assert_int_eq(kem_selftest(kem, test_scratch(), &step), KEM_FAIL_SELFTEST);
	ck_assert_ptr_nonnull(step);
	ck_assert_str_eq(step, expected);
	kem_free(kem);
}

START_TEST(test_wrong_kernels)
{
	struct backend b = *test_backend();

	b.cbd2 = cbd_wrong;
	failed_step(&b, "keygen");
	b = *test_backend();
	b.compress[COMPRESS_4] = compress_wrong;
	failed_step(&b, "encaps");
	b = *test_backend();
	b.decompress[COMPRESS_5] = decompress_wrong;
	failed_step(&b, "decaps");
	b = *test_backend();
	b.compare = compare_equal;
	failed_step(&b, "reject");
	b = *test_backend();
	b.compare = compare_different;
	failed_step(&b, "decaps");
}
END_TEST

/* A selection that does nothing is caught by accept or by reject, never by none. */
START_TEST(test_selection_that_selects_nothing)
{
	struct backend b = *test_backend();
	struct kem *kem = NULL;
	const char *step = NULL;

	for (int i = 0; i < 2; i++) {
		b.select = i ? select_all : select_nothing;
		ck_assert_int_eq(kem_open_with(&kem, &b), 0);
		ck_assert_int_eq(
		    kem_selftest(kem, test_scratch(), &step), KEM_FAIL_SELFTEST);
		ck_assert(strcmp(step, "decaps") == 0 || strcmp(step, "reject") == 0);
		kem_free(kem);
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("selftest");
	TCase *tc = tcase_create("selftest");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_passes);
	tcase_add_test(tc, test_wrong_kernels);
	tcase_add_test(tc, test_selection_that_selects_nothing);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
