/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_times.h"

#define STEP_BITS 6 /* buckets for each power of two */
#define STEPS     (1u << STEP_BITS)

static unsigned
bucket_of(uint64_t ns)
{
	unsigned exponent, bucket;

	if (ns < STEPS)
		return (unsigned)ns;
	exponent = 63 - (unsigned)__builtin_clzll(ns);
	bucket = (exponent - STEP_BITS + 1) * STEPS +
		 (unsigned)(ns >> (exponent - STEP_BITS)) % STEPS;
	return bucket < BENCH_TIMES_BUCKETS ? bucket : BENCH_TIMES_BUCKETS - 1;
}

/* The largest value that falls into it. */
static uint64_t
bucket_end(unsigned bucket)
{
	unsigned shift = bucket / STEPS;

	if (shift == 0)
		return bucket;
	return ((uint64_t)(STEPS + bucket % STEPS + 1) << (shift - 1)) - 1;
}

void
bench_times_add(struct bench_times *times, uint64_t ns)
{
	times->n++;
	if (ns > times->max_ns)
		times->max_ns = ns;
	times->counts[bucket_of(ns)]++;
}

double
bench_times_us(const struct bench_times *times, unsigned permille)
{
	uint64_t wanted = (times->n * permille + 999) / 1000, seen = 0, ns;

	for (unsigned i = 0; i < BENCH_TIMES_BUCKETS && permille < 1000; i++) {
		seen += times->counts[i];
		if (seen >= wanted && seen) {
			ns = bucket_end(i);
			return (double)(ns < times->max_ns ? ns : times->max_ns) / 1000;
		}
	}
	return (double)times->max_ns / 1000;
}
