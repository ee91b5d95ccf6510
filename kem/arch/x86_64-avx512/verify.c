/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../../ct.h"
#include "avx512.h"

unsigned
check12_avx512(const uint8_t *in)
{
	const __m512i limit = _mm512_set1_epi16(MLKEM_Q);
	__mmask32 over = 0;

	for (unsigned i = 0; i < N_REGS; i++) {
		__m512i x = _mm512_maskz_loadu_epi64(0x3f, in + 48 * i);

		over |= _mm512_cmpge_epu16_mask(spread12(x), limit);
	}
	return over != 0; /* of a public key */
}

uint64_t
compare_avx512(const uint8_t *a, const uint8_t *b, size_t len)
{
	__m512i diff = _mm512_setzero_si512();
	size_t i = 0;

	for (; i + 64 <= len; i += 64)
		diff = _mm512_or_si512(diff, _mm512_xor_si512(_mm512_loadu_si512(a + i),
						 _mm512_loadu_si512(b + i)));
	if (i < len) {
		__mmask64 mask = (UINT64_C(1) << (len - i)) - 1;

		diff = _mm512_or_si512(
		    diff, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, a + i),
			      _mm512_maskz_loadu_epi8(mask, b + i)));
	}
	return ct_barrier(_mm512_test_epi64_mask(diff, diff));
}

/* Bit by bit: the first where mask is set, else the second. */
#define SELECT 0xca

void
select_avx512(
    uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask)
{
	const __m512i all = _mm512_set1_epi64((long long)ct_barrier(mask));

	for (size_t i = 0; i < len; i += 64) {
		__mmask64 in =
		    len - i < 64 ? (UINT64_C(1) << (len - i)) - 1 : UINT64_MAX;
		__m512i x = _mm512_maskz_loadu_epi8(in, a + i);
		__m512i y = _mm512_maskz_loadu_epi8(in, b + i);

		_mm512_mask_storeu_epi8(
		    out + i, in, _mm512_ternarylogic_epi64(all, x, y, SELECT));
	}
}
