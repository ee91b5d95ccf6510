/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "generic.h"

/* Alg. 7. Three bytes are two candidates of 12 bits. Public data: it may branch. */
unsigned
rej_uniform_generic(int16_t *r, unsigned count, const uint8_t *buf, size_t len)
{
	for (size_t i = 0; i < len && count < MLKEM_N; i += 3) {
		uint32_t d1 = buf[i] | (buf[i + 1] & 15u) << 8;
		uint32_t d2 = buf[i + 1] >> 4 | (uint32_t)buf[i + 2] << 4;

		if (d1 < MLKEM_Q)
			r[count++] = (int16_t)d1;
		if (d2 < MLKEM_Q && count < MLKEM_N)
			r[count++] = (int16_t)d2;
	}
	return count;
}

/* Alg. 8, eta = 2: bit pairs are added in place, then nibbles are differences. */
void
cbd2_generic(int16_t *r, const uint8_t *buf)
{
	for (unsigned i = 0; i < MLKEM_N / 8; i++) {
		uint32_t t = load32(buf + 4 * i);
		uint32_t sum = (t & 0x55555555) + (t >> 1 & 0x55555555);

		for (unsigned j = 0; j < 8; j++) {
			int a = sum >> 4 * j & 3;
			int b = sum >> (4 * j + 2) & 3;

			r[8 * i + j] = (int16_t)(a - b);
		}
	}
}

/* Alg. 8, eta = 3: the same with triples, 24 bits at a time. */
void
cbd3_generic(int16_t *r, const uint8_t *buf)
{
	for (unsigned i = 0; i < MLKEM_N / 4; i++) {
		uint32_t t = (uint32_t)buf[3 * i] | (uint32_t)buf[3 * i + 1] << 8 |
			     (uint32_t)buf[3 * i + 2] << 16;
		uint32_t sum =
		    (t & 0x249249) + (t >> 1 & 0x249249) + (t >> 2 & 0x249249);

		for (unsigned j = 0; j < 4; j++) {
			int a = sum >> 6 * j & 7;
			int b = sum >> (6 * j + 3) & 7;

			r[4 * i + j] = (int16_t)(a - b);
		}
	}
}
