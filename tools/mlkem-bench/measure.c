/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define SLICE_NS        500000.0
#define SLICE_CALLS_MAX (UINT64_C(1) << 32) /* of something that takes no time */
#define SLICES_MAX      4096
#define COLD_MAX        256
#define COLD_SLEEP_NS   10000000

static uint64_t
now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t
measure_now_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

uint64_t
measure_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

#if defined(__x86_64__)
const char measure_ticks_name[] = "time stamp counter";

uint64_t
measure_ticks_fenced(void)
{
	uint64_t ticks;

	__builtin_ia32_lfence();
	ticks = __builtin_ia32_rdtsc();
	__builtin_ia32_lfence();
	return ticks;
}
#else
const char measure_ticks_name[] = "CLOCK_MONOTONIC, ns";

uint64_t
measure_ticks_fenced(void)
{
	return now_ns(CLOCK_MONOTONIC);
}
#endif

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
measure_median(double *values, size_t n)
{
	qsort(values, n, sizeof values[0], compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/*
 * One slice of n calls: processor time and ticks of one call. Ticks go on while another
 * program has the CPU; that part of them is left out.
 */
static int
slice(struct measure_work *work, uint64_t n, double *ns, double *ticks)
{
	uint64_t wall = now_ns(CLOCK_MONOTONIC), start = measure_ticks();
	uint64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int r = work->run(work->ctx, n);

	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	*ticks = (double)(measure_ticks() - start);
	wall = now_ns(CLOCK_MONOTONIC) - wall;
	*ticks *= wall > cpu ? (double)cpu / (double)wall : 1;
	*ticks /= (double)n;
	*ns = (double)cpu / (double)n;
	return r;
}

int
measure_warm(struct measure_work *work, double ms)
{
	uint64_t end_ns = measure_now_ns() + (uint64_t)(ms * 1e6);
	double ns, ticks;
	int r;

	if (work->n_slice == 0)
		work->n_slice = 1;
	/* Towards a slice by doubling: one that took too long for another reason than the
	 * work is followed by others. */
	do {
		r = slice(work, work->n_slice, &ns, &ticks);
		if (r == 0 && work->n_slice < SLICE_CALLS_MAX &&
		    ns * (double)work->n_slice < SLICE_NS / 2)
			work->n_slice *= 2;
		else if (measure_now_ns() >= end_ns)
			break;
	} while (r == 0);
	return r;
}

int
measure_hot(
    struct measure_work *work, double ms, uint64_t n_calls, struct measure *result)
{
	static _Thread_local double ns[SLICES_MAX], ticks[SLICES_MAX];
	uint64_t end_ns;
	size_t n = 0;
	int r;

	r = work->n_slice == 0 && n_calls == 0 ? measure_warm(work, 0) : 0;
	end_ns = measure_now_ns() + (uint64_t)(ms * 1e6);
	while (r == 0) {
		r = slice(work, n_calls ? n_calls : work->n_slice, &ns[n], &ticks[n]);
		n++;
		if (n_calls != 0 || n == SLICES_MAX || measure_now_ns() >= end_ns)
			break;
	}
	if (r != 0)
		return r;
	result->ns = measure_median(ns, n);
	result->ticks = measure_median(ticks, n);
	return 0;
}

int
measure_cold(struct measure_work *work, unsigned n, double *nsp)
{
	const struct timespec pause = {.tv_nsec = COLD_SLEEP_NS};
	double ns[COLD_MAX];
	int r = 0;

	if (n == 0 || n > COLD_MAX)
		return -1;
	for (unsigned i = 0; r == 0 && i < n; i++) {
		uint64_t start;

		nanosleep(&pause, NULL);
		start = now_ns(CLOCK_MONOTONIC);
		r = work->run(work->ctx, 1);
		ns[i] = (double)(now_ns(CLOCK_MONOTONIC) - start);
	}
	if (r == 0)
		*nsp = measure_median(ns, n);
	return r;
}
