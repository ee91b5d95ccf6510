/* SPDX-License-Identifier: Apache-2.0 */
/* The families that are named mlkemd_pool_*, but for the histogram. */
#include <inttypes.h>

#include "metrics_text.h"

#define AT(field) METRICS_AT(field)

static const char *const pool_names[METRICS_N_POOLS] = {
    "X25519MLKEM768", "ML-KEM-768", "X25519"};

static void
pool_counters(struct metrics_out *out, const struct metrics_view *view)
{
	static const struct {
		const char *family, *reason, *help;
		size_t offset;
	} rows[] = {
	    {"mlkemd_pool_generated_total", "", "Pool entries made.", AT(pool[0].made)},
	    {"mlkemd_pool_leased_total", "", "Pool entries given out.",
		AT(pool[0].taken)},
	    {"mlkemd_pool_misses_total", "", "Asked for while the pool was empty.",
		AT(pool[0].missed)},
	    {"mlkemd_pool_discarded_total", ",reason=\"age\"",
		"Pool entries wiped unused.", AT(pool[0].expired)},
	    {NULL, ",reason=\"flush\"", NULL, AT(pool[0].flushed)},
	};
	const char *family = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].family) {
			family = rows[i].family;
			metrics_out_head(out, family, "counter", rows[i].help);
		}
		for (unsigned kind = 0; kind < METRICS_N_POOLS; kind++)
			metrics_out_add(out, "%s{algorithm=\"%s\"%s} %" PRIu64 "\n",
			    family, pool_names[kind], rows[i].reason,
			    metrics_out_sum(view,
				rows[i].offset + kind * sizeof(struct metrics_pool)));
	}
}

static uint64_t
pool_oldest_age_us(const struct metrics_view *view, unsigned kind)
{
	uint64_t oldest_us = view->now_us;

	for (uint32_t i = 0; i < view->n_shards; i++) {
		uint64_t made_us = metrics_get(&view->shards[i]->pool[kind].oldest_us);

		if (made_us && made_us < oldest_us)
			oldest_us = made_us;
	}
	return view->now_us - oldest_us;
}

void
metrics_pool_text(struct metrics_out *out, const struct metrics_view *view)
{
	static const size_t levels[METRICS_N_POOLS] = {
	    AT(pool_hybrid), AT(pool_mlkem768), AT(pool_x25519)};
	static const char *const families[] = {"mlkemd_pool_keypairs",
	    "mlkemd_pool_capacity_keypairs", "mlkemd_pool_low_watermark_keypairs"};
	static const char *const help[] = {"Pool entries ready.",
	    "Pool entries at most.", "Below this, the pool is filled."};

	for (unsigned i = 0; i < 3; i++) {
		metrics_out_head(out, families[i], "gauge", help[i]);
		for (unsigned kind = 0; kind < METRICS_N_POOLS; kind++)
			metrics_out_add(out, "%s{algorithm=\"%s\"} %" PRIu64 "\n",
			    families[i], pool_names[kind],
			    i == 0   ? metrics_out_sum(view, levels[kind])
			    : i == 1 ? view->pool_high[kind]
				     : view->pool_low[kind]);
	}
	metrics_out_head(out, "mlkemd_pool_oldest_age_seconds", "gauge",
	    "Age of the oldest pool entry, 0 if there is none.");
	for (unsigned kind = 0; kind < METRICS_N_POOLS; kind++) {
		metrics_out_add(out,
		    "mlkemd_pool_oldest_age_seconds{algorithm=\"%s\"} ",
		    pool_names[kind]);
		metrics_out_seconds(out, pool_oldest_age_us(view, kind));
		metrics_out_add(out, "\n");
	}
	pool_counters(out, view);
}
