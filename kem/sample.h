/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * sample.h: the matrix and the noise of a group of items (FIPS 203 Alg. 7, 8 and lines
 * of 13, 14), as jobs of a sponge. Both belong to the call's work.
 */
#ifndef MLKEMD_SAMPLE_H
#define MLKEMD_SAMPLE_H

#include "fips202.h"
#include "poly.h"

#define SAMPLE_ITEMS_MAX 8
#define SAMPLE_K_MAX     4

/* One row of the largest group. */
#define MATRIX_POLYS_MAX (SAMPLE_ITEMS_MAX * SAMPLE_K_MAX)

/*
 * The matrices of n items, row by row: row 0 of each item, row 1 of each item ... They
 * lie in a ring, and as long as there is room in it streams of later rows take the lanes
 * that the last streams of a row leave empty.
 */
struct matrix {
	struct stream_job job;
	const struct backend *backend;
	const uint8_t *rho[SAMPLE_ITEMS_MAX]; /* 32 bytes each */
	struct poly *ring;
	unsigned n, k;
	bool transposed;
	unsigned ring_size, total;    /* in polynomials */
	unsigned row, item, col, put; /* of the next stream */
	unsigned get, consumed;
};

/* How many polynomials the ring takes. */
unsigned matrix_ring_size(unsigned n, unsigned k);

/* The caller sets rho before the sponge runs. */
void matrix_init(struct matrix *matrix, const struct backend *backend, unsigned n,
    unsigned k, bool transposed, struct poly *ring);

/*
 * matrix_wait() runs the sponge until the next row is there for all items (and gives
 * back the room of those before it); then n calls of matrix_next() give the k
 * polynomials of item 0, 1 ..., valid until the next matrix_wait(). out: [0, q)
 */
void matrix_wait(struct matrix *matrix, struct sponge *sponge);
const struct poly *matrix_next(struct matrix *matrix);

/*
 * Noise polynomials CBD(PRF(seed, N)) of n items. N = 0 to k - 1 go to first, with eta1;
 * N = k to 2k - 1 to second, with eta1 or 2; N = 2k, if asked for, to last, with 2.
 */
struct noise {
	struct stream_job job;
	const struct backend *backend;
	const uint8_t *seed[SAMPLE_ITEMS_MAX]; /* 32 bytes each */
	struct poly *first, *second; /* polynomial j of item i at [i * k + j] */
	struct poly *last;           /* of item i at [i], or NULL */
	unsigned n, k;
	unsigned eta_first, eta_second;
	unsigned number, item; /* of the next stream */
};

/* Sets up the job; the other fields above the line `number` are set by the caller. */
void noise_init(struct noise *noise);
void noise_wait(struct noise *noise, struct sponge *sponge);

#endif
