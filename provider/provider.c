/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSSL loads: provider-base(7). */
#include "provider.h"

#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/proverr.h>

#include "report.h"

/* The first libssl that has the groups of its own. */
#define OWN_GROUPS_MAJOR 3
#define OWN_GROUPS_MINOR 5

/* Not validated by FIPS 140: a query for fips=yes does not find this. */
#define PROPERTIES "provider=mlkemd"

static OSSL_FUNC_provider_teardown_fn provider_teardown;
static OSSL_FUNC_provider_gettable_params_fn provider_gettable_params;
static OSSL_FUNC_provider_get_params_fn provider_get_params;
static OSSL_FUNC_provider_query_operation_fn provider_query_operation;
static OSSL_FUNC_provider_get_reason_strings_fn provider_get_reason_strings;

static const OSSL_ALGORITHM *
provider_query_operation(void *provctx, int operation, int *no_cache)
{
	const struct provider *provider = provctx;

	*no_cache = 0;
	if (operation == OSSL_OP_KEYMGMT)
		return provider->keymgmts;
	if (operation == OSSL_OP_KEM)
		return provider->kems;
	return NULL;
}

static const OSSL_ITEM *
provider_get_reason_strings(void *provctx)
{
	const struct provider *provider = provctx;

	return provider->reasons;
}

/* Beside what every provider tells: what became of the operations of this process. */
static const OSSL_PARAM *
provider_gettable_params(void *provctx)
{
	static const OSSL_PARAM gettable[] = {
	    OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_NAME, NULL, 0),
	    OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_VERSION, NULL, 0),
	    OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_BUILDINFO, NULL, 0),
	    OSSL_PARAM_int(OSSL_PROV_PARAM_STATUS, NULL),
	    OSSL_PARAM_uint64("by-daemon", NULL),
	    OSSL_PARAM_uint64("by-local", NULL),
	    OSSL_PARAM_uint64("by-lease", NULL),
	    OSSL_PARAM_uint64("fallbacks", NULL),
	    OSSL_PARAM_uint64("timeouts", NULL),
	    OSSL_PARAM_uint64("connects", NULL),
	    OSSL_PARAM_END,
	};

	return gettable;
}

static int
get_text(OSSL_PARAM params[], const char *name, const char *text)
{
	OSSL_PARAM *p = OSSL_PARAM_locate(params, name);

	return p == NULL || OSSL_PARAM_set_utf8_ptr(p, text);
}

static int
get_count(OSSL_PARAM params[], const char *name, uint64_t count)
{
	OSSL_PARAM *p = OSSL_PARAM_locate(params, name);

	return p == NULL || OSSL_PARAM_set_uint64(p, count);
}

static int
provider_get_params(void *provctx, OSSL_PARAM params[])
{
	const struct provider *provider = provctx;
	OSSL_PARAM *p = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_STATUS);
	struct mlkemclient_counts tls, own;

	mlkemclient_get_counts(provider->exchange.tls, &tls);
	mlkemclient_get_counts(provider->exchange.own, &own);
	if (p != NULL && !OSSL_PARAM_set_int(p, 1))
		return 0;
	return get_text(params, OSSL_PROV_PARAM_NAME, "mlkemd") &&
	       get_text(params, OSSL_PROV_PARAM_VERSION, MLKEMD_VERSION) &&
	       get_text(params, OSSL_PROV_PARAM_BUILDINFO, MLKEMD_VERSION) &&
	       get_count(params, "by-daemon", tls.by_daemon) &&
	       get_count(params, "by-local", tls.by_local + own.by_local) &&
	       get_count(params, "by-lease", tls.by_lease) &&
	       get_count(params, "fallbacks", tls.fallbacks) &&
	       get_count(params, "timeouts", tls.timeouts) &&
	       get_count(params, "connects", tls.connects);
}

static void
provider_teardown(void *provctx)
{
	struct provider *provider = provctx;

	exchange_close(&provider->exchange);
	OPENSSL_free(provider);
}

static const OSSL_DISPATCH functions[] = {
    {OSSL_FUNC_PROVIDER_TEARDOWN, (void (*)(void))provider_teardown},
    {OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, (void (*)(void))provider_gettable_params},
    {OSSL_FUNC_PROVIDER_GET_PARAMS, (void (*)(void))provider_get_params},
    {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))provider_query_operation},
    {OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))provider_get_capabilities},
    {OSSL_FUNC_PROVIDER_GET_REASON_STRINGS,
	(void (*)(void))provider_get_reason_strings},
    {0, NULL},
};

/* What the core offers, of which we take a little. */
struct core {
	const OSSL_CORE_HANDLE *handle;
	OSSL_FUNC_core_get_params_fn *get_params;
};

static void
core_take(struct core *core, struct provider *provider, const OSSL_DISPATCH *in)
{
	for (; in->function_id != 0; in++) {
		if (in->function_id == OSSL_FUNC_CORE_GET_PARAMS)
			core->get_params = OSSL_FUNC_core_get_params(in);
		else if (in->function_id == OSSL_FUNC_CORE_NEW_ERROR)
			provider->core_new_error = OSSL_FUNC_core_new_error(in);
		else if (in->function_id == OSSL_FUNC_CORE_SET_ERROR_DEBUG)
			provider->core_set_error_debug =
			    OSSL_FUNC_core_set_error_debug(in);
		else if (in->function_id == OSSL_FUNC_CORE_VSET_ERROR)
			provider->core_vset_error = OSSL_FUNC_core_vset_error(in);
	}
}

/* A text of the core, or of our section in its configuration. */
static const char *
core_find(void *arg, const char *key)
{
	const struct core *core = arg;
	char *value = NULL;
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_utf8_ptr(key, &value, 0), OSSL_PARAM_construct_end()};

	if (core->get_params == NULL || !core->get_params(core->handle, params))
		return NULL;
	return value;
}

/* Of the library that runs: it may be a later one than that of the headers. */
static bool
core_has_own_groups(struct core *core)
{
	const char *version = core_find(core, OSSL_PROV_PARAM_CORE_VERSION);
	unsigned long major, minor;
	char *end;

	if (version == NULL)
		return false;
	major = strtoul(version, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major > OWN_GROUPS_MAJOR ||
	       (major == OWN_GROUPS_MAJOR && minor >= OWN_GROUPS_MINOR);
}

static void
algorithms_fill(struct provider *provider)
{
	for (int i = 0; i < N_ALGS; i++) {
		OSSL_ALGORITHM keymgmt = {algs[i].names, PROPERTIES,
		    keymgmt_functions[i], algs[i].description};
		OSSL_ALGORITHM kem = {
		    algs[i].names, PROPERTIES, kem_functions, algs[i].description};

		provider->keymgmts[i] = keymgmt;
		provider->kems[i] = kem;
	}
}

/*
 * Reads the configuration and nothing more: no connection, no fetch, no randomness.
 * Some of OpenSSL's locks are held while this runs.
 */
static int
provider_begin(struct provider *provider, struct core *core)
{
	char mistake[CONFIG_ERROR_MAX];
	int err;

	reasons_fill(provider->reasons);
	algorithms_fill(provider);
	if (config_read(&provider->config, core_find, core, mistake, sizeof(mistake)) !=
	    0) {
		/*
		 * Our own reasons are not known to OpenSSL before this has succeeded.
		 */
		raise_error(provider,
		    ERR_PACK(ERR_LIB_PROV, 0, PROV_R_INVALID_CONFIG_DATA),
		    "mlkemd: in its section of openssl.cnf, %s", mistake);
		report_mistake(provider, mistake);
		return 0;
	}
	provider->offers_groups =
	    provider->config.takeover || !core_has_own_groups(core);
	err = exchange_open(&provider->exchange, &provider->config);
	if (err != 0)
		raise_error(provider, ERR_PACK(ERR_LIB_PROV, 0, ERR_R_INIT_FAIL),
		    "mlkemd: %s", mlkemclient_strerror(err));
	return err == 0;
}

__attribute__((visibility("default"))) int
OSSL_provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in,
    const OSSL_DISPATCH **out, void **provctx)
{
	struct provider *provider = OPENSSL_zalloc(sizeof(*provider));
	struct core core = {.handle = handle};

	if (provider == NULL)
		return 0;
	provider->core = handle;
	core_take(&core, provider, in);
	if (!provider_begin(provider, &core)) {
		OPENSSL_free(provider);
		return 0;
	}
	*out = functions;
	*provctx = provider;
	return 1;
}
