/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ML-KEM leaves behind in work, and how deep it goes on the stack.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <openssl/evp.h>

#include "tests/kem/grouptest.h"
#include "tests/kem/kemtest.h"

/* What of work is neither 0 nor as it was before. */
static size_t
work_residue(const struct backend *backend, enum kem_alg set, size_t n, int op)
{
	static struct group_of g;
	size_t residue = 0, touched = 0;

	group_reset(&g, set, n, "wipe");
	for (size_t i = 0; i < n; i++)
		g.decaps[i].trusted = false;
	group_run(&g, backend);
	g.pair[0].ct[5] ^= 1;
	if (op == 3)
		g.pair[n / 2].ek[0] = g.pair[n / 2].ek[1] =
		    0xff; /* a bad share or key */
	memset(group_work, 0xc5, sizeof group_work);
	if (op == 0)
		mlkem_keygen(backend, set, g.keygen, n, group_work);
	if (op == 1 || op == 3)
		mlkem_encaps(backend, set, g.encaps, n, group_work);
	if (op == 1 || op == 3) {
		for (size_t i = 0; i < sizeof group_work; i++)
			residue += group_work[i] != 0 && group_work[i] != 0xc5;
		memset(group_work, 0xc5, sizeof group_work);
	}
	if (op == 2 || op == 3)
		mlkem_decaps(backend, set, g.decaps, n, group_work);
	if (op == 4)
		mlkem_check_dk(backend, set, g.decaps, n, group_work);
	for (size_t i = 0; i < sizeof group_work; i++) {
		residue += group_work[i] != 0 && group_work[i] != 0xc5;
		touched += group_work[i] == 0;
	}
	ck_assert(op == 1 || touched > 1000);
	return residue;
}

START_TEST(test_wipe)
{
	for (size_t s = 0; s < 3; s++) {
		for (size_t n = 1; n <= N_MAX; n += 3) {
			for (int op = 0; op <= 4; op++)
				ck_assert_uint_eq(
				    work_residue(test_backend(), group_sets[s], n, op),
				    0);
		}
	}
}
END_TEST

START_TEST(test_wipe_control)
{
	if (!test_has_hooks())
		return;
	setenv("MLKEMD_FAULT", "kem-no-wipe-work", 1);
	for (int op = 0; op <= 4; op++)
		ck_assert_uint_gt(
		    work_residue(test_backend(), KEM_ALG_MLKEM768, 3, op), 0);
	unsetenv("MLKEMD_FAULT");
}
END_TEST

/* A stack of our own, filled before, looked at after. */
#define STACK_BYTES (256 * 1024)

static _Alignas(64) uint8_t stack[STACK_BYTES];
static ucontext_t stack_back;
static struct group_of stack_group;
static int stack_op;

static const struct backend *stack_backend;

static void
stack_body(void)
{
	struct group_of *g = &stack_group;
	const struct backend *backend = stack_backend;

	if (stack_op == 1)
		mlkem_keygen(backend, g->set, g->keygen, g->n, group_work);
	if (stack_op == 2)
		mlkem_encaps(backend, g->set, g->encaps, g->n, group_work);
	if (stack_op == 3)
		mlkem_decaps(backend, g->set, g->decaps, g->n, group_work);
	if (stack_op == 4)
		mlkem_check_dk(backend, g->set, g->decaps, g->n, group_work);
}

static size_t
stack_used(void)
{
	size_t i = 0;

	while (i < sizeof stack && stack[i] == 0xc5)
		i++;
	ck_assert_uint_gt(i, 0);
	return sizeof stack - i;
}

static size_t
stack_depth(const struct backend *backend, enum kem_alg set, size_t n, int op)
{
	static ucontext_t context;

	group_reset(&stack_group, set, n, "stack");
	group_run(&stack_group, test_backend());
	stack_backend = backend;
	stack_op = op;
	memset(stack, 0xc5, sizeof stack);
	ck_assert_int_eq(getcontext(&context), 0);
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = sizeof stack;
	context.uc_link = &stack_back;
	makecontext(&context, stack_body, 0);
	ck_assert_int_eq(swapcontext(&stack_back, &context), 0);
	return stack_used();
}

/* Every eight bytes of a secret that lie on the stack. */
static unsigned
stack_finds(const uint8_t *secret, size_t len)
{
	unsigned n = 0;

	for (size_t i = 0; i + 8 <= len; i += 8)
		n += test_is_within(stack, sizeof stack, secret + i, 8);
	return n;
}

/*
 * What a whole operation leaves on the stack of its inputs, of what G makes of them and
 * of its results: kernels keep states and polynomials in locals and spill registers.
 */
static unsigned
stack_residue(const struct backend *backend, enum kem_alg set, size_t n)
{
	size_t s_bytes = kem_alg_info(set)->secret_bytes - 64u;
	unsigned found = 0;

	for (int op = 1; op <= 3; op++) {
		stack_depth(backend, set, n, op);
		for (size_t i = 0; i < n; i++) {
			const struct pair *p = &stack_group.pair[i];
			uint8_t in[64], g[64];

			found += stack_finds(p->d, 32) + stack_finds(p->z, 32);
			found += stack_finds(p->m, 32) + stack_finds(p->made, 32);
			found += stack_finds(p->secret, s_bytes);
			memcpy(in, p->d, 32);
			in[32] = (uint8_t)(set + 2);
			ck_assert_int_eq(
			    EVP_Digest(in, 33, g, NULL, EVP_sha3_512(), NULL), 1);
			found += stack_finds(g + 32, 32); /* sigma */
			memcpy(in, p->m, 32);
			memcpy(in + 32, p->secret + s_bytes, 32);
			ck_assert_int_eq(
			    EVP_Digest(in, 64, g, NULL, EVP_sha3_512(), NULL), 1);
			found += stack_finds(g + 32, 32); /* r */
		}
	}
	return found;
}

START_TEST(test_stack_residue)
{
	for (size_t s = 0; s < 3; s++)
		ck_assert_uint_eq(
		    stack_residue(test_backend(), group_sets[s], 1 + 3 * s), 0);
}
END_TEST

/* A kernel that leaves the secret it worked on on the stack. */
static __attribute__((noinline)) void
select_planted(
    uint8_t *out, const uint8_t *a, const uint8_t *b, size_t len, uint64_t mask)
{
	volatile uint8_t copy[1024]; /* far down, where nothing else soon is */

	test_backend()->select(out, a, b, len, mask);
	for (size_t i = 0; i < 32; i++)
		copy[i] = out[i];
	(void)copy[1023];
}

START_TEST(test_stack_residue_control)
{
	struct backend backend = *test_backend();

	backend.select = select_planted;
	ck_assert_uint_eq(stack_residue(&backend, KEM_ALG_MLKEM768, 2), 0);
	if (!test_has_hooks())
		return;
	setenv("MLKEMD_FAULT", "kem-no-wipe-stack", 1);
	ck_assert_uint_gt(stack_residue(&backend, KEM_ALG_MLKEM768, 2), 0);
	unsetenv("MLKEMD_FAULT");
}
END_TEST

/* Architecture: under 8 KiB at -O2, and a batch takes no more than one item. */
START_TEST(test_stack)
{
	size_t empty = stack_depth(test_backend(), KEM_ALG_MLKEM512, 1, 0), deepest = 0;

	for (int op = 1; op <= 4; op++) {
		size_t one = stack_depth(test_backend(), KEM_ALG_MLKEM512, 1, op);

		for (size_t s = 0; s < 3; s++) {
			size_t depth =
			    stack_depth(test_backend(), group_sets[s], N_MAX, op);

			ck_assert_uint_le(depth, one + 64);
			deepest = depth > deepest ? depth : deepest;
		}
	}
	printf(
	    "stack: %zu bytes at most (%zu of them the test's own)\n", deepest, empty);
	ck_assert_uint_gt(deepest, empty);
	if (MLKEMD_TEST_STACK_LIMIT != 0)
		ck_assert_uint_lt(deepest - empty, MLKEMD_TEST_STACK_LIMIT);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("residue");
	TCase *tcase = tcase_create("residue");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_wipe);
	tcase_add_test(tcase, test_wipe_control);
	tcase_add_test(tcase, test_stack);
	tcase_add_test(tcase, test_stack_residue);
	tcase_add_test(tcase, test_stack_residue_control);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
