/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "fe.h"

#include <string.h>

/* Eight strings become four vectors of little-endian words, word i of every lane. */
static void
words_load(__m512i w[4], const uint8_t *const in[FE_LANES])
{
	for (unsigned i = 0; i < 4; i++) {
		int64_t x[FE_LANES];

		for (unsigned lane = 0; lane < FE_LANES; lane++)
			memcpy(&x[lane], in[lane] + 8 * i, 8);
		w[i] =
		    _mm512_setr_epi64(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
	}
}

void
fe_load(struct fe *r, const uint8_t *const in[FE_LANES])
{
	const __m512i mask = _mm512_set1_epi64(FE_MASK);
	__m512i w[4];

	words_load(w, in);
	r->v[0] = w[0];
	r->v[1] = _mm512_shrdi_epi64(w[0], w[1], 51);
	r->v[2] = _mm512_shrdi_epi64(w[1], w[2], 38);
	r->v[3] = _mm512_shrdi_epi64(w[2], w[3], 25);
	r->v[4] = _mm512_srli_epi64(w[3], 12);
	for (unsigned i = 0; i < FE_LIMBS; i++)
		r->v[i] = _mm512_and_si512(r->v[i], mask);
}

void
scalar_load(__m512i w[4], const uint8_t *const in[FE_LANES])
{
	words_load(w, in);
	w[0] = _mm512_and_si512(w[0], _mm512_set1_epi64(-8));
	w[3] = _mm512_and_si512(w[3], _mm512_set1_epi64(INT64_MAX));
	w[3] = _mm512_or_si512(w[3], _mm512_set1_epi64(INT64_C(1) << 62));
}

/*
 * The canonical value. A reduced element is below 2^255 + 2^221 < 2p, so that p is to be
 * subtracted once or not at all: once if adding 19 carries out of bit 255, and then
 * adding 19 and forgetting that bit is the subtraction.
 */
void
fe_freeze(struct fe *a)
{
	const __m512i mask = _mm512_set1_epi64(FE_MASK);
	__m512i carry = _mm512_set1_epi64(19);

	limbs_check(a->v, FE_MAX);
	for (unsigned i = 0; i < FE_LIMBS; i++)
		carry = _mm512_srli_epi64(add(a->v[i], carry), 51);
	if (fault("x25519-lanes-freeze"))
		carry = _mm512_setzero_si512();
	carry = _mm512_maskz_set1_epi64(_mm512_test_epi64_mask(carry, carry), 19);
	for (unsigned i = 0; i < FE_LIMBS; i++) {
		__m512i x = add(a->v[i], carry);

		a->v[i] = _mm512_and_si512(x, mask);
		carry = _mm512_srli_epi64(x, 51);
	}
}

__mmask8
fe_zeros(const struct fe *a)
{
	__m512i any = a->v[0];

	for (unsigned i = 1; i < FE_LIMBS; i++)
		any = _mm512_or_si512(any, a->v[i]);
	return _mm512_testn_epi64_mask(any, any);
}

unsigned
fe_store(uint8_t *const out[FE_LANES], struct fe *a)
{
	_Alignas(64) uint64_t words[4][FE_LANES];

	fe_freeze(a);
	for (unsigned i = 0; i < 4; i++)
		_mm512_store_si512(
		    words[i], _mm512_or_si512(_mm512_srli_epi64(a->v[i], 13 * i),
				  _mm512_slli_epi64(a->v[i + 1], 51 - 13 * i)));
	for (unsigned lane = 0; lane < FE_LANES; lane++)
		for (unsigned i = 0; i < 4; i++)
			memcpy(out[lane] + 8 * i, &words[i][lane], 8);
	ct_wipe(words, sizeof words);
	return fe_zeros(a);
}
