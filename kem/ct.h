/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * ct.h: the few operations on secrets that a compiler must not be clever about. A value
 * that went through ct_barrier() is unknown to the optimiser, so that it can't find out
 * that a mask has two values only and make a branch of it, as clang did of the message
 * bits ("clangover"). Nothing here branches on, indexes by or divides a value.
 */
#ifndef MLKEMD_KEM_CT_H
#define MLKEMD_KEM_CT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t
ct_barrier(uint64_t x)
{
#ifdef MLKEMD_MSAN
	/* MemorySanitizer takes what an asm writes for public, and memory as it is. */
	volatile uint64_t memory = x;

	return memory;
#else
	__asm__ volatile("" : "+r"(x));
	return x;
#endif
}

/* All ones if x is not 0, else 0. */
static inline uint64_t
ct_mask_nonzero(uint64_t x)
{
	x = ct_barrier(x);
	return ct_barrier(0 - ((x | (0 - x)) >> 63));
}

/* All ones if bit 0 of x is set, else 0; the other bits don't matter. */
static inline uint64_t
ct_mask_bit(uint64_t x)
{
	return ct_barrier(0 - (ct_barrier(x) & 1));
}

/* a where mask is set, else b; mask is all ones or 0. */
static inline uint64_t
ct_select(uint64_t mask, uint64_t a, uint64_t b)
{
	return b ^ (ct_barrier(mask) & (a ^ b));
}

/*
 * Overwrites memory although nobody reads it again (FIPS 203 3.3). For kernels, whose
 * libraries link nothing of kem/; kem_wipe() is the same for everybody else.
 */
static inline void
ct_wipe(void *p, size_t len)
{
	if (len != 0)
		explicit_bzero(p, len);
}

#endif
