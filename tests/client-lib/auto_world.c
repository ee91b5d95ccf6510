/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "auto_world.h"

#include <check.h>
#include <stdlib.h>

struct world
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

enum auto_choice
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

	/* What holds in every world, at each point. */
	world->too_many_probes |=
	    world->n_all_probes * ROUTE_AUTO_SHARE > world->n_all_calls;
	return choice;
}

void
world_run(struct world *world, unsigned seconds)
{
	uint64_t until_us = world->now_us + (uint64_t)seconds * SECOND_US;

	while (world->now_us < until_us)
		world_call(world);
	ck_assert_msg(!world->too_many_probes, "%llu probes in %llu calls",
	    (unsigned long long)world->n_all_probes,
	    (unsigned long long)world->n_all_calls);
}

void
world_count(struct world *world)
{
	world->n_calls = world->n_daemon = world->n_probes = 0;
	world->n_switches = world->probes_took_us = 0;
	world->began_us = world->now_us;
}

unsigned
world_daemon_percent(struct world *world)
{
	world->n_calls = world->n_daemon = world->n_probes = 0;
	world_run(world, 1);
	return (unsigned)(world->n_daemon * 100 / world->n_calls);
}

struct world
world_cheap(void)
{
	return world_new(60, 9, 8000, 55);
}

struct world
world_dear(void)
{
	return world_new(116, 9, 1000, 85);
}

void
world_client_side(struct world *world, uint32_t decaps_daemon_us)
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
