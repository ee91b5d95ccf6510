/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * OpenSSL's fibres (ASYNC_start_job) have 32 KiB of stack and no guard page. Here every
 * call runs on such a stack with guard pages around it, painted, and may use no more
 * than 24 KiB of it.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "peer.h"
#include "rig.h"

#define STACK_BYTES (32u * 1024)
#define MAX_USED    (24u * 1024)
#define PAINT       0xa5

static uint8_t *stack;
static ucontext_t here, there;
static void (*to_run)(void);

static void
stack_make(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *base = mmap(NULL, STACK_BYTES + 2 * page, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(base != MAP_FAILED);
	stack = base + page;
	ck_assert_int_eq(mprotect(stack, STACK_BYTES, PROT_READ | PROT_WRITE), 0);
}

static void
fibre(void)
{
	to_run();
}

/* Returns how much of the stack it used. */
static size_t
run_on_fibre(void (*run)(void))
{
	size_t untouched = 0;

	memset(stack, PAINT, STACK_BYTES);
	ck_assert_int_eq(getcontext(&there), 0);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	to_run = run;
	makecontext(&there, fibre, 0);
	ck_assert_int_eq(swapcontext(&here, &there), 0);
	while (untouched < STACK_BYTES && stack[untouched] == PAINT)
		untouched++;
	return STACK_BYTES - untouched;
}

static const enum mlkemclient_alg algs[] = {MLKEMCLIENT_ML_KEM_512,
    MLKEMCLIENT_ML_KEM_768, MLKEMCLIENT_ML_KEM_1024, MLKEMCLIENT_X25519MLKEM768};

/* What the calls work with; a check inside a fibre would use its stack. */
static struct {
	struct mlkemclient *client;
	enum mlkemclient_alg alg;
	struct mlkemclient_sizes sizes;
	struct mlkemclient_key *key;
	uint8_t share[MLKEMCLIENT_MAX_SHARE], ct[MLKEMCLIENT_MAX_CIPHERTEXT];
	uint8_t sent[64], received[64], private_key[MLKEMCLIENT_MAX_PRIVATE_KEY];
	uint8_t many[64][MLKEMCLIENT_MAX_SHARE];
	struct mlkemclient_keygen_item keys[64];
	int error;
} w;

static void
call_keygen(void)
{
	w.error = mlkemclient_keygen(w.client, w.alg, w.share, w.sizes.share, &w.key);
}

static void
call_encaps(void)
{
	w.error = mlkemclient_encaps(w.client, w.alg, w.share, w.sizes.share, w.ct,
	    w.sizes.ciphertext, w.sent, w.sizes.secret);
}

static void
call_decaps(void)
{
	w.error = mlkemclient_decaps(
	    w.client, w.key, w.ct, w.sizes.ciphertext, w.received, w.sizes.secret);
}

static void
call_key_free(void)
{
	mlkemclient_key_free(w.client, w.key);
	w.key = NULL;
	w.error = 0;
}

static void
call_export(void)
{
	w.error = mlkemclient_keygen_export(w.client, w.alg, w.share, w.sizes.share,
	    w.private_key, w.sizes.private_key);
}

static void
call_share_of(void)
{
	w.error = mlkemclient_share_of(w.client, w.alg, w.private_key,
	    w.sizes.private_key, w.share, w.sizes.share);
}

static void
call_expand_seed(void)
{
	static const uint8_t seed[96] = {1};

	w.error = mlkemclient_expand_seed(
	    w.client, w.alg, seed, w.sizes.seed, w.private_key, w.sizes.private_key);
}

static void
call_decaps_with(void)
{
	w.error = mlkemclient_decaps_with(w.client, w.alg, w.private_key,
	    w.sizes.private_key, w.ct, w.sizes.ciphertext, w.received, w.sizes.secret);
}

/* An error path with a long message. */
static void
call_bad(void)
{
	w.error = mlkemclient_encaps(w.client, w.alg, w.share, w.sizes.share - 1, w.ct,
	    w.sizes.ciphertext, w.sent, w.sizes.secret);
	w.error = w.error == MLKEMCLIENT_E_LENGTH ? 0 : -1;
}

static void
call_batch(void)
{
	for (int i = 0; i < 64; i++)
		w.keys[i] = (struct mlkemclient_keygen_item){w.many[i], NULL, 1};
	w.error = mlkemclient_keygen_batch(w.client, w.alg, w.keys, 64);
	for (int i = 0; i < 64; i++)
		mlkemclient_key_free(w.client, w.keys[i].key);
}

static const struct {
	const char *name;
	void (*run)(void);
} calls[] = {
    {"keygen", call_keygen},
    {"encaps", call_encaps},
    {"decaps", call_decaps},
    {"key_free", call_key_free},
    {"export", call_export},
    {"share_of", call_share_of},
    {"encaps again", call_encaps},
    {"decaps_with", call_decaps_with},
    {"expand_seed", call_expand_seed},
    {"a bad length", call_bad},
    {"batch", call_batch},
};

/* Returns the most that any call used. The first calls connect and open the kem. */
static size_t
all_calls(struct mlkemclient *client)
{
	size_t most = 0;

	w.client = client;
	for (size_t a = 0; a < sizeof(algs) / sizeof(algs[0]); a++) {
		w.alg = algs[a];
		ck_assert_int_eq(mlkemclient_get_sizes(w.alg, &w.sizes), 0);
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
			size_t used = run_on_fibre(calls[i].run);

			ck_assert_msg(w.error == 0, "%s of %s: %s", calls[i].name,
			    mlkemclient_alg_name(w.alg),
			    mlkemclient_last_message(client));
			ck_assert_msg(used < MAX_USED, "%s of %s used %zu bytes",
			    calls[i].name, mlkemclient_alg_name(w.alg), used);
			most = used > most ? used : most;
		}
	}
	return most;
}

START_TEST(local_calls_fit)
{
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	printf("local: %zu bytes\n", all_calls(client));
	mlkemclient_free(client);
}
END_TEST

/* With leases, and with a daemon that goes: the calls then fall back. */
START_TEST(daemon_calls_fit)
{
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .route = _i == 0 ? MLKEMCLIENT_ROUTE_DAEMON : MLKEMCLIENT_ROUTE_AUTO,
	    .deadline_us = 10000000,
	    .leases = 64};
	struct mlkemclient *client;
	struct daemon daemon;

	daemon_start(&daemon, "kem.export-private-keys=yes");
	opts.socket_path = daemon.path;
	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	printf("daemon: %zu bytes\n", all_calls(client));
	daemon_kill(&daemon);
	/* Else the first leased key would tell, and fail. */
	ck_assert_int_eq(mlkemclient_ping(client), MLKEMCLIENT_E_UNAVAILABLE);
	printf("daemon gone: %zu bytes\n", all_calls(client));
	mlkemclient_free(client);
	daemon_run(&daemon);
	daemon_stop(&daemon);
}
END_TEST

/* The control: more than there may be is seen. */
static void
call_greedy(void)
{
	volatile uint8_t room[MAX_USED];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 1;
}

START_TEST(greed_is_seen)
{
	ck_assert_uint_ge(run_on_fibre(call_greedy), MAX_USED);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("stack");
	TCase *tc = tcase_create("stack");

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, stack_make, NULL);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, local_calls_fit);
	tcase_add_loop_test(tc, daemon_calls_fit, 0, 2);
	tcase_add_test(tc, greed_is_seen);
	return rig_main(argc, argv, suite);
}
