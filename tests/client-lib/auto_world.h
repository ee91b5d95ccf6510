/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * auto_world.h: a daemon and a process whose calls cost what a test says, and a clock
 * that goes by these costs, for route_auto.c. world_call() makes one call and lets time
 * pass; world_run() makes calls for a while, and fails if too many were probes.
 */
#ifndef TESTS_CLIENT_LIB_AUTO_WORLD_H
#define TESTS_CLIENT_LIB_AUTO_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-lib/route_auto.h"
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
	bool too_many_probes;
};

/* A hybrid encapsulation here takes 53 us; the daemon's figures are the test's. */
struct world world_new(
    uint32_t daemon_us, uint32_t own_us, uint32_t fill_milli, uint32_t service_us);
/* Quick, and shared by eight: 9 + 55/8 + 8 us of processor time, 60 us held. */
struct world world_cheap(void);
/* A batch of its own for each: 9 + 85 + 8, 116 held. */
struct world world_dear(void);

enum auto_choice world_call(struct world *world);
void world_run(struct world *world, unsigned seconds);
void world_count(struct world *world); /* anew; all calls and probes go on */
/* Calls of the next second that go to the daemon, in percent. */
unsigned world_daemon_percent(struct world *world);
/*
 * 100 000 keys made and used, the use taking so long in the daemon. Key generation here
 * is a copy from the pool; what the key is for is not.
 */
void world_client_side(struct world *world, uint32_t decaps_daemon_us);

#endif
