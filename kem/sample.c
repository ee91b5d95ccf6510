/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "sample.h"

#include <string.h>

/*
 * rho and two bytes: for A[i, j] column j first, then row i (Alg. 13 line 6); for the
 * transpose the other way round (Alg. 14 line 6).
 */
static void
matrix_start(void *ctx, unsigned index, struct stream *stream)
{
	struct matrix *matrix = ctx;

	memcpy(stream->head, matrix->rho[matrix->item], 32);
	stream->head[32] = (uint8_t)(matrix->transposed ? matrix->row : matrix->col);
	stream->head[33] = (uint8_t)(matrix->transposed ? matrix->col : matrix->row);
	stream->head_len = 34;
	stream->n_blocks = 3; /* two can't be enough */
	stream->to = &matrix->ring[matrix->put];

	if (++matrix->put == matrix->ring_size)
		matrix->put = 0;
	if (++matrix->col < matrix->k)
		return;
	matrix->col = 0;
	if (++matrix->item < matrix->n)
		return;
	matrix->item = 0;
	matrix->row++;
}

/* Alg. 7 without a bound: 0.8 % want a fourth block, and 2^-105 a fifth. */
static bool
matrix_take(void *ctx, void *to, unsigned *progress, const uint8_t *bytes, size_t len)
{
	const struct matrix *matrix = ctx;
	struct poly *p = to;

	*progress = matrix->backend->rej_uniform(p->c, *progress, bytes, len);
	return *progress < MLKEM_N;
}

static const struct stream_kind matrix_kind = {
    .rate_words = SHAKE128_WORDS,
    .suffix = SHAKE_SUFFIX,
    .start = matrix_start,
    .take = matrix_take,
};

/* A multiple of k, so that a row of one item never wraps round. */
unsigned
matrix_ring_size(unsigned n, unsigned k)
{
	unsigned size = 0;

	while (size + k <= MATRIX_POLYS_MAX && size < n * k * k)
		size += k;
	return size;
}

void
matrix_init(struct matrix *matrix, const struct backend *backend, unsigned n,
    unsigned k, bool transposed, struct poly *ring)
{
	memset(matrix, 0, sizeof *matrix);
	matrix->backend = backend;
	matrix->ring = ring;
	matrix->n = n;
	matrix->k = k;
	matrix->transposed = transposed;
	matrix->ring_size = matrix_ring_size(n, k);
	matrix->total = n * k * k;
	matrix->job.kind = &matrix_kind;
	matrix->job.ctx = matrix;
	matrix->job.limit = matrix->ring_size;
}

void
matrix_wait(struct matrix *matrix, struct sponge *sponge)
{
	unsigned limit = matrix->consumed + matrix->ring_size;

	matrix->job.limit = limit < matrix->total ? limit : matrix->total;
	sponge_run(sponge, &matrix->job, matrix->consumed + matrix->n * matrix->k);
}

const struct poly *
matrix_next(struct matrix *matrix)
{
	const struct poly *row = &matrix->ring[matrix->get];

	matrix->consumed += matrix->k;
	matrix->get += matrix->k;
	if (matrix->get == matrix->ring_size)
		matrix->get = 0;
	return row;
}

static struct poly *
noise_target(const struct noise *noise, unsigned *eta)
{
	unsigned k = noise->k;

	*eta = noise->number < k ? noise->eta_first : noise->eta_second;
	if (noise->number < k)
		return &noise->first[noise->item * k + noise->number];
	if (noise->number < 2 * k)
		return &noise->second[noise->item * k + noise->number - k];
	return &noise->last[noise->item];
}

/* PRF_eta(seed, N) = SHAKE256(seed || N), 64 eta bytes (4.1): one block, or two. */
static void
noise_start(void *ctx, unsigned index, struct stream *stream)
{
	struct noise *noise = ctx;
	unsigned eta;

	stream->to = noise_target(noise, &eta);
	memcpy(stream->head, noise->seed[noise->item], 32);
	stream->head[32] = (uint8_t)noise->number;
	stream->head_len = 33;
	stream->n_blocks = eta == 3 ? 2 : 1;

	if (++noise->item == noise->n) {
		noise->item = 0;
		noise->number++;
	}
}

static bool
noise_take(void *ctx, void *to, unsigned *progress, const uint8_t *bytes, size_t len)
{
	const struct noise *noise = ctx;
	struct poly *p = to;

	if (len > SHAKE256_WORDS * 8)
		noise->backend->cbd3(p->c, bytes);
	else
		noise->backend->cbd2(p->c, bytes);
	return false;
}

static const struct stream_kind noise_kind = {
    .rate_words = SHAKE256_WORDS,
    .suffix = SHAKE_SUFFIX,
    .is_short = true,
    .start = noise_start,
    .take = noise_take,
};

void
noise_init(struct noise *noise)
{
	memset(&noise->job, 0, sizeof noise->job);
	noise->job.kind = &noise_kind;
	noise->job.ctx = noise;
	noise->job.limit = noise->n * (2 * noise->k + (noise->last != NULL ? 1 : 0));
	noise->number = 0;
	noise->item = 0;
}

void
noise_wait(struct noise *noise, struct sponge *sponge)
{
	sponge_run(sponge, &noise->job, noise->job.limit);
}
