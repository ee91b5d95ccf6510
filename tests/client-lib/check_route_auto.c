/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The choice between daemon and this process, with costs and a clock that the test
 * makes up. A world says what calls cost; world_call() makes one and lets time pass.
 */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "client-lib/route_auto.h"
#include "kem/fault.h"
#include "kem/kem.h"

#define SECOND_US 1000000u
#define ENCAPS    ROUTE_AUTO_OP(AUTO_ENCAPS, KEM_ALG_X25519MLKEM768)
#define KEYGEN    ROUTE_AUTO_OP(AUTO_KEYGEN, KEM_ALG_X25519MLKEM768)
#define DECAPS    ROUTE_AUTO_OP(AUTO_DECAPS, KEM_ALG_X25519MLKEM768)

struct world {
	struct route_auto costs;
	uint64_t now_us;
	/* What calls cost from now on. */
	unsigned op;
	size_t n_items;
	uint32_t local_us, daemon_us, own_us, fill_milli, service_us;
	uint32_t pause_us;      /* the caller's other work, a call */
	unsigned noise_percent; /* walls are off by up to this */
	unsigned slow_one_in;   /* calls of the daemon that take slow_us; 0: none */
	uint32_t slow_us;
	/* What came of it. */
	uint64_t n_calls, n_daemon, n_probes, n_switches, n_since_slow;
	uint64_t n_all_calls, n_all_probes;
	uint64_t probes_took_us; /* longer than local ones would have */
	uint64_t began_us;
	enum auto_choice last;
};

/* A hybrid encapsulation here takes 53 us; the daemon's figures are the test's. */
static struct world
world_new(uint32_t daemon_us, uint32_t own_us, uint32_t fill_milli, uint32_t service_us)
{
	return (struct world){
	    .now_us = 5 * SECOND_US,
	    .began_us = 5 * SECOND_US,
	    .op = ENCAPS,
	    .n_items = 1,
	    .local_us = 53,
	    .daemon_us = daemon_us,
	    .own_us = own_us,
	    .fill_milli = fill_milli,
	    .service_us = service_us,
	    .pause_us = 450,
	};
}

static uint32_t
with_noise(const struct world *world, uint32_t us)
{
	uint32_t range = us * world->noise_percent / 100;

	return range ? us - range + (uint32_t)rand() % (2 * range + 1) : us;
}

static uint32_t
daemon_wall(struct world *world)
{
	if (world->slow_one_in && ++world->n_since_slow >= world->slow_one_in) {
		world->n_since_slow = 0;
		return world->slow_us;
	}
	return with_noise(world, world->daemon_us);
}

static enum auto_choice
world_call(struct world *world)
{
	bool probe = false;
	enum auto_choice choice = route_auto_choose(
	    &world->costs, world->op, world->n_items, world->now_us, &probe);
	uint32_t wall;

	world->n_calls++;
	world->n_probes += probe;
	world->n_all_calls++;
	world->n_all_probes += probe;
	if (choice == AUTO_DAEMON) {
		wall = daemon_wall(world);
		world->now_us += wall;
		world->n_daemon++;
		if (probe && wall > world->local_us)
			world->probes_took_us += wall - world->local_us;
		route_auto_learn_daemon(&world->costs, world->op, world->n_items,
		    world->now_us, wall, world->own_us, world->fill_milli,
		    world->service_us);
	} else {
		wall = with_noise(world, world->local_us);
		world->now_us += wall;
		route_auto_learn_local(
		    &world->costs, world->op, world->n_items, world->now_us, wall);
	}
	world->now_us += world->pause_us;
	if (!probe && choice != world->last) {
		world->last = choice;
		world->n_switches++;
	}

	/* What holds in every world, at each point. (Check writes down each assertion.) */
	if (world->n_all_probes * ROUTE_AUTO_SHARE > world->n_all_calls)
		ck_abort_msg("%llu probes in %llu calls",
		    (unsigned long long)world->n_all_probes,
		    (unsigned long long)world->n_all_calls);
	return choice;
}

static void
world_run(struct world *world, unsigned seconds)
{
	uint64_t until_us = world->now_us + (uint64_t)seconds * SECOND_US;

	while (world->now_us < until_us)
		world_call(world);
}

/* Counts anew. */
static void
world_count(struct world *world)
{
	world->n_calls = world->n_daemon = world->n_probes = 0;
	world->n_switches = world->probes_took_us = 0;
	world->began_us = world->now_us;
}

/* Calls of the next second that go to the daemon, in percent. */
static unsigned
daemon_percent(struct world *world)
{
	world->n_calls = world->n_daemon = world->n_probes = 0;
	world_run(world, 1);
	return (unsigned)(world->n_daemon * 100 / world->n_calls);
}

/* Quick, and shared by eight: 9 + 55/8 + 8 us of processor time, 60 us held. */
static struct world
world_cheap(void)
{
	return world_new(60, 9, 8000, 55);
}

/* A batch of its own for each: 9 + 85 + 8, 116 held. */
static struct world
world_dear(void)
{
	return world_new(116, 9, 1000, 85);
}

START_TEST(first_calls_are_local)
{
	struct world world = world_cheap();

	for (unsigned i = 1; i < ROUTE_AUTO_BURST * ROUTE_AUTO_SHARE; i++)
		world_call(&world);
	ck_assert_uint_eq(world.n_daemon, 0);
	ck_assert_uint_eq(world.n_probes, 0);
}
END_TEST

START_TEST(cheaper_daemon_is_taken)
{
	struct world world = world_cheap();

	world_run(&world, 3);
	ck_assert_uint_ge(daemon_percent(&world), 99);
	world_count(&world);
	world_run(&world, 60);
	ck_assert_uint_eq(world.n_switches, 0);
	/* The local figure is kept fresh, by few calls. */
	ck_assert_uint_gt(world.n_probes, 0);
}
END_TEST

START_TEST(dearer_daemon_is_probed)
{
	struct world world = world_dear();

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
		ck_assert_uint_ge(daemon_percent(&world), 99);

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

START_TEST(near_the_border_it_stays)
{
	struct world world = world_new(60, own_for_percent(-3), 5000, 55);

	world_run(&world, 150);
	ck_assert_int_eq(world.last, AUTO_LOCAL);
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
	ck_assert_uint_ge(daemon_percent(&cheap), 99);
	world_run(&dear, 70);
	ck_assert_uint_le(daemon_percent(&dear), 1);
}
END_TEST

/* One in a thousand says nothing; one in twenty is what p99 would show. */
START_TEST(outliers)
{
	struct world world = world_cheap();

	world.slow_us = 20000;
	world.slow_one_in = 1000;
	world_run(&world, 70);
	world_count(&world);
	world_run(&world, 60);
	ck_assert_uint_ge(world.n_daemon * 100, world.n_calls * 99);

	world.slow_us = 2000;
	world.slow_one_in = 20;
	world_run(&world, 300);
	ck_assert_uint_le(daemon_percent(&world), 3);
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
START_TEST(all_probes_slow)
{
	struct world world = world_new(2000, 9, 1000, 1900);

	world_run(&world, 300);
	ck_assert_uint_eq(world.n_switches, 0);
	ck_assert_uint_le(world.probes_took_us * ROUTE_AUTO_TIME,
	    world.now_us - world.began_us + 2000ull * ROUTE_AUTO_TIME);
	ck_assert_uint_le(world.n_probes, 3 * (300 / 60 + 8));
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
START_TEST(old_figures_are_forgotten)
{
	struct world world = world_new(200, 9, 1000, 190);
	uint64_t n_probes;

	world_run(&world, 10);
	ck_assert_int_eq(world.last, AUTO_LOCAL);
	world.now_us += 600ull * SECOND_US;
	world.daemon_us = 60;
	world.service_us = 55;
	world.fill_milli = 8000;
	world_count(&world);
	n_probes = world.n_probes;
	while (world.n_probes < n_probes + ROUTE_AUTO_BURST && world.last == AUTO_LOCAL)
		world_call(&world);
	world_call(&world);
	ck_assert_int_eq(world.last, AUTO_DAEMON);
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
		    (daemon_percent(&world) >= 95) == (n < 8), "%zu items", n);
	}
	/* And the small ones have not been forgotten or changed by the large. */
	world.n_items = 1;
	world.local_us = 53;
	world.daemon_us = 60;
	world.service_us = 55;
	ck_assert_uint_ge(daemon_percent(&world), 99);
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
	ck_assert_uint_le(daemon_percent(&alone), 1);
	world_run(&full, 70);
	ck_assert_uint_ge(daemon_percent(&full), 99);
}
END_TEST

/* A program that waits, and one that spins as long: the processor's time counts. */
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
	ck_assert_uint_ge(daemon_percent(&waits), 99);
	world_run(&spins, 70);
	ck_assert_uint_le(daemon_percent(&spins), 1);
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

START_TEST(below_the_floor_nobody_asks)
{
	struct world world = world_cheap();

	world.op = ROUTE_AUTO_OP(AUTO_ENCAPS, KEM_ALG_MLKEM768);
	world.local_us = 5;
	world_run(&world, 300);
	ck_assert_uint_eq(world.n_probes, 0);
}
END_TEST

/* Key generation here is a copy from the pool; what the key is for is not. */
static void
client_side(struct world *world, uint32_t decaps_daemon_us)
{
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t n_before = world->n_daemon;
		uint32_t keygen_us = world->daemon_us;
		bool in_daemon;

		world->op = KEYGEN;
		world->local_us = 8;
		in_daemon = world_call(world) == AUTO_DAEMON;
		world->n_daemon = n_before;

		/* No choice: the key lives where it was made. */
		if (in_daemon)
			route_auto_learn_daemon(&world->costs, DECAPS, 1, world->now_us,
			    decaps_daemon_us, 9, world->fill_milli,
			    decaps_daemon_us - 5);
		else
			route_auto_learn_local(
			    &world->costs, DECAPS, 1, world->now_us, 48);
		world->now_us += in_daemon ? decaps_daemon_us : 48;
		world->daemon_us = keygen_us;
	}
}

START_TEST(keygen_is_judged_with_its_use)
{
	/* Key generation alone is dearer in the daemon; with its use it is not. */
	struct world cheap = world_new(15, 5, 8000, 12);
	struct world dear = world_new(15, 5, 8000, 12);

	client_side(&cheap, 35);
	ck_assert_int_eq(cheap.last, AUTO_DAEMON);
	client_side(&dear, 200);
	ck_assert_int_eq(dear.last, AUTO_LOCAL);
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

/* Their use came late twice: keys are made here again. */
START_TEST(late_use_is_refused)
{
	struct world world = world_new(15, 5, 8000, 12);

	client_side(&world, 35);
	ck_assert_int_eq(world.last, AUTO_DAEMON);
	for (unsigned i = 0; i < 2; i++)
		route_auto_learn_daemon(
		    &world.costs, DECAPS, 1, world.now_us, 2000, 9, 8000, 30);
	world.op = KEYGEN;
	world.local_us = 8;
	ck_assert_int_eq(world_call(&world), AUTO_LOCAL);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("route_auto");
	TCase *tcase = tcase_create("choice");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, first_calls_are_local);
	tcase_add_test(tcase, cheaper_daemon_is_taken);
	tcase_add_test(tcase, dearer_daemon_is_probed);
	tcase_add_test(tcase, bursts_fall_together);
	tcase_add_test(tcase, few_calls_are_probed_too);
	tcase_add_test(tcase, change_is_followed);
	tcase_add_test(tcase, local_change_is_followed);
	tcase_add_test(tcase, noise_does_not_flap);
	tcase_add_test(tcase, near_the_border_it_stays);
	tcase_add_test(tcase, noisy_figures_choose_right);
	tcase_add_test(tcase, outliers);
	tcase_add_test(tcase, one_slow_probe);
	tcase_add_test(tcase, all_probes_slow);
	tcase_add_test(tcase, failures_pause_longer);
	tcase_add_test(tcase, old_figures_are_forgotten);
	tcase_add_test(tcase, clock_stands_still);
	tcase_add_test(tcase, clock_goes_back);
	tcase_add_test(tcase, huge_values);
	tcase_add_test(tcase, sizes_are_apart);
	tcase_add_test(tcase, large_requests_are_several_batches);
	tcase_add_test(tcase, fill_decides);
	tcase_add_test(tcase, never_far_from_the_better);
	tcase_add_test(tcase, spinning_is_charged);
	tcase_add_test(tcase, own_cpu_is_sampled);
	tcase_add_test(tcase, below_the_floor_nobody_asks);
	tcase_add_test(tcase, keygen_is_judged_with_its_use);
	tcase_add_test(tcase, leases_do_not_hinder_probes);
	tcase_add_test(tcase, late_use_is_refused);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
