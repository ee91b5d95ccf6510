/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config_keys.h"
#include "rig.h"

static char dir[64], file[80], error[512];
static struct config *config;

static void
setup(void)
{
	strcpy(dir, "/tmp/check-config-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/mlkemd.conf", dir);
	error[0] = '\0';
	config = NULL;
}

static void
teardown(void)
{
	char command[128];

	config = config_free(config);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static void
write_file(const char *name, const char *text)
{
	char path[160];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "w");
	ck_assert_ptr_nonnull(out);
	fputs(text, out);
	fclose(out);
}

static int
load_over(const struct config *running, const struct config_flag *flags, size_t n_flags)
{
	struct config_sources sources = {
	    .file = file, .flags = flags, .n_flags = n_flags};

	return config_load(&config, &sources, running, error, sizeof(error));
}

static int
load(const char *text)
{
	config = config_free(config);
	write_file("mlkemd.conf", text);
	return load_over(NULL, NULL, 0);
}

/* One line, with the file, the line's number and the key. */
static void
refused(const char *text, unsigned line, const char *key, const char *allowed)
{
	char where[128];

	ck_assert_msg(load(text) == CONFIG_E_INVALID, "taken: %s", text);
	snprintf(where, sizeof(where), "%s:%u: ", file, line);
	ck_assert_msg(!strncmp(error, where, strlen(where)), "%s does not begin %s",
	    error, where);
	ck_assert_msg(strstr(error, key) != NULL, "%s lacks %s", error, key);
	ck_assert_msg(strstr(error, allowed) != NULL, "%s lacks %s", error, allowed);
	ck_assert_ptr_null(strchr(error, '\n'));
}

START_TEST(no_file_is_needed)
{
	ck_assert_int_eq(load_over(NULL, NULL, 0), 0);
	ck_assert_str_eq(config->path, "/run/mlkemd/mlkemd.sock");
	ck_assert_str_eq(config->control_path, "/run/mlkemd/control.sock");
	ck_assert_uint_eq(config->mode, 0666);
	ck_assert_uint_eq(config->group, (gid_t)-1);
	ck_assert_ptr_null(config->backend);
	ck_assert(!config->export_private && !config->pairwise_check);
	ck_assert(config->pool_enabled);
	ck_assert_uint_eq(config->pool.high[KEYPOOL_HYBRID], 1024);
	ck_assert_uint_eq(config->pool.high[KEYPOOL_MLKEM768], 256);
	ck_assert_uint_eq(config->pool.high[KEYPOOL_X25519], 1024);
	ck_assert_uint_eq(config->pool.low_percent, 50);
	ck_assert_uint_eq(config->pool.max_age_ms, 30000);
	ck_assert_uint_eq(config->handle_lifetime_ms, 60000);
	ck_assert_uint_eq(config->default_timeout_us, 1000000);
	ck_assert_uint_eq(config->buffer_bytes, 2560 * 1024);
	ck_assert_uint_eq(config->shards, 0);
	ck_assert_int_eq(config->secret_memory, SECMEM_PREFER);
	ck_assert_int_eq(config->log_level, 6);
	ck_assert_uint_eq(config->allow_users.ids[0], 0);
	ck_assert_uint_eq(
	    config->allow_users.ids[config->allow_users.n - 1], geteuid());
}
END_TEST

START_TEST(a_named_file_must_exist)
{
	struct config_sources sources = {.file = file, .file_required = true};

	ck_assert_int_eq(config_load(&config, &sources, NULL, error, sizeof(error)),
	    CONFIG_E_INVALID);
	ck_assert_ptr_nonnull(strstr(error, file));
	ck_assert_ptr_nonnull(strstr(error, "No such file"));
	mkdir(file, 0700);
	ck_assert_int_eq(config_load(&config, &sources, NULL, error, sizeof(error)),
	    CONFIG_E_INVALID);
	ck_assert_ptr_nonnull(strstr(error, "directory"));
	rmdir(file);
	ck_assert_int_eq(mkfifo(file, 0600), 0);
	ck_assert_int_eq(config_load(&config, &sources, NULL, error, sizeof(error)),
	    CONFIG_E_INVALID);
	ck_assert_ptr_nonnull(strstr(error, "not a regular file"));
}
END_TEST

START_TEST(values_and_white_space)
{
	ck_assert_int_eq(load("# nothing\n"
			      "\n"
			      "  [ socket ]  # the first\r\n"
			      "\tpath=/a#b # not the rest\n"
			      "mode =600\n"
			      "[limits]\n"
			      "handle-lifetime = 1500 ms\n"
			      "default-timeout = 250ms\n"
			      "buffers = 3M\n"
			      "[pool]\n"
			      "low-water = 25 %\n"
			      "max-age = 2m\n"
			      "enabled = no\n"
			      "[daemon]\n"
			      "log-level = 7\n"
			      "secret-memory = require\n"
			      "shards = 3"),
	    0);
	ck_assert_str_eq(config->path, "/a#b");
	ck_assert_uint_eq(config->mode, 0600);
	ck_assert_uint_eq(config->handle_lifetime_ms, 1500);
	ck_assert_uint_eq(config->default_timeout_us, 250000);
	ck_assert_uint_eq(config->buffer_bytes, 3 << 20);
	ck_assert_uint_eq(config->pool.low_percent, 25);
	ck_assert_uint_eq(config->pool.max_age_ms, 120000);
	ck_assert(!config->pool_enabled);
	ck_assert_int_eq(config->log_level, 7);
	ck_assert_int_eq(config->secret_memory, SECMEM_REQUIRE);
	ck_assert_uint_eq(config->shards, 3);
}
END_TEST

/* What is looser than it might be, and stays so. */
START_TEST(other_spellings)
{
	ck_assert_int_eq(load("[pool]\nlow-water = 25\n"
			      "[metrics]\nlisten = 127.0.0.2:99\n"
			      "[access]\nallow-users =\n"
			      "allow-users = 1 ,\t2  3,4\n"),
	    0);
	ck_assert_uint_eq(config->pool.low_percent, 25);
	ck_assert_str_eq(config->metrics_listen, "127.0.0.2:99");
	ck_assert_uint_eq(config->allow_users.n, 4);
	ck_assert_uint_eq(config->allow_users.ids[3], 4);
}
END_TEST

START_TEST(one_mistake_is_one_line)
{
	char long_path[256], long_line[4096];

	refused("[nonsense]\n", 1, "nonsense", "socket");
	refused("\n[pool]\nhybird = 3\n", 3, "pool.hybird", "hybrid");
	refused("[pool\n", 1, "[name]", "");
	refused("path = /x\n", 1, "path", "[section]");
	refused("[pool]\nhybrid\n", 2, "hybrid", "key = value");
	refused("[pool]\n= 3\n", 2, "key = value", "");
	refused("[pool]\nhybrid = 1\nhybrid = 2\n", 3, "pool.hybrid", "line 2");
	refused("[pool]\nhybrid =\n", 2, "pool.hybrid", "0 to 65536");
	refused("[pool]\nhybrid = -1\n", 2, "pool.hybrid", "0 to 65536");
	refused("[pool]\nhybrid = 65537\n", 2, "pool.hybrid", "0 to 65536");
	refused(
	    "[pool]\nhybrid = 18446744073709551617\n", 2, "pool.hybrid", "0 to 65536");
	refused("[pool]\nhybrid = 1x\n", 2, "pool.hybrid", "0 to 65536");
	refused("[pool]\nlow-water = 101%\n", 2, "pool.low-water", "100%");
	refused("[pool]\nmax-age = 60\n", 2, "pool.max-age", "1s to 1h");
	refused("[pool]\nmax-age = 60\n", 2, "\"60\" given without a unit", "60s?");
	refused("[daemon]\nslow-request = 5\n", 2, "without a unit", "5s?");
	refused("[pool]\nmax-age = 999ms\n", 2, "pool.max-age", "1s to 1h");
	refused("[pool]\nmax-age = 2h\n", 2, "pool.max-age", "1s to 1h");
	refused("[pool]\nmax-age = 1500us\n", 2, "pool.max-age", "1s to 1h");
	refused("[pool]\nenabled = true\n", 2, "pool.enabled", "yes or no");
	refused(
	    "[kem]\npairwise-check = yes\n", 2, "kem.pairwise-check", "off or pool");
	refused("[socket]\nmode = 0888\n", 2, "socket.mode", "octal");
	refused("[socket]\nmode = 1777\n", 2, "socket.mode", "octal");
	refused("[socket]\npath =\n", 2, "socket.path", "107");
	refused("[socket]\npath = here\n", 2, "socket.path", "an absolute path");
	refused("[socket]\ncontrol-path = ./c\n", 2, "socket.control-path",
	    "an absolute path");
	refused("[metrics]\npath = here\n", 2, "metrics.path", "an absolute path");
	refused("[metrics]\nlisten = 127.0.0.1:0\n", 2, "metrics.listen",
	    "a port of 1 to 65535");
	refused("[metrics]\nlisten = 10.0.0.1:9768\n", 2, "metrics.listen",
	    "a loopback address");
	refused("[limits]\nbuffers = 1024K\n", 2, "limits.buffers", "1536K");
	refused("[limits]\nbuffers = 9999999G\n", 2, "limits.buffers", "1G");
	refused("[daemon]\nshards = 0\n", 2, "daemon.shards", "auto");
	refused("[daemon]\nlog-level = 8\n", 2, "daemon.log-level", "debug");
	refused("[daemon]\nsecret-memory = yes\n", 2, "daemon.secret-memory", "prefer");
	refused("[access]\nallow-users = no-such-user\n", 2, "access.allow-users",
	    "no such user");
	refused("[access]\nallow-groups = 0, no-such-group\n", 2, "access.allow-groups",
	    "no such group");
	refused(
	    "[access]\nallow-users = 0x\n", 2, "access.allow-users", "names or ids");
	refused("[access]\nallow-users = 4294967295\n", 2, "access.allow-users", "");
	refused(
	    "[access]\nallow-users = ,,\n", 2, "access.allow-users", "names or ids");
	refused(
	    "[access]\nallow-users = ,0\n", 2, "access.allow-users", "names or ids");
	refused(
	    "[access]\nallow-users = 0, ,1\n", 2, "access.allow-users", "names or ids");
	refused("[access]\nallow-users = ?\n", 2, "access.allow-users", "?name");

	memset(long_path, 'a', sizeof(long_path));
	long_path[0] = '/';
	snprintf(long_line, sizeof(long_line), "[socket]\npath = %.108s\n", long_path);
	refused(long_line, 2, "socket.path", "107");
	snprintf(long_line, sizeof(long_line), "[socket]\npath = %.107s\n", long_path);
	ck_assert_int_eq(load(long_line), 0);
	memset(long_line, '#', sizeof(long_line) - 1);
	long_line[sizeof(long_line) - 1] = '\0';
	refused(long_line, 1, "2047", "");

	ck_assert_int_eq(
	    load("[socket]\npath = /a\ncontrol-path = /a\n"), CONFIG_E_INVALID);
	ck_assert_ptr_nonnull(strstr(error, "socket.control-path"));
}
END_TEST

START_TEST(every_number_has_its_bounds)
{
	static const char *const units[] = {
	    [CONFIG_NUMBER] = "",
	    [CONFIG_SHARDS] = "",
	    [CONFIG_PERCENT] = "%",
	    [CONFIG_BYTES] = "",
	    [CONFIG_MS] = "ms",
	    [CONFIG_US] = "us",
	    [CONFIG_LEVEL] = NULL,
	};
	unsigned n = 0;

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		const char *unit = units[key->type];
		char text[128];

		if (!unit)
			continue;
		n++;
		for (int delta = -1; delta <= 1; delta += 2) {
			uint64_t edge = delta < 0 ? key->min : key->max;

			snprintf(text, sizeof(text), "[%s]\n%s = %llu%s\n",
			    key->section, key->name, (unsigned long long)edge, unit);
			ck_assert_msg(!load(text), "%s: %s", text, error);
			if (!edge)
				continue;
			snprintf(text, sizeof(text), "[%s]\n%s = %llu%s\n",
			    key->section, key->name,
			    (unsigned long long)edge + (uint64_t)(int64_t)delta, unit);
			ck_assert_msg(load(text) == CONFIG_E_INVALID, "%s", text);
		}
	}
	ck_assert_uint_gt(n, 10);
}
END_TEST

START_TEST(later_files_win_and_flags_over_all)
{
	struct config_flag flag = {"--set", "pool.hybrid", "5"};
	char conf_d[96];

	snprintf(conf_d, sizeof(conf_d), "%s/conf.d", dir);
	mkdir(conf_d, 0700);
	write_file("mlkemd.conf",
	    "[pool]\nhybrid = 1\nmlkem768 = 1\nx25519 = 1\nlow-water = 1%\n");
	write_file("conf.d/20.conf", "[pool]\nmlkem768 = 20\nx25519 = 20\n");
	write_file(
	    "conf.d/10.conf", "[pool]\nhybrid = 10\nmlkem768 = 10\nx25519 = 10\n");
	write_file("conf.d/30.conf~", "nonsense");
	write_file("conf.d/.40.conf", "nonsense");
	ck_assert_int_eq(load_over(NULL, &flag, 1), 0);
	ck_assert_uint_eq(config->pool.high[KEYPOOL_HYBRID], 5);
	ck_assert_uint_eq(config->pool.high[KEYPOOL_MLKEM768], 20);
	ck_assert_uint_eq(config->pool.low_percent, 1);
	ck_assert_str_eq(config_origin(config, "pool.hybrid"), "--set");
	ck_assert_ptr_nonnull(
	    strstr(config_origin(config, "pool.x25519"), "20.conf:3"));
	ck_assert_str_eq(config_origin(config, "pool.max-age"), "default");
	config = config_free(config);

	flag.value = "many";
	ck_assert_int_eq(load_over(NULL, &flag, 1), CONFIG_E_INVALID);
	ck_assert_ptr_eq(strstr(error, "--set: pool.hybrid: "), error);
	flag.key = "pool";
	ck_assert_int_eq(load_over(NULL, &flag, 1), CONFIG_E_INVALID);
}
END_TEST

START_TEST(lists_add_up_and_can_be_cleared)
{
	size_t builtin = geteuid() ? 2 : 1;

	ck_assert_int_eq(
	    load("[access]\nallow-users = 11, 12 13\nallow-users = 14,\n"), 0);
	ck_assert_uint_eq(config->allow_users.n, builtin + 4);
	ck_assert_uint_eq(config->allow_users.ids[builtin + 3], 14);
	ck_assert_int_eq(load("[access]\nallow-users = 11\nallow-users =\n"
			      "allow-users = 12\nallow-groups =\n"),
	    0);
	ck_assert_uint_eq(config->allow_users.n, 1);
	ck_assert_uint_eq(config->allow_users.ids[0], 12);
	ck_assert_uint_eq(config->allow_groups.n, 0);
	ck_assert_int_eq(load("[access]\nallow-users = ?no-such-user, root\n"), 0);
	ck_assert_uint_eq(config->allow_users.n, builtin + 1);
}
END_TEST

/* At a reload the user database may be out of reach. */
START_TEST(a_reload_resolves_no_new_name)
{
	struct config *running;

	ck_assert_int_eq(load("[access]\nallow-users = daemon, ?no-such-user\n"), 0);
	running = config;
	config = NULL;
	write_file(
	    "mlkemd.conf", "[access]\nallow-users = daemon, 77, ?no-such-user\n");
	ck_assert_int_eq(load_over(running, NULL, 0), 0);
	config = config_free(config);
	write_file("mlkemd.conf", "[access]\nallow-users = games\n");
	ck_assert_int_eq(load_over(running, NULL, 0), CONFIG_E_INVALID);
	ck_assert_ptr_nonnull(strstr(error, "number"));
	ck_assert_ptr_nonnull(strstr(error, "mlkemd.conf:2: access.allow-users"));
	config_free(running);
}
END_TEST

START_TEST(what_is_fixed_stays_at_a_reload)
{
	struct config *running;
	char changed[256];

	ck_assert_int_eq(load("[socket]\npath = /a\n[pool]\nhybrid = 1\n"), 0);
	running = config;
	config = NULL;
	ck_assert_int_eq(load("[socket]\npath = /b\nmode = 0600\n[pool]\nhybrid = 2\n"
			      "[kem]\nbackend = generic\n[daemon]\nshards = 2\n"),
	    0);
	ck_assert_int_eq(
	    config_keep_fixed(config, running, changed, sizeof(changed)), 0);
	ck_assert_str_eq(
	    changed, "socket.path, socket.mode, kem.backend, daemon.shards");
	ck_assert_str_eq(config->path, "/a");
	ck_assert_uint_eq(config->mode, 0666);
	ck_assert_ptr_null(config->backend);
	ck_assert_uint_eq(config->shards, 0);
	ck_assert_uint_eq(config->pool.high[KEYPOOL_HYBRID], 2);
	config_free(running);
}
END_TEST

/* What is printed is a configuration that says the same. */
START_TEST(print_and_read_again)
{
	char *first = NULL, *second = NULL;
	size_t len;
	FILE *out;

	ck_assert_int_eq(
	    load("[access]\nallow-users = 5\n[kem]\nbackend = generic\n[socket]\n"
		 "group = 7\n[limits]\nbuffers = 3M\n"),
	    0);
	out = open_memstream(&first, &len);
	config_print(config, out);
	fclose(out);
	ck_assert_ptr_nonnull(strstr(first, "mlkemd.conf:8"));
	ck_assert_int_eq(load(first), 0);
	ck_assert_uint_eq(config->allow_users.ids[config->allow_users.n - 1], 5);
	ck_assert_uint_eq(config->group, 7);
	for (size_t i = 0; i < config_n_keys; i++) {
		char line[256];

		snprintf(line, sizeof(line), "\n%s = %s", config_keys[i].name,
		    config->texts[i].value);
		ck_assert_msg(strstr(first, line) != NULL, "%s", line);
	}
	free(first);
	free(second);
}
END_TEST

/* The page for people and the table of the program say the same. */
START_TEST(docs_name_every_key_with_its_default)
{
	const char *source = getenv("MLKEMD_SOURCE");
	static char page[65536];
	char path[512];
	FILE *in;

	if (!source)
		source = "../..";
	snprintf(path, sizeof(path), "%s/docs/operations.md", source);
	in = fopen(path, "r");
	ck_assert_msg(in != NULL, "%s", path);
	page[fread(page, 1, sizeof(page) - 1, in)] = '\0';
	fclose(in);
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		char row[256];

		snprintf(row, sizeof(row), "\n| `%s.%s`%s | %s%s", key->section,
		    key->name, key->fixed ? " (*start*)" : "", *key->initial ? "`" : "",
		    *key->initial ? key->initial : "empty");
		ck_assert_msg(strstr(page, row) != NULL, "no row: %s", row + 1);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config");
	TCase *tcase = tcase_create("config");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, no_file_is_needed);
	tcase_add_test(tcase, a_named_file_must_exist);
	tcase_add_test(tcase, values_and_white_space);
	tcase_add_test(tcase, other_spellings);
	tcase_add_test(tcase, one_mistake_is_one_line);
	tcase_add_test(tcase, every_number_has_its_bounds);
	tcase_add_test(tcase, later_files_win_and_flags_over_all);
	tcase_add_test(tcase, lists_add_up_and_can_be_cleared);
	tcase_add_test(tcase, a_reload_resolves_no_new_name);
	tcase_add_test(tcase, what_is_fixed_stays_at_a_reload);
	tcase_add_test(tcase, print_and_read_again);
	tcase_add_test(tcase, docs_name_every_key_with_its_default);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
