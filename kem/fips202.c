/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "fips202.h"

#include <assert.h>
#include <string.h>

_Static_assert(STREAM_OUT_BYTES % 64 == 0, "lanes of out keep their alignment");
_Static_assert(2 * 168 + 192 <= STREAM_OUT_BYTES, "squeeze may write 64-byte pieces");
_Static_assert(3 * 168 + 64 <= STREAM_OUT_BYTES, "64 bytes of slack behind 3 blocks");

void
sponge_init(struct sponge *sponge, const struct backend *backend)
{
	/* The state isn't cleared: a lane is zeroed when a stream begins in it. */
	for (unsigned i = 0; i < BACKEND_LANES_MAX; i++) {
		sponge->squeeze_to[i] = sponge->out[i];
		sponge->squeeze_words[i] = 0;
	}
	sponge->busy = 0;
	sponge->absorbing = 0;
	sponge->gated = 0;
	sponge->n_parked = 0;
	sponge->jobs = NULL;
	sponge->backend = backend;
	sponge->long_lanes = (1u << backend->lanes) - 1;
}

void
sponge_narrow(struct sponge *sponge, unsigned lanes)
{
	assert(sponge->busy == 0 && lanes >= 1 && lanes <= sponge->backend->lanes);
	sponge->long_lanes = (1u << lanes) - 1;
}

void
sponge_add_last(struct sponge *sponge, struct stream_job *job)
{
	struct stream_job **link = &sponge->jobs;

	while (*link != NULL)
		link = &(*link)->behind;
	job->behind = NULL;
	*link = job;
}

void
sponge_add_first(struct sponge *sponge, struct stream_job *job)
{
	job->behind = sponge->jobs;
	sponge->jobs = job;
}

/* The number of the lowest lane of a mask, which is not 0. */
static unsigned
lowest(unsigned mask)
{
	return (unsigned)__builtin_ctz(mask);
}

static void
lane_start(struct lane *lane, struct stream_job *job, uint8_t *head)
{
	lane->job = job;
	lane->index = job->next++;
	lane->progress = 0;
	lane->n_squeezed = 0;
	lane->stream = (struct stream){.head = head};
	job->kind->start(job->ctx, lane->index, &lane->stream);
	assert(
	    lane->stream.n_blocks >= 1 && lane->stream.n_blocks <= STREAM_BLOCKS_MAX);
	assert(lane->stream.head_len <= STREAM_HEAD_MAX);
}

static unsigned
highest(unsigned mask)
{
	return 31 - (unsigned)__builtin_clz(mask);
}

/* Is the next block of a lane's input there? */
static bool
lane_ready(const struct lane *lane)
{
	const struct stream *stream = &lane->stream;
	size_t n = lane->job->kind->rate_words * 8u - stream->head_len;

	if (stream->len < n)
		n = stream->len;
	return stream->missing == NULL || n + *stream->missing <= stream->len;
}

/* Every permutation works all lanes: a stream that has to wait leaves its lane. */
static void
sponge_park(struct sponge *sponge)
{
	unsigned lanes = sponge->backend->lanes;

	for (unsigned mask = sponge->gated; mask != 0; mask &= mask - 1) {
		struct parked *parked = &sponge->parked[sponge->n_parked];
		unsigned i = lowest(mask);

		if (lane_ready(&sponge->lane[i]))
			continue;
		assert(sponge->n_parked < SPONGE_PARKED_MAX);
		parked->lane = sponge->lane[i];
		for (unsigned w = 0; w < KECCAK_WORDS; w++)
			parked->state[w] = sponge->state[w * lanes + i];
		sponge->n_parked++;
		sponge->busy &= ~(1u << i);
		sponge->absorbing &= ~(1u << i);
		sponge->gated &= ~(1u << i);
	}
}

/* Those whose input has come go on; returns the lanes that are still idle. */
static unsigned
sponge_resume(struct sponge *sponge, unsigned idle)
{
	unsigned lanes = sponge->backend->lanes, n = 0;
	unsigned upper = idle & ~sponge->long_lanes;

	idle &= sponge->long_lanes;
	for (unsigned p = 0; p < sponge->n_parked; p++) {
		const struct parked *parked = &sponge->parked[p];
		unsigned i;

		if (idle == 0 || !lane_ready(&parked->lane)) {
			sponge->parked[n++] = *parked;
			continue;
		}
		i = lowest(idle);
		sponge->lane[i] = parked->lane;
		for (unsigned w = 0; w < KECCAK_WORDS; w++)
			sponge->state[w * lanes + i] = parked->state[w];
		sponge->busy |= 1u << i;
		sponge->absorbing |= 1u << i;
		sponge->gated |= 1u << i;
		idle &= ~(1u << i);
	}
	sponge->n_parked = n;
	return idle | upper;
}

/*
 * Give idle lanes the streams that wait: short ones the upper lanes and long ones the
 * lower, so that those that are left over at last share one half, and a backend that can
 * works no more than that. Long ones may be confined to it (sponge_narrow()). Returns the lanes that got one.
 */
static unsigned
sponge_start(struct sponge *sponge)
{
	struct stream_job *job = sponge->jobs;
	unsigned idle = ((1u << sponge->backend->lanes) - 1) & ~sponge->busy;
	unsigned fresh = 0;

	if (sponge->n_parked != 0)
		idle = sponge_resume(sponge, idle);
	while (job != NULL && idle != 0) {
		unsigned from = job->kind->is_short ? idle : idle & sponge->long_lanes;
		unsigned i;

		if (job->next == job->limit || from == 0) {
			job = job->behind;
			continue;
		}
		i = job->kind->is_short ? highest(from) : lowest(from);
		lane_start(&sponge->lane[i], job, sponge->block[i]);
		if (sponge->lane[i].stream.missing != NULL)
			sponge->gated |= 1u << i;
		assert(lane_ready(&sponge->lane[i]));
		fresh |= 1u << i;
		idle &= ~(1u << i);
	}
	sponge->busy |= fresh;
	sponge->absorbing |= fresh;
	return fresh;
}

/*
 * The next block of a lane's input: where it lies if it is whole in the part, else put
 * together behind the head. Returns false if it is the last one; then it ends with the
 * suffix, and the words behind *wordsp are zero.
 */
static bool
lane_block(struct lane *lane, uint8_t *buf, const uint8_t **blockp, uint8_t *wordsp)
{
	struct stream *stream = &lane->stream;
	size_t rate = lane->job->kind->rate_words * 8u;
	size_t n = rate - stream->head_len;

	*wordsp = lane->job->kind->rate_words;
	*blockp = n < rate || stream->len < n ? buf : stream->part;
	if (stream->len < n)
		n = stream->len;
	if (n != 0) {
		if (*blockp == buf)
			memcpy(buf + stream->head_len, stream->part, n);
		stream->part += n;
		stream->len -= n;
	}
	n += stream->head_len;
	stream->head_len = 0;
	if (n == rate)
		return true;
	memset(buf + n, 0, 8); /* to the end of the word and, in the slack, beyond */
	buf[n] = lane->job->kind->suffix;
	*wordsp = (uint8_t)(n / 8 + 1);
	return false;
}

/* Xor in one block of each lane that has input. */
static void
sponge_absorb(struct sponge *sponge, unsigned fresh)
{
	const uint8_t *block[BACKEND_LANES_MAX];
	uint8_t words[BACKEND_LANES_MAX] = {0};
	uint8_t end[BACKEND_LANES_MAX] = {0};

	for (unsigned i = 0; i < BACKEND_LANES_MAX; i++)
		block[i] = sponge->block[i];
	for (unsigned mask = sponge->absorbing; mask != 0; mask &= mask - 1) {
		unsigned i = lowest(mask);
		struct lane *lane = &sponge->lane[i];

		if (lane_block(lane, sponge->block[i], &block[i], &words[i]))
			continue;
		end[i] = lane->job->kind->rate_words;
		sponge->absorbing &= ~(1u << i);
		sponge->gated &= ~(1u << i);
		sponge->squeeze_to[i] = sponge->out[i];
		sponge->squeeze_words[i] = end[i];
	}
	sponge->backend->absorb(sponge->state, block, words, end, fresh);
}

/* Hand what was squeezed to its consumer; a lane whose stream has ended is idle. */
static void
sponge_take(struct sponge *sponge, unsigned i)
{
	struct lane *lane = &sponge->lane[i];
	const struct stream_job *job = lane->job;
	size_t block = sponge->squeeze_words[i] * 8u;
	size_t len = ++lane->n_squeezed * block;

	if (lane->n_squeezed < lane->stream.n_blocks) {
		sponge->squeeze_to[i] += block;
		return;
	}
	sponge->squeeze_to[i] = sponge->out[i];
	lane->stream.n_blocks = 1;
	lane->n_squeezed = 0;
	if (job->kind->take(
		job->ctx, lane->stream.to, &lane->progress, sponge->out[i], len))
		return;
	sponge->squeeze_words[i] = 0;
	sponge->busy &= ~(1u << i);
}

static bool
sponge_done(const struct sponge *sponge, const struct stream_job *job, unsigned bound)
{
	if (job->next < bound)
		return false;
	for (unsigned mask = sponge->busy; mask != 0; mask &= mask - 1) {
		const struct lane *lane = &sponge->lane[lowest(mask)];

		if (lane->job == job && lane->index < bound)
			return false;
	}
	for (unsigned p = 0; p < sponge->n_parked; p++) {
		const struct lane *lane = &sponge->parked[p].lane;

		if (lane->job == job && lane->index < bound)
			return false;
	}
	return true;
}

void
sponge_run(struct sponge *sponge, const struct stream_job *job, unsigned bound)
{
	assert(bound <= job->limit);
	while (!sponge_done(sponge, job, bound)) {
		unsigned fresh, squeezed;

		if (sponge->gated != 0)
			sponge_park(sponge);
		fresh = sponge_start(sponge);
		assert(sponge->busy != 0);
		if (sponge->absorbing != 0)
			sponge_absorb(sponge, fresh);
		sponge->backend->keccak(sponge->state, sponge->busy);
		squeezed = sponge->busy & ~sponge->absorbing;
		if (squeezed == 0)
			continue;
		sponge->backend->squeeze(
		    sponge->state, sponge->squeeze_to, sponge->squeeze_words);
		for (; squeezed != 0; squeezed &= squeezed - 1)
			sponge_take(sponge, lowest(squeezed));
	}
}
