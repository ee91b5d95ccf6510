/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The library against the real daemon: whole exchanges, batches, keys and handles. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"
#include "rig.h"

#define PLENTY_US 10000000u
#define N_ROUNDS  1000

static const enum mlkemclient_alg algs[] = {MLKEMCLIENT_ML_KEM_512,
    MLKEMCLIENT_ML_KEM_768, MLKEMCLIENT_ML_KEM_1024, MLKEMCLIENT_X25519MLKEM768};
enum { N_ALGS = sizeof(algs) / sizeof(algs[0]) };

static uint8_t shares[64][MLKEMCLIENT_MAX_SHARE];
static uint8_t cts[64][MLKEMCLIENT_MAX_CIPHERTEXT];
static uint8_t sent[64][MLKEMCLIENT_MAX_SECRET];
static uint8_t received[64][MLKEMCLIENT_MAX_SECRET];
static uint8_t private_key[MLKEMCLIENT_MAX_PRIVATE_KEY];

START_TEST(random_rounds)
{
	enum mlkemclient_alg alg = algs[_i];
	struct mlkemclient_counts counts;
	struct mlkemclient *near, *far[2];
	struct daemon daemon;

	rig_seed += (uint64_t)_i;
	daemon_start(&daemon, NULL);
	far[0] = daemon_client(&daemon, true, PLENTY_US);
	far[1] = daemon_client(&daemon, true, PLENTY_US);
	near = daemon_client(&daemon, true, PLENTY_US);
	near->route = MLKEMCLIENT_ROUTE_LOCAL;
	for (int round = 0; round < N_ROUNDS; round++) {
		struct mlkemclient *a = rig_draw(4) ? far[rig_draw(2)] : near;
		struct mlkemclient *b = rig_draw(4) ? far[rig_draw(2)] : near;

		ck_assert_msg(rig_exchange(a, b, alg, rig_draw(4) == 0) == 0,
		    "round %d: %s", round, mlkemclient_last_message(a));
	}
	mlkemclient_get_counts(far[0], &counts);
	ck_assert_uint_ge(counts.by_daemon, N_ROUNDS / 2);
	ck_assert_uint_eq(counts.connects, 1);
	mlkemclient_free(near);
	mlkemclient_free(far[0]);
	mlkemclient_free(far[1]);
	daemon_stop(&daemon);
}
END_TEST

static struct mlkemclient_keygen_item keygen_items[64];
static struct mlkemclient_encaps_item encaps_items[64];
static struct mlkemclient_decaps_item decaps_items[64];

static void
batch_round(struct mlkemclient *client, enum mlkemclient_alg alg, size_t n, size_t bad)
{
	struct mlkemclient_sizes sizes;

	ck_assert_int_eq(mlkemclient_get_sizes(alg, &sizes), 0);
	for (size_t i = 0; i < n; i++) {
		keygen_items[i] = (struct mlkemclient_keygen_item){shares[i], NULL, 1};
		encaps_items[i] = (struct mlkemclient_encaps_item){
		    shares[i], sizes.share, cts[i], sent[i], 1};
	}
	ck_assert_int_eq(mlkemclient_keygen_batch(client, alg, keygen_items, n), 0);
	if (bad < n)
		memset(shares[bad], 0xff, 3); /* over the modulus */
	ck_assert_int_eq(mlkemclient_encaps_batch(client, alg, encaps_items, n), 0);
	for (size_t i = 0; i < n; i++)
		decaps_items[i] = (struct mlkemclient_decaps_item){
		    keygen_items[i].key, cts[i], sizes.ciphertext, received[i], 1};
	if (bad < n)
		decaps_items[bad].ciphertext_len--;
	ck_assert_int_eq(mlkemclient_decaps_batch(client, alg, decaps_items, n), 0);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(keygen_items[i].error, 0);
		ck_assert(mlkemclient_key_in_daemon(keygen_items[i].key));
		ck_assert_int_eq(
		    encaps_items[i].error, i == bad ? MLKEMCLIENT_E_BAD_SHARE : 0);
		ck_assert_int_eq(
		    decaps_items[i].error, i == bad ? MLKEMCLIENT_E_LENGTH : 0);
		ck_assert_mem_eq(sent[i], received[i], sizes.secret);
		ck_assert(is_zero(sent[i], 32) == (i == bad));
		mlkemclient_key_free(client, keygen_items[i].key);
	}
}

START_TEST(batches)
{
	static const size_t counts[] = {1, 2, 7, 8, 9, 33, 64};
	struct mlkemclient *client;
	struct daemon daemon;

	daemon_start(&daemon, NULL);
	client = daemon_client(&daemon, true, PLENTY_US);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		size_t n = counts[i];

		batch_round(client, algs[_i], n, n); /* none bad */
		batch_round(client, algs[_i], n, 0);
		batch_round(client, algs[_i], n, n / 2);
		batch_round(client, algs[_i], n, n - 1);
	}
	mlkemclient_free(client);
	daemon_stop(&daemon);
}
END_TEST

/* A private key of one's own: the daemon and this process give the same, kdf or not. */
START_TEST(own_keys_and_kdf)
{
	enum mlkemclient_alg alg = algs[_i];
	static uint8_t by_daemon[12240], by_local[12240];
	const uint8_t *salt = (const uint8_t *)"salt", *info = (const uint8_t *)"info";
	struct mlkemclient_sizes sizes;
	struct mlkemclient *far, *near;
	struct daemon daemon;

	daemon_start(&daemon, "kem.export-private-keys=yes");
	far = daemon_client(&daemon, true, PLENTY_US);
	near = daemon_client(&daemon, true, PLENTY_US);
	near->route = MLKEMCLIENT_ROUTE_LOCAL;
	ck_assert_int_eq(mlkemclient_get_sizes(alg, &sizes), 0);
	ck_assert_int_eq(mlkemclient_keygen_export(far, alg, shares[0], sizes.share,
			     private_key, sizes.private_key),
	    0);
	ck_assert_int_eq(mlkemclient_encaps(far, alg, shares[0], sizes.share, cts[0],
			     sizes.ciphertext, sent[0], sizes.secret),
	    0);
	for (int kdf = 0; kdf < 3; kdf++) {
		size_t len = kdf == 0 ? sizes.secret : kdf == 1 ? 32 : 12240;

		for (int i = 0; i < 2 && kdf != 0; i++)
			ck_assert_int_eq(
			    mlkemclient_set_kdf(i ? near : far, kdf == 1 ? 256 : 384,
				salt, 4, info, 4, (uint32_t)len),
			    0);
		ck_assert_int_eq(
		    mlkemclient_decaps_with(far, alg, private_key, sizes.private_key,
			cts[0], sizes.ciphertext, by_daemon, len),
		    0);
		ck_assert_int_eq(
		    mlkemclient_decaps_with(near, alg, private_key, sizes.private_key,
			cts[0], sizes.ciphertext, by_local, len),
		    0);
		ck_assert_mem_eq(by_daemon, by_local, len);
		if (kdf == 0)
			ck_assert_mem_eq(by_daemon, sent[0], len);

		/* and by a seed, with a ciphertext that is none of its own */
		ck_assert_int_eq(
		    mlkemclient_decaps_with(far, alg, private_key, sizes.seed, cts[0],
			sizes.ciphertext, by_daemon, len),
		    0);
		ck_assert_int_eq(
		    mlkemclient_decaps_with(near, alg, private_key, sizes.seed, cts[0],
			sizes.ciphertext, by_local, len),
		    0);
		ck_assert_mem_eq(by_daemon, by_local, len);
	}
	/* a bit of ek inside: the hash check */
	private_key[sizes.private_key / 2] ^= 1;
	ck_assert_int_eq(
	    mlkemclient_decaps_with(far, alg, private_key, sizes.private_key, cts[0],
		sizes.ciphertext, by_daemon, 12240),
	    MLKEMCLIENT_E_BAD_KEY);
	ck_assert(is_zero(by_daemon, 12240));
	mlkemclient_free(far);
	mlkemclient_free(near);
	daemon_stop(&daemon);
}
END_TEST

START_TEST(export_is_off_by_default)
{
	struct mlkemclient_info info;
	struct mlkemclient *client;
	struct daemon daemon;

	daemon_start(&daemon, NULL);
	client = daemon_client(&daemon, false, PLENTY_US);
	ck_assert_int_eq(mlkemclient_get_info(client, &info), 0);
	ck_assert(!info.export_allowed);
	ck_assert_uint_eq(info.max_items, 64);
	ck_assert_uint_gt(info.lanes, 0);
	ck_assert_uint_eq(info.handle_lifetime_ms, 60000);
	ck_assert_int_eq(mlkemclient_keygen_export(client, MLKEMCLIENT_ML_KEM_768,
			     shares[0], 1184, private_key, 2400),
	    MLKEMCLIENT_E_NO_EXPORT);
	ck_assert(is_zero(private_key, 2400) && is_zero(shares[0], 1184));
	mlkemclient_free(client);
	daemon_stop(&daemon);
}
END_TEST

/* The same handle three times in one request, and all the ways of ending one. */
START_TEST(handles_are_used_once)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_key *key;
	struct mlkemclient *client;
	struct daemon daemon;

	daemon_start(&daemon, "limits.max-handles=64");
	client = daemon_client(&daemon, true, PLENTY_US);
	for (int round = 0; round < 300; round++) {
		ck_assert_int_eq(
		    mlkemclient_keygen(client, alg, shares[0], 1216, &key), 0);
		ck_assert_int_eq(mlkemclient_encaps(client, alg, shares[0], 1216,
				     cts[0], 1120, sent[0], 64),
		    0);
		for (int i = 0; i < 3; i++)
			decaps_items[i] = (struct mlkemclient_decaps_item){
			    key, cts[0], 1120, received[i], 1};
		ck_assert_int_eq(
		    mlkemclient_decaps_batch(client, alg, decaps_items, 3), 0);
		ck_assert_int_eq(decaps_items[0].error, 0);
		ck_assert_int_eq(decaps_items[1].error, MLKEMCLIENT_E_KEY_GONE);
		ck_assert_int_eq(decaps_items[2].error, MLKEMCLIENT_E_KEY_GONE);
		ck_assert_mem_eq(sent[0], received[0], 64);
		ck_assert_int_eq(
		    mlkemclient_decaps(client, key, cts[0], 1120, received[0], 64),
		    MLKEMCLIENT_E_KEY_GONE);
		mlkemclient_key_free(client, key);
		/* released unused: else 64 would be reached */
		ck_assert_int_eq(
		    mlkemclient_keygen(client, alg, shares[0], 1216, &key), 0);
		mlkemclient_key_free(client, key);
	}
	for (int i = 0; i < 64; i++)
		keygen_items[i] = (struct mlkemclient_keygen_item){shares[i], NULL, 1};
	ck_assert_int_eq(mlkemclient_keygen_batch(client, alg, keygen_items, 64), 0);
	ck_assert_int_eq(mlkemclient_keygen(client, alg, shares[0], 1216, &key),
	    MLKEMCLIENT_E_EXHAUSTED);
	for (int i = 0; i < 64; i++)
		mlkemclient_key_free(client, keygen_items[i].key);

	/* a connection that ends takes its keys along */
	for (int round = 0; round < 20; round++) {
		struct mlkemclient *passer = daemon_client(&daemon, true, PLENTY_US);

		ck_assert_int_eq(
		    mlkemclient_keygen_batch(passer, alg, keygen_items, 64), 0);
		link_close(passer, LINK_E_LOST);
		for (int i = 0; i < 64; i++)
			mlkemclient_key_free(passer, keygen_items[i].key);
		ck_assert_int_eq(mlkemclient_ping(client), 0);
		mlkemclient_free(passer);
	}
	mlkemclient_free(client);
	daemon_stop(&daemon);
}
END_TEST

/* A handle means something on its own connection only. */
START_TEST(handles_of_others)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_ML_KEM_768;
	struct mlkemclient_key *key, *stolen;
	struct mlkemclient *owner, *thief;
	struct daemon daemon;

	daemon_start(&daemon, NULL);
	owner = daemon_client(&daemon, true, PLENTY_US);
	thief = daemon_client(&daemon, true, PLENTY_US);
	ck_assert_int_eq(mlkemclient_keygen(owner, alg, shares[0], 1184, &key), 0);
	ck_assert_int_eq(
	    mlkemclient_encaps(thief, alg, shares[0], 1184, cts[0], 1088, sent[0], 32),
	    0);
	for (int delta = -1; delta <= 1; delta++) {
		ck_assert_int_eq(
		    mlkemclient_keygen(thief, alg, shares[1], 1184, &stolen), 0);
		memcpy(stolen->handle, key->handle, sizeof(key->handle));
		stolen->handle[15] = (uint8_t)(stolen->handle[15] + delta);
		ck_assert_int_eq(
		    mlkemclient_decaps(thief, stolen, cts[0], 1088, received[0], 32),
		    MLKEMCLIENT_E_KEY_GONE);
		ck_assert(is_zero(received[0], 32));
		stolen->spent = false;
		mlkemclient_key_free(thief, stolen); /* a release that is not his */
	}
	ck_assert_int_eq(
	    mlkemclient_decaps(owner, key, cts[0], 1088, received[0], 32), 0);
	ck_assert_mem_eq(sent[0], received[0], 32);
	mlkemclient_key_free(owner, key);
	mlkemclient_free(owner);
	mlkemclient_free(thief);
	daemon_stop(&daemon);
}
END_TEST

/* Runs a program with one argument and gives its first line back. */
static void
run(const char *exe, const char *arg, char *line, size_t size)
{
	int out[2], status;
	ssize_t n;
	pid_t pid;

	ck_assert_int_eq(pipe(out), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		execl(exe, exe, arg, NULL);
		_exit(127);
	}
	close(out[1]);
	n = read(out[0], line, size - 1);
	ck_assert_int_gt(n, 0);
	line[n] = '\0';
	close(out[0]);
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
}

START_TEST(examples)
{
	const char *exe = getenv(_i == 0 ? "MLKEMD_EXCHANGE" : "MLKEMD_BATCH64");
	struct daemon daemon;
	char line[256];

	ck_assert_msg(
	    exe != NULL, "MLKEMD_EXCHANGE and MLKEMD_BATCH64 name the examples");
	daemon_start(&daemon, NULL);
	run(exe, daemon.path, line, sizeof(line));
	ck_assert_ptr_nonnull(strstr(
	    line, _i == 0 ? "key in the daemon" : "64 of 64 secrets are equal; 192"));
	daemon_stop(&daemon);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("with daemon");
	TCase *tc = tcase_create("with daemon");

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 180);
	tcase_add_loop_test(tc, random_rounds, 0, N_ALGS);
	tcase_add_loop_test(tc, batches, 0, N_ALGS);
	tcase_add_loop_test(tc, own_keys_and_kdf, 0, N_ALGS);
	tcase_add_test(tc, export_is_off_by_default);
	tcase_add_test(tc, handles_are_used_once);
	tcase_add_test(tc, handles_of_others);
	tcase_add_loop_test(tc, examples, 0, 2);
	return rig_main(argc, argv, suite);
}
