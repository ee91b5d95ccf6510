/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leak.h"
#include "tools/mlkem-bench/common.h"
#include "tools/mlkem-bench/measure.h"

#define SAMPLE     (8 * LEAK_CHUNK) /* the first measurements give the limits */
#define LINE_FIRST 3200             /* then at twice as many, and so on */

volatile bool leak_stop;

/* One pass of one test. */
struct pass {
	struct leak_case *leak;
	const struct leak_options *options;
	void (*line)(const struct leak_case *leak);
	struct subject *subject;
	size_t len;
	uint64_t order; /* state: which class comes next */
	uint8_t *inputs;
	uint8_t class[LEAK_CHUNK];
	double ticks[LEAK_CHUNK];
};

static uint64_t
name_hash(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	while (*name)
		hash = (hash ^ (uint8_t)*name++) * UINT64_C(0x100000001b3);
	return hash;
}

void
leak_case_init(struct leak_case *leak, const struct leak_test *test,
    const struct kem *kem, const struct leak_options *options)
{
	memset(leak, 0, sizeof *leak);
	leak->test = test;
	leak->kem = kem;
	leak->alg = test->flags & LEAK_HYBRID ? KEM_ALG_X25519MLKEM768 : options->set;
	leak->seed = options->seed;
	/* A test that runs alone has the inputs that it has among others. */
	leak->random = options->seed ^ name_hash(test->name);
	snprintf(leak->backend, sizeof leak->backend, "%s", kem_backend_name(kem));
}

/* Inputs first, then the clock: making one must not warm the caches for it alone. */
static int
chunk_measure(struct pass *pass)
{
	const struct leak_test *test = pass->leak->test;
	struct subject *subject = pass->subject;

	for (unsigned i = 0; i < LEAK_CHUNK; i++) {
		pass->class[i] = tool_random(&pass->order) >> 63;
		if (test->make(
			subject, pass->class[i], pass -> inputs + i * pass -> len) < 0)
			return -1;
	}
	for (unsigned i = 0; i < LEAK_CHUNK; i++) {
		uint64_t start;
		int r = 0;

		memcpy(subject->in, pass->inputs + i * pass->len, pass->len);
		start = measure_ticks_fenced();
		for (unsigned call = 0; call < test->calls; call++)
			r |= test->run(subject);
		pass->ticks[i] = (double)(measure_ticks_fenced() - start);
		if (r < 0)
			return tool_fail("%s failed", test->name);
	}
	return 0;
}

static int
limits_measure(struct pass *pass, struct stats *stats)
{
	double sample[SAMPLE];

	for (unsigned n = 0; n < SAMPLE; n += LEAK_CHUNK) {
		if (chunk_measure(pass) < 0)
			return -1;
		memcpy(sample + n, pass->ticks, sizeof pass->ticks);
	}
	stats_init(stats, sample, SAMPLE);
	return 0;
}

/* Adds to stats up to the bounds. Lines are told of the case's own figures alone. */
static int
bounds_measure(struct pass *pass, struct stats *stats)
{
	const struct leak_options *options = pass->options;
	uint64_t end_ns = measure_now_ns() + (uint64_t)(options->time_s * 1e9);
	uint64_t end_n = stats->n + options->measurements, next = LINE_FIRST;

	while (next <= stats->n)
		next *= 2;
	while (!leak_stop && stats->n < end_n && measure_now_ns() < end_ns) {
		if (chunk_measure(pass) < 0)
			return -1;
		for (unsigned i = 0; i < LEAK_CHUNK && stats->n < end_n; i++)
			stats_push(stats, pass->class[i], pass -> ticks[i]);
		if (stats != &pass->leak->stats)
			continue;
		stats_worst(stats, &pass->leak->result);
		if (stats->n >= next) {
			pass->line(pass->leak);
			next *= 2;
		}
	}
	return 0;
}

/*
 * What a branch or a table costs is not small. Differences of a few ticks in 25 000, with
 * another sign for another seed, come from what the values make of the supply's voltage,
 * where a CPU's clock follows it. (A difference of squares is in no ticks.)
 */
static bool
is_large(const struct stats_result *result, const struct leak_options *options)
{
	return result->series == STATS_SQUARE ||
	       fabs(result->difference) >= options->floor;
}

/*
 * There are 42 tests in one, and times are no normal distribution: by chance alone some t
 * is over 4.5 once in a few thousand runs. Measurements made afresh have to say it too.
 */
static int
confirm(struct pass *pass)
{
	const struct leak_options *options = pass->options;
	struct leak_case *leak = pass->leak;
	struct stats *again = malloc(sizeof *again);
	struct stats_result result;
	int r;

	if (!again)
		return tool_fail("no memory");
	r = limits_measure(pass, again);
	if (r == 0)
		r = bounds_measure(pass, again);
	stats_worst(again, &result);
	leak->verdict = LEAK_SEEN;
	if (fabs(result.t) <= LEAK_T)
		leak->verdict = LEAK_NOT_CONFIRMED;
	else if (!is_large(&result, options) && !is_large(&leak->result, options))
		leak->verdict = LEAK_SMALL;
	free(again);
	return r;
}

static int
pass_run(struct pass *pass)
{
	struct leak_case *leak = pass->leak;
	int r = 0;

	if (leak->stats.n == 0)
		r = limits_measure(pass, &leak->stats);
	if (r == 0)
		r = bounds_measure(pass, &leak->stats);
	if (r < 0)
		return r;
	stats_worst(&leak->stats, &leak->result);
	if (leak->stats.n > 0)
		pass->line(leak);
	if (leak->verdict == LEAK_SEEN)
		return 0;
	leak->verdict = LEAK_NOT_SEEN;
	return fabs(leak->result.t) > LEAK_T ? confirm(pass) : 0;
}

int
leak_run(struct leak_case *leak, const struct leak_options *options,
    void (*line)(const struct leak_case *leak))
{
	struct pass pass = {.leak = leak, .options = options, .line = line};
	int r = -1;

	pass.subject = aligned_alloc(64, sizeof *pass.subject);
	pass.inputs = malloc((size_t)LEAK_CHUNK * LEAK_INPUT_MAX);
	if (!pass.subject || !pass.inputs) {
		tool_fail("no memory");
		goto out;
	}
	r = subject_init(pass.subject, leak);
	if (r == 0 && leak->test->flags & LEAK_SOCKET)
		r = socket_init(pass.subject, leak, options);
	if (r == 1) {
		leak->verdict = LEAK_SKIPPED;
		r = 0;
	} else if (r == 0) {
		pass.len = leak->test->input_bytes(pass.subject);
		pass.order = tool_random(&pass.subject->random);
		r = pass_run(&pass);
		leak->random = pass.subject->random;
	}
	subject_fini(pass.subject);
out:
	free(pass.subject);
	free(pass.inputs);
	return r;
}
