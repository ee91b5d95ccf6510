/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h: the parts of mlkemctl bench: cmd_bench.c runs rows round by round (each a
 * load of bench_load.h), beside what bench_reference.h measures; bench_show.c prints.
 */
#ifndef MLKEMCTL_BENCH_H
#define MLKEMCTL_BENCH_H

#include "bench_load.h"
#include "bench_reference.h"
#include "stats.h"

#define BENCH_ROWS_MAX 8

struct bench_row {
	const char *name;
	struct bench_plan plan;
	struct bench_load *load;
	struct bench_result *result; /* of all rounds */
	double *cpu_us, *ops; /* a round: the daemon's, of an item; items a second */
	uint64_t n_groups, n_group_items;
};

struct bench_command {
	struct ctl *ctl;
	bool counted; /* the control socket tells batches and the daemon's process */
	bool on_terminal;
	unsigned n_rows;
	struct bench_row rows[BENCH_ROWS_MAX];
	struct bench_reference *reference;
	double *local_us, *peer_us; /* a round */
	struct stats before, after;
};

/* The table or the objects, and the plot if one was asked for. Returns an exit status. */
int bench_show(struct bench_command *bench);

#endif
