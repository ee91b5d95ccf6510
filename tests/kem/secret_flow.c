/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run by secret_flow.sh, under valgrind's memcheck or with MemorySanitizer: secrets are
 * marked as undefined, so that every branch and every address that depends on one is
 * reported (and ends the program with an error). The matrix is public and declared so
 * where it is squeezed. With an argument the named fault is planted, which has to be
 * reported. BACKEND is the one to follow them through; TAINT says by which tool.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include TAINT

#include "kem/arch/backend.h"
#include "kem/fips202.h"
#include "kem/mlkem.h"

#define N 2

static _Alignas(64) uint8_t work[MLKEM_WORK_BYTES];

/* rho is made from d, so that the matrix would count as secret in key generation. */
static void
squeeze_marked(const uint64_t *state, uint8_t *const *out, const uint8_t *words)
{
	BACKEND.squeeze(state, out, words);
	for (unsigned i = 0; i < BACKEND.lanes; i++) {
		if (words[i] == SHAKE128_WORDS)
			untaint(out[i], words[i] * 8u);
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

static bool is_wrong;

static void
wrong_result(void)
{
	puts("wrong result");
	is_wrong = true;
}

/* A result of secrets, made public. If it was that before, the tool has lost its way. */
static void
result(uint8_t *p, size_t len)
{
	if (!tainted(p, len)) {
		puts("a secret was lost sight of");
		is_wrong = true;
	}
	untaint(p, len);
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
		taint(dz[i], 64);
		taint(m[i], 32);
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
		untaint(ek[i], sizeof ek[i]);
		untaint(dk[i] + s_bytes, 32); /* H(ek) */
	}
	if (!tainted(dk[0], s_bytes))
		wrong_result();
	mlkem_encaps(backend, set, encaps, N, work);
	for (unsigned i = 0; i < N; i++) {
		untaint(ct[i], sizeof ct[i]);
		ct[i][10] ^= is_forged;
	}
	mlkem_decaps(backend, set, decaps, N, work);
	for (unsigned i = 0; i < N; i++) {
		result(made[i], 32);
		result(found[i], 32);
		if ((memcmp(made[i], found[i], 32) != 0) != is_forged)
			wrong_result();
	}
}

/* A ladder as textbooks have it. */
static unsigned
ladder_planted(uint8_t *const out[X25519_LANES], const uint8_t *const key[X25519_LANES],
    const uint8_t *const peer[X25519_LANES], uint8_t *scratch)
{
	for (unsigned i = 0; i < 255; i++) {
		volatile uint8_t *p = out[0], *q = out[1];

		if (key[0][i / 8] >> i % 8 & 1)
			*p = *q;
	}
	return 0;
}

/* Where libcrypto works it, it is libcrypto's to keep. */
static void
x25519(const struct backend *backend)
{
	static uint8_t key[X25519_LANES][32], peer[X25519_LANES][32];
	static uint8_t shared[2][X25519_LANES][32];
	static _Alignas(64) uint8_t scratch[X25519_WORK_BYTES];
	const uint8_t *keys[2][X25519_LANES], *peers[2][X25519_LANES];
	uint8_t *publics[X25519_LANES], *to[2][X25519_LANES];
	unsigned zeros;

	if (!backend->x25519_base8)
		return;
	for (unsigned i = 0; i < X25519_LANES; i++) {
		memset(key[i], (int)(33 + 5 * i), 32);
		taint(key[i], 32);
		keys[0][i] = key[i];
		keys[1][i] = key[X25519_LANES - 1 - i];
		publics[i] = peer[i];
		to[0][i] = shared[0][i];
		to[1][i] = shared[1][i];
	}
	backend->x25519_base8(publics, keys[0], scratch);
	result(peer[0], sizeof peer);
	/* Each with its opposite, so that lanes i and 7 - i come to the same. */
	for (unsigned i = 0; i < X25519_LANES; i++) {
		peers[0][i] = peer[X25519_LANES - 1 - i];
		peers[1][i] = peer[i];
	}
	for (unsigned k = 0; k < 2; k++) {
		zeros = backend->x25519_shared8(to[k], keys[k], peers[k], scratch);
		untaint(&zeros, sizeof zeros); /* RFC 7748 6.1: it is told */
		if (zeros != 0)
			wrong_result();
	}
	result(shared[0][0], sizeof shared);
	if (memcmp(shared[0], shared[1], sizeof shared[0]) != 0)
		wrong_result();
}

int
main(int argc, char **argv)
{
	struct backend backend = BACKEND;

	if (!taint_works()) {
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
	if (argc > 1 && strcmp(argv[1], "ladder") == 0)
		backend.x25519_shared8 = ladder_planted;
	for (enum kem_alg set = KEM_ALG_MLKEM512; set <= KEM_ALG_MLKEM1024; set++) {
		exchange(&backend, set, false);
		exchange(&backend, set, true);
	}
	x25519(&backend);
	return is_wrong && argc == 1;
}
