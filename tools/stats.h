/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h: what the daemon says of itself over the control socket, as figures, and the
 * processor time that it has used.
 */
#ifndef MLKEMCTL_STATS_H
#define MLKEMCTL_STATS_H

#include <sys/types.h>

#include "ctl.h"

#define STATS_COUNTERS_MAX 256

struct stats {
	pid_t pid; /* of the daemon, 0 if the kernel does not say */
	size_t n;
	struct stats_counter {
		char name[48];
		uint64_t value;
	} counters[STATS_COUNTERS_MAX];
};

/*
 * Asks. Counters beyond STATS_COUNTERS_MAX are left out. Returns CTL_OK, or an exit
 * status after saying why.
 */
int stats_read(const struct ctl *ctl, struct stats *stats);

/* The same where the counters may be missing: a note says why, and no error is told. */
int stats_try(const struct ctl *ctl, struct stats *stats);

/* 0 if there is none of that name. */
uint64_t stats_value(const struct stats *stats, const char *name);

/* How much a counter has grown between two looks. */
uint64_t stats_grown(
    const struct stats *before, const struct stats *after, const char *name);

/* Processor time of all threads of a process; 0 if it can't be had. */
uint64_t stats_cpu_ns(pid_t pid);

#endif
