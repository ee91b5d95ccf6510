/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel that takes bytes, with each of its pointers at every alignment, for every
 * length that it can be asked for, against the portable one; at some of the alignments
 * the bytes end where their memory ends. Values of all kinds are in check_kernels.c.
 */
#include <check.h>
#include <string.h>

#include "kem/fips202.h"
#include "kem/poly.h"
#include "tests/kem/guarded.h"
#include "tests/kem/kemtest.h"

#define N     MLKEM_N
#define LINE  64 /* alignments are told apart to a cache line */
#define LANES BACKEND_LANES_MAX

static const struct backend *const generic = &backend_generic;
static const unsigned d_of[N_COMPRESS] = {1, 4, 5, 10, 11};

static struct test_stream stream;
static struct guarded in[LANES], out[LANES];

static void
setup(void)
{
	test_stream_init(&stream, test_seed(), "alignment");
	for (unsigned i = 0; i < LANES; i++) {
		guarded_init(&in[i]);
		guarded_init(&out[i]);
	}
}

static void
poly_fill(struct poly *p)
{
	test_stream_fill(&stream, p->c, sizeof p->c);
}

static unsigned
compression_differs(const struct backend *backend, enum compress d)
{
	const size_t len = 32 * d_of[d];
	unsigned n = 0;

	for (unsigned at = 0; at < LINE; at++) {
		uint8_t want[352], *bytes = guarded_place(&out[0], len, at);
		struct poly p, g;

		poly_fill(&p);
		backend->compress[d](bytes, p.c);
		generic->compress[d](want, p.c);
		n += memcmp(bytes, want, len) != 0 || !guarded_is_intact(&out[0]);
		backend->decompress[d](p.c, bytes);
		generic->decompress[d](g.c, want);
		n += memcmp(p.c, g.c, sizeof p.c) != 0;
	}
	return n;
}

/* And one value that is too large, in each position at some alignment and each way. */
static unsigned
packing_differs(const struct backend *backend)
{
	unsigned n = 0;

	for (unsigned at = 0; at < 4 * N; at++) {
		uint8_t want[384], *bytes = guarded_place(&out[0], 384, at % LINE);
		uint8_t *pair = bytes + at % N / 2 * 3;
		struct poly p, g;

		poly_fill(&g);
		generic->pack12(want, g.c);
		memcpy(bytes, want, 384);
		n += backend->check12(bytes) != 0;
		backend->unpack12(p.c, bytes);
		memset(bytes, 0, 384);
		backend->pack12(bytes, p.c);
		n += memcmp(bytes, want, 384) != 0 || !guarded_is_intact(&out[0]);
		pair[at % 2 ? 2 : 1] |= at % 2 ? 0xf0 : 0x0f;
		pair[at % 2 ? 1 : 0] |= at % 2 ? 0xf0 : 0xff;
		n += backend->check12(bytes) != 1;
	}
	return n;
}

static unsigned
noise_differs(const struct backend *backend)
{
	unsigned n = 0;

	for (unsigned at = 0; at < LINE; at++) {
		uint8_t *bytes = guarded_place(&in[0], 192, LINE + at);
		struct poly p, g;

		test_stream_fill(&stream, bytes, 192);
		backend->cbd3(p.c, bytes);
		generic->cbd3(g.c, bytes);
		n += memcmp(p.c, g.c, sizeof p.c) != 0;
		bytes = guarded_place(&in[0], 128, LINE + at);
		test_stream_fill(&stream, bytes, 128);
		backend->cbd2(p.c, bytes);
		generic->cbd2(g.c, bytes);
		n += memcmp(p.c, g.c, sizeof p.c) != 0;
	}
	return n;
}

/* Candidates of random bytes, none that is taken, all taken, and q beside q - 1. */
static void
candidates_fill(uint8_t *bytes, size_t len, unsigned kind)
{
	static const uint8_t border[3] = {0x00, 0x1d, 0xd0}; /* q - 1, q */

	test_stream_fill(&stream, bytes, len);
	for (size_t i = 0; i < len; i++) {
		if (kind == 1)
			bytes[i] = 0xff;
		else if (kind == 2)
			bytes[i] &= i % 3 == 1 ? 0xbb : 0xbf;
		else if (kind == 3)
			bytes[i] = border[i % 3];
	}
}

static unsigned
rejection_differs(const struct backend *backend)
{
	unsigned n = 0;

	for (unsigned at = 0; at < 16 * LINE; at++) {
		const size_t len = 168 * (1 + at % 5);
		const unsigned start = at * 67 % N;
		uint8_t *bytes = guarded_place(&in[0], len, LINE + at % LINE);
		struct poly g,
		    *p = (struct poly *)(void *)guarded_place(&out[0], sizeof g, 0);
		unsigned count, want;

		candidates_fill(bytes, len, at / LINE % 4);
		memset(&g, 0, sizeof g);
		memset(p, 0, sizeof g);
		count = backend->rej_uniform(p->c, start, bytes, len);
		want = generic->rej_uniform(g.c, start, bytes, len);
		n += count != want || !guarded_is_intact(&out[0]);
		if (want == N) {
			uint8_t a[384], b[384];

			backend->pack12(a, p->c);
			generic->pack12(b, g.c);
			n += memcmp(a, b, sizeof a) != 0;
		} else {
			n += memcmp(p->c, g.c, want * sizeof g.c[0]) != 0;
		}
	}
	return n;
}

/* Lengths that kem/ compares, and odd ones. */
static const size_t lengths[] = {1, 31, 32, 33, 63, 64, 65, 128, 160, 320, 352, 1568};

#define N_LENGTHS (sizeof lengths / sizeof lengths[0])

static unsigned
comparison_differs(const struct backend *backend)
{
	unsigned n = 0;

	for (unsigned at = 0; at < LINE * LINE; at++) {
		const size_t len = lengths[(at / LINE + at) % N_LENGTHS];
		uint8_t *a = guarded_place(&in[0], len, at % LINE);
		uint8_t *b = guarded_place(&in[1], len, at / LINE);
		uint8_t *byte = &b[at * 31 % len];

		memcpy(b, a, len);
		n += backend->compare(a, b, len) != 0;
		*byte ^= (uint8_t)(1u << at % 8);
		n += backend->compare(a, b, len) == 0;
		*byte = a[0];
		b[len - 1] ^= 0x80;
		n += backend->compare(a, b, len) == 0;
	}
	return n;
}

static unsigned
selection_differs(const struct backend *backend)
{
	unsigned n = 0;

	for (unsigned at = 0; at < LINE * LINE; at++) {
		const size_t len = lengths[(at / LINE + at) % N_LENGTHS];
		const bool first = at / 7 % 2;
		uint8_t *a = guarded_place(&in[0], len, at % LINE);
		uint8_t *b = guarded_place(&in[1], len, at / LINE);
		uint8_t *r = guarded_place(&out[0], len, at * 29 % LINE);

		memset(a, 0x3c, len);
		memset(b, 0x5a, len);
		a[len - 1] = b[0] = (uint8_t)at;
		backend->select(r, a, b, len, first ? UINT64_MAX : 0);
		n += memcmp(r, first ? a : b, len) != 0 || !guarded_is_intact(&out[0]);
	}
	return n;
}

struct sponges {
	_Alignas(64) uint64_t state[KECCAK_WORDS * LANES];
	const uint8_t *block[LANES];
	uint8_t *out[LANES];
	uint8_t words[LANES], end[LANES];
};

/* Lengths and alignments of all lanes differ, and go round. */
static void
sponge_fill(struct sponges *s, unsigned words, unsigned at)
{
	static const uint8_t ends[4] = {
	    0, SHA3_512_WORDS, SHAKE256_WORDS, SHAKE128_WORDS};

	test_stream_fill(&stream, s->state, sizeof s->state);
	for (unsigned lane = 0; lane < LANES; lane++) {
		unsigned n = (words + lane * 5) % 22, slack = (at + lane * 9) % LINE;
		size_t room = (n * 8u + 63) / 64 * 64;
		uint8_t *block = guarded_place(&in[lane], n * 8u, slack);

		test_stream_fill(&stream, block, n * 8u);
		s->block[lane] = block;
		s->words[lane] = (uint8_t)n;
		s->end[lane] = ends[(words + at + lane) % 4];
		s->out[lane] = guarded_place(&out[lane], room, slack);
	}
}

static unsigned
lane_differs(
    const struct sponges *s, const uint64_t *want, unsigned lanes, unsigned lane)
{
	unsigned n = 0;

	for (unsigned i = 0; i < KECCAK_WORDS; i++)
		n += s->state[i * lanes + lane] != want[i];
	return n;
}

/* absorb and squeeze, every number of words at every alignment. */
static unsigned
sponge_differs(const struct backend *backend)
{
	static struct sponges s;
	const unsigned lanes = backend->lanes;
	unsigned n = 0;

	for (unsigned at = 0; at < 22 * LINE; at++) {
		unsigned fresh = at * 37 & ((1u << lanes) - 1);
		uint64_t want[LANES][KECCAK_WORDS];

		sponge_fill(&s, at % 22, at / 22);
		for (unsigned lane = 0; lane < lanes; lane++) {
			for (unsigned i = 0; i < KECCAK_WORDS; i++)
				want[lane][i] = s.state[i * lanes + lane];
			generic->absorb(want[lane], &s.block[lane], &s.words[lane],
			    &s.end[lane], fresh >> lane & 1);
		}
		backend->absorb(s.state, s.block, s.words, s.end, fresh);
		backend->squeeze(s.state, s.out, s.words);
		for (unsigned lane = 0; lane < lanes; lane++) {
			uint8_t bytes[192], *to = bytes;

			n += lane_differs(&s, want[lane], lanes, lane);
			generic->squeeze(want[lane], &to, &s.words[lane]);
			n += memcmp(s.out[lane], bytes, s.words[lane] * 8u) != 0;
			n += !guarded_is_intact(&out[lane]);
		}
	}
	return n;
}

START_TEST(test_polynomials)
{
	const struct backend *backend = test_backend();

	for (unsigned d = 0; d < N_COMPRESS; d++)
		ck_assert_uint_eq(compression_differs(backend, (enum compress)d), 0);
	ck_assert_uint_eq(packing_differs(backend), 0);
	ck_assert_uint_eq(noise_differs(backend), 0);
	ck_assert_uint_eq(rejection_differs(backend), 0);
}
END_TEST

START_TEST(test_bytes)
{
	ck_assert_uint_eq(comparison_differs(test_backend()), 0);
	ck_assert_uint_eq(selection_differs(test_backend()), 0);
	ck_assert_uint_eq(sponge_differs(test_backend()), 0);
}
END_TEST

/* Kernels that are right for most alignments or lengths. */
static uint64_t
compare_planted(const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t skipped = (uintptr_t)b % LINE == 5 && len > 1 ? 1 : 0;

	return test_backend()->compare(a, b, len - skipped);
}

static void
pack12_planted(uint8_t *bytes, const int16_t *a)
{
	test_backend()->pack12(bytes, a);
	bytes[383] ^= (uintptr_t)bytes % LINE == 63;
}

static void
squeeze_planted(const uint64_t *state, uint8_t *const *to, const uint8_t *words)
{
	test_backend()->squeeze(state, to, words);
	if (words[0] == 21)
		to[0][167] ^= 1;
}

static void
absorb_planted(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh)
{
	uint8_t fewer[LANES];

	memcpy(fewer, words, sizeof fewer);
	fewer[0] -= words[0] == 13;
	test_backend()->absorb(state, block, fewer, end, fresh);
}

static void
cbd2_planted(int16_t *r, const uint8_t *bytes)
{
	test_backend()->cbd2(r, (uintptr_t)bytes % 32 == 17 ? bytes + 1 : bytes);
}

START_TEST(test_control)
{
	struct backend bad = *test_backend();

	bad.compare = compare_planted;
	ck_assert_uint_gt(comparison_differs(&bad), 0);
	bad.pack12 = pack12_planted;
	ck_assert_uint_gt(packing_differs(&bad), 0);
	bad.squeeze = squeeze_planted;
	ck_assert_uint_gt(sponge_differs(&bad), 0);
	bad = *test_backend();
	bad.absorb = absorb_planted;
	ck_assert_uint_gt(sponge_differs(&bad), 0);
	bad.cbd2 = cbd2_planted;
	ck_assert_uint_gt(noise_differs(&bad), 0);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("alignment");
	TCase *tcase = tcase_create("alignment");

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, test_polynomials);
	tcase_add_test(tcase, test_bytes);
	tcase_add_test(tcase, test_control);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
