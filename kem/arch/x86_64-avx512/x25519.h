/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * x25519.h: X25519 (RFC 7748 section 5) for eight independent keys at once, one a lane of
 * AVX-512 IFMA. Stateless; any thread. No branch, address or division depends on a key,
 * on a peer's share or on a result.
 *
 * All eight lanes are always worked: a caller with fewer points the rest at any readable
 * 32 bytes and at outputs that it throws away. Strings have any alignment; an output may
 * be one of the inputs. Private keys are clamped here (section 5).
 *
 * work: X25519_WORK_BYTES, 64-byte aligned. It holds secrets while a call runs and is
 * wiped before the call returns; registers and what the compiler spilled are the
 * caller's to wipe, with the stack that all kernels use.
 */
#ifndef MLKEMD_KEM_AVX512_X25519_H
#define MLKEMD_KEM_AVX512_X25519_H

#include <stdint.h>

#include "../backend.h"

/* out[lane] = X25519(private_key[lane], 9) */
void x25519_base8_avx512(uint8_t *const out[X25519_LANES],
    const uint8_t *const private_key[X25519_LANES], uint8_t *work);

/*
 * out[lane] = X25519(private_key[lane], peer[lane]); any peer is taken (section 5).
 * Returns the mask of the lanes whose result is all zero (section 6.1).
 */
unsigned x25519_shared8_avx512(uint8_t *const out[X25519_LANES],
    const uint8_t *const private_key[X25519_LANES],
    const uint8_t *const peer[X25519_LANES], uint8_t *work);

#endif
