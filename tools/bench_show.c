/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "json.h"
#include "tools/mlkem-bench/bench.h"

#define CELL_SIZE 24

static const char *const op_names[BENCH_N_OPS] = {"encaps", "client", "mix"};

/* Of one row, the medians of its rounds. */
struct figures {
	double ops, cpu_us, client_us, mean_batch;
	double us[5]; /* p50 p90 p99 p99.9 max */
	double local_us, peer_us;
};

static double
median(const struct bench_command *bench, const double *values)
{
	unsigned n = bench->ctl->bench.rounds;
	double sorted[BENCH_ROUNDS_MAX];

	for (unsigned i = 0; i < n; i++)
		sorted[i] = values[i];
	return measure_median(sorted, n);
}

static struct figures
figures_of(const struct bench_command *bench, const struct bench_row *row)
{
	static const unsigned permille[] = {500, 900, 990, 999, 1000};
	const struct bench_result *result = row->result;
	struct figures f = {.ops = median(bench, row->ops),
	    .cpu_us = median(bench, row->cpu_us),
	    .local_us = median(bench, bench->local_us),
	    .peer_us = median(bench, bench->peer_us)};

	for (unsigned i = 0; i < 5; i++)
		f.us[i] = bench_times_us(&result->times, permille[i]);
	if (result->n_items)
		f.client_us = (double)result->cpu_ns / 1000 / (double)result->n_items;
	if (row->n_groups)
		f.mean_batch = (double)row->n_group_items / (double)row->n_groups;
	return f;
}

static void
row_json(const struct bench_command *bench, const struct bench_row *row)
{
	struct figures f = figures_of(bench, row);
	struct json json;

	json_begin(&json, stdout);
	json_string(&json, "case", row->name);
	json_string(&json, "op", op_names[row->plan.op]);
	json_string(&json, "algorithm", mlkemclient_alg_name(bench->ctl->alg));
	json_number(&json, "connections", row->plan.connections);
	json_number(&json, "in_flight", row->plan.in_flight);
	json_number(&json, "items", row->plan.items);
	json_fixed(&json, "rate", row->plan.rate);
	json_number(&json, "idle_us", row->plan.idle_us);
	json_number(&json, "ops", row->result->n_items);
	json_number(&json, "failed", row->result->n_failed);
	json_fixed(&json, "ops_per_s", f.ops);
	json_fixed(&json, "p50_us", f.us[0]);
	json_fixed(&json, "p90_us", f.us[1]);
	json_fixed(&json, "p99_us", f.us[2]);
	json_fixed(&json, "p999_us", f.us[3]);
	json_fixed(&json, "max_us", f.us[4]);
	if (f.cpu_us > 0)
		json_fixed(&json, "cpu_us_per_op", f.cpu_us);
	json_fixed(&json, "client_cpu_us_per_op", f.client_us);
	if (f.mean_batch > 0)
		json_fixed(&json, "mean_batch", f.mean_batch);
	if (f.local_us > 0)
		json_fixed(&json, "local_us_per_op", f.local_us);
	if (f.peer_us > 0) {
		json_string(&json, "peer", bench_reference_peer(bench->reference));
		json_fixed(&json, "peer_us_per_op", f.peer_us);
		if (f.cpu_us > 0)
			json_fixed(&json, "cpu_of_peer", f.cpu_us / f.peer_us);
		json_fixed(&json, "p50_of_peer", f.us[0] / f.peer_us);
	}
	json_end(&json);
}

/* A figure that is not known is no zero. */
static const char *
known(char *text, double value, int n_digits)
{
	if (value > 0)
		snprintf(text, CELL_SIZE, "%.*f", n_digits, value);
	else
		snprintf(text, CELL_SIZE, "-");
	return text;
}

static void
row_print(const struct bench_command *bench, const struct bench_row *row)
{
	struct figures f = figures_of(bench, row);
	char a[CELL_SIZE], b[CELL_SIZE];

	printf("%-18s %5u %4u %5u %9.0f %8.1f %8.1f %8.1f %8.1f %9.1f %8s %8.2f %6s",
	    row->name, row->plan.connections, row->plan.in_flight, row->plan.items,
	    f.ops, f.us[0], f.us[1], f.us[2], f.us[3], f.us[4], known(a, f.cpu_us, 2),
	    f.client_us, known(b, f.mean_batch, 2));
	if (f.peer_us > 0)
		printf(" %8s %8.3f %7s", known(a, f.cpu_us / f.peer_us, 3),
		    f.us[0] / f.peer_us,
		    known(b, f.cpu_us > 0 ? f.peer_us / f.cpu_us : 0, 2));
	putchar('\n');
	if (row->result->n_failed)
		printf("  %llu failed, the first with %s\n",
		    (unsigned long long)row->result->n_failed,
		    row->result->first_failure);
}

static void
table_print(const struct bench_command *bench)
{
	const char *peer =
	    bench->reference ? bench_reference_peer(bench->reference) : NULL;

	printf("%s %s, %u rounds, %u ms of each row\n",
	    mlkemclient_alg_name(bench->ctl->alg), op_names[bench->ctl->bench.op],
	    bench->ctl->bench.rounds, bench->ctl->bench.duration_ms);
	printf("%-18s %5s %4s %5s %9s %8s %8s %8s %8s %9s %8s %8s %6s", "", "conns",
	    "each", "items", "ops/s", "p50 us", "p90", "p99", "p99.9", "max", "cpu us",
	    "client", "batch");
	if (peer)
		printf(" %8s %8s %7s", "cpu/peer", "p50/peer", "x peer");
	putchar('\n');
	for (unsigned i = 0; i < bench->n_rows; i++)
		row_print(bench, &bench->rows[i]);
	puts("cpu us: of the daemon's whole process, for an operation; client: of this "
	     "program;\nbatch: items in a kernel group, of 8");
	if (!bench->counted)
		puts("no cpu us and batch: the control socket could not be asked");
	if (peer)
		printf(
		    "peer: %s, %.1f us an operation in one thread; x peer: operations "
		    "for the same processor time\n",
		    peer, median(bench, bench->peer_us));
	else
		puts("no peer was measured (--peer PROGRAM of tests/bench/peers)");
}

/* From how many in flight on the daemon takes less, its client's part included. */
static void
break_even_print(const struct bench_command *bench)
{
	double local_us = median(bench, bench->local_us);

	printf("in this process, one at a time: %.1f us an operation\n", local_us);
	if (!bench->counted) {
		puts("break-even: not known without the daemon's cpu us");
		return;
	}
	for (unsigned i = 0; i < bench->n_rows; i++) {
		struct figures f = figures_of(bench, &bench->rows[i]);

		if (f.cpu_us > 0 && f.cpu_us + f.client_us < local_us) {
			printf("break-even: from %u in flight on, daemon and client "
			       "together take %.1f us\n",
			    bench->rows[i].plan.in_flight, f.cpu_us + f.client_us);
			return;
		}
	}
	puts("break-even: none, daemon and client together take more in every row");
}

/* As mlkem-bench draws: a line for the daemon's cost and one for the local one. */
static int
plot(const struct bench_command *bench)
{
	struct row rows[2 * BENCH_ROWS_MAX];
	double values[2 * BENCH_ROWS_MAX], ticks = 0;
	struct bench drawn = {.rows = rows, .options.repeats = 1};

	for (unsigned i = 0; i < bench->n_rows; i++) {
		struct figures f = figures_of(bench, &bench->rows[i]);
		double us[2] = {f.cpu_us + f.client_us, f.local_us};

		for (unsigned j = 0; j < 2; j++) {
			values[drawn.n_rows] = us[j] * 1000;
			rows[drawn.n_rows] =
			    (struct row){.op = op_names[bench->rows[i].plan.op],
				.set = mlkemclient_alg_name(bench->ctl->alg),
				.backend = j ? "in process" : "daemon and client",
				.batch = bench->rows[i].plan.in_flight,
				.ns = &values[drawn.n_rows],
				.ticks = &ticks};
			drawn.n_rows++;
		}
	}
	return bench_plot(&drawn, bench->ctl->bench.plot_path) < 0 ? CTL_FAILED
								   : CTL_OK;
}

int
bench_show(struct bench_command *bench)
{
	for (unsigned i = 0; i < bench->n_rows && bench->ctl->json; i++)
		row_json(bench, &bench->rows[i]);
	if (!bench->ctl->json)
		table_print(bench);
	if (!bench->ctl->json && bench->ctl->bench.compare_local)
		break_even_print(bench);
	return bench->ctl->bench.plot_path ? plot(bench) : CTL_OK;
}
