/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdbool.h>

#include "avx512.h"

#define STEP_BYTES 48 /* 32 candidates */

/* The candidates below q, moved to the front; the rest is zero. Public data. */
static always_inline __m512i
accept(__m512i candidates, __mmask32 among, unsigned *n)
{
	__mmask32 good =
	    _mm512_mask_cmplt_epu16_mask(among, candidates, _mm512_set1_epi16(MLKEM_Q));

	*n = (unsigned)__builtin_popcount(good);
	return _mm512_maskz_compress_epi16(good, candidates);
}

/*
 * Alg. 7. vpcompressw goes to a register, then all of it is stored: with memory as its
 * destination it takes 256 micro-operations on Zen 4. While no more than 224 values are
 * there a whole register fits behind them. 168 bytes are three and a half steps: the
 * last one may have half its candidates, and reads into the slack.
 */
unsigned
rej_uniform_avx512(int16_t *r, unsigned count, const uint8_t *buf, size_t len)
{
	size_t at = 0;
	unsigned n;

	for (; count <= MLKEM_N - PER_REG && at + STEP_BYTES <= len; at += STEP_BYTES) {
		__m512i x =
		    accept(spread12(_mm512_loadu_si512(buf + at)), UINT32_MAX, &n);

		_mm512_storeu_si512(r + count, x);
		count += n;
	}
	for (; count < MLKEM_N && at < len; at += STEP_BYTES) {
		bool is_half = len - at < STEP_BYTES;
		__m512i x = accept(spread12(_mm512_loadu_si512(buf + at)),
		    is_half ? UINT16_MAX : UINT32_MAX, &n);

		if (n > MLKEM_N - count)
			n = MLKEM_N - count;
		_mm512_mask_storeu_epi16(
		    r + count, (__mmask32)((UINT64_C(1) << n) - 1), x);
		count += n;
	}
	return count;
}

/*
 * Alg. 8, eta = 2. A nibble is a coefficient, the number of bits in its lower half minus
 * that in its upper half, looked up in a register. The words of 64 bits are dealt out so
 * that interleaving low and high nibbles within quarters gives the first 64 coefficients
 * and the second 64.
 */
static always_inline void
cbd2_half(int16_t *r, const uint8_t *buf)
{
	const __m512i table = _mm512_broadcast_i32x4(
	    _mm_setr_epi8(0, 1, 1, 2, -1, 0, 0, 1, -1, 0, 0, 1, -2, -1, -1, 0));
	const __m512i nibble = _mm512_set1_epi8(15);
	__m512i x = _mm512_permutexvar_epi64(
	    _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), _mm512_loadu_si512(buf));
	__m512i lo = _mm512_shuffle_epi8(table, _mm512_and_si512(x, nibble));
	__m512i hi = _mm512_shuffle_epi8(
	    table, _mm512_and_si512(_mm512_srli_epi16(x, 4), nibble));
	__m512i first = _mm512_unpacklo_epi8(lo, hi);
	__m512i second = _mm512_unpackhi_epi8(lo, hi);

	poly_store(r, 0, _mm512_cvtepi8_epi16(_mm512_castsi512_si256(first)));
	poly_store(r, 1, _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(first, 1)));
	poly_store(r, 2, _mm512_cvtepi8_epi16(_mm512_castsi512_si256(second)));
	poly_store(r, 3, _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(second, 1)));
}

void
cbd2_avx512(int16_t *r, const uint8_t *buf)
{
	cbd2_half(r, buf);
	cbd2_half(r + MLKEM_N / 2, buf + 64);
}

/*
 * Eta = 3: three bytes, 24 bits, are four coefficients. Each word of 64 bits takes three
 * bytes, each of its words of 16 bits three of them for the bits that count and three for
 * those that are taken away.
 */
void
cbd3_avx512(int16_t *r, const uint8_t *buf)
{
	const __m512i table = _mm512_broadcast_i32x4(
	    _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0));
	const __m512i spread = _mm512_set_epi64(0x171615, 0x141312, 0x11100f, 0x0e0d0c,
	    0x0b0a09, 0x080706, 0x050403, 0x020100);
	const __m512i bits = _mm512_set1_epi64(0x0012000c00060000);
	const __m512i three = _mm512_set1_epi16(7);

	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i x =
		    _mm512_permutexvar_epi8(spread, _mm512_loadu_si512(buf + 24 * i));
		__m512i plus = _mm512_multishift_epi64_epi8(bits, x);
		__m512i minus = _mm512_srli_epi16(plus, 3);

		plus = _mm512_shuffle_epi8(table, _mm512_and_si512(plus, three));
		minus = _mm512_shuffle_epi8(table, _mm512_and_si512(minus, three));
		poly_store(r, i, _mm512_sub_epi16(plus, minus));
	}
}
