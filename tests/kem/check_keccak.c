/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three kernels on the transposed state: permutation, absorbing, squeezing.
 */
#include <check.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "kem/fips202.h"
#include "tests/kem/kemtest.h"

/* Keccak-f[1600] of the zero state. */
static const uint64_t zero_state[KECCAK_WORDS] = {0xf1258f7940e1dde7,
    0x84d5ccf933c0478a, 0xd598261ea65aa9ee, 0xbd1547306f80494d, 0x8b284e056253d057,
    0xff97a42d7f8e6fd4, 0x90fee5a0a44647c4, 0x8c5bda0cd6192e76, 0xad30a6f71b19059c,
    0x30935ab7d08ffc64, 0xeb5aa93f2317d635, 0xa9a6e6260d712103, 0x81a57c16dbcf555f,
    0x43b831cd0347c826, 0x01f22f1a11a5569f, 0x05e5635a21d9ae61, 0x64befef28cc970f2,
    0x613670957bc46611, 0xb87c5a554fd00ecb, 0x8c3ee88a1ccf32c8, 0x940c7922ae3a2614,
    0x1841f924a2c509e4, 0x16f53526e70465c2, 0x75f644e97f30a13b, 0xeaf1ff7b5ceca249};

#define ALL    ((1u << BACKEND_LANES_MAX) - 1)
#define CANARY UINT64_C(0xc5c5c5c5c5c5c5c5)

static unsigned
keccak_is_wrong(const struct backend *backend)
{
	static _Alignas(64) uint64_t state[(KECCAK_WORDS + 1) * BACKEND_LANES_MAX];
	unsigned lanes = backend->lanes, wrong = 0;

	memset(state, 0, sizeof state);
	for (unsigned i = 0; i < BACKEND_LANES_MAX; i++)
		state[KECCAK_WORDS * lanes + i] = CANARY;
	backend->keccak(state, ALL);
	for (unsigned i = 0; i < KECCAK_WORDS * lanes; i++)
		wrong += state[i] != zero_state[i / lanes];
	for (unsigned i = 0; i < BACKEND_LANES_MAX; i++)
		wrong += state[KECCAK_WORDS * lanes + i] != CANARY;
	return wrong;
}

static void
keccak_planted(uint64_t *state, unsigned active)
{
	const struct backend *backend = test_backend();

	backend->keccak(state, ALL);
	state[24 * backend->lanes + backend->lanes - 1] ^= 1;
}

static void
keccak_beyond(uint64_t *state, unsigned active)
{
	const struct backend *backend = test_backend();

	backend->keccak(state, ALL);
	state[KECCAK_WORDS * backend->lanes + 7] = 0;
}

START_TEST(test_keccak)
{
	struct backend bad = *test_backend();

	ck_assert_uint_eq(keccak_is_wrong(test_backend()), 0);
	bad.keccak = keccak_beyond;
	ck_assert_uint_eq(keccak_is_wrong(&bad), 1);
	bad.keccak = keccak_planted;
	ck_assert_uint_gt(keccak_is_wrong(&bad), 0);
}
END_TEST

/* A backend may have shorter ways for all lanes, a half, one alone, all but one. */
static unsigned
lanes_with_part(unsigned round)
{
	unsigned one = 1u << round / 6 % BACKEND_LANES_MAX;
	const unsigned parts[6] = {ALL, ALL, 0x0f, 0xf0, one, ALL & ~one};

	return parts[round % 6];
}

/* Lanes are told apart: each starts elsewhere and ends where a lane alone would. */
START_TEST(test_keccak_lanes)
{
	static _Alignas(64) uint64_t state[KECCAK_WORDS * BACKEND_LANES_MAX];
	static _Alignas(64) uint64_t one[KECCAK_WORDS * BACKEND_LANES_MAX];
	const struct backend *backend = test_backend();
	unsigned lanes = backend->lanes;
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "keccak lanes");
	for (unsigned round = 0; round < 60; round++) {
		uint64_t start[KECCAK_WORDS * BACKEND_LANES_MAX];
		unsigned active = lanes_with_part(round) & ((1u << lanes) - 1);

		test_stream_fill(&stream, start, sizeof start);
		memcpy(state, start, sizeof state);
		backend->keccak(state, active);
		for (unsigned lane = 0; lane < lanes; lane++) {
			if ((active >> lane & 1) == 0)
				continue;
			for (unsigned i = 0; i < KECCAK_WORDS; i++)
				one[i] = start[i * lanes + lane];
			backend_generic.keccak(one, 1);
			for (unsigned i = 0; i < KECCAK_WORDS; i++)
				ck_assert_uint_eq(state[i * lanes + lane], one[i]);
		}
	}
}
END_TEST

/*
 * absorb with every mixture of lengths, ends and fresh lanes, squeeze with every mixture
 * of rates, from and to any alignment; the blocks end where their memory ends.
 */
START_TEST(test_absorb_squeeze)
{
	static const uint8_t rates[4] = {
	    0, SHA3_512_WORDS, SHAKE256_WORDS, SHAKE128_WORDS};
	static _Alignas(64) uint64_t state[KECCAK_WORDS * BACKEND_LANES_MAX];
	const struct backend *backend = test_backend();
	unsigned lanes = backend->lanes;
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "absorb");
	for (unsigned round = 0; round < 900; round++) {
		uint8_t *memory[BACKEND_LANES_MAX], words[BACKEND_LANES_MAX];
		uint8_t end[BACKEND_LANES_MAX];
		const uint8_t *block[BACKEND_LANES_MAX];
		uint8_t *out[BACKEND_LANES_MAX];
		uint64_t want[KECCAK_WORDS * BACKEND_LANES_MAX];
		unsigned fresh = test_stream_below(&stream, 256), offset = round % 64;
		unsigned part = lanes_with_part(round);

		test_stream_fill(&stream, state, sizeof state);
		for (unsigned lane = 0; lane < lanes; lane++) {
			words[lane] =
			    (uint8_t)test_stream_below(&stream, round < 60 ? 9 : 22);
			end[lane] = rates[test_stream_below(&stream, 4)];
			if ((part >> lane & 1) == 0) {
				words[lane] = end[lane] = 0;
				fresh &= ~(1u << lane);
			}
			memory[lane] = malloc(64 + words[lane] * 8u);
			ck_assert_ptr_nonnull(memory[lane]);
			test_stream_fill(&stream, memory[lane], 64 + words[lane] * 8u);
			block[lane] = memory[lane] + 64;
			for (unsigned i = 0; i < KECCAK_WORDS; i++) {
				uint64_t x =
				    fresh >> lane & 1 ? 0 : state[i * lanes + lane];
				uint64_t in = 0;

				if (i < words[lane])
					memcpy(&in, block[lane] + 8 * i, 8);
				in = le64toh(in);
				if (i + 1 == end[lane])
					in ^= UINT64_C(1) << 63;
				want[i * lanes + lane] = x ^ in;
			}
		}
		backend->absorb(state, block, words, end, fresh & ((1u << lanes) - 1));
		ck_assert_mem_eq(state, want, KECCAK_WORDS * lanes * sizeof *want);

		for (unsigned lane = 0; lane < lanes; lane++) {
			size_t room;

			words[lane] = rates[test_stream_below(&stream, 4)];
			if ((part >> lane & 1) == 0)
				words[lane] = 0;
			room = (words[lane] * 8u + 63) / 64 * 64;
			free(memory[lane]);
			memory[lane] = malloc(64 + room + 1);
			ck_assert_ptr_nonnull(memory[lane]);
			memset(memory[lane], 0xc5, 64 + room + 1);
			out[lane] = memory[lane] + offset;
		}
		backend->squeeze(state, out, words);
		ck_assert_mem_eq(state, want, KECCAK_WORDS * lanes * sizeof *want);
		for (unsigned lane = 0; lane < lanes; lane++) {
			size_t room = (words[lane] * 8u + 63) / 64 * 64;

			for (unsigned i = 0; i < words[lane]; i++) {
				uint64_t word = htole64(want[i * lanes + lane]);

				ck_assert_mem_eq(out[lane] + 8 * i, &word, 8);
			}
			for (unsigned i = 0; i < offset; i++)
				ck_assert_uint_eq(memory[lane][i], 0xc5);
			for (size_t i = offset + room; i < 64 + room + 1; i++)
				ck_assert_uint_eq(memory[lane][i], 0xc5);
			free(memory[lane]);
		}
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("keccak");
	TCase *tcase = tcase_create("keccak");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_keccak);
	tcase_add_test(tcase, test_keccak_lanes);
	tcase_add_test(tcase, test_absorb_squeeze);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
