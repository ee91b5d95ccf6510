/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h: the only door to protobuf: bytes of one message to a struct request, and a
 * finished request to bytes. Decoded messages and everything that a request needs lie in
 * a bounded bump allocator in the arena (struct mem), wiped at the turn's end.
 */
#ifndef MLKEMD_CODEC_H
#define MLKEMD_CODEC_H

#include "request.h"

/* Codec memory: a bump allocator with a hard end. Wiping covers what was used. */
struct mem {
	uint8_t *base;
	size_t size, used, high; /* high: the most ever used since the last wipe */
};

void mem_init(struct mem *mem, uint8_t *base, size_t size);
void *mem_alloc(struct mem *mem, size_t size); /* 16-aligned, zero; NULL when full */
void mem_wipe(struct mem *mem);

/* Codec memory that one message of len bytes and its items need at most. */
size_t codec_mem_bound(size_t len);

enum {
	CODEC_E_BROKEN = 1, /* not a Request: this connection closes (fate one) */
};

/*
 * codec_decode() makes a request of one message. The bytes are copied into mem first if
 * they must outlive the call. A request that is protobuf but not acceptable (no or two
 * operations, too many items, unknown algorithm, kdf over its limit) comes out with
 * req->status and message set, so that conn can answer it and live.
 * default_timeout_us stands in for timeout 0. Returns 0, or CODEC_E_BROKEN.
 */
__attribute__((warn_unused_result)) int codec_decode(struct mem *mem,
    const uint8_t *message, size_t len, uint64_t now_us, uint64_t default_timeout_us,
    struct request **reqp);

/* What codec_encode() says of the daemon and of this shard and connection. */
struct codec_about {
	const char *server_version, *backend, *secret_memory;
	uint32_t lanes, shards, shard;
	uint64_t connection, uptime_s;
	uint32_t max_handles, handle_lifetime_ms;
	uint64_t default_timeout_us;
	bool export_allowed, draining;
	uint32_t batch_fill_milli, service_us;
	uint32_t pool_hybrid, pool_mlkem768, pool_x25519;
	/* Stats, SelfTest (control only) */
	const struct metrics_shard *const *metrics;
	unsigned n_metrics;
	bool selftest_passed;
	const char *selftest_step;
};

/* Where encoded bytes go: conn's output. Called with pieces in order. */
struct codec_sink {
	void (*append)(struct codec_sink *sink, const uint8_t *data, size_t len);
};

/* Bytes that codec_encode() will append: frame header and message. */
size_t codec_encoded_size(const struct request *req, const struct codec_about *about);

/* Appends the whole frame of the answer to sink. */
void codec_encode(const struct request *req, const struct codec_about *about,
    struct codec_sink *sink);

#endif
