/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How long to look before sleeping, with waits that are made up. */
#include <check.h>
#include <stdlib.h>

#include "client-lib/spin.h"

/*
 * n waits at a daemon that answers after answer_us; being woken takes wakeup_us more.
 * Returns the time spent on looking in vain.
 */
static uint64_t
waits(struct spin *spin, unsigned n, uint32_t answer_us, uint32_t wakeup_us)
{
	uint64_t in_vain = 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t budget = spin_budget_us(spin, 4);
		bool hit = budget >= answer_us && budget != 0;

		ck_assert_uint_le(budget, SPIN_CAP_US);
		in_vain += hit ? 0 : budget;
		spin_learn(spin, budget, hit ? answer_us : answer_us + wakeup_us, hit);
	}
	return in_vain;
}

START_TEST(one_processor_never_looks)
{
	struct spin spin = {0};

	for (int i = 0; i < 1000; i++) {
		ck_assert_uint_eq(spin_budget_us(&spin, i % 2), 0);
		spin_learn(&spin, 0, 30, false);
	}
}
END_TEST

START_TEST(first_calls_measure)
{
	struct spin spin = {0};

	for (int i = 0; i < SPIN_MEASURE; i++) {
		ck_assert_uint_eq(spin_budget_us(&spin, 2), 0);
		/* one was delayed by something else */
		spin_learn(&spin, 0, i == 3 ? 5000 : 25, false);
	}
	ck_assert_uint_eq(spin_wakeup_us(&spin), 0);
	for (int i = 0; i < SPIN_MEASURE; i++) {
		ck_assert_uint_eq(spin_budget_us(&spin, 2), SPIN_CAP_US);
		spin_learn(&spin, SPIN_CAP_US, i == 5 ? 9000 : 12, i != 5);
	}
	ck_assert_uint_eq(spin_wakeup_us(&spin), 13);
	ck_assert_uint_eq(spin_budget_us(&spin, 2), 13);
}
END_TEST

START_TEST(cap_holds)
{
	struct spin spin = {0};

	waits(&spin, 1000, 5, 500);
	ck_assert_uint_eq(spin_wakeup_us(&spin), SPIN_CAP_US);
	ck_assert_uint_eq(spin_budget_us(&spin, 4), SPIN_CAP_US);
}
END_TEST

START_TEST(answers_that_take_longer_are_slept_for)
{
	struct spin spin = {0};

	waits(&spin, 200, 5, 15);
	ck_assert_uint_eq(spin_budget_us(&spin, 4), 15);
	/*
	 * The daemon is slower now: looking is soon given up, but for a try now and
	 * then.
	 */
	ck_assert_uint_lt(waits(&spin, 6400, 100, 15), 15 * (20 + 6400 / SPIN_TRY + 1));
	/* It is quick again, and that is found. */
	waits(&spin, SPIN_TRY + 40, 5, 15);
	ck_assert_uint_eq(spin_budget_us(&spin, 4), 15);
}
END_TEST

START_TEST(a_wakeup_that_costs_nothing_is_slept_for)
{
	struct spin spin = {0};

	waits(&spin, 3 * SPIN_MEASURE, 5, 0);
	ck_assert_uint_eq(spin_budget_us(&spin, 4), 0);
	ck_assert_uint_eq(waits(&spin, 1000, 5, 0), 0);
}
END_TEST

/* What was found at first is not believed for ever. */
START_TEST(measured_anew_at_times)
{
	struct spin spin = {0};

	waits(&spin, 3 * SPIN_MEASURE, 5, 0);
	waits(&spin, SPIN_AGAIN + 4 * SPIN_MEASURE, 5, 10);
	ck_assert_uint_eq(spin_budget_us(&spin, 4), 10);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("spin");
	TCase *tc = tcase_create("spin");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, one_processor_never_looks);
	tcase_add_test(tc, first_calls_measure);
	tcase_add_test(tc, cap_holds);
	tcase_add_test(tc, answers_that_take_longer_are_slept_for);
	tcase_add_test(tc, a_wakeup_that_costs_nothing_is_slept_for);
	tcase_add_test(tc, measured_anew_at_times);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
