/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run under valgrind's memcheck by secret_flow.sh: secrets are marked as undefined, so
 * that every branch and every address that depends on one is reported (and makes valgrind
 * exit with an error). The matrix is public and declared so where it is squeezed. With an
 * argument the named fault is planted, which has to be reported. BACKEND is the one to
 * follow them through.
 */
#include <stdio.h>
#include <string.h>

#include <valgrind/memcheck.h>

#include "kem/arch/backend.h"
#include "kem/fips202.h"
#include "kem/mlkem.h"

#define N 2

static _Alignas(64) uint8_t work[MLKEM_WORK_BYTES];

static void
secret(void *p, size_t len)
{
	(void)VALGRIND_MAKE_MEM_UNDEFINED(p, len);
}

static void public(void *p, size_t len)
{
	(void)VALGRIND_MAKE_MEM_DEFINED(p, len);
}

/* rho is made from d, so that the matrix would count as secret in key generation. */
static void
squeeze_marked(const uint64_t *state, uint8_t *const *out, const uint8_t *words)
{
	BACKEND.squeeze(state, out, words);
	for (unsigned i = 0; i < BACKEND.lanes; i++) {
		if (words[i] == SHAKE128_WORDS)
		public(out[i], words[i] * 8u);
	}
}

/* What clang made of the message's mask. */
static void
decompress1_planted(int16_t *r, const uint8_t *in)
{
	for (unsigned i = 0; i < MLKEM_N; i++) {
		volatile int16_t *p = &r[i];

		*p = 0;
		if (in[i / 8] >> i % 8 & 1)
			*p = (MLKEM_Q + 1) / 2;
	}
}

static uint64_t
compare_planted(const uint8_t *a, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (a[i] != b[i])
			return 1;
	}
	return 0;
}

/* An index instead of a branch. */
static void
select_planted(
    uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask)
{
	const uint8_t *volatile from[2] = {b, a};

	for (size_t i = 0; i < len; i++)
		out[i] = from[mask & 1][i];
}

static void
exchange(const struct backend *backend, enum kem_alg set, bool is_forged)
{
	static uint8_t dz[N][64], m[N][32], ek[N][1568], dk[N][1600], ct[N][1568];
	static uint8_t made[N][32], found[N][32];
	struct mlkem_keygen_item keygen[N];
	struct mlkem_encaps_item encaps[N];
	struct mlkem_decaps_item decaps[N];
	size_t s_bytes = 384 * ((size_t)set + 2);

	for (unsigned i = 0; i < N; i++) {
		memset(dz[i], (int)(7 + i), 64);
		memset(m[i], (int)(77 + i), 32);
		secret(dz[i], 64);
		secret(m[i], 32);
		keygen[i] = (struct mlkem_keygen_item){dz[i], dz[i] + 32, ek[i], dk[i]};
		encaps[i] = (struct mlkem_encaps_item){
		    .ek = ek[i], .m = m[i], .ct = ct[i], .shared = made[i]};
		decaps[i] = (struct mlkem_decaps_item){.s = dk[i],
		    .ek = ek[i],
		    .h = dk[i] + s_bytes,
		    .z = dk[i] + s_bytes + 32,
		    .ct = ct[i],
		    .shared = found[i]};
	}
	mlkem_keygen(backend, set, keygen, N, work);
	for (unsigned i = 0; i < N; i++) {
		public(ek[i], sizeof ek[i]);
		public(dk[i] + s_bytes, 32); /* H(ek) */
	}
	mlkem_encaps(backend, set, encaps, N, work);
	for (unsigned i = 0; i < N; i++) {
		public(ct[i], sizeof ct[i]);
		ct[i][10] ^= is_forged;
	}
	mlkem_decaps(backend, set, decaps, N, work);
	for (unsigned i = 0; i < N; i++) {
		public(made[i], 32);
		public(found[i], 32);
		if ((memcmp(made[i], found[i], 32) != 0) != is_forged)
			puts("wrong result");
	}
}

int
main(int argc, char **argv)
{
	struct backend backend = BACKEND;

	if (!RUNNING_ON_VALGRIND) {
		puts("not run under valgrind: nothing would be found");
		return 2;
	}
	backend.squeeze = squeeze_marked;
	if (argc > 1 && strcmp(argv[1], "message") == 0)
		backend.decompress[COMPRESS_1] = decompress1_planted;
	if (argc > 1 && strcmp(argv[1], "compare") == 0)
		backend.compare = compare_planted;
	if (argc > 1 && strcmp(argv[1], "select") == 0)
		backend.select = select_planted;
	for (enum kem_alg set = KEM_ALG_MLKEM512; set <= KEM_ALG_MLKEM1024; set++) {
		exchange(&backend, set, false);
		exchange(&backend, set, true);
	}
	return 0;
}
