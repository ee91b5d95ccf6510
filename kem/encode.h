/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * encode.h: vectors of polynomials to bytes and back (FIPS 203 4.2.1, Alg. 5 and 6).
 */
#ifndef MLKEMD_ENCODE_H
#define MLKEMD_ENCODE_H

#include "poly.h"

#define POLY_BYTES    384 /* ByteEncode12 */
#define MESSAGE_BYTES 32

/* Bytes of a polynomial that is compressed to d bits. */
size_t compress_bytes(enum compress d);

/* ByteEncode12 and ByteDecode12 of k polynomials in the NTT domain. */
void polyvec_encode(
    const struct backend *backend, uint8_t *out, const struct poly *p, unsigned k);
void polyvec_decode(
    const struct backend *backend, struct poly *p, const uint8_t *in, unsigned k);

/* Decompress_d(ByteDecode_d()) of k polynomials. */
void polyvec_decompress(const struct backend *backend, struct poly *p, enum compress d,
    const uint8_t *in, unsigned k);

/* The modulus check (7.2) of k polynomials: 0 if all is below q, else 1. */
unsigned polyvec_check(const struct backend *backend, const uint8_t *in, unsigned k);

#endif
