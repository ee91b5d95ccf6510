/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The NTT (FIPS 203 4.3). Layers are named by the distance of what they pair: 128 to 16
 * are whole registers. For 8, 4 and 2 two neighbours A and B, 32 coefficients, are
 * rearranged before each layer so that one of them holds the first halves of all blocks
 * and the other one the second halves; after the last layer they are put in order again.
 */
#include "../../fault.h"
#include "avx2.h"

/* zetas[i] = 17^BitRev7(i) * R mod q, centred (FIPS 203 appendix A), from i = 1. */
static const int16_t zetas[16] = {-1044, -758, -359, -1517, 1493, 1422, 287, 202, -171,
    622, 1577, 182, 962, -1202, -1474, 1468};

/* From i = 16, 32 and 64: one line for each pair of registers, a zeta for each block. */
#define ZETAS_8(M)                                                         \
 M(573, -1325), M(264, 383), M(-829, 1458), M(-1602, -130), M(-681, 1017), \
     M(732, 608), M(-1542, 411), M(-205, -1571)
#define ZETAS_4(M)                                                                   \
 M(1223, 652, -552, 1015), M(-1293, 1491, -282, -1544), M(516, -8, -320, -666),      \
     M(-1618, -1162, 126, 1469), M(-853, -90, -271, 830), M(107, -1421, -247, -951), \
     M(-398, 961, -1508, -725), M(448, -1065, 677, -1275)
#define ZETAS_2(M)                                         \
 M(-1103, 430, 555, 843, -1251, 871, 1550, 105),           \
     M(422, 587, 177, -235, -291, -460, 1574, 1653),       \
     M(-246, 778, 1159, -147, -777, 1483, -602, 1119),     \
     M(-1590, 644, -872, 349, 418, 329, -156, -75),        \
     M(817, 1097, 603, 610, 1322, -1285, -1465, 384),      \
     M(-1215, -136, 1218, -1335, -874, 220, -1187, -1659), \
     M(-1185, -1530, -1278, 794, -1510, -854, -870, 478),  \
     M(-108, -308, 996, 991, 958, -1460, 1522, 1628)

/* A constant for each word, and what montgomery_mul() wants beside it. */
struct factor {
	_Alignas(32) int16_t z[PER_REG], z_q[PER_REG];
};
#define IN_Q(z) ((int16_t)(uint16_t)((z)*Q_INVERSE))

#define TWICE(z)           (z), (z)
#define TIMES4(z)          TWICE(z), TWICE(z)
#define TIMES8(z)          TIMES4(z), TIMES4(z)
#define LINE_8(a, b)       TIMES8(a), TIMES8(b)
#define LINE_4(a, b, c, d) TIMES4(a), TIMES4(b), TIMES4(c), TIMES4(d)
#define LINE_2(a, b, c, d, e, f, g, h) \
 TWICE(a), TWICE(b), TWICE(c), TWICE(d), TWICE(e), TWICE(f), TWICE(g), TWICE(h)

#define FORWARD_8(a, b)     \
 {                          \
  {LINE_8(a, b)},           \
  {                         \
   LINE_8(IN_Q(a), IN_Q(b)) \
  }                         \
 }
#define FORWARD_4(a, b, c, d)                 \
 {                                            \
  {LINE_4(a, b, c, d)},                       \
  {                                           \
   LINE_4(IN_Q(a), IN_Q(b), IN_Q(c), IN_Q(d)) \
  }                                           \
 }
#define FORWARD_2(a, b, c, d, e, f, g, h)                                         \
 {                                                                                \
  {LINE_2(a, b, c, d, e, f, g, h)},                                               \
  {                                                                               \
   LINE_2(IN_Q(a), IN_Q(b), IN_Q(c), IN_Q(d), IN_Q(e), IN_Q(f), IN_Q(g), IN_Q(h)) \
  }                                                                               \
 }

/* The inverse takes zetas[127], zetas[126] ...: lines and blocks from behind. */
#define BACKWARD_8(a, b)                   FORWARD_8(b, a)
#define BACKWARD_4(a, b, c, d)             FORWARD_4(d, c, b, a)
#define BACKWARD_2(a, b, c, d, e, f, g, h) FORWARD_2(h, g, f, e, d, c, b, a)

/*
 * gamma of 16 pairs: those of register 2i in the odd words, those of 2i + 1 in the even
 * ones. Pair 2j is taken mod X^2 - zeta, pair 2j + 1 mod X^2 + zeta (Alg. 11, 12).
 */
#define SIGNED(z, y)      (z), (y), -(z), -(y)
#define IN_Q_SIGNED(z, y) IN_Q(z), IN_Q(y), IN_Q(-(z)), IN_Q(-(y))
#define GAMMA(a, b, c, d, e, f, g, h)                                         \
 {                                                                            \
  {SIGNED(e, a), SIGNED(f, b), SIGNED(g, c), SIGNED(h, d)},                   \
  {                                                                           \
   IN_Q_SIGNED(e, a), IN_Q_SIGNED(f, b), IN_Q_SIGNED(g, c), IN_Q_SIGNED(h, d) \
  }                                                                           \
 }

#define N_PAIRS (N_REGS / 2)
#define GROUP   4
static const struct factor forward_8[N_PAIRS] = {ZETAS_8(FORWARD_8)};
static const struct factor forward_4[N_PAIRS] = {ZETAS_4(FORWARD_4)};
static const struct factor forward_2[N_PAIRS] = {ZETAS_2(FORWARD_2)};
static const struct factor backward_8[N_PAIRS] = {ZETAS_8(BACKWARD_8)};
static const struct factor backward_4[N_PAIRS] = {ZETAS_4(BACKWARD_4)};
static const struct factor backward_2[N_PAIRS] = {ZETAS_2(BACKWARD_2)};
static const struct factor gammas[N_PAIRS] = {ZETAS_2(GAMMA)};

#define INVNTT_FACTOR 1441 /* R^2 / 128 mod q */
#define R_SQUARED     1353 /* R^2 mod q */

static always_inline __m256i
add(__m256i a, __m256i b)
{
	return _mm256_add_epi16(a, b);
}

static always_inline __m256i
sub(__m256i a, __m256i b)
{
	return _mm256_sub_epi16(a, b);
}

/*
 * a b R^-1 mod q, b a constant and b_q = b q^-1 mod 2^16. The low halves of a b and of
 * (a b_q mod 2^16) q are the same, so that the difference of the high halves is exact.
 * in: any a, |b| < q / 2; out: |x| <= q / 2 + |a| 0.0254 + 1 < q
 */
static always_inline __m256i
montgomery_mul(__m256i a, __m256i b, __m256i b_q)
{
	__m256i t = _mm256_mullo_epi16(a, b_q);

	t = _mm256_mulhi_epi16(t, _mm256_set1_epi16(MLKEM_Q));
	return sub(_mm256_mulhi_epi16(a, b), t);
}

static always_inline __m256i
mul_by(__m256i a, int16_t z)
{
	return montgomery_mul(a, _mm256_set1_epi16(z), _mm256_set1_epi16(IN_Q(z)));
}

static always_inline __m256i
mul(__m256i a, const struct factor *factor)
{
	return montgomery_mul(a, _mm256_load_si256((const void *)factor->z),
	    _mm256_load_si256((const void *)factor->z_q));
}

/*
 * x - round(x 10 / 2^15) q: 10 / 2^15 is 1.6 % above 1 / q, so that the quotient is off
 * by at most 1/2 + |x / q| 0.016. in: any, out: |x| < 0.66 q, of |x| < 5.8 q: < 0.6 q
 */
static always_inline __m256i
reduce(__m256i x)
{
	__m256i t = _mm256_mulhrs_epi16(x, _mm256_set1_epi16(10));

	return sub(x, _mm256_mullo_epi16(t, _mm256_set1_epi16(MLKEM_Q)));
}

/* Cooley and Tukey: lo + z hi, lo - z hi; a bound grows by q. */
static always_inline void
butterfly_sum(__m256i *lo, __m256i *hi, __m256i z_hi)
{
	*hi = sub(*lo, z_hi);
	*lo = add(*lo, z_hi);
}

/* Gentleman and Sande, but for the factor: lo + hi, hi - lo; a bound doubles. */
static always_inline void
butterfly_diff(__m256i *lo, __m256i *hi)
{
	__m256i diff = sub(*hi, *lo);

	*lo = add(*lo, *hi);
	*hi = diff;
}

/*
 * From the first and second halves of blocks of twice the size to those of blocks of
 * this size: of A and B themselves for 8. Each undoes itself.
 */
static always_inline void
halves_8(__m256i *a, __m256i *b)
{
	__m256i lo = _mm256_permute2x128_si256(*a, *b, 0x20);

	*b = _mm256_permute2x128_si256(*a, *b, 0x31);
	*a = lo;
}

static always_inline void
halves_4(__m256i *a, __m256i *b)
{
	__m256i lo = _mm256_unpacklo_epi64(*a, *b);

	*b = _mm256_unpackhi_epi64(*a, *b);
	*a = lo;
}

static always_inline void
halves_2(__m256i *a, __m256i *b)
{
	__m256i lo = _mm256_blend_epi32(*a, _mm256_slli_epi64(*b, 32), 0xaa);

	*b = _mm256_blend_epi32(_mm256_srli_epi64(*a, 32), *b, 0xaa);
	*a = lo;
}

/* halves_4 and halves_2 undone at once: pairs of coefficients in turn. */
static always_inline void
whole_4(__m256i *a, __m256i *b)
{
	__m256i lo = _mm256_unpacklo_epi32(*a, *b);

	*b = _mm256_unpackhi_epi32(*a, *b);
	*a = lo;
}

/* Layers 128, 64 and 32 of registers 0, 2 ... or 1, 3 ..., which are x[0], x[1] ... */
static always_inline void
forward_strided(__m256i x[8], const int16_t *zeta)
{
	for (unsigned log = 3; log-- > 0;) {
		const unsigned dist = 1u << log;

		for (unsigned i = 0; i < 8; i++) {
			if (i & dist)
				continue;
			butterfly_sum(&x[i], &x[i + dist],
			    mul_by(x[i + dist], zeta[(4 >> log) + (i / 2 >> log)]));
		}
	}
}

/*
 * Layers 16 to 2 of a group of pairs of registers: a[j] is register 2 (first + j), b[j]
 * the next. Pairs don't meet, but side by side they hide how long a product takes.
 */
static always_inline void
forward_pairs(__m256i a[GROUP], __m256i b[GROUP], unsigned first)
{
	for (unsigned j = 0; j < GROUP; j++) {
		butterfly_sum(&a[j], &b[j], mul_by(b[j], zetas[8 + first + j]));
		halves_8(&a[j], &b[j]);
	}
	for (unsigned j = 0; j < GROUP; j++) {
		butterfly_sum(&a[j], &b[j], mul(b[j], &forward_8[first + j]));
		halves_4(&a[j], &b[j]);
	}
	for (unsigned j = 0; j < GROUP; j++) {
		butterfly_sum(&a[j], &b[j], mul(b[j], &forward_4[first + j]));
		halves_2(&a[j], &b[j]);
	}
	for (unsigned j = 0; j < GROUP; j++) {
		butterfly_sum(&a[j], &b[j], mul(b[j], &forward_2[first + j]));
		whole_4(&a[j], &b[j]);
		halves_8(&a[j], &b[j]);
	}
}

/* Seven layers, each adds less than q: no reduction is needed on the way. */
void
ntt_avx2(int16_t *r)
{
	const int16_t *zeta = zetas + (fault("avx2-wrong-zeta") ? 1 : 0);

	for (unsigned odd = 0; odd < 2; odd++) {
		__m256i x[8];

		for (unsigned i = 0; i < 8; i++)
			x[i] = poly_load(r, 2 * i + odd);
		forward_strided(x, zeta);
		for (unsigned i = 0; i < 8; i++)
			poly_store(r, 2 * i + odd, x[i]);
	}
	for (unsigned first = 0; first < N_PAIRS; first += GROUP) {
		__m256i a[GROUP], b[GROUP];

		for (unsigned j = 0; j < GROUP; j++) {
			a[j] = poly_load(r, 2 * (first + j));
			b[j] = poly_load(r, 2 * (first + j) + 1);
		}
		forward_pairs(a, b, first);
		for (unsigned j = 0; j < GROUP; j++) {
			poly_store(r, 2 * (first + j), a[j]);
			poly_store(r, 2 * (first + j) + 1, b[j]);
		}
	}
}

/*
 * Layers 2 to 16. The factor comes first: from any int16_t to 0.72 q; the sums of three
 * layers are below 5.8 q. out: |x| < 1.3 q
 */
static always_inline void
backward_pairs(__m256i a[GROUP], __m256i b[GROUP], unsigned first)
{
	const unsigned mirror = N_PAIRS - 1 - first;

	for (unsigned j = 0; j < GROUP; j++) {
		a[j] = mul_by(a[j], INVNTT_FACTOR);
		b[j] = mul_by(b[j], INVNTT_FACTOR);
		halves_8(&a[j], &b[j]);
		halves_4(&a[j], &b[j]);
		halves_2(&a[j], &b[j]);
	}
	for (unsigned j = 0; j < GROUP; j++) {
		butterfly_diff(&a[j], &b[j]);
		b[j] = mul(b[j], &backward_2[mirror - j]);
		halves_2(&a[j], &b[j]);
	}
	for (unsigned j = 0; j < GROUP; j++) {
		butterfly_diff(&a[j], &b[j]);
		b[j] = mul(b[j], &backward_4[mirror - j]);
		halves_4(&a[j], &b[j]);
	}
	for (unsigned j = 0; j < GROUP; j++) {
		butterfly_diff(&a[j], &b[j]);
		a[j] = reduce(a[j]);
		b[j] = mul(b[j], &backward_8[mirror - j]);
		halves_8(&a[j], &b[j]);
	}
	for (unsigned j = 0; j < GROUP; j++) {
		butterfly_diff(&a[j], &b[j]);
		b[j] = mul_by(b[j], zetas[15 - first - j]);
	}
}

/*
 * Layers 32, 64 and 128. in: |x| < 1.3 q; the sums of two layers are below 5.2 q and are
 * reduced where the third one would double that. out: |x| < 2.6 q
 */
static always_inline void
backward_strided(__m256i x[8])
{
	for (unsigned log = 0; log < 3; log++) {
		const unsigned dist = 1u << log;

		for (unsigned i = 0; i < 8; i++) {
			if (i & dist)
				continue;
			butterfly_diff(&x[i], &x[i + dist]);
			x[i + dist] =
			    mul_by(x[i + dist], zetas[(8 >> log) - 1 - (i / 2 >> log)]);
		}
		if (dist == 2) {
			x[0] = reduce(x[0]);
			x[4] = reduce(x[4]);
		}
	}
}

void
invntt_avx2(int16_t *r)
{
	for (unsigned first = 0; first < N_PAIRS; first += GROUP) {
		__m256i a[GROUP], b[GROUP];

		for (unsigned j = 0; j < GROUP; j++) {
			a[j] = poly_load(r, 2 * (first + j));
			b[j] = poly_load(r, 2 * (first + j) + 1);
		}
		backward_pairs(a, b, first);
		for (unsigned j = 0; j < GROUP; j++) {
			poly_store(r, 2 * (first + j), a[j]);
			poly_store(r, 2 * (first + j) + 1, b[j]);
		}
	}
	for (unsigned odd = 0; odd < 2; odd++) {
		__m256i x[8];

		for (unsigned i = 0; i < 8; i++)
			x[i] = poly_load(r, 2 * i + odd);
		backward_strided(x);
		for (unsigned i = 0; i < 8; i++)
			poly_store(r, 2 * i + odd, x[i]);
	}
}

/* The pairs (b0, b1 gamma), which is what basemul() wants beside (b0, b1). */
void
mulcache_avx2(int16_t *cache, const int16_t *b)
{
	for (unsigned i = 0; i < N_PAIRS; i++) {
		__m256i even = poly_load(b, 2 * i), odd = poly_load(b, 2 * i + 1);
		__m256i x = _mm256_blend_epi16(_mm256_srli_epi32(odd, 16), even, 0xaa);

		x = mul(x, &gammas[i]);
		poly_store(cache, 2 * i, _mm256_blend_epi16(even, x, 0xaa));
		poly_store(cache, 2 * i + 1,
		    _mm256_blend_epi16(odd, _mm256_slli_epi32(x, 16), 0xaa));
	}
}

/*
 * R^-1 times the dwords of r0 and of r1, in the even and in the odd words. Low halves of
 * both are taken together, and high halves. in: |x| < 2^30; out: |x| < 2^14 + q / 2
 */
static always_inline __m256i
montgomery_pairs(__m256i r0, __m256i r1)
{
	__m256i lo = _mm256_blend_epi16(r0, _mm256_slli_epi32(r1, 16), 0xaa);
	__m256i hi = _mm256_blend_epi16(_mm256_srli_epi32(r0, 16), r1, 0xaa);

	lo = _mm256_mullo_epi16(lo, _mm256_set1_epi16(Q_INVERSE));
	lo = _mm256_mulhi_epi16(lo, _mm256_set1_epi16(MLKEM_Q));
	return sub(hi, lo);
}

/*
 * a0 b0 + a1 (b1 gamma) and a0 b1 + a1 b0 are one multiplication each. The sums of 2k
 * products of 4095 and at most 8q - 1 stay below 13313 * 2^16, and one reduction does for
 * all. out: |x| < 13313 + q / 2 < 2^14
 */
static always_inline void
basemul_all(
    int16_t *r, const int16_t *a, const int16_t *b, const int16_t *cache, unsigned k)
{
	const __m256i swap = _mm256_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14,
	    15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);

	for (unsigned i = 0; i < N_REGS; i++) {
		__m256i r0 = _mm256_setzero_si256(), r1 = r0;

		for (unsigned j = 0; j < k; j++) {
			__m256i x = poly_load(a, j * N_REGS + i);
			__m256i y = poly_load(b, j * N_REGS + i);
			__m256i z = poly_load(cache, j * N_REGS + i);

			y = _mm256_shuffle_epi8(y, swap);
			r0 = _mm256_add_epi32(r0, _mm256_madd_epi16(x, z));
			r1 = _mm256_add_epi32(r1, _mm256_madd_epi16(x, y));
		}
		poly_store(r, i, montgomery_pairs(r0, r1));
	}
}

void
basemul_avx2(
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
tomont_avx2(int16_t *r)
{
	for (unsigned i = 0; i < N_REGS; i++)
		poly_store(r, i, mul_by(poly_load(r, i), R_SQUARED));
}

void
add_avx2(int16_t *r, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++)
		poly_store(r, i, add(poly_load(r, i), poly_load(a, i)));
}

void
rsub_avx2(int16_t *r, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++)
		poly_store(r, i, sub(poly_load(a, i), poly_load(r, i)));
}
