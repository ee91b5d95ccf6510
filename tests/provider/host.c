/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

#define OURS "provider=mlkemd"

static void
config_write(struct host *host, const char *lines, bool activate)
{
	const char *module = getenv("MLKEMD_PROVIDER");
	FILE *file;
	int fd;

	ck_assert_msg(module != NULL, "MLKEMD_PROVIDER must name mlkemd.so");
	snprintf(host->config, sizeof(host->config), "/tmp/mlkemd-host-XXXXXX");
	fd = mkstemp(host->config);
	ck_assert_int_ge(fd, 0);
	file = fdopen(fd, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file,
	    "openssl_conf = init\n"
	    "config_diagnostics = 1\n"
	    "[init]\nproviders = providers\nalg_section = algorithms\n"
	    "[algorithms]\ndefault_properties = ?provider=mlkemd\n"
	    "[providers]\ndefault = default_section\nmlkemd = mlkemd_section\n"
	    "[default_section]\nactivate = 1\n"
	    "[mlkemd_section]\n%smodule = %s\n%s",
	    activate ? "activate = 1\n" : "", module, lines);
	ck_assert_int_eq(fclose(file), 0);
}

static bool
host_load(struct host *host, const char *lines, bool activate)
{
	*host = (struct host){.libctx = OSSL_LIB_CTX_new()};
	ck_assert_ptr_nonnull(host->libctx);
	config_write(host, lines, activate);
	must(OSSL_LIB_CTX_load_config(host->libctx, host->config));
	if (activate && !OSSL_PROVIDER_available(host->libctx, "mlkemd"))
		return false;
	host->provider = OSSL_PROVIDER_load(host->libctx, "mlkemd");
	return host->provider != NULL;
}

bool
host_try(struct host *host, const char *lines)
{
	return host_load(host, lines, false);
}

void
host_open(struct host *host, const char *lines)
{
	if (!host_load(host, lines, true))
		host_fail("no provider", __LINE__);
}

void
host_close(struct host *host)
{
	if (host->provider != NULL)
		must(OSSL_PROVIDER_unload(host->provider));
	OSSL_LIB_CTX_free(host->libctx);
	unlink(host->config);
}

uint64_t
host_count(const struct host *host, const char *name)
{
	uint64_t count = UINT64_MAX;
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_uint64(name, &count), OSSL_PARAM_construct_end()};

	must(OSSL_PROVIDER_get_params(host->provider, params));
	ck_assert_uint_ne(count, UINT64_MAX);
	return count;
}

const char *
host_errors(void)
{
	static char text[8192];
	BIO *bio = BIO_new(BIO_s_mem());
	int n;

	ERR_print_errors(bio);
	n = BIO_read(bio, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	BIO_free(bio);
	return text;
}

_Noreturn void
host_fail(const char *what, int line)
{
	ck_abort_msg("line %d: %s: %s", line, what, host_errors());
	abort();
}

static EVP_PKEY_CTX *
context_of(const struct host *host, const struct alg *alg)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(host->libctx, alg->name, OURS);

	if (ctx == NULL)
		host_fail(alg->name, __LINE__);
	return ctx;
}

static void
context_set_group(EVP_PKEY_CTX *ctx, const struct alg *alg)
{
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(
				   OSSL_PKEY_PARAM_GROUP_NAME, (char *)alg->group, 0),
	    OSSL_PARAM_construct_end()};

	must(EVP_PKEY_CTX_set_params(ctx, params));
}

EVP_PKEY *
pkey_try_generate(const struct host *host, const struct alg *alg, bool for_tls)
{
	EVP_PKEY_CTX *ctx = context_of(host, alg);
	EVP_PKEY *pkey = NULL;

	must(EVP_PKEY_keygen_init(ctx));
	if (for_tls)
		context_set_group(ctx, alg);
	if (EVP_PKEY_generate(ctx, &pkey) != 1)
		pkey = NULL;
	EVP_PKEY_CTX_free(ctx);
	return pkey;
}

EVP_PKEY *
pkey_generate(const struct host *host, const struct alg *alg, bool for_tls)
{
	EVP_PKEY *pkey = pkey_try_generate(host, alg, for_tls);

	if (pkey == NULL)
		host_fail(alg->name, __LINE__);
	return pkey;
}

EVP_PKEY *
pkey_parameters(const struct host *host, const struct alg *alg)
{
	EVP_PKEY_CTX *ctx = context_of(host, alg);
	EVP_PKEY *pkey = NULL;

	must(EVP_PKEY_paramgen_init(ctx));
	context_set_group(ctx, alg);
	must(EVP_PKEY_paramgen(ctx, &pkey));
	EVP_PKEY_CTX_free(ctx);
	return pkey;
}

EVP_PKEY *
pkey_try_peer(const struct host *host, const struct alg *alg, const uint8_t *share,
    size_t share_len)
{
	EVP_PKEY *pkey = pkey_parameters(host, alg);

	if (EVP_PKEY_set1_encoded_public_key(pkey, share, share_len) == 1)
		return pkey;
	EVP_PKEY_free(pkey);
	return NULL;
}

EVP_PKEY *
pkey_try_import(const struct host *host, const struct alg *alg,
    const struct parts *parts, int selection)
{
	EVP_PKEY_CTX *ctx = context_of(host, alg);
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	OSSL_PARAM *params;
	EVP_PKEY *pkey = NULL;

	if (parts->pub != NULL)
		must(OSSL_PARAM_BLD_push_octet_string(
		    build, "pub", parts->pub, parts->pub_len));
	if (parts->priv != NULL)
		must(OSSL_PARAM_BLD_push_octet_string(
		    build, "priv", parts->priv, parts->priv_len));
	if (parts->seed != NULL)
		must(OSSL_PARAM_BLD_push_octet_string(
		    build, "seed", parts->seed, parts->seed_len));
	params = OSSL_PARAM_BLD_to_param(build);
	must(EVP_PKEY_fromdata_init(ctx));
	if (EVP_PKEY_fromdata(ctx, &pkey, selection, params) != 1)
		ck_assert_ptr_null(pkey);
	OSSL_PARAM_free(params);
	OSSL_PARAM_BLD_free(build);
	EVP_PKEY_CTX_free(ctx);
	return pkey;
}

int
pkey_try_encaps(const struct host *host, const struct alg *alg, EVP_PKEY *pkey,
    uint8_t *ct, uint8_t *secret)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(host->libctx, pkey, OURS);
	size_t ct_len = alg->ciphertext, secret_len = alg->secret;
	int r = EVP_PKEY_encapsulate_init(ctx, NULL);

	if (r == 1)
		r = EVP_PKEY_encapsulate(ctx, ct, &ct_len, secret, &secret_len);
	if (r == 1) {
		ck_assert_uint_eq(ct_len, alg->ciphertext);
		ck_assert_uint_eq(secret_len, alg->secret);
	}
	EVP_PKEY_CTX_free(ctx);
	return r;
}

int
pkey_try_decaps(const struct host *host, const struct alg *alg, EVP_PKEY *pkey,
    const uint8_t *ct, uint8_t *secret)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(host->libctx, pkey, OURS);
	size_t secret_len = alg->secret;
	int r = EVP_PKEY_decapsulate_init(ctx, NULL);

	if (r == 1)
		r = EVP_PKEY_decapsulate(ctx, secret, &secret_len, ct, alg->ciphertext);
	if (r == 1)
		ck_assert_uint_eq(secret_len, alg->secret);
	EVP_PKEY_CTX_free(ctx);
	return r;
}

size_t
pkey_bytes(EVP_PKEY *pkey, const char *name, uint8_t *buf, size_t size)
{
	size_t len = 0;

	if (EVP_PKEY_get_octet_string_param(pkey, name, buf, size, &len) != 1)
		return 0;
	return len;
}

bool
pkeys_agree(
    const struct host *host, const struct alg *alg, EVP_PKEY *to, EVP_PKEY *with)
{
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT];
	uint8_t sent[MLKEMCLIENT_MAX_SECRET] = {0}, got[MLKEMCLIENT_MAX_SECRET] = {0};

	must(pkey_try_encaps(host, alg, to, ct, sent));
	must(pkey_try_decaps(host, alg, with, ct, got));
	ck_assert(!bytes_are(sent, alg->secret, 0) && !bytes_are(got, alg->secret, 0));
	return memcmp(sent, got, alg->secret) == 0;
}

bool
bytes_are(const uint8_t *p, size_t len, uint8_t value)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != value)
			return false;
	return true;
}

const char *
settings(const char *socket, const char *route, const char *more)
{
	static char text[MAX_SETTINGS];

	snprintf(text, sizeof(text), "socket = %s\nroute = %s\n%s", socket, route,
	    more != NULL ? more : "");
	return text;
}

bool
host_has_hooks(void)
{
	const char *hooks = getenv("MLKEMD_TEST_HOOKS");

	return hooks != NULL && strcmp(hooks, "1") == 0;
}

int
host_main(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int n_failed;

	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
