/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "random.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#include <openssl/err.h>
#include <openssl/rand.h>

#include "fault.h"
#include "wipe.h"

#define FRESH_BYTES      32
#define STRENGTH_BITS    256 /* FIPS 203 table 2 asks for up to 256 (ML-KEM-1024) */
#define FILL_CHUNK_BYTES 65536

struct random_source {
	OSSL_LIB_CTX *libctx;
	const EVP_MD *sha256;           /* for the stream of the tests */
	_Atomic uint64_t n_test_blocks; /* counted in builds with test hooks only */
};

struct random_source *
random_source_new(OSSL_LIB_CTX *libctx, const EVP_MD *sha256)
{
	struct random_source *source;

	/*
	 * Everything that all threads share is made here: OpenSSL never recovers a
	 * context whose generator could not be fetched for want of memory.
	 */
	if (!RAND_get0_primary(libctx) || !RAND_get0_private(libctx))
		return NULL;
	source = calloc(1, sizeof(*source));
	if (!source)
		return NULL;
	source->libctx = libctx;
	source->sha256 = sha256;
	return source;
}

struct random_source *
random_source_free(struct random_source *source)
{
	free(source);
	return NULL;
}

static int
system_fill(uint8_t *out, size_t len)
{
	ssize_t got;

	while (len > 0) {
		got = getrandom(out, len, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return KEM_FAIL_RNG;
		out += got;
		len -= (size_t)got;
	}
	return 0;
}

/*
 * The DRBG belongs to the calling thread (RAND_get0_private makes it on first use) and
 * reseeds by itself in a child after a fork. The additional input makes two copies of one
 * state (a forked or a cloned one) part at their next draw even so.
 */
static int
drbg_fill(struct random_source *source, uint8_t *out, size_t len)
{
	uint8_t fresh[FRESH_BYTES];
	EVP_RAND_CTX *drbg;
	int r = KEM_FAIL_RNG;

	drbg = RAND_get0_private(source->libctx);
	if (!drbg)
		goto out;
	while (len > 0) {
		size_t n = len < FILL_CHUNK_BYTES ? len : FILL_CHUNK_BYTES;

		if (system_fill(fresh, sizeof(fresh)) < 0)
			goto out;
		if (EVP_RAND_generate(
			drbg, out, n, STRENGTH_BITS, 0, fresh, sizeof(fresh)) != 1)
			goto out;
		out += n;
		len -= n;
	}
	r = 0;
out:
	kem_wipe(fresh, sizeof(fresh));
	return r;
}

int
random_fill(struct random_source *source, uint8_t *out, size_t len)
{
	int r = 0;

	if (len == 0)
		return 0;
	if (fault("rng-fail")) {
		kem_wipe(out, len);
		return KEM_FAIL_RNG;
	}
	ERR_set_mark();
	if (!fault_random(source->sha256, &source->n_test_blocks, out, len))
		r = drbg_fill(source, out, len);
	ERR_pop_to_mark();
	libcrypto_stack_wipe();
	if (r < 0)
		kem_wipe(out, len);
	return r;
}
