/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "bench.h"

/* Times from 10 ns to 10 ms in one column: three digits that count, at least. */
static void
print_us(FILE *out, double us)
{
	fprintf(out, " %10.*f", us < 1 ? 4 : us < 100 ? 3 : 1, us);
}

static void
print_head(const struct bench *bench, FILE *out)
{
	fprintf(out, "%-15s %-9s %-12s %5s %12s %10s %11s %10s %10s %10s", "op",
	    "param set", "backend", "batch", "ops/sec(med)", "us/op", "cycles/op",
	    "min", "max", "stdev");
	fprintf(out, bench->options.cold ? " %10s\n" : "\n", "cold");
}

static void
print_row(const struct bench *bench, const struct row *row, FILE *out)
{
	struct summary s;

	row_summary(row, bench->options.repeats, &s);
	fprintf(out, "%-15s %-9s %-12s %5u %12.0f", row->op, row->set, row->backend,
	    row->batch, s.ops);
	print_us(out, s.us);
	if (s.ticks > 0)
		fprintf(out, " %11.*f", s.ticks < 1000 ? 1 : 0, s.ticks);
	else
		fprintf(out, " %11s", "");
	print_us(out, s.min_us);
	print_us(out, s.max_us);
	print_us(out, s.stdev_us);
	if (bench->options.cold)
		print_us(out, s.cold_us);
	fputc('\n', out);
}

/* Names come from tables of ours, and from peers, who may use letters, digits and ._- */
static void
print_object(
    const struct bench *bench, const struct row *row, double lane_us, FILE *out)
{
	struct summary s;

	row_summary(row, bench->options.repeats, &s);
	fprintf(out,
	    "{\"op\":\"%s\",\"set\":\"%s\",\"backend\":\"%s\",\"batch\":%u,"
	    "\"us\":%.6g,\"ops\":%.6g,",
	    row->op, row->set, row->backend, row->batch, s.us, s.ops);
	if (row->n_permutations > 0 && lane_us > 0)
		fprintf(out, "\"floor\":%.4g,", s.us / (row->n_permutations * lane_us));
	else
		fputs("\"floor\":null,", out);
	if (s.ticks > 0)
		fprintf(out, "\"cycles\":%.6g,", s.ticks);
	else
		fputs("\"cycles\":null,", out);
	if (bench->options.cold)
		fprintf(out, "\"cold_us\":%.6g,", s.cold_us);
	fprintf(out, "\"min_us\":%.6g,\"max_us\":%.6g,\"stdev_us\":%.6g}\n", s.min_us,
	    s.max_us, s.stdev_us);
}

void
bench_print(const struct bench *bench, FILE *out)
{
	double lane_us = bench_lane_us(bench);

	if (!bench->options.json)
		print_head(bench, out);
	for (size_t i = 0; i < bench->n_rows; i++) {
		const struct row *row = &bench->rows[i];

		if (row->failed || row->hidden)
			continue;
		if (bench->options.json)
			print_object(bench, row, lane_us, out);
		else
			print_row(bench, row, out);
	}
}
