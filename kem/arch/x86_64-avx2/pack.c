/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Compress and ByteEncode, ByteDecode and Decompress (FIPS 203 4.2.1). Words are joined
 * by multiplications with powers of two, first two, then four of them, and the bytes that
 * result are shuffled together.
 */
#include "../../ct.h"
#include <stdbool.h>

#include "avx2.h"

/* 2^(15 + d) / q, rounded; the compiler divides, at every level. */
#define FACTOR(d) [d] = ((1 << (15 + (d))) + MLKEM_Q / 2) / MLKEM_Q
static const int16_t factors[] = {
    FACTOR(1), FACTOR(4), FACTOR(5), FACTOR(10), FACTOR(11)};

/*
 * round(x 2^d / q) mod 2^d of any int16_t, exactly: factor / 2^15 is nearly 2^d / q, so
 * that the first quotient is off by less than 1 after its own rounding (for d = 4, the
 * worst, by 0.49 |x| / 2^15 + 1/2). What is left of x 2^d is below 1.5 q and known mod
 * 2^16, and says whether the quotient is one too large or too small. There are no ties:
 * q is odd.
 */
static always_inline __m256i
compress(__m256i x, int d)
{
	__m256i y = _mm256_mulhrs_epi16(x, _mm256_set1_epi16(factors[d]));
	__m256i left = _mm256_sub_epi16(
	    _mm256_slli_epi16(x, d), _mm256_mullo_epi16(y, _mm256_set1_epi16(MLKEM_Q)));
	__m256i small = _mm256_cmpgt_epi16(left, _mm256_set1_epi16(MLKEM_Q / 2));
	__m256i large = _mm256_cmpgt_epi16(_mm256_set1_epi16(-(MLKEM_Q / 2)), left);

	y = _mm256_add_epi16(_mm256_sub_epi16(y, small), large);
	return _mm256_and_si256(y, _mm256_set1_epi16((int16_t)((1 << d) - 1)));
}

static always_inline __m256i
compress_load(const int16_t *a, unsigned i, int d)
{
	return compress(poly_load(a, i), d);
}

/* lo + 2^d hi of each two neighbours: words to dwords. */
static always_inline __m256i
join_words(__m256i x, int d)
{
	return _mm256_madd_epi16(x, _mm256_set1_epi32(1 << (16 + d) | 1));
}

/* The same of dwords below 2^d to qwords: up against each other, then down together. */
static always_inline __m256i
join_dwords(__m256i x, int d)
{
	x = _mm256_sllv_epi32(x, _mm256_set1_epi64x(32 - d));
	return _mm256_srli_epi64(x, 32 - d);
}

static always_inline void
store16(uint8_t *out, __m128i x)
{
	_mm_storeu_si128((void *)out, x);
}

static always_inline void
store8(uint8_t *out, __m128i x)
{
	_mm_storel_epi64((void *)out, x);
}

static always_inline void
store4(uint8_t *out, __m128i x)
{
	_mm_storeu_si32(out, x);
}

static always_inline void
store2(uint8_t *out, __m128i x)
{
	_mm_storeu_si16(out, x);
}

/* Bit 0 becomes the sign of a byte, and signs are moved out. */
void
compress1_avx2(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i += 2) {
		__m256i x = _mm256_slli_epi16(compress_load(a, i, 1), 15);
		__m256i y = _mm256_slli_epi16(compress_load(a, i + 1, 1), 15);
		int bits;

		x = _mm256_permute4x64_epi64(_mm256_packs_epi16(x, y), 0xd8);
		bits = _mm256_movemask_epi8(x);
		store4(out + 2 * i, _mm_cvtsi32_si128(bits));
	}
}

void
compress4_avx2(uint8_t *out, const int16_t *a)
{
	const __m256i join = _mm256_set1_epi16(16 << 8 | 1);
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);

	for (unsigned i = 0; i < N_REGS; i += 4) {
		__m256i x = _mm256_packus_epi16(
		    compress_load(a, i, 4), compress_load(a, i + 1, 4));
		__m256i y = _mm256_packus_epi16(
		    compress_load(a, i + 2, 4), compress_load(a, i + 3, 4));

		x = _mm256_packus_epi16(
		    _mm256_maddubs_epi16(x, join), _mm256_maddubs_epi16(y, join));
		store_at(out + 8 * i, _mm256_permutevar8x32_epi32(x, order));
	}
}

/*
 * 20 bits in each qword of x: 4 coefficients, and the lane's other qword has the next 4.
 * Two registers are sorted so that the first and the second fours stand together.
 */
static always_inline void
compress5_two(uint8_t *out, __m256i x, __m256i y)
{
	const __m256i index = _mm256_setr_epi8(0, 1, 2, 3, 4, 8, 9, 10, 11, 12, -1, -1,
	    -1, -1, -1, -1, 0, 1, 2, 3, 4, 8, 9, 10, 11, 12, -1, -1, -1, -1, -1, -1);
	__m256i first = _mm256_permute2x128_si256(x, y, 0x20);
	__m256i second = _mm256_permute2x128_si256(x, y, 0x31);

	x = _mm256_unpacklo_epi64(first, second);
	y = _mm256_unpackhi_epi64(first, second);
	x = _mm256_or_si256(x, _mm256_slli_epi64(y, 20));
	x = _mm256_shuffle_epi8(x, index);
	store8(out, low(x));
	store2(out + 8, _mm_srli_si128(low(x), 8));
	store8(out + 10, high(x));
	store2(out + 18, _mm_srli_si128(high(x), 8));
}

void
compress5_avx2(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i += 2) {
		__m256i x = join_words(compress_load(a, i, 5), 5);
		__m256i y = join_words(compress_load(a, i + 1, 5), 5);

		compress5_two(out + 10 * i, join_dwords(x, 10), join_dwords(y, 10));
	}
}

/* The low ten bytes of each lane; six of the next twenty may be overwritten. */
static always_inline void
store10_twice(uint8_t *out, __m256i x, bool is_last)
{
	store16(out, low(x));
	if (!is_last) {
		store16(out + 10, high(x));
		return;
	}
	store8(out + 10, high(x));
	store2(out + 18, _mm_srli_si128(high(x), 8));
}

void
compress10_avx2(uint8_t *out, const int16_t *a)
{
	const __m256i index = _mm256_setr_epi8(0, 1, 2, 3, 4, 8, 9, 10, 11, 12, -1, -1,
	    -1, -1, -1, -1, 0, 1, 2, 3, 4, 8, 9, 10, 11, 12, -1, -1, -1, -1, -1, -1);

	for (unsigned i = 0; i < N_REGS; i++) {
		__m256i x = join_words(compress_load(a, i, 10), 10);

		x = _mm256_shuffle_epi8(join_dwords(x, 20), index);
		store10_twice(out + 20 * i, x, i == N_REGS - 1);
	}
}

/* Two qwords of 44 bits are 88: 20 of the upper one fill the lower one. */
void
compress11_avx2(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		__m256i x = join_dwords(join_words(compress_load(a, i, 11), 11), 22);
		__m256i upper = _mm256_slli_epi64(_mm256_srli_si256(x, 8), 44);

		x = _mm256_srlv_epi64(x, _mm256_setr_epi64x(0, 20, 0, 20));
		x = _mm256_or_si256(x, upper);
		store8(out + 22 * i, low(x));
		store4(out + 22 * i + 7, _mm_srli_si128(low(x), 7));
		store8(out + 22 * i + 11, high(x));
		store4(out + 22 * i + 18, _mm_srli_si128(high(x), 7));
	}
}

/* (y q + 2^(d-1)) >> d, of y 2^(15-d): exact, mulhrs rounds half up just so. */
static always_inline __m256i
decompress(__m256i scaled)
{
	return _mm256_mulhrs_epi16(scaled, _mm256_set1_epi16(MLKEM_Q));
}

/* The message: a bit is 0 or 1665, by a mask. */
void
decompress1_avx2(int16_t *r, const uint8_t *in)
{
	const __m256i bits = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512,
	    1024, 2048, 4096, 8192, 16384, INT16_MIN);

	for (unsigned i = 0; i < N_REGS; i++) {
		__m256i x =
		    _mm256_set1_epi16((int16_t)(in[2 * i] | in[2 * i + 1] << 8));

		x = _mm256_cmpeq_epi16(_mm256_and_si256(x, bits), bits);
		poly_store(r, i, _mm256_and_si256(x, _mm256_set1_epi16(1665)));
	}
}

/* A byte in each two words; its upper nibble is moved up four bits less. */
void
decompress4_avx2(int16_t *r, const uint8_t *in)
{
	const __m256i index = _mm256_setr_epi8(0, -1, 0, -1, 1, -1, 1, -1, 2, -1, 2, -1,
	    3, -1, 3, -1, 4, -1, 4, -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7, -1);
	const __m256i up = _mm256_set1_epi32(1 << 23 | 1 << 11);

	for (unsigned i = 0; i < N_REGS; i++) {
		__m256i x = both_halves(_mm_loadl_epi64((const void *)(in + 8 * i)));

		x = _mm256_mullo_epi16(_mm256_shuffle_epi8(x, index), up);
		x = _mm256_and_si256(x, _mm256_set1_epi16(0x7800));
		poly_store(r, i, decompress(x));
	}
}

/*
 * Ten bytes: those of the upper lane are the last five of eight. Each word takes the two
 * bytes that hold its 5 bits, the last one of eight bytes 3 and 4, and moves them up to
 * the top.
 */
void
decompress5_avx2(int16_t *r, const uint8_t *in)
{
	const __m256i index = _mm256_setr_epi8(0, 1, 0, 1, 1, 2, 1, 2, 2, 3, 3, 4, 3, 4,
	    3, 4, 3, 4, 3, 4, 4, 5, 4, 5, 5, 6, 6, 7, 6, 7, 6, 7);
	const __m256i up = _mm256_setr_epi16(1 << 11, 1 << 6, 1 << 9, 1 << 4, 1 << 7,
	    1 << 10, 1 << 5, 1 << 0, 1 << 11, 1 << 6, 1 << 9, 1 << 4, 1 << 7, 1 << 10,
	    1 << 5, 1 << 0);

	for (unsigned i = 0; i < N_REGS; i++) {
		const uint8_t *p = in + 10 * i;
		__m256i x = _mm256_inserti128_si256(
		    _mm256_castsi128_si256(_mm_loadl_epi64((const void *)p)),
		    _mm_loadl_epi64((const void *)(p + 2)), 1);

		x = _mm256_mullo_epi16(_mm256_shuffle_epi8(x, index), up);
		x = _mm256_srli_epi16(x, 1);
		x = _mm256_and_si256(x, _mm256_set1_epi16(0x7c00));
		poly_store(r, i, decompress(x));
	}
}

/* Twenty bytes: those of the upper lane are the last ten of sixteen. */
void
decompress10_avx2(int16_t *r, const uint8_t *in)
{
	const __m256i index = _mm256_setr_epi8(0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7, 7, 8,
	    8, 9, 6, 7, 7, 8, 8, 9, 9, 10, 11, 12, 12, 13, 13, 14, 14, 15);
	const __m256i up = _mm256_set1_epi64x(0x0001000400100040);

	for (unsigned i = 0; i < N_REGS; i++) {
		const uint8_t *p = in + 20 * i;
		__m256i x = _mm256_shuffle_epi8(load_halves(p, p + 4), index);

		x = _mm256_srli_epi16(_mm256_mullo_epi16(x, up), 1);
		x = _mm256_and_si256(x, _mm256_set1_epi16(0x7fe0));
		poly_store(r, i, decompress(x));
	}
}

/*
 * Twenty-two bytes: those of the upper lane are the last eleven of sixteen. 11 bits may
 * lie in three bytes, so that they are taken out of dwords.
 */
void
decompress11_avx2(int16_t *r, const uint8_t *in)
{
	const __m256i first = _mm256_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 4, 5,
	    6, 7, 5, 6, 7, 8, 6, 7, 8, 9, 7, 8, 9, 10, 9, 10, 11, 12);
	const __m256i second = _mm256_setr_epi8(5, 6, 7, 8, 6, 7, 8, 9, 8, 9, 10, 11, 9,
	    10, 11, 12, 10, 11, 12, 13, 11, 12, 13, 14, 13, 14, 15, -1, 14, 15, -1, -1);
	const __m256i down_first = _mm256_setr_epi32(0, 3, 6, 1, 0, 3, 6, 1);
	const __m256i down_second = _mm256_setr_epi32(4, 7, 2, 5, 4, 7, 2, 5);
	const __m256i bits = _mm256_set1_epi32(0x7ff);

	for (unsigned i = 0; i < N_REGS; i++) {
		const uint8_t *p = in + 22 * i;
		__m256i x = load_halves(p, p + 6);
		__m256i y = _mm256_shuffle_epi8(x, second);

		x = _mm256_srlv_epi32(_mm256_shuffle_epi8(x, first), down_first);
		y = _mm256_srlv_epi32(y, down_second);
		x = _mm256_packus_epi32(
		    _mm256_and_si256(x, bits), _mm256_and_si256(y, bits));
		poly_store(r, i, decompress(_mm256_slli_epi16(x, 4)));
	}
}

/*
 * As reduce() of ntt.c, |x| < 0.66 q; a negative x is more than x + q when both are taken
 * as unsigned. in: any, out: [0, q)
 */
static always_inline __m256i
canonical(__m256i x)
{
	const __m256i q = _mm256_set1_epi16(MLKEM_Q);
	__m256i t = _mm256_mulhrs_epi16(x, _mm256_set1_epi16(10));

	x = _mm256_sub_epi16(x, _mm256_mullo_epi16(t, q));
	return _mm256_min_epu16(x, _mm256_add_epi16(x, q));
}

/* Three bytes of each dword; eight of the next 24 are overwritten. */
void
pack12_avx2(uint8_t *out, const int16_t *a)
{
	const __m256i index = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14,
	    -1, -1, -1, -1, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
	const __m256i order = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);

	for (unsigned i = 0; i < N_REGS; i++) {
		__m256i x = join_words(canonical(poly_load(a, i)), 12);

		x = _mm256_shuffle_epi8(x, index);
		x = _mm256_permutevar8x32_epi32(x, order);
		if (i < N_REGS - 1) {
			store_at(out + 24 * i, x);
			continue;
		}
		store16(out + 24 * i, low(x));
		store8(out + 24 * i + 16, high(x));
	}
}

void
unpack12_avx2(int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < N_REGS; i++)
		poly_store(r, i, unpack24(in + 24 * i));
}
