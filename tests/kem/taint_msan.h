/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How secret_flow.c tells MemorySanitizer what is secret; included before all else in each
 * file of that build (clang -include). It also says what comes out of those AVX-512
 * instructions that MemorySanitizer doesn't know: it would report a secret that goes into
 * some (VPTERNLOG), and follow it to the wrong lane through others (VPERMB).
 *
 * A shadow bit is 1 where the value's bit is secret. Values are moved, as far as the
 * sanitizer sees, without secrets, and their shadows beside them by the rules below.
 */
#ifndef MLKEMD_TEST_TAINT_H
#define MLKEMD_TEST_TAINT_H

#include <immintrin.h>
#include <sanitizer/msan_interface.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define taint_works() 1

static inline void
taint(void *p, size_t len)
{
	__msan_poison(p, len);
}

static inline void
untaint(void *p, size_t len)
{
	__msan_unpoison(p, len);
}

/* Whether each byte still counts as secret. */
static inline bool
tainted(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (__msan_test_shadow(p + i, 1) != 0)
			return false;
	}
	return true;
}

/* Where the shadow of memory lies on Linux, x86-64. */
#define shadow_of(p) ((__m512i *)((uintptr_t)(p) ^ UINT64_C(0x500000000000)))

/* Without a trace of the sanitizer, since it works on shadows. */
#define shadow_rule \
 __attribute__((noinline, disable_sanitizer_instrumentation)) static inline void

/* Bit by bit, of 32 or 64 bytes. */
shadow_rule
shadow_bits(void *r, const void *a, const void *b, const void *c, size_t len)
{
	__mmask8 words = (__mmask8)(0xff >> (8 - len / 8));

	_mm512_mask_storeu_epi64(shadow_of(r), words,
	    _mm512_maskz_loadu_epi64(words, shadow_of(a)) |
		_mm512_maskz_loadu_epi64(words, shadow_of(b)) |
		_mm512_maskz_loadu_epi64(words, shadow_of(c)));
}

/* The whole of each double or quad word, from the same one of each operand. */
shadow_rule
shadow_words32(__m512i *r, const __m512i *a, const __m512i *b)
{
	__m512i any = *shadow_of(a) | *shadow_of(b);

	*shadow_of(r) = _mm512_maskz_set1_epi32(_mm512_test_epi32_mask(any, any), -1);
}

shadow_rule
shadow_words64(__m512i *r, const __m512i *a, const __m512i *b, const __m512i *c)
{
	__m512i any = *shadow_of(a) | *shadow_of(b) | *shadow_of(c);

	*shadow_of(r) = _mm512_maskz_set1_epi64(_mm512_test_epi64_mask(any, any), -1);
}

/* By public indices: the shadow goes the way of its value. */
shadow_rule
shadow_bytes(__m512i *r, const __m512i *index, const __m512i *a)
{
	*shadow_of(r) = _mm512_permutexvar_epi8(*index, *shadow_of(a));
}

/* The index may be secret: CBD looks bits up in a register. */
shadow_rule
shadow_shuffle(__m512i *r, const __m512i *a, const __m512i *index)
{
	__m512i secret = *shadow_of(index);

	*shadow_of(r) =
	    _mm512_shuffle_epi8(*shadow_of(a), *index) |
	    _mm512_maskz_set1_epi8(_mm512_test_epi8_mask(secret, secret), -1);
}

shadow_rule
shadow_multishift(__m512i *r, const __m512i *index, const __m512i *a)
{
	*shadow_of(r) = _mm512_multishift_epi64_epi8(*index, *shadow_of(a));
}

shadow_rule
shadow_permute32(__m512i *r, const __m512i *index, const __m512i *a)
{
	*shadow_of(r) = _mm512_permutexvar_epi32(*index, *shadow_of(a));
}

shadow_rule
shadow_compress(__m512i *r, const __mmask32 *mask, const __m512i *a)
{
	*shadow_of(r) = _mm512_maskz_compress_epi16(*mask, *shadow_of(a));
}

/*
 * The same, with an index that may be secret, as the comb of X25519 has them: that is a permutation in
 * registers, and its result is as secret as the index.
 */
shadow_rule
shadow_permute64x2(__m512i *r, const __m512i *a, const __m512i *index, const __m512i *b)
{
	__m512i secret = *shadow_of(index), moved;

	moved = _mm512_permutex2var_epi64(*shadow_of(a), *index, *shadow_of(b));
	*shadow_of(r) =
	    moved | _mm512_maskz_set1_epi64(_mm512_test_epi64_mask(secret, secret), -1);
}

/* The value, which counts as public. */
static inline __m512i
bare(__m512i x)
{
	__m512i copy = x;

	__msan_unpoison(&copy, sizeof copy);
	return copy;
}

static inline __m512i
bare_madd(__m512i a, __m512i b)
{
	__m512i r = _mm512_madd_epi16(bare(a), bare(b));

	shadow_words32(&r, &a, &b);
	return r;
}

static inline __m512i
bare_madd52lo(__m512i a, __m512i b, __m512i c)
{
	__m512i r = _mm512_madd52lo_epu64(bare(a), bare(b), bare(c));

	shadow_words64(&r, &a, &b, &c);
	return r;
}

static inline __m512i
bare_madd52hi(__m512i a, __m512i b, __m512i c)
{
	__m512i r = _mm512_madd52hi_epu64(bare(a), bare(b), bare(c));

	shadow_words64(&r, &a, &b, &c);
	return r;
}

static inline __m512i
bare_bytes(__m512i index, __m512i a)
{
	__m512i r = _mm512_permutexvar_epi8(index, bare(a));

	shadow_bytes(&r, &index, &a);
	return r;
}

static inline __m512i
bare_shuffle(__m512i a, __m512i index)
{
	__m512i r = _mm512_shuffle_epi8(bare(a), bare(index));

	shadow_shuffle(&r, &a, &index);
	return r;
}

static inline __m512i
bare_multishift(__m512i index, __m512i a)
{
	__m512i r = _mm512_multishift_epi64_epi8(index, bare(a));

	shadow_multishift(&r, &index, &a);
	return r;
}

static inline __m512i
bare_permute32(__m512i index, __m512i a)
{
	__m512i r = _mm512_permutexvar_epi32(index, bare(a));

	shadow_permute32(&r, &index, &a);
	return r;
}

/* A secret mask is reported; what it takes away may be secret. */
static inline __m512i
bare_compress(__mmask32 mask, __m512i a)
{
	__m512i r = _mm512_maskz_compress_epi16(mask, bare(a));

	shadow_compress(&r, &mask, &a);
	return r;
}

static inline __m512i
bare_permute64x2(__m512i a, __m512i index, __m512i b)
{
	__m512i r = _mm512_permutex2var_epi64(bare(a), bare(index), bare(b));

	shadow_permute64x2(&r, &a, &index, &b);
	return r;
}

#define bare_ternary(type, builtin, a, b, c, op) \
 __extension__({ \
type a_ = (a), b_ = (b), c_ = (c); \
type bare_a_ = a_, bare_b_ = b_, bare_c_ = c_, r_; \
\
untaint(&bare_a_, sizeof bare_a_); \
untaint(&bare_b_, sizeof bare_b_); \
untaint(&bare_c_, sizeof bare_c_); \
r_ = (type)builtin(bare_a_, bare_b_, bare_c_, op, (__mmask8)-1); \
shadow_bits(&r_, &a_, &b_, &c_, sizeof r_); \
r_; \
 })

/* From here on the kernels' names mean the functions above. */
#define _mm512_maskz_compress_epi16  bare_compress
#define _mm512_madd_epi16            bare_madd
#define _mm512_madd52lo_epu64        bare_madd52lo
#define _mm512_madd52hi_epu64        bare_madd52hi
#define _mm512_permutexvar_epi8      bare_bytes
#define _mm512_permutexvar_epi32     bare_permute32
#define _mm512_permutex2var_epi64    bare_permute64x2
#define _mm512_shuffle_epi8          bare_shuffle
#define _mm512_multishift_epi64_epi8 bare_multishift
#undef _mm512_ternarylogic_epi64
#define _mm512_ternarylogic_epi64(a, b, c, op) \
 bare_ternary(__m512i, __builtin_ia32_pternlogq512_mask, a, b, c, op)
#undef _mm256_ternarylogic_epi64
#define _mm256_ternarylogic_epi64(a, b, c, op) \
 bare_ternary(__m256i, __builtin_ia32_pternlogq256_mask, a, b, c, op)

#endif
