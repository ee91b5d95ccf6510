/* SPDX-License-Identifier: Apache-2.0 */
/* The exposition's grammar, and what must never stand in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/metrics_text.h"
#include "rig.h"

#define N_SHARDS   64 /* the most that daemon.shards allows */
#define SERIES_MAX 1000

static struct metrics_shard shards[N_SHARDS + 1];
static const struct metrics_shard *pointers[N_SHARDS + 1];
static struct metrics_view view;
static char *text;
static size_t text_len;

/* Every counter of every shard has another value than 0. */
static void
setup(void)
{
	for (unsigned i = 0; i <= N_SHARDS; i++) {
		_Atomic uint64_t *counters = (_Atomic uint64_t *)&shards[i];

		for (size_t j = 0; j < sizeof(shards[i]) / sizeof(*counters); j++)
			metrics_set(&counters[j], 1 + i + j % 7);
		pointers[i] = &shards[i];
	}
	view = (struct metrics_view){.shards = pointers,
	    .n_shards = N_SHARDS,
	    .version = "1.2.3",
	    .backend = "generic",
	    .secret_memory = "mlock",
	    .lanes = 1,
	    .now_us = 1000000000,
	    .started_unix_us = 1700000000123456};
	ck_assert_int_eq(metrics_text(&view, &text, &text_len), 0);
}

static void
teardown(void)
{
	free(text);
}

/* The next line after *atp, cut out into line; false at the end. */
static bool
next_line(const char **atp, char line[512])
{
	size_t len = strcspn(*atp, "\n");

	if (!len)
		return false;
	ck_assert_uint_lt(len, 512);
	ck_assert_int_eq((*atp)[len], '\n');
	memcpy(line, *atp, len);
	line[len] = '\0';
	*atp += len + 1;
	return true;
}

START_TEST(there_are_at_most_a_thousand_series)
{
	const char *at = text;
	char line[512];
	unsigned n = 0;

	while (next_line(&at, line))
		n += line[0] != '#';
	ck_assert_uint_gt(n, 700);
	ck_assert_uint_le(n, SERIES_MAX);
	ck_assert_ptr_eq(at, text + text_len);
}
END_TEST

START_TEST(no_series_stands_twice)
{
	static char names[SERIES_MAX][512];
	const char *at = text;
	char line[512];
	unsigned n = 0;

	while (next_line(&at, line)) {
		if (line[0] == '#')
			continue;
		*strrchr(line, ' ') = '\0';
		for (unsigned i = 0; i < n; i++)
			ck_assert_str_ne(names[i], line);
		strcpy(names[n++], line);
	}
}
END_TEST

/* HELP, TYPE, samples: once, and the samples belong to the family above them. */
START_TEST(families_stand_together)
{
	static char seen[256][128];
	const char *at = text;
	char line[512], name[128] = "", other[128];
	unsigned n = 0;

	while (next_line(&at, line)) {
		if (sscanf(line, "# HELP %127s", other) == 1) {
			for (unsigned i = 0; i < n; i++)
				ck_assert_str_ne(seen[i], other);
			strcpy(seen[n++], other);
			strcpy(name, other);
		} else if (sscanf(line, "# TYPE %127s", other) == 1) {
			ck_assert_str_eq(name, other);
		} else {
			ck_assert_msg(!strncmp(line, name, strlen(name)), "%s", line);
		}
	}
	ck_assert_uint_gt(n, 30);
}
END_TEST

/* Buckets grow, the last is +Inf, and the count is what it says. */
START_TEST(histograms_add_up)
{
	const char *at = text;
	char line[512];
	double last_le = -1, le;
	unsigned long long last = 0, value;
	unsigned n = 0;

	while (next_line(&at, line)) {
		const char *bound = strstr(line, "le=\"");

		if (line[0] == '#')
			continue;
		value = strtoull(strrchr(line, ' ') + 1, NULL, 10);
		if (strstr(line, "_bucket{")) {
			ck_assert_ptr_nonnull(bound);
			le = strstr(bound, "+Inf") ? 1e9 : atof(bound + 4);
			ck_assert_msg(le > last_le, "%s", line);
			ck_assert_msg(value >= last, "%s", line);
			last_le = le;
			last = value;
		} else if (strstr(line, "_count")) {
			ck_assert_double_eq(last_le, 1e9);
			ck_assert_uint_eq(value, last);
			last_le = -1;
			last = 0;
			n++;
		}
	}
	ck_assert_uint_eq(n, METRICS_N_OPS * KEM_N_ALGS + 3 * METRICS_N_OPS + 1);
}
END_TEST

START_TEST(a_value_is_in_its_bucket)
{
	static const struct {
		uint64_t value;
		unsigned bucket;
	} cases[] = {{0, 0}, {2, 0}, {3, 1}, {5, 1}, {6, 2}, {250000, 16}, {250001, 17},
	    {UINT64_MAX / 2, 17}};
	static struct metrics_histogram histogram;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t before = metrics_get(&histogram.buckets[cases[i].bucket]);

		metrics_observe(&histogram, METRICS_LATENCY, cases[i].value);
		ck_assert_uint_eq(
		    metrics_get(&histogram.buckets[cases[i].bucket]), before + 1);
	}
	ck_assert_uint_eq(metrics_bounds[METRICS_ITEMS].n, KEM_GROUP_MAX);
}
END_TEST

/*
 * What would be an oracle: how often a ciphertext was a wrong one. And what would be
 * another's word: a client's name, number or user.
 */
START_TEST(nothing_tells_of_rejections_or_clients)
{
	static const char *const forbidden[] = {"reject=", "implicit", "rejection",
	    "invalid_ct", "wrong", "client=", "name=", "uid=", "pid=", "peer="};

	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		ck_assert_msg(strstr(text, forbidden[i]) == NULL, "%s", forbidden[i]);
	/* The control: what does stand there is found. */
	ck_assert_ptr_nonnull(strstr(text, "reason="));
}
END_TEST

START_TEST(what_grows_past_its_first_room_is_whole)
{
	struct metrics_out out = {.size = 8, .data = malloc(8)};

	ck_assert_ptr_nonnull(out.data);
	for (int i = 0; i < 1000; i++)
		metrics_out_add(&out, "%04d", i);
	ck_assert_uint_eq(out.len, 4000);
	ck_assert_int_eq(memcmp(out.data + 3996, "0999", 4), 0);
	free(out.data);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("metrics_text");
	TCase *tc = tcase_create("metrics_text");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, there_are_at_most_a_thousand_series);
	tcase_add_test(tc, no_series_stands_twice);
	tcase_add_test(tc, families_stand_together);
	tcase_add_test(tc, histograms_add_up);
	tcase_add_test(tc, a_value_is_in_its_bucket);
	tcase_add_test(tc, nothing_tells_of_rejections_or_clients);
	tcase_add_test(tc, what_grows_past_its_first_room_is_whole);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
