/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig.h: what stands behind one shard's requests (arena, kem, pool, key table, batch,
 * service, codec memory), without any socket. For the tests of the daemon's middle.
 */
#ifndef MLKEMD_RIG_H
#define MLKEMD_RIG_H

#include <check.h>

#include "daemon/batch.h"
#include "daemon/codec.h"
#include "daemon/config.h"
#include "daemon/keypool.h"
#include "daemon/keytable.h"
#include "daemon/metrics.h"
#include "daemon/secmem.h"
#include "daemon/service.h"
#include "daemon/user.h"
#include "kem/fault.h"

#define RIG_CONN 7u
#define RIG_KEYS 16u

struct rig {
	struct kem *kem;
	struct secmem secmem;
	struct kem_scratch *scratch;
	struct metrics_shard metrics;
	struct config config;
	struct keypool *pool;
	struct keytable *keys;
	struct batch batch;
	struct service service;
	struct mem mem;
	struct user_table users;
	struct user *user; /* whose the requests are */
	unsigned n_done;   /* calls of req->done since the last request_new */
	struct request *last_done;
};

/* pool: entries of each kind that it may hold (and holds none yet). */
void rig_open(struct rig *rig, uint32_t pool);
void rig_open_kem(struct rig *rig, uint32_t pool, struct kem *kem); /* takes kem */
void rig_close(struct rig *rig);
void rig_fill(struct rig *rig); /* the pool, to the top */

/* A request as codec would have made it; n items. Deadline far away. */
struct request *rig_request(
    struct rig *rig, enum request_op op, enum kem_alg alg, uint32_t n);

/* service_handle() and batch_run(); asserts that done was called once. */
void rig_serve(struct rig *rig, struct request *req);

/* The same; returns the status of the request, which has a text if it is not OK. */
enum request_status rig_status(struct rig *rig, struct request *req);

/* Items that have this status. */
unsigned rig_count(const struct request *req, enum request_status status);

/* A share, key, ciphertext or handle of the request. */
void rig_bytes(struct request_bytes *to, const void *data, size_t len);

/* A key pair made in place: share and dk of alg (KEM_..._MAX bytes). */
struct rig_pair {
	uint8_t share[KEM_SHARE_MAX];
	uint8_t secret[KEM_SECRET_MAX];
	uint8_t dk[KEM_DK_MAX];
};
void rig_pair_make(struct rig *rig, enum kem_alg alg, struct rig_pair *pair);

/* A ciphertext to a share, and the secret that belongs to it. */
void rig_encaps(struct rig *rig, enum kem_alg alg, const uint8_t *share, uint8_t *ct,
    struct kem_shared *shared);

/* The first place of len bytes in memory, or NULL. */
const void *rig_find(const void *memory, size_t size, const void *needle, size_t len);
bool rig_zero(const void *memory, size_t size);
bool rig_in_arena(const struct rig *rig, const void *needle, size_t len);

/* True in a build with test hooks: only there can faults be planted. */
bool rig_hooks(void);
void rig_fault(const char *list); /* NULL: none */

/* The whole main of a test program. */
int rig_main(Suite *suite);

#endif
