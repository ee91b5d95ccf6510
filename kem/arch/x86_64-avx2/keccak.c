/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Four Keccak states at once, word i of all lanes in one register. Lanes are the four
 * words of a register: bytes come and go by transposing 4 words of 4 lanes.
 */
#include "avx2.h"

#define LANES 4

/* FIPS 202 3.2.5. */
static const uint64_t round_constants[24] = {0x0000000000000001, 0x0000000000008082,
    0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b,
    0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080,
    0x0000000080000001, 0x8000000080008008};

#define XOR _mm256_xor_si256

/* By whole bytes it is one shuffle, by one bit an addition is quicker than a shift. */
static always_inline __m256i
rotate(__m256i x, int n)
{
	if (n == 8)
		return _mm256_shuffle_epi8(x,
		    _mm256_setr_epi8(7, 0, 1, 2, 3, 4, 5, 6, 15, 8, 9, 10, 11, 12, 13,
			14, 7, 0, 1, 2, 3, 4, 5, 6, 15, 8, 9, 10, 11, 12, 13, 14));
	if (n == 56)
		return _mm256_shuffle_epi8(x,
		    _mm256_setr_epi8(1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11, 12, 13, 14, 15,
			8, 1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11, 12, 13, 14, 15, 8));
	return _mm256_or_si256(
	    n == 1 ? _mm256_add_epi64(x, x) : _mm256_slli_epi64(x, n),
	    _mm256_srli_epi64(x, 64 - n));
}

/*
 * A row of chi from its five words; what comes out is added to the column sums c, which
 * are the next round's theta: the 25 words don't fit into 16 registers, so each is loaded
 * and stored just once a round, and this is where it is at hand.
 */
static always_inline void
row(__m256i *e, __m256i *c, __m256i b0, __m256i b1, __m256i b2, __m256i b3, __m256i b4)
{
	e[0] = XOR(b0, _mm256_andnot_si256(b1, b2));
	e[1] = XOR(b1, _mm256_andnot_si256(b2, b3));
	e[2] = XOR(b2, _mm256_andnot_si256(b3, b4));
	e[3] = XOR(b3, _mm256_andnot_si256(b4, b0));
	e[4] = XOR(b4, _mm256_andnot_si256(b0, b1));
	for (unsigned i = 0; i < 5; i++)
		c[i] = XOR(c[i], e[i]);
}

/* One round from a to e; c: the column sums of a, then of e. */
static always_inline void
round_x4(__m256i *e, const __m256i *a, __m256i *c, uint64_t round_constant)
{
	__m256i d0 = XOR(c[4], rotate(c[1], 1));
	__m256i d1 = XOR(c[0], rotate(c[2], 1));
	__m256i d2 = XOR(c[1], rotate(c[3], 1));
	__m256i d3 = XOR(c[2], rotate(c[4], 1));
	__m256i d4 = XOR(c[3], rotate(c[0], 1));

	c[0] = _mm256_set1_epi64x((long long)round_constant);
	c[1] = c[2] = c[3] = c[4] = _mm256_setzero_si256();
	row(e, c, XOR(a[0], d0), rotate(XOR(a[6], d1), 44), rotate(XOR(a[12], d2), 43),
	    rotate(XOR(a[18], d3), 21), rotate(XOR(a[24], d4), 14));
	e[0] = c[0];
	row(e + 5, c, rotate(XOR(a[3], d3), 28), rotate(XOR(a[9], d4), 20),
	    rotate(XOR(a[10], d0), 3), rotate(XOR(a[16], d1), 45),
	    rotate(XOR(a[22], d2), 61));
	row(e + 10, c, rotate(XOR(a[1], d1), 1), rotate(XOR(a[7], d2), 6),
	    rotate(XOR(a[13], d3), 25), rotate(XOR(a[19], d4), 8),
	    rotate(XOR(a[20], d0), 18));
	row(e + 15, c, rotate(XOR(a[4], d4), 27), rotate(XOR(a[5], d0), 36),
	    rotate(XOR(a[11], d1), 10), rotate(XOR(a[17], d2), 15),
	    rotate(XOR(a[23], d3), 56));
	row(e + 20, c, rotate(XOR(a[2], d2), 62), rotate(XOR(a[8], d3), 55),
	    rotate(XOR(a[14], d4), 39), rotate(XOR(a[15], d0), 41),
	    rotate(XOR(a[21], d1), 2));
}

static void
permute_x4(uint64_t *state)
{
	__m256i *a = (__m256i *)(void *)state;
	__m256i e[KECCAK_WORDS], c[5];

	for (unsigned i = 0; i < 5; i++)
		c[i] =
		    XOR(XOR(XOR(XOR(a[i], a[i + 5]), a[i + 10]), a[i + 15]), a[i + 20]);
	for (unsigned i = 0; i < 24; i += 2) {
		round_x4(e, a, c, round_constants[i]);
		round_x4(a, e, c, round_constants[i + 1]);
	}
}

static always_inline uint64_t
rotate_word(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static always_inline void
row_x1(uint64_t *e, uint64_t b0, uint64_t b1, uint64_t b2, uint64_t b3, uint64_t b4)
{
	e[0] = b0 ^ (~b1 & b2);
	e[1] = b1 ^ (~b2 & b3);
	e[2] = b2 ^ (~b3 & b4);
	e[3] = b3 ^ (~b4 & b0);
	e[4] = b4 ^ (~b0 & b1);
}

static always_inline void
round_x1(uint64_t *e, const uint64_t *a, uint64_t round_constant)
{
	uint64_t c0 = a[0] ^ a[5] ^ a[10] ^ a[15] ^ a[20];
	uint64_t c1 = a[1] ^ a[6] ^ a[11] ^ a[16] ^ a[21];
	uint64_t c2 = a[2] ^ a[7] ^ a[12] ^ a[17] ^ a[22];
	uint64_t c3 = a[3] ^ a[8] ^ a[13] ^ a[18] ^ a[23];
	uint64_t c4 = a[4] ^ a[9] ^ a[14] ^ a[19] ^ a[24];
	uint64_t d0 = c4 ^ rotate_word(c1, 1);
	uint64_t d1 = c0 ^ rotate_word(c2, 1);
	uint64_t d2 = c1 ^ rotate_word(c3, 1);
	uint64_t d3 = c2 ^ rotate_word(c4, 1);
	uint64_t d4 = c3 ^ rotate_word(c0, 1);

	row_x1(e, a[0] ^ d0, rotate_word(a[6] ^ d1, 44), rotate_word(a[12] ^ d2, 43),
	    rotate_word(a[18] ^ d3, 21), rotate_word(a[24] ^ d4, 14));
	e[0] ^= round_constant;
	row_x1(e + 5, rotate_word(a[3] ^ d3, 28), rotate_word(a[9] ^ d4, 20),
	    rotate_word(a[10] ^ d0, 3), rotate_word(a[16] ^ d1, 45),
	    rotate_word(a[22] ^ d2, 61));
	row_x1(e + 10, rotate_word(a[1] ^ d1, 1), rotate_word(a[7] ^ d2, 6),
	    rotate_word(a[13] ^ d3, 25), rotate_word(a[19] ^ d4, 8),
	    rotate_word(a[20] ^ d0, 18));
	row_x1(e + 15, rotate_word(a[4] ^ d4, 27), rotate_word(a[5] ^ d0, 36),
	    rotate_word(a[11] ^ d1, 10), rotate_word(a[17] ^ d2, 15),
	    rotate_word(a[23] ^ d3, 56));
	row_x1(e + 20, rotate_word(a[2] ^ d2, 62), rotate_word(a[8] ^ d3, 55),
	    rotate_word(a[14] ^ d4, 39), rotate_word(a[15] ^ d0, 41),
	    rotate_word(a[21] ^ d1, 2));
}

/* One lane of four. */
static void
permute_x1(uint64_t *state)
{
	uint64_t a[KECCAK_WORDS], e[KECCAK_WORDS];

	for (unsigned i = 0; i < KECCAK_WORDS; i++)
		a[i] = state[i * LANES];
	for (unsigned i = 0; i < 24; i += 2) {
		round_x1(e, a, round_constants[i]);
		round_x1(a, e, round_constants[i + 1]);
	}
	for (unsigned i = 0; i < KECCAK_WORDS; i++)
		state[i * LANES] = a[i];
}

/*
 * A lane alone is a third cheaper in the scalar registers, where a rotation is one
 * instruction: so are the nine blocks of H(ek) at the end of a lone key generation.
 */
void
keccak_avx2(uint64_t *state, unsigned active)
{
	if ((active & (active - 1)) == 0)
		permute_x1(state + __builtin_ctz(active | 1u << (LANES - 1)));
	else
		permute_x4(state);
}

/* Word j of register i becomes word i of register j. */
static always_inline void
transpose(__m256i r[LANES])
{
	__m256i t0 = _mm256_unpacklo_epi64(r[0], r[1]);
	__m256i t1 = _mm256_unpackhi_epi64(r[0], r[1]);
	__m256i t2 = _mm256_unpacklo_epi64(r[2], r[3]);
	__m256i t3 = _mm256_unpackhi_epi64(r[2], r[3]);

	r[0] = _mm256_permute2x128_si256(t0, t2, 0x20);
	r[1] = _mm256_permute2x128_si256(t1, t3, 0x20);
	r[2] = _mm256_permute2x128_si256(t0, t2, 0x31);
	r[3] = _mm256_permute2x128_si256(t1, t3, 0x31);
}

static always_inline unsigned
most(const uint8_t *words)
{
	unsigned n = 0;

	for (unsigned lane = 0; lane < LANES; lane++)
		n = words[lane] > n ? words[lane] : n;
	return n;
}

/* Words `at` to `at` + 3 of each lane, zeros behind those that it has. */
static always_inline void
gather(__m256i r[LANES], const uint8_t *const *block, const uint8_t *words, unsigned at)
{
	const __m256i number = _mm256_setr_epi64x(0, 1, 2, 3);

	for (unsigned lane = 0; lane < LANES; lane++) {
		__m256i left = _mm256_set1_epi64x((long long)words[lane] - at);

		r[lane] = _mm256_maskload_epi64(
		    (const long long *)(const void *)(block[lane] + 8 * at),
		    _mm256_cmpgt_epi64(left, number));
	}
	transpose(r);
}

/* The highest bit of word `last` of the lanes that end there. */
static always_inline void
flip_top(__m256i *word, __m256i ends, unsigned last)
{
	__m256i here = _mm256_cmpeq_epi64(ends, _mm256_set1_epi64x(last + 1));

	word[last] = XOR(word[last], _mm256_slli_epi64(here, 63));
}

void
absorb_avx2(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh)
{
	const __m256i bits = _mm256_setr_epi64x(1, 2, 4, 8);
	__m256i old = _mm256_cmpeq_epi64(_mm256_setzero_si256(),
	    _mm256_and_si256(bits, _mm256_set1_epi64x((long long)fresh)));
	__m256i ends = _mm256_cvtepu8_epi64(_mm_loadu_si32(end));
	__m256i *word = (__m256i *)(void *)state;
	unsigned n = most(words), at = 0;

	for (; at < n; at += 4) {
		__m256i r[LANES];

		gather(r, block, words, at);
		for (unsigned i = 0; i < 4; i++)
			word[at + i] = XOR(_mm256_and_si256(word[at + i], old), r[i]);
	}
	for (; at < KECCAK_WORDS && fresh != 0; at++)
		word[at] = _mm256_and_si256(word[at], old);
	flip_top(word, ends, 8);
	flip_top(word, ends, 16);
	flip_top(word, ends, 20);
}

void
squeeze_avx2(const uint64_t *state, uint8_t *const *out, const uint8_t *words)
{
	const __m256i *word = (const __m256i *)(const void *)state;
	unsigned n = most(words);

	for (unsigned at = 0; at < n; at += 4) {
		__m256i r[LANES];

		for (unsigned i = 0; i < 4; i++)
			r[i] = word[at + i];
		transpose(r);
		for (unsigned lane = 0; lane < LANES; lane++) {
			if (words[lane] > at)
				store_at(out[lane] + 8 * at, r[lane]);
		}
	}
}
