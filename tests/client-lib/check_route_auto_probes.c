/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How route_auto.c learns: few probes, all at once, robust figures; and its faults. */
#include <check.h>
#include <stdlib.h>

#include "auto_world.h"

START_TEST(first_calls_are_local)
{
	struct world world = world_cheap();

	for (unsigned i = 1; i < ROUTE_AUTO_BURST * ROUTE_AUTO_SHARE; i++)
		world_call(&world);
	ck_assert_uint_eq(world.n_daemon, 0);
	ck_assert_uint_eq(world.n_probes, 0);
}
END_TEST

static bool
probes_are_few(struct world *world)
{
	*world = world_dear();
	world->pause_us = 3000;
	while (world->n_calls < 20000)
		world_call(world);
	return !world->too_many_probes;
}

START_TEST(dearer_daemon_is_probed)
{
	struct world world;

	ck_assert(probes_are_few(&world));
	world = world_dear();

	world_run(&world, 400);
	ck_assert_uint_eq(world.n_switches, 0);
	ck_assert_uint_eq(world.n_daemon, world.n_probes);
	/* Seldom, but for good: at least once in 64 s and a period's doubling. */
	ck_assert_uint_ge(world.n_probes, 400 / 68 * ROUTE_AUTO_BURST);
	ck_assert_uint_le(world.n_probes, 14 * ROUTE_AUTO_BURST);
	ck_assert_uint_lt(world.probes_took_us * 10000, world.now_us - world.began_us);
}
END_TEST

/* Bursts of all processes fall together, at whatever rate they call. */
START_TEST(bursts_fall_together)
{
	for (uint32_t pause_us = 100; pause_us <= 3000; pause_us += 700) {
		struct world world = world_dear();
		uint64_t n = 0;

		world.pause_us = pause_us;
		while (world.n_calls < 40000) {
			uint64_t at_us = world.now_us, n_before = world.n_probes;

			world_call(&world);
			if (world.n_probes == n_before ||
			    n_before % ROUTE_AUTO_BURST != 0)
				continue;
			n++;
			ck_assert_uint_lt(
			    at_us % ROUTE_AUTO_PERIOD_MIN_US, ROUTE_AUTO_WINDOW_US);
		}
		ck_assert_uint_ge(n, 2);
	}
}
END_TEST

START_TEST(few_calls_are_probed_too)
{
	struct world world = world_cheap();

	/* Ten a second: no call need ever fall into a window. */
	world.pause_us = 99947;
	for (unsigned i = 0; i < 3 * ROUTE_AUTO_BURST * ROUTE_AUTO_SHARE; i++)
		world_call(&world);
	ck_assert_int_eq(world.last, AUTO_DAEMON);
}
END_TEST

START_TEST(one_slow_probe)
{
	struct world world = world_cheap();

	/* The first probe takes 2 ms. The budget bears that, and then the rest. */
	world.slow_one_in = 1;
	world.slow_us = 2000;
	while (world.n_daemon == 0)
		world_call(&world);
	world.slow_one_in = 0;
	ck_assert_uint_eq(world.n_probes, 1);
	world_run(&world, 3);
	ck_assert_int_eq(world.last, AUTO_DAEMON);
}
END_TEST

/* Each takes the deadline: after two or three the burst is over. */
static bool
slow_probes_are_few(struct world *world)
{
	*world = world_new(2000, 9, 1000, 1900);
	world_run(world, 300);
	return world->n_probes <= 3 * (300 / 60 + 8);
}

START_TEST(all_probes_slow)
{
	struct world world;

	ck_assert(slow_probes_are_few(&world));
	ck_assert_uint_eq(world.n_switches, 0);
	ck_assert_uint_le(world.probes_took_us * ROUTE_AUTO_TIME,
	    world.now_us - world.began_us + 2000ull * ROUTE_AUTO_TIME);
	ck_assert_uint_ge(world.n_probes, 8);
}
END_TEST

START_TEST(failures_pause_longer)
{
	struct world world = world_cheap();
	struct auto_kind *kind = &world.costs.kinds[ENCAPS][0];
	bool probe;

	world_run(&world, 3);
	ck_assert_int_eq(world.last, AUTO_DAEMON);
	for (unsigned i = 0; i < 10; i++) {
		uint32_t period_us = kind->period_us;

		route_auto_learn_failure(&world.costs, ENCAPS, 1, world.now_us, 2000);
		ck_assert_uint_eq(kind->period_us,
		    period_us < ROUTE_AUTO_PERIOD_MAX_US ? period_us * 2 : period_us);
		ck_assert_int_eq(
		    route_auto_choose(&world.costs, ENCAPS, 1, world.now_us, &probe),
		    AUTO_LOCAL);
		ck_assert(!probe);
	}
}
END_TEST

/* Dear for long; a pause; then cheap. One burst is enough to see it. */
static bool
old_figures_are_forgotten(struct world *world)
{
	*world = world_new(200, 9, 1000, 190);
	world_run(world, 10);
	ck_assert_int_eq(world->last, AUTO_LOCAL);
	world->now_us += 600ull * SECOND_US;
	world->daemon_us = 60;
	world->service_us = 55;
	world->fill_milli = 8000;
	world_count(world);
	while (world->n_probes < ROUTE_AUTO_BURST && world->last == AUTO_LOCAL)
		world_call(world);
	world_call(world);
	return world->last == AUTO_DAEMON;
}

START_TEST(one_burst_is_enough)
{
	struct world world;

	ck_assert(old_figures_are_forgotten(&world));
}
END_TEST

START_TEST(clock_stands_still)
{
	struct world world = world_dear();
	bool probe;

	for (unsigned i = 0; i < 100000; i++) {
		if (route_auto_choose(&world.costs, ENCAPS, 1, 16, &probe) ==
		    AUTO_DAEMON)
			route_auto_learn_daemon(
			    &world.costs, ENCAPS, 1, 16, 0, 0, 0, 0);
		else
			route_auto_learn_local(&world.costs, ENCAPS, 1, 16, 0);
		world.n_probes += probe;
	}
	ck_assert_uint_eq(world.n_probes, 0);
}
END_TEST

START_TEST(clock_goes_back)
{
	struct world world = world_dear();

	world_run(&world, 10);
	world.now_us = 1;
	world_run(&world, 3); /* as if it stood still, until it has caught up */
	ck_assert_int_eq(world.last, AUTO_LOCAL);
	world.now_us = 30 * SECOND_US;
	world_run(&world, 10);
	ck_assert_int_eq(world.last, AUTO_LOCAL);
}
END_TEST

/* Keys that are used in the daemon all the time are no probes, and cost no budget. */
START_TEST(leases_do_not_hinder_probes)
{
	struct world world = world_dear();

	for (unsigned i = 0; i < 60000; i++) {
		world_call(&world);
		route_auto_learn_daemon(
		    &world.costs, DECAPS, 1, world.now_us, 500, 9, 1000, 480);
		route_auto_learn_local(&world.costs, DECAPS, 1, world.now_us, 48);
	}
	ck_assert_uint_ge(world.n_probes, 3 * ROUTE_AUTO_BURST);
}
END_TEST

START_TEST(below_the_floor_nobody_asks)
{
	struct world world = world_cheap();

	world.op = ROUTE_AUTO_OP(AUTO_ENCAPS, KEM_ALG_MLKEM768);
	world.local_us = 5;
	world_run(&world, 300);
	ck_assert_uint_eq(world.n_probes, 0);
}
END_TEST

/* Under UBSan nothing may overflow. */
START_TEST(huge_values)
{
	static const uint32_t huge[] = {0, 1, 999, 1000, UINT32_MAX / 2, UINT32_MAX};
	struct route_auto costs = {0};
	uint64_t now_us = 0;
	bool probe;

	srand(6);
	for (unsigned i = 0; i < 200000; i++) {
		unsigned op = (unsigned)rand() % ROUTE_AUTO_N_OPS;
		size_t n_items = (size_t)rand() % 64 + 1;

		route_auto_choose(&costs, op, n_items, now_us, &probe);
		route_auto_learn_daemon(&costs, op, n_items, now_us, huge[rand() % 6],
		    huge[rand() % 6], huge[rand() % 6], huge[rand() % 6]);
		route_auto_learn_local(&costs, op, n_items, now_us, huge[rand() % 6]);
		if (rand() % 64 == 0)
			route_auto_learn_failure(
			    &costs, op, n_items, now_us, huge[rand() % 6]);
		now_us = i == 150000 ? UINT64_MAX : now_us + huge[rand() % 6];
	}
	for (unsigned op = 0; op < ROUTE_AUTO_N_OPS; op++)
		for (size_t n_items = 1; n_items <= 64; n_items++)
			ck_assert_uint_le(
			    route_auto_cost(&costs, op, n_items, AUTO_DAEMON),
			    UINT64_C(1) << 36);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
START_TEST(planted_faults)
{
	struct world world;

	setenv("MLKEMD_FAULT", "client-auto-probe-often", 1);
	ck_assert(!probes_are_few(&world));
	setenv("MLKEMD_FAULT", "client-auto-keeps-old", 1);
	ck_assert(!old_figures_are_forgotten(&world));
	setenv("MLKEMD_FAULT", "client-auto-no-budget", 1);
	ck_assert(!slow_probes_are_few(&world));
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("route_auto_probes");
	TCase *tcase = tcase_create("route_auto_probes");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, first_calls_are_local);
	tcase_add_test(tcase, dearer_daemon_is_probed);
	tcase_add_test(tcase, bursts_fall_together);
	tcase_add_test(tcase, few_calls_are_probed_too);
	tcase_add_test(tcase, one_slow_probe);
	tcase_add_test(tcase, all_probes_slow);
	tcase_add_test(tcase, failures_pause_longer);
	tcase_add_test(tcase, one_burst_is_enough);
	tcase_add_test(tcase, clock_stands_still);
	tcase_add_test(tcase, clock_goes_back);
	tcase_add_test(tcase, leases_do_not_hinder_probes);
	tcase_add_test(tcase, below_the_floor_nobody_asks);
	tcase_add_test(tcase, huge_values);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tcase, planted_faults);
#endif
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
