/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client-lib/mlkemclient.h"
#include "kem/arch/dispatch.h"
#include "leak.h"
#include "tools/mlkem-bench/common.h"
#include "tools/mlkem-bench/measure.h"

enum { EXIT_NO_EVIDENCE, EXIT_LEAK, EXIT_USAGE, EXIT_NOT_RUN };

#define CASES_MAX     256
#define CONTROL_TRIES 3

static const char help[] =
    "mlkem-ct: does the time of this build, on this CPU, tell its secrets?\n"
    "\n"
    "usage: mlkem-ct [OPTIONS] [TEST ...]\n"
    "\n"
    "Each TEST (all without one) runs an operation on inputs of two classes in\n"
    "random order and compares the times by Welch's t. Before them a comparison\n"
    "that does leak is measured, to show that this machine's clock can tell.\n"
    "\n"
    "  --measurements N   a test (100000)\n"
    "  --time S           a test, at most (10)\n"
    "  --floor TICKS      means that lie less apart are told, and no leak (8)\n"
    "  --continuous       again and again, adding up, until interrupted\n"
    "  --seed N           makes the inputs of an earlier run again\n"
    "  --backend NAME     generic, avx2, avx512, or all (the best of this CPU)\n"
    "  --set N            512, 768 or 1024 (768)\n"
    "  --socket PATH      of the mlkemd that socket_decaps asks\n"
    "                     (" MLKEMCLIENT_DEFAULT_SOCKET ")\n"
    "  --control          the leaking comparison alone\n"
    "  --list             the tests\n"
    "  --json             one object a test\n"
    "  --help, --version\n"
    "\n"
    "exit status: 0 no evidence of a leak, 1 leak found, 2 usage, 3 could not run\n"
    "(an operation failed, all tests were skipped, or the clock is too coarse to\n"
    "see the comparison that leaks).\n"
    "\n"
    "  $ mlkem-ct\n"
    "  $ mlkem-ct --measurements 1000000 --time 600 decaps_ctxt_off_by_one\n"
    "  $ taskset -c 1 mlkem-ct --backend all --continuous\n";

enum {
	OPT_MEASUREMENTS = 256,
	OPT_TIME,
	OPT_FLOOR,
	OPT_CONTINUOUS,
	OPT_SEED,
	OPT_BACKEND,
	OPT_SET,
	OPT_SOCKET,
	OPT_CONTROL,
	OPT_LIST,
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
    {"measurements", required_argument, NULL, OPT_MEASUREMENTS},
    {"time", required_argument, NULL, OPT_TIME},
    {"floor", required_argument, NULL, OPT_FLOOR},
    {"continuous", no_argument, NULL, OPT_CONTINUOUS},
    {"seed", required_argument, NULL, OPT_SEED},
    {"backend", required_argument, NULL, OPT_BACKEND},
    {"set", required_argument, NULL, OPT_SET},
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"control", no_argument, NULL, OPT_CONTROL},
    {"list", no_argument, NULL, OPT_LIST},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int
parse_set(struct leak_options *options, const char *text)
{
	static const char *const names[] = {"512", "768", "1024"};

	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			options->set = KEM_ALG_MLKEM512 + i;
			return 0;
		}
	}
	return tool_fail("--set %.20s: 512, 768 or 1024 is allowed", text);
}

static int
parse_backend(struct leak_options *options, const char *text)
{
	char names[128] = "";
	size_t n = 0;

	options->backend = text;
	if (strcmp(text, "all") == 0)
		return 0;
	for (unsigned i = 0; backend_number(i) && n < sizeof(names); i++) {
		if (strcmp(text, backend_number(i)->name) == 0)
			return 0;
		n += (size_t)snprintf(
		    names + n, sizeof(names) - n, "%s, ", backend_number(i)->name);
	}
	return tool_fail(
	    "--backend %.20s: allowed are %sand all (the best of this CPU if not given)",
	    text, names);
}

static int
set_option(struct leak_options *options, int option, const char *text)
{
	switch (option) {
	case OPT_MEASUREMENTS:
		return tool_whole(
		    "measurements", text, 1000, 1000000000000, &options->measurements);
	case OPT_TIME:
		return tool_number("time", text, 0.01, 1000000, &options->time_s);
	case OPT_FLOOR:
		return tool_number("floor", text, 0, 1000000, &options->floor);
	case OPT_CONTINUOUS:
		options->continuous = true;
		return 0;
	case OPT_SEED:
		return tool_whole("seed", text, 0, UINT64_MAX, &options->seed);
	case OPT_BACKEND:
		return parse_backend(options, text);
	case OPT_SET:
		return parse_set(options, text);
	case OPT_SOCKET:
		if (*text == '\0' || strlen(text) > 107)
			return tool_fail("--socket: a path of 1 to 107 bytes is "
					 "allowed");
		options->socket_path = text;
		return 0;
	case OPT_CONTROL:
		options->control = true;
		return 0;
	case OPT_LIST:
		options->list = true;
		return 0;
	case OPT_JSON:
		options->json = true;
		return 0;
	}
	return -1; /* getopt has said why */
}

/* Returns 0, or -1 after saying why, or 1: all done already. */
static int
parse(struct leak_options *options, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == OPT_HELP) {
			fputs(help, stdout);
			return 1;
		}
		if (option == OPT_VERSION) {
			puts("mlkem-ct " MLKEMD_VERSION);
			return 1;
		}
		if (set_option(options, option, optarg) < 0)
			return -1;
	}
	options->names = argv + optind;
	options->n_names = (unsigned)(argc - optind);
	for (unsigned i = 0; i < options->n_names; i++) {
		if (!leak_test_find(options->names[i]))
			return tool_fail(
			    "%.40s is no test; --list shows them", options->names[i]);
	}
	if (options->control && options->n_names > 0)
		return tool_fail("--control takes no test beside it");
	return 0;
}

static void
on_signal(int number)
{
	leak_stop = true;
}

static void
catch_signals(void)
{
	/* Once: a second one ends it as ever. */
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static void
list_tests(void)
{
	const struct leak_test *test;

	for (unsigned i = 0; (test = leak_test_number(i)) != NULL; i++)
		printf("%-30s %s\n", test->name, test->about);
}

/* How far two readings of the clock lie apart at least. */
static double
clock_step(void)
{
	double least = 1e9;

	for (unsigned i = 0; i < 1000; i++) {
		uint64_t start = measure_ticks_fenced();
		double step = (double)(measure_ticks_fenced() - start);

		if (step > 0 && step < least)
			least = step;
	}
	return least;
}

static void
print_head(const struct leak_options *options)
{
	char cpu[128];

	tool_cpu_line("model name", cpu, sizeof cpu);
	printf("mlkem-ct " MLKEMD_VERSION ", built by " CT_BUILD "\n");
	printf("CPU: %s; clock: %s, in steps of %.0f\n", cpu, measure_ticks_name,
	    clock_step());
	printf("measurements: %llu, time: %g s a test, floor: %g ticks\n",
	    (unsigned long long)options->measurements, options->time_s, options->floor);
	fflush(stdout);
}

static bool
wants(const struct leak_options *options, const struct leak_test *test)
{
	if (test->flags & LEAK_CONTROL)
		return true;
	for (unsigned i = 0; i < options->n_names; i++) {
		if (strcmp(options->names[i], test->name) == 0)
			return true;
	}
	return options->n_names == 0 && !options->control;
}

/* The kems of --backend, in front. Returns how many, or -1 after saying why. */
static int
choose_kems(const struct leak_options *options, struct kem **kems)
{
	int n = tool_open_backends(kems);

	if (n <= 0)
		return n < 0 ? n : tool_fail("no backend can run here");
	if (options->backend && strcmp(options->backend, "all") == 0)
		return n;
	for (int i = 0; options->backend && i < n; i++) {
		struct kem *kem = kems[i];

		if (strcmp(kem_backend_name(kem), options->backend) == 0) {
			kems[i] = kems[0];
			kems[0] = kem;
			return 1;
		}
	}
	return options->backend
		   ? tool_fail("%s can't run on this CPU", options->backend)
		   : 1;
}

/* Every test wanted, by every backend; the control once, before all others. */
static unsigned
collect(struct leak_case *cases, const struct leak_options *options,
    struct kem *const *kems, unsigned n_kems)
{
	const struct leak_test *test;
	unsigned n = 0;

	for (unsigned k = 0; k < n_kems; k++) {
		for (unsigned i = 0; (test = leak_test_number(i)) != NULL; i++) {
			bool once = test->flags & (LEAK_CONTROL | LEAK_SOCKET);

			if (!wants(options, test) || (once && k > 0) || n == CASES_MAX)
				continue;
			leak_case_init(&cases[n++], test, kems[k], options);
		}
	}
	return n;
}

static void
no_line(const struct leak_case *leak)
{
}

static int
run_case(struct leak_case *leak, const struct leak_options *options)
{
	int r;

	if (!options->json)
		report_head(leak);
	r = leak_run(leak, options, options->json ? no_line : report_line);
	if (r == 0)
		(options->json ? report_json : report_verdict)(leak);
	return r;
}

/* Returns an exit status. */
static int
run_cases(struct leak_case *cases, unsigned n, const struct leak_options *options)
{
	unsigned n_seen = 0, n_run = 0;

	/* A clock that misses this one says nothing of the others; a busy moment passes. */
	for (unsigned i = 0; i < CONTROL_TRIES && !leak_stop; i++) {
		cases[0].stats.n = 0;
		if (run_case(&cases[0], options) < 0)
			return EXIT_NOT_RUN;
		if (cases[0].verdict == LEAK_SEEN)
			break;
	}
	if (cases[0].verdict != LEAK_SEEN && !leak_stop) {
		tool_fail("the comparison that leaks was not seen: this clock can't "
			  "tell, or the machine is too busy");
		return EXIT_NOT_RUN;
	}
	do {
		for (unsigned i = 1; i < n && !leak_stop; i++) {
			if (run_case(&cases[i], options) < 0)
				return EXIT_NOT_RUN;
		}
	} while (options->continuous && n > 1 && !leak_stop);
	for (unsigned i = 1; i < n; i++) {
		n_seen += cases[i].verdict == LEAK_SEEN;
		n_run += cases[i].verdict != LEAK_SKIPPED && cases[i].stats.n > 0;
	}
	if (n_seen > 0)
		return EXIT_LEAK;
	return n_run > 0 || n == 1 ? EXIT_NO_EVIDENCE : EXIT_NOT_RUN;
}

int
main(int argc, char **argv)
{
	struct leak_options options = {.set = KEM_ALG_MLKEM768,
	    .measurements = 100000,
	    .time_s = 10,
	    .floor = 8,
	    .socket_path = MLKEMCLIENT_DEFAULT_SOCKET};
	struct kem *kems[TOOL_BACKENDS_MAX] = {NULL};
	struct leak_case *cases = NULL;
	int r, status = EXIT_NOT_RUN;

	if (getrandom(&options.seed, sizeof options.seed, 0) != sizeof options.seed)
		return EXIT_NOT_RUN;
	r = parse(&options, argc, argv);
	if (r != 0)
		return r > 0 ? EXIT_NO_EVIDENCE : EXIT_USAGE;
	if (options.list) {
		list_tests();
		return EXIT_NO_EVIDENCE;
	}
	catch_signals();
	r = choose_kems(&options, kems);
	cases = r > 0 ? calloc(CASES_MAX, sizeof *cases) : NULL;
	if (cases) {
		if (!options.json)
			print_head(&options);
		status = run_cases(
		    cases, collect(cases, &options, kems, (unsigned)r), &options);
	}
	free(cases);
	for (unsigned i = 0; i < TOOL_BACKENDS_MAX; i++)
		kem_free(kems[i]);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		tool_fail("standard output could not be written");
		status = EXIT_NOT_RUN;
	}
	return status;
}
