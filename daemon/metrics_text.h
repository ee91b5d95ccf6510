/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_text.h: all figures of the daemon as Prometheus reads them (text format 0.0.4).
 * No label comes from a client, and there are at most 1000 series whatever happens. Pure
 * but for process_*, which is asked of the kernel. Main's thread.
 */
#ifndef MLKEMD_METRICS_TEXT_H
#define MLKEMD_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "metrics.h"

#define METRICS_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* What one scrape sees. The pointers are the server's and outlive the call. */
struct metrics_view {
	const struct metrics_shard *const *shards; /* of all shards, then main's own */
	uint32_t n_shards;                         /* without main's */
	const char *version, *backend, *secret_memory;
	uint32_t lanes; /* of the backend */
	uint64_t now_us, started_unix_us;
	uint64_t selftest_unix_us, reload_unix_us; /* of the last one that was good */
	bool selftest_passed, reload_good, draining, sandboxed;
	uint32_t pool_high[METRICS_N_POOLS], pool_low[METRICS_N_POOLS];
};

/* *textp is for free(). Returns 0, or -ENOMEM. */
__attribute__((warn_unused_result)) int metrics_text(
    const struct metrics_view *view, char **textp, size_t *lenp);

/* Within metrics_*.c: text that grows. */
struct metrics_out {
	char *data;
	size_t len, size;
	bool failed; /* out of memory: nothing more is added */
};

__attribute__((format(printf, 2, 3))) void metrics_out_add(
    struct metrics_out *out, const char *format, ...);
/* HELP and TYPE of one family, whose samples follow. */
void metrics_out_head(
    struct metrics_out *out, const char *name, const char *type, const char *help);

/* Where a counter lies in struct metrics_shard, and the sum over all that have it. */
#define METRICS_AT(field) offsetof(struct metrics_shard, field)
uint64_t metrics_out_sum(const struct metrics_view *view, size_t offset);
void metrics_out_seconds(struct metrics_out *out, uint64_t us);

/* metrics_pool.c: the families that are named mlkemd_pool_*, but for the histogram. */
void metrics_pool_text(struct metrics_out *out, const struct metrics_view *view);
/* metrics_process.c: the families that are named process_*. */
void metrics_process(struct metrics_out *out, const struct metrics_view *view);

#endif
