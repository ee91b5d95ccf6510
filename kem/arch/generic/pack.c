/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Compress and ByteEncode, ByteDecode and Decompress (FIPS 203 4.2.1). Division by q is
 * a multiplication by a constant that is exact for every x in [0, q): compilers turn a
 * constant divisor into a divide instruction at -O0 and -Os, whose time tells the
 * secret (KyberSlash). The tests go through all x.
 */
#include "../../ct.h"
#include "generic.h"

static inline uint32_t
compress1(int16_t x)
{
	return (canonical(x) * 315 + (1u << 18)) >> 19 & 1;
}

static inline uint32_t
compress4(int16_t x)
{
	return (canonical(x) * 315 + (1u << 15)) >> 16 & 15;
}

static inline uint32_t
compress5(int16_t x)
{
	return (canonical(x) * 315 + (1u << 14)) >> 15 & 31;
}

/* For d = 10 and 11 no factor is exact within 32 bits. */
static inline uint64_t
compress10(int16_t x)
{
	return (((uint64_t)canonical(x) << 10) + 1665) * 1290167 >> 32 & 0x3ff;
}

static inline uint64_t
compress11(int16_t x)
{
	return (((uint64_t)canonical(x) << 11) + 1664) * 645084 >> 31 & 0x7ff;
}

static inline int16_t
decompress(uint64_t y, unsigned d)
{
	return (int16_t)(((uint32_t)y * MLKEM_Q + (1u << (d - 1))) >> d);
}

void
compress1_generic(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < MLKEM_N / 8; i++) {
		uint32_t byte = 0;

		for (unsigned j = 0; j < 8; j++)
			byte |= compress1(a[8 * i + j]) << j;
		out[i] = (uint8_t)byte;
	}
}

void
compress4_generic(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < MLKEM_N / 2; i++)
		out[i] = (uint8_t)(compress4(a[2 * i]) | compress4(a[2 * i + 1]) << 4);
}

/* Eight values of 5 bits are 5 bytes. */
void
compress5_generic(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < MLKEM_N / 8; i++) {
		uint64_t t = 0;

		for (unsigned j = 0; j < 8; j++)
			t |= (uint64_t)compress5(a[8 * i + j]) << 5 * j;
		for (unsigned j = 0; j < 5; j++)
			out[5 * i + j] = (uint8_t)(t >> 8 * j);
	}
}

/* Four values of 10 bits are 5 bytes. */
void
compress10_generic(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < MLKEM_N / 4; i++) {
		uint64_t t = 0;

		for (unsigned j = 0; j < 4; j++)
			t |= compress10(a[4 * i + j]) << 10 * j;
		for (unsigned j = 0; j < 5; j++)
			out[5 * i + j] = (uint8_t)(t >> 8 * j);
	}
}

/* Eight values of 11 bits are 11 bytes: 64 bits, which end within value 5, and 24. */
void
compress11_generic(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < MLKEM_N / 8; i++) {
		uint64_t t[8], hi;

		for (unsigned j = 0; j < 8; j++)
			t[j] = compress11(a[8 * i + j]);
		store64(out + 11 * i, t[0] | t[1] << 11 | t[2] << 22 | t[3] << 33 |
					  t[4] << 44 | t[5] << 55);
		hi = t[5] >> 9 | t[6] << 2 | t[7] << 13;
		for (unsigned j = 0; j < 3; j++)
			out[11 * i + 8 + j] = (uint8_t)(hi >> 8 * j);
	}
}

/* The message: a bit is 0 or 1665, by a mask that no compiler can see through. */
void
decompress1_generic(int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < MLKEM_N / 8; i++) {
		for (unsigned j = 0; j < 8; j++)
			r[8 * i + j] =
			    (int16_t)(ct_mask_bit((uint64_t)in[i] >> j) & 1665);
	}
}

void
decompress4_generic(int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < MLKEM_N / 2; i++) {
		r[2 * i] = decompress(in[i] & 15, 4);
		r[2 * i + 1] = decompress(in[i] >> 4, 4);
	}
}

void
decompress5_generic(int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < MLKEM_N / 8; i++) {
		uint64_t t = load32(in + 5 * i) | (uint64_t)in[5 * i + 4] << 32;

		for (unsigned j = 0; j < 8; j++)
			r[8 * i + j] = decompress(t >> 5 * j & 31, 5);
	}
}

void
decompress10_generic(int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < MLKEM_N / 4; i++) {
		uint64_t t = load32(in + 5 * i) | (uint64_t)in[5 * i + 4] << 32;

		for (unsigned j = 0; j < 4; j++)
			r[4 * i + j] = decompress(t >> 10 * j & 0x3ff, 10);
	}
}

void
decompress11_generic(int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < MLKEM_N / 8; i++) {
		const uint8_t *p = in + 11 * i;
		uint64_t lo = load64(p);
		uint64_t hi = p[8] | (uint64_t)p[9] << 8 | (uint64_t)p[10] << 16;

		for (unsigned j = 0; j < 5; j++)
			r[8 * i + j] = decompress(lo >> 11 * j & 0x7ff, 11);
		r[8 * i + 5] = decompress((lo >> 55 | hi << 9) & 0x7ff, 11);
		r[8 * i + 6] = decompress(hi >> 2 & 0x7ff, 11);
		r[8 * i + 7] = decompress(hi >> 13, 11);
	}
}

void
pack12_generic(uint8_t *out, const int16_t *a)
{
	for (unsigned i = 0; i < MLKEM_N / 2; i++) {
		uint32_t t = canonical(a[2 * i]) | canonical(a[2 * i + 1]) << 12;

		out[3 * i] = (uint8_t)t;
		out[3 * i + 1] = (uint8_t)(t >> 8);
		out[3 * i + 2] = (uint8_t)(t >> 16);
	}
}

void
unpack12_generic(int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < MLKEM_N / 2; i++) {
		r[2 * i] = (int16_t)(in[3 * i] | (in[3 * i + 1] & 15) << 8);
		r[2 * i + 1] = (int16_t)(in[3 * i + 1] >> 4 | in[3 * i + 2] << 4);
	}
}
