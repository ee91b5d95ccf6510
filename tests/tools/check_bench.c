/* SPDX-License-Identifier: Apache-2.0 */
/* What mlkem-bench counts and computes; not one time is looked at. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "tools/mlkem-bench/bench.h"

#define NEAR(a, b) (fabs((a) - (b)) < 1e-6)

/* Counted by hand: key generation is G, the matrix, noise and H(ek), and so on. */
START_TEST(test_permutations)
{
	static const struct {
		const char *op, *set;
		double n;
	} known[] = {
	    {"keygen", "512", 1 + 4 * 3.065 + 8 + 6},
	    {"encaps", "512", 6 + 1 + 4 * 3.065 + 7},
	    {"decaps", "512", 1 + 6 + 4 * 3.065 + 7},
	    {"keygen", "768", 1 + 9 * 3.065 + 6 + 9},
	    {"encaps", "768", 9 + 1 + 9 * 3.065 + 7},
	    {"decaps", "768", 1 + 9 + 9 * 3.065 + 7},
	    {"decaps-checked", "768", 1 + 9 + 9 * 3.065 + 7 + 9},
	    {"keygen", "1024", 1 + 16 * 3.065 + 8 + 12},
	    {"encaps", "1024", 12 + 1 + 16 * 3.065 + 9},
	    {"decaps", "1024", 1 + 12 + 16 * 3.065 + 9},
	    {"check-dk", "768", 9},
	    {"keccak", "-", 1},
	    {"ntt", "-", 0},
	    {"keygen", "256", 0},
	};

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		ck_assert_msg(NEAR(permutations(known[i].op, known[i].set), known[i].n),
		    "%s/%s", known[i].op, known[i].set);
}
END_TEST

START_TEST(test_median)
{
	double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};

	ck_assert(NEAR(measure_median(odd, 3), 3));
	ck_assert(NEAR(measure_median(even, 4), 2.5));
	ck_assert(NEAR(measure_median(one, 1), 7));
}
END_TEST

START_TEST(test_summary)
{
	double ns[] = {3000, 1000, 2000}, ticks[] = {30, 10, 20},
	       cold[] = {7000, 9000, 8000};
	struct row row = {.ns = ns, .ticks = ticks, .cold_ns = cold};
	struct summary s;

	row_summary(&row, 3, &s);
	ck_assert(NEAR(s.us, 2));
	ck_assert(NEAR(s.ops, 500000));
	ck_assert(NEAR(s.ticks, 20));
	ck_assert(NEAR(s.min_us, 1));
	ck_assert(NEAR(s.max_us, 3));
	ck_assert(NEAR(s.stdev_us, 1));
	ck_assert(NEAR(s.cold_us, 8));
	row_summary(&row, 1, &s);
	ck_assert(NEAR(s.us, 3));
	ck_assert(NEAR(s.stdev_us, 0));
	ck_assert(NEAR(ns[0], 3000)); /* the rounds stay in their order */
}
END_TEST

START_TEST(test_filter)
{
	static const struct {
		const char *filter;
		bool fits;
	} known[] = {
	    {"keygen", true},
	    {"keygen/768", true},
	    {"keygen/768/avx2", true},
	    {"keygen/768/avx2/8", true},
	    {"", true},
	    {"//avx2", true},
	    {"k*/7??", true},
	    {"*/*/*/*", true},
	    {"key", false},
	    {"keygen/512", false},
	    {"keygen/768/avx512", false},
	    {"keygen/768/avx2/64", false},
	    {"keygen/768/avx2/8/", false},
	    {"///1", false},
	};
	const struct row row = {
	    .op = "keygen", .set = "768", .backend = "avx2", .batch = 8};

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		char *filter = (char *)(uintptr_t)known[i].filter;
		struct bench bench = {.options = {.filters = &filter, .n_filters = 1}};

		ck_assert_msg(
		    bench_wants(&bench, &row) == known[i].fits, "%s", known[i].filter);
	}
}
END_TEST

/* A row that is only measured for the floor is not found among the failed, nor shown. */
START_TEST(test_rows)
{
	char *filter = (char *)(uintptr_t) "keygen";
	struct bench bench = {.options = {.filters = &filter, .n_filters = 1}};
	struct row row = {.op = "keygen", .set = "768", .backend = "x", .batch = 1};

	ck_assert_int_eq(bench_add(&bench, &row), 0);
	row.op = "encaps";
	ck_assert_int_eq(bench_add(&bench, &row), 0);
	ck_assert_uint_eq(bench.n_rows, 1);
	row.op = "keccak";
	row.hidden = true;
	ck_assert_int_eq(bench_add(&bench, &row), 0);
	ck_assert_uint_eq(bench.n_rows, 2);
	ck_assert(bench.rows[1].hidden);
	ck_assert_ptr_eq(bench_find(&bench, "keygen/768/x/1"), &bench.rows[0]);
	ck_assert_ptr_null(bench_find(&bench, "keygen/768/y/1"));
	bench.rows[0].failed = true;
	ck_assert_ptr_null(bench_find(&bench, "keygen/768/x/1"));
	free(bench.rows);
}
END_TEST

static int
count_calls(void *ctx, uint64_t n)
{
	*(uint64_t *)ctx += n;
	return 0;
}

static int
can_not(void *ctx, uint64_t n)
{
	return -1;
}

/* With a number of calls given, exactly those are made; a failure is passed on. */
START_TEST(test_measure)
{
	uint64_t n = 0;
	struct measure_work work = {.run = count_calls, .ctx = &n};
	struct measure_work broken = {.run = can_not};
	struct measure hot;
	double cold_ns;

	ck_assert_int_eq(measure_hot(&work, 1000, 17, &hot), 0);
	ck_assert_uint_eq(n, 17);
	ck_assert_int_eq(measure_cold(&work, 2, &cold_ns), 0);
	ck_assert_uint_eq(n, 19);
	ck_assert_int_eq(measure_hot(&work, 0.1, 0, &hot), 0);
	ck_assert_uint_gt(n, 19);
	ck_assert_int_lt(measure_warm(&broken, 0), 0);
	ck_assert_int_lt(measure_hot(&broken, 1, 0, &hot), 0);
	ck_assert_int_lt(measure_cold(&broken, 1, &cold_ns), 0);
	ck_assert_int_lt(measure_cold(&work, 0, &cold_ns), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("bench");
	TCase *tcase = tcase_create("bench");
	SRunner *runner;
	int n_failed;

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, test_permutations);
	tcase_add_test(tcase, test_median);
	tcase_add_test(tcase, test_summary);
	tcase_add_test(tcase, test_filter);
	tcase_add_test(tcase, test_rows);
	tcase_add_test(tcase, test_measure);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed > 0;
}
