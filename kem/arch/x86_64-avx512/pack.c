/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Compress and ByteEncode, ByteDecode and Decompress (FIPS 203 4.2.1), 32 values at a
 * time: d * 4 bytes. Masked loads and stores touch no byte more than those.
 */
#include <string.h>

#include "../../ct.h"
#include "avx512.h"

#define MASK64(n) ((UINT64_C(1) << (n)) - 1)

static always_inline __m512i
table_load(const uint8_t *table)
{
	return _mm512_load_si512(table);
}

/*
 * round(2^d x / q) mod 2^d of any int16_t: y is 2^d x / q times 1 + 6 * 10^-5 or less,
 * rounded down. So it is the true quotient rounded down, or its neighbour if that is so
 * near that rounding gives it anyway; the remainder, which fits 16 bits although neither
 * of its terms does, tells whether more than half of q is left.
 */
static always_inline __m512i
round_up(__m512i x, __m512i y, unsigned d)
{
	__m512i rest = _mm512_sub_epi16(
	    _mm512_slli_epi16(x, d), _mm512_mullo_epi16(y, _mm512_set1_epi16(MLKEM_Q)));
	__mmask32 up = _mm512_cmpgt_epi16_mask(rest, _mm512_set1_epi16(MLKEM_Q / 2));

	y = _mm512_mask_add_epi16(y, up, y, _mm512_set1_epi16(1));
	return _mm512_and_si512(y, _mm512_set1_epi16((int16_t)((1 << d) - 1)));
}

/* factor: 2^(16 + d) / q, rounded; at most 20159. */
static always_inline __m512i
quotient(__m512i x, unsigned d, int16_t factor)
{
	return round_up(x, _mm512_mulhi_epi16(x, _mm512_set1_epi16(factor)), d);
}

/* For d = 11 the factor is 40318, which is no int16_t: it is short of 2^16, one x. */
static always_inline __m512i
quotient11(__m512i x)
{
	__m512i y = _mm512_mulhi_epi16(x, _mm512_set1_epi16(40318 - 65536));

	return round_up(x, _mm512_add_epi16(x, y), 11);
}

/* Two values of d bits side by side in each dword, then four in each word of 64 bits. */
static always_inline __m512i
join_two(__m512i y, unsigned d)
{
	return _mm512_madd_epi16(y, _mm512_set1_epi32(1 | 1 << (16 + d)));
}

/*
 * The lower dword is moved up to its neighbour, then all down, in every second word
 * `left` bits less.
 */
static always_inline __m512i
join_four(__m512i y, unsigned d, unsigned left)
{
	const unsigned gap = 32 - 2 * d;
	__m512i x = join_two(y, d);

	x = _mm512_sllv_epi32(x, _mm512_set1_epi64(gap));
	return _mm512_srlv_epi64(x, _mm512_set_epi64(gap - left, gap, gap - left, gap,
					gap - left, gap, gap - left, gap));
}

/*
 * For odd d, eight values are d bytes: the odd word was left four bits further up, its
 * first byte goes into the last one of the even word.
 */
static always_inline __m512i
join_eight(__m512i y, unsigned d)
{
	const unsigned last = d / 2; /* 5 or 2 */
	__m512i x = join_four(y, d, 4);
	__m128i from = _mm_insert_epi64(_mm_set1_epi8(-1), -1, 0);

	from = _mm_mask_set1_epi8(from, (__mmask16)(1u << last), 8);
	return _mm512_or_si512(x, _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(from)));
}

/* The bytes of a register that are kept: n of every 4, 8 or 16. */
#define FROM(i, a) (16 * (i) + (a))
static const _Alignas(64) uint8_t kept_12[64] = {
#define KEPT(i)                                                                      \
 FROM(i, 0), FROM(i, 1), FROM(i, 2), FROM(i, 4), FROM(i, 5), FROM(i, 6), FROM(i, 8), \
     FROM(i, 9), FROM(i, 10), FROM(i, 12), FROM(i, 13), FROM(i, 14)
    KEPT(0), KEPT(1), KEPT(2), KEPT(3)
#undef KEPT
};
static const _Alignas(64) uint8_t kept_11[64] = {
#define KEPT(i)                                                                      \
 FROM(i, 0), FROM(i, 1), FROM(i, 2), FROM(i, 3), FROM(i, 4), FROM(i, 5), FROM(i, 9), \
     FROM(i, 10), FROM(i, 11), FROM(i, 12), FROM(i, 13)
    KEPT(0), KEPT(1), KEPT(2), KEPT(3)
#undef KEPT
};
static const _Alignas(64) uint8_t kept_10[64] = {
#define KEPT(i)                                                                      \
 FROM(i, 0), FROM(i, 1), FROM(i, 2), FROM(i, 3), FROM(i, 4), FROM(i, 8), FROM(i, 9), \
     FROM(i, 10), FROM(i, 11), FROM(i, 12)
    KEPT(0), KEPT(1), KEPT(2), KEPT(3)
#undef KEPT
};
static const _Alignas(64) uint8_t kept_5[64] = {
#define KEPT(i) FROM(i, 0), FROM(i, 1), FROM(i, 2), FROM(i, 9), FROM(i, 10)
    KEPT(0), KEPT(1), KEPT(2), KEPT(3)
#undef KEPT
};

static always_inline void
keep(uint8_t *out, __m512i x, const uint8_t *kept, unsigned n)
{
	x = _mm512_permutexvar_epi8(table_load(kept), x);
	_mm512_mask_storeu_epi8(out, MASK64(n), x);
}

/* 1 for 833 <= x <= 2496. */
void
compress1_avx512(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i x = _mm512_sub_epi16(
		    canonical(poly_load(a, i)), _mm512_set1_epi16(833));
		uint32_t bits =
		    _mm512_cmplt_epu16_mask(x, _mm512_set1_epi16(2496 - 833 + 1));

		memcpy(out + 4 * i, &bits, sizeof bits);
	}
}

void
compress4_avx512(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i y = join_two(quotient(poly_load(a, i), 4, 315), 4);

		_mm_storeu_si128(
		    (__m128i *)(void *)(out + 16 * i), _mm512_cvtepi32_epi8(y));
	}
}

void
compress5_avx512(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i y = quotient(poly_load(a, i), 5, 630);

		keep(out + 20 * i, join_eight(y, 5), kept_5, 20);
	}
}

void
compress10_avx512(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i y = quotient(poly_load(a, i), 10, 20159);

		keep(out + 40 * i, join_four(y, 10, 0), kept_10, 40);
	}
}

void
compress11_avx512(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i y = quotient11(poly_load(a, i));

		keep(out + 44 * i, join_eight(y, 11), kept_11, 44);
	}
}

void
pack12_avx512(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i x = join_two(canonical(poly_load(a, i)), 12);

		keep(out + 48 * i, x, kept_12, 48);
	}
}

/* The message: a bit of the mask is 0 or 1665. */
void
decompress1_avx512(int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		uint32_t bits;

		memcpy(&bits, in + 4 * i, sizeof bits);
		poly_store(
		    r, i, _mm512_maskz_set1_epi16((uint32_t)ct_barrier(bits), 1665));
	}
}

/*
 * round(q y / 2^d), where `shifts` brings y, of each word of 16 bits, to the d bits below
 * the sign: vpmulhrsw rounds (2^(15 - d) y q) / 2^15. Bits are counted modulo 64.
 */
static always_inline __m512i
decompress(__m512i x, __m512i shifts, unsigned d)
{
	__m512i y = _mm512_multishift_epi64_epi8(shifts, x);

	y = _mm512_and_si512(
	    y, _mm512_set1_epi16((int16_t)(((1 << d) - 1) << (15 - d))));
	return _mm512_mulhrs_epi16(y, _mm512_set1_epi16(MLKEM_Q));
}

/*
 * Where the words of 64 bits, four values each, begin in d * 4 bytes: for odd d every
 * second one begins with half a byte, so at bit 4.
 */
#define BYTES(a) (a), (a) + 1, (a) + 2, (a) + 3, (a) + 4, (a) + 5, (a) + 6, (a) + 7
static const _Alignas(64) uint8_t spread_10[64] = {BYTES(0), BYTES(5), BYTES(10),
    BYTES(15), BYTES(20), BYTES(25), BYTES(30), BYTES(35)};
static const _Alignas(64) uint8_t spread_11[64] = {BYTES(0), BYTES(5), BYTES(11),
    BYTES(16), BYTES(22), BYTES(27), BYTES(33), BYTES(38)};
static const _Alignas(64) uint8_t spread_5[64] = {
    BYTES(0), BYTES(2), BYTES(5), BYTES(7), BYTES(10), BYTES(12), BYTES(15), BYTES(17)};

/* The bits at which the two bytes of value i begin, when its first one is number `bit`. */
#define TWO(bit, i, d)                                         \
 (uint64_t)(((bit) + (i) * (d) + (d) + 49) % 64) << 16 * (i) | \
     (uint64_t)(((bit) + (i) * (d) + (d) + 57) % 64) << (16 * (i) + 8)
#define SHIFTS(bit, d) \
 (long long)(TWO(bit, 0, d) | TWO(bit, 1, d) | TWO(bit, 2, d) | TWO(bit, 3, d))

void
decompress4_avx512(int16_t *r, const uint8_t *in)
{
	const __m512i shifts = _mm512_set1_epi64(SHIFTS(0, 4));

	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i x = _mm512_cvtepu16_epi64(
		    _mm_loadu_si128((const __m128i *)(const void *)(in + 16 * i)));

		poly_store(r, i, decompress(x, shifts, 4));
	}
}

void
decompress5_avx512(int16_t *r, const uint8_t *in)
{
	const __m512i shifts =
	    _mm512_set4_epi64(SHIFTS(4, 5), SHIFTS(0, 5), SHIFTS(4, 5), SHIFTS(0, 5));

	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i x = _mm512_maskz_loadu_epi32(0x1f, in + 20 * i);

		x = _mm512_permutexvar_epi8(table_load(spread_5), x);
		poly_store(r, i, decompress(x, shifts, 5));
	}
}

void
decompress10_avx512(int16_t *r, const uint8_t *in)
{
	const __m512i shifts = _mm512_set1_epi64(SHIFTS(0, 10));

	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i x = _mm512_maskz_loadu_epi64(0x1f, in + 40 * i);

		x = _mm512_permutexvar_epi8(table_load(spread_10), x);
		poly_store(r, i, decompress(x, shifts, 10));
	}
}

void
decompress11_avx512(int16_t *r, const uint8_t *in)
{
	const __m512i shifts = _mm512_set4_epi64(
	    SHIFTS(4, 11), SHIFTS(0, 11), SHIFTS(4, 11), SHIFTS(0, 11));

	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i x = _mm512_maskz_loadu_epi32(0x7ff, in + 44 * i);

		x = _mm512_permutexvar_epi8(table_load(spread_11), x);
		poly_store(r, i, decompress(x, shifts, 11));
	}
}

void
unpack12_avx512(int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i x = _mm512_maskz_loadu_epi64(0x3f, in + 48 * i);

		poly_store(r, i, spread12(x));
	}
}
