/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much stack each operation of kem.h takes, OpenSSL's part included: 8 KiB for what
 * is ours, and 24 KiB for everything, since a fibre of OpenSSL's ASYNC has 32 KiB and no
 * guard page. Each runs on a painted 64 KiB stack of its own thread.
 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/kem/kemtest.h"

#define STACK_BYTES (128 * 1024)
#define FIBRE_LIMIT (24 * 1024)
#define PAINT       0xb7
#define N           64

static struct test_item items[N];
static struct kem_keygen_item keygen[N];
static struct kem_encaps_item encaps[N];
static struct kem_decaps_item decaps[N];
static struct kem_x25519 pairs[N];
static uint8_t m[N][32], okm[64];

struct operation {
	const char *name;
	int (*run)(enum kem_alg alg, size_t n);
	bool is_ours; /* plain ML-KEM from seeds never enters OpenSSL */
};

static int
run_nothing(enum kem_alg alg, size_t n)
{
	(void)alg, (void)n;
	return 0;
}

static int
run_keygen(enum kem_alg alg, size_t n)
{
	return kem_keygen(test_kem(), alg, keygen, n, test_scratch());
}

static int
run_encaps_derand(enum kem_alg alg, size_t n)
{
	return kem_encaps_derand(test_kem(), alg, encaps, n, m, test_scratch());
}

static int
run_encaps(enum kem_alg alg, size_t n)
{
	return kem_encaps(test_kem(), alg, encaps, n, test_scratch());
}

static int
run_decaps(enum kem_alg alg, size_t n)
{
	return kem_decaps(test_kem(), alg, decaps, n, test_scratch());
}

static int
run_pairwise(enum kem_alg alg, size_t n)
{
	(void)n;
	return kem_pairwise_check(
	    test_kem(), alg, items[0].secret, items[0].share, test_scratch());
}

static int
run_selftest(enum kem_alg alg, size_t n)
{
	const char *step;

	(void)alg, (void)n;
	return kem_selftest(test_kem(), test_scratch(), &step);
}

static int
run_x25519(enum kem_alg alg, size_t n)
{
	(void)alg;
	return kem_x25519_keygen(test_kem(), pairs, n, test_scratch());
}

static int
run_hkdf(enum kem_alg alg, size_t n)
{
	(void)alg, (void)n;
	return kem_hkdf(test_kem(), KEM_HASH_SHA384, m[0], 32, m[0], 32, m[0], 32, okm,
	    sizeof(okm));
}

static int
run_open(enum kem_alg alg, size_t n)
{
	struct kem *kem = NULL;
	int r = kem_open_with(&kem, test_backend());

	(void)alg, (void)n;
	kem_free(kem);
	return r;
}

static const struct operation operations[] = {
    {"keygen", run_keygen, true},
    {"encaps, m given", run_encaps_derand, true},
    {"encaps", run_encaps, false},
    {"decaps", run_decaps, true},
    {"pairwise", run_pairwise, false},
    {"self-test", run_selftest, false},
    {"x25519", run_x25519, false},
    {"hkdf", run_hkdf, false},
    {"open", run_open, false},
};
#define N_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

struct job {
	int (*run)(enum kem_alg alg, size_t n);
	enum kem_alg alg;
	size_t n;
	int result;
};

static void *
job_run(void *arg)
{
	struct job *job = arg;

	job->result = job->run(job->alg, job->n);
	return NULL;
}

/* Bytes of a fresh thread's stack that are not painted any more. */
static size_t
stack_used(int (*run)(enum kem_alg, size_t), enum kem_alg alg, size_t n)
{
	struct job job = {.run = run, .alg = alg, .n = n};
	pthread_attr_t attr;
	pthread_t thread;
	uint8_t *map, *stack;
	size_t untouched = 0;

	map = mmap(NULL, STACK_BYTES + 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(map != MAP_FAILED);
	ck_assert_int_eq(mprotect(map, 4096, PROT_NONE), 0);
	stack = map + 4096;
	memset(stack, PAINT, STACK_BYTES);
	pthread_attr_init(&attr);
	ck_assert_int_eq(pthread_attr_setstack(&attr, stack, STACK_BYTES), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, job_run, &job), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	ck_assert_int_eq(job.result, 0);
	while (untouched < STACK_BYTES && stack[untouched] == PAINT)
		untouched++;
	munmap(map, STACK_BYTES + 4096);
	return STACK_BYTES - untouched;
}

static void
prepare(enum kem_alg alg)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "stack");
	for (size_t i = 0; i < N; i++) {
		test_item_make(&items[i], alg, &stream);
		keygen[i] = test_keygen_item(&items[i], &items[i]);
		encaps[i] = test_encaps_item(&items[i], &items[i]);
		decaps[i] = test_decaps_item(&items[i], &items[i]);
		memcpy(m[i], items[i].m, 32);
	}
}

START_TEST(test_operation)
{
	const struct operation *op = &operations[_i];
	size_t empty = stack_used(run_nothing, KEM_ALG_MLKEM512, 0), one, many;

	for (int alg = 0; alg < KEM_N_ALGS; alg++) {
		prepare((enum kem_alg)alg);
		one = stack_used(op->run, (enum kem_alg)alg, 1) - empty;
		many = stack_used(op->run, (enum kem_alg)alg, N) - empty;
		printf("stack: %s of %s: %zu bytes, %zu for %d\n", op->name,
		    kem_alg_info((enum kem_alg)alg)->name, one, many, N);
		if (MLKEMD_TEST_STACK_LIMIT == 0)
			continue;
		ck_assert_uint_lt(one > many ? one : many,
		    op->is_ours && alg != KEM_ALG_X25519MLKEM768
			? MLKEMD_TEST_STACK_LIMIT
			: FIBRE_LIMIT);
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("stack");
	TCase *tc = tcase_create("stack");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, test_operation, 0, (int)N_OPERATIONS);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
