/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "avx2.h"

/*
 * For each set of eight words, where those that are kept lie: the numbers of their first
 * bytes, one behind the other. Two KiB instead of pext, which early Zen does in 300 cycles.
 */
#define AT(set, n)  (((set) >> (n)&1) != 0)
#define BELOW1(set) AT(set, 0)
#define BELOW2(set) (BELOW1(set) + AT(set, 1))
#define BELOW3(set) (BELOW2(set) + AT(set, 2))
#define BELOW4(set) (BELOW3(set) + AT(set, 3))
#define BELOW5(set) (BELOW4(set) + AT(set, 4))
#define BELOW6(set) (BELOW5(set) + AT(set, 5))
#define BELOW7(set) (BELOW6(set) + AT(set, 6))
/* The byte of word n, moved to its place. */
#define KEEP(set, n, place) (AT(set, n) ? UINT64_C(2) * (n) << 8 * (place) : 0)
#define KEPT(set)                                                                     \
 (KEEP(set, 1, BELOW1(set)) | KEEP(set, 2, BELOW2(set)) | KEEP(set, 3, BELOW3(set)) | \
     KEEP(set, 4, BELOW4(set)) | KEEP(set, 5, BELOW5(set)) |                          \
     KEEP(set, 6, BELOW6(set)) | KEEP(set, 7, BELOW7(set)))
#define KEPT4(set)  KEPT(set), KEPT((set) + 1), KEPT((set) + 2), KEPT((set) + 3)
#define KEPT16(set) KEPT4(set), KEPT4((set) + 4), KEPT4((set) + 8), KEPT4((set) + 12)
#define KEPT64(set) \
 KEPT16(set), KEPT16((set) + 16), KEPT16((set) + 32), KEPT16((set) + 48)

static const uint64_t kept[256] = {KEPT64(0), KEPT64(64), KEPT64(128), KEPT64(192)};

/* The words of x that are in the set, close together. */
static always_inline __m128i
squash(__m128i x, unsigned set)
{
	__m128i index = _mm_loadl_epi64((const void *)&kept[set]);

	index = _mm_unpacklo_epi8(index, _mm_add_epi8(index, _mm_set1_epi8(1)));
	return _mm_shuffle_epi8(x, index);
}

/* Up to 16 candidates of 24 bytes to r, which has room for 16. Returns how many. */
static always_inline unsigned
rej_step(int16_t *r, const uint8_t *in)
{
	__m256i x = unpack24(in);
	__m256i good = _mm256_cmpgt_epi16(_mm256_set1_epi16(MLKEM_Q), x);
	unsigned set =
	    (unsigned)_mm_movemask_epi8(_mm_packs_epi16(low(good), high(good)));
	unsigned n = (unsigned)__builtin_popcount(set & 0xff);

	_mm_storeu_si128((void *)r, squash(low(x), set & 0xff));
	_mm_storeu_si128((void *)(r + n), squash(high(x), set >> 8));
	return n + (unsigned)__builtin_popcount(set >> 8);
}

/* Alg. 7. Public data: it may branch, and index by values. */
unsigned
rej_uniform_avx2(int16_t *r, unsigned count, const uint8_t *buf, size_t len)
{
	size_t i = 0;

	for (; i < len && count <= MLKEM_N - PER_REG; i += 24)
		count += rej_step(r + count, buf + i);
	for (; i < len && count < MLKEM_N; i += 24) {
		int16_t some[PER_REG];
		unsigned n = rej_step(some, buf + i);

		for (unsigned j = 0; j < n && count < MLKEM_N; j++)
			r[count++] = some[j];
	}
	return count;
}

/*
 * Alg. 8, eta = 2: of each nibble the difference of its two bit counts, looked up in a
 * register, as signed bytes.
 */
void
cbd2_avx2(int16_t *r, const uint8_t *buf)
{
	const __m256i difference = both_halves(
	    _mm_setr_epi8(0, 1, 1, 2, -1, 0, 0, 1, -1, 0, 0, 1, -2, -1, -1, 0));
	const __m256i nibble = _mm256_set1_epi8(15);

	for (unsigned i = 0; i < 4; i++) {
		__m256i x = load_at(buf + 32 * i);
		__m256i odd = _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble);
		__m256i lo, hi;

		x = _mm256_shuffle_epi8(difference, _mm256_and_si256(x, nibble));
		odd = _mm256_shuffle_epi8(difference, odd);
		lo = _mm256_unpacklo_epi8(x, odd); /* coefficients 0-15 and 32-47 */
		hi = _mm256_unpackhi_epi8(x, odd);
		poly_store(r, 4 * i, _mm256_cvtepi8_epi16(low(lo)));
		poly_store(r, 4 * i + 1, _mm256_cvtepi8_epi16(low(hi)));
		poly_store(r, 4 * i + 2, _mm256_cvtepi8_epi16(high(lo)));
		poly_store(r, 4 * i + 3, _mm256_cvtepi8_epi16(high(hi)));
	}
}

/*
 * Eta = 3: 3 bytes in each dword, 4 coefficients of 6 bits. Bit triples are added in
 * place; 3 more than the difference can't borrow.
 */
void
cbd3_avx2(int16_t *r, const uint8_t *buf)
{
	const __m256i index = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9,
	    10, 11, -1, 4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
	const __m256i ones = _mm256_set1_epi32(0x249249);
	const __m256i sums = _mm256_set1_epi32(0x1c71c7);
	const __m256i threes = _mm256_set1_epi32(0x0c30c3);
	const __m256i first = _mm256_set1_epi32(0x3f),
		      second = _mm256_set1_epi32(0x3f << 16);
	const __m256i bias = _mm256_set1_epi16(3);

	for (unsigned i = 0; i < MLKEM_N / 32; i++) {
		const uint8_t *in = buf + 24 * i;
		__m256i x = _mm256_shuffle_epi8(load_halves(in, in + 8), index);
		__m256i sum = _mm256_and_si256(x, ones), d, even, odd;

		sum = _mm256_add_epi32(
		    sum, _mm256_and_si256(_mm256_srli_epi32(x, 1), ones));
		sum = _mm256_add_epi32(
		    sum, _mm256_and_si256(_mm256_srli_epi32(x, 2), ones));
		d = _mm256_add_epi32(_mm256_and_si256(sum, sums), threes);
		d = _mm256_sub_epi32(
		    d, _mm256_and_si256(_mm256_srli_epi32(sum, 3), sums));
		even = _mm256_or_si256(_mm256_and_si256(d, first),
		    _mm256_and_si256(_mm256_slli_epi32(d, 10), second));
		odd = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(d, 12), first),
		    _mm256_and_si256(_mm256_srli_epi32(d, 2), second));
		even = _mm256_sub_epi16(even, bias);
		odd = _mm256_sub_epi16(odd, bias);
		x = _mm256_unpacklo_epi32(even, odd);
		d = _mm256_unpackhi_epi32(even, odd);
		poly_store(r, 2 * i, _mm256_permute2x128_si256(x, d, 0x20));
		poly_store(r, 2 * i + 1, _mm256_permute2x128_si256(x, d, 0x31));
	}
}
