/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel of the backend against the portable one: random and boundary inputs, every
 * alignment that the contract allows, buffers that end where their memory ends. What is in
 * the NTT domain is compared through pack12, since its order is the backend's own.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kem/fips202.h"
#include "kem/poly.h"
#include "tests/kem/guarded.h"
#include "tests/kem/kemtest.h"

#define Q           MLKEM_Q
#define N           MLKEM_N
#define PRODUCT_MAX 16383 /* what basemul may give and invntt takes */
#define ROUNDS      64

static const struct backend *const generic = &backend_generic;
static const unsigned d_of[N_COMPRESS] = {1, 4, 5, 10, 11};

static struct test_stream stream;
static struct guarded in, out;

static void
setup(void)
{
	test_stream_init(&stream, test_seed(), "kernels");
	guarded_init(&in);
	guarded_init(&out);
}

/* Extremes in several patterns, then anything between. */
static void
fill(int16_t *c, unsigned round, int min, int max)
{
	for (unsigned i = 0; i < N; i++) {
		bool high = round == 0   ? true
			    : round == 1 ? false
			    : round < 10 ? i >> (round - 2) & 1
					 : test_stream_below(&stream, 2);
		uint32_t span = (uint32_t)(max - min + 1);

		if (round < 12)
			c[i] = (int16_t)(high ? max : min);
		else
			c[i] = (int16_t)(min + (int)test_stream_below(&stream, span));
	}
}

/* Bytes for round: all ones, all zeros, then random. */
static void
fill_bytes(uint8_t *p, size_t len, unsigned round)
{
	if (round < 2)
		memset(p, round == 0 ? 0xff : 0, len);
	else
		test_stream_fill(&stream, p, len);
}

/* The generic polynomial of the same classes mod q as one of a backend's NTT domain. */
static void
to_generic(const struct backend *backend, struct poly *g, const struct poly *p)
{
	uint8_t bytes[384];

	backend->pack12(bytes, p->c);
	generic->unpack12(g->c, bytes);
}

static unsigned
hats_differ(const struct backend *backend, const struct poly *p, const struct poly *g)
{
	uint8_t a[384], b[384];

	backend->pack12(a, p->c);
	generic->pack12(b, g->c);
	return memcmp(a, b, sizeof a) != 0;
}

/* The same classes mod q, coefficient by coefficient. */
static unsigned
polys_differ(const struct poly *p, const struct poly *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++)
		n += (p->c[i] - g->c[i]) % Q != 0;
	return n;
}

static unsigned
transforms_differ(const struct backend *backend)
{
	struct poly p, g;
	unsigned n = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(p.c, round, -Q, Q);
		g = p;
		backend->ntt(p.c);
		generic->ntt(g.c);
		n += hats_differ(backend, &p, &g);
		fill(p.c, round, -PRODUCT_MAX, PRODUCT_MAX);
		to_generic(backend, &g, &p);
		backend->invntt(p.c);
		generic->invntt(g.c);
		n += polys_differ(&p, &g);
		fill(p.c, round, -PRODUCT_MAX, PRODUCT_MAX);
		to_generic(backend, &g, &p);
		backend->tomont(p.c);
		generic->tomont(g.c);
		n += hats_differ(backend, &p, &g);
	}
	return n;
}

static unsigned
products_differ(const struct backend *backend, unsigned k)
{
	struct poly a[4], b[4], a_g[4], b_g[4], p, g;
	struct mulcache cache[4], cache_g[4];
	unsigned n = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint8_t bytes[384];

		for (unsigned j = 0; j < k; j++) {
			fill_bytes(bytes, sizeof bytes, round);
			backend->unpack12(a[j].c, bytes); /* to 4095 */
			generic->unpack12(a_g[j].c, bytes);
			fill(b[j].c, round + j % 2, -8 * Q + 1, 8 * Q - 1);
			to_generic(backend, &b_g[j], &b[j]);
			backend->mulcache(cache[j].c, b[j].c);
			generic->mulcache(cache_g[j].c, b_g[j].c);
		}
		backend->basemul(p.c, a[0].c, b[0].c, cache[0].c, k);
		generic->basemul(g.c, a_g[0].c, b_g[0].c, cache_g[0].c, k);
		n += hats_differ(backend, &p, &g);
		backend->tomont(p.c);
		generic->tomont(g.c);
		n += hats_differ(backend, &p, &g);
	}
	return n;
}

static unsigned
sums_differ(const struct backend *backend)
{
	struct poly a, b, p, g;
	unsigned n = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(a.c, round, -16384, 16383);
		fill(b.c, ROUNDS - round, -16384, 16383);
		p = g = b;
		backend->add(p.c, a.c);
		generic->add(g.c, a.c);
		n += memcmp(&p, &g, sizeof p) != 0;
		p = g = b;
		backend->rsub(p.c, a.c);
		generic->rsub(g.c, a.c);
		n += memcmp(&p, &g, sizeof p) != 0;
	}
	return n;
}

/* From every count and every length; bytes that are all refused, all taken, or random. */
static unsigned
rejection_differs(const struct backend *backend)
{
	unsigned n = 0;

	for (unsigned start = 0; start < N; start++) {
		size_t len = 168 * (1 + start % 3);
		unsigned offset = start * 7 % 64;
		uint8_t *buf = guarded_place(&in, len + offset, 64);
		struct poly g,
		    *p = (struct poly *)(void *)guarded_place(&out, sizeof *p, 0);
		unsigned count, count_g;

		fill_bytes(buf, len, start % 8);
		memset(p, 0, sizeof *p);
		memset(&g, 0, sizeof g);
		count = backend->rej_uniform(p->c, start, buf, len);
		count_g = generic->rej_uniform(g.c, start, buf, len);
		n += count != count_g || !guarded_is_intact(&out);
		if (count == N)
			n += hats_differ(backend, p, &g);
		else
			n += memcmp(p, &g, count * sizeof p->c[0]) != 0;
	}
	return n;
}

static unsigned
noise_differs(const struct backend *backend)
{
	struct poly p, g;
	unsigned n = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint8_t *buf = guarded_place(&in, 192 + round % 64, 64);

		fill_bytes(buf, 192, round);
		backend->cbd2(p.c, buf);
		generic->cbd2(g.c, buf);
		n += memcmp(&p, &g, sizeof p) != 0;
		backend->cbd3(p.c, buf);
		generic->cbd3(g.c, buf);
		n += memcmp(&p, &g, sizeof p) != 0;
	}
	return n;
}

static unsigned
compression_differs(const struct backend *backend, enum compress d)
{
	size_t len = 32 * d_of[d];
	struct poly p, g;
	unsigned n = 0;

	for (unsigned round = 0; round < ROUNDS + 12; round++) {
		uint8_t *bytes = guarded_place(&out, len, round % 64);
		uint8_t want[352];

		fill(p.c, round, INT16_MIN, INT16_MAX);
		backend->compress[d](bytes, p.c);
		generic->compress[d](want, p.c);
		n += memcmp(bytes, want, len) != 0 || !guarded_is_intact(&out);
		bytes = guarded_place(&in, len, round % 64);
		fill_bytes(bytes, len, round);
		backend->decompress[d](p.c, bytes);
		generic->decompress[d](g.c, bytes);
		n += memcmp(&p, &g, sizeof p) != 0;
	}
	return n;
}

/* pack12 of anything, unpack12 and the check of anything, at every alignment. */
static unsigned
packing_differs(const struct backend *backend)
{
	struct poly p, g;
	unsigned n = 0;

	for (unsigned round = 0; round < ROUNDS + 12; round++) {
		uint8_t *bytes = guarded_place(&in, 384, round % 64);
		uint8_t want[384];

		fill_bytes(bytes, 384, round);
		backend->unpack12(p.c, bytes);
		generic->unpack12(g.c, bytes);
		n += hats_differ(backend, &p, &g);
		n += backend->check12(bytes) != generic->check12(bytes);

		fill(p.c, round, INT16_MIN, INT16_MAX);
		bytes = guarded_place(&out, 384, round % 64);
		backend->pack12(bytes, p.c);
		memcpy(want, bytes, sizeof want);
		n += !guarded_is_intact(&out) || generic->check12(want) != 0;
		generic->unpack12(g.c, want);
		backend->unpack12(p.c, want);
		n += hats_differ(backend, &p, &g);
	}
	return n;
}

/* One value that is q - 1, q or 4095, in each position. */
static unsigned
modulus_check_differs(const struct backend *backend)
{
	static const unsigned values[3] = {Q - 1, Q, 4095};
	unsigned n = 0;

	for (unsigned i = 0; i < 3 * N; i++) {
		uint8_t *bytes = guarded_place(&in, 384, 0);
		unsigned at = i / 3, value = values[i % 3];
		uint8_t *pair = bytes + at / 2 * 3;

		memset(bytes, 0, 384);
		pair[0] = (uint8_t)(at % 2 == 0 ? value : 0);
		pair[1] = (uint8_t)(at % 2 == 0 ? value >> 8 : value << 4);
		pair[2] = (uint8_t)(at % 2 == 0 ? 0 : value >> 4);
		n += backend->check12(bytes) != (value >= Q);
	}
	return n;
}

/* Every length to 200, one byte that differs in each position. */
static unsigned
comparison_differs(const struct backend *backend)
{
	unsigned n = 0;

	for (size_t len = 0; len <= 200; len++) {
		uint8_t *a = guarded_place(&in, len, len % 64);
		uint8_t *b = guarded_place(&out, len, 0);

		fill_bytes(a, len, (unsigned)len);
		memcpy(b, a, len);
		n += backend->compare(a, b, len) != 0;
		for (size_t i = 0; i < len; i++) {
			b[i] ^= (uint8_t)(1u << i % 8);
			n += backend->compare(a, b, len) == 0;
			b[i] = a[i];
		}
	}
	return n;
}

static unsigned
selection_differs(const struct backend *backend)
{
	unsigned n = 0;

	for (size_t len = 0; len <= 200; len++) {
		uint8_t a[200], b[200], *r = guarded_place(&out, len, len % 64);

		fill_bytes(a, sizeof a, 2);
		fill_bytes(b, sizeof b, 2);
		backend->select(r, a, b, len, UINT64_MAX);
		n += memcmp(r, a, len) != 0 || !guarded_is_intact(&out);
		backend->select(r, a, b, len, 0);
		n += memcmp(r, b, len) != 0 || !guarded_is_intact(&out);
		backend->select(r, a, r, len, UINT64_MAX); /* out is b */
		n += memcmp(r, a, len) != 0;
		backend->select(r, r, b, len, 0); /* out is a */
		n += memcmp(r, b, len) != 0;
	}
	return n;
}

/* Lanes in use come out as each would alone, whatever the others hold. */
static unsigned
permutation_differs(const struct backend *backend)
{
	static _Alignas(64) uint64_t before[KECCAK_WORDS * BACKEND_LANES_MAX];
	const unsigned lanes = backend->lanes;
	const size_t bytes = KECCAK_WORDS * lanes * sizeof before[0];
	unsigned n = 0;

	for (unsigned active = 1; active < 1u << lanes; active++) {
		uint64_t *state =
		    (uint64_t *)(void *)guarded_place(&out, bytes, -bytes % 64);

		test_stream_fill(&stream, state, bytes);
		memcpy(before, state, bytes);
		backend->keccak(state, active);
		n += !guarded_is_intact(&out);
		for (unsigned lane = 0; lane < lanes; lane++) {
			uint64_t one[KECCAK_WORDS];

			if (!(active >> lane & 1))
				continue;
			for (unsigned i = 0; i < KECCAK_WORDS; i++)
				one[i] = before[i * lanes + lane];
			generic->keccak(one, 1);
			for (unsigned i = 0; i < KECCAK_WORDS; i++)
				n += state[i * lanes + lane] != one[i];
		}
	}
	return n;
}

START_TEST(test_arithmetic)
{
	const struct backend *backend = test_backend();

	ck_assert_uint_eq(transforms_differ(backend), 0);
	for (unsigned k = 2; k <= 4; k++)
		ck_assert_uint_eq(products_differ(backend, k), 0);
	ck_assert_uint_eq(sums_differ(backend), 0);
}
END_TEST

START_TEST(test_sampling)
{
	ck_assert_uint_eq(rejection_differs(test_backend()), 0);
	ck_assert_uint_eq(noise_differs(test_backend()), 0);
	ck_assert_uint_eq(permutation_differs(test_backend()), 0);
}
END_TEST

START_TEST(test_packing)
{
	for (unsigned d = 0; d < N_COMPRESS; d++)
		ck_assert_uint_eq(
		    compression_differs(test_backend(), (enum compress)d), 0);
	ck_assert_uint_eq(packing_differs(test_backend()), 0);
	ck_assert_uint_eq(modulus_check_differs(test_backend()), 0);
}
END_TEST

START_TEST(test_verify)
{
	ck_assert_uint_eq(comparison_differs(test_backend()), 0);
	ck_assert_uint_eq(selection_differs(test_backend()), 0);
}
END_TEST

static uint64_t
compare_planted(const uint8_t *a, const uint8_t *b, size_t len)
{
	return test_backend()->compare(a, b, len & ~(size_t)7); /* no tail */
}

static void
cbd3_planted(int16_t *r, const uint8_t *buf)
{
	test_backend()->cbd3(r, buf);
	r[131] = (int16_t)-r[131];
}

static unsigned
rej_uniform_planted(int16_t *r, unsigned count, const uint8_t *buf, size_t len)
{
	unsigned n = test_backend()->rej_uniform(r, count, buf, len);

	return n == N ? N : n - (n > count); /* loses one if that is not enough */
}

START_TEST(test_control)
{
	struct backend bad = *test_backend();

	bad.compare = compare_planted;
	ck_assert_uint_gt(comparison_differs(&bad), 0);
	bad.cbd3 = cbd3_planted;
	ck_assert_uint_gt(noise_differs(&bad), 0);
	bad.rej_uniform = rej_uniform_planted;
	ck_assert_uint_gt(rejection_differs(&bad), 0);
	bad.compress[COMPRESS_11] = bad.compress[COMPRESS_10];
	ck_assert_uint_gt(compression_differs(&bad, COMPRESS_11), 0);
}
END_TEST

/* A wrong constant in the product itself, where there are hooks to plant it. */
START_TEST(test_wrong_zeta)
{
	const char *name = NULL;

	if (strcmp(test_backend()->name, "avx2") == 0)
		name = "avx2-wrong-zeta";
	else if (strcmp(test_backend()->name, "avx512") == 0)
		name = "avx512-wrong-zeta";
	if (!test_has_hooks() || name == NULL)
		return;
	ck_assert_int_eq(setenv("MLKEMD_FAULT", name, 1), 0);
	ck_assert_uint_gt(transforms_differ(test_backend()), 0);
	unsetenv("MLKEMD_FAULT");
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("kernels");
	TCase *tcase = tcase_create("kernels");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, test_arithmetic);
	tcase_add_test(tcase, test_sampling);
	tcase_add_test(tcase, test_packing);
	tcase_add_test(tcase, test_verify);
	tcase_add_test(tcase, test_control);
	tcase_add_test(tcase, test_wrong_zeta);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
