/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation on a stack of 32 KiB, as OpenSSL's ASYNC gives its fibres, but with a
 * guard page below: what would silently overwrite the heap there ends the test here.
 * With the daemon, without it, on error paths, and when something is logged. How deep
 * it went is printed.
 */
#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <openssl/async.h>
#include <openssl/err.h>

#include "host.h"
#include "tests/client-lib/rig.h"

/* Without optimisation X25519's vector kernel alone takes 40 KiB: nobody ships that. */
#define STACK_BYTES ((MLKEMD_OPTIMIZED ? 32u : 64u) * 1024)
#define LIMIT_BYTES ((MLKEMD_OPTIMIZED ? 24u : 56u) * 1024)
#define GUARD_BYTES 4096u
#define PAINT       0xb7

static struct host host;
static struct daemon server;
static const struct alg *alg;
static EVP_PKEY *pkey, *other;
static uint8_t share[MLKEMCLIENT_MAX_SHARE], ct[MLKEMCLIENT_MAX_CIPHERTEXT];
static uint8_t sent[MLKEMCLIENT_MAX_SECRET], got[MLKEMCLIENT_MAX_SECRET];

static void
do_keygen(void)
{
	pkey = pkey_generate(&host, alg, true);
}

static void
do_peer(void)
{
	pkey_bytes(pkey, "pub", share, sizeof(share));
	other = pkey_try_peer(&host, alg, share, alg->share);
	ck_assert_ptr_nonnull(other);
}

static void
do_encaps(void)
{
	must(pkey_try_encaps(&host, alg, other, ct, sent));
}

static void
do_decaps(void)
{
	must(pkey_try_decaps(&host, alg, pkey, ct, got));
	ck_assert_mem_eq(sent, got, alg->secret);
}

static void
do_decaps_again(void) /* an error: the key was used */
{
	ck_assert_int_eq(pkey_try_decaps(&host, alg, pkey, ct, got), 0);
	ERR_clear_error();
}

static void
do_free(void)
{
	EVP_PKEY_free(other);
	EVP_PKEY_free(pkey);
}

static void
do_keygen_own(void)
{
	pkey = pkey_generate(&host, alg, false);
}

static void
do_dup_and_check(void)
{
	EVP_PKEY_CTX *ctx;

	EVP_PKEY_free(other);
	other = EVP_PKEY_dup(pkey);
	ctx = EVP_PKEY_CTX_new_from_pkey(host.libctx, other, "provider=mlkemd");
	must(EVP_PKEY_check(ctx));
	EVP_PKEY_CTX_free(ctx);
}

static void
do_bad_share(void)
{
	memset(share, 0xff, sizeof(share));
	ck_assert_ptr_null(pkey_try_peer(&host, alg, share, alg->share));
	ERR_clear_error();
}

static const struct {
	const char *name;
	void (*run)(void);
} steps[] = {
    {"keygen", do_keygen},
    {"set share", do_peer},
    {"encaps", do_encaps},
    {"decaps", do_decaps},
    {"decaps of a used key", do_decaps_again},
    {"free", do_free},
    {"keygen, own", do_keygen_own},
    {"set share", do_peer},
    {"encaps", do_encaps},
    {"decaps, own", do_decaps},
    {"dup, check", do_dup_and_check},
    {"bad share", do_bad_share},
    {"free", do_free},
};
enum { N_STEPS = sizeof(steps) / sizeof(steps[0]) };

static uint8_t *
stack_new(void)
{
	uint8_t *p = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(p != MAP_FAILED);
	ck_assert_int_eq(mprotect(p, GUARD_BYTES, PROT_NONE), 0);
	return p + GUARD_BYTES;
}

static void
stack_free(uint8_t *stack)
{
	munmap(stack - GUARD_BYTES, GUARD_BYTES + STACK_BYTES);
}

static size_t
stack_depth(const uint8_t *stack)
{
	size_t n = 0;

	while (n < STACK_BYTES && stack[n] == PAINT)
		n++;
	return STACK_BYTES - n;
}

static ucontext_t back;

static size_t
run_on_fibre(void (*run)(void))
{
	uint8_t *stack = stack_new();
	ucontext_t fibre;
	size_t depth;

	memset(stack, PAINT, STACK_BYTES);
	ck_assert_int_eq(getcontext(&fibre), 0);
	fibre.uc_stack.ss_sp = stack;
	fibre.uc_stack.ss_size = STACK_BYTES;
	fibre.uc_link = &back;
	makecontext(&fibre, run, 0);
	ck_assert_int_eq(swapcontext(&back, &fibre), 0);
	depth = stack_depth(stack);
	stack_free(stack);
	return depth;
}

enum mode { WITH_DAEMON, WITHOUT_DAEMON, LOCAL, N_MODES };

/* Nothing is warm: the first operation of the process happens on the fibre. */
START_TEST(fibre)
{
	enum mode mode = (enum mode)(_i / N_ALGS);
	size_t deepest = 0;

	alg = &algs[_i % N_ALGS];
	if (host_has_hooks())
		setenv("MLKEMD_FAULT", "provider-log-always", 1);
	daemon_start(&server, NULL);
	host_open(&host,
	    settings(mode == WITH_DAEMON ? server.path : "/nonexistent/mlkemd.sock",
		mode == LOCAL ? "local" : "daemon", "deadline = 10s\n"));
	for (int i = 0; i < N_STEPS; i++) {
		size_t depth = run_on_fibre(steps[i].run);

		if (depth > deepest)
			deepest = depth;
		ck_assert_msg(depth < LIMIT_BYTES, "%s of %s: %zu bytes of stack",
		    steps[i].name, alg->name, depth);
	}
	printf("%s, mode %d: deepest %zu bytes\n", alg->name, mode, deepest);
	host_close(&host);
	daemon_stop(&server);
}
END_TEST

/* Control: a fibre's overflow is seen, by the guard page. */
static void
overflow(void)
{
	volatile uint8_t big[STACK_BYTES];

	for (size_t i = sizeof(big); i-- > 0;)
		big[i] = 1;
}

START_TEST(overflow_is_seen)
{
	run_on_fibre(overflow);
}
END_TEST

static void *
guarded_alloc(size_t *num)
{
	*num = STACK_BYTES;
	return stack_new();
}

static void
guarded_free(void *stack)
{
	stack_free(stack);
}

static int
job_run(void *arg)
{
	const int *step = arg;

	steps[*step].run();
	return 1;
}

/* The same in jobs of OpenSSL, on stacks of ours where it lets us (3.2 and later). */
START_TEST(jobs)
{
	int (*set)(void *(*)(size_t *), void (*)(void *));

	*(void **)&set = dlsym(RTLD_DEFAULT, "ASYNC_set_mem_functions");
	/* Stacks of OpenSSL's own have 32 KiB in every build. */
	if (set != NULL)
		ck_assert_int_eq(set(guarded_alloc, guarded_free), 1);
	printf("jobs on %s stacks\n", set != NULL ? "guarded" : "OpenSSL's own");
	alg =
	    &algs[set != NULL || MLKEMD_OPTIMIZED ? ALG_X25519MLKEM768 : ALG_MLKEM768];
	daemon_start(&server, NULL);
	host_open(&host,
	    settings(server.path, _i == 0 ? "daemon" : "local", "deadline = 10s\n"));
	ck_assert_int_eq(ASYNC_init_thread(1, 1), 1);
	for (int i = 0; i < N_STEPS; i++) {
		ASYNC_WAIT_CTX *wait = ASYNC_WAIT_CTX_new();
		ASYNC_JOB *job = NULL;
		int r = 0;

		ck_assert_int_eq(
		    ASYNC_start_job(&job, wait, &r, job_run, &i, sizeof(i)),
		    ASYNC_FINISH);
		ck_assert_int_eq(r, 1);
		ASYNC_WAIT_CTX_free(wait);
	}
	ASYNC_cleanup_thread();
	host_close(&host);
	daemon_stop(&server);
}
END_TEST

int
main(void)
{
	const char *sanitizer = getenv("MLKEMD_SANITIZER");
	Suite *suite;
	TCase *tcase;

	if (sanitizer != NULL && strcmp(sanitizer, "none") != 0) {
		printf("a sanitizer's frames do not fit on 32 KiB\n");
		return 77;
	}
	suite = suite_create("provider on fibres");
	tcase = tcase_create("all");
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, fibre, 0, N_MODES * N_ALGS);
	tcase_add_loop_test(tcase, jobs, 0, 2);
	tcase_add_test_raise_signal(tcase, overflow_is_seen, 11);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
