/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which of daemon and process route_auto.c takes, with costs and a clock made up. */
#include <check.h>
#include <stdlib.h>

#include "auto_world.h"

START_TEST(cheaper_daemon_is_taken)
{
	struct world world = world_cheap();

	world_run(&world, 3);
	ck_assert_uint_ge(world_daemon_percent(&world), 99);
	world_count(&world);
	world_run(&world, 60);
	ck_assert_uint_eq(world.n_switches, 0);
	/* The local figure is kept fresh, by few calls. */
	ck_assert_uint_gt(world.n_probes, 0);
}
END_TEST

START_TEST(change_is_followed)
{
	struct world world = world_dear();

	world_run(&world, 20);
	for (unsigned round = 0; round < 2; round++) {
		struct world cheap = world_cheap(), dear = world_dear();

		world.daemon_us = cheap.daemon_us;
		world.fill_milli = cheap.fill_milli;
		world.service_us = cheap.service_us;
		world_run(&world, 2 * (ROUTE_AUTO_PERIOD_MAX_US >> 20));
		ck_assert_uint_ge(world_daemon_percent(&world), 99);

		/* Back within a hundred calls. */
		world.daemon_us = dear.daemon_us;
		world.fill_milli = dear.fill_milli;
		world.service_us = dear.service_us;
		world.n_calls = world.n_daemon = world.n_probes = 0;
		for (unsigned i = 0; i < 100; i++)
			world_call(&world);
		ck_assert_int_eq(world.last, AUTO_LOCAL);
	}
}
END_TEST

START_TEST(local_change_is_followed)
{
	struct world world = world_cheap();

	world_run(&world, 3);
	ck_assert_int_eq(world.last, AUTO_DAEMON);
	world.local_us = 15;
	world_run(&world, 5);
	ck_assert_int_eq(world.last, AUTO_LOCAL);
}
END_TEST

/* About the same cost: no matter which, but not to and fro. */
START_TEST(noise_does_not_flap)
{
	struct world world = world_new(60, 9, 4000, 50);

	srand(4);
	world.noise_percent = 60;
	world.own_us =
	    24; /* 44.5 of processor time, 30 and its deviation for waiting */
	world_run(&world, 300);
	ck_assert_uint_le(world.n_switches, 12);
}
END_TEST

/* A daemon that is dearer by so many percent; cost as the header has it. */
static uint32_t
own_for_percent(int percent)
{
	int local = 53 + 53 / ROUTE_AUTO_HELD_DIVISOR;
	int held = 60 / ROUTE_AUTO_HELD_DIVISOR, socket = ROUTE_AUTO_SOCKET_US;

	return (uint32_t)(local * (100 + percent) / 100 - held - socket - 55 / 5);
}

static bool
little_is_not_enough(struct world *world)
{
	*world = world_new(60, own_for_percent(-3), 5000, 55);
	world_run(world, 150);
	return world->last == AUTO_LOCAL;
}

START_TEST(near_the_border_it_stays)
{
	struct world world;

	ck_assert(little_is_not_enough(&world));
	world.own_us = own_for_percent(-10);
	world_run(&world, 150);
	ck_assert_int_eq(world.last, AUTO_DAEMON);
	world.own_us = own_for_percent(3);
	world_run(&world, 20);
	ck_assert_int_eq(world.last, AUTO_DAEMON);
	world.own_us = own_for_percent(10);
	world_run(&world, 20);
	ck_assert_int_eq(world.last, AUTO_LOCAL);
}
END_TEST

START_TEST(noisy_figures_choose_right)
{
	struct world cheap = world_cheap(), dear = world_dear();

	srand(5);
	cheap.noise_percent = dear.noise_percent = 40;
	world_run(&cheap, 70);
	ck_assert_uint_ge(world_daemon_percent(&cheap), 99);
	world_run(&dear, 70);
	ck_assert_uint_le(world_daemon_percent(&dear), 1);
}
END_TEST

/* One in a thousand says nothing; one in twenty is what p99 would show. */
static bool
rare_outliers_are_borne(struct world *world)
{
	*world = world_cheap();
	world->slow_us = 20000;
	world->slow_one_in = 1000;
	world_run(world, 70);
	world_count(world);
	world_run(world, 60);
	return world->n_daemon * 100 >= world->n_calls * 99;
}

START_TEST(outliers)
{
	struct world world;

	ck_assert(rare_outliers_are_borne(&world));

	world.slow_us = 2000;
	world.slow_one_in = 20;
	world_run(&world, 300);
	ck_assert_uint_le(world_daemon_percent(&world), 3);
}
END_TEST

/* What a batch of n costs here is told apart from what single calls do. */
START_TEST(sizes_are_apart)
{
	struct world world = world_cheap();

	for (size_t n = 1; n <= 64; n++) {
		world.n_items = n;
		world.local_us = n < 8 ? 53 * (uint32_t)n : 10 * (uint32_t)n;
		world.daemon_us = n < 8 ? 60 : 30 + 10 * (uint32_t)n;
		world.service_us = n < 8 ? 55 : 25 + 10 * (uint32_t)n;
		world_run(&world, 4);
		ck_assert_msg(
		    (world_daemon_percent(&world) >= 95) == (n < 8), "%zu items", n);
	}
	/* And the small ones have not been forgotten or changed by the large. */
	world.n_items = 1;
	world.local_us = 53;
	world.daemon_us = 60;
	world.service_us = 55;
	ck_assert_uint_ge(world_daemon_percent(&world), 99);
}
END_TEST

START_TEST(large_requests_are_several_batches)
{
	struct route_auto costs = {0};

	/* 64 items of eight batches, 320 us: that is what it cost, not 64/8 of it. */
	for (unsigned i = 0; i < 20; i++)
		route_auto_learn_daemon(
		    &costs, ENCAPS, 64, 1000 + i, 400, 10, 8000, 320);
	ck_assert_uint_eq(route_auto_cost(&costs, ENCAPS, 64, AUTO_DAEMON),
	    (10 + 320 + ROUTE_AUTO_SOCKET_US) * 256 / 64 +
		400 * 256 / 64 / ROUTE_AUTO_HELD_DIVISOR);
}
END_TEST

/* The same time, in a batch of one and in one of eight. */
START_TEST(fill_decides)
{
	struct world alone = world_new(70, 9, 1000, 60);
	struct world full = world_new(70, 9, 8000, 60);

	world_run(&alone, 70);
	ck_assert_uint_le(world_daemon_percent(&alone), 1);
	world_run(&full, 70);
	ck_assert_uint_ge(world_daemon_percent(&full), 99);
}
END_TEST

/* What is given away, of a handshake that costs 240 us beside, over many daemons. */
START_TEST(never_far_from_the_better)
{
	const uint32_t own_us = 12;

	for (uint32_t fill = 1; fill <= 8; fill++) {
		for (uint32_t work_us = 40; work_us <= 80; work_us += 10) {
			uint32_t held_us = work_us + 40;
			uint32_t cpu_us =
			    own_us + work_us / fill + ROUTE_AUTO_SOCKET_US;
			struct world world =
			    world_new(held_us, own_us, fill * 1000, work_us);
			uint32_t better = cpu_us < 53 ? cpu_us : 53, chosen;

			world_run(&world, 40);
			chosen = world.last == AUTO_DAEMON ? cpu_us : 53;
			ck_assert_msg((240 + chosen) * 100 <= (240 + better) * 105,
			    "fill %u, %u us: %u where %u could be had", fill, work_us,
			    chosen, better);
		}
	}
}
END_TEST

START_TEST(spinning_is_charged)
{
	struct world waits = world_new(70, 9, 8000, 60);
	struct world spins = world_new(70, 70, 8000, 60);

	world_run(&waits, 70);
	ck_assert_uint_ge(world_daemon_percent(&waits), 99);
	world_run(&spins, 70);
	ck_assert_uint_le(world_daemon_percent(&spins), 1);
}
END_TEST

/* Measured in one call of 16 alone, it still is what it is. */
START_TEST(own_cpu_is_sampled)
{
	struct route_auto costs = {0};
	uint64_t cost;

	for (unsigned i = 0; i < 1000; i++)
		route_auto_learn_daemon(&costs, ENCAPS, 1, 1000 + i, 60,
		    i % 16 == 5 ? 50 : UINT32_MAX, 8000, 40);
	cost = (50 + 40 / 8 + ROUTE_AUTO_SOCKET_US) * 256 +
	       60 * 256 / ROUTE_AUTO_HELD_DIVISOR;
	ck_assert_uint_eq(route_auto_cost(&costs, ENCAPS, 1, AUTO_DAEMON), cost);
}
END_TEST

START_TEST(keygen_is_judged_with_its_use)
{
	/* Key generation alone is dearer in the daemon; with its use it is not. */
	struct world cheap = world_new(15, 5, 8000, 12);
	struct world dear = world_new(15, 5, 8000, 12);

	world_client_side(&cheap, 35);
	ck_assert_int_eq(cheap.last, AUTO_DAEMON);
	world_client_side(&dear, 200);
	ck_assert_int_eq(dear.last, AUTO_LOCAL);
}
END_TEST

/* Their use came late twice: keys are made here again. */
START_TEST(late_use_is_refused)
{
	struct world world = world_new(15, 5, 8000, 12);

	world_client_side(&world, 35);
	ck_assert_int_eq(world.last, AUTO_DAEMON);
	for (unsigned i = 0; i < 2; i++)
		route_auto_learn_daemon(
		    &world.costs, DECAPS, 1, world.now_us, 2000, 9, 8000, 30);
	world.op = KEYGEN;
	world.local_us = 8;
	ck_assert_int_eq(world_call(&world), AUTO_LOCAL);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
START_TEST(planted_faults)
{
	struct world world;

	setenv("MLKEMD_FAULT", "client-auto-no-clip", 1);
	ck_assert(!rare_outliers_are_borne(&world));
	setenv("MLKEMD_FAULT", "client-auto-no-hysteresis", 1);
	ck_assert(!little_is_not_enough(&world));
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("route_auto");
	TCase *tcase = tcase_create("route_auto");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, cheaper_daemon_is_taken);
	tcase_add_test(tcase, change_is_followed);
	tcase_add_test(tcase, local_change_is_followed);
	tcase_add_test(tcase, noise_does_not_flap);
	tcase_add_test(tcase, near_the_border_it_stays);
	tcase_add_test(tcase, noisy_figures_choose_right);
	tcase_add_test(tcase, outliers);
	tcase_add_test(tcase, sizes_are_apart);
	tcase_add_test(tcase, large_requests_are_several_batches);
	tcase_add_test(tcase, fill_decides);
	tcase_add_test(tcase, never_far_from_the_better);
	tcase_add_test(tcase, spinning_is_charged);
	tcase_add_test(tcase, own_cpu_is_sampled);
	tcase_add_test(tcase, keygen_is_judged_with_its_use);
	tcase_add_test(tcase, late_use_is_refused);
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
