/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * mlkem.h: ML-KEM (FIPS 203 ch. 6) for one group of 1 to KEM_GROUP_MAX items of one
 * parameter set. Deterministic: d, z and m are given; lengths were checked by the caller
 * (kem.c), who passes only items that may be worked. Inside kem/ only.
 */
#ifndef MLKEMD_MLKEM_H
#define MLKEMD_MLKEM_H

#include "kem.h"

struct backend;

/* The front of a kem_scratch is kem.c's and hybrid.c's, the rest is the group's work. */
#define KEM_FRONT_BYTES  8192
#define MLKEM_WORK_BYTES (KEM_SCRATCH_BYTES - KEM_FRONT_BYTES)

struct mlkem_keygen_item {
	const uint8_t *d, *z; /* 32 each */
	uint8_t *ek;          /* out: 384k + 32 */
	uint8_t *secret;      /* out: s^ 384k || H(ek) 32 || z 32 */
};

struct mlkem_encaps_item {
	const uint8_t *ek;      /* 384k + 32 */
	const uint8_t *m;       /* 32 */
	uint8_t *ct;            /* out */
	uint8_t *shared;        /* out: 32 */
	enum kem_status status; /* KEM_OK or KEM_E_SHARE */
};

struct mlkem_decaps_item {
	const uint8_t *s, *ek, *h, *z;
	bool trusted; /* false: check H(ek) = h (FIPS 203 7.3) beside the matrix */
	const uint8_t *ct;
	uint8_t *shared;        /* out: 32 */
	enum kem_status status; /* KEM_OK or KEM_E_KEY */
};

/* Alg. 16, 17, 18. work is 64-aligned, MLKEM_WORK_BYTES, and wiped before return. */
void mlkem_keygen(const struct backend *backend, enum kem_alg set,
    struct mlkem_keygen_item *items, size_t n, uint8_t *work);
void mlkem_encaps(const struct backend *backend, enum kem_alg set,
    struct mlkem_encaps_item *items, size_t n, uint8_t *work);
void mlkem_decaps(const struct backend *backend, enum kem_alg set,
    struct mlkem_decaps_item *items, size_t n, uint8_t *work);

/* 7.2 and 7.3 alone, for keys that are only looked at. */
void mlkem_check_ek(const struct backend *backend, enum kem_alg set,
    struct mlkem_encaps_item *items, size_t n, uint8_t *work);
void mlkem_check_dk(const struct backend *backend, enum kem_alg set,
    struct mlkem_decaps_item *items, size_t n, uint8_t *work);

#endif
