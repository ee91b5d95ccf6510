/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_message.h: the requests of a load as frames, and what their answers say.
 */
#ifndef MLKEMCTL_BENCH_MESSAGE_H
#define MLKEMCTL_BENCH_MESSAGE_H

#include "client-lib/mlkemclient.h"
#include "proto/wire.h"

/* Room for the largest frame of either direction: 64 items of ML-KEM-1024. */
#define BENCH_FRAME_MAX (176u * 1024u)

enum bench_kind { BENCH_HELLO, BENCH_DO_ENCAPS, BENCH_DO_KEYGEN, BENCH_DO_DECAPS };

/* What all requests of a load are made of: one share and one ciphertext to it. */
struct bench_values {
	enum mlkemclient_alg alg;
	struct mlkemclient_sizes sizes;
	uint8_t share[MLKEMCLIENT_MAX_SHARE];
	uint8_t ciphertext[MLKEMCLIENT_MAX_CIPHERTEXT];
};

struct bench_handle {
	uint8_t bytes[WIRE_HANDLE_BYTES];
};

/* Makes them in this process. Returns 0, or a negative MLKEMCLIENT_E_... */
int bench_values_make(struct bench_values *values, enum mlkemclient_alg alg);

/*
 * Writes a frame of n items (handles: for decapsulation, n of them) to out, which has
 * BENCH_FRAME_MAX bytes. Returns its length.
 */
size_t bench_frame_put(uint8_t *out, const struct bench_values *values,
    enum bench_kind kind, uint64_t id, unsigned n, const struct bench_handle *handles);

/* What an answer says; handles of key generations that went well are copied out. */
struct bench_answer {
	uint64_t id;
	unsigned n_good, n_bad;
	char failure[256]; /* of the first bad one */
	struct bench_handle handles[MLKEMCLIENT_MAX_ITEMS];
};

/* message: without its header. Returns 0, or -1 if it is no Response. */
int bench_answer_read(
    const uint8_t *message, size_t len, unsigned n_items, struct bench_answer *answer);

#endif
