/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kem/kem.h"
#include "log.h"
#include "sandbox.h"
#include "server.h"

#define FLAGS_MAX 64

static const char usage[] =
    "mlkemd: exchanges post-quantum keys for the programs of this host\n"
    "\n"
    "usage: mlkemd [--config FILE] [flags]\n"
    "\n"
    "  --config FILE          instead of " CONFIG_DEFAULT_FILE "; must exist;\n"
    "                         conf.d/*.conf beside it are read after it\n"
    "  --set SECTION.KEY=VALUE  any key of the configuration; wins over files\n"
    "  --socket PATH          --set socket.path=PATH\n"
    "  --control-socket PATH  --set socket.control-path=PATH\n"
    "  --backend NAME         --set kem.backend=NAME\n"
    "  --log-level LEVEL      --set daemon.log-level=LEVEL\n"
    "  --check                says whether the configuration is good, and ends\n"
    "  --print-config         prints every key, its value and where it came from\n"
    "  --version, --help\n"
    "\n"
    "Signals: TERM and INT drain and end, HUP reads the configuration again.\n"
    "Exit status: 0 told to end, 1 can't start or go on, 2 configuration or usage,\n"
    "3 self-test or randomness failed.\n";

struct options {
	struct config_flag flags[FLAGS_MAX];
	struct config_sources sources;
	bool check, print;
};

enum {
	OPT_CONFIG = 256,
	OPT_SET,
	OPT_CHECK,
	OPT_PRINT,
	OPT_VERSION,
	OPT_HELP,
	OPT_KEY
};

/* OPT_KEY + i is short for the key i. */
static const struct {
	const char *flag, *key;
} short_flags[] = {
    {"--socket", "socket.path"},
    {"--control-socket", "socket.control-path"},
    {"--backend", "kem.backend"},
    {"--log-level", "daemon.log-level"},
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, OPT_CONFIG},
    {"set", required_argument, NULL, OPT_SET},
    {"check", no_argument, NULL, OPT_CHECK},
    {"print-config", no_argument, NULL, OPT_PRINT},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {"socket", required_argument, NULL, OPT_KEY},
    {"control-socket", required_argument, NULL, OPT_KEY + 1},
    {"backend", required_argument, NULL, OPT_KEY + 2},
    {"log-level", required_argument, NULL, OPT_KEY + 3},
    {0},
};

static int
usage_error(const char *what, const char *argument)
{
	fprintf(stderr, "mlkemd: %s%s; see mlkemd --help\n", what, argument);
	return SERVER_EXIT_CONFIG;
}

/* "section.key=value"; the two halves point into text. */
static int
options_set(struct options *options, const char *flag, const char *key, char *text)
{
	struct config_flag *last = &options->flags[options->sources.n_flags];

	if (options->sources.n_flags == FLAGS_MAX)
		return usage_error("too many flags: ", flag);
	if (!key) {
		char *equals = strchr(text, '=');

		if (!equals)
			return usage_error("--set takes SECTION.KEY=VALUE, not ", text);
		*equals = '\0';
		key = text;
		text = equals + 1;
	}
	*last = (struct config_flag){.flag = flag, .key = key, .value = text};
	options->sources.n_flags++;
	return 0;
}

/* Returns -1 to go on, or an exit status. */
static int
options_parse(struct options *options, int argc, char **argv)
{
	int opt, r = 0;

	options->sources.file = CONFIG_DEFAULT_FILE;
	options->sources.flags = options->flags;
	opterr = 0;
	while (!r && (opt = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		switch (opt) {
		case OPT_CONFIG:
			options->sources.file = optarg;
			options->sources.file_required = true;
			break;
		case OPT_SET:
			r = options_set(options, "--set", NULL, optarg);
			break;
		case OPT_CHECK:
			options->check = true;
			break;
		case OPT_PRINT:
			options->print = true;
			break;
		case OPT_VERSION:
			puts("mlkemd " MLKEMD_VERSION);
			return SERVER_EXIT_OK;
		case OPT_HELP:
			fputs(usage, stdout);
			return SERVER_EXIT_OK;
		case ':':
			return usage_error(
			    "a value is missing after ", argv[optind - 1]);
		case '?':
			return usage_error("no such flag: ", argv[optind - 1]);
		default:
			r = options_set(options, short_flags[opt - OPT_KEY].flag,
			    short_flags[opt - OPT_KEY].key, optarg);
			break;
		}
	}
	if (!r && optind < argc)
		return usage_error("no such argument: ", argv[optind]);
	return r ? r : -1;
}

/* What a file can't say by itself: is there such a backend on this CPU? */
static int
check_backend(const struct config *config)
{
	struct kem *kem = NULL;
	char text[512];
	int r = kem_open(&kem, config->backend);

	kem_free(kem);
	if (!r)
		return 0;
	if (r == KEM_FAIL_BACKEND)
		server_explain_backend(config, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%s: kem.backend: %s",
		    config_origin(config, "kem.backend"), kem_strerror(r));
	fprintf(stderr, "%s\n", text);
	return SERVER_EXIT_CONFIG;
}

int
main(int argc, char **argv)
{
	static struct options options;
	struct config *config = NULL;
	char error[512];
	int r = options_parse(&options, argc, argv);

	if (r >= 0)
		return r;
	umask(077);
	sandbox_harden();
	r = config_load(&config, &options.sources, NULL, error, sizeof(error));
	if (r == CONFIG_E_INVALID) {
		if (options.check || options.print)
			fprintf(stderr, "%s\n", error);
		else
			log_event(LOG_ERR, "config-invalid", "%s", error);
		return SERVER_EXIT_CONFIG;
	}
	if (r) {
		log_event(LOG_ERR, "start-failed", "%s", strerror(-r));
		return SERVER_EXIT_FAILED;
	}
	if (options.print)
		config_print(config, stdout);
	if (options.check)
		r = check_backend(config);
	if (!options.print && !options.check)
		return server_run(config, &options.sources);
	if (options.check && !r)
		fprintf(stderr, "the configuration is good\n");
	config_free(config);
	return r;
}
