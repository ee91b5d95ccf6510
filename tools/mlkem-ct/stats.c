/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Squares are of the lower 96.9 %, and centred on those before: of a tail they are noise. */
#define SQUARE_CROP 19

void
welch_push(struct welch *welch, unsigned class, double x)
{
	double delta = x - welch->mean[class];

	welch->n[class]++;
	welch->mean[class] += delta / welch->n[class];
	welch->m2[class] += delta * (x - welch->mean[class]);
}

double
welch_t(const struct welch *welch)
{
	double difference = welch->mean[0] - welch->mean[1], error = 0, t;

	for (unsigned class = 0; class < 2; class ++) {
		double n = welch->n[class];

		if (n < 2)
			return 0;
		error += welch->m2[class] / (n - 1) / n;
	}
	if (difference == 0)
		return 0;
	t = error > 0 ? difference / sqrt(error) : copysign(INFINITY, difference);
	return fabs(t) < WELCH_T_MAX ? t : copysign(WELCH_T_MAX, t);
}

/* The share of measurements below a limit: from 16 % to 99.9 %, closer to the end. */
static double
crop_share(unsigned crop)
{
	return 1 - exp2(-(double)(crop + 1) / 4);
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void
stats_init(struct stats *stats, double *sample, size_t n)
{
	memset(stats, 0, sizeof *stats);
	qsort(sample, n, sizeof sample[0], compare_doubles);
	for (unsigned crop = 0; crop < STATS_N_CROPS; crop++)
		stats->limit[crop] = sample[(size_t)(crop_share(crop) * (double)n)];
}

void
stats_push(struct stats *stats, unsigned class, double x)
{
	const struct welch *centre = &stats->series[STATS_CROP + SQUARE_CROP];
	double distance = x - centre->mean[class];

	stats->n++;
	if (x <= stats->limit[SQUARE_CROP] && centre->n[class] >= STATS_ENOUGH)
		welch_push(&stats->series[STATS_SQUARE], class, distance * distance);
	welch_push(&stats->series[STATS_ALL], class, x);
	for (unsigned crop = STATS_N_CROPS; crop-- > 0;) {
		if (x > stats->limit[crop])
			break;
		welch_push(&stats->series[STATS_CROP + crop], class, x);
	}
}

void
stats_of(const struct stats *stats, unsigned series, struct stats_result *result)
{
	const struct welch *welch = &stats->series[series];

	*result = (struct stats_result){.series = series};
	if (welch->n[0] < STATS_ENOUGH || welch->n[1] < STATS_ENOUGH)
		return;
	result->difference = welch->mean[0] - welch->mean[1];
	result->t = welch_t(welch);
	result->tau = result->t / sqrt(welch->n[0] + welch->n[1]);
	if (result->tau != 0)
		result->needed = 25 / (result->tau * result->tau);
}

void
stats_worst(const struct stats *stats, struct stats_result *result)
{
	struct stats_result one;

	stats_of(stats, 0, result);
	for (unsigned series = 1; series < STATS_N_SERIES; series++) {
		stats_of(stats, series, &one);
		if (fabs(one.t) > fabs(result->t))
			*result = one;
	}
}

void
stats_series_name(unsigned series, char *name, size_t size)
{
	if (series == STATS_ALL)
		snprintf(name, size, "all");
	else if (series == STATS_SQUARE)
		snprintf(name, size, "squares");
	else
		snprintf(
		    name, size, "below %.1f %%", 100 * crop_share(series - STATS_CROP));
}
