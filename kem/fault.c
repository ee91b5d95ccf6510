/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Compiled into builds with test hooks alone. */
#include "fault.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "kem.h"

#define BLOCK_BYTES 32
#define TEXT_MAX    200

bool
fault(const char *name)
{
	const char *list = getenv("MLKEMD_FAULT");
	size_t len = strlen(name);

	while (list && *list) {
		size_t n = strcspn(list, ",");

		if (n == len && memcmp(list, name, n) == 0)
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

static void
test_block(
    const EVP_MD *sha256, const char *text, uint64_t n, uint8_t block[BLOCK_BYTES])
{
	uint8_t buf[TEXT_MAX + 8];
	size_t len = strlen(text);

	if (len > TEXT_MAX)
		len = TEXT_MAX;
	memcpy(buf, text, len);
	for (int i = 0; i < 8; i++)
		buf[len + (size_t)i] = (uint8_t)(n >> (56 - 8 * i));
	if (EVP_Digest(buf, len + 8, block, NULL, sha256, NULL) != 1)
		abort();
}

bool
fault_random(const EVP_MD *sha256, _Atomic uint64_t *n_blocks, uint8_t *out, size_t len)
{
	const char *text = getenv("MLKEMD_TEST_RANDOM");
	uint8_t block[BLOCK_BYTES];
	uint64_t n, n_need = (len + BLOCK_BYTES - 1) / BLOCK_BYTES;

	if (!text || !*text)
		return false;
	n = atomic_fetch_add(n_blocks, n_need);
	while (len > 0) {
		size_t take = len < BLOCK_BYTES ? len : BLOCK_BYTES;

		test_block(sha256, text, n++, block);
		memcpy(out, block, take);
		out += take;
		len -= take;
	}
	kem_wipe(block, sizeof(block));
	return true;
}
