/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The NTT (FIPS 203 4.3) of a polynomial that stays in eight registers. Layers are named
 * by the distance of what they pair: 128, 64 and 32 are whole registers. For 16 to 2 two
 * neighbours A and B, 64 coefficients, are rearranged before each layer so that one of
 * them holds the first halves of all blocks and the other one the second halves; after
 * the last layer one permutation a register brings them back into order.
 */
#include "../../fault.h"
#include "avx512.h"

/* zetas[i] = 17^BitRev7(i) * R mod q, centred (FIPS 203 appendix A), from i = 1. */
#define ZETA_128 (-758)
static const int16_t zetas_64[2] = {-359, -1517};
static const int16_t zetas_32[4] = {1493, 1422, 287, 202};

/* One line for each pair of registers, each with a zeta for each block. */
#define ZETAS_16(M) M(-171, 622), M(1577, 182), M(962, -1202), M(-1474, 1468)
#define ZETAS_8(M)                                                             \
 M(573, -1325, 264, 383), M(-829, 1458, -1602, -130), M(-681, 1017, 732, 608), \
     M(-1542, 411, -205, -1571)
#define ZETAS_4(M)                                    \
 M(1223, 652, -552, 1015, -1293, 1491, -282, -1544),  \
     M(516, -8, -320, -666, -1618, -1162, 126, 1469), \
     M(-853, -90, -271, 830, 107, -1421, -247, -951), \
     M(-398, 961, -1508, -725, 448, -1065, 677, -1275)
#define ZETAS_2(M)                                                                     \
 M(-1103, 430, 555, 843, -1251, 871, 1550, 105, 422, 587, 177, -235, -291, -460, 1574, \
     1653),                                                                            \
     M(-246, 778, 1159, -147, -777, 1483, -602, 1119, -1590, 644, -872, 349, 418, 329, \
	 -156, -75),                                                                   \
     M(817, 1097, 603, 610, 1322, -1285, -1465, 384, -1215, -136, 1218, -1335, -874,   \
	 220, -1187, -1659),                                                           \
     M(-1185, -1530, -1278, 794, -1510, -854, -870, 478, -108, -308, 996, 991, 958,    \
	 -1460, 1522, 1628)

#define TIMES2(z)  (z), (z)
#define TIMES4(z)  TIMES2(z), TIMES2(z)
#define TIMES8(z)  TIMES4(z), TIMES4(z)
#define TIMES16(z) TIMES8(z), TIMES8(z)

/* A constant and what montgomery_mul() wants beside it. */
struct factor {
	_Alignas(64) int16_t z[PER_REG], z_q[PER_REG];
};
#define TIMES_Q_INVERSE(z) ((int16_t)(uint16_t)((z)*Q_INVERSE))
#define BOTH(LAYOUT, ...)               \
 {                                      \
  {LAYOUT(AS_IS, __VA_ARGS__)},         \
  {                                     \
   LAYOUT(TIMES_Q_INVERSE, __VA_ARGS__) \
  }                                     \
 }
#define AS_IS(z) (z)

/*
 * Where the blocks of a pair of registers lie after halves_16(), then halves_8() ...:
 * those of A and B one behind the other, then by quarters, 0 2 1 3, from there on.
 */
#define LAYOUT_16(F, a, b)      TIMES16(F(a)), TIMES16(F(b))
#define LAYOUT_8(F, a, b, c, d) TIMES8(F(a)), TIMES8(F(c)), TIMES8(F(b)), TIMES8(F(d))
#define LAYOUT_4(F, a, b, c, d, e, f, g, h)                                          \
 TIMES4(F(a)), TIMES4(F(b)), TIMES4(F(e)), TIMES4(F(f)), TIMES4(F(c)), TIMES4(F(d)), \
     TIMES4(F(g)), TIMES4(F(h))
#define LAYOUT_2(F, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                  \
 TIMES2(F(a)), TIMES2(F(b)), TIMES2(F(c)), TIMES2(F(d)), TIMES2(F(i)), TIMES2(F(j)), \
     TIMES2(F(k)), TIMES2(F(l)), TIMES2(F(e)), TIMES2(F(f)), TIMES2(F(g)),           \
     TIMES2(F(h)), TIMES2(F(m)), TIMES2(F(n)), TIMES2(F(o)), TIMES2(F(p))

#define FORWARD_16(...) BOTH(LAYOUT_16, __VA_ARGS__)
#define FORWARD_8(...)  BOTH(LAYOUT_8, __VA_ARGS__)
#define FORWARD_4(...)  BOTH(LAYOUT_4, __VA_ARGS__)
#define FORWARD_2(...)  BOTH(LAYOUT_2, __VA_ARGS__)

/* The inverse takes them from the last to the first (Alg. 10), pairs too. */
#define BACKWARD_16(a, b)                  FORWARD_16(b, a)
#define BACKWARD_8(a, b, c, d)             FORWARD_8(d, c, b, a)
#define BACKWARD_4(a, b, c, d, e, f, g, h) FORWARD_4(h, g, f, e, d, c, b, a)
#define BACKWARD_2(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) \
 FORWARD_2(p, o, n, m, l, k, j, i, h, g, f, e, d, c, b, a)

static const struct factor forward_16[4] = {ZETAS_16(FORWARD_16)};
static const struct factor forward_8[4] = {ZETAS_8(FORWARD_8)};
static const struct factor forward_4[4] = {ZETAS_4(FORWARD_4)};
static const struct factor forward_2[4] = {ZETAS_2(FORWARD_2)};
static const struct factor backward_16[4] = {ZETAS_16(BACKWARD_16)};
static const struct factor backward_8[4] = {ZETAS_8(BACKWARD_8)};
static const struct factor backward_4[4] = {ZETAS_4(BACKWARD_4)};
static const struct factor backward_2[4] = {ZETAS_2(BACKWARD_2)};

#define INVNTT_FACTOR 1441 /* R^2 / 128 mod q */
#define LAST_FACTOR   1397 /* ZETA_128 * INVNTT_FACTOR / R mod q */
#define R_SQUARED     1353 /* R^2 mod q */

/* montgomery_mul() by one constant. */
static always_inline __m512i
mul_by(__m512i x, int16_t z)
{
	return montgomery_mul(x, _mm512_set1_epi16(z),
	    _mm512_set1_epi16((int16_t)(uint16_t)(z * Q_INVERSE)));
}

static always_inline __m512i
mul(__m512i x, const struct factor *factor)
{
	return montgomery_mul(
	    x, _mm512_load_si512(factor->z), _mm512_load_si512(factor->z_q));
}

/* Cooley and Tukey: lo + z hi, lo - z hi; a bound grows by q. */
static always_inline void
butterfly_sum(__m512i *lo, __m512i *hi, __m512i z_hi)
{
	*hi = _mm512_sub_epi16(*lo, z_hi);
	*lo = _mm512_add_epi16(*lo, z_hi);
}

/* Gentleman and Sande, but for the factor: lo + hi, hi - lo; a bound doubles. */
static always_inline void
butterfly_diff(__m512i *lo, __m512i *hi)
{
	__m512i diff = _mm512_sub_epi16(*hi, *lo);

	*lo = _mm512_add_epi16(*lo, *hi);
	*hi = diff;
}

/*
 * From the first and second halves of blocks of twice the size to those of blocks of
 * this size: of A and B themselves for 16. halves_16 and halves_8 take 128-bit quarters,
 * the others words of 64 and 32 bits.
 */
static always_inline void
halves_16(__m512i *a, __m512i *b)
{
	__m512i lo = _mm512_shuffle_i64x2(*a, *b, 0x44);

	*b = _mm512_shuffle_i64x2(*a, *b, 0xee);
	*a = lo;
}

static always_inline void
halves_8(__m512i *a, __m512i *b)
{
	__m512i lo = _mm512_shuffle_i64x2(*a, *b, 0x88);

	*b = _mm512_shuffle_i64x2(*a, *b, 0xdd);
	*a = lo;
}

static always_inline void
halves_4(__m512i *a, __m512i *b)
{
	__m512i lo = _mm512_unpacklo_epi64(*a, *b);

	*b = _mm512_unpackhi_epi64(*a, *b);
	*a = lo;
}

static always_inline void
halves_2(__m512i *a, __m512i *b)
{
	__m512i lo = _mm512_mask_shuffle_epi32(*a, 0xaaaa, *b, 0xa0);

	*b = _mm512_mask_shuffle_epi32(*b, 0x5555, *a, 0xf5);
	*a = lo;
}

/* Undoes halves_8(); the other three undo themselves. */
static always_inline void
whole_8(__m512i *a, __m512i *b)
{
	__m512i lo = _mm512_permutex2var_epi64(
	    *a, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), *b);

	*b = _mm512_permutex2var_epi64(
	    *a, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), *b);
	*a = lo;
}

/* From the standard's order to first and second halves of blocks of four, and back. */
static always_inline void
halves_from_order(__m512i *a, __m512i *b)
{
	const __m512i index = _mm512_setr_epi32(
	    0, 2, 4, 6, 16, 18, 20, 22, 8, 10, 12, 14, 24, 26, 28, 30);
	__m512i lo = _mm512_permutex2var_epi32(*a, index, *b);

	*b = _mm512_permutex2var_epi32(
	    *a, _mm512_add_epi32(index, _mm512_set1_epi32(1)), *b);
	*a = lo;
}

static always_inline void
order_from_halves(__m512i *a, __m512i *b)
{
	const __m512i index =
	    _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27);
	__m512i lo = _mm512_permutex2var_epi32(*a, index, *b);

	*b = _mm512_permutex2var_epi32(
	    *a, _mm512_add_epi32(index, _mm512_set1_epi32(4)), *b);
	*a = lo;
}

#define A(f, i) (&(f)[2 * (i)])
#define B(f, i) (&(f)[2 * (i) + 1])

/*
 * Seven layers, each adds less than q: no reduction is needed on the way. Layer by layer
 * and not pair by pair: a butterfly waits for its product, so four go side by side.
 */
void
ntt_avx512(int16_t *r)
{
	int16_t zeta_128 = fault("avx512-wrong-zeta") ? ZETA_128 + 1 : ZETA_128;
	__m512i f[N_REGS];

	for (unsigned i = 0; i < N_REGS; i++)
		f[i] = poly_load(r, i);
	for (unsigned i = 0; i < 4; i++)
		butterfly_sum(&f[i], &f[i + 4], mul_by(f[i + 4], zeta_128));
	for (unsigned i = 0; i < 2; i++) {
		butterfly_sum(&f[i], &f[i + 2], mul_by(f[i + 2], zetas_64[0]));
		butterfly_sum(&f[i + 4], &f[i + 6], mul_by(f[i + 6], zetas_64[1]));
	}
	for (unsigned i = 0; i < 4; i++)
		butterfly_sum(A(f, i), B(f, i), mul_by(*B(f, i), zetas_32[i]));
	for (unsigned i = 0; i < 4; i++)
		halves_16(A(f, i), B(f, i));
	for (unsigned i = 0; i < 4; i++)
		butterfly_sum(A(f, i), B(f, i), mul(*B(f, i), &forward_16[i]));
	for (unsigned i = 0; i < 4; i++)
		halves_8(A(f, i), B(f, i));
	for (unsigned i = 0; i < 4; i++)
		butterfly_sum(A(f, i), B(f, i), mul(*B(f, i), &forward_8[i]));
	for (unsigned i = 0; i < 4; i++)
		halves_4(A(f, i), B(f, i));
	for (unsigned i = 0; i < 4; i++)
		butterfly_sum(A(f, i), B(f, i), mul(*B(f, i), &forward_4[i]));
	for (unsigned i = 0; i < 4; i++)
		halves_2(A(f, i), B(f, i));
	for (unsigned i = 0; i < 4; i++)
		butterfly_sum(A(f, i), B(f, i), mul(*B(f, i), &forward_2[i]));
	for (unsigned i = 0; i < 4; i++)
		order_from_halves(A(f, i), B(f, i));
	for (unsigned i = 0; i < N_REGS; i++)
		poly_store(r, i, f[i]);
}

/* A layer of the inverse within pairs of registers: sums, and differences times zetas. */
static always_inline void
layer_diff(__m512i *f, const struct factor *factors)
{
	for (unsigned i = 0; i < 4; i++) {
		butterfly_diff(A(f, i), B(f, i));
		*B(f, i) = mul(*B(f, i), &factors[3 - i]);
	}
}

/*
 * Bounds: below 2^14 at first, so that the first sums are int16_t still; they are reduced,
 * so that all is below q after one layer, 8q after four; the sums are reduced again, so
 * that the last ones are below 8q; the last layer multiplies sums as well.
 */
void
invntt_avx512(int16_t *r)
{
	__m512i f[N_REGS];

	for (unsigned i = 0; i < N_REGS; i++)
		f[i] = poly_load(r, i);
	for (unsigned i = 0; i < 4; i++)
		halves_from_order(A(f, i), B(f, i));
	layer_diff(f, backward_2);
	for (unsigned i = 0; i < 4; i++)
		*A(f, i) = reduce(*A(f, i));
	for (unsigned i = 0; i < 4; i++)
		halves_2(A(f, i), B(f, i));
	layer_diff(f, backward_4);
	for (unsigned i = 0; i < 4; i++)
		halves_4(A(f, i), B(f, i));
	layer_diff(f, backward_8);
	for (unsigned i = 0; i < 4; i++)
		whole_8(A(f, i), B(f, i));
	layer_diff(f, backward_16);
	for (unsigned i = 0; i < 4; i++)
		*A(f, i) = reduce(*A(f, i));
	for (unsigned i = 0; i < 4; i++)
		halves_16(A(f, i), B(f, i));
	for (unsigned i = 0; i < 4; i++) {
		butterfly_diff(A(f, i), B(f, i));
		*B(f, i) = mul_by(*B(f, i), zetas_32[3 - i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		butterfly_diff(&f[i], &f[i + 2]);
		f[i + 2] = mul_by(f[i + 2], zetas_64[1]);
		butterfly_diff(&f[i + 4], &f[i + 6]);
		f[i + 6] = mul_by(f[i + 6], zetas_64[0]);
	}
	for (unsigned i = 0; i < 4; i++) {
		butterfly_diff(&f[i], &f[i + 4]);
		poly_store(r, i, mul_by(f[i], INVNTT_FACTOR));
		poly_store(r, i + 4, mul_by(f[i + 4], LAST_FACTOR));
	}
}

/*
 * A dword holds a pair (b0, b1); the cache has (b0, b1 gamma). The two pairs of a block of
 * four have gammas z and -z (Alg. 11): those of the last layer, in the standard's order.
 */
void
mulcache_avx512(int16_t *cache, const int16_t *b)
{
	const __m512i first =
	    _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 8, 8, 9, 9, 10, 10, 11, 11);

	for (unsigned i = 0; i < N_REGS; i++) {
		const struct factor *factor = &forward_2[i / 2];
		__m512i index =
		    _mm512_add_epi32(first, _mm512_set1_epi32(i % 2 == 0 ? 0 : 4));
		__m512i z =
		    _mm512_permutexvar_epi32(index, _mm512_load_si512(factor->z));
		__m512i z_q =
		    _mm512_permutexvar_epi32(index, _mm512_load_si512(factor->z_q));
		__m512i x = poly_load(b, i);
		__m512i t = montgomery_mul(x, z, z_q);

		t = _mm512_mask_sub_epi16(t, 0x88888888, _mm512_setzero_si512(), t);
		poly_store(cache, i, _mm512_mask_blend_epi16(0xaaaaaaaa, x, t));
	}
}

/*
 * vpmaddwd makes a0 b0 + a1 b1 gamma of the cache and a0 b1 + a1 b0 of b with its words
 * exchanged. A sum of 2k products of at most 4095 * 8q stays below 2^30; one Montgomery
 * reduction for all, of both at once: low and high halves of the two sums side by side.
 * |x| <= 8 * 4095 * 8q / 2^16 + q / 2 < 2^14
 */
static always_inline void
basemul_all(
    int16_t *r, const int16_t *a, const int16_t *b, const int16_t *cache, unsigned k)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i even = _mm512_setzero_si512(), odd = even;
		__m512i lo, hi, t;

		for (unsigned j = 0; j < k; j++) {
			__m512i x = poly_load(a + j * MLKEM_N, i);
			__m512i y = poly_load(cache + j * MLKEM_N, i);
			__m512i z = poly_load(b + j * MLKEM_N, i);

			z = _mm512_rol_epi32(z, 16);
			even = _mm512_add_epi32(even, _mm512_madd_epi16(x, y));
			odd = _mm512_add_epi32(odd, _mm512_madd_epi16(x, z));
		}
		lo = _mm512_mask_blend_epi16(
		    0xaaaaaaaa, even, _mm512_slli_epi32(odd, 16));
		hi = _mm512_mask_blend_epi16(
		    0xaaaaaaaa, _mm512_srli_epi32(even, 16), odd);
		t = _mm512_mullo_epi16(lo, _mm512_set1_epi16(Q_INVERSE));
		t = _mm512_mulhi_epi16(t, _mm512_set1_epi16(MLKEM_Q));
		poly_store(r, i, _mm512_sub_epi16(hi, t));
	}
}

void
basemul_avx512(
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
tomont_avx512(int16_t *r)
{
	for (unsigned i = 0; i < N_REGS; i++)
		poly_store(r, i, mul_by(poly_load(r, i), R_SQUARED));
}

void
add_avx512(int16_t *r, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++)
		poly_store(r, i, _mm512_add_epi16(poly_load(r, i), poly_load(a, i)));
}

void
rsub_avx512(int16_t *r, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++)
		poly_store(r, i, _mm512_sub_epi16(poly_load(a, i), poly_load(r, i)));
}
