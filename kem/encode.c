/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "encode.h"

size_t
compress_bytes(enum compress d)
{
	static const uint16_t bytes[N_COMPRESS] = {
	    [COMPRESS_1] = 32,
	    [COMPRESS_4] = 128,
	    [COMPRESS_5] = 160,
	    [COMPRESS_10] = 320,
	    [COMPRESS_11] = 352,
	};

	return bytes[d];
}

void
polyvec_encode(
    const struct backend *backend, uint8_t *out, const struct poly *p, unsigned k)
{
	for (unsigned j = 0; j < k; j++)
		backend->pack12(out + j * POLY_BYTES, p[j].c);
}

void
polyvec_decode(
    const struct backend *backend, struct poly *p, const uint8_t *in, unsigned k)
{
	for (unsigned j = 0; j < k; j++)
		backend->unpack12(p[j].c, in + j * POLY_BYTES);
}

void
polyvec_decompress(const struct backend *backend, struct poly *p, enum compress d,
    const uint8_t *in, unsigned k)
{
	size_t bytes = compress_bytes(d);

	for (unsigned j = 0; j < k; j++)
		backend->decompress[d](p[j].c, in + j * bytes);
}

unsigned
polyvec_check(const struct backend *backend, const uint8_t *in, unsigned k)
{
	unsigned over = 0;

	for (unsigned j = 0; j < k; j++)
		over |= backend->check12(in + j * POLY_BYTES);
	return over;
}
