/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the project promises (docs/performance.md), as ratios of rows of one run. Each is
 * the median of the ratios of every round, so that a machine that slows down for a while
 * slows down both sides.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define KEY_MAX 160

/*
 * ours: a row. theirs: rows, of which '|' takes the faster one and '+' the sum; NULL is
 * the Keccak floor. @ stands for the set: such a figure is told for all three, and
 * promised for 768.
 */
struct figure {
	const char *what, *ours, *theirs;
	double at_least, aim; /* at most, of the floor; 0: not promised */
};

static const struct figure figures[] = {
    {"Keccak, 8 lanes, a state: OpenSSL's", "keccak/-/avx512/8", "keccak/-/openssl/1",
	6.5, 8},
    {"keygen by 8: AWS-LC's", "keygen/@/avx512/8", "keygen/@/aws-lc/1", 5, 7},
    {"keygen by 8: of the Keccak floor", "keygen/@/avx512/8", NULL, 2.0, 1.45},
    {"keygen by 8: best AVX2 single", "keygen/@/avx512/8",
	"keygen/@/aws-lc/1|keygen/@/avx2/1", 3.5, 0},
    {"encaps by 8: AWS-LC's", "encaps/@/avx512/8", "encaps/@/aws-lc/1", 5, 7},
    {"encaps by 8: of the Keccak floor", "encaps/@/avx512/8", NULL, 2.0, 1.5},
    {"decaps by 8: AWS-LC's", "decaps/@/avx512/8", "decaps/@/aws-lc/1", 5.9, 7.8},
    {"decaps by 8: of the Keccak floor", "decaps/@/avx512/8", NULL, 2.2, 1.65},
    {"keygen, one: AWS-LC's", "keygen/@/avx512/1", "keygen/@/aws-lc/1", 2.3, 2.8},
    {"encaps, one: AWS-LC's", "encaps/@/avx512/1", "encaps/@/aws-lc/1", 2.3, 2.8},
    {"decaps, one: AWS-LC's", "decaps/@/avx512/1", "decaps/@/aws-lc/1", 2.3, 2.8},
    {"keygen, one: our avx2", "keygen/@/avx512/1", "keygen/@/avx2/1", 1.64, 0},
    {"encaps, one: our avx2", "encaps/@/avx512/1", "encaps/@/avx2/1", 1.64, 0},
    {"decaps, one: our avx2", "decaps/@/avx512/1", "decaps/@/avx2/1", 1.64, 0},
    {"keygen, one: our generic", "keygen/@/avx512/1", "keygen/@/generic/1", 4, 6.2},
    {"encaps, one: our generic", "encaps/@/avx512/1", "encaps/@/generic/1", 4, 6.2},
    {"decaps, one: our generic", "decaps/@/avx512/1", "decaps/@/generic/1", 4, 6.2},
    {"keygen, one by avx2: AWS-LC's", "keygen/@/avx2/1", "keygen/@/aws-lc/1", 1.4,
	1.67},
    {"encaps, one by avx2: AWS-LC's", "encaps/@/avx2/1", "encaps/@/aws-lc/1", 1.4,
	1.67},
    {"decaps, one by avx2: AWS-LC's", "decaps/@/avx2/1", "decaps/@/aws-lc/1", 1.4,
	1.67},
    {"X25519 secret by 8: OpenSSL's", "x25519-derive/-/avx512/8",
	"x25519-derive/-/openssl/1", 6, 9},
    {"X25519 keygen by 8: OpenSSL's", "x25519-base/-/avx512/8",
	"x25519-base/-/openssl/1", 7, 12},
    {"hybrid server by 8: OpenSSL's", "hybrid-server/768/avx512/8",
	"hybrid-server/768/openssl/1", 8, 11},
    {"hybrid server by 8: AWS-LC's parts", "hybrid-server/768/avx512/8",
	"x25519-base/-/aws-lc/1+x25519-derive/-/aws-lc/1+encaps/768/aws-lc/1", 3.7,
	5.3},
    {"hybrid, one, from the pool: OpenSSL's", "hybrid-pooled/768/avx512/1",
	"hybrid-server/768/openssl/1", 2.0, 2.4},
    {"keygen: by 8 of by 64", "keygen/@/avx512/8", "keygen/@/avx512/64", 0.9, 0},
    {"encaps: by 8 of by 64", "encaps/@/avx512/8", "encaps/@/avx512/64", 0.9, 0},
    {"decaps: by 8 of by 64", "decaps/@/avx512/8", "decaps/@/avx512/64", 0.9, 0},
    {"keygen: by 64 of by 8", "keygen/@/avx512/64", "keygen/@/avx512/8", 0.9, 0},
    {"encaps: by 64 of by 8", "encaps/@/avx512/64", "encaps/@/avx512/8", 0.9, 0},
    {"decaps: by 64 of by 8", "decaps/@/avx512/64", "decaps/@/avx512/8", 0.9, 0},
};

/* ns of "KEY", "KEY|KEY" or "KEY+KEY" in one round; 0 if no row has such a name. */
static double
side_ns(const struct bench *bench, const char *side, unsigned round)
{
	char key[KEY_MAX];
	double ns = 0;
	bool is_sum = strchr(side, '+') != NULL;

	while (*side) {
		size_t len = strcspn(side, "|+");
		const struct row *row;

		if (len >= sizeof key)
			return 0;
		memcpy(key, side, len);
		key[len] = '\0';
		row = bench_find(bench, key);
		if (!row && is_sum)
			return 0;
		if (row && is_sum)
			ns += row->ns[round];
		else if (row && (ns == 0 || row->ns[round] < ns))
			ns = row->ns[round];
		side += len + (side[len] != '\0');
	}
	return ns;
}

static void
with_set(char key[KEY_MAX], const char *pattern, const char *set)
{
	size_t n = 0;

	for (; *pattern && n + 8 < KEY_MAX; pattern++) {
		if (*pattern == '@')
			n += (size_t)snprintf(key + n, KEY_MAX - n, "%s", set);
		else
			key[n++] = *pattern;
	}
	key[n] = '\0';
}

/* The median over the rounds; 0 if a row is missing. */
static double
figure_value(const struct bench *bench, const struct figure *figure, const char *set)
{
	double ratios[BENCH_REPEATS_MAX], lane_ns = bench_lane_us(bench) * 1000;
	char ours[KEY_MAX], theirs[KEY_MAX];
	const struct row *row;

	with_set(ours, figure->ours, set);
	row = bench_find(bench, ours);
	if (!row)
		return 0;
	if (figure->theirs)
		with_set(theirs, figure->theirs, set);
	for (unsigned i = 0; i < bench->options.repeats; i++) {
		double their_ns = figure->theirs ? side_ns(bench, theirs, i)
						 : row->n_permutations * lane_ns;

		if (their_ns == 0 || row->ns[i] == 0)
			return 0;
		ratios[i] =
		    figure->theirs ? their_ns / row->ns[i] : row->ns[i] / their_ns;
	}
	return measure_median(ratios, bench->options.repeats);
}

static const char *
verdict(const struct figure *figure, double value)
{
	bool is_most = figure->theirs == NULL;

	if (value == 0)
		return "not measured";
	if (figure->aim && (is_most ? value <= figure->aim : value >= figure->aim))
		return "aim";
	return (is_most ? value <= figure->at_least : value >= figure->at_least) ? "yes"
										 : "no";
}

static void
figure_print(
    const struct bench *bench, const struct figure *figure, const char *set, FILE *out)
{
	double value = figure_value(bench, figure, set);
	/* Promised for 768 alone. */
	bool is_told = strchr(figure->ours, '@') && strcmp(set, "768") != 0;
	const char *reached = is_told && value != 0 ? "-" : verdict(figure, value);

	if (bench->options.json) {
		fprintf(out,
		    "{\"figure\":\"%s\",\"set\":\"%s\",\"ratio\":%.4g,\"at_least\":%g,"
		    "\"aim\":%g,\"reached\":\"%s\"}\n",
		    figure->what, set, value, figure->at_least, figure->aim, reached);
		return;
	}
	fprintf(out, "%-40s %-9s", figure->what, set);
	if (value != 0)
		fprintf(out, " %8.2fx", value);
	else
		fprintf(out, " %9s", "");
	fprintf(out, " %7.2fx", figure->at_least);
	if (figure->aim != 0)
		fprintf(out, " %6.2fx", figure->aim);
	else
		fprintf(out, " %7s", "");
	fprintf(out, "  %s\n", reached);
}

void
bench_print_figures(const struct bench *bench, FILE *out)
{
	static const char *const sets[] = {"768", "512", "1024"};

	if (!bench->options.json)
		fprintf(out, "\n%-40s %-9s %9s %8s %7s  %s\n", "ratio", "param set",
		    "measured", "at least", "aim", "reached");
	for (size_t j = 0; j < sizeof sets / sizeof sets[0]; j++) {
		for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
			bool has_set = strchr(figures[i].ours, '@') != NULL;

			if (has_set || j == 0)
				figure_print(
				    bench, &figures[i], has_set ? sets[j] : "-", out);
		}
	}
}
