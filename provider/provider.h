/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider.h: what the files of provider/ share. The way of an operation:
 *   libssl, EVP -> keymgmt.c, keygen.c, kem.c -> exchange.c -> libmlkemclient
 * One struct provider for each time that OpenSSL loads the module into a library
 * context; it is constant after OSSL_provider_init(), but for exchange. Any thread.
 */
#ifndef MLKEMD_PROVIDER_PROVIDER_H
#define MLKEMD_PROVIDER_PROVIDER_H

#include <stdbool.h>

#include <openssl/core.h>
#include <openssl/core_dispatch.h>

#include "alg.h"
#include "config.h"
#include "exchange.h"

#define must_check __attribute__((warn_unused_result))

/*
 * Reasons of errors, as OpenSSL shows them. Those of libmlkemclient follow, each at
 * REASON_CLIENT plus its number without the sign.
 */
enum reason {
	REASON_CONFIG = 1,  /* init: a key of the section has a wrong value */
	REASON_NO_PUBLIC,   /* the key has no public part */
	REASON_NO_PRIVATE,  /* the key has no private part */
	REASON_ONE_TIME,    /* the private part of a TLS key never leaves its place */
	REASON_IMMUTABLE,   /* a key that has its parts takes no others */
	REASON_GROUP,       /* the name of another algorithm's group */
	REASON_MISMATCH,    /* the given parts of a key do not belong together */
	REASON_NULL,        /* an argument that has to be there is NULL */
	REASON_BUFFER,      /* an output buffer is too small */
	REASON_NOT_INIT,    /* the operation was not begun with its init */
	REASON_CLIENT = 20, /* REASON_CLIENT + 1: MLKEMCLIENT_E_INVALID ... */
};

#define N_REASONS 40

struct provider {
	const OSSL_CORE_HANDLE *core;
	OSSL_FUNC_core_new_error_fn *core_new_error;
	OSSL_FUNC_core_set_error_debug_fn *core_set_error_debug;
	OSSL_FUNC_core_vset_error_fn *core_vset_error;
	struct config config;
	bool offers_groups;
	struct exchange exchange;
	OSSL_ALGORITHM keymgmts[N_ALGS + 1], kems[N_ALGS + 1];
	OSSL_ITEM reasons[N_REASONS + 1];
};

/* errors.c. reason is an enum reason, or one of libcrypto's own (ERR_PACK). */
void reasons_fill(OSSL_ITEM reasons[N_REASONS + 1]);
__attribute__((format(printf, 5, 6))) void provider_raise(
    const struct provider *provider, int line, const char *function, uint32_t reason,
    const char *format, ...);
/* The error of a call of libmlkemclient on that handle. */
void provider_raise_client(const struct provider *provider, int line,
    const char *function, int error, const char *message);

#define raise_error(provider, ...) \
 provider_raise(provider, __LINE__, __func__, __VA_ARGS__)

/* capabilities.c */
OSSL_FUNC_provider_get_capabilities_fn provider_get_capabilities;

/* keymgmt.c, kem.c: the tables of functions. */
extern const OSSL_DISPATCH *const keymgmt_functions[N_ALGS];
extern const OSSL_DISPATCH kem_functions[];

/* keygen.c: of KEYMGMT, for any algorithm; gen_init_for() is behind each gen_init. */
void *gen_init_for(struct provider *provider, const struct alg *alg, int selection,
    const OSSL_PARAM params[]);
OSSL_FUNC_keymgmt_gen_fn gen_run;
OSSL_FUNC_keymgmt_gen_cleanup_fn gen_cleanup;
OSSL_FUNC_keymgmt_gen_set_params_fn gen_set_params;
OSSL_FUNC_keymgmt_gen_settable_params_fn gen_settable_params;

/* key_transfer.c: of KEYMGMT: keys in and out. */
OSSL_FUNC_keymgmt_import_fn key_import;
OSSL_FUNC_keymgmt_export_fn key_export;
OSSL_FUNC_keymgmt_import_types_fn key_import_types;
OSSL_FUNC_keymgmt_export_types_fn key_export_types;

#endif
