/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For look_at_code.py: the helpers of ct.h as functions, which have to pass, and what it
 * must find with every compiler, a function for each of its rules.
 */
#include "kem/arch/backend.h"
#include "kem/ct.h"

uint64_t helper_barrier(uint64_t x);
uint64_t helper_nonzero(uint64_t x);
uint64_t helper_bit(uint64_t x);
uint64_t helper_select(uint64_t mask, uint64_t a, uint64_t b);
void planted_division(uint8_t *out, const int16_t *a, unsigned q);
void planted_branch(volatile int16_t *r, const uint8_t *in);
uint64_t planted_early_exit(const uint8_t *a, const uint8_t *b, size_t len);
void planted_index(uint8_t *out, const uint8_t *in, const uint8_t *table);
void planted_store(uint8_t *count, const uint8_t *in);
void planted_call(uint8_t *out, const uint8_t *in);
void planted_mask(uint8_t *out, const uint8_t *a, const uint8_t *b);

uint64_t
helper_barrier(uint64_t x)
{
	return ct_barrier(x);
}

uint64_t
helper_nonzero(uint64_t x)
{
	return ct_mask_nonzero(x);
}

uint64_t
helper_bit(uint64_t x)
{
	return ct_mask_bit(x);
}

uint64_t
helper_select(uint64_t mask, uint64_t a, uint64_t b)
{
	return ct_select(mask, a, b);
}

/* Compress_1 as its definition has it; compilers that know q may multiply. */
void
planted_division(uint8_t *out, const int16_t *a, unsigned q)
{
	for (unsigned i = 0; i < MLKEM_N; i++)
		out[i] = (uint8_t)((((uint32_t)a[i] << 1) + q / 2) / q & 1);
}

/* What clang made of the mask of a message's bit. */
void
planted_branch(volatile int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < MLKEM_N; i++) {
		r[i] = 0;
		if (in[i / 8] >> i % 8 & 1)
			r[i] = (MLKEM_Q + 1) / 2;
	}
}

uint64_t
planted_early_exit(const uint8_t *a, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (a[i] != b[i])
			return 1;
	}
	return 0;
}

/* A table of logarithms, a comb, an S-box ... */
void
planted_index(uint8_t *out, const uint8_t *in, const uint8_t *table)
{
	for (unsigned i = 0; i < 32; i++)
		out[i] = table[in[i] & 15];
}

void
planted_store(uint8_t *count, const uint8_t *in)
{
	for (unsigned i = 0; i < 32; i++)
		count[in[i]]++;
}

/* By way of a mask that goes through a local variable. */
void
planted_mask(uint8_t *out, const uint8_t *a, const uint8_t *b)
{
	volatile uint64_t differs = 0;

	for (unsigned i = 0; i < 32; i++)
		differs |= (uint64_t)(a[i] ^ b[i]);
	for (unsigned i = 0; differs != 0 && i < 32; i++)
		out[i] = 0;
}

static __attribute__((noinline)) void
called(uint8_t *out, unsigned weight)
{
	if (weight > 20)
		*(volatile uint8_t *)out = 0;
}

/* In a function that is given the secret as a number. */
void
planted_call(uint8_t *out, const uint8_t *in)
{
	called(out, in[0] & 31u);
	called(out + 1, in[1] & 31u);
}
