/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams against OpenSSL's digests: every function, lengths around every boundary, all
 * of them side by side in one sponge.
 */
#include <check.h>
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

/* One stream: how long its head is, and what has come out so far. */
struct message {
	const struct function *f;
	size_t len;
	uint8_t head, n_blocks;
	const uint8_t *from;   /* where the input lies, if not in `input` */
	const size_t *missing; /* of it, as the stream's */
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

	memcpy(stream->head, input, m->head);
	stream->head_len = m->head;
	if (m->len > m->head) {
		stream->part = (m->from ? m->from : input) + m->head;
		stream->len = m->len - m->head;
	}
	stream->missing = m->missing;
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

/* Every length with heads of several lengths, long ones in `lanes`. Returns wrong ones. */
static unsigned
run_lengths(const struct backend *backend, unsigned lanes)
{
	static struct message list[N_FUNCTIONS][N_LENGTHS * 9];
	static const uint8_t heads[9] = {0, 1, 7, 8, 31, 32, 33, 63, STREAM_HEAD_MAX};
	static struct sponge sponge;
	struct messages messages[N_FUNCTIONS];
	unsigned n[N_FUNCTIONS] = {0}, wrong = 0;

	memset(list, 0, sizeof list);
	memset(&sponge, 0x5a, sizeof sponge);
	sponge_init(&sponge, backend);
	sponge_narrow(&sponge, lanes);
	for (size_t f = 0; f < N_FUNCTIONS; f++) {
		for (size_t i = 0; i < N_LENGTHS * 9; i++) {
			struct message *m = &list[f][n[f]];
			m->f = &functions[f];
			m->len = lengths[i / 9];
			m->head = heads[i % 9];
			m->n_blocks = (uint8_t)(1 + i % STREAM_BLOCKS_MAX);
			if (f < 2)
				m->n_blocks = 1;
			n[f] += m->head <= m->len;
		}
		messages_init(&messages[f], &functions[f], list[f], n[f]);
		messages[f].kind.is_short = f == 1;
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
	for (unsigned lanes = 1; lanes <= test_backend()->lanes; lanes++)
		ck_assert_uint_eq(run_lengths(test_backend(), lanes), 0);
}
END_TEST

static void
keccak_planted(uint64_t *state, unsigned active)
{
	const struct backend *backend = test_backend();

	backend->keccak(state, active);
	state[24 * backend->lanes + backend->lanes - 1] ^= 1;
}

static void
absorb_planted(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh)
{
	const struct backend *backend = test_backend();
	unsigned last = backend->lanes - 1;

	/* Forgets to clear the capacity of the last lane for a new stream. */
	for (unsigned i = 0; i < 17 && fresh >> last & 1; i++)
		state[i * backend->lanes + last] = 0;
	backend->absorb(state, block, words, end, fresh & ~(1u << last));
}

/* A fault of the last lane alone is seen. */
START_TEST(test_lengths_control)
{
	struct backend bad = *test_backend();

	fill_input();
	bad.keccak = keccak_planted;
	ck_assert_uint_gt(run_lengths(&bad, bad.lanes), 0);
	bad = *test_backend();
	bad.absorb = absorb_planted;
	ck_assert_uint_gt(run_lengths(&bad, bad.lanes), 0);
}
END_TEST

/* A run ends when its streams have; the others stay where they are, unharmed. */
START_TEST(test_riders)
{
	static struct sponge sponge;
	static struct message slow[3], quick[40];
	struct messages slow_job, quick_job;
	/* What the last of ten streams leave idle, of which slow takes up to three. */
	unsigned lanes = test_backend()->lanes, idle = (lanes - 10 % lanes) % lanes;

	fill_input();
	memset(slow, 0, sizeof slow);
	memset(quick, 0, sizeof quick);
	for (unsigned i = 0; i < 3; i++)
		slow[i] = (struct message){
		    .f = &functions[0], .len = 1600, .head = 32, .n_blocks = 1};
	for (unsigned i = 0; i < 40; i++)
		quick[i] = (struct message){
		    .f = &functions[3], .len = 33, .head = 33, .n_blocks = 2};
	sponge_init(&sponge, test_backend());
	messages_init(&slow_job, &functions[0], slow, 3);
	messages_init(&quick_job, &functions[3], quick, 40);
	sponge_add_last(&sponge, &slow_job.job);
	quick_job.job.limit = 10;
	sponge_add_first(&sponge, &quick_job.job);
	sponge_run(&sponge, &quick_job.job, 10);
	ck_assert_uint_eq(quick_job.job.next, 10);
	ck_assert_uint_eq(slow[0].n_out + slow[1].n_out + slow[2].n_out, 0);
	ck_assert_uint_eq(slow_job.job.next, idle < 3 ? idle : 3);
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

/*
 * Two long parts that come in pieces, beside streams that keep all lanes busy: a stream
 * takes what is there, leaves its lane when no whole block is, and goes on later. With
 * gated false it takes what has not come yet. Returns wrong ones.
 */
static unsigned
run_gated(size_t first, size_t piece, bool gated)
{
	static struct sponge sponge;
	static struct message late[SPONGE_PARKED_MAX], quick[64];
	static uint8_t part[1600];
	struct messages late_job, quick_job;
	size_t missing = sizeof part - first;
	unsigned wrong = 0, n_quick = 0;

	memset(late, 0, sizeof late);
	memset(quick, 0, sizeof quick);
	memset(part, 0xee, sizeof part);
	memcpy(part, input, first);
	for (unsigned i = 0; i < SPONGE_PARKED_MAX; i++)
		late[i] = (struct message){.f = &functions[0],
		    .len = sizeof part,
		    .n_blocks = 1,
		    .from = part,
		    .missing = gated ? &missing : NULL};
	for (unsigned i = 0; i < 64; i++)
		quick[i] = (struct message){
		    .f = &functions[2], .len = 34, .head = 34, .n_blocks = 3};
	sponge_init(&sponge, test_backend());
	messages_init(&late_job, &functions[0], late, SPONGE_PARKED_MAX);
	messages_init(&quick_job, &functions[2], quick, 64);
	sponge_add_first(&sponge, &quick_job.job);
	sponge_add_first(&sponge, &late_job.job);
	while (missing > 0) {
		size_t n = missing < piece ? missing : piece;

		n_quick = n_quick < 60 ? n_quick + 3 : n_quick;
		sponge_run(&sponge, &quick_job.job, n_quick);
		memcpy(part + sizeof part - missing, input + sizeof part - missing, n);
		missing -= n;
	}
	sponge_run(&sponge, &late_job.job, SPONGE_PARKED_MAX);
	sponge_run(&sponge, &quick_job.job, 64);
	ck_assert_uint_eq(sponge.n_parked, 0);
	for (unsigned i = 0; i < 64; i++)
		ck_assert_uint_eq(message_is_wrong(&quick[i]), 0);
	for (unsigned i = 0; i < SPONGE_PARKED_MAX; i++)
		wrong += message_is_wrong(&late[i]);
	return wrong;
}

START_TEST(test_gated)
{
	static const size_t pieces[] = {1, 17, 135, 136, 137, 271, 384, 1000, 1600};

	fill_input();
	for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
		ck_assert_uint_eq(run_gated(136, pieces[p], true), 0);
		ck_assert_uint_eq(run_gated(384, pieces[p], true), 0);
		ck_assert_uint_eq(run_gated(1599, pieces[p], true), 0);
	}
	ck_assert_uint_gt(run_gated(384, 384, false), 0);
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
	tcase_add_test(tcase, test_gated);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
