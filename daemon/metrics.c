/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <assert.h>
#include <stddef.h>

const struct metrics_bounds metrics_bounds[METRICS_N_SCALES] = {
    [METRICS_LATENCY] = {17, {2, 5, 10, 15, 20, 30, 50, 75, 100, 150, 250, 500, 1000,
				 2500, 10000, 50000, 250000}},
    [METRICS_ITEMS] = {8, {1, 2, 3, 4, 5, 6, 7, 8}},
    [METRICS_AGE] = {9,
	{1000, 10000, 100000, 500000, 1000000, 5000000, 10000000, 30000000, 60000000}},
};

struct metrics_field {
	const char *name;
	size_t offset;
};

static const struct metrics_field metrics_fields[METRICS_N_FIELDS] = {
#define METRICS_DESCRIBE(field, name, help) \
 {name, offsetof(struct metrics_shard, field)},
    METRICS_FIELDS(METRICS_DESCRIBE)
#undef METRICS_DESCRIBE
};

uint64_t
metrics_sum(const struct metrics_shard *const *shards, unsigned n_shards,
    unsigned field, const char **namep)
{
	uint64_t sum = 0;

	assert(field < METRICS_N_FIELDS);
	for (unsigned i = 0; i < n_shards; i++) {
		const _Atomic uint64_t *counter =
		    (const _Atomic uint64_t *)((const char *)shards[i] +
					       metrics_fields[field].offset);

		sum += atomic_load_explicit(counter, memory_order_relaxed);
	}
	*namep = metrics_fields[field].name;
	return sum;
}
