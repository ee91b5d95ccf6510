/* SPDX-License-Identifier: Apache-2.0 */
#include "conf_groups.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAME_SIZE 64

/* provider/capabilities.c: what mlkemd.so adds. */
static const char *const ours[] = {
    "X25519MLKEM768", "MLKEM512", "MLKEM768", "MLKEM1024"};

/* One name of the list, and whether some provider has it. */
struct search {
	const char *name;
	bool found;
};

/* libssl takes the name in TLS or the provider's own, in any case. */
static int
see_group(const OSSL_PARAM params[], void *arg)
{
	static const char *const names[] = {
	    OSSL_CAPABILITY_TLS_GROUP_NAME, OSSL_CAPABILITY_TLS_GROUP_NAME_INTERNAL};
	struct search *search = arg;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const OSSL_PARAM *param = OSSL_PARAM_locate_const(params, names[i]);
		const char *name;

		if (param && OSSL_PARAM_get_utf8_string_ptr(param, &name) &&
		    strcasecmp(name, search->name) == 0)
			search->found = true;
	}
	return 1;
}

static int
see_provider(OSSL_PROVIDER *provider, void *arg)
{
	OSSL_PROVIDER_get_capabilities(provider, "TLS-GROUP", see_group, arg);
	return 1;
}

static bool
is_ours(const char *name)
{
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (strcasecmp(ours[i], name) == 0)
			return true;
	}
	return false;
}

static int
check_name(const struct ctl *ctl, OSSL_LIB_CTX *lib, const char *name)
{
	struct search search = {.name = name};

	if (is_ours(name))
		return CTL_OK;
	OSSL_PROVIDER_do_all(lib, see_provider, &search);
	if (search.found)
		return CTL_OK;
	return ctl_fail(ctl, CTL_USAGE,
	    "--groups: no provider here has a group \"%s\", and OpenSSL would drop the "
	    "whole list for it; mlkemd adds X25519MLKEM768, MLKEM512, MLKEM768 and "
	    "MLKEM1024",
	    name);
}

int
conf_groups_check(const struct ctl *ctl, const char *groups, const char *own)
{
	OSSL_LIB_CTX *lib = OSSL_LIB_CTX_new();
	OSSL_PROVIDER *base = lib ? OSSL_PROVIDER_load(lib, "default") : NULL;
	bool quantum_safe = false;
	int status = CTL_OK;

	if (!base)
		status = ctl_fail(ctl, CTL_FAILED, "libcrypto has no default provider");
	/* What it can't load now it can't load later: its groups are then none. */
	if (!status && *own)
		(void)OSSL_LIB_CTX_load_config(lib, own);
	for (const char *at = groups; !status && *groups;) {
		size_t len = strcspn(at, ":");
		char name[NAME_SIZE];

		if (len == 0 || len >= sizeof(name)) {
			status = ctl_fail(ctl, CTL_USAGE,
			    "--groups has a name that is empty or over %d characters "
			    "long",
			    NAME_SIZE - 1);
			break;
		}
		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		status = check_name(ctl, lib, name);
		quantum_safe |= strcasestr(name, "MLKEM") != NULL;
		at += len;
		if (*at++ == '\0')
			break;
	}
	if (!status && *groups && !quantum_safe)
		ctl_note("--groups names no post-quantum group: what uses this file "
			 "has none, unless it asks for one itself");
	ERR_clear_error();
	OSSL_PROVIDER_unload(base);
	OSSL_LIB_CTX_free(lib);
	return status;
}
