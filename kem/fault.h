/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * fault.h: planted faults, by which the tests show that they can fail. In a build with
 * -Dtest-hooks=true, fault("name") is true when MLKEMD_FAULT names it (a comma list);
 * in every other build it is the constant false and leaves no code behind. fault_build()
 * tells the two kinds of build apart.
 *
 * Such a build also knows MLKEMD_TEST_RANDOM=TEXT: it replaces the random generator by a
 * stream that a test can compute, in order to search memory for every secret. Block n
 * (32 bytes) of a struct kem is SHA-256(TEXT || n as 8 bytes, big-endian); n counts up
 * from 0, and each draw begins with a fresh block. One draw is made
 * - a group of up to 8 key generations without a seed: d || z [|| x25519 private] an item;
 * - a group of up to 8 encapsulations: m an item, then an X25519 private key for each
 *   item of the hybrid that brought no ephemeral, then one for each pair that spare
 *   lanes make;
 * - a group of up to 8 decapsulations: a key for each pair that spare lanes make, if any;
 * - kem_x25519_keygen(): 64 bytes a pair, of which the first 32 are the private key;
 * - kem_random(): what was asked for.
 */
#ifndef MLKEMD_FAULT_H
#define MLKEMD_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evp_md_st; /* OpenSSL's EVP_MD */

#ifdef MLKEMD_TEST_HOOKS
bool fault(const char *name);

static inline bool
fault_build(void)
{
	return true;
}

/* Fills out if MLKEMD_TEST_RANDOM is set, else returns false. */
bool fault_random(const struct evp_md_st *sha256, _Atomic uint64_t *n_blocks,
    uint8_t *out, size_t len);
#else
static inline bool
fault(const char *name)
{
	(void)name;
	return false;
}

static inline bool
fault_build(void)
{
	return false;
}

static inline bool
fault_random(const struct evp_md_st *sha256, _Atomic uint64_t *n_blocks, uint8_t *out,
    size_t len)
{
	(void)sha256, (void)n_blocks, (void)out, (void)len;
	return false;
}
#endif

#endif
