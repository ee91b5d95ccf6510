/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics of mlkem-ct on values whose t is known, and its measuring on operations
 * that leak or don't by a clock of our own making; no time is looked at.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mlkem-bench/common.h"
#include "tools/mlkem-ct/leak.h"

#define NEAR(a, b) (fabs((a) - (b)) < 1e-9 * (1 + fabs((double)(b))))

static void
push_all(struct welch *welch, unsigned class, const double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		welch_push(welch, class, x[i]);
}

/*
 * By hand: means 3 and 6, variances 5/2 and 10 over n - 1, so t = -3 / sqrt(1/2 + 2).
 * The second pair has unequal sizes: means 2 and 25/4, variances 1 and 107/12.
 */
START_TEST(test_welch_known)
{
	static const double a[] = {1, 2, 3, 4, 5}, b[] = {2, 4, 6, 8, 10};
	static const double c[] = {1, 2, 3}, d[] = {3, 5, 7, 10};
	struct welch welch = {0}, unequal = {0}, swapped = {0};

	push_all(&welch, 0, a, 5);
	push_all(&welch, 1, b, 5);
	ck_assert(NEAR(welch.mean[0], 3) && NEAR(welch.mean[1], 6));
	ck_assert(NEAR(welch.m2[0], 10) && NEAR(welch.m2[1], 40));
	ck_assert(NEAR(welch_t(&welch), -3 / sqrt(2.5)));
	push_all(&unequal, 0, c, 3);
	push_all(&unequal, 1, d, 4);
	ck_assert(NEAR(welch_t(&unequal), -4.25 / sqrt(1. / 3 + 107. / 48)));
	push_all(&swapped, 1, c, 3);
	push_all(&swapped, 0, d, 4);
	ck_assert(NEAR(welch_t(&swapped), -welch_t(&unequal)));
}
END_TEST

/* One pass keeps what two passes find, far from 0 too, where squares lose all digits. */
START_TEST(test_welch_far)
{
	static const double a[] = {1, 2, 3, 4, 5}, b[] = {2, 4, 6, 8, 10};
	struct welch welch = {0};

	for (size_t i = 0; i < 5; i++) {
		welch_push(&welch, 0, 1e9 + a[i]);
		welch_push(&welch, 1, 1e9 + b[i]);
	}
	ck_assert(fabs(welch_t(&welch) + 3 / sqrt(2.5)) < 1e-5);
}
END_TEST

START_TEST(test_welch_edges)
{
	struct welch welch = {0};

	ck_assert(welch_t(&welch) == 0);
	welch_push(&welch, 0, 7);
	welch_push(&welch, 1, 7);
	ck_assert(welch_t(&welch) == 0); /* one value has no variance */
	welch_push(&welch, 0, 7);
	welch_push(&welch, 1, 7);
	ck_assert(welch_t(&welch) == 0);
	memset(&welch, 0, sizeof welch);
	for (int i = 0; i < 3; i++) {
		welch_push(&welch, 0, 7);
		welch_push(&welch, 1, 8);
	}
	ck_assert(welch_t(&welch) == -WELCH_T_MAX); /* a coarse clock that tells */
}
END_TEST

/* About normal: the sum of twelve, less their mean. */
static double
noise(uint64_t *state)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += (double)(tool_random(state) >> 11) * 0x1p-53;
	return sum;
}

/* What a machine does: a base, noise, and now and then an interrupt. */
static double
machine(uint64_t *state)
{
	double x = 1000 + 10 * noise(state);

	return tool_random(state) % 100 == 0 ? x + 30000 : x;
}

enum shape { SAME, SHIFTED, RARE, WIDER };

/* One measurement of a class; class 1 differs as the shape says. */
static double
measurement(enum shape shape, unsigned class, uint64_t *state)
{
	double x = machine(state);

	if (class && shape == SHIFTED)
		x += 2;
	if (class && shape == RARE && tool_random(state) % 50 == 0)
		x += 200; /* one in fifty is slow, as a table out of cache is */
	if (class && shape == WIDER)
		x += 10 * noise(state);
	return x;
}

static void
fill(struct stats *stats, enum shape shape, unsigned n, uint64_t seed)
{
	double sample[512];

	for (size_t i = 0; i < 512; i++)
		sample[i] = measurement(shape, i & 1, &seed);
	stats_init(stats, sample, 512);
	for (unsigned i = 0; i < n; i++) {
		unsigned class = tool_random(&seed) >> 63;

		stats_push(stats, class, measurement(shape, class, &seed));
	}
}

/* Each shape is seen, and the squares see another variance. */
START_TEST(test_shapes)
{
	static const struct {
		enum shape shape;
		double worst; /* the least |t| */
	} known[] = {{SHIFTED, 15}, {RARE, 10}, {WIDER, 15}};
	struct stats stats;
	struct stats_result worst, all, square;

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		fill(&stats, known[i].shape, 40000, 1 + i);
		stats_worst(&stats, &worst);
		stats_of(&stats, STATS_ALL, &all);
		ck_assert_msg(
		    fabs(worst.t) > known[i].worst, "shape %zu: %g", i, worst.t);
		/* In the raw times each drowns: that is what crops are for. */
		ck_assert_msg(fabs(all.t) < 4.5, "shape %zu: %g", i, all.t);
		stats_of(&stats, STATS_SQUARE, &square);
		if (known[i].shape == WIDER)
			ck_assert(fabs(square.t) > 15);
		if (known[i].shape == SHIFTED)
			ck_assert(fabs(square.t) < 6);
		if (known[i].shape == SHIFTED)
			ck_assert(worst.difference < 0 && worst.t < 0);
	}
}
END_TEST

/* The control: without a difference there is none, whatever the seed. */
START_TEST(test_no_shape)
{
	unsigned n_over = 0;

	for (uint64_t seed = 100; seed < 140; seed++) {
		struct stats stats;
		struct stats_result worst;

		fill(&stats, SAME, 10000, seed);
		stats_worst(&stats, &worst);
		ck_assert_msg(fabs(worst.t) < 6, "seed %d: %g", (int)seed, worst.t);
		n_over += fabs(worst.t) > LEAK_T;
	}
	ck_assert_uint_le(n_over, 1);
}
END_TEST

/* tau stays where it is as n grows, and tells the n that a t of 5 takes. */
START_TEST(test_tau)
{
	struct stats few, many;
	struct stats_result a, b;

	fill(&few, SHIFTED, 20000, 7);
	fill(&many, SHIFTED, 80000, 7);
	stats_of(&few, STATS_CROP + 15, &a);
	stats_of(&many, STATS_CROP + 15, &b);
	ck_assert(NEAR(a.needed, 25 / (a.tau * a.tau)));
	ck_assert(fabs(a.tau / b.tau - 1) < 0.3);
	ck_assert(fabs(fabs(b.t / a.t) - 2) < 0.6);
	fill(&few, SAME, 50, 7); /* too few to speak of */
	stats_worst(&few, &a);
	ck_assert(a.t == 0 && a.tau == 0 && a.needed == 0);
}
END_TEST

/* Limits ascend, and are of the sample. */
START_TEST(test_limits)
{
	double sample[1000];
	struct stats stats;
	char name[32];

	for (unsigned i = 0; i < 1000; i++)
		sample[i] = (i * 7919) % 1000;
	stats_init(&stats, sample, 1000);
	ck_assert(stats.limit[0] == 159 && stats.limit[3] == 500);
	ck_assert(stats.limit[STATS_N_CROPS - 1] == 999);
	for (unsigned i = 1; i < STATS_N_CROPS; i++)
		ck_assert(stats.limit[i] >= stats.limit[i - 1]);
	stats_series_name(STATS_CROP + 3, name, sizeof name);
	ck_assert_str_eq(name, "below 50.0 %");
	stats_push(&stats, 0, 500);
	stats_push(&stats, 0, 501);
	ck_assert(stats.series[STATS_CROP + 3].n[0] == 1);
	ck_assert(stats.series[STATS_CROP + 4].n[0] == 2);
	ck_assert(stats.series[STATS_ALL].n[0] == 2);
}
END_TEST

static size_t
byte_bytes(const struct subject *subject)
{
	return 1;
}

static int
byte_make(struct subject *subject, unsigned class, uint8_t *input)
{
	*input = (uint8_t) class;
	return 0;
}

static int
broken_make(struct subject *subject, unsigned class, uint8_t *input)
{
	return -1;
}

static int
spin_run(struct subject *subject)
{
	for (volatile unsigned i = 0; i < 20 + 2000u * subject->in[0]; i++)
		;
	return 0;
}

static int
even_run(struct subject *subject)
{
	for (volatile unsigned i = 0; i < 200; i++)
		;
	return 0;
}

static int
failing_run(struct subject *subject)
{
	return -7;
}

static unsigned n_lines;

static void
count_line(const struct leak_case *leak)
{
	ck_assert_uint_gt(leak->stats.n, 0);
	n_lines++;
}

static int
run_test(struct leak_case *leak, size_t (*bytes)(const struct subject *subject),
    int (*make)(struct subject *subject, unsigned class, uint8_t *input),
    int (*run)(struct subject *subject), double floor)
{
	static struct leak_test test;
	const struct leak_options options = {.set = KEM_ALG_MLKEM512,
	    .seed = 9,
	    .measurements = 8000,
	    .time_s = 60,
	    .floor = floor};
	struct kem *kem = NULL;
	int r;

	test = (struct leak_test){"unit", "", 0, 1, bytes, make, run};
	n_lines = 0;
	ck_assert_int_eq(kem_open(&kem, NULL), 0);
	leak_case_init(leak, &test, kem, &options);
	r = leak_run(leak, &options, count_line);
	kem_free(kem);
	return r;
}

/* A hundredfold difference is seen on any machine; none is not; a floor hides. */
START_TEST(test_run)
{
	struct leak_case *leak = calloc(1, sizeof *leak);

	ck_assert_int_eq(run_test(leak, byte_bytes, byte_make, spin_run, 8), 0);
	ck_assert_int_eq(leak->verdict, LEAK_SEEN);
	ck_assert_uint_eq(leak->stats.n, 8000);
	ck_assert_uint_eq(n_lines, 3); /* at 3200, 6400 and the end */
	ck_assert(leak->result.t < -LEAK_T);
	ck_assert_int_eq(run_test(leak, byte_bytes, byte_make, even_run, 1e6), 0);
	ck_assert_int_ne(leak->verdict, LEAK_SEEN);
	ck_assert_int_lt(run_test(leak, byte_bytes, broken_make, even_run, 8), 0);
	ck_assert_int_lt(run_test(leak, byte_bytes, byte_make, failing_run, 8), 0);
	leak_stop = true;
	ck_assert_int_eq(run_test(leak, byte_bytes, byte_make, spin_run, 8), 0);
	ck_assert_uint_eq(leak->stats.n, 0);
	leak_stop = false;
	free(leak);
}
END_TEST

/* Inputs come from the seed: every test makes the same again, and both classes differ. */
START_TEST(test_inputs)
{
	static _Alignas(64) struct subject subject;
	static uint8_t one[LEAK_INPUT_MAX], two[LEAK_INPUT_MAX], other[LEAK_INPUT_MAX];
	const struct leak_options options = {.set = KEM_ALG_MLKEM768, .seed = 3};
	const struct leak_test *test;
	struct leak_case *leak = calloc(1, sizeof *leak);
	struct kem *kem = NULL;

	ck_assert_int_eq(kem_open(&kem, NULL), 0);
	for (unsigned i = 0; (test = leak_test_number(i)) != NULL; i++) {
		uint8_t *const to[] = {one, two, other};
		size_t len = 0;

		if (test->flags & LEAK_SOCKET)
			continue;
		ck_assert_ptr_eq(leak_test_find(test->name), test);
		leak_case_init(leak, test, kem, &options);
		for (unsigned k = 0; k < 3; k++) {
			ck_assert_int_eq(subject_init(&subject, leak), 0);
			len = test->input_bytes(&subject);
			ck_assert_uint_gt(len, 0);
			ck_assert_uint_le(len, LEAK_INPUT_MAX);
			ck_assert_int_eq(test->make(&subject, k == 2, to[k]), 0);
			memcpy(subject.in, to[k], len);
			ck_assert_msg(test->run(&subject) == 0, "%s", test->name);
			subject_fini(&subject);
		}
		ck_assert_mem_eq(one, two, len);
		ck_assert_msg(memcmp(one, other, len) != 0, "%s", test->name);
	}
	ck_assert_ptr_null(leak_test_find("no-such-test"));
	kem_free(kem);
	free(leak);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("ct");
	TCase *tcase = tcase_create("ct");
	SRunner *runner;
	int n_failed;

	tcase_set_timeout(tcase, 120);
	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, test_welch_known);
	tcase_add_test(tcase, test_welch_far);
	tcase_add_test(tcase, test_welch_edges);
	tcase_add_test(tcase, test_shapes);
	tcase_add_test(tcase, test_no_shape);
	tcase_add_test(tcase, test_tau);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_run);
	tcase_add_test(tcase, test_inputs);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed > 0;
}
