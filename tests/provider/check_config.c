/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section of openssl.cnf: each mistake keeps the provider out, with an error that
 * names the key, its value and what is allowed; each right value is taken as meant.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "host.h"
#include "provider/config.h"

#define A50 "a23456789a23456789a23456789a23456789a23456789a2345"

static const struct {
	const char *line;
	const char *error; /* has to be in it, after "mlkemd: in its section ..." */
} mistakes[] = {
    {"socket = mlkemd.sock", "socket = mlkemd.sock: allowed is an absolute path"},
    {"socket = run/mlkemd/mlkemd.sock", "an absolute path of at most 107 bytes"},
    {"socket = /", "socket = /: allowed"},
    {"socket = ", "socket = : allowed"},
    {"socket = /" A50 A50 "a234567", "at most 107 bytes"},
    {"route = fast", "route = fast: allowed are auto, daemon and local"},
    {"route = ", "route = : allowed are auto"},
    {"require = maybe", "require = maybe: allowed are yes and no"},
    {"require = 2", "require = 2: allowed are yes and no"},
    {"takeover = perhaps", "takeover = perhaps: allowed are yes and no"},
    {"deadline = 2", "deadline = 2: allowed is a number with us, ms or s"},
    {"deadline = 2min", "from 100us to 10s"},
    {"deadline = -2ms", "deadline = -2ms: allowed"},
    {"deadline = 99us", "from 100us to 10s"},
    {"deadline = 11s", "from 100us to 10s"},
    {"deadline = 0ms", "from 100us to 10s"},
    {"deadline = 18446744073709551617us", "from 100us to 10s"},
    {"deadline = 2.5ms", "deadline = 2.5ms: allowed"},
    {"server-uid = mlkemd", "server-uid = mlkemd: allowed is the number of a user"},
    {"server-uid = 4294967295", "from 0 to 4294967294"},
    {"server-uid = -1", "server-uid = -1: allowed"},
    {"server-uid = 1x", "server-uid = 1x: allowed"},
    {"leases = 65", "leases = 65: allowed is a number from 0 to 64"},
    {"leases = many", "leases = many: allowed is a number"},
    {"leases = -1", "leases = -1: allowed"},
    {"route = auto\nrequire = yes", "require = yes: with it the route is daemon"},
    {"route = local\nrequire = yes", "auto and local are not allowed"},
};
enum { N_MISTAKES = sizeof(mistakes) / sizeof(mistakes[0]) };

START_TEST(a_mistake)
{
	struct host host;
	char lines[300];
	const char *errors;

	snprintf(lines, sizeof(lines), "%s\n", mistakes[_i].line);
	ck_assert(!host_try(&host, lines));
	errors = host_errors();
	ck_assert_msg(strstr(errors, "mlkemd: in its section of openssl.cnf, ") &&
			  strstr(errors, mistakes[_i].error),
	    "%s gave: %s", mistakes[_i].line, errors);
	ck_assert_msg(strstr(errors, "invalid config data"), "%s", errors);
	host_close(&host);
}
END_TEST

static const char *
find_in(void *arg, const char *key)
{
	const char *const *line = arg;
	size_t len = strlen(key);

	for (; *line != NULL; line++)
		if (strncmp(*line, key, len) == 0 && (*line)[len] == '=')
			return *line + len + 1;
	return NULL;
}

static void
read_lines(struct config *config, const char *const *lines)
{
	char error[CONFIG_ERROR_MAX] = "";

	ck_assert_msg(
	    config_read(config, find_in, (void *)lines, error, sizeof(error)) == 0,
	    "%s", error);
}

START_TEST(defaults)
{
	const char *none[] = {NULL};
	struct config config;

	read_lines(&config, none);
	ck_assert_str_eq(config.socket, "/run/mlkemd/mlkemd.sock");
	ck_assert_int_eq(config.route, CONFIG_ROUTE_AUTO);
	ck_assert(!config.require && !config.takeover && !config.server_uid_set);
	ck_assert_uint_eq(config.deadline_us, 2000);
	ck_assert_uint_eq(config.leases, 0);
}
END_TEST

START_TEST(right_values)
{
	const char *all[] = {"socket=/s", "route=Daemon", "require=on",
	    "deadline=300 us", "server-uid=0", "leases=64", "takeover=TRUE", NULL};
	const char *require[] = {"require=1", NULL};
	const char *slow[] = {"deadline=10s", "route=local", "require=no", NULL};
	struct config config;

	read_lines(&config, all);
	ck_assert_str_eq(config.socket, "/s");
	ck_assert_int_eq(config.route, CONFIG_ROUTE_DAEMON);
	ck_assert(config.require && config.takeover && config.server_uid_set);
	ck_assert_uint_eq(config.server_uid, 0);
	ck_assert_uint_eq(config.deadline_us, 300);
	ck_assert_uint_eq(config.leases, 64);
	read_lines(&config, require);
	ck_assert_int_eq(config.route, CONFIG_ROUTE_DAEMON);
	ck_assert_uint_eq(config.deadline_us, 100000);
	read_lines(&config, slow);
	ck_assert_int_eq(config.route, CONFIG_ROUTE_LOCAL);
	ck_assert_uint_eq(config.deadline_us, 10000000);
}
END_TEST

/* Control of the table: without a mistake the same way of loading succeeds. */
START_TEST(no_mistake)
{
	struct host host;

	host_open(&host, "socket = /nonexistent/s\nroute = auto\ndeadline = 2ms\n");
	ck_assert_uint_eq(host_count(&host, "connects"), 0);
	host_close(&host);
}
END_TEST

/* With what refuses taken out, a mistake is a provider with another meaning. */
START_TEST(planted)
{
	struct host host;

	setenv("MLKEMD_FAULT", "provider-any-config", 1);
	ck_assert(host_try(&host, "route = fast\n"));
	unsetenv("MLKEMD_FAULT");
	host_close(&host);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("provider config");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, defaults);
	tcase_add_test(tcase, right_values);
	tcase_add_test(tcase, no_mistake);
	tcase_add_loop_test(tcase, a_mistake, 0, N_MISTAKES);
	if (host_has_hooks())
		tcase_add_test(tcase, planted);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
