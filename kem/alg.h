/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * alg.h: which halves an algorithm is made of, for the files of kem/ alone.
 */
#ifndef MLKEMD_KEM_ALG_H
#define MLKEMD_KEM_ALG_H

#include "kem.h"

#define X25519_KEY_BYTES 32
#define SEED_DZ_BYTES    64 /* d || z */
#define SHARED_HALF      32

/* Sizes and parts of the ML-KEM half; the X25519 half, if any, always follows it. */
struct alg_half {
	enum kem_alg set; /* KEM_ALG_MLKEM... */
	bool is_hybrid;
	uint16_t s_bytes;      /* ByteEncode12(s^), 384k */
	uint16_t ek_bytes;     /* 384k + 32 */
	uint16_t ct_bytes;     /* 32 (du k + dv) */
	uint16_t secret_bytes; /* s^ || H(ek) || z */
	uint16_t dk_bytes;     /* 768k + 96 */
};

const struct alg_half *alg_half(enum kem_alg alg);

#endif
