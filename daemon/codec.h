/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h: the only door to protobuf: bytes of one message to a struct request, and a
 * finished request to bytes. Decoded messages and everything that a request needs lie in
 * codec memory (mem.h).
 */
#ifndef MLKEMD_CODEC_H
#define MLKEMD_CODEC_H

#include "mem.h"
#include "request.h"

/*
 * Codec memory of a shard: enough for one request of any legal shape, and for a turn of
 * 64 usual ones (the arithmetic is in codec.c).
 */
#define CODEC_MEM_BYTES (1280u * 1024u)

/*
 * True if a message of len bytes, staging included, is certain to find room for its
 * decoding and its answer. conn_request.c asks before it stages; if false, the message
 * waits for the next turn. Always true while mem is empty.
 */
bool codec_mem_fits(const struct mem *mem, size_t len);

enum {
	CODEC_E_BROKEN = 1, /* not a Request: this connection closes (fate one) */
};

/*
 * codec_decode() makes a request of one message, which may lie anywhere, and gives back
 * what was staged. Nothing points into the message afterwards. A request that is
 * protobuf but not acceptable (no or two operations, too many items, unknown algorithm
 * or hash) comes out with status and message set: it goes to service_handle() like any
 * other, which counts it and has it answered. arrived_us is when its last byte was read;
 * default_timeout_us stands in for timeout 0. The caller sets conn_id, control, done and
 * owner. Returns 0, or CODEC_E_BROKEN.
 */
__attribute__((warn_unused_result)) int codec_decode(struct mem *mem,
    const uint8_t *message, size_t len, uint64_t arrived_us,
    uint64_t default_timeout_us, struct request **reqp);

struct metrics_shard;

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
	const struct metrics_shard *const *metrics; /* of all shards */
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
