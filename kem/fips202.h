/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * fips202.h: SHA3-256, SHA3-512, SHAKE128 and SHAKE256 streams (FIPS 202), laid on the
 * lanes of a backend's Keccak by permutation. A lane whose stream has ended takes the
 * next one that waits before the next permutation, whatever the others are doing, so
 * streams of different rates and lengths ride side by side. A stream whose input is
 * still being made leaves its lane while it has to wait. A struct sponge belongs to
 * one call, holds secrets, and is wiped by its owner with the rest of the call's work.
 */
#ifndef MLKEMD_FIPS202_H
#define MLKEMD_FIPS202_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/backend.h"

/* Rates in words of 8 bytes, and the domain suffix with the first bit of padding. */
#define SHAKE128_WORDS 21
#define SHAKE256_WORDS 17
#define SHA3_256_WORDS 17
#define SHA3_512_WORDS 9
#define SHAKE_SUFFIX   0x1f
#define SHA3_SUFFIX    0x06

/* Blocks of a stream that its consumer may ask to see at once. */
#define STREAM_BLOCKS_MAX 3

/* Bytes squeezed of one lane, with the slack that backend.h grants the kernels. */
#define STREAM_OUT_BYTES (STREAM_BLOCKS_MAX * SHAKE128_WORDS * 8 + 72)

/* Bytes that a stream may begin with beside what lies elsewhere: less than any rate. */
#define STREAM_HEAD_MAX 64

/*
 * What a stream absorbs: the head, which is written to where it says, then the part,
 * which must live until the stream has ended. All is empty, unless it is set.
 */
struct stream {
	uint8_t *head;
	const uint8_t *part;
	size_t len; /* of the part */
	/* Bytes at its end that are still to come, or NULL. The first block is there. */
	const size_t *missing;
	void *to; /* the consumer's own */
	uint8_t head_len;
	uint8_t n_blocks; /* to be squeezed before the consumer is called first */
};

/*
 * A kind of stream: how stream number `index` begins, and what becomes of its output.
 * take() gets n_blocks blocks the first time; as long as it returns true, one more block
 * each time. *progress is its own, 0 at first.
 */
struct stream_kind {
	uint8_t rate_words;
	uint8_t suffix;
	bool is_short; /* a block or two, all in all */
	void (*start)(void *ctx, unsigned index, struct stream *stream);
	bool (*take)(
	    void *ctx, void *to, unsigned *progress, const uint8_t *bytes, size_t len);
};

/* Streams of one kind, 0 to limit - 1, started in this order. The limit may be raised. */
struct stream_job {
	const struct stream_kind *kind;
	void *ctx;
	unsigned next; /* the first that has not been started */
	unsigned limit;
	struct stream_job *behind;
};

struct lane {
	const struct stream_job *job;
	unsigned index;
	unsigned progress;
	struct stream stream;
	uint8_t n_squeezed; /* blocks that lie in out */
};

/* A stream that waits for its input without a lane, and how many of these may be. */
#define SPONGE_PARKED_MAX 2

struct parked {
	struct lane lane;
	uint64_t state[KECCAK_WORDS];
};

/* Lanes are bits in masks: most steps have something to do for a few of them only. */
struct sponge {
	_Alignas(64) uint64_t state[KECCAK_WORDS * BACKEND_LANES_MAX];
	_Alignas(64) uint8_t out[BACKEND_LANES_MAX][STREAM_OUT_BYTES];
	_Alignas(64) uint8_t block[BACKEND_LANES_MAX][SHAKE128_WORDS * 8 + 24];
	struct lane lane[BACKEND_LANES_MAX];
	unsigned busy; /* lanes that have a stream; the state of others is padding */
	unsigned absorbing; /* those of them whose input has not ended */
	unsigned gated;     /* those of them that may have to wait for it */
	unsigned n_parked;
	struct parked parked[SPONGE_PARKED_MAX];
	uint8_t *squeeze_to[BACKEND_LANES_MAX];
	uint8_t squeeze_words[BACKEND_LANES_MAX]; /* 0 while absorbing or not busy */
	struct stream_job *jobs;
	const struct backend *backend;
	unsigned long_lanes; /* those that long streams may have */
};

void sponge_init(struct sponge *sponge, const struct backend *backend);

/*
 * Before the first run: long streams get the lowest `lanes` only, short ones all. For one
 * item, whose longest stream leaves time enough for all others behind each other.
 */
void sponge_narrow(struct sponge *sponge, unsigned lanes);

/*
 * Queue a job behind all others, or before them: first is for what others wait for,
 * last for what may ride along. Streams that have a lane keep it. The job stays linked
 * as long as the sponge is used.
 */
void sponge_add_last(struct sponge *sponge, struct stream_job *job);
void sponge_add_first(struct sponge *sponge, struct stream_job *job);

/* Run until streams 0 to bound - 1 of the job have ended; others keep their lanes. */
void sponge_run(struct sponge *sponge, const struct stream_job *job, unsigned bound);

#endif
