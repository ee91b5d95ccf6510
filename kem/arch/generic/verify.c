/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../../ct.h"
#include "generic.h"

unsigned
check12_generic(const uint8_t *in)
{
	uint32_t over = 0;

	for (unsigned i = 0; i < MLKEM_N / 2; i++) {
		uint32_t t0 = in[3 * i] | (in[3 * i + 1] & 15u) << 8;
		uint32_t t1 = in[3 * i + 1] >> 4 | (uint32_t)in[3 * i + 2] << 4;

		over |= (MLKEM_Q - 1 - t0) | (MLKEM_Q - 1 - t1);
	}
	return over >> 31; /* some difference was negative */
}

uint64_t
compare_generic(const uint8_t *a, const uint8_t *b, size_t len)
{
	uint64_t diff = 0;
	size_t i = 0;

	for (; i + 8 <= len; i += 8)
		diff |= load64(a + i) ^ load64(b + i);
	for (; i < len; i++)
		diff |= (uint64_t)(a[i] ^ b[i]);
	return ct_barrier(diff);
}

void
select_generic(
    uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask)
{
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)ct_select(mask, a[i], b[i]);
}
