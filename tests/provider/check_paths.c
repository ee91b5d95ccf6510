/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One coefficient that is 3329, on the seven ways on which a share can reach an
 * encapsulation (FIPS 203 7.2): each refuses it, and takes it when it is put right.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

#include "tests/client-lib/rig.h"
#include "tls.h"

static struct host host;
static struct daemon server;
static const struct alg *const alg = &algs[ALG_X25519MLKEM768];
static uint8_t share[MLKEMCLIENT_MAX_SHARE], ct[MLKEMCLIENT_MAX_CIPHERTEXT];
static uint8_t secret[MLKEMCLIENT_MAX_SECRET];
static bool spoiled;

static size_t
spoil_first(uint8_t *data, size_t len, int how)
{
	if (spoiled) {
		data[0] = 0x01;
		data[1] = (uint8_t)((data[1] & 0xf0) | 0x0d);
	}
	return len;
}

static struct mlkemclient *
client_of(bool local)
{
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = server.path,
	    .route = local ? MLKEMCLIENT_ROUTE_LOCAL : MLKEMCLIENT_ROUTE_DAEMON,
	    .require = !local,
	    .deadline_us = 10000000};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	return client;
}

static bool
by_client(bool local, bool batch)
{
	struct mlkemclient *client = client_of(local);
	struct mlkemclient_encaps_item item = {share, alg->share, ct, secret, 1};
	int err;

	if (batch) {
		err = mlkemclient_encaps_batch(client, alg->id, &item, 1);
		if (err == 0)
			err = item.error;
	} else {
		err = mlkemclient_encaps(client, alg->id, share, alg->share, ct,
		    alg->ciphertext, secret, alg->secret);
	}
	ck_assert(err == 0 || err == MLKEMCLIENT_E_BAD_SHARE);
	mlkemclient_free(client);
	return err == 0;
}

static bool
by_local(void)
{
	return by_client(true, false);
}

static bool
by_local_batch(void)
{
	return by_client(true, true);
}

static bool
by_daemon(void)
{
	return by_client(false, false);
}

static bool
by_daemon_batch(void)
{
	return by_client(false, true);
}

static bool
encaps_to(EVP_PKEY *pkey)
{
	bool done = pkey != NULL && pkey_try_encaps(&host, alg, pkey, ct, secret) == 1;

	EVP_PKEY_free(pkey);
	ERR_clear_error();
	return done;
}

static bool
by_import(void)
{
	struct parts parts = {.pub = share, .pub_len = alg->share};

	return encaps_to(pkey_try_import(&host, alg, &parts, EVP_PKEY_PUBLIC_KEY));
}

static bool
by_encoded_key(void)
{
	return encaps_to(pkey_try_peer(&host, alg, share, alg->share));
}

static bool
by_client_hello(void)
{
	struct tls tls;
	bool done;

	tls_open(&tls, &host, alg->group, &host, alg->group);
	tls.tamper_client = spoil_first;
	done = tls_connect(&tls);
	ERR_clear_error();
	tls_close(&tls);
	return done;
}

static const struct {
	const char *name;
	bool (*taken)(void);
} paths[] = {
    {"library, in this process", by_local},
    {"library, in this process, batch", by_local_batch},
    {"library, by the daemon", by_daemon},
    {"library, by the daemon, batch", by_daemon_batch},
    {"EVP_PKEY_fromdata, EVP_PKEY_encapsulate", by_import},
    {"EVP_PKEY_set1_encoded_public_key", by_encoded_key},
    {"TLS ClientHello", by_client_hello},
};
enum { N_PATHS = sizeof(paths) / sizeof(paths[0]) };

START_TEST(seven_paths)
{
	EVP_PKEY *own;

	daemon_start(&server, NULL);
	host_open(&host, settings(server.path, "daemon", "deadline = 10s\n"));
	own = pkey_generate(&host, alg, false);
	for (int i = 0; i < N_PATHS; i++) {
		pkey_bytes(own, "pub", share, sizeof(share));
		spoiled = false;
		ck_assert_msg(paths[i].taken(), "%s refused a right share: %s",
		    paths[i].name, host_errors());
		spoiled = true;
		spoil_first(share, alg->share, 0);
		ck_assert_msg(!paths[i].taken(), "%s took 3329", paths[i].name);
		printf("refused: %s\n", paths[i].name);
	}
	EVP_PKEY_free(own);
	host_close(&host);
	daemon_stop(&server);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("ways of a share");
	TCase *tcase = tcase_create("all");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, seven_paths);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
