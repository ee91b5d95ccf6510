/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h: counters and histograms with one writer each: a shard counts on its own
 * cache lines with relaxed atomics, whoever asks sums. Never a figure from which an
 * implicit rejection could be seen: what is told apart is the operation, the algorithm,
 * and statuses that a client is told anyway.
 */
#ifndef MLKEMD_METRICS_H
#define MLKEMD_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "kem/kem.h"

struct request;

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
 X(handles_used_total, "handles_used_total", "spent by a decapsulation")          \
 X(handles_released_total, "handles_released_total", "given back by Release")     \
 X(handles_expired_total, "handles_expired_total", "never used in time")          \
 X(handles_dropped_total, "handles_dropped_total", "lost with their connection")  \
 X(slow_requests_total, "slow_requests_total", "longer than daemon.slow-request") \
 X(client_fallbacks_total, "client_fallbacks_total", "told in Hello")             \
 X(client_auto_daemon_total, "client_auto_daemon_total", "told in Hello")         \
 X(client_auto_local_total, "client_auto_local_total", "told in Hello")           \
 X(secret_memory_bytes, "secret_memory_bytes", "size of the arena")

/* The operations that keys are exchanged by, as batch.h numbers them. */
enum metrics_op { METRICS_KEYGEN, METRICS_ENCAPS, METRICS_DECAPS, METRICS_N_OPS };

/* What a histogram's bounds count; metrics.c has them. */
enum metrics_scale {
	METRICS_LATENCY, /* microseconds, from 2 to 250 000 */
	METRICS_ITEMS,   /* items of a kernel group, 1 to 8 */
	METRICS_AGE,     /* microseconds, from a millisecond to a minute */
	METRICS_N_SCALES,
};

#define METRICS_BOUNDS_MAX 17

/* Not cumulative here; the last one that is used has what is above all bounds. */
struct metrics_histogram {
	_Atomic uint64_t sum;
	_Atomic uint64_t buckets[METRICS_BOUNDS_MAX + 1];
};

struct metrics_bounds {
	uint32_t n;
	uint32_t upper[METRICS_BOUNDS_MAX]; /* inclusive */
};
extern const struct metrics_bounds metrics_bounds[METRICS_N_SCALES];

/* One kind of the pool's entries, as keypool.h numbers them. */
#define METRICS_N_POOLS 3
struct metrics_pool {
	_Atomic uint64_t made, taken, missed, expired, flushed;
	_Atomic uint64_t oldest_us; /* when the oldest was made; 0: there is none */
};

/* Of a request's statuses and operations only those that the data socket has. */
#define METRICS_N_STATUSES    17
#define METRICS_N_REQUEST_OPS 9

struct metrics_shard {
	_Alignas(64) char start[0];
#define METRICS_DECLARE(field, name, help) _Atomic uint64_t field;
	METRICS_FIELDS(METRICS_DECLARE)
#undef METRICS_DECLARE
	_Atomic uint64_t requests[METRICS_N_REQUEST_OPS][METRICS_N_STATUSES];
	_Atomic uint64_t items_done[METRICS_N_OPS][KEM_N_ALGS];
	_Atomic uint64_t items_failed[METRICS_N_OPS][METRICS_N_STATUSES];
	struct metrics_histogram duration[METRICS_N_OPS][KEM_N_ALGS]; /* of requests */
	struct metrics_histogram queue_wait[METRICS_N_OPS];           /* of items */
	struct metrics_histogram batch_duration[METRICS_N_OPS];
	struct metrics_histogram batch_items[METRICS_N_OPS];
	struct metrics_histogram pool_age; /* of entries, as they are given out */
	struct metrics_pool pool[METRICS_N_POOLS];
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

static inline uint64_t
metrics_get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void
metrics_observe(
    struct metrics_histogram *histogram, enum metrics_scale scale, uint64_t value)
{
	const struct metrics_bounds *bounds = &metrics_bounds[scale];
	uint32_t i = 0;

	while (i < bounds->n && value > bounds->upper[i])
		i++;
	metrics_add(&histogram->buckets[i], 1);
	metrics_add(&histogram->sum, value);
}

#define METRICS_COUNT(field, name, help) +1
enum { METRICS_N_FIELDS = 0 METRICS_FIELDS(METRICS_COUNT) };
#undef METRICS_COUNT

/* Field i of n shards summed; *namep is its static name. */
uint64_t metrics_sum(const struct metrics_shard *const *shards, unsigned n_shards,
    unsigned field, const char **namep);

/* metrics_request.c: counts a request of the data socket that has its answer. */
void metrics_request_done(
    struct metrics_shard *metrics, const struct request *req, uint32_t took_us);
/* The name of status number index, as proto/mlkemd.proto has it, or of an operation. */
const char *metrics_status_name(unsigned index);
const char *metrics_request_op_name(unsigned index);

#endif
