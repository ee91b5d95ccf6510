/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_load.h: a load on the daemon's socket: connections that keep a number of
 * requests in flight (a closed loop), or requests that come at a rate whether answers
 * come or not (an open loop, whose times run from when a request was due). One thread,
 * and no client library: what is measured is the daemon.
 */
#ifndef MLKEMCTL_BENCH_LOAD_H
#define MLKEMCTL_BENCH_LOAD_H

#include "bench_times.h"
#include "ctl.h"

#define BENCH_CONNECTIONS_MAX 4096
#define BENCH_IN_FLIGHT_MAX   64

enum bench_op {
	BENCH_ENCAPS, /* what a TLS server asks for */
	BENCH_CLIENT, /* key generation, then decapsulation with that key */
	BENCH_MIX,    /* one of either in turn */
	BENCH_N_OPS,
};

struct bench_plan {
	enum bench_op op;
	unsigned connections;
	unsigned in_flight; /* requests of each connection */
	unsigned items;     /* of each request */
	double rate;        /* requests a second in all; 0: a closed loop */
	uint32_t idle_us;   /* a closed loop's pause after each answer */
	uint32_t spin_us;   /* looks for an answer so long before it sleeps */
};

struct bench_result {
	uint64_t n_requests, n_items; /* answered OK */
	uint64_t n_failed;            /* items answered with a status */
	uint64_t wall_ns, cpu_ns;     /* cpu: of this program */
	char first_failure[256];
	struct bench_times times; /* of requests */
};

struct bench_load;

/*
 * Connects. The plan is copied. Returns CTL_OK, or an exit status after saying why;
 * *loadp is the caller's, to be given to bench_load_close().
 */
int bench_load_open(
    struct ctl *ctl, const struct bench_plan *plan, struct bench_load **loadp);

/*
 * Runs for so long, and until what is in flight has been answered; adds to *result.
 * Returns as above: a request that fails is counted, a connection that does fails all.
 */
int bench_load_run(
    struct bench_load *load, uint64_t duration_ns, struct bench_result *result);

void bench_load_close(struct bench_load *load); /* NULL is fine */

#endif
