/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "bench.h"

/*
 * Blocks of SHAKE128 for one polynomial of the matrix: three, and a fourth or more where
 * three hold too few values below q (0.83 %), or where another lane needs it, since
 * lanes run together (6.5 % of eight).
 */
#define MATRIX_BLOCKS 3.065

/* Of SHA3-256 and SHAKE256: 136 bytes a block, one more bit at least of padding. */
static unsigned
blocks(unsigned bytes)
{
	return bytes / 136 + 1;
}

/* FIPS 203 Alg. 13-18, counted. */
double
permutations(const char *op, const char *set)
{
	static const struct {
		const char *set;
		unsigned k, eta1_blocks, ct_bytes;
	} sets[] = {{"512", 2, 2, 768}, {"768", 3, 1, 1088}, {"1024", 4, 1, 1568}};
	double k, matrix, h, noise_keygen, noise_encrypt, j;

	if (strcmp(op, "keccak") == 0)
		return 1;
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
		if (strcmp(sets[i].set, set) != 0)
			continue;
		k = sets[i].k;
		matrix = k * k * MATRIX_BLOCKS;
		h = blocks(384 * sets[i].k + 32);
		j = blocks(32 + sets[i].ct_bytes);
		noise_keygen = 2 * k * sets[i].eta1_blocks;
		noise_encrypt = k * sets[i].eta1_blocks + k + 1;
		if (strcmp(op, "keygen") == 0)
			return 1 + matrix + noise_keygen + h;
		if (strcmp(op, "encaps") == 0)
			return h + 1 + matrix + noise_encrypt;
		if (strcmp(op, "decaps") == 0)
			return 1 + j + matrix + noise_encrypt;
		if (strcmp(op, "decaps-checked") == 0)
			return 1 + j + matrix + noise_encrypt + h;
		if (strcmp(op, "check-dk") == 0)
			return h;
	}
	return 0;
}
