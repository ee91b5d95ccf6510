/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.h: what peers in C share: the protocol of README.md, answered from a table of
 * operations. Not part of the project's build; see build.sh.
 */
#ifndef MLKEMD_PEER_H
#define MLKEMD_PEER_H

#include <stddef.h>
#include <stdint.h>

#define PEER_KEYS      64   /* a call takes the next, so that no predictor learns one */
#define PEER_SHARE_MAX 1568 /* and the same for ciphertexts */

struct peer_op {
	const char *op, *set;
	int (*run)(void *ctx, uint64_t n);
	void *ctx;
};

struct peer {
	const char *name;
	char version[96];
	const struct peer_op *ops;
	size_t n_ops;
	/* Encapsulate to a share; set is 512, 768, 1024 or x25519mlkem768. 0 or -1. */
	int (*check)(const char *set, const uint8_t *share, size_t share_len,
	    uint8_t *ct, size_t *ct_len, uint8_t *shared, size_t *shared_len);
};

/* Answers questions until standard input ends. Returns the exit status. */
int peer_serve(const struct peer *peer);

/* The same bytes in every run. */
void peer_fill(uint8_t *out, size_t len);

/* For operations that can't work at all: says why and ends. */
void peer_need(int ok, const char *what);

#endif
