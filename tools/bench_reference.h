/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_reference.h: what the same operation costs without the daemon: in this process
 * by our own kernels, and in another library (a peer program of tests/bench/peers).
 */
#ifndef MLKEMCTL_BENCH_REFERENCE_H
#define MLKEMCTL_BENCH_REFERENCE_H

#include "bench_load.h"

struct bench_reference;

/*
 * local: measure the library's route local; peer_path: start that program, or NULL.
 * *refp may be given to bench_reference_close() whatever comes back. Returns CTL_OK, or
 * an exit status after saying why.
 */
int bench_reference_open(struct ctl *ctl, enum bench_op op, bool local, char *peer_path,
    struct bench_reference **refp);

/*
 * One round: microseconds of processor time of one operation, lone; 0 for what was not
 * asked for. Returns as above.
 */
int bench_reference_round(
    struct bench_reference *ref, double *local_us, double *peer_us);

/* The peer's name, for people; NULL without one. */
const char *bench_reference_peer(const struct bench_reference *ref);

void bench_reference_close(struct bench_reference *ref); /* NULL is fine */

#endif
