/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keypool.h: one-time key pairs and X25519 ephemerals made in idle turns. Secret parts
 * lie in the arena, public shares outside. Each entry leaves once and its slot is wiped
 * as it goes. Shard thread only.
 */
#ifndef MLKEMD_KEYPOOL_H
#define MLKEMD_KEYPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kem/kem.h"

struct metrics_shard;
struct secmem;

enum keypool_kind { KEYPOOL_HYBRID, KEYPOOL_MLKEM768, KEYPOOL_X25519, KEYPOOL_N_KINDS };

struct keypool_limits {
	uint32_t high[KEYPOOL_N_KINDS]; /* 0: this kind is off */
	uint32_t low_percent;
	uint32_t max_age_ms;
};

/* Bytes of arena that a pool of these limits takes. */
size_t keypool_arena_bytes(const struct keypool_limits *limits);

struct keypool;

/*
 * Secret memory comes from secmem (keypool_arena_bytes of it). Returns 0, or -ENOMEM.
 */
__attribute__((warn_unused_result)) int keypool_new(struct keypool **poolp,
    const struct keypool_limits *limits, const struct kem *kem, struct secmem *secmem,
    struct kem_scratch *scratch, struct metrics_shard *metrics);
struct keypool *keypool_free(struct keypool *pool);

/* Moves one pair out (share_bytes, secret_bytes of the kind). False: empty (a miss). */
bool keypool_take_pair(
    struct keypool *pool, enum keypool_kind kind, uint8_t *share, uint8_t *secret);
bool keypool_take_x25519(struct keypool *pool, struct kem_x25519 *pair);

/* True while there is filling to do: below low water, and from then on to the top. */
bool keypool_wants_fill(const struct keypool *pool);

/*
 * keypool_fill_group() makes ONE group (as many keys as the backend has lanes, at most
 * KEM_GROUP_MAX) of the kind that is lowest in proportion. Returns 0, or a negative
 * KEM_FAIL_...
 */
__attribute__((warn_unused_result)) int keypool_fill_group(
    struct keypool *pool, uint64_t now_us);

/*
 * Lanes that a batch leaves idle make ephemerals for nothing (kem_encaps_spare()): up to
 * high water, whether filling has begun or not. keypool_lend() gives *spare room for as
 * many as are missing; after the operation keypool_keep() moves what was made into the
 * pool, and wipes the room. Nothing else may be asked of the pool in between.
 */
void keypool_lend(struct keypool *pool, struct kem_spare *spare);
void keypool_keep(struct keypool *pool, struct kem_spare *spare, uint64_t now_us);

/* Wipes what is older than the age limit; called once a turn, cheap when none is. */
void keypool_expire(struct keypool *pool, uint64_t now_us);

/* Wipes all (suspend, drain); it fills again as usual. */
void keypool_flush(struct keypool *pool);

/*
 * pairwise-check = pool: each pair is tried (encapsulation, decapsulation) before it
 * enters; one that fails is wiped and keypool_fill_group() returns KEM_FAIL_SELFTEST.
 */
void keypool_set_pairwise_check(struct keypool *pool, bool on);

/* New limits, at most the sizes it was made with (else clipped to them). */
void keypool_set_limits(struct keypool *pool, const struct keypool_limits *limits);

/* What it is filled to, and what is there. */
uint32_t keypool_size(const struct keypool *pool, enum keypool_kind kind);
uint32_t keypool_level(const struct keypool *pool, enum keypool_kind kind);

#endif
