/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Eight Keccak states at once, word i of all lanes in one register. Lanes are the eight
 * words of a register: bytes come and go by transposing 8 words of 8 lanes.
 */
#include <stdbool.h>
#include <string.h>

#include "avx512.h"

#define LANES 8

/* FIPS 202 3.2.5. */
static const uint64_t round_constants[24] = {0x0000000000000001, 0x0000000000008082,
    0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b,
    0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080,
    0x0000000080000001, 0x8000000080008008};

#define VEC          __m512i
#define PERMUTE      permute_x8
#define TERNARY      _mm512_ternarylogic_epi64
#define ROTATE       _mm512_rol_epi64
#define XOR          _mm512_xor_si512
#define BROADCAST(x) _mm512_set1_epi64((long long)(x))
#define LOAD(p)      _mm512_load_si512(p)
#define STORE(p, a)  _mm512_store_si512(p, a)
#include "keccak_rounds.h"

#define VEC          __m256i
#define PERMUTE      permute_x4
#define TERNARY      _mm256_ternarylogic_epi64
#define ROTATE       _mm256_rol_epi64
#define XOR          _mm256_xor_si256
#define BROADCAST(x) _mm256_set1_epi64x((long long)(x))
#define LOAD(p)      _mm256_load_si256((const __m256i *)(const void *)(p))
#define STORE(p, a)  _mm256_store_si256((__m256i *)(void *)(p), a)
#include "keccak_rounds.h"

/*
 * Half a register costs half the time where the CPU works 512 bits in two halves (Zen 4:
 * 0.54), and that is what the last blocks of a lone operation are worth: few are active.
 */
void
keccak_avx512(uint64_t *state, unsigned active)
{
	if (active < 1u << LANES / 2)
		permute_x4(state);
	else if (active % (1u << LANES / 2) == 0)
		permute_x4(state + LANES / 2);
	else
		permute_x8(state);
}

/* Word j of register i becomes word i of register j. */
static always_inline void
transpose(__m512i r[LANES])
{
	__m512i t[LANES], u[LANES];

	for (unsigned i = 0; i < LANES; i += 2) {
		t[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
		t[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
	}
	/* t[i + j]: of registers i and i + 1 the words j, j + 2, j + 4, j + 6. */
	for (unsigned i = 0; i < LANES; i += 4) {
		for (unsigned j = 0; j < 2; j++) {
			u[i + j] = _mm512_shuffle_i64x2(t[i + j], t[i + j + 2], 0x88);
			u[i + j + 2] =
			    _mm512_shuffle_i64x2(t[i + j], t[i + j + 2], 0xdd);
		}
	}
	/* u[i + j]: of registers i to i + 3 the words j and j + 4. */
	for (unsigned j = 0; j < 4; j++) {
		r[j] = _mm512_shuffle_i64x2(u[j], u[j + 4], 0x88);
		r[j + 4] = _mm512_shuffle_i64x2(u[j], u[j + 4], 0xdd);
	}
}

/* Four words of the lower four lanes: as lanes of 32 bytes. */
static always_inline void
transpose_half(__m256i r[LANES / 2])
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

/* Words first to last - 1 of the lanes that are kept; the others are zeroed. */
static always_inline void
keep_lanes(uint64_t *state, __mmask8 keep, unsigned first, unsigned last)
{
	for (unsigned i = first; i < last; i++)
		_mm512_store_si512(state + i * LANES,
		    _mm512_maskz_load_epi64(keep, state + i * LANES));
}

/* Words 8 chunk to 8 chunk + 7 of each lane, none behind those that it has. */
static always_inline void
absorb_chunk(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    __mmask8 keep, unsigned chunk)
{
	__m512i r[LANES];

	for (unsigned lane = 0; lane < LANES; lane++) {
		uint32_t mask = (1u << words[lane]) - 1;

		r[lane] = _mm512_maskz_loadu_epi64(
		    (__mmask8)(mask >> 8 * chunk), block[lane] + 64 * chunk);
	}
	transpose(r);
	for (unsigned i = 0; i < 8; i++) {
		uint64_t *word = state + (8 * chunk + i) * LANES;
		__m512i old = _mm512_maskz_load_epi64(keep, word);

		_mm512_store_si512(word, _mm512_xor_si512(old, r[i]));
	}
}

/* A lane alone, word by word. */
static void
absorb_lane(uint64_t *state, const uint8_t *block, unsigned words, unsigned lane)
{
	__mmask8 only = (__mmask8)(1u << lane);

	for (unsigned i = 0; i < words; i++) {
		uint64_t *word = state + i * LANES;
		__m512i old = _mm512_load_si512(word);
		long long x;

		memcpy(&x, block + 8 * i, sizeof x);
		_mm512_store_si512(
		    word, _mm512_mask_xor_epi64(old, only, old, _mm512_set1_epi64(x)));
	}
}

/* The top bit of word last of the lanes that end there. */
static always_inline void
flip_top(uint64_t *state, __m128i end, unsigned last)
{
	__mmask8 lanes =
	    (__mmask8)_mm_cmpeq_epi8_mask(end, _mm_set1_epi8((char)(last + 1)));
	uint64_t *word = state + last * LANES;
	__m512i top = _mm512_maskz_set1_epi64(lanes, INT64_MIN);

	_mm512_store_si512(word, _mm512_xor_si512(_mm512_load_si512(word), top));
}

/* Is anything asked for the upper four lanes? */
static always_inline bool
has_upper(const uint8_t *words)
{
	uint32_t upper;

	memcpy(&upper, words + LANES / 2, sizeof upper);
	return upper != 0;
}

/* The lower four lanes of a word. */
static always_inline __m256i *
half(uint64_t *state, unsigned word)
{
	return (__m256i *)(void *)(state + word * LANES);
}

static always_inline void
absorb_half_chunk(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    __mmask8 keep, unsigned chunk)
{
	__m256i r[LANES / 2];

	for (unsigned lane = 0; lane < LANES / 2; lane++) {
		uint32_t mask = (1u << words[lane]) - 1;

		r[lane] = _mm256_maskz_loadu_epi64(
		    (__mmask8)(mask >> 4 * chunk & 15), block[lane] + 32 * chunk);
	}
	transpose_half(r);
	for (unsigned i = 0; i < 4; i++) {
		__m256i *word = half(state, 4 * chunk + i);

		_mm256_store_si256(
		    word, _mm256_xor_si256(_mm256_maskz_load_epi64(keep, word), r[i]));
	}
}

static void
absorb_half_lane(uint64_t *state, const uint8_t *block, unsigned words, unsigned lane)
{
	__mmask8 only = (__mmask8)(1u << lane);

	for (unsigned i = 0; i < words; i++) {
		__m256i *word = half(state, i), old = _mm256_load_si256(word);
		long long x;

		memcpy(&x, block + 8 * i, sizeof x);
		_mm256_store_si256(
		    word, _mm256_mask_xor_epi64(old, only, old, _mm256_set1_epi64x(x)));
	}
}

/* By register, since the permutation loads it as one. */
static always_inline void
flip_half(__m256i *word, unsigned lane)
{
	__m256i top = _mm256_maskz_set1_epi64((__mmask8)(1u << lane), INT64_MIN);

	_mm256_store_si256(word, _mm256_xor_si256(_mm256_load_si256(word), top));
}

/* absorb where the upper lanes have no part in it. */
static void
absorb_half(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh)
{
	__mmask8 keep = (__mmask8)~fresh;
	unsigned n = 0, most = 0, done = 0;

	for (unsigned lane = 0; lane < LANES / 2; lane++) {
		n += words[lane] != 0;
		most = words[lane] > most ? words[lane] : most;
	}
	if (n > 1) {
		for (; done < most; done += 4)
			absorb_half_chunk(state, block, words, keep, done / 4);
	}
	for (; fresh != 0 && done < KECCAK_WORDS; done++) {
		__m256i *word = half(state, done);

		_mm256_store_si256(word, _mm256_maskz_load_epi64(keep, word));
	}
	for (unsigned lane = 0; n == 1 && lane < LANES / 2; lane++)
		absorb_half_lane(state, block[lane], words[lane], lane);
	for (unsigned lane = 0; lane < LANES / 2; lane++) {
		if (end[lane] != 0)
			flip_half(half(state, end[lane] - 1u), lane);
	}
}

/*
 * Transposing costs the same for one lane and for eight, and three times as much for 21
 * words as for the 8 or fewer of a seed: so one or two lanes go by themselves, and words
 * that nobody has are left out.
 */
void
absorb_avx512(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh)
{
	__m128i ends = _mm_loadl_epi64((const __m128i *)(const void *)end);
	__mmask8 keep = (__mmask8)~fresh;
	unsigned n = 0, most = 0;

	if (!has_upper(words) && !has_upper(end) && fresh < 1u << LANES / 2) {
		absorb_half(state, block, words, end, fresh);
		return;
	}
	for (unsigned lane = 0; lane < LANES; lane++) {
		n += words[lane] != 0;
		most = words[lane] > most ? words[lane] : most;
	}
	if (n <= 2) {
		if (fresh != 0)
			keep_lanes(state, keep, 0, KECCAK_WORDS);
		for (unsigned lane = 0; lane < LANES; lane++)
			absorb_lane(state, block[lane], words[lane], lane);
	} else {
		absorb_chunk(state, block, words, keep, 0);
		if (most > 8)
			absorb_chunk(state, block, words, keep, 1);
		else if (fresh != 0)
			keep_lanes(state, keep, 8, 16);
		if (most > 16)
			absorb_chunk(state, block, words, keep, 2);
		else if (fresh != 0)
			keep_lanes(state, keep, 16, 24);
		if (fresh != 0)
			keep_lanes(state, keep, 24, KECCAK_WORDS);
	}
	flip_top(state, ends, 8);
	flip_top(state, ends, 16);
	flip_top(state, ends, 20);
}

static void
squeeze_half(const uint64_t *state, uint8_t *const *out, const uint8_t *words)
{
	for (unsigned chunk = 0; chunk < 6; chunk++) {
		unsigned any = 0;
		__m256i r[LANES / 2];

		for (unsigned lane = 0; lane < LANES / 2; lane++)
			any |= words[lane] > 4 * chunk;
		if (any == 0)
			return;
		for (unsigned i = 0; i < 4; i++)
			r[i] = _mm256_load_si256(
			    (const __m256i *)(const void *)(state +
							    (4 * chunk + i) * LANES));
		transpose_half(r);
		for (unsigned lane = 0; lane < LANES / 2; lane++) {
			if (words[lane] > 4 * chunk)
				_mm256_storeu_si256(
				    (__m256i *)(void *)(out[lane] + 32 * chunk),
				    r[lane]);
		}
	}
}

void
squeeze_avx512(const uint64_t *state, uint8_t *const *out, const uint8_t *words)
{
	if (!has_upper(words)) {
		squeeze_half(state, out, words);
		return;
	}
	for (unsigned chunk = 0; chunk < 3; chunk++) {
		unsigned any = 0;
		__m512i r[LANES];

		for (unsigned lane = 0; lane < LANES; lane++)
			any |= words[lane] > 8 * chunk;
		if (any == 0)
			return;
		for (unsigned i = 0; i < 8; i++)
			r[i] = _mm512_load_si512(state + (8 * chunk + i) * LANES);
		transpose(r);
		for (unsigned lane = 0; lane < LANES; lane++) {
			if (words[lane] > 8 * chunk)
				_mm512_storeu_si512(out[lane] + 64 * chunk, r[lane]);
		}
	}
}
