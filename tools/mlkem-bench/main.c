/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "kem/kem.h"

enum { EXIT_DONE, EXIT_FAILED, EXIT_USAGE };

static const char help[] =
    "mlkem-bench: what ML-KEM, X25519 and their kernels cost on this machine\n"
    "\n"
    "usage: mlkem-bench [OPTIONS] [FILTER ...]\n"
    "\n"
    "FILTER is OP[/SET[/BACKEND[/BATCH]]], each part a shell pattern, an empty one\n"
    "fits all: keygen/768, 'hybrid-*//avx512', '*/*/generic/1'. Without one: all.\n"
    "\n"
    "how to measure\n"
    "  --duration MS      one measurement of one row (10)\n"
    "  --repeats N        rounds; each measures every row once (11)\n"
    "  --warmup MS        a row, before the first round (20)\n"
    "  --ops N            N items a measurement, and not what fits into the duration\n"
    "  --batch N[,N...]   batch sizes (1,8,16,64; with --plot 1 to 64)\n"
    "  --cold             beside it: single calls, each after 10 ms of sleep\n"
    "  --profile-time S   run each row S seconds, for a profiler; measure nothing\n"
    "what to measure\n"
    "  --peers[=DIR]      other libraries too, in the same rounds, and the ratios\n"
    "                     that are promised; tests/bench/peers/build.sh makes them\n"
    "  --list             the rows, without measuring\n"
    "what to write\n"
    "  --json             one object a row\n"
    "  --plot FILE        cost of an item against batch size, as SVG\n"
    "  --help, --version\n"
    "\n"
    "exit status: 0 done, 1 failed, 2 usage.\n"
    "\n"
    "  $ mlkem-bench keygen/768 encaps/768 decaps/768\n"
    "  $ mlkem-bench --plot cost.svg '*caps/768'\n"
    "  $ perf record -g mlkem-bench --profile-time 5 decaps/768/avx512/8\n";

enum {
	OPT_OPS = 256,
	OPT_DURATION,
	OPT_REPEATS,
	OPT_WARMUP,
	OPT_BATCH,
	OPT_COLD,
	OPT_PROFILE,
	OPT_PEERS,
	OPT_LIST,
	OPT_JSON,
	OPT_PLOT,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
    {"ops", required_argument, NULL, OPT_OPS},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"repeats", required_argument, NULL, OPT_REPEATS},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"cold", no_argument, NULL, OPT_COLD},
    {"profile-time", required_argument, NULL, OPT_PROFILE},
    {"peers", optional_argument, NULL, OPT_PEERS},
    {"list", no_argument, NULL, OPT_LIST},
    {"json", no_argument, NULL, OPT_JSON},
    {"plot", required_argument, NULL, OPT_PLOT},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int
parse_batches(struct bench_options *options, const char *text)
{
	char number[16];
	uint64_t value = 0;

	options->n_batches = 0;
	for (;;) {
		size_t len = strcspn(text, ",");

		if (len >= sizeof number)
			len = sizeof number - 1;
		memcpy(number, text, len);
		number[len] = '\0';
		if (tool_whole("batch", number, 1, BENCH_BATCH_MAX, &value) < 0)
			return -1;
		if (options->n_batches == BENCH_BATCHES_MAX)
			return tool_fail(
			    "--batch: up to %d sizes are allowed", BENCH_BATCHES_MAX);
		if (options->n_batches > 0 &&
		    options->batch[options->n_batches - 1] >= value)
			return tool_fail("--batch: sizes must grow from left to right");
		options->batch[options->n_batches++] = (unsigned)value;
		if (text[len] == '\0')
			return 0;
		text += len + 1;
	}
}

static int
set_option(struct bench_options *options, int option, const char *text)
{
	uint64_t whole = 0;

	switch (option) {
	case OPT_OPS:
		return tool_whole("ops", text, 1, 1000000000, &options->ops);
	case OPT_DURATION:
		return tool_number(
		    "duration", text, 0.1, 100000, &options->duration_ms);
	case OPT_REPEATS:
		if (tool_whole("repeats", text, 1, BENCH_REPEATS_MAX, &whole) < 0)
			return -1;
		options->repeats = (unsigned)whole;
		return 0;
	case OPT_WARMUP:
		return tool_number("warmup", text, 0, 100000, &options->warmup_ms);
	case OPT_BATCH:
		return parse_batches(options, text);
	case OPT_COLD:
		options->cold = true;
		return 0;
	case OPT_PROFILE:
		return tool_number(
		    "profile-time", text, 0.01, 100000, &options->profile_s);
	case OPT_PEERS:
		options->peers = true;
		options->peer_dir = text;
		return 0;
	case OPT_LIST:
		options->list = true;
		return 0;
	case OPT_JSON:
		options->json = true;
		return 0;
	case OPT_PLOT:
		options->plot_path = text;
		return 0;
	}
	return -1; /* getopt has said why */
}

/* Where build.sh puts the peers if it isn't told another place. */
static const char *
default_peer_dir(void)
{
	static char path[4096];
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (cache && *cache)
		snprintf(path, sizeof path, "%s/mlkemd/peers", cache);
	else
		snprintf(path, sizeof path, "%s/.cache/mlkemd/peers", home ? home : "");
	return path;
}

/* Returns 0, or -1 after saying why, or 1: all done already. */
static int
parse(struct bench_options *options, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == OPT_HELP) {
			fputs(help, stdout);
			return 1;
		}
		if (option == OPT_VERSION) {
			puts("mlkem-bench " MLKEMD_VERSION);
			return 1;
		}
		if (set_option(options, option, optarg) < 0)
			return -1;
	}
	if (options->n_batches == 0)
		(void)parse_batches(options, options->plot_path
						 ? "1,2,3,4,5,6,7,8,12,16,24,32,48,64"
						 : "1,8,16,64");
	if (options->peers && !options->peer_dir)
		options->peer_dir = default_peer_dir();
	options->filters = argv + optind;
	options->n_filters = (unsigned)(argc - optind);
	return 0;
}

static void
print_header(const struct bench *bench)
{
	const struct bench_options *options = &bench->options;
	char cpu[128], family[16], model[16], ops[32];

	tool_cpu_line("model name", cpu, sizeof cpu);
	tool_cpu_line("cpu family", family, sizeof family);
	tool_cpu_line("model", model, sizeof model);
	snprintf(ops, sizeof ops, options->ops ? "%llu" : "as fit",
	    (unsigned long long)options->ops);
	printf("mlkem-bench " MLKEMD_VERSION ", built by " BENCH_BUILD "\n");
	printf("CPU: %s, family %s, model %s\nbackends:", cpu, family, model);
	for (unsigned i = 0; i < bench->n_backends; i++)
		printf(" %s", kem_backend_name(bench->kems[i]));
	printf("\nops: %s, duration: %g ms, repeats: %u, warmup: %g ms\n", ops,
	    options->duration_ms, options->repeats, options->warmup_ms);
	fflush(stdout);
}

static void
bench_fini(struct bench *bench)
{
	for (size_t i = 0; i < bench->n_rows; i++) {
		free(bench->rows[i].ns);
		free(bench->rows[i].ticks);
		free(bench->rows[i].cold_ns);
	}
	free(bench->rows);
	bench_fini_peers(bench);
	bench_fini_ops(bench);
	for (unsigned i = 0; i < TOOL_BACKENDS_MAX; i++)
		kem_free(bench->kems[i]);
}

static int
list_rows(const struct bench *bench)
{
	for (size_t i = 0; i < bench->n_rows; i++) {
		const struct row *row = &bench->rows[i];

		if (!row->hidden)
			printf("%s/%s/%s/%u\n", row->op, row->set, row->backend,
			    row->batch);
	}
	return 0;
}

static int
collect_rows(struct bench *bench)
{
	size_t n = 0;

	if (bench_add_kernels(bench) < 0 || bench_add_ops(bench) < 0)
		return -1;
	if (bench->options.peers && bench_add_peers(bench) < 0)
		return -1;
	for (size_t i = 0; i < bench->n_rows; i++)
		n += !bench->rows[i].hidden;
	return n > 0 ? 0 : tool_fail("no row fits; --list shows what there is");
}

static int
measure_rows(struct bench *bench)
{
	if (bench_run(bench) < 0)
		return -1;
	bench_print(bench, stdout);
	if (bench->options.peers)
		bench_print_figures(bench, stdout);
	if (!bench->options.json)
		printf(
		    "\nKeccak floor: %.4f us a permutation, the cheapest lane of this "
		    "run\n",
		    bench_lane_us(bench));
	return bench->options.plot_path ? bench_plot(bench, bench->options.plot_path)
					: 0;
}

int
main(int argc, char **argv)
{
	struct bench bench = {
	    .options = {.duration_ms = 10, .repeats = 11, .warmup_ms = 20},
	};
	int r = parse(&bench.options, argc, argv);

	if (r != 0)
		return r > 0 ? EXIT_DONE : EXIT_USAGE;
	r = tool_open_backends(bench.kems);
	bench.n_backends = r > 0 ? (unsigned)r : 0;
	if (r > 0)
		r = 0;
	if (r == 0 && !bench.options.json && !bench.options.list)
		print_header(&bench);
	if (r == 0)
		r = collect_rows(&bench);
	if (r == 0 && bench.options.list)
		r = list_rows(&bench);
	else if (r == 0 && bench.options.profile_s > 0)
		r = bench_profile(&bench);
	else if (r == 0)
		r = measure_rows(&bench);
	bench_fini(&bench);
	if (fflush(stdout) != 0)
		r = tool_fail("standard output: %s", strerror(errno));
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}
