/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * backend.h: the contract between ML-KEM, which is written once, and the kernels, which
 * are written once for each instruction set. A backend is one const struct of leaf
 * kernels. They know nothing of groups, items or parameter sets, keep nothing, allocate
 * nothing and can't fail; the tests hold every backend against `generic`.
 *
 * Memory. A polynomial is 256 int16_t, 64-byte aligned; r, a, b may not overlap unless a
 * line says so. Byte strings have any alignment, and exactly the bytes named may be read
 * or written, except that buf of rej_uniform and cbd has 64 readable bytes of slack
 * behind it, and out of squeeze room up to the next multiple of 64 bytes.
 *
 * Secrets. All kernels but rej_uniform work on secrets: no branch, index, division or
 * memory address may depend on a value. rej_uniform works on the public matrix.
 *
 * Order. A polynomial in the NTT domain may lie in any order the backend likes: only
 * ntt, rej_uniform (once it returns 256) and unpack12 make such polynomials, only
 * invntt, mulcache, basemul, tomont, add and pack12 read them. Bytes are always in the
 * order of FIPS 203.
 *
 * Ranges. q = 3329, R = 2^16. "any" is any int16_t. Coefficients stand for their class
 * mod q and are made canonical only where they are packed.
 */
#ifndef MLKEMD_KEM_BACKEND_H
#define MLKEMD_KEM_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#define MLKEM_N           256
#define MLKEM_Q           3329
#define BACKEND_LANES_MAX 8
#define KECCAK_WORDS      25
#define X25519_LANES      8
#define X25519_WORK_BYTES 1536

/* The d of Compress_d and Decompress_d (FIPS 203 4.2.1) that ML-KEM uses. */
enum compress {
	COMPRESS_1,
	COMPRESS_4,
	COMPRESS_5,
	COMPRESS_10,
	COMPRESS_11,
	N_COMPRESS,
};

struct backend {
	const char *name;
	unsigned lanes; /* Keccak states worked at once: 1, 4 or 8 */
	unsigned
	    narrow; /* the lowest of them that cost less while no other is active */

	/*
	 * Keccak-f[1600] on `lanes` states (FIPS 202 3.3). The state is transposed and
	 * stays so between all three: word i of a lane is state[i * lanes + lane], 64-byte
	 * aligned, 25 * lanes words. Lanes whose bit is not set in `active` hold anything
	 * afterwards: fewer may be cheaper.
	 */
	void (*keccak)(uint64_t *state, unsigned active);

	/*
	 * Lanes whose bit is set in `fresh` are zeroed first. Then words[lane] little-endian
	 * words of block[lane] are xored into the front of each lane, 0 to 21 of them, not the
	 * same in all lanes; block[lane] is never NULL. Where end[lane] is not 0 but 9, 17 or
	 * 21, the highest bit of word end[lane] - 1 is flipped: the last bit of padding.
	 */
	void (*absorb)(uint64_t *state, const uint8_t *const *block,
	    const uint8_t *words, const uint8_t *end, unsigned fresh);

	/*
	 * Writes the first words[lane] words of each lane to out[lane]; nothing where words is
	 * 0. Up to the next multiple of 64 bytes may be overwritten with anything; out[lane]
	 * is never NULL.
	 */
	void (*squeeze)(
	    const uint64_t *state, uint8_t *const *out, const uint8_t *words);

	/*
	 * SampleNTT's loop (Alg. 7) over len bytes of buf, a multiple of 168: candidates below
	 * q go to r[count], r[count + 1] ... r[255], none behind it; count < 256. Returns the
	 * new count; at 256 the polynomial is complete and the rest of buf is of no interest.
	 * out: [0, q)
	 */
	unsigned (*rej_uniform)(
	    int16_t *r, unsigned count, const uint8_t *buf, size_t len);

	/* SamplePolyCBD (Alg. 8) of 128 and of 192 bytes. out: [-2, 2], [-3, 3] */
	void (*cbd2)(int16_t *r, const uint8_t *buf);
	void (*cbd3)(int16_t *r, const uint8_t *buf);

	/* NTT (Alg. 9) in place. in: |x| <= q, out: |x| < 8q */
	void (*ntt)(int16_t *r);

	/* NTT^-1 (Alg. 10), times R, in place. in: |x| < 2^14, out: |x| < 8q */
	void (*invntt)(int16_t *r);

	/*
	 * For each pair (b0, b1) of an NTT-domain polynomial, b1 times the gamma of the pair
	 * (Alg. 12): half the work of basemul, done once for all rows of the matrix. in what
	 * form is the backend's own: cache has room for 256 values. in: |b| < 8q
	 */
	void (*mulcache)(int16_t *cache, const int16_t *b);

	/*
	 * Sum over j < k (2, 3 or 4) of the products a[j] * b[j] (Alg. 11), times R^-1. a, b
	 * and cache hold k polynomials one behind the other.
	 * in: a in [0, 4095], |b| < 8q, cache as made by mulcache of b; out: |x| < 2^14
	 */
	void (*basemul)(int16_t *r, const int16_t *a, const int16_t *b,
	    const int16_t *cache, unsigned k);

	/* r = r * R. in: |x| < 2^14, out: |x| <= q */
	void (*tomont)(int16_t *r);

	/* r = r + a, r = a - r; no reduction, the caller minds the sum. */
	void (*add)(int16_t *r, const int16_t *a);
	void (*rsub)(int16_t *r, const int16_t *a);

	/* ByteEncode_d(Compress_d(a)) in 32d bytes. in: any */
	void (*compress[N_COMPRESS])(uint8_t *out, const int16_t *a);

	/* Decompress_d(ByteDecode_d(in)) of 32d bytes. out: [0, q) */
	void (*decompress[N_COMPRESS])(int16_t *r, const uint8_t *in);

	/* ByteEncode12 in 384 bytes. in: any, out: canonical */
	void (*pack12)(uint8_t *out, const int16_t *a);

	/* ByteDecode12 of 384 bytes without its reduction. out: [0, 4095] */
	void (*unpack12)(int16_t *r, const uint8_t *in);

	/* The modulus check (7.2): 0 if all 256 values of 384 bytes are below q, else 1. */
	unsigned (*check12)(const uint8_t *in);

	/* 0 if and only if len bytes are equal, else any other value. No early exit. */
	uint64_t (*compare)(const uint8_t *a, const uint8_t *b, size_t len);

	/* len bytes of a where mask is all ones, of b where it is 0; out may be a or b. */
	void (*select)(uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len,
	    uint64_t mask);

	/*
	 * X25519 (RFC 7748 section 5) for X25519_LANES keys at once; NULL in backends that
	 * leave it to libcrypto. All lanes are worked: those that nobody wants point at any
	 * 32 readable bytes and at outputs to be thrown away. Keys are clamped here, peers
	 * are any 32 bytes, an output may be an input, alignment is any. work is
	 * X25519_WORK_BYTES, 64-byte aligned, and wiped before the return.
	 *
	 * base8: out = X25519(key, 9). shared8: out = X25519(key, peer); returns the mask of
	 * lanes whose result is all zero (6.1).
	 */
	void (*x25519_base8)(uint8_t *const out[X25519_LANES],
	    const uint8_t *const key[X25519_LANES], uint8_t *work);
	unsigned (*x25519_shared8)(uint8_t *const out[X25519_LANES],
	    const uint8_t *const key[X25519_LANES],
	    const uint8_t *const peer[X25519_LANES], uint8_t *work);
};

extern const struct backend backend_generic;
extern const struct backend backend_avx2;
extern const struct backend backend_avx512;

#endif
