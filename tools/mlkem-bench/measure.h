/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h: how long one call takes. Used by mlkem-bench and by the peer programs of
 * tests/bench/peers, so that all are measured by the same rule: a measurement is cut
 * into slices of about half a millisecond, of which the median counts, and the time is
 * that of the thread, so that a CPU which other programs use too tells the same.
 */
#ifndef MLKEMD_BENCH_MEASURE_H
#define MLKEMD_BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>

/* What is measured: n calls. Returns 0, or negative if it can't be done. */
struct measure_work {
	int (*run)(void *ctx, uint64_t n);
	void *ctx;
	uint64_t n_slice; /* calls a slice; 0: not known yet */
};

/* Of one call. Ticks are of the time stamp counter, 0 where there is none. */
struct measure {
	double ns, ticks;
};

/* Run for so long without measuring, and find out how many calls make a slice. */
int measure_warm(struct measure_work *work, double ms);

/* Slices for about ms, or one slice of n_calls if that isn't 0. */
int measure_hot(
    struct measure_work *work, double ms, uint64_t n_calls, struct measure *result);

/* Single calls by the clock, each after a sleep of 10 ms; the median of n. */
int measure_cold(struct measure_work *work, unsigned n, double *nsp);

uint64_t measure_now_ns(void);
uint64_t measure_ticks(void);

/*
 * A clock for what takes a few hundred cycles: everything before the call is done before
 * it is read, nothing behind has begun. Nanoseconds where there is no such counter.
 */
uint64_t measure_ticks_fenced(void);
extern const char measure_ticks_name[];

/* The median of n values, n > 0; sorts them. */
double measure_median(double *values, size_t n);

#endif
