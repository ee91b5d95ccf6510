/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>

#include "tools/bench_times.h"

static struct bench_times times;

static void
forget(void)
{
	times = (struct bench_times){0};
}

START_TEST(nothing_is_nothing)
{
	ck_assert(bench_times_us(&times, 500) == 0);
	ck_assert(bench_times_us(&times, 1000) == 0);
}
END_TEST

/* 1 to 1000 us: each quantile is known, and found to a 64th. */
START_TEST(quantiles_of_a_ramp)
{
	static const unsigned permille[] = {1, 10, 500, 900, 990, 999, 1000};

	for (unsigned us = 1; us <= 1000; us++)
		bench_times_add(&times, us * 1000u);
	for (unsigned i = 0; i < sizeof(permille) / sizeof(permille[0]); i++) {
		double got = bench_times_us(&times, permille[i]), right = permille[i];

		ck_assert_msg(got >= right && got <= right * (1 + 1.0 / 64) + 0.001,
		    "%u: %f", permille[i], got);
	}
}
END_TEST

/* The control: an order of magnitude more of one value moves the median there. */
START_TEST(the_median_follows)
{
	for (int i = 0; i < 100; i++)
		bench_times_add(&times, 5000);
	for (int i = 0; i < 1000; i++)
		bench_times_add(&times, 90000);
	ck_assert(bench_times_us(&times, 500) > 89);
	ck_assert(bench_times_us(&times, 90) < 5.2);
}
END_TEST

START_TEST(small_and_huge_values)
{
	for (uint64_t ns = 0; ns < 64; ns++) {
		forget();
		bench_times_add(&times, ns);
		ck_assert(bench_times_us(&times, 500) == (double)ns / 1000);
	}
	for (unsigned shift = 6; shift < 64; shift++) {
		forget();
		bench_times_add(&times, UINT64_C(1) << shift);
		bench_times_add(&times, UINT64_MAX);
		ck_assert(bench_times_us(&times, 1000) == (double)UINT64_MAX / 1000);
		ck_assert(bench_times_us(&times, 500) >=
			  (double)(UINT64_C(1) << (shift < 41 ? shift : 41)) / 1000);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("bench_times");
	TCase *tcase = tcase_create("bench_times");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, forget, NULL);
	tcase_add_test(tcase, nothing_is_nothing);
	tcase_add_test(tcase, quantiles_of_a_ramp);
	tcase_add_test(tcase, the_median_follows);
	tcase_add_test(tcase, small_and_huge_values);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
