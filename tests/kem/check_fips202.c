/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams against OpenSSL's digests: every function, lengths around every boundary, all
 * of them side by side in one sponge.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "kem/fips202.h"
#include "tests/kem/kemtest.h"

#define OUT_MAX 600
#define IN_MAX  1700

struct function {
	const char *name; /* OpenSSL's */
	uint8_t words, suffix;
	size_t out_len;
};

static const struct function functions[] = {
    {"SHA3-256", SHA3_256_WORDS, SHA3_SUFFIX, 32},
    {"SHA3-512", SHA3_512_WORDS, SHA3_SUFFIX, 64},
    {"SHAKE128", SHAKE128_WORDS, SHAKE_SUFFIX, OUT_MAX},
    {"SHAKE256", SHAKE256_WORDS, SHAKE_SUFFIX, OUT_MAX},
};
#define N_FUNCTIONS (sizeof functions / sizeof functions[0])

static const size_t lengths[] = {0, 1, 7, 8, 9, 32, 33, 34, 64, 65, 71, 72, 73, 127,
    128, 135, 136, 137, 143, 144, 145, 167, 168, 169, 271, 272, 273, 335, 336, 337, 407,
    408, 409, 503, 504, 505, 1120, 1184, 1568, 1600};
#define N_LENGTHS (sizeof lengths / sizeof lengths[0])

static uint8_t input[IN_MAX];

static void
reference(const struct function *f, const uint8_t *in, size_t len, uint8_t *out)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_MD *md = EVP_MD_fetch(NULL, f->name, NULL);

	ck_assert(ctx && md && EVP_DigestInit_ex(ctx, md, NULL) == 1);
	ck_assert_int_eq(EVP_DigestUpdate(ctx, in, len), 1);
	if (f->out_len == OUT_MAX)
		ck_assert_int_eq(EVP_DigestFinalXOF(ctx, out, OUT_MAX), 1);
	else
		ck_assert_int_eq(EVP_DigestFinal_ex(ctx, out, NULL), 1);
	EVP_MD_free(md);
	EVP_MD_CTX_free(ctx);
}

/* One stream: where its input is cut, and what has come out so far. */
struct message {
	const struct function *f;
	size_t len, cut;
	uint8_t tail, n_blocks;
	size_t n_out;
	uint8_t out[OUT_MAX];
};

struct messages {
	struct stream_kind kind;
	struct stream_job job;
	struct message *list;
};

static void
message_start(void *ctx, unsigned index, struct stream *stream)
{
	struct messages *messages = ctx;
	struct message *m = &messages->list[index];
	size_t body = m->len - m->tail;

	stream->part[0] = m->cut ? input : NULL;
	stream->len[0] = m->cut;
	stream->part[1] = input + m->cut;
	stream->len[1] = body - m->cut;
	memcpy(stream->tail, input + body, m->tail);
	stream->tail_len = m->tail;
	stream->n_blocks = m->n_blocks;
	stream->to = m;
}

static bool
message_take(void *ctx, void *to, unsigned *progress, const uint8_t *bytes, size_t len)
{
	struct message *m = to;
	size_t rate = m->f->words * 8u;

	ck_assert_uint_eq(len, *progress == 0 ? m->n_blocks * rate : rate);
	ck_assert_uint_eq(*progress, m->n_out);
	*progress += (unsigned)len;
	for (size_t i = 0; i < len && m->n_out + i < OUT_MAX; i++)
		m->out[m->n_out + i] = bytes[i];
	m->n_out += len;
	return m->n_out < m->f->out_len;
}

static void
messages_init(struct messages *messages, const struct function *f, struct message *list,
    unsigned n)
{
	memset(messages, 0, sizeof *messages);
	messages->kind.rate_words = f->words;
	messages->kind.suffix = f->suffix;
	messages->kind.start = message_start;
	messages->kind.take = message_take;
	messages->job.kind = &messages->kind;
	messages->job.ctx = messages;
	messages->job.limit = n;
	messages->list = list;
}

static unsigned
message_is_wrong(const struct message *m)
{
	uint8_t want[OUT_MAX];

	reference(m->f, input, m->len, want);
	return m->n_out < m->f->out_len || memcmp(want, m->out, m->f->out_len) != 0;
}

static void
fill_input(void)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "fips202");
	test_stream_fill(&stream, input, sizeof input);
}

/* Every length with cuts and tails at and beside the boundaries. Returns wrong ones. */
static unsigned
run_lengths(const struct backend *backend)
{
	static struct message list[N_FUNCTIONS][N_LENGTHS * 9];
	static struct sponge sponge;
	struct messages messages[N_FUNCTIONS];
	unsigned n[N_FUNCTIONS] = {0}, wrong = 0;

	memset(list, 0, sizeof list);
	memset(&sponge, 0x5a, sizeof sponge);
	sponge_init(&sponge, backend);
	for (size_t f = 0; f < N_FUNCTIONS; f++) {
		for (size_t i = 0; i < N_LENGTHS * 9; i++) {
			struct message *m = &list[f][n[f]];
			size_t cuts[3] = {0, lengths[i / 9] / 2, 32};

			m->f = &functions[f];
			m->len = lengths[i / 9];
			m->tail = (uint8_t)(i % 3);
			m->cut = cuts[i / 3 % 3];
			m->n_blocks = (uint8_t)(1 + i % STREAM_BLOCKS_MAX);
			if (f < 2)
				m->n_blocks = 1;
			n[f] += m->tail + m->cut <= m->len;
		}
		messages_init(&messages[f], &functions[f], list[f], n[f]);
		sponge_add_last(&sponge, &messages[f].job);
	}
	/* The last first, so that the others ride along as they like. */
	for (size_t f = N_FUNCTIONS; f-- > 0;)
		sponge_run(&sponge, &messages[f].job, n[f]);
	for (size_t f = 0; f < N_FUNCTIONS; f++) {
		ck_assert_uint_gt(n[f], 4 * N_LENGTHS);
		for (unsigned i = 0; i < n[f]; i++)
			wrong += message_is_wrong(&list[f][i]);
	}
	return wrong;
}

START_TEST(test_lengths)
{
	fill_input();
	ck_assert_uint_eq(run_lengths(test_backend()), 0);
}
END_TEST

static void
keccak_planted(uint64_t *state)
{
	const struct backend *backend = test_backend();

	backend->keccak(state);
	state[24 * backend->lanes + backend->lanes - 1] ^= 1;
}

static void
absorb_planted(
    uint64_t *state, const uint8_t *const *block, const uint8_t *words, unsigned fresh)
{
	const struct backend *backend = test_backend();
	unsigned last = backend->lanes - 1;

	/* Forgets to clear the capacity of the last lane for a new stream. */
	for (unsigned i = 0; i < 17 && fresh >> last & 1; i++)
		state[i * backend->lanes + last] = 0;
	backend->absorb(state, block, words, fresh & ~(1u << last));
}

/* A fault of the last lane alone is seen. */
START_TEST(test_lengths_control)
{
	struct backend bad = *test_backend();

	fill_input();
	bad.keccak = keccak_planted;
	ck_assert_uint_gt(run_lengths(&bad), 0);
	bad = *test_backend();
	bad.absorb = absorb_planted;
	ck_assert_uint_gt(run_lengths(&bad), 0);
}
END_TEST

/* A run ends when its streams have; the others stay where they are, unharmed. */
START_TEST(test_riders)
{
	static struct sponge sponge;
	static struct message slow[3], quick[40];
	struct messages slow_job, quick_job;

	fill_input();
	memset(slow, 0, sizeof slow);
	memset(quick, 0, sizeof quick);
	for (unsigned i = 0; i < 3; i++)
		slow[i] = (struct message){
		    .f = &functions[0], .len = 1600, .cut = 32, .n_blocks = 1};
	for (unsigned i = 0; i < 40; i++)
		quick[i] = (struct message){
		    .f = &functions[3], .len = 33, .cut = 32, .tail = 1, .n_blocks = 2};
	sponge_init(&sponge, test_backend());
	messages_init(&slow_job, &functions[0], slow, 3);
	messages_init(&quick_job, &functions[3], quick, 40);
	sponge_add_last(&sponge, &slow_job.job);
	quick_job.job.limit = 10;
	sponge_add_first(&sponge, &quick_job.job);
	sponge_run(&sponge, &quick_job.job, 10);
	ck_assert_uint_eq(quick_job.job.next, 10);
	ck_assert_uint_eq(slow[0].n_out + slow[1].n_out + slow[2].n_out, 0);
	ck_assert(test_backend()->lanes == 1 || slow_job.job.next == 3);
	quick_job.job.limit = 40;
	sponge_run(&sponge, &quick_job.job, 25);
	ck_assert_uint_ge(quick_job.job.next, 25);
	sponge_run(&sponge, &slow_job.job, 3);
	sponge_run(&sponge, &quick_job.job, 40);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(message_is_wrong(&slow[i]), 0);
	for (unsigned i = 0; i < 40; i++)
		ck_assert_uint_eq(message_is_wrong(&quick[i]), 0);
}
END_TEST

/* Keccak-f[1600] of the zero state. */
static const uint64_t zero_state[KECCAK_WORDS] = {
    0xf1258f7940e1dde7,
    0x84d5ccf933c0478a,
    0xd598261ea65aa9ee,
    0xbd1547306f80494d,
    0x8b284e056253d057,
    0xff97a42d7f8e6fd4,
    0x90fee5a0a44647c4,
    0x8c5bda0cd6192e76,
    0xad30a6f71b19059c,
    0x30935ab7d08ffc64,
    0xeb5aa93f2317d635,
    0xa9a6e6260d712103,
    0x81a57c16dbcf555f,
    0x43b831cd0347c826,
    0x01f22f1a11a5569f,
    0x05e5635a21d9ae61,
    0x64befef28cc970f2,
    0x613670957bc46611,
    0xb87c5a554fd00ecb,
    0x8c3ee88a1ccf32c8,
    0x940c7922ae3a2614,
    0x1841f924a2c509e4,
    0x16f53526e70465c2,
    0x75f644e97f30a13b,
    0xeaf1ff7b5ceca249,
};

#define CANARY UINT64_C(0xc5c5c5c5c5c5c5c5)

static unsigned
keccak_is_wrong(const struct backend *backend)
{
	static _Alignas(64) uint64_t state[(KECCAK_WORDS + 1) * BACKEND_LANES_MAX];
	unsigned lanes = backend->lanes, wrong = 0;

	memset(state, 0, sizeof state);
	for (unsigned i = 0; i < BACKEND_LANES_MAX; i++)
		state[KECCAK_WORDS * lanes + i] = CANARY;
	backend->keccak(state);
	for (unsigned i = 0; i < KECCAK_WORDS * lanes; i++)
		wrong += state[i] != zero_state[i / lanes];
	for (unsigned i = 0; i < BACKEND_LANES_MAX; i++)
		wrong += state[KECCAK_WORDS * lanes + i] != CANARY;
	return wrong;
}

static void
keccak_beyond(uint64_t *state)
{
	const struct backend *backend = test_backend();

	backend->keccak(state);
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

/* Lanes are told apart: each starts elsewhere and ends where a lane alone would. */
START_TEST(test_keccak_lanes)
{
	static _Alignas(64) uint64_t state[KECCAK_WORDS * BACKEND_LANES_MAX];
	static _Alignas(64) uint64_t one[KECCAK_WORDS * BACKEND_LANES_MAX];
	const struct backend *backend = test_backend();
	unsigned lanes = backend->lanes;
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "keccak lanes");
	for (unsigned round = 0; round < 20; round++) {
		uint64_t start[KECCAK_WORDS * BACKEND_LANES_MAX];

		test_stream_fill(&stream, start, sizeof start);
		memcpy(state, start, sizeof state);
		backend->keccak(state);
		for (unsigned lane = 0; lane < lanes; lane++) {
			for (unsigned i = 0; i < KECCAK_WORDS; i++)
				one[i] = start[i * lanes + lane];
			backend_generic.keccak(one);
			for (unsigned i = 0; i < KECCAK_WORDS; i++)
				ck_assert_uint_eq(state[i * lanes + lane], one[i]);
		}
	}
}
END_TEST

/*
 * absorb and squeeze with every mixture of rates and fresh lanes, from and to any
 * alignment; the blocks end where their memory ends.
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
	for (unsigned round = 0; round < 300; round++) {
		uint8_t *memory[BACKEND_LANES_MAX], words[BACKEND_LANES_MAX];
		const uint8_t *block[BACKEND_LANES_MAX];
		uint8_t *out[BACKEND_LANES_MAX];
		uint64_t want[KECCAK_WORDS * BACKEND_LANES_MAX];
		unsigned fresh = test_stream_below(&stream, 256), offset = round % 64;

		test_stream_fill(&stream, state, sizeof state);
		for (unsigned lane = 0; lane < lanes; lane++) {
			words[lane] = rates[test_stream_below(&stream, 4)];
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
				want[i * lanes + lane] = x ^ in;
			}
		}
		backend->absorb(state, block, words, fresh & ((1u << lanes) - 1));
		ck_assert_mem_eq(state, want, KECCAK_WORDS * lanes * sizeof *want);

		for (unsigned lane = 0; lane < lanes; lane++) {
			size_t room = (words[lane] * 8u + 63) / 64 * 64;

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

			for (unsigned i = 0; i < words[lane]; i++)
				ck_assert_mem_eq(
				    out[lane] + 8 * i, &want[i * lanes + lane], 8);
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
	Suite *suite = suite_create("fips202");
	TCase *tcase = tcase_create("fips202");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_lengths);
	tcase_add_test(tcase, test_lengths_control);
	tcase_add_test(tcase, test_riders);
	tcase_add_test(tcase, test_keccak);
	tcase_add_test(tcase, test_keccak_lanes);
	tcase_add_test(tcase, test_absorb_squeeze);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
