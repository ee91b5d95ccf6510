/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_keys.c judges every value of every key as the provider itself does, and with the
 * provider's words: two tables, kept equal here.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kem/fault.h"
#include "provider/config.h"
#include "tools/conf_keys.h"

#define A50 "a23456789a23456789a23456789a23456789a23456789a2345"

static const char *const values[] = {"", " ", "/", "/s", "s", "./s",
    "/" A50 A50 "a23456", "/" A50 A50 "a234567", "auto", "daemon", "local", "AUTO",
    "Daemon", "fast", "autos", "yes", "true", "on", "1", "no", "false", "off", "0",
    "YES", "No", "y", "2", "maybe", "00", "01", "007", "63", "64", "65", "064", "-1",
    "+1", "1x", "x1", " 1", "1 ", "1000", "4294967294", "4294967295", "4294967296",
    "18446744073709551615", "18446744073709551616", "18446744073709551617",
    "99999999999999999999999", "99us", "100us", "100 us", "100  us", "100us ", "1ms",
    "1 ms", "0ms", "2.5ms", "-2ms", "2MS", "10s", "11s", "10000ms", "10001ms",
    "10000000us", "10000001us", "1h", "2min", "us", "ms", "s", "1000000s",
    "18446744073710s", "root"};
enum { N_VALUES = sizeof(values) / sizeof(values[0]) };

struct section {
	const char *keys[2], *values[2];
};

static const char *
find_in(void *arg, const char *key)
{
	const struct section *section = arg;

	for (int i = 0; i < 2; i++)
		if (section->keys[i] && strcmp(section->keys[i], key) == 0)
			return section->values[i];
	return NULL;
}

static bool
provider_takes(struct section section, char error[CONFIG_ERROR_MAX])
{
	struct config config;

	return config_read(&config, find_in, &section, error, CONFIG_ERROR_MAX) == 0;
}

/* How many values the two judge differently, or with other words. */
static unsigned
count_differences(const char *key)
{
	unsigned n = 0;

	for (int i = 0; i < N_VALUES; i++) {
		char theirs[CONFIG_ERROR_MAX] = "", ours[CONF_ERROR_MAX] = "";
		bool taken =
		    provider_takes((struct section){{key}, {values[i]}}, theirs);

		if (conf_key_check(key, values[i], ours, sizeof(ours)) != taken ||
		    strcmp(ours, theirs) != 0)
			n++;
	}
	return n;
}

START_TEST(each_value)
{
	const char *key;

	for (unsigned i = 0; (key = conf_key_number(i)); i++)
		ck_assert_msg(count_differences(key) == 0, "%s", key);
}
END_TEST

static const char *
note_key(void *arg, const char *key)
{
	unsigned *n = arg;
	char error[CONF_ERROR_MAX];

	++*n;
	ck_assert_ptr_nonnull(strstr("socket server-uid route require deadline leases "
				     "takeover",
	    key));
	(void)conf_key_check(key, "", error, sizeof(error));
	ck_assert_ptr_null(strstr(error, "no key of the provider"));
	return NULL;
}

/* A key that the provider learns is missed here until it stands in both. */
START_TEST(each_key)
{
	char error[CONFIG_ERROR_MAX];
	struct config config;
	unsigned n = 0, n_ours = 0;

	ck_assert_int_eq(config_read(&config, note_key, &n, error, sizeof(error)), 0);
	while (conf_key_number(n_ours))
		n_ours++;
	ck_assert_uint_eq(n, n_ours);
	ck_assert(!conf_key_check("color", "1", error, sizeof(error)));
}
END_TEST

START_TEST(route_and_require)
{
	static const char *const routes[] = {
	    NULL, "auto", "Auto", "daemon", "DAEMON", "local"};
	static const char *const requires[] = {NULL, "yes", "ON", "1", "no", "0"};

	for (unsigned i = 0; i < 6; i++) {
		for (unsigned j = 0; j < 6; j++) {
			char theirs[CONFIG_ERROR_MAX] = "", ours[CONF_ERROR_MAX] = "";
			struct section section = {{routes[i] ? "route" : NULL,
						      requires[j] ? "require" : NULL},
			    {routes[i], requires[j]}};

			ck_assert_int_eq(
			    conf_keys_agree(routes[i], requires[j], ours, sizeof(ours)),
			    provider_takes(section, theirs));
			ck_assert_str_eq(ours, theirs);
		}
	}
}
END_TEST

/* Control: a table that takes everything is another table. */
START_TEST(planted)
{
	const char *key;

	setenv("MLKEMD_FAULT", "ctl-any-conf-value", 1);
	for (unsigned i = 0; (key = conf_key_number(i)); i++)
		ck_assert_msg(count_differences(key) > 0, "%s", key);
	unsetenv("MLKEMD_FAULT");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("conf_keys");
	TCase *tcase = tcase_create("equal");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, each_value);
	tcase_add_test(tcase, each_key);
	tcase_add_test(tcase, route_and_require);
	if (fault_build())
		tcase_add_test(tcase, planted);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
