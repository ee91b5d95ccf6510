/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include <openssl/crypto.h>

#include "keydata.h"
#include "provider.h"
#include "report.h"

/*
 * A decapsulation with a key that lives in the daemon has no other place to go: it
 * waits longer than an operation that can fall back, and no longer than a handshake
 * bears.
 */
#define NO_OTHER_PLACE_US 500000u

static const enum mlkemclient_route routes[] = {
    [CONFIG_ROUTE_AUTO] = MLKEMCLIENT_ROUTE_AUTO,
    [CONFIG_ROUTE_DAEMON] = MLKEMCLIENT_ROUTE_DAEMON,
    [CONFIG_ROUTE_LOCAL] = MLKEMCLIENT_ROUTE_LOCAL,
};

int
exchange_open(struct exchange *exchange, const struct config *config)
{
	struct mlkemclient_options tls = {
	    .size = sizeof(tls),
	    .socket_path = config->socket,
	    .route = routes[config->route],
	    .require = config->require,
	    .deadline_us = config->deadline_us,
	    .server_uid_set = config->server_uid_set,
	    .server_uid = config->server_uid,
	    .daemon_deadline_us = config->deadline_us,
	    .leases = config->leases,
	};
	struct mlkemclient_options own = {.size = sizeof(own),
	    .route = MLKEMCLIENT_ROUTE_LOCAL,
	    .deadline_us = UINT32_MAX};
	int err;

	/* Work in this process ends when it is done, however busy the machine is. */
	if (config->route == CONFIG_ROUTE_LOCAL)
		tls.deadline_us = UINT32_MAX;
	else if (!config->require && tls.deadline_us < NO_OTHER_PLACE_US)
		tls.deadline_us = NO_OTHER_PLACE_US;
	err = mlkemclient_new(&exchange->tls, &tls);
	if (err == 0)
		err = mlkemclient_new(&exchange->own, &own);
	if (err != 0)
		exchange_close(exchange);
	return err;
}

void
exchange_close(struct exchange *exchange)
{
	mlkemclient_free(exchange->tls);
	mlkemclient_free(exchange->own);
	exchange->tls = exchange->own = NULL;
}

/* What every operation ends with: the error for OpenSSL, or a look at the fallbacks. */
static int
finish(struct provider *provider, const struct mlkemclient *client, int line,
    const char *function, int err)
{
	char message[256];

	if (err != 0) {
		mlkemclient_copy_message(client, message, sizeof(message));
		provider_raise_client(provider, line, function, err, message);
	}
	if (client == provider->exchange.tls)
		report_fallbacks(provider);
	return err;
}

#define FINISH(client, err) finish(provider, client, __LINE__, __func__, err)

int
exchange_keygen_one_time(struct provider *provider, struct keydata *key)
{
	struct mlkemclient *client = provider->exchange.tls;

	return FINISH(client, mlkemclient_keygen(client, key->alg->id, key->share,
				  key->alg->share, &key->one_time));
}

int
exchange_keygen_own(struct provider *provider, struct keydata *key)
{
	struct mlkemclient *client = provider->exchange.own;

	return FINISH(
	    client, mlkemclient_keygen_export(client, key->alg->id, key->share,
			key->alg->share, key->expanded, key->alg->expanded));
}

static int
encaps(struct provider *provider, struct mlkemclient *client, const struct keydata *key,
    uint8_t *ct, uint8_t *secret)
{
	const struct alg *alg = key->alg;

	return FINISH(
	    client, mlkemclient_encaps(client, alg->id, key->share, alg->share, ct,
			alg->ciphertext, secret, alg->secret));
}

int
exchange_encaps(
    struct provider *provider, const struct keydata *key, uint8_t *ct, uint8_t *secret)
{
	return encaps(provider, provider->exchange.tls, key, ct, secret);
}

int
exchange_encaps_own(
    struct provider *provider, const struct keydata *key, uint8_t *ct, uint8_t *secret)
{
	return encaps(provider, provider->exchange.own, key, ct, secret);
}

int
exchange_decaps(struct provider *provider, const struct keydata *key, const uint8_t *ct,
    size_t ct_len, uint8_t *secret)
{
	struct mlkemclient *client = provider->exchange.tls;
	const uint8_t *private_key;
	size_t len;

	if (key->one_time != NULL)
		return FINISH(client, mlkemclient_decaps(client, key->one_time, ct,
					  ct_len, secret, key->alg->secret));
	private_key = keydata_private(key, &len);
	return exchange_decaps_with(
	    provider, key->alg, private_key, len, ct, ct_len, secret);
}

int
exchange_decaps_with(struct provider *provider, const struct alg *alg,
    const uint8_t *private_key, size_t private_key_len, const uint8_t *ct,
    size_t ct_len, uint8_t *secret)
{
	struct mlkemclient *client = provider->exchange.own;

	return FINISH(client, mlkemclient_decaps_with(client, alg->id, private_key,
				  private_key_len, ct, ct_len, secret, alg->secret));
}

int
exchange_share_of(struct provider *provider, const struct alg *alg,
    const uint8_t *private_key, size_t private_key_len, uint8_t *share)
{
	struct mlkemclient *client = provider->exchange.own;

	return FINISH(client, mlkemclient_share_of(client, alg->id, private_key,
				  private_key_len, share, alg->share));
}

int
exchange_expand(struct provider *provider, const struct alg *alg, const uint8_t *seed,
    uint8_t *expanded)
{
	struct mlkemclient *client = provider->exchange.own;

	return FINISH(client, mlkemclient_expand_seed(client, alg->id, seed, alg->seed,
				  expanded, alg->expanded));
}
