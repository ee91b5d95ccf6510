/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * 64 exchanges in three frames: 64 key pairs, 64 encapsulations to them, 64
 * decapsulations. Each item has its own error, so one bad share costs nobody else.
 *
 *   cc batch64.c $(pkg-config --cflags --libs libmlkemclient) -o batch64
 *   batch64 [SOCKET]
 */
#include <stdio.h>
#include <string.h>

#include "mlkemclient.h"

#define ALG MLKEMCLIENT_X25519MLKEM768
#define N   64

static uint8_t shares[N][1216], ciphertexts[N][1120];
static uint8_t sent[N][64], received[N][64];

static int
run(struct mlkemclient *client, struct mlkemclient_keygen_item *keys)
{
	struct mlkemclient_encaps_item encaps[N] = {{0}};
	struct mlkemclient_decaps_item decaps[N] = {{0}};
	int equal = 0;

	for (int i = 0; i < N; i++)
		keys[i].share = shares[i];
	if (mlkemclient_keygen_batch(client, ALG, keys, N) != 0)
		return -1;

	for (int i = 0; i < N; i++) {
		encaps[i].share = shares[i];
		encaps[i].share_len = sizeof(shares[i]);
		encaps[i].ciphertext = ciphertexts[i];
		encaps[i].secret = sent[i];
	}
	if (mlkemclient_encaps_batch(client, ALG, encaps, N) != 0)
		return -1;

	for (int i = 0; i < N; i++) {
		decaps[i].key = keys[i].key;
		decaps[i].ciphertext = ciphertexts[i];
		decaps[i].ciphertext_len = sizeof(ciphertexts[i]);
		decaps[i].secret = received[i];
	}
	if (mlkemclient_decaps_batch(client, ALG, decaps, N) != 0)
		return -1;

	for (int i = 0; i < N; i++)
		equal += keys[i].error == 0 && encaps[i].error == 0 &&
			 decaps[i].error == 0 && memcmp(sent[i], received[i], 64) == 0;
	return equal;
}

int
main(int argc, char **argv)
{
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_DAEMON};
	struct mlkemclient_keygen_item keys[N] = {{0}};
	struct mlkemclient_counts counts;
	struct mlkemclient *client;
	int equal;

	opts.socket_path = argc > 1 ? argv[1] : NULL;
	if (mlkemclient_new(&client, &opts) != 0) {
		fprintf(stderr, "batch64: no handle (socket path too long?)\n");
		return 1;
	}
	equal = run(client, keys);
	if (equal < 0)
		fprintf(stderr, "batch64: %s\n", mlkemclient_last_message(client));
	mlkemclient_get_counts(client, &counts);
	printf("%d of %d secrets are equal; %llu operations by the daemon, %llu here\n",
	    equal, N, (unsigned long long)counts.by_daemon,
	    (unsigned long long)counts.by_local);

	for (int i = 0; i < N; i++)
		mlkemclient_key_free(client, keys[i].key);
	mlkemclient_wipe(sent, sizeof(sent));
	mlkemclient_wipe(received, sizeof(received));
	mlkemclient_free(client);
	return equal == N ? 0 : 1;
}
