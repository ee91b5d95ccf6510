/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h: a client and a server of libssl in one process, with every byte between them
 * in the test's hands: it can be cut, changed, and read.
 */
#ifndef TESTS_PROVIDER_TLS_H
#define TESTS_PROVIDER_TLS_H

#include <openssl/ssl.h>

#include "host.h"

#define HELLO_MAX 16384

/* What was seen on the wire. */
struct wire {
	unsigned group;       /* of the ServerHello's key share; 0: none */
	unsigned retry_group; /* of a HelloRetryRequest; 0: none */
	unsigned psk;         /* whether the ServerHello resumes a session */
	int alert_by_server, alert_by_client; /* in the clear; -1: none */
	size_t n_client_hellos;
	size_t share_len; /* of the first share in the last ClientHello */
};

/*
 * Changes a key share on its way: data is the share, with room for HELLO_MAX; returns
 * its new length.
 */
typedef size_t tamper_share(uint8_t *data, size_t len, int how);

struct tls {
	const struct host *client_host, *server_host;
	SSL_CTX *client_ctx, *server_ctx;
	SSL *client, *server;
	size_t piece;                /* bytes that travel at once; 0: all */
	tamper_share *tamper_client; /* the share of each ClientHello */
	tamper_share *tamper_server; /* of each ServerHello */
	int how;
	struct wire wire;
	SSL_SESSION *session;
};

/* Both sides of one host, with their lists of groups. */
void tls_open(struct tls *tls, const struct host *client, const char *client_groups,
    const struct host *server, const char *server_groups);
void tls_close(struct tls *tls);

/*
 * A new connection, which resumes tls->session if that is set. Returns whether both
 * sides finished it and a few bytes went each way; a ticket that came is then the
 * session.
 */
bool tls_connect(struct tls *tls);

#endif
