/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_times.h: many durations in little memory: buckets that are 1/64 of their value
 * wide (below 64 ns one each), so that a quantile is right to 1.6 %.
 */
#ifndef MLKEMCTL_BENCH_TIMES_H
#define MLKEMCTL_BENCH_TIMES_H

#include <stdint.h>

#define BENCH_TIMES_BUCKETS 2368 /* up to 2^42 ns, more than an hour */

struct bench_times {
	uint64_t n, max_ns;
	uint32_t counts[BENCH_TIMES_BUCKETS];
};

void bench_times_add(struct bench_times *times, uint64_t ns);

/* The smallest time that at least permille / 1000 of all are not over; 0 if none. */
double bench_times_us(const struct bench_times *times, unsigned permille);

#endif
