/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling: rejection and noise against bit-by-bit code; the matrix and the noise of
 * groups against OpenSSL's SHAKE, with streams that want four, five and many blocks.
 */
#include <check.h>
#include <string.h>

#include <openssl/evp.h>

#include "kem/sample.h"
#include "tests/kem/kemtest.h"

#define Q           MLKEM_Q
#define N           MLKEM_N
#define BLOCK_BYTES 168
#define BLOCKS_MAX  200

/* Candidate number i of a string (Alg. 7 lines 6, 7). */
static unsigned
candidate(const uint8_t *buf, unsigned i)
{
	unsigned x = 0;

	for (unsigned j = 0; j < 12; j++)
		x |= (buf[(12 * i + j) / 8] >> (12 * i + j) % 8 & 1u) << j;
	return x;
}

static unsigned
naive_reject(int16_t *r, unsigned count, const uint8_t *buf, size_t len)
{
	for (unsigned i = 0; i < len * 2 / 3 && count < N; i++) {
		if (candidate(buf, i) < Q)
			r[count++] = (int16_t)candidate(buf, i);
	}
	return count;
}

static void
candidate_put(uint8_t *buf, unsigned i, unsigned x)
{
	uint8_t *p = buf + i / 2 * 3;

	if (i & 1) {
		p[1] = (uint8_t)((p[1] & 15) | x << 4);
		p[2] = (uint8_t)(x >> 4);
	} else {
		p[0] = (uint8_t)x;
		p[1] = (uint8_t)((p[1] & 0xf0) | x >> 8);
	}
}

/* One call from `count` on. A complete polynomial may have another order: pack12. */
static unsigned
reject_is_wrong(
    const struct backend *backend, unsigned count, const uint8_t *buf, size_t len)
{
	struct {
		struct poly p, behind;
	} got, want;
	unsigned got_count, want_count, wrong = 0;
	uint8_t got_bytes[384], want_bytes[384];

	memset(&got, 0x5a, sizeof got);
	for (unsigned i = 0; i < count; i++)
		got.p.c[i] = (int16_t)(i * 7 % Q);
	want = got;
	got_count = backend->rej_uniform(got.p.c, count, buf, len);
	want_count = naive_reject(want.p.c, count, buf, len);
	wrong += got_count != want_count;
	wrong += memcmp(&got.behind, &want.behind, sizeof want.behind) != 0;
	if (want_count == N) {
		backend->pack12(got_bytes, got.p.c);
		backend_generic.pack12(want_bytes, want.p.c);
		wrong += memcmp(got_bytes, want_bytes, sizeof want_bytes) != 0;
	} else {
		wrong += memcmp(&got, &want, want_count * sizeof(int16_t)) != 0;
	}
	return wrong;
}

static unsigned
rejections_are_wrong(const struct backend *backend)
{
	static const unsigned values[] = {0, 1, 3327, 3328, 3329, 3330, 4095};
	static const size_t lengths[] = {168, 336, 504};
	static _Alignas(64) uint8_t buf[504 + 64];
	struct test_stream stream;
	unsigned wrong = 0;

	test_stream_init(&stream, test_seed(), "reject");
	for (unsigned round = 0; round < 600; round++) {
		size_t len = lengths[round % 3];
		unsigned count = round % 5 == 0 ? 0 : test_stream_below(&stream, 256);

		test_stream_fill(&stream, buf, sizeof buf);
		if (round % 7 == 0)
			memset(buf, 0xff, len);
		if (round % 7 == 1)
			memset(buf, 0, len);
		if (round % 7 == 2) { /* only values beside the limit */
			for (unsigned i = 0; i < len * 2 / 3; i++)
				candidate_put(
				    buf, i, values[test_stream_below(&stream, 7)]);
		}
		wrong += reject_is_wrong(backend, count, buf, len);
	}
	/* The last places: one is left, and the second of a pair has no room. */
	for (unsigned count = 250; count < 256; count++) {
		for (unsigned v = 0; v < 49; v++) {
			for (unsigned i = 0; i < 112; i++)
				candidate_put(buf, i, values[i & 1 ? v / 7 : v % 7]);
			wrong += reject_is_wrong(backend, count, buf, 168);
		}
	}
	return wrong;
}

START_TEST(test_rejection)
{
	ck_assert_uint_eq(rejections_are_wrong(test_backend()), 0);
}
END_TEST

/* Alg. 8, by its text. */
static void
naive_cbd(int16_t *r, const uint8_t *buf, unsigned eta)
{
	for (unsigned i = 0; i < N; i++) {
		int x = 0;

		for (unsigned j = 0; j < 2 * eta; j++) {
			unsigned bit = 2 * i * eta + j;
			int b = buf[bit / 8] >> bit % 8 & 1;

			x += j < eta ? b : -b;
		}
		r[i] = (int16_t)x;
	}
}

static unsigned
cbd_is_wrong(const struct backend *backend)
{
	static _Alignas(64) uint8_t buf[192 + 64];
	struct test_stream stream;
	unsigned wrong = 0;

	test_stream_init(&stream, test_seed(), "cbd");
	for (unsigned round = 0; round < 1200; round++) {
		struct poly got[2], want;

		test_stream_fill(&stream, buf, sizeof buf);
		if (round < 2)
			memset(buf, round == 0 ? 0 : 0xff, 192);
		if (round >= 2 && round < 2 + 192) { /* each byte alone, all of it */
			memset(buf, 0, 192);
			buf[round - 2] = 0xff;
		}
		if (round >= 200 && round < 200 + 256)
			memset(buf, (int)round - 200, 192);
		for (unsigned eta = 2; eta <= 3; eta++) {
			memset(got, 0x5a, sizeof got);
			naive_cbd(want.c, buf, eta);
			if (eta == 2)
				backend->cbd2(got[0].c, buf);
			else
				backend->cbd3(got[0].c, buf);
			wrong += memcmp(&got[0], &want, sizeof want) != 0;
			wrong += got[1].c[0] != 0x5a5a;
		}
	}
	return wrong;
}

START_TEST(test_cbd)
{
	ck_assert_uint_eq(cbd_is_wrong(test_backend()), 0);
}
END_TEST

/*
 * A worse SHAKE128: of sixteen blocks, `spoiled` come out as all ones, none of whose
 * candidates is accepted. Chance alone would need 2^105 streams to see a fifth block.
 */
static unsigned spoiled;

static void
block_spoil(uint8_t *block)
{
	if ((block[7] & 15) < spoiled)
		memset(block, 0xff, BLOCK_BYTES);
}

static void
squeeze_spoilt(const uint64_t *state, uint8_t *const *out, const uint8_t *words)
{
	test_backend()->squeeze(state, out, words);
	for (unsigned i = 0; i < test_backend()->lanes; i++) {
		if (words[i] == SHAKE128_WORDS)
			block_spoil(out[i]);
	}
}

static void
shake(const char *name, uint8_t *out, size_t out_len, const uint8_t *in, size_t len)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	const EVP_MD *md =
	    strcmp(name, "SHAKE128") == 0 ? EVP_shake128() : EVP_shake256();

	ck_assert(ctx != NULL && EVP_DigestInit_ex(ctx, md, NULL) == 1);
	ck_assert_int_eq(EVP_DigestUpdate(ctx, in, len), 1);
	ck_assert_int_eq(EVP_DigestFinalXOF(ctx, out, out_len), 1);
	EVP_MD_CTX_free(ctx);
}

/* SampleNTT(rho || x || y). Returns how many blocks it took. */
static unsigned
naive_sample(int16_t *r, const uint8_t *rho, unsigned x, unsigned y)
{
	static uint8_t blocks[BLOCKS_MAX * BLOCK_BYTES];
	uint8_t in[34];
	unsigned count = 0, n = 0;

	memcpy(in, rho, 32);
	in[32] = (uint8_t)x;
	in[33] = (uint8_t)y;
	shake("SHAKE128", blocks, sizeof blocks, in, sizeof in);
	for (; count < N; n++) {
		ck_assert_uint_lt(n, BLOCKS_MAX);
		block_spoil(blocks + n * BLOCK_BYTES);
		count = naive_reject(r, count, blocks + n * BLOCK_BYTES, BLOCK_BYTES);
	}
	return n;
}

/* Matrices of n items, consumed row by row. Returns the blocks of the longest stream. */
static unsigned
matrix_check(const struct backend *backend, unsigned n, unsigned k, bool transposed,
    unsigned *wrong)
{
	static struct sponge sponge;
	static struct poly ring[MATRIX_POLYS_MAX + 1];
	uint8_t rho[SAMPLE_ITEMS_MAX][32];
	struct test_stream stream;
	struct matrix matrix;
	unsigned longest = 0;

	test_stream_init(&stream, test_seed() + n * 16 + k * 2 + transposed, "matrix");
	memset(ring, 0x5a, sizeof ring);
	sponge_init(&sponge, backend);
	matrix_init(&matrix, backend, n, k, transposed, ring);
	for (unsigned i = 0; i < n; i++) {
		test_stream_fill(&stream, rho[i], 32);
		matrix.rho[i] = rho[i];
	}
	sponge_add_last(&sponge, &matrix.job);
	for (unsigned row = 0; row < k; row++) {
		matrix_wait(&matrix, &sponge);
		for (unsigned i = 0; i < n; i++) {
			const struct poly *a = matrix_next(&matrix);

			for (unsigned col = 0; col < k; col++) {
				uint8_t got[384], want[384];
				struct poly p;
				unsigned blocks =
				    transposed ? naive_sample(p.c, rho[i], row, col)
					       : naive_sample(p.c, rho[i], col, row);

				backend->pack12(got, a[col].c);
				backend_generic.pack12(want, p.c);
				*wrong += memcmp(got, want, sizeof want) != 0;
				longest = blocks > longest ? blocks : longest;
			}
		}
	}
	ck_assert_int_eq(ring[matrix_ring_size(n, k)].c[0], 0x5a5a);
	return longest;
}

START_TEST(test_matrix)
{
	static const unsigned levels[] = {0, 1, 8, 13};
	struct backend backend = *test_backend();

	backend.squeeze = squeeze_spoilt;
	for (unsigned l = 0; l < 4; l++) {
		unsigned longest = 0, wrong = 0;

		spoiled = levels[l];
		for (unsigned n = 1; n <= SAMPLE_ITEMS_MAX; n++) {
			for (unsigned k = 2; k <= 4; k++) {
				unsigned blocks =
				    matrix_check(&backend, n, k, (n + l) & 1, &wrong);

				longest = blocks > longest ? blocks : longest;
			}
		}
		ck_assert_uint_eq(wrong, 0);
		if (spoiled >= 8)
			ck_assert_uint_gt(longest, 6);
	}
}
END_TEST

static unsigned
noise_is_wrong(const struct backend *backend, unsigned n, unsigned k, bool encrypts)
{
	static struct sponge sponge;
	static struct poly first[32], second[32], last[8];
	uint8_t seed[SAMPLE_ITEMS_MAX][33];
	struct noise noise = {.backend = backend, .n = n, .k = k};
	struct test_stream stream;
	unsigned wrong = 0;

	noise.first = first;
	noise.second = second;
	noise.last = encrypts ? last : NULL;
	noise.eta_first = k == 2 ? 3 : 2;
	noise.eta_second = encrypts ? 2 : noise.eta_first;
	test_stream_init(&stream, test_seed() + n * 16 + k * 2 + encrypts, "noise");
	for (unsigned i = 0; i < n; i++) {
		test_stream_fill(&stream, seed[i], 32);
		noise.seed[i] = seed[i];
	}
	sponge_init(&sponge, backend);
	noise_init(&noise);
	sponge_add_last(&sponge, &noise.job);
	noise_wait(&noise, &sponge);
	for (unsigned i = 0; i < n; i++) {
		for (unsigned j = 0; j < 2 * k + encrypts; j++) {
			const struct poly *got = j < k       ? &first[i * k + j]
						 : j < 2 * k ? &second[i * k + j - k]
							     : &last[i];
			unsigned eta = j < k ? noise.eta_first : noise.eta_second;
			uint8_t bytes[192];
			struct poly want;

			seed[i][32] = (uint8_t)j;
			shake("SHAKE256", bytes, 64 * eta, seed[i], 33);
			naive_cbd(want.c, bytes, eta);
			wrong += memcmp(got, &want, sizeof want) != 0;
		}
	}
	return wrong;
}

START_TEST(test_noise)
{
	for (unsigned n = 1; n <= SAMPLE_ITEMS_MAX; n++) {
		for (unsigned k = 2; k <= 4; k++) {
			ck_assert_uint_eq(
			    noise_is_wrong(test_backend(), n, k, false), 0);
			ck_assert_uint_eq(
			    noise_is_wrong(test_backend(), n, k, true), 0);
		}
	}
}
END_TEST

/* Takes q itself for a coefficient. */
static unsigned
reject_planted(int16_t *r, unsigned count, const uint8_t *buf, size_t len)
{
	for (unsigned i = 0; i < len * 2 / 3 && count < N; i++) {
		if (candidate(buf, i) <= Q)
			r[count++] = (int16_t)candidate(buf, i);
	}
	return count;
}

/* Forgets after each call where it was: right as long as three blocks are enough. */
static unsigned
reject_restarts(int16_t *r, unsigned count, const uint8_t *buf, size_t len)
{
	unsigned n =
	    test_backend()->rej_uniform(r, len > BLOCK_BYTES ? count : 0, buf, len);

	return len > BLOCK_BYTES ? n : count + n < N ? count + n : N;
}

static void
cbd3_planted(int16_t *r, const uint8_t *buf)
{
	test_backend()->cbd3(r, buf);
	r[255] = (int16_t)-r[255];
}

START_TEST(test_control)
{
	struct backend bad = *test_backend();
	unsigned wrong = 0;

	bad.rej_uniform = reject_planted;
	bad.cbd3 = cbd3_planted;
	ck_assert_uint_gt(rejections_are_wrong(&bad), 0);
	ck_assert_uint_gt(cbd_is_wrong(&bad), 0);
	ck_assert_uint_gt(noise_is_wrong(&bad, 3, 2, true), 0);
	bad.rej_uniform = reject_restarts;
	bad.squeeze = squeeze_spoilt;
	spoiled = 8;
	matrix_check(&bad, 2, 3, false, &wrong);
	ck_assert_uint_gt(wrong, 0);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("sample");
	TCase *tcase = tcase_create("sample");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_rejection);
	tcase_add_test(tcase, test_cbd);
	tcase_add_test(tcase, test_matrix);
	tcase_add_test(tcase, test_noise);
	tcase_add_test(tcase, test_control);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
