/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h: mlkem-bench. A row is one operation of one parameter set, by one backend or
 * one peer, in one batch size; rows are measured round by round, each once a round, so
 * that what disturbs the machine for a while disturbs all of them alike. One thread.
 *
 * The benchmark may look where programs may not: kem/internal.h and the backends'
 * kernels, to run every backend of the build in one process and to give randomness.
 */
#ifndef MLKEMD_BENCH_H
#define MLKEMD_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common.h"
#include "measure.h"

#define BENCH_BATCH_MAX   1024
#define BENCH_BATCHES_MAX 32
#define BENCH_REPEATS_MAX 1000

struct bench_options {
	uint64_t ops;       /* items a measurement; 0: what fits into duration */
	double duration_ms; /* of one measurement */
	unsigned repeats;   /* rounds */
	double warmup_ms;   /* a row, before the first round */
	double profile_s;   /* not 0: run each row so long, measure nothing */
	bool json, cold, list, peers;
	const char *peer_dir;
	const char *plot_path;
	unsigned batch[BENCH_BATCHES_MAX]; /* ascending */
	unsigned n_batches;
	char *const *filters; /* OP[/SET[/BACKEND[/BATCH]]], patterns; any may match */
	unsigned n_filters;
};

struct peer;

struct row {
	const char *op, *set, *backend; /* set "-" where there is none */
	unsigned batch;
	double n_permutations; /* of Keccak an item; 0: no floor is told */
	struct measure_work work;
	struct peer *peer; /* measures instead of work, if not NULL */
	bool hidden;       /* measured for the floor, not asked for */
	bool failed;       /* a peer's: left out from then on */
	/* Of one item, a value a round. */
	double *ns, *ticks, *cold_ns;
};

struct bench {
	struct bench_options options;
	struct row *rows;
	size_t n_rows, n_rows_max;
	struct fixture *fixtures;
	struct peer *peers;
	unsigned n_backends;
	struct kem *kems[TOOL_BACKENDS_MAX]; /* the best first */
};

/* What a row's values come to. */
struct summary {
	double us, ops, ticks, min_us, max_us, stdev_us, cold_us;
};

/* rows.c: keep the row if it is asked for (or hidden). Returns 0, or -1: no memory. */
int bench_add(struct bench *bench, const struct row *row);
bool bench_wants(const struct bench *bench, const struct row *row);
struct row *bench_find(const struct bench *bench, const char *key);
void row_summary(const struct row *row, unsigned n_rounds, struct summary *summary);
double bench_lane_us(const struct bench *bench); /* the cheapest lane of the run */

/* ops.c, kernels.c: our own rows. Return 0, or -1 after saying why. */
int bench_add_ops(struct bench *bench);
int bench_add_kernels(struct bench *bench);
void bench_fini_ops(struct bench *bench);

/* permutations.c: Keccak permutations of one item of an operation, 0 if not told. */
double permutations(const char *op, const char *set);

/*
 * peers.c: start the programs of a directory, ask them, end them; or one alone, NULL
 * after saying why it is none (of bench it takes a backend to check it with).
 */
struct peer *peer_open(struct bench *bench, char *path);
const char *peer_name(const struct peer *peer);
void peer_close(struct peer *peer);
int bench_add_peers(struct bench *bench);
int peer_measure(struct peer *peer, const struct row *row,
    const struct bench_options *options, struct measure *hot, double *cold_ns);
void bench_fini_peers(struct bench *bench);

/* run.c: all rounds. Returns 0, or -1 after saying why. */
int bench_run(struct bench *bench);
int bench_profile(struct bench *bench);

/* report.c, figures.c, plot.c */
void bench_print(const struct bench *bench, FILE *out);
void bench_print_figures(const struct bench *bench, FILE *out);
int bench_plot(const struct bench *bench, const char *path);

#endif
