/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* OP[/SET[/BACKEND[/BATCH]]], each a pattern; what is left out or empty fits all. */
static bool
filter_fits(const char *filter, const struct row *row)
{
	char batch[16], pattern[64];
	const char *fields[] = {row->op, row->set, row->backend, batch};

	snprintf(batch, sizeof batch, "%u", row->batch);
	for (size_t i = 0; i < sizeof fields / sizeof fields[0] && filter; i++) {
		const char *slash = strchr(filter, '/');
		size_t len = slash ? (size_t)(slash - filter) : strlen(filter);

		if (len >= sizeof pattern)
			return false;
		memcpy(pattern, filter, len);
		pattern[len] = '\0';
		if (len > 0 && fnmatch(pattern, fields[i], 0) != 0)
			return false;
		filter = slash ? slash + 1 : NULL;
	}
	return filter == NULL;
}

bool
bench_wants(const struct bench *bench, const struct row *row)
{
	if (bench->options.n_filters == 0)
		return true;
	for (unsigned i = 0; i < bench->options.n_filters; i++) {
		if (filter_fits(bench->options.filters[i], row))
			return true;
	}
	return false;
}

int
bench_add(struct bench *bench, const struct row *row)
{
	size_t n_max = bench->n_rows_max ? bench->n_rows_max * 2 : 64;
	struct row *rows = bench->rows;

	if (!bench_wants(bench, row) && !row->hidden)
		return 0;
	if (bench->n_rows == bench->n_rows_max) {
		rows = realloc(rows, n_max * sizeof rows[0]);
		if (!rows)
			return tool_fail("no memory");
		bench->rows = rows;
		bench->n_rows_max = n_max;
	}
	rows[bench->n_rows] = *row;
	rows[bench->n_rows].hidden = !bench_wants(bench, row);
	bench->n_rows++;
	return 0;
}

/* The row of OP/SET/BACKEND/BATCH; NULL if it isn't there or could not be measured. */
struct row *
bench_find(const struct bench *bench, const char *key)
{
	for (size_t i = 0; i < bench->n_rows; i++) {
		if (!bench->rows[i].failed && filter_fits(key, &bench->rows[i]))
			return &bench->rows[i];
	}
	return NULL;
}

static double
median_of(const double *values, unsigned n)
{
	double sorted[BENCH_REPEATS_MAX];

	memcpy(sorted, values, n * sizeof sorted[0]);
	return measure_median(sorted, n);
}

void
row_summary(const struct row *row, unsigned n_rounds, struct summary *summary)
{
	double sum = 0, squares = 0, us, mean;

	*summary = (struct summary){0};
	summary->us = median_of(row->ns, n_rounds) / 1000;
	summary->ops = summary->us > 0 ? 1e6 / summary->us : 0;
	summary->ticks = median_of(row->ticks, n_rounds);
	if (row->cold_ns)
		summary->cold_us = median_of(row->cold_ns, n_rounds) / 1000;
	summary->min_us = row->ns[0] / 1000;
	for (unsigned i = 0; i < n_rounds; i++) {
		us = row->ns[i] / 1000;
		sum += us;
		if (us < summary->min_us)
			summary->min_us = us;
		if (us > summary->max_us)
			summary->max_us = us;
	}
	mean = sum / n_rounds;
	for (unsigned i = 0; i < n_rounds; i++)
		squares += (row->ns[i] / 1000 - mean) * (row->ns[i] / 1000 - mean);
	summary->stdev_us = n_rounds > 1 ? sqrt(squares / (n_rounds - 1)) : 0;
}

double
bench_lane_us(const struct bench *bench)
{
	struct summary summary;
	double us = 0;

	for (size_t i = 0; i < bench->n_rows; i++) {
		const struct row *row = &bench->rows[i];

		if (row->peer || strcmp(row->op, "keccak") != 0)
			continue;
		row_summary(row, bench->options.repeats, &summary);
		if (us == 0 || summary.us < us)
			us = summary.us;
	}
	return us;
}
