/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_FIRST_BYTES (64u * 1024u)

/* Where a counter lies in struct metrics_shard. */
#define AT(field) METRICS_AT(field)

static const char *const op_names[METRICS_N_OPS] = {
    [METRICS_KEYGEN] = "keygen",
    [METRICS_ENCAPS] = "encaps",
    [METRICS_DECAPS] = "decaps",
};

void
metrics_out_add(struct metrics_out *out, const char *format, ...)
{
	va_list args;
	int n;

	if (out->failed)
		return;
	va_start(args, format);
	n = vsnprintf(out->data + out->len, out->size - out->len, format, args);
	va_end(args);
	if (out->len + (size_t)n >= out->size) {
		char *grown = realloc(out->data, 2 * out->size + (size_t)n);

		if (!grown) {
			out->failed = true;
			return;
		}
		out->data = grown;
		out->size = 2 * out->size + (size_t)n;
		va_start(args, format);
		n = vsnprintf(out->data + out->len, out->size - out->len, format, args);
		va_end(args);
	}
	out->len += (size_t)n;
}

void
metrics_out_head(
    struct metrics_out *out, const char *name, const char *type, const char *help)
{
	metrics_out_add(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The counter of one shard (or of main) at an offset of struct metrics_shard. */
static uint64_t
value_of(const struct metrics_shard *shard, size_t offset)
{
	return metrics_get((const _Atomic uint64_t *)((const char *)shard + offset));
}

uint64_t
metrics_out_sum(const struct metrics_view *view, size_t offset)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i <= view->n_shards; i++)
		sum += value_of(view->shards[i], offset);
	return sum;
}

void
metrics_out_seconds(struct metrics_out *out, uint64_t us)
{
	metrics_out_add(out, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
}

/* labels is "" or ends in a comma. What its bounds count is said by scale. */
static void
add_histogram(struct metrics_out *out, const struct metrics_view *view,
    const char *name, const char *labels, size_t offset, enum metrics_scale scale)
{
	const struct metrics_bounds *bounds = &metrics_bounds[scale];
	size_t first = offset + offsetof(struct metrics_histogram, buckets);
	int len = (int)strlen(labels);
	uint64_t count = 0, sum;

	for (uint32_t i = 0; i < bounds->n; i++) {
		count += metrics_out_sum(view, first + i * sizeof(uint64_t));
		metrics_out_add(out, "%s_bucket{%sle=\"", name, labels);
		if (scale == METRICS_ITEMS)
			metrics_out_add(out, "%u", bounds->upper[i]);
		else
			metrics_out_seconds(out, bounds->upper[i]);
		metrics_out_add(out, "\"} %" PRIu64 "\n", count);
	}
	/* The count is what these buckets add up to, whatever is counted meanwhile. */
	count += metrics_out_sum(view, first + bounds->n * sizeof(uint64_t));
	sum = metrics_out_sum(view, offset + offsetof(struct metrics_histogram, sum));
	metrics_out_add(
	    out, "%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, count);
	metrics_out_add(out, "%s_sum%s%.*s%s ", name, len ? "{" : "", len ? len - 1 : 0,
	    labels, len ? "}" : "");
	if (scale == METRICS_ITEMS)
		metrics_out_add(out, "%" PRIu64, sum);
	else
		metrics_out_seconds(out, sum);
	metrics_out_add(out, "\n%s_count%s%.*s%s %" PRIu64 "\n", name, len ? "{" : "",
	    len ? len - 1 : 0, labels, len ? "}" : "", count);
}

static void
histograms(struct metrics_out *out, const struct metrics_view *view)
{
	static const struct {
		const char *name, *help;
		size_t offset;
		enum metrics_scale scale;
	} by_op[] = {
	    {"mlkemd_queue_wait_seconds",
		"From an item's arrival until its kernel group began.", AT(queue_wait),
		METRICS_LATENCY},
	    {"mlkemd_batch_duration_seconds", "Time that one kernel group took.",
		AT(batch_duration), METRICS_LATENCY},
	    {"mlkemd_batch_size", "Items of requests in one kernel group.",
		AT(batch_items), METRICS_ITEMS},
	};
	char labels[64];

	metrics_out_head(out, "mlkemd_request_duration_seconds", "histogram",
	    "From a request's last byte to its answer.");
	for (unsigned op = 0; op < METRICS_N_OPS; op++) {
		for (unsigned alg = 0; alg < KEM_N_ALGS; alg++) {
			snprintf(labels, sizeof(labels), "op=\"%s\",algorithm=\"%s\",",
			    op_names[op], kem_alg_info(alg)->name);
			add_histogram(out, view, "mlkemd_request_duration_seconds",
			    labels, AT(duration[op][alg]), METRICS_LATENCY);
		}
	}
	for (size_t i = 0; i < sizeof(by_op) / sizeof(by_op[0]); i++) {
		metrics_out_head(out, by_op[i].name, "histogram", by_op[i].help);
		for (unsigned op = 0; op < METRICS_N_OPS; op++) {
			snprintf(labels, sizeof(labels), "op=\"%s\",", op_names[op]);
			add_histogram(out, view, by_op[i].name, labels,
			    by_op[i].offset + op * sizeof(struct metrics_histogram),
			    by_op[i].scale);
		}
	}
	metrics_out_head(out, "mlkemd_pool_key_age_seconds", "histogram",
	    "Age of pool entries when they were given out.");
	add_histogram(
	    out, view, "mlkemd_pool_key_age_seconds", "", AT(pool_age), METRICS_AGE);
}

static void
requests(struct metrics_out *out, const struct metrics_view *view)
{
	metrics_out_head(out, "mlkemd_requests_total", "counter",
	    "Requests answered, by operation and status.");
	for (unsigned op = 0; op < METRICS_N_REQUEST_OPS; op++) {
		for (unsigned i = 0; i < METRICS_N_STATUSES; i++)
			metrics_out_add(out,
			    "mlkemd_requests_total{op=\"%s\",code=\"%s\"} %" PRIu64
			    "\n",
			    metrics_request_op_name(op), metrics_status_name(i),
			    metrics_out_sum(view, AT(requests[op][i])));
	}
	metrics_out_head(out, "mlkemd_items_total", "counter",
	    "Keys made, encapsulations and decapsulations done.");
	for (unsigned op = 0; op < METRICS_N_OPS; op++) {
		for (unsigned alg = 0; alg < KEM_N_ALGS; alg++)
			metrics_out_add(out,
			    "mlkemd_items_total{op=\"%s\",algorithm=\"%s\"} %" PRIu64
			    "\n",
			    op_names[op], kem_alg_info(alg)->name,
			    metrics_out_sum(view, AT(items_done[op][alg])));
	}
	metrics_out_head(out, "mlkemd_items_failed_total", "counter",
	    "Items refused, by operation and status.");
	for (unsigned op = 0; op < METRICS_N_OPS; op++) {
		for (unsigned i = 1; i < METRICS_N_STATUSES; i++)
			metrics_out_add(out,
			    "mlkemd_items_failed_total{op=\"%s\",code=\"%s\"} %" PRIu64
			    "\n",
			    op_names[op], metrics_status_name(i),
			    metrics_out_sum(view, AT(items_failed[op][i])));
	}
}

/* Counters and levels of METRICS_FIELDS; one family has its rows together. */
static void
fields(struct metrics_out *out, const struct metrics_view *view)
{
	static const struct {
		const char *family, *labels, *type, *help; /* NULL: as above */
		size_t offset;
	} rows[] = {
	    {"mlkemd_connections", "", "gauge", "Connections open.", AT(connections)},
	    {"mlkemd_connections_total", "", "counter", "Connections taken over.",
		AT(connections_total)},
	    {"mlkemd_connections_rejected_total", "{reason=\"auth\"}", "counter",
		"Connections turned away or closed.", AT(denied_total)},
	    {NULL, "{reason=\"hello\"}", NULL, NULL, AT(hello_timeouts_total)},
	    {NULL, "{reason=\"slow\"}", NULL, NULL, AT(frame_timeouts_total)},
	    {NULL, "{reason=\"broken\"}", NULL, NULL, AT(broken_frames_total)},
	    {"mlkemd_shed_total", "{reason=\"load\"}", "counter",
		"Turned away: for load (RESOURCE_EXHAUSTED, a connection over the "
		"limit), or for a deadline that passed.",
		AT(shed_total)},
	    {NULL, "{reason=\"deadline\"}", NULL, NULL, AT(deadline_total)},
	    {"mlkemd_batch_lanes_total", "{use=\"request\"}", "counter",
		"X25519 lanes of kernel groups: worked for a request, made an "
		"ephemeral for the pool, or did nothing.",
		AT(lanes_used_total)},
	    {NULL, "{use=\"refill\"}", NULL, NULL, AT(lanes_refilled_total)},
	    {NULL, "{use=\"idle\"}", NULL, NULL, AT(lanes_idle_total)},
	    {"mlkemd_slow_requests_total", "", "counter",
		"Requests that took longer than daemon.slow-request.",
		AT(slow_requests_total)},
	    {"mlkemd_handles", "", "gauge", "Private keys that wait.", AT(handles)},
	    {"mlkemd_handles_ended_total", "{reason=\"used\"}", "counter",
		"Private keys that wait no longer.", AT(handles_used_total)},
	    {NULL, "{reason=\"released\"}", NULL, NULL, AT(handles_released_total)},
	    {NULL, "{reason=\"expired\"}", NULL, NULL, AT(handles_expired_total)},
	    {NULL, "{reason=\"disconnect\"}", NULL, NULL, AT(handles_dropped_total)},
	    {"mlkemd_client_fallback_ops_total", "", "counter",
		"Operations that clients did themselves for want of the daemon, as "
		"they say.",
		AT(client_fallbacks_total)},
	    {"mlkemd_client_auto_ops_total", "{route=\"daemon\"}", "counter",
		"Operations that clients' route auto placed by their cost, as they "
		"say.",
		AT(client_auto_daemon_total)},
	    {NULL, "{route=\"local\"}", NULL, NULL, AT(client_auto_local_total)},
	    {"mlkemd_secret_memory_bytes", "", "gauge",
		"Memory for secrets, of all shards.", AT(secret_memory_bytes)},
	};
	const char *family = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].family) {
			family = rows[i].family;
			metrics_out_head(out, family, rows[i].type, rows[i].help);
		}
		metrics_out_add(out, "%s%s %" PRIu64 "\n", family, rows[i].labels,
		    metrics_out_sum(view, rows[i].offset));
	}
}

static void
shards(struct metrics_out *out, const struct metrics_view *view)
{
	metrics_out_head(out, "mlkemd_shard_busy_seconds_total", "counter",
	    "Time that a shard did not wait.");
	for (uint32_t i = 0; i < view->n_shards; i++) {
		metrics_out_add(
		    out, "mlkemd_shard_busy_seconds_total{shard=\"%u\"} ", i);
		metrics_out_seconds(out, metrics_get(&view->shards[i]->busy_us_total));
		metrics_out_add(out, "\n");
	}
	metrics_out_head(out, "mlkemd_shard_turns_total", "counter",
	    "Turns of a shard; one that does not turn for seconds is stuck.");
	for (uint32_t i = 0; i < view->n_shards; i++)
		metrics_out_add(out,
		    "mlkemd_shard_turns_total{shard=\"%u\"} %" PRIu64 "\n", i,
		    metrics_get(&view->shards[i]->turns_total));
}

static void
add_value(struct metrics_out *out, const char *name, const char *help, uint64_t value)
{
	metrics_out_head(out, name, "gauge", help);
	metrics_out_add(out, "%s %" PRIu64 "\n", name, value);
}

static void
add_time(struct metrics_out *out, const char *name, const char *help, uint64_t unix_us)
{
	metrics_out_head(out, name, "gauge", help);
	metrics_out_add(out, "%s ", name);
	metrics_out_seconds(out, unix_us);
	metrics_out_add(out, "\n");
}

static void
about(struct metrics_out *out, const struct metrics_view *view)
{
	metrics_out_head(out, "mlkemd_build_info", "gauge", "What runs here.");
	metrics_out_add(out,
	    "mlkemd_build_info{version=\"%s\",backend=\"%s\",lanes=\"%u\",compiler=\"%s\"} "
	    "1\n",
	    view->version, view->backend, view->lanes, __VERSION__);
	metrics_out_head(out, "mlkemd_secret_memory_mode_info", "gauge",
	    "What kind of memory secrets lie in.");
	metrics_out_add(out, "mlkemd_secret_memory_mode_info{mode=\"%s\"} 1\n",
	    view->secret_memory);
	add_value(out, "mlkemd_selftest_success",
	    "Whether the last self-test was passed.", view->selftest_passed);
	add_time(out, "mlkemd_selftest_last_run_timestamp_seconds",
	    "When the last self-test ended.", view->selftest_unix_us);
	add_value(out, "mlkemd_config_last_reload_successful",
	    "Whether the configuration read last is in force.", view->reload_good);
	add_time(out, "mlkemd_config_last_reload_success_timestamp_seconds",
	    "When the configuration in force was read.", view->reload_unix_us);
	add_value(out, "mlkemd_draining", "Whether new operations are refused.",
	    view->draining);
	add_value(out, "mlkemd_sandboxed",
	    "Whether the system calls are limited by seccomp.", view->sandboxed);
}

int
metrics_text(const struct metrics_view *view, char **textp, size_t *lenp)
{
	struct metrics_out out = {.size = TEXT_FIRST_BYTES};

	out.data = malloc(out.size);
	if (!out.data)
		return -ENOMEM;
	about(&out, view);
	requests(&out, view);
	histograms(&out, view);
	fields(&out, view);
	metrics_pool_text(&out, view);
	shards(&out, view);
	metrics_process(&out, view);
	if (out.failed) {
		free(out.data);
		return -ENOMEM;
	}
	*textp = out.data;
	*lenp = out.len;
	return 0;
}
