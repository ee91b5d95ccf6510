/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h: whether two classes of measurements have the same mean, asked again after
 * every measurement and with no memory of the single ones (Reparaz, Balasch,
 * Verbauwhede: "Dude, is my code constant time?", 2017, section 3.3).
 *
 * A time is a small number that the code makes and a long tail that the machine makes.
 * So the test is made once with all of them and once for each crop: only those below a
 * limit, taken from a first sample of both classes together, so that the crop itself
 * prefers none. One more test compares the variances.
 */
#ifndef MLKEMD_CT_STATS_H
#define MLKEMD_CT_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Welford's: n, mean and the sum of squared distances from it, of each class. */
struct welch {
	double n[2], mean[2], m2[2];
};

void welch_push(struct welch *welch, unsigned class, double x);

/*
 * Welch's t: positive where class 0 is greater; 0 where a class has less than two
 * values, or all are the same. Never more than WELCH_T_MAX from 0: without any variance
 * the classes are as different as can be told.
 */
#define WELCH_T_MAX 1e6
double welch_t(const struct welch *welch);

enum { STATS_ALL, STATS_CROP, STATS_N_CROPS = 40 };
enum { STATS_SQUARE = STATS_CROP + STATS_N_CROPS, STATS_N_SERIES };

/* A series with fewer values of a class says nothing yet. */
#define STATS_ENOUGH 100

struct stats {
	uint64_t n;
	double limit[STATS_N_CROPS]; /* ascending */
	struct welch series[STATS_N_SERIES];
};

/* Starts anew; limits are taken from sample, which is sorted. n > 0. */
void stats_init(struct stats *stats, double *sample, size_t n);
void stats_push(struct stats *stats, unsigned class, double x);

/*
 * What one series, or the one furthest from 0, comes to. tau = t / sqrt(n) does not grow
 * with n; needed = (5 / tau)^2 is the n at which t would be 5. difference is that of the
 * means, of class 0 less class 1.
 */
struct stats_result {
	unsigned series;
	double t, tau, needed; /* needed 0: tau is 0, no n is enough */
	double difference;
};
void stats_of(const struct stats *stats, unsigned series, struct stats_result *result);
void stats_worst(const struct stats *stats, struct stats_result *result);

/* "all", "below 84.1 %", "squares". */
void stats_series_name(unsigned series, char *name, size_t size);

#endif
