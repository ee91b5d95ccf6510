/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Eight Keccak states at once, word i of all lanes in one register. Lanes are the eight
 * words of a register: bytes come and go by transposing 8 words of 8 lanes.
 */
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

void
squeeze_avx512(const uint64_t *state, uint8_t *const *out, const uint8_t *words)
{
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
