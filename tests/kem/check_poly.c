/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic against the definitions of FIPS 203 4.3, computed naively mod q, on
 * random and on extreme inputs; and the ranges that backend.h promises. Polynomials in
 * the NTT domain are only looked at through pack12 and unpack12, whose order is fixed.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kem/poly.h"
#include "tests/kem/kemtest.h"

#define Q      MLKEM_Q
#define N      MLKEM_N
#define R      65536
#define ROUNDS 20

/* What basemul may give. */
#define PRODUCT_MAX 16383

static struct test_stream stream;

static int
mod(long long x)
{
	return (int)((x % Q + Q) % Q);
}

static int
power(int base, unsigned e)
{
	long long r = 1;

	for (; e != 0; e--)
		r = r * base % Q;
	return (int)r;
}

static unsigned
bit_reverse7(unsigned x)
{
	unsigned r = 0;

	for (unsigned i = 0; i < 7; i++)
		r |= (x >> i & 1) << (6 - i);
	return r;
}

/* zeta^(2 BitRev7(i) + 1), the root of factor i of X^256 + 1 (4.9, 4.10). */
static int gamma_of[N / 2];

static void
setup(void)
{
	test_stream_init(&stream, test_seed(), "poly");
	for (unsigned i = 0; i < N / 2; i++)
		gamma_of[i] = power(17, 2 * bit_reverse7(i) + 1);
}

/* f mod (X^2 - gamma) for each factor. */
static void
naive_ntt(int *hat, const int16_t *f)
{
	for (unsigned i = 0; i < N / 2; i++) {
		long long x = 1, even = 0, odd = 0;

		for (unsigned j = 0; j < N / 2; j++) {
			even = mod(even + x * f[2 * j]);
			odd = mod(odd + x * f[2 * j + 1]);
			x = x * gamma_of[i] % Q;
		}
		hat[2 * i] = (int)even;
		hat[2 * i + 1] = (int)odd;
	}
}

static void
naive_basemul(int *hat, const int *a, const int *b)
{
	for (unsigned i = 0; i < N / 2; i++) {
		long long a0 = a[2 * i], a1 = a[2 * i + 1], b0 = b[2 * i],
			  b1 = b[2 * i + 1];

		hat[2 * i] = mod(hat[2 * i] + a0 * b0 + a1 * b1 % Q * gamma_of[i]);
		hat[2 * i + 1] = mod(hat[2 * i + 1] + a0 * b1 + a1 * b0);
	}
}

/* NTT-domain values, in the standard's order, of a backend's polynomial; and back. */
static void
hat_get(const struct backend *backend, int *hat, const struct poly *p)
{
	uint8_t bytes[384];

	backend->pack12(bytes, p->c);
	for (unsigned i = 0; i < N / 2; i++) {
		hat[2 * i] = bytes[3 * i] | (bytes[3 * i + 1] & 15) << 8;
		hat[2 * i + 1] = bytes[3 * i + 1] >> 4 | bytes[3 * i + 2] << 4;
	}
}

static void
hat_put(const struct backend *backend, struct poly *p, const int *hat)
{
	uint8_t bytes[384];

	for (unsigned i = 0; i < N / 2; i++) {
		bytes[3 * i] = (uint8_t)hat[2 * i];
		bytes[3 * i + 1] = (uint8_t)(hat[2 * i] >> 8 | hat[2 * i + 1] << 4);
		bytes[3 * i + 2] = (uint8_t)(hat[2 * i + 1] >> 4);
	}
	backend->unpack12(p->c, bytes);
}

static unsigned
out_of_range(const struct poly *p, int bound)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++)
		n += p->c[i] < -bound || p->c[i] > bound;
	return n;
}

/* Fill with one of: extremes of [min, max] in several patterns, then random values. */
static void
fill(int16_t *c, unsigned round, int min, int max)
{
	for (unsigned i = 0; i < N; i++) {
		unsigned high = 1;

		switch (round) {
		case 0:
			break;
		case 1:
			high = 0;
			break;
		case 2:
			high = i & 1;
			break;
		case 3:
			high = i >> 1 & 1;
			break;
		case 4:
			high = i >> 7;
			break;
		case 5:
			high = test_stream_below(&stream, 2);
			break;
		default:
			c[i] = (int16_t)(min + (int)test_stream_below(
						   &stream, (uint32_t)(max - min + 1)));
			continue;
		}
		c[i] = (int16_t)(high ? max : min);
	}
}

/* The same classes mod q, spread over all of |x| < multiples * q. */
static void
spread(struct poly *p, unsigned round, int multiples)
{
	const int max = multiples - 1;

	for (unsigned i = 0; i < N; i++) {
		int x = mod(p->c[i]);
		int t =
		    round % 3 == 0 ? max
		    : round % 3 == 1
			? -max
			: (int)test_stream_below(&stream, 2 * (uint32_t)max + 1) - max;

		p->c[i] = (int16_t)(x + t * Q);
		if (round % 3 == 1 && x != 0)
			p->c[i] = (int16_t)(p->c[i] - Q); /* down to the bound */
	}
}

static unsigned
ntt_is_wrong(const struct backend *backend)
{
	struct poly p;
	int want[N], got[N];
	unsigned wrong = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(p.c, round, -Q, Q);
		naive_ntt(want, p.c);
		backend->ntt(p.c);
		wrong += out_of_range(&p, 8 * Q - 1);
		hat_get(backend, got, &p);
		wrong += memcmp(got, want, sizeof want) != 0;
	}
	return wrong;
}

static unsigned
invntt_is_wrong(const struct backend *backend)
{
	struct poly p;
	int hat[N], again[N];
	unsigned wrong = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(p.c, round, 0, Q - 1);
		hat_get(backend, hat, &p); /* any polynomial is a transform */
		if (round >= 3)
			spread(&p, round, 4);
		for (unsigned i = 0; i < N && (round == 3 || round == 4); i++) {
			p.c[i] = (int16_t)(round == 3 ? PRODUCT_MAX : -PRODUCT_MAX);
			hat[i] = mod(p.c[i]);
		}
		backend->invntt(p.c);
		wrong += out_of_range(&p, 8 * Q - 1);
		naive_ntt(again, p.c); /* R times where it came from */
		for (unsigned i = 0; i < N; i++)
			wrong += again[i] != mod((long long)hat[i] * R);
	}
	return wrong;
}

static unsigned
basemul_is_wrong(const struct backend *backend, unsigned k)
{
	struct poly a[4], b[4], r;
	struct mulcache cache[4];
	int a_hat[N], b_hat[N], want[N], got[N];
	unsigned wrong = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		memset(want, 0, sizeof want);
		for (unsigned j = 0; j < k; j++) {
			int16_t values[N];

			/* a: decoded bytes, which need not be below q */
			fill(values, round, 0, 4095);
			for (unsigned i = 0; i < N; i++)
				a_hat[i] = values[i];
			hat_put(backend, &a[j], a_hat);
			fill(values, round, 0, Q - 1);
			for (unsigned i = 0; i < N; i++)
				b_hat[i] = values[i];
			hat_put(backend, &b[j], b_hat);
			spread(&b[j], round, 8);
			naive_basemul(want, a_hat, b_hat);
		}
		polyvec_mulcache(backend, cache, b, k);
		backend->basemul(r.c, a->c, b->c, cache->c, k);
		wrong += out_of_range(&r, PRODUCT_MAX);
		hat_get(backend, got, &r);
		for (unsigned i = 0; i < N; i++)
			wrong += mod((long long)got[i] * R) != want[i];
		backend->tomont(r.c);
		wrong += out_of_range(&r, Q);
		hat_get(backend, got, &r);
		wrong += memcmp(got, want, sizeof want) != 0;
	}
	return wrong;
}

static unsigned
tomont_is_wrong(const struct backend *backend)
{
	struct poly p, before;
	unsigned wrong = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(p.c, round, -PRODUCT_MAX, PRODUCT_MAX);
		before = p;
		backend->tomont(p.c);
		wrong += out_of_range(&p, Q);
		for (unsigned i = 0; i < N; i++)
			wrong += mod(p.c[i]) != mod((long long)before.c[i] * R);
	}
	return wrong;
}

static unsigned
sums_are_wrong(const struct backend *backend)
{
	struct poly a, b, r;
	unsigned wrong = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(a.c, round, -16384, 16383);
		fill(b.c, (round + 1) % ROUNDS, -16384, 16383);
		r = b;
		backend->add(r.c, a.c);
		for (unsigned i = 0; i < N; i++)
			wrong += r.c[i] != a.c[i] + b.c[i];
		r = b;
		backend->rsub(r.c, a.c);
		for (unsigned i = 0; i < N; i++)
			wrong += r.c[i] != a.c[i] - b.c[i];
	}
	return wrong;
}

/* invntt(ntt(a) ntt(b)) is the product mod X^256 + 1, by school multiplication. */
static unsigned
product_is_wrong(const struct backend *backend)
{
	struct poly a, b, a_hat[2], b_hat[2], r;
	struct mulcache cache[2];
	int hat[N], zero[N] = {0};
	unsigned wrong = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		long long want[N] = {0};

		fill(a.c, round, -Q, Q);
		fill(b.c, round, -3, 3);
		for (unsigned i = 0; i < N; i++) {
			for (unsigned j = 0; j < N; j++) {
				int sign = i + j < N ? 1 : -1;

				want[(i + j) % N] += sign * a.c[i] * b.c[j];
			}
		}
		a_hat[0] = a;
		b_hat[0] = b;
		poly_ntt(backend, &a_hat[0]);
		poly_ntt(backend, &b_hat[0]);
		hat_get(backend, hat, &a_hat[0]);
		hat_put(backend, &a_hat[0], hat);
		hat_put(backend, &a_hat[1], zero);
		b_hat[1] = b_hat[0];
		polyvec_mulcache(backend, cache, b_hat, 2);
		polyvec_basemul(backend, &r, a_hat, b_hat, cache, 2);
		poly_invntt(backend, &r);
		for (unsigned i = 0; i < N; i++)
			wrong += mod(r.c[i]) != mod(want[i]);
	}
	return wrong;
}

START_TEST(test_ntt)
{
	ck_assert_uint_eq(ntt_is_wrong(test_backend()), 0);
	ck_assert_uint_eq(invntt_is_wrong(test_backend()), 0);
}
END_TEST

START_TEST(test_basemul)
{
	for (unsigned k = 2; k <= 4; k++)
		ck_assert_uint_eq(basemul_is_wrong(test_backend(), k), 0);
	ck_assert_uint_eq(tomont_is_wrong(test_backend()), 0);
}
END_TEST

START_TEST(test_sums)
{
	ck_assert_uint_eq(sums_are_wrong(test_backend()), 0);
	ck_assert_uint_eq(product_is_wrong(test_backend()), 0);
}
END_TEST

/* A sum that was to be reduced and was not: wrong only where it overflows. */
static void
invntt_planted(int16_t *r)
{
	int overflows = 0;

	for (unsigned i = 0; i < N; i++)
		overflows |= r[i] == PRODUCT_MAX;
	test_backend()->invntt(r);
	r[255] = (int16_t)(r[255] + overflows);
}

/* One twiddle factor with the wrong sign. */
static void
mulcache_planted(int16_t *cache, const int16_t *b)
{
	test_backend()->mulcache(cache, b);
	cache[77] = (int16_t)-cache[77];
}

static void
ntt_planted(int16_t *r)
{
	test_backend()->ntt(r);
	r[200] = (int16_t)(mod(r[200]) + 8 * Q);
}

START_TEST(test_control)
{
	struct backend bad = *test_backend();

	bad.invntt = invntt_planted;
	ck_assert_uint_gt(invntt_is_wrong(&bad), 0);
	bad = *test_backend();
	bad.mulcache = mulcache_planted;
	ck_assert_uint_gt(basemul_is_wrong(&bad, 3), 0);
	bad = *test_backend();
	bad.ntt = ntt_planted; /* right mod q, out of its range */
	ck_assert_uint_gt(ntt_is_wrong(&bad), 0);
	bad = *test_backend();
	bad.rsub = bad.add;
	ck_assert_uint_gt(sums_are_wrong(&bad), 0);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("poly");
	TCase *tcase = tcase_create("poly");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_ntt);
	tcase_add_test(tcase, test_basemul);
	tcase_add_test(tcase, test_sums);
	tcase_add_test(tcase, test_control);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
