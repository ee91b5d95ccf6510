/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out at the n-th allocation, for every n until the operation gets
 * through: an error each time, all outputs zero, and the right answer afterwards.
 * OpenSSL's allocator is replaced before OpenSSL does anything; calloc() of kem/ itself
 * by the linker (--wrap=calloc).
 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "kem/arch/backend.h"
#include "kem/x25519.h"
#include "tests/kem/kemtest.h"

/* Allocations until the one that fails; negative: none does. */
static long n_left = -1;
static long n_live, n_failed;

static bool
must_fail(void)
{
	if (n_left < 0 || n_left-- > 0)
		return false;
	n_left = 0; /* and all that follow */
	n_failed++;
	return true;
}

static void *
failing_malloc(size_t n, const char *file, int line)
{
	(void)file, (void)line;
	if (must_fail())
		return NULL;
	n_live += n > 0;
	return n > 0 ? malloc(n) : NULL;
}

static void *
failing_realloc(void *p, size_t n, const char *file, int line)
{
	(void)file, (void)line;
	if (must_fail())
		return NULL;
	n_live += !p;
	return realloc(p, n);
}

static void
counting_free(void *p, const char *file, int line)
{
	(void)file, (void)line;
	n_live -= p != NULL;
	free(p);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
	return must_fail() ? NULL : __real_calloc(n, size);
}

#define N 9

static struct test_item items[N], out[N];
static struct kem_keygen_item keygen[N];
static struct kem_encaps_item encaps[N];
static struct kem_decaps_item decaps[N];
static struct kem_x25519 pairs[N];
static uint8_t m[N][32], okm[100];

static void
prepare(enum kem_alg alg)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "alloc");
	for (size_t i = 0; i < N; i++) {
		test_item_make(&items[i], alg, &stream);
		memcpy(m[i], items[i].m, 32);
		test_item_blank(&out[i], alg);
		keygen[i] = test_keygen_item(&items[i], &out[i]);
		encaps[i] = test_encaps_item(&items[i], &out[i]);
		decaps[i] = test_decaps_item(&items[i], &out[i]);
	}
}

typedef int (*operation)(enum kem_alg alg);

static int
run_keygen(enum kem_alg alg)
{
	return kem_keygen(test_kem(), alg, keygen, N, test_scratch());
}

static int
run_encaps(enum kem_alg alg)
{
	return kem_encaps_derand(test_kem(), alg, encaps, N, m, test_scratch());
}

static int
run_decaps(enum kem_alg alg)
{
	return kem_decaps(test_kem(), alg, decaps, N, test_scratch());
}

static int
run_x25519(enum kem_alg alg)
{
	(void)alg;
	return kem_x25519_keygen(test_kem(), pairs, N, test_scratch());
}

static int
run_hkdf(enum kem_alg alg)
{
	(void)alg;
	return kem_hkdf(test_kem(), KEM_HASH_SHA384, m[0], 32, m[1], 32, m[2], 32, okm,
	    sizeof(okm));
}

static void
outputs_fill(void)
{
	for (size_t i = 0; i < N; i++) {
		test_item_blank(&out[i], KEM_ALG_X25519MLKEM768);
		keygen[i].status = encaps[i].status = decaps[i].status = KEM_OK;
	}
	memset(pairs, 0x99, sizeof(pairs));
	memset(okm, 0x99, sizeof(okm));
}

static void
assert_keygen(bool done)
{
	for (size_t i = 0; i < N; i++) {
		ck_assert_int_eq(keygen[i].status, done ? KEM_OK : KEM_E_INTERNAL);
		if (done) {
			ck_assert_mem_eq(out[i].secret, items[i].secret, 1248);
			ck_assert_mem_eq(out[i].share, items[i].share, 1216);
		} else {
			ck_assert(test_is_zero(out[i].secret, 1248));
			ck_assert(test_is_zero(out[i].share, 1216));
		}
		test_item_check(&out[i]);
	}
}

static void
assert_encaps(bool done)
{
	for (size_t i = 0; i < N; i++) {
		ck_assert_int_eq(encaps[i].status, done ? KEM_OK : KEM_E_INTERNAL);
		if (done) {
			ck_assert_mem_eq(out[i].ct, items[i].ct, 1120);
			ck_assert_mem_eq(&out[i].made, &items[i].made, 64);
		} else {
			ck_assert(test_is_zero(out[i].ct, 1120));
			ck_assert(test_is_zero(&out[i].made, 64));
		}
		test_item_check(&out[i]);
	}
}

static void
assert_decaps(bool done)
{
	for (size_t i = 0; i < N; i++) {
		ck_assert_int_eq(decaps[i].status, done ? KEM_OK : KEM_E_INTERNAL);
		if (done)
			ck_assert_mem_eq(&out[i].found, &items[i].made, 64);
		else
			ck_assert(test_is_zero(&out[i].found, 64));
	}
}

static void
assert_x25519(bool done)
{
	ck_assert_int_eq(test_is_zero(pairs, sizeof(pairs)), !done);
}

static void
assert_hkdf(bool done)
{
	ck_assert_int_eq(test_is_zero(okm, sizeof(okm)), !done);
}

static const struct {
	const char *name;
	operation run;
	void (*check)(bool done);
} operations[] = {
    {"keygen", run_keygen, assert_keygen},
    {"encaps", run_encaps, assert_encaps},
    {"decaps", run_decaps, assert_decaps},
    {"x25519", run_x25519, assert_x25519},
    {"hkdf", run_hkdf, assert_hkdf},
};
#define N_OPERATIONS (int)(sizeof(operations) / sizeof(operations[0]))

START_TEST(test_operation)
{
	const enum kem_alg alg = KEM_ALG_X25519MLKEM768;
	long n, n_before;
	int r;

	prepare(alg);
	/* what OpenSSL keeps for a thread is made by the first call */
	ck_assert_int_eq(operations[_i].run(alg), 0);
	for (n = 0;; n++) {
		outputs_fill();
		n_before = n_live;
		n_failed = 0;
		n_left = n;
		r = operations[_i].run(alg);
		n_left = -1;
		ck_assert_int_eq(n_live, n_before);
		if (n_failed == 0)
			break;
		/* OpenSSL may get on without an error record, but never with a result */
		if (r < 0)
			ck_assert_int_eq(r, KEM_FAIL_OPENSSL);
		operations[_i].check(r == 0);
		ck_assert(r < 0 || n > 0);
	}
	ck_assert_int_eq(r, 0);
	operations[_i].check(true);
	/* X25519 in lanes allocates nothing; OpenSSL's does, and its HKDF. */
	if (test_backend()->x25519_base8 && operations[_i].check != assert_hkdf)
		ck_assert_int_eq(n, 0);
	else
		ck_assert_int_gt(n, 3);
	printf("%s: %ld allocations, each one failed\n", operations[_i].name, n);
}
END_TEST

/* OpenSSL 3.0 loses some of its own memory when a new library context runs out. */
void __lsan_disable(void) __attribute__((weak));

/*
 * Opening makes thousands of allocations, most of them for OpenSSL's table of names, so
 * every 37th is failed, from a place that moves with the seed.
 */
START_TEST(test_open)
{
	struct kem *kem = NULL;
	long n, n_errors = 0;
	int r = KEM_FAIL_OPENSSL;

	if (__lsan_disable)
		__lsan_disable();
	/* what OpenSSL sets up once a process never works again if it failed once */
	ck_assert_int_eq(kem_open_with(&kem, test_backend()), 0);
	kem_free(kem);
	for (n = (long)(test_seed() % 37); r < 0 || n_failed > 0; n += 37) {
		kem = (struct kem *)1;
		n_failed = 0;
		n_left = n;
		r = kem_open_with(&kem, test_backend());
		n_left = -1;
		if (r < 0) {
			ck_assert_int_eq(r, KEM_FAIL_OPENSSL);
			ck_assert_ptr_null(kem);
			n_errors++;
		} else {
			kem_free(kem);
		}
	}
	ck_assert_int_gt(n_errors, 10);
	printf("open: about %ld allocations, %ld of them failed\n", n, n_errors);
}
END_TEST

/* The first draw of a thread makes its DRBG: that may fail too, and it recovers. */
static void *
first_draw(void *arg)
{
	struct kem *kem = *(struct kem **)arg;
	uint8_t drawn[32];
	int r;

	memset(drawn, 0x99, sizeof(drawn));
	r = kem_random(kem, drawn, sizeof(drawn));
	n_left = -1;
	if ((r != 0 && r != KEM_FAIL_RNG) ||
	    test_is_zero(drawn, sizeof(drawn)) != (r < 0) ||
	    kem_random(kem, drawn, sizeof(drawn)) != 0)
		return arg;
	return r < 0 ? NULL : (void *)kem;
}

START_TEST(test_first_draw)
{
	struct kem *kem = NULL;
	pthread_t thread;
	void *result = NULL;
	long n;

	for (n = 0; result != kem || !kem; n++) {
		kem_free(kem);
		ck_assert_int_eq(kem_open_with(&kem, test_backend()), 0);
		n_left = n;
		ck_assert_int_eq(pthread_create(&thread, NULL, first_draw, &kem), 0);
		pthread_join(thread, &result);
		ck_assert(result == NULL || result == kem);
	}
	kem_free(kem);
	ck_assert_int_gt(n, 3);
	printf("first draw: %ld allocations, each one failed\n", n - 1);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite;
	TCase *tc;

	if (CRYPTO_set_mem_functions(failing_malloc, failing_realloc, counting_free) !=
	    1) {
		fprintf(stderr, "OpenSSL has allocated already\n");
		return 1;
	}
	suite = suite_create("alloc");
	tc = tcase_create("alloc");
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, test_operation, 0, N_OPERATIONS);
	tcase_add_test(tc, test_open);
	tcase_add_test(tc, test_first_draw);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
