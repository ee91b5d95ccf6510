/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * poly.h: polynomials and vectors of them over a backend's kernels. In builds without
 * optimisation the ranges that backend.h promises and asks for are asserted here.
 */
#ifndef MLKEMD_POLY_H
#define MLKEMD_POLY_H

#include "arch/backend.h"

struct poly {
	_Alignas(64) int16_t c[MLKEM_N];
};

struct mulcache {
	_Alignas(64) int16_t c[MLKEM_N];
};

/* Alg. 9, in place. in: |x| <= q, out: |x| < 8q */
void poly_ntt(const struct backend *backend, struct poly *p);

/* Alg. 10, times R, in place. in: |x| < 2^14, out: |x| < 8q */
void poly_invntt(const struct backend *backend, struct poly *p);

/* See backend.h; k of each. in: |b| < 8q */
void polyvec_mulcache(const struct backend *backend, struct mulcache *cache,
    const struct poly *b, unsigned k);

/* a . b, times R^-1. in: a in [0, 4095], |b| < 8q, out: |x| < 2^14 */
void polyvec_basemul(const struct backend *backend, struct poly *r,
    const struct poly *a, const struct poly *b, const struct mulcache *cache,
    unsigned k);

/* Undoes the R^-1 of basemul. in: |x| < 2^14, out: |x| <= q */
void poly_tomont(const struct backend *backend, struct poly *p);

/* r + a and a - r, into r. in: the sum of both bounds is below 2^15 */
void poly_add(const struct backend *backend, struct poly *r, const struct poly *a);
void poly_rsub(const struct backend *backend, struct poly *r, const struct poly *a);

#endif
