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
	memset(sponge->lane, 0, sizeof sponge->lane);
	sponge->jobs = NULL;
	sponge->backend = backend;
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

static bool
lane_start(struct lane *lane, struct stream_job *jobs)
{
	while (jobs != NULL && jobs->next == jobs->limit)
		jobs = jobs->behind;
	if (jobs == NULL)
		return false;
	memset(lane, 0, sizeof *lane);
	lane->job = jobs;
	lane->index = jobs->next++;
	jobs->kind->start(jobs->ctx, lane->index, &lane->stream);
	assert(
	    lane->stream.n_blocks >= 1 && lane->stream.n_blocks <= STREAM_BLOCKS_MAX);
	return true;
}

/* Move up to len bytes of the parts that are left to buf. Returns how many. */
static size_t
stream_gather(struct lane *lane, uint8_t *buf, size_t len)
{
	struct stream *stream = &lane->stream;
	size_t n = 0;

	for (; lane->at < 2; lane->at++) {
		const uint8_t *part = stream->part[lane->at];
		size_t m = stream->len[lane->at];

		if (m > len - n)
			m = len - n;
		if (m != 0)
			memcpy(buf + n, part, m);
		n += m;
		stream->part[lane->at] = m != 0 ? part + m : part;
		stream->len[lane->at] -= m;
		if (stream->len[lane->at] != 0)
			return n;
	}
	while (n < len && stream->tail_len != 0) {
		buf[n++] = stream->tail[0];
		stream->tail[0] = stream->tail[1];
		stream->tail_len--;
	}
	return n;
}

/*
 * The next block of a lane's input: where it lies if it is whole in one part, else
 * gathered and, if it is the last one, padded in buf.
 */
static const uint8_t *
lane_block(struct lane *lane, uint8_t *buf)
{
	struct stream *stream = &lane->stream;
	size_t rate = lane->job->kind->rate_words * 8;
	size_t n;

	if (lane->at < 2 && stream->len[lane->at] >= rate) {
		const uint8_t *block = stream->part[lane->at];

		stream->part[lane->at] += rate;
		stream->len[lane->at] -= rate;
		return block;
	}
	n = stream_gather(lane, buf, rate);
	if (n < rate) {
		memset(buf + n, 0, rate - n);
		buf[n] = lane->job->kind->suffix;
		buf[rate - 1] |= 0x80;
		lane->absorbed = true;
	}
	return buf;
}

/*
 * Give idle lanes the streams that wait, and xor in one block of each that has input.
 * Returns which lanes are in use.
 */
static unsigned
sponge_absorb(struct sponge *sponge)
{
	const uint8_t *block[BACKEND_LANES_MAX];
	uint8_t words[BACKEND_LANES_MAX] = {0};
	unsigned active = 0, fresh = 0, n = 0;

	for (unsigned i = 0; i < sponge->backend->lanes; i++) {
		struct lane *lane = &sponge->lane[i];

		block[i] = sponge->block[i];
		if (lane->job == NULL && lane_start(lane, sponge->jobs))
			fresh |= 1u << i;
		if (lane->job == NULL)
			continue;
		active |= 1u << i;
		if (lane->absorbed)
			continue;
		block[i] = lane_block(lane, sponge->block[i]);
		words[i] = lane->job->kind->rate_words;
		n++;
	}
	if (n != 0)
		sponge->backend->absorb(sponge->state, block, words, fresh);
	return active;
}

/* Take one block out of each lane that has absorbed its input. Returns which have. */
static unsigned
sponge_squeeze(struct sponge *sponge)
{
	uint8_t *out[BACKEND_LANES_MAX];
	uint8_t words[BACKEND_LANES_MAX] = {0};
	unsigned squeezed = 0;

	for (unsigned i = 0; i < sponge->backend->lanes; i++) {
		struct lane *lane = &sponge->lane[i];

		out[i] = sponge->out[i];
		if (lane->job == NULL || !lane->absorbed)
			continue;
		words[i] = lane->job->kind->rate_words;
		out[i] += lane->n_squeezed * words[i] * 8;
		lane->n_squeezed++;
		squeezed |= 1u << i;
	}
	if (squeezed != 0)
		sponge->backend->squeeze(sponge->state, out, words);
	return squeezed;
}

/* Hand what was squeezed to its consumer; a lane whose stream has ended is idle. */
static void
lane_take(struct lane *lane, const uint8_t *out)
{
	const struct stream_job *job = lane->job;
	size_t len = lane->n_squeezed * job->kind->rate_words * 8;

	if (lane->n_squeezed < lane->stream.n_blocks)
		return;
	if (!job->kind->take(job->ctx, lane->stream.to, &lane->progress, out, len)) {
		lane->job = NULL;
		return;
	}
	lane->stream.n_blocks = 1;
	lane->n_squeezed = 0;
}

static bool
sponge_done(const struct sponge *sponge, const struct stream_job *job, unsigned bound)
{
	if (job->next < bound)
		return false;
	for (unsigned i = 0; i < sponge->backend->lanes; i++) {
		if (sponge->lane[i].job == job && sponge->lane[i].index < bound)
			return false;
	}
	return true;
}

void
sponge_run(struct sponge *sponge, const struct stream_job *job, unsigned bound)
{
	assert(bound <= job->limit);
	while (!sponge_done(sponge, job, bound)) {
		unsigned active, squeezed;

		active = sponge_absorb(sponge);
		sponge->backend->keccak(sponge->state, active);
		squeezed = sponge_squeeze(sponge);
		for (unsigned i = 0; squeezed != 0; i++, squeezed >>= 1) {
			if (squeezed & 1)
				lane_take(&sponge->lane[i], sponge->out[i]);
		}
	}
}
