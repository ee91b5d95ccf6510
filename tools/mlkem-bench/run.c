/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define COLD_A_ROUND 3

static int
rows_alloc(struct bench *bench)
{
	unsigned n = bench->options.repeats;

	for (size_t i = 0; i < bench->n_rows; i++) {
		struct row *row = &bench->rows[i];

		row->ns = calloc(n, sizeof row->ns[0]);
		row->ticks = calloc(n, sizeof row->ticks[0]);
		if (bench->options.cold)
			row->cold_ns = calloc(n, sizeof row->cold_ns[0]);
		if (!row->ns || !row->ticks || (bench->options.cold && !row->cold_ns))
			return tool_fail("no memory");
	}
	return 0;
}

static int
row_fail(struct row *row)
{
	row->failed = true;
	if (!row->peer)
		return tool_fail("%s/%s by %s in batches of %u failed", row->op,
		    row->set, row->backend, row->batch);
	return 0; /* the peer is left out, and has said why */
}

/* A peer calls once an item; our own rows call once a batch. */
static int
row_measure(struct row *row, const struct bench_options *options, unsigned round)
{
	uint64_t n_calls =
	    options->ops ? (options->ops + row->batch - 1) / row->batch : 0;
	struct measure hot;
	double cold_ns = 0;
	int r;

	if (row->failed)
		return 0;
	if (row->peer) {
		r = peer_measure(row->peer, row, options, &hot, &cold_ns);
	} else {
		r = measure_hot(&row->work, options->duration_ms, n_calls, &hot);
		if (r == 0 && options->cold)
			r = measure_cold(&row->work, COLD_A_ROUND, &cold_ns);
		cold_ns /= row->batch;
	}
	if (r != 0)
		return row_fail(row);
	row->ns[round] = hot.ns / row->batch;
	row->ticks[round] = hot.ticks / row->batch;
	if (options->cold)
		row->cold_ns[round] = cold_ns;
	return 0;
}

static void
progress(const struct bench *bench, unsigned round, size_t i, uint64_t start_ns)
{
	const struct row *row = &bench->rows[i];
	double done = (double)(round * bench->n_rows + i) /
		      ((double)bench->options.repeats * (double)bench->n_rows);
	double spent = (double)(measure_now_ns() - start_ns) / 1e9;

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[Kround %u of %u, %3.0f %%, %.0f s left: %s/%s/%s/%u",
	    round + 1, bench->options.repeats, 100 * done,
	    done > 0 ? spent / done - spent : 0.0, row->op, row->set, row->backend,
	    row->batch);
}

static void
progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

int
bench_run(struct bench *bench)
{
	const struct bench_options *options = &bench->options;
	uint64_t start_ns;
	int r = rows_alloc(bench);

	for (size_t i = 0; r == 0 && i < bench->n_rows; i++) {
		struct row *row = &bench->rows[i];

		if (!row->peer && measure_warm(&row->work, options->warmup_ms) != 0)
			r = row_fail(row);
	}
	start_ns = measure_now_ns();
	for (unsigned round = 0; r == 0 && round < options->repeats; round++) {
		for (size_t i = 0; r == 0 && i < bench->n_rows; i++) {
			progress(bench, round, i, start_ns);
			r = row_measure(&bench->rows[i], options, round);
		}
	}
	progress_end();
	return r;
}

/* For perf and its like: nothing but the work, row after row. */
int
bench_profile(struct bench *bench)
{
	double ms = bench->options.profile_s * 1000;

	for (size_t i = 0; i < bench->n_rows; i++) {
		struct row *row = &bench->rows[i];

		if (row->hidden || row->peer)
			continue;
		fprintf(stderr, "mlkem-bench: %s/%s/%s/%u for %g s\n", row->op,
		    row->set, row->backend, row->batch, ms / 1000);
		if (measure_warm(&row->work, ms) != 0)
			return row_fail(row);
	}
	return 0;
}
