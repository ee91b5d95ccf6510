/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h: counters with one writer each: a shard counts on its own cache lines with
 * relaxed atomics, whoever asks sums. Never a figure from which an implicit rejection
 * could be seen.
 */
#ifndef MLKEMD_METRICS_H
#define MLKEMD_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

/* X(field, name in Stats, what it counts). Names end in _total unless they are levels. */
#define METRICS_FIELDS(X)                                                         \
 X(connections, "connections", "connections open now")                            \
 X(connections_total, "connections_total", "connections taken over")              \
 X(denied_total, "connections_denied_total", "peers that may not come in")        \
 X(hello_timeouts_total, "hello_timeouts_total", "no Hello within a second")      \
 X(frame_timeouts_total, "frame_timeouts_total", "frames that dripped")           \
 X(broken_frames_total, "broken_frames_total", "connections closed for a frame")  \
 X(requests_total, "requests_total", "requests decoded")                          \
 X(requests_failed_total, "requests_failed_total", "answered with a status")      \
 X(shed_total, "shed_total", "RESOURCE_EXHAUSTED answers")                        \
 X(deadline_total, "deadline_exceeded_total", "items past their deadline")        \
 X(items_keygen_total, "items_keygen_total", "key pairs given out")               \
 X(items_encaps_total, "items_encaps_total", "encapsulations")                    \
 X(items_decaps_total, "items_decaps_total", "decapsulations")                    \
 X(items_failed_total, "items_failed_total", "items refused")                     \
 X(groups_total, "groups_total", "kernel groups run for requests")                \
 X(groups_generic_total, "groups_generic_total", "of them by generic")            \
 X(groups_avx2_total, "groups_avx2_total", "of them by avx2")                     \
 X(groups_avx512_total, "groups_avx512_total", "of them by avx512")               \
 X(group_items_total, "group_items_total", "items in those groups")               \
 X(lanes_used_total, "x25519_lanes_used_total", "lanes that worked items")        \
 X(lanes_refilled_total, "x25519_lanes_refilled_total", "spare, made ephemerals") \
 X(lanes_idle_total, "x25519_lanes_idle_total", "spare, did nothing of use")      \
 X(turns_total, "turns_total", "turns of the shard")                              \
 X(busy_us_total, "busy_us_total", "time not spent waiting")                      \
 X(pool_hybrid, "pool_hybrid", "hybrid pairs ready")                              \
 X(pool_mlkem768, "pool_mlkem768", "ML-KEM-768 pairs ready")                      \
 X(pool_x25519, "pool_x25519", "X25519 ephemerals ready")                         \
 X(pool_made_total, "pool_made_total", "entries made")                            \
 X(pool_taken_total, "pool_taken_total", "entries given out")                     \
 X(pool_missed_total, "pool_missed_total", "asked for while empty")               \
 X(pool_expired_total, "pool_expired_total", "entries wiped for their age")       \
 X(handles, "handles", "private keys waiting")                                    \
 X(handles_expired_total, "handles_expired_total", "never used in time")          \
 X(client_fallbacks_total, "client_fallbacks_total", "told in Hello")             \
 X(secret_memory_bytes, "secret_memory_bytes", "size of the arena")

struct metrics_shard {
	_Alignas(64) char start[0];
#define METRICS_DECLARE(field, name, help) _Atomic uint64_t field;
	METRICS_FIELDS(METRICS_DECLARE)
#undef METRICS_DECLARE
};

/* Single writer: no read-modify-write is needed. */
static inline void
metrics_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter,
	    atomic_load_explicit(counter, memory_order_relaxed) + n,
	    memory_order_relaxed);
}

static inline void
metrics_set(_Atomic uint64_t *level, uint64_t value)
{
	atomic_store_explicit(level, value, memory_order_relaxed);
}

#define METRICS_COUNT(field, name, help) +1
enum { METRICS_N_FIELDS = 0 METRICS_FIELDS(METRICS_COUNT) };
#undef METRICS_COUNT

/* Field i of n shards summed; *namep is its static name. */
uint64_t metrics_sum(const struct metrics_shard *const *shards, unsigned n_shards,
    unsigned field, const char **namep);

#endif
