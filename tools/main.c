/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: mlkemctl's command line. Options may stand before or behind the subcommand;
 * which of them a subcommand takes is said in one table.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "ctl.h"
#include "paths.h"

enum {
	OPT_SOCKET,
	OPT_CONTROL,
	OPT_LOCAL,
	OPT_REQUIRE,
	OPT_TIMEOUT,
	OPT_IN,
	OPT_OUT,
	OPT_FORMAT,
	OPT_IN_FORMAT,
	OPT_PEER,
	OPT_KEY,
	OPT_SECRET_OUT,
	OPT_EXPORT,
	OPT_COUNT,
	OPT_EXCHANGES,
	OPT_IN_FLIGHT,
	OPT_SERVERNAME,
	OPT_GROUPS,
	OPT_SPLIT,
	OPT_SET,
	OPT_CONNECTIONS,
	OPT_OP,
	OPT_ITEMS,
	OPT_RATE,
	OPT_IDLE,
	OPT_SPIN,
	OPT_DURATION,
	OPT_ROUNDS,
	OPT_COMPARE,
	OPT_PLOT,
	OPT_INTERVAL,
	N_OPTIONS,
	/* Taken everywhere. */
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION,
	/* Taken nowhere: asked for often enough to deserve an answer. */
	OPT_SECRET,
};

#define BIT(option) (1u << (option))
#define DAEMON      (BIT(OPT_SOCKET) | BIT(OPT_TIMEOUT))
#define EITHER      (DAEMON | BIT(OPT_LOCAL) | BIT(OPT_REQUIRE))
#define CONTROL     (BIT(OPT_CONTROL) | BIT(OPT_TIMEOUT))
#define VALUES      (BIT(OPT_FORMAT) | BIT(OPT_IN_FORMAT) | BIT(OPT_SECRET_OUT))

/* What may stand behind the subcommand. */
enum word {
	WORD_NONE,
	WORD_ALGORITHM,
	WORD_PEER,
};

static const struct command {
	const char *name;
	int (*run)(struct ctl *ctl);
	unsigned options;
	enum word word;
	uint32_t timeout_ms; /* 0: the usual second */
} commands[] = {
    {"ping", ctl_ping, DAEMON | BIT(OPT_COUNT), WORD_NONE, 0},
    {"info", ctl_info, DAEMON | BIT(OPT_LOCAL), WORD_NONE, 0},
    {"keygen", ctl_keygen,
	EITHER | VALUES | BIT(OPT_OUT) | BIT(OPT_PEER) | BIT(OPT_EXPORT),
	WORD_ALGORITHM, 0},
    {"encaps", ctl_encaps, EITHER | VALUES | BIT(OPT_IN) | BIT(OPT_OUT), WORD_ALGORITHM,
	0},
    {"decaps", ctl_decaps, EITHER | VALUES | BIT(OPT_IN) | BIT(OPT_KEY), WORD_ALGORITHM,
	0},
    {"selftest", ctl_selftest, CONTROL | BIT(OPT_LOCAL), WORD_NONE, 0},
    {"stats", ctl_stats, CONTROL, WORD_NONE, 0},
    {"reload", ctl_reload, CONTROL, WORD_NONE, 0},
    {"drain", ctl_drain, CONTROL, WORD_NONE, 0},
    {"resume", ctl_resume, CONTROL, WORD_NONE, 0},
    {"demo", ctl_demo,
	DAEMON | BIT(OPT_CONTROL) | BIT(OPT_EXCHANGES) | BIT(OPT_IN_FLIGHT),
	WORD_ALGORITHM, 0},
    {"bench", ctl_bench,
	DAEMON | BIT(OPT_CONTROL) | BIT(OPT_IN_FLIGHT) | BIT(OPT_PEER) |
	    BIT(OPT_CONNECTIONS) | BIT(OPT_OP) | BIT(OPT_ITEMS) | BIT(OPT_RATE) |
	    BIT(OPT_IDLE) | BIT(OPT_SPIN) | BIT(OPT_DURATION) | BIT(OPT_ROUNDS) |
	    BIT(OPT_COMPARE) | BIT(OPT_PLOT),
	WORD_ALGORITHM, 0},
    {"top", ctl_top, CONTROL | BIT(OPT_COUNT) | BIT(OPT_INTERVAL), WORD_NONE, 0},
    {"doctor", ctl_doctor, DAEMON | BIT(OPT_CONTROL), WORD_NONE, 0},
    {"tls", ctl_tls,
	BIT(OPT_TIMEOUT) | BIT(OPT_SERVERNAME) | BIT(OPT_GROUPS) | BIT(OPT_SPLIT) |
	    BIT(OPT_REQUIRE),
	WORD_PEER, 10000},
    {"openssl-conf", ctl_openssl_conf,
	BIT(OPT_SOCKET) | BIT(OPT_IN) | BIT(OPT_OUT) | BIT(OPT_GROUPS) | BIT(OPT_SET),
	WORD_NONE, 0},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct option long_options[] = {
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"control-socket", required_argument, NULL, OPT_CONTROL},
    {"local", no_argument, NULL, OPT_LOCAL},
    {"require", no_argument, NULL, OPT_REQUIRE},
    {"timeout-ms", required_argument, NULL, OPT_TIMEOUT},
    {"in", required_argument, NULL, OPT_IN},
    {"out", required_argument, NULL, OPT_OUT},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"in-format", required_argument, NULL, OPT_IN_FORMAT},
    {"peer", required_argument, NULL, OPT_PEER},
    {"key", required_argument, NULL, OPT_KEY},
    {"secret-out", required_argument, NULL, OPT_SECRET_OUT},
    {"export", required_argument, NULL, OPT_EXPORT},
    {"count", required_argument, NULL, OPT_COUNT},
    {"exchanges", required_argument, NULL, OPT_EXCHANGES},
    {"in-flight", required_argument, NULL, OPT_IN_FLIGHT},
    {"servername", required_argument, NULL, OPT_SERVERNAME},
    {"groups", required_argument, NULL, OPT_GROUPS},
    {"split", required_argument, NULL, OPT_SPLIT},
    {"set", required_argument, NULL, OPT_SET},
    {"connections", required_argument, NULL, OPT_CONNECTIONS},
    {"op", required_argument, NULL, OPT_OP},
    {"items", required_argument, NULL, OPT_ITEMS},
    {"rate", required_argument, NULL, OPT_RATE},
    {"idle-us", required_argument, NULL, OPT_IDLE},
    {"spin-us", required_argument, NULL, OPT_SPIN},
    {"duration-ms", required_argument, NULL, OPT_DURATION},
    {"rounds", required_argument, NULL, OPT_ROUNDS},
    {"compare-local", no_argument, NULL, OPT_COMPARE},
    {"plot", required_argument, NULL, OPT_PLOT},
    {"interval-ms", required_argument, NULL, OPT_INTERVAL},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {"secret", optional_argument, NULL, OPT_SECRET},
    {"private-key", optional_argument, NULL, OPT_SECRET},
    {"seed", optional_argument, NULL, OPT_SECRET},
    {NULL, 0, NULL, 0},
};

/* A long word may be somebody's secret, given in the wrong place: it isn't repeated. */
static const char *
shown(const char *word)
{
	return word && strlen(word) < 40 ? word : "(a long one)";
}

static const char *
option_name(int option)
{
	for (const struct option *o = long_options; o->name; o++) {
		if (o->val == option)
			return o->name;
	}
	return "?";
}

static int
parse_number(const struct ctl *ctl, int option, const char *text, uint32_t min,
    uint32_t max, uint32_t *valuep)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value < min || value > max)
		return ctl_fail(ctl, CTL_USAGE,
		    "--%s %s: a number from %u to %u is "
		    "allowed",
		    option_name(option), shown(text), min, max);
	*valuep = (uint32_t)value;
	return CTL_OK;
}

static int
parse_format(
    const struct ctl *ctl, int option, const char *text, enum bytes_format *formatp)
{
	if (bytes_format_parse(text, formatp) < 0)
		return ctl_fail(ctl, CTL_USAGE,
		    "--%s %s: hex, base64 and raw are allowed", option_name(option),
		    shown(text));
	return CTL_OK;
}

/* The options of bench alone; those of a load make it the only row. */
static int
set_bench_option(struct ctl *ctl, int option, const char *value)
{
	static const char *const ops[] = {"encaps", "client", "mix"};
	struct ctl_bench *bench = &ctl->bench;

	switch (option) {
	case OPT_OP:
		for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
			if (strcmp(value, ops[i]) == 0) {
				bench->op = i;
				return CTL_OK;
			}
		}
		return ctl_fail(ctl, CTL_USAGE,
		    "--op %s: encaps, client and mix are allowed", shown(value));
	case OPT_DURATION:
		return parse_number(
		    ctl, option, value, 10, 3600000, &bench->duration_ms);
	case OPT_ROUNDS:
		return parse_number(
		    ctl, option, value, 1, BENCH_ROUNDS_MAX, &bench->rounds);
	case OPT_COMPARE:
		bench->compare_local = true;
		return CTL_OK;
	default:
		break;
	}
	bench->custom = true;
	switch (option) {
	case OPT_CONNECTIONS:
		return parse_number(ctl, option, value, 1, 4096, &bench->connections);
	case OPT_ITEMS:
		return parse_number(
		    ctl, option, value, 1, MLKEMCLIENT_MAX_ITEMS, &bench->items);
	case OPT_RATE:
		return parse_number(ctl, option, value, 1, 10000000, &bench->rate);
	case OPT_SPIN:
		return parse_number(ctl, option, value, 0, 60000000, &bench->spin_us);
	default:
		return parse_number(ctl, option, value, 0, 60000000, &bench->idle_us);
	}
}

static int
set_option(struct ctl *ctl, int option, const char *value)
{
	const char **paths[N_OPTIONS] = {
	    [OPT_SOCKET] = &ctl->socket_path,
	    [OPT_CONTROL] = &ctl->control_path,
	    [OPT_IN] = &ctl->in_path,
	    [OPT_OUT] = &ctl->out_path,
	    [OPT_PEER] = &ctl->peer_path,
	    [OPT_KEY] = &ctl->key_path,
	    [OPT_SECRET_OUT] = &ctl->secret_path,
	    [OPT_EXPORT] = &ctl->export_path,
	    [OPT_PLOT] = &ctl->bench.plot_path,
	};

	if (option < N_OPTIONS && paths[option]) {
		if (!*value)
			return ctl_fail(ctl, CTL_USAGE,
			    "--%s names a file; its name "
			    "is empty",
			    option_name(option));
		*paths[option] = value;
		return CTL_OK;
	}
	switch (option) {
	case OPT_LOCAL:
		ctl->local = true;
		return CTL_OK;
	case OPT_REQUIRE:
		ctl->require = true;
		return CTL_OK;
	case OPT_JSON:
		ctl->json = true;
		return CTL_OK;
	case OPT_TIMEOUT:
		return parse_number(ctl, option, value, 1, 3600000, &ctl->timeout_ms);
	case OPT_COUNT:
		return parse_number(ctl, option, value, 1, 1000000, &ctl->count);
	case OPT_INTERVAL:
		return parse_number(ctl, option, value, 10, 3600000, &ctl->interval_ms);
	case OPT_EXCHANGES:
		return parse_number(ctl, option, value, 1, 1000000, &ctl->exchanges);
	case OPT_IN_FLIGHT:
		ctl->bench.custom = true;
		return parse_number(
		    ctl, option, value, 1, MLKEMCLIENT_MAX_ITEMS, &ctl->in_flight);
	case OPT_CONNECTIONS:
	case OPT_OP:
	case OPT_ITEMS:
	case OPT_RATE:
	case OPT_IDLE:
	case OPT_SPIN:
	case OPT_DURATION:
	case OPT_ROUNDS:
	case OPT_COMPARE:
		return set_bench_option(ctl, option, value);
	case OPT_SERVERNAME:
		ctl->servername = value;
		return CTL_OK;
	case OPT_GROUPS:
		ctl->groups = value;
		return CTL_OK;
	case OPT_SET:
		if (ctl->n_settings == CTL_MAX_SETTINGS)
			return ctl_fail(ctl, CTL_USAGE, "--set: at most %d times",
			    CTL_MAX_SETTINGS);
		ctl->settings[ctl->n_settings++] = value;
		return CTL_OK;
	case OPT_SPLIT:
		return parse_number(ctl, option, value, 0, 16384, &ctl->split_bytes);
	case OPT_FORMAT:
		return parse_format(ctl, option, value, &ctl->format);
	case OPT_IN_FORMAT:
		return parse_format(ctl, option, value, &ctl->in_format);
	default:
		return ctl_fail(ctl, CTL_USAGE,
		    "no secret is taken from the command line, since everybody on "
		    "this machine can read it there: --key FILE reads a private key, "
		    "--secret-out FILE writes a secret");
	}
}

static int
explain_unknown_command(const struct ctl *ctl, const char *name)
{
	char list[256] = "";
	size_t n = 0;

	for (size_t i = 0; i < N_COMMANDS && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
		    commands[i].name);
	return ctl_fail(ctl, CTL_USAGE, "there is no subcommand %s; there are %s",
	    shown(name), list);
}

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static int
print_help(const struct ctl *ctl, const char *topic)
{
	const char *text = ctl_help(topic);

	if (!text)
		return explain_unknown_command(ctl, topic);
	fputs(text, stdout);
	return CTL_OK;
}

/* A word behind the subcommand: what it takes, or a mistake worth an explanation. */
static int
parse_word(struct ctl *ctl, const struct command *command, const char *word)
{
	size_t len = strlen(word);

	if (command->word == WORD_PEER) {
		ctl->peer = word;
		return CTL_OK;
	}
	if (command->word == WORD_ALGORITHM &&
	    mlkemclient_alg_parse(word, &ctl->alg) == 0)
		return CTL_OK;
	if (len >= 40)
		return ctl_fail(ctl, CTL_USAGE,
		    "%zu characters stand where an algorithm may: shares and "
		    "ciphertexts come from a file or standard input, secrets never "
		    "from the command line, where everybody can read them",
		    len);
	if (command->word == WORD_NONE)
		return ctl_fail(
		    ctl, CTL_USAGE, "%s takes no argument %s", command->name, word);
	return ctl_fail(ctl, CTL_USAGE,
	    "unknown algorithm %s; allowed are X25519MLKEM768 (the default), "
	    "ML-KEM-512, ML-KEM-768 and ML-KEM-1024, in any spelling",
	    word);
}

static int
check_options(const struct ctl *ctl, const struct command *command, unsigned given)
{
	for (int option = 0; option < N_OPTIONS; option++) {
		if ((given & BIT(option)) && !(command->options & BIT(option)))
			return ctl_fail(ctl, CTL_USAGE,
			    "%s does not take --%s; `mlkemctl help %s` lists what it "
			    "takes",
			    command->name, option_name(option), command->name);
	}
	if (ctl->local && ctl->require)
		return ctl_fail(ctl, CTL_USAGE,
		    "--local computes in this process and --require forbids it: give "
		    "one");
	if (ctl->json && ctl->format == BYTES_RAW && !ctl->out_path)
		return ctl_fail(ctl, CTL_USAGE,
		    "--json prints text: use --format hex or base64, or --out FILE");
	return paths_check(ctl);
}

/* Reads the options; words that are none are left behind optind by getopt. */
static int
parse_options(struct ctl *ctl, int argc, char **argv, unsigned *givenp, bool *helpp)
{
	int option, status;

	/* --json first, so that a mistake in another option is told in JSON too. */
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		ctl->json |= strcmp(argv[i], "--json") == 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
		const char *word = argv[optind - 1];

		if (option == ':')
			return ctl_fail(ctl, CTL_USAGE, "%s needs a value", word);
		if (option == '?')
			return ctl_fail(ctl, CTL_USAGE,
			    "unknown option %s; `mlkemctl --help` lists them",
			    shown(word));
		if (option == OPT_HELP || option == 'h') {
			*helpp = true;
			continue;
		}
		if (option == OPT_VERSION || option == 'V') {
			printf("mlkemctl %s\n", MLKEMD_VERSION);
			exit(CTL_OK);
		}
		status = set_option(ctl, option, optarg);
		if (status)
			return status;
		if (option < N_OPTIONS)
			*givenp |= BIT(option);
	}
	return CTL_OK;
}

static int
run(struct ctl *ctl, int argc, char **argv)
{
	const struct command *command;
	unsigned given = 0;
	bool help = false;
	int status = parse_options(ctl, argc, argv, &given, &help);

	if (status)
		return status;
	argc -= optind;
	argv += optind;
	if (argc > 0 && strcmp(argv[0], "help") == 0)
		return print_help(ctl, argc > 1 ? argv[1] : NULL);
	if (help)
		return print_help(ctl, argc > 0 ? argv[0] : NULL);
	if (argc == 0)
		return ctl_fail(ctl, CTL_USAGE,
		    "a subcommand is missing; `mlkemctl --help` lists them");
	command = find_command(argv[0]);
	if (!command)
		return explain_unknown_command(ctl, argv[0]);
	ctl->command = command->name;
	ctl->takes_local = command->options & BIT(OPT_LOCAL);
	for (int i = 1; i < argc && !status; i++)
		status = i == 1 ? parse_word(ctl, command, argv[i])
				: ctl_fail(ctl, CTL_USAGE, "one word too many: %s",
				      shown(argv[i]));
	if (!status)
		status = check_options(ctl, command, given);
	if (command->timeout_ms && !(given & BIT(OPT_TIMEOUT)))
		ctl->timeout_ms = command->timeout_ms;
	return status ? status : command->run(ctl);
}

int
main(int argc, char **argv)
{
	struct ctl ctl = {
	    .socket_path = MLKEMCLIENT_DEFAULT_SOCKET,
	    .control_path = CTL_DEFAULT_CONTROL,
	    .alg = MLKEMCLIENT_X25519MLKEM768,
	    .timeout_ms = 1000,
	    .interval_ms = 1000,
	    .exchanges = 1000,
	    .in_flight = 64,
	    .split_bytes = 600,
	    .bench = {.connections = 1,
		.items = 1,
		.rounds = 5,
		.duration_ms = 5000,
		.spin_us = 100},
	};
	int status;

	/* Secrets pass through here: no core file. A closed pipe is an error, not an end. */
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	signal(SIGPIPE, SIG_IGN);
	status = run(&ctl, argc, argv);
	if (fflush(stdout) != 0 && status == CTL_OK)
		status = ctl_fail(&ctl, CTL_FAILED, "cannot write to standard output");
	return status;
}
