/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The NTT in the order of FIPS 203 4.3. Products are Montgomery products with one factor
 * a constant below q / 2, so that each is below q whatever the other int16_t is.
 */
#include "generic.h"

/* 17^BitRev7(i) * R mod q, centred (FIPS 203 appendix A). */
static const int16_t zetas[128] = {-1044, -758, -359, -1517, 1493, 1422, 287, 202, -171,
    622, 1577, 182, 962, -1202, -1474, 1468, 573, -1325, 264, 383, -829, 1458, -1602,
    -130, -681, 1017, 732, 608, -1542, 411, -205, -1571, 1223, 652, -552, 1015, -1293,
    1491, -282, -1544, 516, -8, -320, -666, -1618, -1162, 126, 1469, -853, -90, -271,
    830, 107, -1421, -247, -951, -398, 961, -1508, -725, 448, -1065, 677, -1275, -1103,
    430, 555, 843, -1251, 871, 1550, 105, 422, 587, 177, -235, -291, -460, 1574, 1653,
    -246, 778, 1159, -147, -777, 1483, -602, 1119, -1590, 644, -872, 349, 418, 329,
    -156, -75, 817, 1097, 603, 610, 1322, -1285, -1465, 384, -1215, -136, 1218, -1335,
    -874, 220, -1187, -1659, -1185, -1530, -1278, 794, -1510, -854, -870, 478, -108,
    -308, 996, 991, 958, -1460, 1522, 1628};

#define INVNTT_FACTOR 1441 /* R^2 / 128 mod q */
#define R_SQUARED     1353 /* R^2 mod q */

static inline int16_t
mul(int16_t a, int16_t b)
{
	return montgomery((int32_t)a * b);
}

/* Seven layers, each adds less than q: no reduction is needed on the way. */
void
ntt_generic(int16_t *r)
{
	const int16_t *zeta = zetas + 1;

	for (unsigned len = 128; len >= 2; len >>= 1) {
		for (unsigned start = 0; start < MLKEM_N; start += 2 * len, zeta++) {
			for (unsigned j = start; j < start + len; j++) {
				int16_t t = mul(*zeta, r[j + len]);

				r[j + len] = (int16_t)(r[j] - t);
				r[j] = (int16_t)(r[j] + t);
			}
		}
	}
}

/* The factor comes first, so that all is below q from the start. */
void
invntt_generic(int16_t *r)
{
	const int16_t *zeta = zetas + 127;

	for (unsigned j = 0; j < MLKEM_N; j++)
		r[j] = mul(r[j], INVNTT_FACTOR);
	for (unsigned len = 2; len <= 128; len <<= 1) {
		for (unsigned start = 0; start < MLKEM_N; start += 2 * len, zeta--) {
			for (unsigned j = start; j < start + len; j++) {
				int16_t t = r[j];

				r[j] = barrett((int16_t)(t + r[j + len]));
				r[j + len] = mul(*zeta, (int16_t)(r[j + len] - t));
			}
		}
	}
}

/*
 * Pair 2i is taken mod X^2 - zeta, pair 2i + 1 mod X^2 + zeta (Alg. 11, 12). The cache is
 * half used.
 */
void
mulcache_generic(int16_t *cache, const int16_t *b)
{
	for (unsigned i = 0; i < MLKEM_N / 4; i++) {
		cache[2 * i] = mul(b[4 * i + 1], zetas[64 + i]);
		cache[2 * i + 1] = mul(b[4 * i + 3], (int16_t)-zetas[64 + i]);
	}
}

/*
 * A sum of 2k products of at most 4095 * 8q stays below 2^30; one reduction for all.
 * |x| <= 8 * 4095 * 8q / 2^16 + q / 2 < 2^14
 */
static inline void
basemul_pair(
    int16_t *r, const int16_t *a, const int16_t *b, const int16_t *cache, unsigned k)
{
	int32_t r0 = 0, r1 = 0;

	for (unsigned j = 0; j < k; j++) {
		const int16_t *x = a + j * MLKEM_N;
		const int16_t *y = b + j * MLKEM_N;

		r0 += x[0] * y[0] + x[1] * cache[j * MLKEM_N];
		r1 += x[0] * y[1] + x[1] * y[0];
	}
	r[0] = montgomery(r0);
	r[1] = montgomery(r1);
}

static inline void
basemul_all(int16_t *restrict r, const int16_t *restrict a, const int16_t *restrict b,
    const int16_t *restrict cache, unsigned k)
{
	for (unsigned i = 0; i < MLKEM_N / 2; i++)
		basemul_pair(r + 2 * i, a + 2 * i, b + 2 * i, cache + i, k);
}

/* Three loops over a constant k are twice as fast as one over any. */
void
basemul_generic(
    int16_t *r, const int16_t *a, const int16_t *b, const int16_t *cache, unsigned k)
{
	if (k == 2)
		basemul_all(r, a, b, cache, 2);
	else if (k == 3)
		basemul_all(r, a, b, cache, 3);
	else
		basemul_all(r, a, b, cache, 4);
}

void
tomont_generic(int16_t *r)
{
	for (unsigned j = 0; j < MLKEM_N; j++)
		r[j] = mul(r[j], R_SQUARED);
}

void
add_generic(int16_t *r, const int16_t *a)
{
	for (unsigned j = 0; j < MLKEM_N; j++)
		r[j] = (int16_t)(r[j] + a[j]);
}

void
rsub_generic(int16_t *r, const int16_t *a)
{
	for (unsigned j = 0; j < MLKEM_N; j++)
		r[j] = (int16_t)(a[j] - r[j]);
}
