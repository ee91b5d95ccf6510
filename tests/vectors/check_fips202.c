/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA3-256, SHA3-512, SHAKE128 and SHAKE256 against NIST's ACVP and BoringSSL's vectors,
 * each message alone and then all of a file side by side in one sponge.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "kem/fips202.h"
#include "vectors.h"

enum function { SHA3_256, SHA3_512, SHAKE128, SHAKE256, N_FUNCTIONS };

static const struct {
	const char *name;  /* ACVP's */
	const char *label; /* BoringSSL's */
	uint8_t words, suffix;
	size_t out_len; /* 0: the case says it */
} functions[N_FUNCTIONS] = {
    {"SHA3-256", "SHA3-256: ", SHA3_256_WORDS, SHA3_SUFFIX, 32},
    {"SHA3-512", "SHA3-512: ", SHA3_512_WORDS, SHA3_SUFFIX, 64},
    {"SHAKE-128", "SHAKE-128: ", SHAKE128_WORDS, SHAKE_SUFFIX, 0},
    {"SHAKE-256", "SHAKE-256: ", SHAKE256_WORDS, SHAKE_SUFFIX, 0},
};

struct message {
	struct bytes in, expected, out;
	size_t n_out;
};

/* The messages of one function, as a job of a sponge. */
struct messages {
	enum function function;
	struct message *list;
	size_t n, size;
	struct stream_kind kind;
	struct stream_job job;
};

static void
message_start(void *ctx, unsigned index, struct stream *stream)
{
	struct messages *messages = ctx;
	struct message *message = &messages->list[index];
	size_t half = message->in.len / 2;
	size_t head = half < STREAM_HEAD_MAX ? half : STREAM_HEAD_MAX;

	memcpy(stream->head, message->in.p, head);
	stream->head_len = (uint8_t)head;
	stream->part = message->in.p + head;
	stream->len = message->in.len - head;
	stream->n_blocks = 1;
	stream->to = message;
}

static bool
message_take(void *ctx, void *to, unsigned *progress, const uint8_t *bytes, size_t len)
{
	struct message *message = to;
	size_t n = message->out.len - message->n_out;

	(void)ctx, (void)progress;
	n = n < len ? n : len;
	memcpy(message->out.p + message->n_out, bytes, n);
	message->n_out += n;
	return message->n_out < message->out.len;
}

static void
messages_add(struct messages *messages, struct bytes in, struct bytes expected)
{
	struct message *more;

	if (messages->n == messages->size) {
		messages->size = 2 * messages->size + 64;
		more = vectors_alloc(messages->size * sizeof(*more));
		if (messages->n > 0)
			memcpy(more, messages->list, messages->n * sizeof(*more));
		messages->list = more;
	}
	messages->list[messages->n++] = (struct message){.in = in,
	    .expected = expected,
	    .out = {vectors_alloc(expected.len), expected.len}};
}

static void
messages_start(struct messages *messages, struct message *list, size_t n)
{
	messages->kind = (struct stream_kind){
	    .rate_words = functions[messages->function].words,
	    .suffix = functions[messages->function].suffix,
	    .start = message_start,
	    .take = message_take,
	};
	messages->job = (struct stream_job){
	    .kind = &messages->kind, .ctx = messages, .limit = (unsigned)n};
	messages->list = list;
	for (size_t i = 0; i < n; i++) {
		memset(list[i].out.p, 0, list[i].out.len);
		list[i].n_out = 0;
	}
}

static size_t
messages_wrong(const struct messages *messages)
{
	size_t n_wrong = 0;

	for (size_t i = 0; i < messages->n; i++) {
		const struct message *message = &messages->list[i];

		n_wrong += message->n_out != message->expected.len ||
			   memcmp(message->out.p, message->expected.p,
			       message->expected.len) != 0;
	}
	return n_wrong;
}

/* Choosing a backend asks the CPU, which is slow in a virtual machine. */
static const struct backend *
backend_kept(void)
{
	static const struct backend *backend;

	if (!backend)
		backend = test_backend();
	return backend;
}

/* All messages of all functions at once. Returns how many came out wrong. */
static size_t
run_together(struct messages *all, size_t n)
{
	static struct sponge sponge;
	size_t n_wrong = 0;

	sponge_init(&sponge, backend_kept());
	for (size_t i = 0; i < n; i++) {
		messages_start(&all[i], all[i].list, all[i].n);
		sponge_add_last(&sponge, &all[i].job);
	}
	for (size_t i = 0; i < n; i++)
		sponge_run(&sponge, &all[i].job, (unsigned)all[i].n);
	for (size_t i = 0; i < n; i++)
		n_wrong += messages_wrong(&all[i]);
	return n_wrong;
}

static void
run_one(enum function function, struct message *message)
{
	static struct sponge sponge;
	struct messages one = {.function = function};

	sponge_init(&sponge, backend_kept());
	messages_start(&one, message, 1);
	sponge_add_last(&sponge, &one.job);
	sponge_run(&sponge, &one.job, 1);
}

static size_t
run_singly(struct messages *all, size_t n)
{
	size_t n_wrong = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < all[i].n; j++)
			run_one(all[i].function, &all[i].list[j]);
		n_wrong += messages_wrong(&all[i]);
	}
	return n_wrong;
}

/* Both ways; and each expected value, once spoiled, is found. */
static void
messages_check(struct messages *all, size_t n)
{
	size_t n_messages = 0;

	ck_assert_uint_eq(run_singly(all, n), 0);
	ck_assert_uint_eq(run_together(all, n), 0);
	for (size_t i = 0; i < n; i++) {
		n_messages += all[i].n;
		for (size_t j = 0; j < all[i].n; j++) {
			struct bytes *expected = &all[i].list[j].expected;

			expected->p[j % expected->len] ^= 0x20;
		}
	}
	ck_assert_uint_eq(run_together(all, n), n_messages);
}

static struct bytes
digest(enum function function, struct bytes in, size_t out_len)
{
	struct message message = {.in = in, .out = {vectors_alloc(out_len), out_len}};

	run_one(function, &message);
	ck_assert_uint_eq(message.n_out, out_len);
	return message.out;
}

/* ACVP's Monte Carlo test of SHA-3: a chain of 1000 digests, 100 times. */
static bool
mct_sha3_is_right(enum function function, struct json_object *test)
{
	struct json_object *results = json_get(test, "resultsArray");
	struct message message = {.in = json_bytes(test, "msg")};
	uint8_t out[64];

	ck_assert_uint_eq(json_number(test, "len"), 8 * message.in.len);
	ck_assert_uint_eq(json_len(results), 100);
	message.out = (struct bytes){out, functions[function].out_len};
	for (size_t j = 0; j < 100; j++) {
		struct json_object *result = json_at(results, j);
		struct bytes md = json_bytes(result, "md");

		json_only(result, "md outLen");
		for (int i = 0; i < 1000; i++) {
			message.n_out = 0;
			run_one(function, &message);
			memcpy(message.in.p, out, message.in.len);
		}
		if (md.len != message.out.len || memcmp(md.p, out, md.len) != 0)
			return false;
	}
	return true;
}

/* That of SHAKE: the output's first 128 bits go in again, its last 16 give the length. */
static bool
mct_shake_is_right(
    enum function function, struct json_object *test, size_t min_len, size_t max_len)
{
	struct json_object *results = json_get(test, "resultsArray");
	struct message message = {.in = json_bytes(test, "msg")};
	size_t out_len = max_len;
	uint8_t out[512];

	ck_assert_uint_eq(message.in.len, 16);
	ck_assert_uint_le(max_len, sizeof(out));
	ck_assert_uint_ge(min_len, 16);
	ck_assert_uint_eq(json_len(results), 100);
	for (size_t j = 0; j < 100; j++) {
		struct json_object *result = json_at(results, j);
		struct bytes md = json_bytes(result, "md");
		size_t used = 0;

		json_only(result, "md outLen");
		for (int i = 0; i < 1000; i++) {
			used = out_len;
			message.out = (struct bytes){out, out_len};
			message.n_out = 0;
			run_one(function, &message);
			memcpy(message.in.p, out, 16);
			out_len = min_len + (out[used - 2] * 256u + out[used - 1]) %
						(max_len - min_len + 1);
		}
		if (md.len != used || json_number(result, "outLen") != 8 * used ||
		    memcmp(md.p, out, used) != 0)
			return false;
	}
	return true;
}

static void
mct_check(enum function function, struct json_object *group, struct json_object *test)
{
	json_only(test, "tcId msg len outLen resultsArray");
	if (functions[function].out_len)
		ck_assert(mct_sha3_is_right(function, test));
	else
		ck_assert(mct_shake_is_right(function, test,
		    json_number(group, "minOutLen") / 8,
		    json_number(group, "maxOutLen") / 8));
}

static void
case_read(struct messages *messages, struct json_object *test)
{
	const size_t fixed = functions[messages->function].out_len;
	struct bytes in = json_bytes(test, "msg"), md = json_bytes(test, "md");

	json_only(test, "tcId msg len md outLen");
	/* "00" stands for the empty message too */
	ck_assert_uint_eq(json_number(test, "len") % 8, 0);
	ck_assert_uint_le(json_number(test, "len") / 8, in.len);
	in = bytes_new(in.p, json_number(test, "len") / 8);
	ck_assert_uint_eq(8 * md.len, fixed ? 8 * fixed : json_number(test, "outLen"));
	messages_add(messages, in, md);
}

static const struct {
	const char *path;
	enum function function;
} acvp[] = {
    {"fips202/acvp-SHA3-256-2.0.json", SHA3_256},
    {"fips202/acvp-SHA3-512-2.0.json", SHA3_512},
    {"fips202/acvp-SHAKE-128-1.0.json", SHAKE128},
    {"fips202/acvp-SHAKE-128-FIPS202.json", SHAKE128},
    {"fips202/acvp-SHAKE-256-1.0.json", SHAKE256},
    {"fips202/acvp-SHAKE-256-FIPS202.json", SHAKE256},
};
#define N_ACVP (int)(sizeof(acvp) / sizeof(acvp[0]))

START_TEST(test_acvp)
{
	struct json_object *file = vectors_json(acvp[_i].path);
	struct json_object *groups = json_get(file, "testGroups");
	struct messages messages = {.function = acvp[_i].function};
	size_t n_mct = 0;

	json_only(file, "vsId algorithm revision isSample testGroups note");
	ck_assert_str_eq(
	    json_text(file, "algorithm"), functions[acvp[_i].function].name);
	for (size_t g = 0; g < json_len(groups); g++) {
		struct json_object *group = json_at(groups, g);
		struct json_object *tests = json_get(group, "tests");
		const char *type = json_text(group, "testType");

		json_only(group, "tgId testType mctVersion maxOutLen minOutLen tests");
		for (size_t t = 0; t < json_len(tests); t++) {
			if (strcmp(type, "MCT") == 0) {
				ck_assert_str_eq(
				    json_text(group, "mctVersion"), "standard");
				mct_check(acvp[_i].function, group, json_at(tests, t));
				n_mct++;
			} else {
				ck_assert(strcmp(type, "AFT") == 0 ||
					  strcmp(type, "VOT") == 0);
				case_read(&messages, json_at(tests, t));
			}
		}
	}
	vectors_ran(acvp[_i].path, messages.n + n_mct, vectors_count(file));
	messages_check(&messages, 1);
}
END_TEST

/* Records of five lines: the input and what each function makes of it. */
START_TEST(test_boringssl)
{
	const char *path = "fips202/boringssl_keccak_tests.txt";
	char *text = vectors_text(path), *line;
	struct messages all[N_FUNCTIONS];
	size_t n = 0, n_in_file = 0;

	for (const char *p = text; (p = strstr(p, "Input:")); p++)
		n_in_file++;
	memset(all, 0, sizeof(all));
	while ((line = vectors_line(&text))) {
		struct bytes in;

		ck_assert_int_eq(strncmp(line, "Input:", 6), 0);
		in = bytes_hex(line + 6 + strspn(line + 6, " "));
		for (size_t f = 0; f < N_FUNCTIONS; f++) {
			const size_t len = strlen(functions[f].label);

			line = vectors_line(&text);
			ck_assert_ptr_nonnull(line);
			ck_assert_int_eq(strncmp(line, functions[f].label, len), 0);
			all[f].function = (enum function)f;
			messages_add(&all[f], in, bytes_hex(line + len));
		}
		n++;
	}
	vectors_ran(path, n, n_in_file);
	messages_check(all, N_FUNCTIONS);
}
END_TEST

/* The Monte Carlo tests notice one wrong bit at the start. */
START_TEST(test_control)
{
	static const uint8_t in[16] = {1};
	struct bytes a = digest(SHAKE128, bytes_new(in, 16), 300);
	struct bytes b = digest(SHAKE128, bytes_new(in, 15), 300);
	struct json_object *file = vectors_json("fips202/acvp-SHA3-256-2.0.json");
	struct json_object *test =
	    json_at(json_get(json_at(json_get(file, "testGroups"), 1), "tests"), 0);
	struct json_object *msg = json_get(test, "msg");
	char *text = (char *)bytes_new(json_object_get_string(msg), 65).p;

	ck_assert_mem_ne(a.p, b.p, 300);
	text[63] = text[63] == '0' ? '1' : '0';
	ck_assert_int_eq(json_object_set_string(msg, text), 1);
	ck_assert(!mct_sha3_is_right(SHA3_256, test));
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("fips202");
	TCase *tc = tcase_create("fips202");

	tcase_set_timeout(tc, 300);
	tcase_add_checked_fixture(tc, NULL, vectors_forget);
	tcase_add_loop_test(tc, test_acvp, 0, N_ACVP);
	tcase_add_test(tc, test_boringssl);
	tcase_add_test(tc, test_control);
	suite_add_tcase(suite, tc);
	return vectors_main(argc, argv, suite);
}
