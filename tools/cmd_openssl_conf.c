/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_openssl_conf.c: mlkemctl openssl-conf: an openssl.cnf that is this machine's own
 * and the provider. It includes the machine's file, so that what changes there later
 * holds here too, and adds to the sections that stand there, by the names that they have
 * there: no other provider, engine or policy is lost. A file with a section for mlkemd
 * alone would leave its programs without the default provider, which is an outage.
 */
#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/conf.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf_groups.h"
#include "conf_keys.h"
#include "ctl.h"
#include "io.h"
#include "json.h"

#define DEFAULT_GROUPS "X25519MLKEM768:X25519:secp256r1:secp384r1"
#define OWN_MAX_BYTES  (1 << 20)

/* The sections that lines are added to: the machine's own names, or new ones. */
struct plan {
	char include[PATH_MAX]; /* empty: this machine has no openssl.cnf */
	const char *init, *providers, *default_provider, *ssl, *system_default;
	const char *algorithms, *properties; /* for takeover */
};

/* The value in this very section: NCONF_get_string() would look into [default] too. */
static const char *
find_value(CONF *conf, const char *section, const char *name)
{
	STACK_OF(CONF_VALUE) *values = NCONF_get_section(conf, section);

	for (int i = 0; values && i < sk_CONF_VALUE_num(values); i++) {
		const CONF_VALUE *value = sk_CONF_VALUE_value(values, i);

		if (strcmp(value->name, name) == 0)
			return value->value;
	}
	return NULL;
}

static const char *
name_or(const char *name, const char *otherwise)
{
	return name && *name ? name : otherwise;
}

static void
make_plan(CONF *conf, struct plan *plan)
{
	plan->init =
	    name_or(find_value(conf, "default", "openssl_conf"), "mlkemd_openssl_init");
	plan->providers =
	    name_or(find_value(conf, plan->init, "providers"), "mlkemd_providers");
	plan->default_provider = name_or(
	    find_value(conf, plan->providers, "default"), "mlkemd_default_provider");
	plan->ssl = name_or(find_value(conf, plan->init, "ssl_conf"), "mlkemd_ssl");
	plan->system_default = name_or(
	    find_value(conf, plan->ssl, "system_default"), "mlkemd_system_default");
	plan->algorithms =
	    name_or(find_value(conf, plan->init, "alg_section"), "mlkemd_algorithms");
	plan->properties = find_value(conf, plan->algorithms, "default_properties");
}

/* The value of --set KEY=VALUE, or NULL if that key was not set. */
static const char *
setting_of(const struct ctl *ctl, const char *key)
{
	size_t len = strlen(key);

	for (uint32_t i = 0; i < ctl->n_settings; i++) {
		if (strncmp(ctl->settings[i], key, len) == 0 &&
		    ctl->settings[i][len] == '=')
			return ctl->settings[i] + len + 1;
	}
	return NULL;
}

/* Where OpenSSL looks for a module of that name, if it is no whole path. */
static void
module_path(char *path, size_t size, const char *name)
{
	const char *folder = getenv("OPENSSL_MODULES");

	if (*name == '/')
		snprintf(path, size, "%s", name);
	else
		snprintf(
		    path, size, "%s/%s", folder ? folder : DOCTOR_MODULES_DIR, name);
}

/* module=NAME: with no module there, a program goes on without it. */
static int
check_module(const struct ctl *ctl, const char *name)
{
	char path[PATH_MAX], magic[4] = "";
	FILE *file;
	size_t n;

	module_path(path, sizeof(path), name);
	file = fopen(path, "re");
	if (!file)
		return ctl_fail(ctl, CTL_USAGE, "module = %s: cannot read %s: %s", name,
		    path, strerror(errno));
	n = fread(magic, 1, sizeof(magic), file);
	fclose(file);
	if (n != sizeof(magic) || memcmp(magic, "\177ELF", sizeof(magic)) != 0)
		return ctl_fail(
		    ctl, CTL_USAGE, "module = %s: %s is no module", name, path);
	return CTL_OK;
}

static int
check_value(const struct ctl *ctl, const char *key, const char *value)
{
	char error[CONF_ERROR_MAX];

	if (strpbrk(value, "\r\n#$\\\"'`"))
		return ctl_fail(ctl, CTL_USAGE,
		    "the value of %s has a sign that openssl.cnf cannot hold", key);
	if (strcmp(key, "module") == 0)
		return check_module(ctl, value);
	if (!conf_key_check(key, value, error, sizeof(error)))
		return ctl_fail(
		    ctl, CTL_USAGE, "the provider would refuse this: %s", error);
	return CTL_OK;
}

/* --set KEY=VALUE: keys of the provider's section. */
static int
check_setting(const struct ctl *ctl, uint32_t number)
{
	static const char *const keys[] = {"route", "require", "deadline", "leases",
	    "server-uid", "takeover", "module"};
	const char *setting = ctl->settings[number];
	size_t len = strcspn(setting, "=");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strlen(keys[i]) != len || strncmp(keys[i], setting, len) != 0 ||
		    setting[len] != '=' || setting[len + 1] == '\0')
			continue;
		if (setting_of(ctl, keys[i]) != setting + len + 1)
			return ctl_fail(
			    ctl, CTL_USAGE, "--set %s is there twice", keys[i]);
		return check_value(ctl, keys[i], setting + len + 1);
	}
	return ctl_fail(ctl, CTL_USAGE,
	    "--set %.40s: KEY=VALUE is wanted, where KEY is one of route, require, "
	    "deadline, leases, server-uid, takeover and module",
	    setting);
}

static int
check_words(const struct ctl *ctl, const char *groups)
{
	char error[CONF_ERROR_MAX];
	int status;

	if (strspn(groups, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			   "0123456789_-:") != strlen(groups))
		return ctl_fail(ctl, CTL_USAGE,
		    "--groups takes names with colons between them; the signs ?, * and "
		    "/ of OpenSSL 3.5 make OpenSSL 3.0 drop the whole list");
	status = check_value(ctl, "socket", ctl->socket_path);
	for (uint32_t i = 0; i < ctl->n_settings && !status; i++)
		status = check_setting(ctl, i);
	if (!status && !conf_keys_agree(setting_of(ctl, "route"),
			   setting_of(ctl, "require"), error, sizeof(error)))
		status = ctl_fail(
		    ctl, CTL_USAGE, "the provider would refuse this: %s", error);
	return status;
}

static bool
takes_over(const struct ctl *ctl)
{
	const char *value = setting_of(ctl, "takeover");

	return value && conf_value_is_yes(value);
}

static void
print_takeover(BIO *out, const struct plan *plan)
{
	BIO_printf(out,
	    "\n# takeover: this library's own groups of the same name stand back.\n"
	    "[%s]\nalg_section = %s\n[%s]\ndefault_properties = %s%s?provider=mlkemd\n",
	    plan->init, plan->algorithms, plan->algorithms,
	    plan->properties ? plan->properties : "", plan->properties ? "," : "");
}

static void
print_conf(BIO *out, const struct ctl *ctl, const struct plan *plan, const char *groups)
{
	BIO_printf(out,
	    "# OpenSSL with post-quantum key exchange by mlkemd, for the programs that\n"
	    "# get OPENSSL_CONF=this file. Made by `mlkemctl openssl-conf`. To undo it,\n"
	    "# take OPENSSL_CONF away again.\n");
	if (*plan->include)
		BIO_printf(out, "\n.include %s\n", plan->include);
	BIO_printf(out,
	    "\n[default]\nopenssl_conf = %s\n"
	    "\n[%s]\nproviders = %s\nssl_conf = %s\n"
	    "\n# With a provider named here, the default one is no longer implied.\n"
	    "[%s]\ndefault = %s\nmlkemd = mlkemd_sect\n"
	    "\n[%s]\nactivate = 1\n"
	    "\n[mlkemd_sect]\nactivate = 1\nsocket = %s\n",
	    plan->init, plan->init, plan->providers, plan->ssl, plan->providers,
	    plan->default_provider, plan->default_provider, ctl->socket_path);
	for (uint32_t i = 0; i < ctl->n_settings; i++) {
		const char *setting = ctl->settings[i];
		size_t len = strcspn(setting, "=");

		BIO_printf(out, "%.*s = %s\n", (int)len, setting, setting + len + 1);
	}
	BIO_printf(
	    out, "\n[%s]\nsystem_default = %s\n", plan->ssl, plan->system_default);
	if (*groups)
		BIO_printf(out, "\n[%s]\nGroups = %s\n", plan->system_default, groups);
	if (takes_over(ctl))
		print_takeover(out, plan);
}

/* What was made is read again, includes and all, before anybody depends on it. */
static bool
is_sound(BIO *text, const struct plan *plan)
{
	char *data;
	long len = BIO_get_mem_data(text, &data), line = 0;
	BIO *copy = BIO_new_mem_buf(data, (int)len);
	CONF *conf = NCONF_new(NULL);
	const char *init, *active, *module;
	bool sound = false;

	if (copy && conf && NCONF_load_bio(conf, copy, &line) > 0) {
		init = find_value(conf, "default", "openssl_conf");
		active = find_value(conf, plan->default_provider, "activate");
		module = find_value(conf, plan->providers, "mlkemd");
		sound = init && strcmp(init, plan->init) == 0 && active &&
			strcmp(active, "1") == 0 && module &&
			strcmp(module, "mlkemd_sect") == 0;
	}
	NCONF_free(conf);
	BIO_free(copy);
	return sound;
}

/* OpenSSL takes a folder for an empty file, and what is binary as far as it goes. */
static int
check_own(const struct ctl *ctl, const char *path)
{
	struct stat st;
	FILE *file;
	int c, status = CTL_OK;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return ctl_fail(ctl, CTL_FAILED, "%s is %s, not a file", path,
		    S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe");
	if (stat(path, &st) == 0 && st.st_size > OWN_MAX_BYTES)
		return ctl_fail(ctl, CTL_FAILED,
		    "%s has over %d bytes: it is no openssl.cnf", path, OWN_MAX_BYTES);
	file = fopen(path, "re");
	if (!file)
		return ctl_fail(
		    ctl, CTL_FAILED, "cannot read %s: %s", path, strerror(errno));
	while ((c = fgetc(file)) != EOF) {
		if (c == '\0')
			status = ctl_fail(ctl, CTL_FAILED,
			    "%s is binary: it is no openssl.cnf", path);
		if (status)
			break;
	}
	fclose(file);
	return status;
}

/* The machine's own file: --in, or where this libcrypto looks. */
static int
load_own(const struct ctl *ctl, CONF *conf, struct plan *plan)
{
	char path[PATH_MAX], out[PATH_MAX];
	long line = 0;
	int status;

	if (ctl->in_path)
		snprintf(path, sizeof(path), "%s", ctl->in_path);
	else
		snprintf(
		    path, sizeof(path), "%s/openssl.cnf", X509_get_default_cert_area());
	if (!realpath(path, plan->include)) {
		plan->include[0] = '\0';
		if (ctl->in_path || errno != ENOENT)
			return ctl_fail(ctl, CTL_FAILED, "cannot read %s: %s", path,
			    strerror(errno));
		ctl_note("there is no %s here to include", path);
		return CTL_OK;
	}
	if (ctl->out_path && realpath(ctl->out_path, out) &&
	    strcmp(out, plan->include) == 0)
		return ctl_fail(ctl, CTL_USAGE,
		    "--out would overwrite %s, which is to be included", out);
	status = check_own(ctl, plan->include);
	if (status)
		return status;
	if (NCONF_load(conf, plan->include, &line) <= 0)
		return ctl_fail(ctl, CTL_FAILED, "%s cannot be read; line %ld of it",
		    plan->include, line);
	if (find_value(conf, "mlkemd_sect", "activate"))
		return ctl_fail(ctl, CTL_USAGE,
		    "%s has a section of mlkemd already; --in names the machine's "
		    "own file",
		    plan->include);
	return CTL_OK;
}

static void
remark(const struct ctl *ctl, CONF *conf, const struct plan *plan)
{
	const char *groups = find_value(conf, plan->system_default, "Groups");
	char path[PATH_MAX];

	module_path(path, sizeof(path), "mlkemd.so");
	if (!setting_of(ctl, "module") && access(path, R_OK) < 0)
		ctl_note("%s: %s; until the provider is there, programs have no "
			 "post-quantum groups by this file",
		    path, strerror(errno));

	if (groups)
		ctl_note("the Groups of %s, %s, are replaced", plan->include, groups);
	if (find_value(conf, plan->providers, "fips") ||
	    (plan->properties && strstr(plan->properties, "fips")))
		ctl_note("%s asks for FIPS. mlkemd has no FIPS validation, and its "
			 "groups are hidden where the property fips=yes is asked for",
		    plan->include);
}

static bool
is_file(const char *path)
{
	return path && strcmp(path, "-") != 0;
}

static int
deliver(const struct ctl *ctl, BIO *text, const struct plan *plan, const char *groups)
{
	char *data;
	long len = BIO_get_mem_data(text, &data);
	struct json json;
	int status;

	if (!is_file(ctl->out_path)) {
		if (fwrite(data, 1, (size_t)len, stdout) == (size_t)len &&
		    fflush(stdout) == 0)
			return CTL_OK;
		return ctl_fail(ctl, CTL_FAILED, "cannot write to standard output: %s",
		    strerror(errno));
	}
	status = io_write_file(ctl, 0644, (const uint8_t *)data, (size_t)len);
	if (!status && ctl->json) {
		json_begin(&json, stdout);
		json_flag(&json, "ok", true);
		json_string(&json, "out", ctl->out_path);
		json_string(&json, "includes", plan->include);
		json_string(&json, "groups", groups);
		json_end(&json);
	}
	return status;
}

int
ctl_openssl_conf(struct ctl *ctl)
{
	const char *groups = ctl->groups ? ctl->groups : DEFAULT_GROUPS;
	CONF *conf = NCONF_new(NULL);
	BIO *text = BIO_new(BIO_s_mem());
	struct plan plan = {0};
	int status;

	if (!conf || !text)
		status = ctl_fail(ctl, CTL_FAILED, "out of memory");
	else if (ctl->json && !is_file(ctl->out_path))
		status = ctl_fail(ctl, CTL_USAGE, "--json needs --out here");
	else
		status = check_words(ctl, groups);
	if (!status)
		status = load_own(ctl, conf, &plan);
	if (!status)
		status = conf_groups_check(ctl, groups, plan.include);
	if (status)
		goto out;
	make_plan(conf, &plan);
	remark(ctl, conf, &plan);
	print_conf(text, ctl, &plan, groups);
	if (is_sound(text, &plan))
		status = deliver(ctl, text, &plan, groups);
	else
		status = ctl_fail(ctl, CTL_FAILED,
		    "what was made from %s does not read as it should; nothing was "
		    "written",
		    plan.include);
out:
	BIO_free(text);
	NCONF_free(conf);
	return status;
}
