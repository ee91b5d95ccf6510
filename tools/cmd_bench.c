/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_bench.c: mlkemctl bench. Rows are loads; each is run once a round, so that what
 * disturbs the machine for a while disturbs all of them, and what they are compared with.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "json.h"
#include "stats.h"

#define SETTLE_MS 20 /* the pool is filled again: its cost is the requests' */

/* What the issue of speed is about, unless something else is asked for. */
static const struct bench_case {
	const char *name;
	struct bench_plan plan;
} presets[] = {
    {"many connections", {.connections = 64, .in_flight = 1, .items = 1, .spin_us = 0}},
    {"one, pipelining", {.connections = 1, .in_flight = 64, .items = 1, .spin_us = 0}},
    {"lone calls", {.connections = 1, .in_flight = 1, .items = 1, .spin_us = 100}},
    {"lone, 10 ms apart", {.connections = 1,
			      .in_flight = 1,
			      .items = 1,
			      .idle_us = 10000,
			      .spin_us = 100}},
};
#define N_PRESETS (sizeof(presets) / sizeof(presets[0]))

static int
row_add(struct bench_command *bench, const char *name, const struct bench_plan *plan)
{
	struct bench_row *row = &bench->rows[bench->n_rows];

	if (bench->n_rows == BENCH_ROWS_MAX)
		return ctl_fail(bench->ctl, CTL_FAILED, "too many rows");
	row->name = name;
	row->plan = *plan;
	row->plan.op = bench->ctl->bench.op;
	row->result = calloc(1, sizeof(*row->result));
	row->cpu_us = calloc(bench->ctl->bench.rounds, sizeof(double));
	row->ops = calloc(bench->ctl->bench.rounds, sizeof(double));
	if (!row->result || !row->cpu_us || !row->ops)
		return ctl_fail(bench->ctl, CTL_FAILED, "out of memory");
	bench->n_rows++;
	return bench_load_open(bench->ctl, &row->plan, &row->load);
}

/* --compare-local: from a lone request to as many as one connection takes. */
static int
rows_for_comparison(struct bench_command *bench)
{
	static const char *const names[] = {
	    "1 in flight", "2", "4", "8", "16", "32", "64"};
	struct bench_plan plan = {.connections = 1, .items = 1, .spin_us = 100};
	int status = CTL_OK;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]) && !status; i++) {
		plan.in_flight = 1u << i;
		status = row_add(bench, names[i], &plan);
	}
	return status;
}

static int
rows_make(struct bench_command *bench)
{
	const struct ctl_bench *asked = &bench->ctl->bench;
	struct bench_plan plan = {.connections = asked->connections,
	    .in_flight = bench->ctl->in_flight,
	    .items = asked->items,
	    .rate = asked->rate,
	    .idle_us = asked->idle_us,
	    .spin_us = asked->spin_us};
	int status = CTL_OK;

	if (asked->compare_local)
		return rows_for_comparison(bench);
	if (asked->custom)
		return row_add(bench, asked->rate ? "open loop" : "closed loop", &plan);
	for (size_t i = 0; i < N_PRESETS && !status; i++)
		status = row_add(bench, presets[i].name, &presets[i].plan);
	return status;
}

static int
row_round(struct bench_command *bench, struct bench_row *row, unsigned round)
{
	uint64_t duration_ns =
	    bench->ctl->bench.duration_ms * 1000000ull / bench->ctl->bench.rounds;
	uint64_t items = row->result->n_items, wall_ns = row->result->wall_ns, cpu_ns;
	int status = CTL_OK;

	if (bench->counted)
		status = stats_read(bench->ctl, &bench->before);
	if (status)
		return status;
	cpu_ns = stats_cpu_ns(bench->before.pid);
	status = bench_load_run(row->load, duration_ns, row->result);
	if (status)
		return status;
	poll(NULL, 0, SETTLE_MS);
	cpu_ns = stats_cpu_ns(bench->before.pid) - cpu_ns;
	items = row->result->n_items - items;
	wall_ns = row->result->wall_ns - wall_ns;
	if (bench->counted) {
		status = stats_read(bench->ctl, &bench->after);
		row->n_groups +=
		    stats_grown(&bench->before, &bench->after, "groups_total");
		row->n_group_items +=
		    stats_grown(&bench->before, &bench->after, "group_items_total");
	}
	row->cpu_us[round] = items ? (double)cpu_ns / 1000 / (double)items : 0;
	row->ops[round] = wall_ns ? (double)items * 1e9 / (double)wall_ns : 0;
	return status;
}

static void
show_progress(const struct bench_command *bench, unsigned round, const char *what)
{
	if (bench->on_terminal)
		fprintf(stderr, "\r\033[Kround %u of %u: %s", round + 1,
		    bench->ctl->bench.rounds, what);
}

static int
run_rounds(struct bench_command *bench)
{
	int status = CTL_OK;

	for (unsigned round = 0; round < bench->ctl->bench.rounds; round++) {
		for (unsigned i = 0; i < bench->n_rows && !status; i++) {
			show_progress(bench, round, bench->rows[i].name);
			status = row_round(bench, &bench->rows[i], round);
		}
		if (!status && bench->reference) {
			show_progress(bench, round, "without the daemon");
			status = bench_reference_round(bench->reference,
			    &bench->local_us[round], &bench->peer_us[round]);
		}
		if (status)
			break;
	}
	if (bench->on_terminal)
		fputs("\r\033[K", stderr);
	return status;
}

static int
start(struct bench_command *bench)
{
	struct ctl *ctl = bench->ctl;
	int status;

	if (ctl->bench.op == BENCH_MIX && ctl->peer_path)
		return ctl_fail(ctl, CTL_USAGE,
		    "--peer compares one operation: --op encaps or client");
	if (ctl->bench.plot_path && !ctl->bench.compare_local)
		return ctl_fail(
		    ctl, CTL_USAGE, "--plot draws what --compare-local measures");
	if (ctl->bench.compare_local && ctl->bench.custom)
		return ctl_fail(ctl, CTL_USAGE,
		    "--compare-local has rows of its own: it goes without "
		    "--connections, --in-flight, --items, --rate, --idle-us and "
		    "--spin-us");
	if (ctl->bench.op != BENCH_ENCAPS && ctl->bench.rate > 0)
		return ctl_fail(ctl, CTL_USAGE,
		    "--rate is for --op encaps: a client's second request waits for "
		    "the answer to its first");
	bench->on_terminal = !ctl->json && isatty(STDERR_FILENO);
	bench->local_us = calloc(ctl->bench.rounds, sizeof(double));
	bench->peer_us = calloc(ctl->bench.rounds, sizeof(double));
	if (!bench->local_us || !bench->peer_us)
		return ctl_fail(ctl, CTL_FAILED, "out of memory");
	status = rows_make(bench);
	if (status)
		return status;
	/* A control socket that we may not open only leaves its figures out. */
	bench->counted = stats_try(ctl, &bench->before) == CTL_OK;
	if (ctl->bench.plot_path && !bench->counted)
		return ctl_fail(ctl, CTL_UNREACHABLE,
		    "--plot draws what the daemon's processor time was, which only its "
		    "control socket tells (--control-socket)");
	if (!ctl->bench.compare_local && !ctl->peer_path)
		return CTL_OK;
	return bench_reference_open(ctl, ctl->bench.op, ctl->bench.compare_local,
	    (char *)ctl->peer_path, &bench->reference);
}

int
ctl_bench(struct ctl *ctl)
{
	struct bench_command *bench = calloc(1, sizeof(*bench));
	int status;

	if (!bench)
		return ctl_fail(ctl, CTL_FAILED, "out of memory");
	bench->ctl = ctl;
	status = start(bench);
	if (!status)
		status = run_rounds(bench);
	if (!status)
		status = bench_show(bench);
	for (unsigned i = 0; i < bench->n_rows; i++) {
		bench_load_close(bench->rows[i].load);
		free(bench->rows[i].result);
		free(bench->rows[i].cpu_us);
		free(bench->rows[i].ops);
	}
	bench_reference_close(bench->reference);
	free(bench->local_us);
	free(bench->peer_us);
	free(bench);
	return status;
}
