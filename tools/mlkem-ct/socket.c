/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Through the socket: the daemon makes a key and keeps it, the encapsulation is ours, and
 * what is timed is the round trip in which the daemon decapsulates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/mlkemclient.h"
#include "leak.h"
#include "tools/mlkem-bench/common.h"

#define ALG         MLKEMCLIENT_X25519MLKEM768
#define DEADLINE_US 5000000

/* An input is the number of its key and its ciphertext share. */
#define NUMBER_BYTES 4

struct socket_side {
	struct mlkemclient *client;
	struct mlkemclient_key *key[LEAK_CHUNK];
	unsigned next;
};

int
socket_init(
    struct subject *subject, struct leak_case *leak, const struct leak_options *options)
{
	const struct mlkemclient_options wanted = {
	    .size = sizeof wanted,
	    .socket_path = options->socket_path,
	    .client_name = "mlkem-ct",
	    .require = true,
	    .deadline_us = DEADLINE_US,
	};
	struct mlkemclient_info info;
	struct socket_side *side = calloc(1, sizeof *side);
	int error;

	if (!side)
		return tool_fail("no memory");
	subject->side = side;
	error = mlkemclient_new(&side->client, &wanted);
	if (error == 0)
		error = mlkemclient_get_info(side->client, &info);
	if (error) {
		const char *message =
		    side->client ? mlkemclient_last_message(side->client) : "";

		snprintf(leak->reason, sizeof leak->reason, "no mlkemd to ask: %s",
		    *message ? message : mlkemclient_strerror(error));
		return 1;
	}
	snprintf(leak->backend, sizeof leak->backend, "%s", info.backend);
	return 0;
}

void
socket_fini(struct subject *subject)
{
	struct socket_side *side = subject->side;

	if (!side)
		return;
	for (unsigned i = 0; i < LEAK_CHUNK; i++)
		mlkemclient_key_free(side->client, side->key[i]);
	mlkemclient_free(side->client);
	free(side);
}

size_t
socket_input_bytes(const struct subject *subject)
{
	return NUMBER_BYTES + (size_t)kem_alg_info(subject->alg)->ct_bytes;
}

static int
side_fail(const struct socket_side *side, const char *doing, int error)
{
	const char *message = mlkemclient_last_message(side->client);

	return tool_fail(
	    "%s: %s", doing, *message ? message : mlkemclient_strerror(error));
}

int
socket_make(struct subject *subject, unsigned class, uint8_t *input)
{
	const struct kem_alg_info *info = kem_alg_info(subject->alg);
	struct socket_side *side = subject->side;
	uint32_t number = side->next++ % LEAK_CHUNK;
	uint8_t *share = subject->key[0].share;
	/* The X25519 half stays as it is: it is a public point, wrong or right. */
	unsigned at = subject->turn++ % (info->ct_bytes - 32u);
	struct kem_encaps_item item = {.share = share,
	    .share_len = info->share_bytes,
	    .ct = input + NUMBER_BYTES,
	    .shared = &subject->shared[0]};
	int error;

	mlkemclient_key_free(side->client, side->key[number]);
	side->key[number] = NULL;
	error = mlkemclient_keygen(
	    side->client, ALG, share, info->share_bytes, &side->key[number]);
	if (error)
		return side_fail(side, "key generation", error);
	if (kem_encaps(subject->kem, subject->alg, &item, 1, subject->scratch) < 0 ||
	    item.status != KEM_OK)
		return tool_fail("encapsulation failed");
	item.ct[at] ^= (uint8_t)(class << (tool_random(&subject->random) & 7));
	memcpy(input, &number, NUMBER_BYTES);
	return 0;
}

int
socket_run(struct subject *subject)
{
	struct socket_side *side = subject->side;
	uint32_t number;
	int error;

	memcpy(&number, subject->in, NUMBER_BYTES);
	error = mlkemclient_decaps(side->client, side->key[number],
	    subject->in + NUMBER_BYTES, kem_alg_info(subject->alg)->ct_bytes,
	    subject->shared[0].bytes, sizeof subject->shared[0].bytes);
	return error ? side_fail(side, "decapsulation", error) : 0;
}
