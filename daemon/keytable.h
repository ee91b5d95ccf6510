/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keytable.h: private keys that wait in the daemon for their ciphertext, by (connection,
 * 128-bit random handle). Used once; expire; die with their connection. Secret parts lie
 * in the arena. Shard thread only. Unknown, foreign, used and expired look the same.
 */
#ifndef MLKEMD_KEYTABLE_H
#define MLKEMD_KEYTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kem/kem.h"
#include "proto/wire.h"

struct metrics_shard;
struct secmem;
struct keytable;

size_t keytable_arena_bytes(uint32_t max_keys);

__attribute__((warn_unused_result)) int keytable_new(struct keytable **tablep,
    uint32_t max_keys, const struct kem *kem, struct secmem *secmem,
    struct metrics_shard *metrics);
struct keytable *keytable_free(struct keytable *table);

/* Keys that it can hold, and those that could be added now. */
uint32_t keytable_size(const struct keytable *table);
uint32_t keytable_room(const struct keytable *table);

/*
 * Copies a pair in under a fresh random handle. *owned counts the keys of the user: up
 * now, and down when the key goes; it lives as long as the connection. Returns 0; KEYTABLE_E_FULL; or a
 * negative KEM_FAIL_RNG.
 */
enum { KEYTABLE_E_FULL = 1 };
__attribute__((warn_unused_result)) int keytable_add(struct keytable *table,
    uint64_t conn_id, enum kem_alg alg, const uint8_t *share, const uint8_t *secret,
    uint64_t expires_us, uint32_t *owned, uint8_t handle[WIRE_HANDLE_BYTES]);

/*
 * What a live handle is, without spending it: *algp is its algorithm. False: none such.
 */
bool keytable_peek(const struct keytable *table, uint64_t conn_id,
    const uint8_t handle[WIRE_HANDLE_BYTES], uint64_t now_us, enum kem_alg *algp);

/*
 * Spends a handle: moves its secret (secret_bytes) and share (share_bytes) out and wipes
 * the slot. False: none such.
 */
bool keytable_take(struct keytable *table, uint64_t conn_id,
    const uint8_t handle[WIRE_HANDLE_BYTES], uint64_t now_us, uint8_t *secret,
    uint8_t *share);

/* True if it was live. */
bool keytable_release(
    struct keytable *table, uint64_t conn_id, const uint8_t handle[WIRE_HANDLE_BYTES]);

void keytable_conn_gone(struct keytable *table, uint64_t conn_id);
void keytable_expire(struct keytable *table, uint64_t now_us);
uint32_t keytable_count(const struct keytable *table);

#endif
