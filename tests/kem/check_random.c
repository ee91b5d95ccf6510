/* SPDX-License-Identifier: Apache-2.0 */
/* random.c: every draw is new, in every thread and after every fork. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kem/kemtest.h"

#define DRAW_BYTES 32

static int
draw_compare(const void *a, const void *b)
{
	return memcmp(a, b, DRAW_BYTES);
}

static void
assert_all_differ(uint8_t (*draws)[DRAW_BYTES], size_t n)
{
	qsort(draws, n, DRAW_BYTES, draw_compare);
	for (size_t i = 1; i < n; i++)
		ck_assert_mem_ne(draws[i - 1], draws[i], DRAW_BYTES);
}

START_TEST(test_draws_differ)
{
	static uint8_t draws[1000][DRAW_BYTES];

	for (size_t i = 0; i < 1000; i++)
		ck_assert_int_eq(kem_random(test_kem(), draws[i], DRAW_BYTES), 0);
	assert_all_differ(draws, 1000);
}
END_TEST

START_TEST(test_any_length)
{
	static uint8_t out[200001];
	static const size_t lengths[] = {
	    0, 1, 31, 33, 768, 65535, 65536, 65537, 200000};

	for (size_t l = 0; l < 9; l++) {
		memset(out, 0, sizeof(out));
		ck_assert_int_eq(kem_random(test_kem(), out, lengths[l]), 0);
		ck_assert_uint_eq(out[lengths[l]], 0);
		for (size_t i = 0; i + 32 <= lengths[l]; i += 32)
			ck_assert(!test_is_zero(out + i, 32));
	}
	ck_assert_int_eq(kem_random(test_kem(), NULL, 0), 0);
}
END_TEST

/* Every bit is about as often set as not: a stuck bit or byte shows at once. */
START_TEST(test_bits_are_even)
{
	unsigned n_set[256] = {0};
	uint8_t out[32];

	for (int round = 0; round < 4000; round++) {
		ck_assert_int_eq(kem_random(test_kem(), out, sizeof(out)), 0);
		for (size_t bit = 0; bit < 256; bit++)
			n_set[bit] += out[bit / 8] >> bit % 8 & 1;
	}
	/* 2000 +- 8 standard deviations of 32 */
	for (size_t bit = 0; bit < 256; bit++)
		ck_assert(n_set[bit] > 1744 && n_set[bit] < 2256);
}
END_TEST

/* What a child draws: a random string, then what a key generation made of it. */
struct child {
	uint8_t draw[DRAW_BYTES], ek[DRAW_BYTES], x25519[DRAW_BYTES], ct[DRAW_BYTES];
};

static void
child_draw(struct child *child)
{
	static uint8_t share[KEM_SHARE_MAX], secret[KEM_SECRET_MAX], ct[KEM_CT_MAX];
	struct kem_shared shared;
	struct kem_keygen_item k = {.share = share, .secret = secret};
	struct kem_encaps_item e = {
	    .share = share, .share_len = 1216, .ct = ct, .shared = &shared};

	if (kem_keygen(test_kem(), KEM_ALG_X25519MLKEM768, &k, 1, test_scratch()) < 0 ||
	    kem_encaps(test_kem(), KEM_ALG_X25519MLKEM768, &e, 1, test_scratch()) < 0 ||
	    kem_random(test_kem(), child->draw, DRAW_BYTES) < 0)
		_exit(1);
	memcpy(child->ek, share, DRAW_BYTES);
	memcpy(child->x25519, share + 1184, DRAW_BYTES);
	memcpy(child->ct, ct + 1088, DRAW_BYTES);
}

/* 100 children of one parent that has drawn before, and the parent. */
START_TEST(test_forks_differ)
{
	enum { N = 101 };
	static uint8_t draws[4 * N][DRAW_BYTES];
	struct child child;
	int fds[2], status;

	child_draw(&child);
	for (size_t i = 0; i < N - 1; i++) {
		pid_t pid;

		ck_assert_int_eq(pipe(fds), 0);
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			child_draw(&child);
			_exit(write(fds[1], &child, sizeof(child)) == sizeof(child)
				  ? 0
				  : 1);
		}
		close(fds[1]);
		ck_assert_int_eq(
		    read(fds[0], draws[4 * i], sizeof(child)), (int)sizeof(child));
		close(fds[0]);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
	}
	child_draw((struct child *)(void *)draws[4 * (N - 1)]);
	assert_all_differ(draws, 4 * N);
}
END_TEST

static void *
thread_draw(void *arg)
{
	uint8_t(*draws)[DRAW_BYTES] = arg;

	for (size_t i = 0; i < 100; i++) {
		if (kem_random(test_kem(), draws[i], DRAW_BYTES) < 0)
			return arg;
	}
	return NULL;
}

START_TEST(test_threads_differ)
{
	static uint8_t draws[800][DRAW_BYTES];
	pthread_t threads[8];
	void *failed;

	(void)test_kem();
	for (size_t i = 0; i < 8; i++)
		ck_assert_int_eq(
		    pthread_create(&threads[i], NULL, thread_draw, draws[100 * i]), 0);
	for (size_t i = 0; i < 8; i++) {
		pthread_join(threads[i], &failed);
		ck_assert_ptr_null(failed);
	}
	assert_all_differ(draws, 800);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("random");
	TCase *tc = tcase_create("random");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, test_draws_differ);
	tcase_add_test(tc, test_any_length);
	tcase_add_test(tc, test_bits_are_even);
	tcase_add_test(tc, test_forks_differ);
	tcase_add_test(tc, test_threads_differ);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
