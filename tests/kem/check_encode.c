/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing and compression: every value in every position, against the rounding division
 * of FIPS 203 4.2.1 and bit-by-bit encoding; not a byte beside the output.
 */
#include <check.h>
#include <string.h>

#include "kem/encode.h"
#include "tests/kem/kemtest.h"

#define Q      MLKEM_Q
#define N      MLKEM_N
#define CANARY 0xc5

static const unsigned d_of[N_COMPRESS] = {1, 4, 5, 10, 11};

/* The division that the code itself may not use. */
static unsigned
round_compress(unsigned x, unsigned d)
{
	return ((x << d) + Q / 2) / Q & ((1u << d) - 1);
}

static unsigned
canonical(int x)
{
	return (unsigned)((x % Q + Q) % Q);
}

static unsigned
bits_get(const uint8_t *bytes, unsigned i, unsigned d)
{
	unsigned x = 0;

	for (unsigned j = 0; j < d; j++) {
		unsigned bit = i * d + j;

		x |= (bytes[bit / 8] >> bit % 8 & 1u) << j;
	}
	return x;
}

static void
bits_put(uint8_t *bytes, const unsigned *x, unsigned d)
{
	memset(bytes, 0, 32 * d);
	for (unsigned bit = 0; bit < N * d; bit++)
		bytes[bit / 8] |= (uint8_t)((x[bit / d] >> bit % d & 1) << bit % 8);
}

/* Each value of [first, first + 256) in each position if rotate, else in one. */
static unsigned
compress_is_wrong(const struct backend *backend, enum compress which, bool any)
{
	static uint8_t memory[64 + 352 + 64];
	const unsigned d = d_of[which];
	unsigned wrong = 0;
	struct poly p;

	for (int first = any ? INT16_MIN : 0; first < (any ? INT16_MAX : Q);
	     first += N) {
		for (unsigned rotate = 0; rotate < (any ? 3u : N); rotate++) {
			uint8_t *out = memory + 1 + rotate % 64;
			unsigned want[N];
			uint8_t bytes[352];

			for (unsigned i = 0; i < N; i++) {
				int x = first + (int)((i + rotate * 85) % N);

				p.c[i] = (int16_t)(any ? x : x % Q);
				want[i] = round_compress(canonical(p.c[i]), d);
			}
			bits_put(bytes, want, d);
			memset(memory, CANARY, sizeof memory);
			backend->compress[which](out, p.c);
			wrong += memcmp(out, bytes, 32 * d) != 0;
			wrong += out[-1] != CANARY || out[32 * d] != CANARY;
		}
	}
	return wrong;
}

/* Every y in every position. */
static unsigned
decompress_is_wrong(const struct backend *backend, enum compress which)
{
	static uint8_t memory[64 + 352];
	const unsigned d = d_of[which];
	struct poly p[2];
	unsigned wrong = 0;

	for (unsigned first = 0; first < 1u << d; first += d < 8 ? 1u << d : 64) {
		for (unsigned rotate = 0; rotate < N; rotate++) {
			/* The input ends where its memory does. */
			uint8_t *in = memory + sizeof memory - 32 * d;
			unsigned y[N];

			for (unsigned i = 0; i < N; i++)
				y[i] = (first + (i + rotate) % 64) & ((1u << d) - 1);
			bits_put(in, y, d);
			memset(p, 0x55, sizeof p);
			backend->decompress[which](p[0].c, in);
			for (unsigned i = 0; i < N; i++) {
				unsigned want = (y[i] * Q + (1u << (d - 1))) >> d;

				wrong += p[0].c[i] != (int)want;
				wrong += p[1].c[i] != 0x5555;
			}
		}
	}
	return wrong;
}

static unsigned
pack12_is_wrong(const struct backend *backend)
{
	static uint8_t memory[64 + 384 + 64];
	unsigned wrong = 0;
	struct poly p;

	for (unsigned first = 0; first < 4096; first += N) {
		for (unsigned rotate = 0; rotate < N; rotate++) {
			uint8_t *in = memory + 1 + rotate % 64, out[384 + 1];
			unsigned x[N];

			for (unsigned i = 0; i < N; i++)
				x[i] = first + (i + rotate) % N;
			bits_put(in, x, 12);
			backend->unpack12(p.c, in);
			out[384] = CANARY;
			backend->pack12(out, p.c);
			for (unsigned i = 0; i < N; i++) {
				wrong += p.c[i] < 0 || p.c[i] > 4095;
				wrong += bits_get(out, i, 12) != x[i] % Q;
			}
			wrong += out[384] != CANARY;
		}
	}
	/* Any int16_t: what is packed is the class mod q, whatever the order. */
	for (int x = INT16_MIN; x <= INT16_MAX; x++) {
		uint8_t out[384];

		for (unsigned i = 0; i < N; i++)
			p.c[i] = (int16_t)x;
		backend->pack12(out, p.c);
		for (unsigned i = 0; i < N; i += 51)
			wrong += bits_get(out, i, 12) != canonical(x);
	}
	return wrong;
}

static unsigned
check12_is_wrong(const struct backend *backend)
{
	static const unsigned values[] = {0, 1, 3327, 3328, 3329, 3330, 4094, 4095};
	unsigned wrong = 0;

	for (unsigned v = 0; v < sizeof values / sizeof values[0]; v++) {
		for (unsigned i = 0; i < N; i++) {
			uint8_t bytes[384];
			unsigned x[N];

			for (unsigned j = 0; j < N; j++)
				x[j] = (i + v) & 1 ? Q - 1 : 0;
			x[i] = values[v];
			bits_put(bytes, x, 12);
			wrong += backend->check12(bytes) != (values[v] >= Q);
		}
	}
	return wrong;
}

START_TEST(test_compress)
{
	for (enum compress d = 0; d < N_COMPRESS; d++) {
		ck_assert_uint_eq(compress_is_wrong(test_backend(), d, false), 0);
		ck_assert_uint_eq(compress_is_wrong(test_backend(), d, true), 0);
		ck_assert_uint_eq(compress_bytes(d), 32 * d_of[d]);
	}
}
END_TEST

START_TEST(test_decompress)
{
	for (enum compress d = 0; d < N_COMPRESS; d++)
		ck_assert_uint_eq(decompress_is_wrong(test_backend(), d), 0);
}
END_TEST

START_TEST(test_pack12)
{
	ck_assert_uint_eq(pack12_is_wrong(test_backend()), 0);
	ck_assert_uint_eq(check12_is_wrong(test_backend()), 0);
}
END_TEST

/* Vectors are polynomials one behind the other. */
START_TEST(test_vectors)
{
	const struct backend *backend = test_backend();
	static uint8_t in[4 * 384], out[4 * 384];
	static struct poly p[4], one;
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "encode");
	for (unsigned j = 0; j < 4; j++) {
		unsigned x[N];

		for (unsigned i = 0; i < N; i++)
			x[i] = test_stream_below(&stream, Q);
		bits_put(in + 384 * j, x, 12);
	}
	for (unsigned k = 1; k <= 4; k++) {
		polyvec_decode(backend, p, in, k);
		memset(out, CANARY, sizeof out);
		polyvec_encode(backend, out, p, k);
		ck_assert_mem_eq(in, out, 384 * k);
		for (size_t i = 384 * k; i < sizeof out; i++)
			ck_assert_uint_eq(out[i], CANARY);
		ck_assert_uint_eq(polyvec_check(backend, in, k), 0);
	}
	polyvec_decompress(backend, p, COMPRESS_11, in, 4);
	backend->decompress[COMPRESS_11](one.c, in + 3 * 352);
	ck_assert_mem_eq(&p[3], &one, sizeof one);
	in[3 * 384] = 0xff;
	in[3 * 384 + 1] |= 0x0f;
	ck_assert_uint_eq(polyvec_check(backend, in, 4), 1);
	ck_assert_uint_eq(polyvec_check(backend, in, 3), 0);
}
END_TEST

/* A constant that is wrong for one value alone, in one position alone. */
static void
compress10_planted(uint8_t *out, const int16_t *a)
{
	test_backend()->compress[COMPRESS_10](out, a);
	if (a[255] == 2381)
		out[319] ^= 0x40;
}

static void
decompress5_planted(int16_t *r, const uint8_t *in)
{
	test_backend()->decompress[COMPRESS_5](r, in);
	if (r[129] == (31 * Q + 16) >> 5)
		r[129]--;
}

static unsigned
check12_planted(const uint8_t *in)
{
	uint8_t copy[384];

	memcpy(copy, in, sizeof copy);
	copy[383] = 0; /* the last value is not looked at */
	return test_backend()->check12(copy);
}

/* A reduction that leaves q where it meant 0. */
static void
pack12_planted(uint8_t *out, const int16_t *a)
{
	test_backend()->pack12(out, a);
	if (a[0] == -9 * Q)
		out[0] = Q & 0xff, out[1] = (uint8_t)(Q >> 8);
}

START_TEST(test_control)
{
	struct backend bad = *test_backend();

	bad.compress[COMPRESS_10] = compress10_planted;
	bad.decompress[COMPRESS_5] = decompress5_planted;
	bad.check12 = check12_planted;
	bad.pack12 = pack12_planted;
	ck_assert_uint_gt(compress_is_wrong(&bad, COMPRESS_10, false), 0);
	ck_assert_uint_gt(decompress_is_wrong(&bad, COMPRESS_5), 0);
	ck_assert_uint_gt(check12_is_wrong(&bad), 0);
	ck_assert_uint_gt(pack12_is_wrong(&bad), 0);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("encode");
	TCase *tcase = tcase_create("encode");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_compress);
	tcase_add_test(tcase, test_decompress);
	tcase_add_test(tcase, test_pack12);
	tcase_add_test(tcase, test_vectors);
	tcase_add_test(tcase, test_control);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
