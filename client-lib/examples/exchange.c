/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Two roles agree on an X25519MLKEM768 secret and send one message under AES-256-GCM.
 * The key comes from the secret by HKDF, on both sides alike. In life the share and the
 * ciphertext share would travel between two hosts; here they pass through two buffers.
 *
 *   cc exchange.c $(pkg-config --cflags --libs libmlkemclient libcrypto) -o exchange
 *   exchange [SOCKET]
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "mlkemclient.h"

#define ALG MLKEMCLIENT_X25519MLKEM768

static const uint8_t nonce[12]; /* one message under a fresh key: zero is fine */

/* Encrypts (1) or decrypts (0) in place; tag is written or checked. 1 is success. */
static int
aes_gcm(int encrypt, const uint8_t key[32], uint8_t *text, int len, uint8_t tag[16])
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n, ok;

	ok =
	    ctx &&
	    EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce, encrypt) == 1 &&
	    EVP_CipherUpdate(ctx, text, &n, text, len) == 1 &&
	    (encrypt ||
		EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, 16, tag) == 1) &&
	    EVP_CipherFinal_ex(ctx, text + n, &n) == 1 &&
	    (!encrypt || EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1);
	EVP_CIPHER_CTX_free(ctx);
	return ok;
}

/* A handle whose operations end in a 32-byte key for this protocol. */
static struct mlkemclient *
role_open(const char *socket_path)
{
	static const uint8_t info[] = "mlkemd example 1: AES-256-GCM key";
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = socket_path,
	    .route = MLKEMCLIENT_ROUTE_DAEMON};
	struct mlkemclient *client;

	if (mlkemclient_new(&client, &opts) != 0)
		return NULL;
	if (mlkemclient_set_kdf(client, 256, NULL, 0, info, sizeof(info) - 1, 32) == 0)
		return client;
	mlkemclient_free(client);
	return NULL;
}

int
main(int argc, char **argv)
{
	struct mlkemclient *alice = role_open(argc > 1 ? argv[1] : NULL);
	struct mlkemclient *bob = role_open(argc > 1 ? argv[1] : NULL);
	struct mlkemclient_key *key = NULL;
	uint8_t share[1216], ciphertext[1120], alice_key[32], bob_key[32], tag[16];
	uint8_t text[] = "meet me where the lattice is thinnest";
	int status = 1;

	if (alice == NULL || bob == NULL) {
		fprintf(stderr, "exchange: no handle (socket path too long?)\n");
	} else if (mlkemclient_keygen(alice, ALG, share, sizeof(share), &key) != 0) {
		fprintf(
		    stderr, "exchange: keygen: %s\n", mlkemclient_last_message(alice));
	} else if (mlkemclient_encaps(bob, ALG, share, sizeof(share), ciphertext,
		       sizeof(ciphertext), bob_key, sizeof(bob_key)) != 0) {
		fprintf(
		    stderr, "exchange: encaps: %s\n", mlkemclient_last_message(bob));
	} else if (mlkemclient_decaps(alice, key, ciphertext, sizeof(ciphertext),
		       alice_key, sizeof(alice_key)) != 0) {
		fprintf(
		    stderr, "exchange: decaps: %s\n", mlkemclient_last_message(alice));
	} else if (!aes_gcm(1, bob_key, text, sizeof(text), tag) ||
		   !aes_gcm(0, alice_key, text, sizeof(text), tag)) {
		fprintf(stderr, "exchange: the message did not come through\n");
	} else {
		printf("key in the %s; alice read: %s\n",
		    mlkemclient_key_in_daemon(key) ? "daemon" : "process",
		    (char *)text);
		status = 0;
	}

	mlkemclient_wipe(alice_key, sizeof(alice_key));
	mlkemclient_wipe(bob_key, sizeof(bob_key));
	mlkemclient_key_free(alice, key);
	mlkemclient_free(alice);
	mlkemclient_free(bob);
	return status;
}
