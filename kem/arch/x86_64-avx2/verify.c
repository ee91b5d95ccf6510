/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../../ct.h"
#include "avx2.h"

#include <string.h>

unsigned
check12_avx2(const uint8_t *in)
{
	__m256i max = _mm256_setzero_si256();

	for (unsigned i = 0; i < N_REGS; i++)
		max = _mm256_max_epi16(max, unpack24(in + 24 * i));
	max = _mm256_cmpgt_epi16(max, _mm256_set1_epi16(MLKEM_Q - 1));
	return (unsigned)(ct_mask_nonzero((uint32_t)_mm256_movemask_epi8(max)) & 1);
}

static always_inline uint64_t
load_word(const uint8_t *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof x);
	return x;
}

/* The length is public, the bytes are not. */
uint64_t
compare_avx2(const uint8_t *a, const uint8_t *b, size_t len)
{
	__m256i diffs = _mm256_setzero_si256();
	uint64_t diff = 0;
	__m128i half;
	size_t i = 0;

	for (; i + 32 <= len; i += 32)
		diffs = _mm256_or_si256(
		    diffs, _mm256_xor_si256(load_at(a + i), load_at(b + i)));
	for (; i + 8 <= len; i += 8)
		diff |= load_word(a + i) ^ load_word(b + i);
	for (; i < len; i++)
		diff |= (uint64_t)(a[i] ^ b[i]);
	half = _mm_or_si128(low(diffs), high(diffs));
	diff |= (uint64_t)_mm_cvtsi128_si64(half);
	diff |= (uint64_t)_mm_extract_epi64(half, 1);
	return ct_barrier(diff);
}

void
select_avx2(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask)
{
	__m256i wide = _mm256_set1_epi64x((long long)ct_barrier(mask));
	size_t i = 0;

	for (; i + 32 <= len; i += 32) {
		__m256i x = load_at(a + i), y = load_at(b + i);

		x = _mm256_and_si256(_mm256_xor_si256(x, y), wide);
		store_at(out + i, _mm256_xor_si256(x, y));
	}
	for (; i < len; i++)
		out[i] = (uint8_t)ct_select(mask, a[i], b[i]);
}
