/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * key.h: key objects, on the heap; the secrets of local ones in locked blocks (key.c).
 * A key belongs to one caller at a time; what it shares with others (the blocks, the
 * connection) is the handle's and under its lock.
 */
#ifndef MLKEMCLIENT_KEY_H
#define MLKEMCLIENT_KEY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client-lib/mlkemclient.h"
#include "kem/kem.h"
#include "proto/wire.h"

struct mlkemclient_key {
	struct mlkemclient *owner;
	enum kem_alg alg;
	bool in_daemon, leased;
	atomic_bool spent;
	uint32_t era;        /* of the handle: another in a child */
	uint64_t generation; /* of the connection */
	uint8_t handle[WIRE_HANDLE_BYTES];
	uint8_t *secret; /* local: secret_bytes, then share_bytes; in a key block */
};

/* Without the lock: they take it. */
struct mlkemclient_key *key_new(struct mlkemclient *client, enum kem_alg alg);
void key_free(struct mlkemclient_key *key); /* without telling the daemon */
__attribute__((warn_unused_result)) int key_need_secret(struct mlkemclient_key *key);
void key_drop_secret(struct mlkemclient_key *key);

/* Under the lock. */
bool key_is_live(const struct mlkemclient_key *key);
void key_lost(struct mlkemclient_key *key); /* its use found it gone */
void key_made_in_daemon(
    struct mlkemclient_key *key, const uint8_t *handle, bool leased);

#endif
