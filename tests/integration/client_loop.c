/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_loop SOCKET [require] [deadline_us]: a program that uses the client library and
 * does what it is told on stdin, one command a line, one answer a line. It stays alive
 * while the daemon is stopped, killed and started again under it.
 *
 *   exchange ALG      keygen, encaps, decaps: "ok by_daemon by_local", or the error
 *   keygen ALG        a key that is kept: "ok where"
 *   decaps            encapsulates to the kept key and decapsulates: "ok", or the error
 *   loop N ALG        N exchanges: "done good failed wrong longest_us"
 *   fork N M          N children, M exchanges each, and the parent's own meanwhile
 *   shares ALG N      a child and the parent make N shares each: prints all of them
 *   ping | counts | secret ALG (prints the agreed secret in hex)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/mlkemclient.h"

static struct mlkemclient *client;
static struct mlkemclient_key *kept;
static uint8_t kept_share[MLKEMCLIENT_MAX_SHARE];

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void
print_error(int error)
{
	printf("error %d %s\n", error, mlkemclient_last_message(client));
}

/* Encapsulates to a share, decapsulates with its key. 1: the secrets differ. */
static int
agree(struct mlkemclient_key *key, const uint8_t *share, uint8_t *secret)
{
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT], sent[MLKEMCLIENT_MAX_SECRET] = {0};
	enum mlkemclient_alg alg = mlkemclient_key_alg(key);
	struct mlkemclient_sizes sizes;
	int r = mlkemclient_get_sizes(alg, &sizes);

	if (!r)
		r = mlkemclient_encaps(client, alg, share, sizes.share, ct,
		    sizes.ciphertext, sent, sizes.secret);
	if (!r)
		r = mlkemclient_decaps(
		    client, key, ct, sizes.ciphertext, secret, sizes.secret);
	if (!r && memcmp(sent, secret, sizes.secret))
		r = 1;
	mlkemclient_wipe(sent, sizeof(sent));
	return r;
}

static int
keygen(enum mlkemclient_alg alg, uint8_t *share, struct mlkemclient_key **keyp)
{
	struct mlkemclient_sizes sizes;
	int r = mlkemclient_get_sizes(alg, &sizes);

	if (r)
		return r;
	return mlkemclient_keygen(client, alg, share, sizes.share, keyp);
}

static int
exchange(enum mlkemclient_alg alg, uint8_t *secret)
{
	uint8_t share[MLKEMCLIENT_MAX_SHARE];
	struct mlkemclient_key *key = NULL;
	int r = keygen(alg, share, &key);

	if (!r)
		r = agree(key, share, secret);
	mlkemclient_key_free(client, key);
	return r;
}

static void
print_exchange(enum mlkemclient_alg alg)
{
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	struct mlkemclient_counts counts;
	int r = exchange(alg, secret);

	mlkemclient_wipe(secret, sizeof(secret));
	if (r) {
		print_error(r);
		return;
	}
	mlkemclient_get_counts(client, &counts);
	printf("ok %" PRIu64 " %" PRIu64 "\n", counts.by_daemon, counts.by_local);
}

static void
print_secret(enum mlkemclient_alg alg)
{
	uint8_t secret[MLKEMCLIENT_MAX_SECRET] = {0};
	int r = exchange(alg, secret);

	if (r) {
		print_error(r);
		return;
	}
	/* As text only in the pipe: what is left of it here is wiped as well. */
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < sizeof(secret); i++) {
		char pair[2] = {digits[secret[i] >> 4], digits[secret[i] & 15]};

		if (write(STDOUT_FILENO, pair, 2) != 2)
			exit(3);
	}
	if (write(STDOUT_FILENO, "\n", 1) != 1)
		exit(3);
	mlkemclient_wipe(secret, sizeof(secret));
}

static int
loop(int n, enum mlkemclient_alg alg, int *failedp, uint64_t *longestp)
{
	int good = 0, wrong = 0;

	*failedp = 0;
	*longestp = 0;
	for (int i = 0; i < n; i++) {
		uint8_t secret[MLKEMCLIENT_MAX_SECRET];
		uint64_t start = now_us();
		int r = exchange(alg, secret);
		uint64_t took = now_us() - start;

		good += r == 0;
		wrong += r > 0;
		*failedp += r < 0;
		if (took > *longestp)
			*longestp = took;
	}
	return wrong ? -wrong : good;
}

static void
fork_children(int n, int rounds)
{
	int failed, status, bad = 0, good;
	uint64_t longest;

	fflush(stdout);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			good = loop(rounds, MLKEMCLIENT_ML_KEM_512, &failed, &longest);
			_exit(good == rounds ? 0 : 1);
		}
		bad += pid < 0;
	}
	good = loop(rounds, MLKEMCLIENT_ML_KEM_512, &failed, &longest);
	while (wait(&status) > 0)
		bad += status != 0;
	printf("forked bad %d parent %d\n", bad, good);
}

static void
print_shares(enum mlkemclient_alg alg, int n)
{
	uint8_t share[MLKEMCLIENT_MAX_SHARE];
	pid_t pid;

	fflush(stdout);
	pid = fork();
	for (int i = 0; i < n; i++) {
		struct mlkemclient_key *key = NULL;

		if (keygen(alg, share, &key))
			printf("failed %s\n", mlkemclient_last_message(client));
		else
			for (int b = 0; b < 32; b++)
				printf("%02x%s", share[b], b < 31 ? "" : "\n");
		mlkemclient_key_free(client, key);
	}
	fflush(stdout);
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	printf("end\n");
}

static int
number(const char *text)
{
	return (int)strtol(text, NULL, 10);
}

static void
obey(const char *command, const char *arg1, const char *arg2)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_counts counts;
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	uint64_t longest;
	int r, failed;
	const char *name = strcmp(command, "loop") ? arg1 : arg2;

	if (strcmp(command, "fork") && *name && mlkemclient_alg_parse(name, &alg)) {
		printf("error: no algorithm %s\n", name);
	} else if (!strcmp(command, "exchange")) {
		print_exchange(alg);
	} else if (!strcmp(command, "secret")) {
		print_secret(alg);
	} else if (!strcmp(command, "keygen")) {
		mlkemclient_key_free(client, kept);
		kept = NULL;
		r = keygen(alg, kept_share, &kept);
		if (r)
			print_error(r);
		else
			printf("ok %s\n",
			    mlkemclient_key_in_daemon(kept) ? "daemon" : "local");
	} else if (!strcmp(command, "decaps")) {
		r = kept ? agree(kept, kept_share, secret) : 99;
		if (r)
			print_error(r);
		else
			printf("ok\n");
		mlkemclient_wipe(secret, sizeof(secret));
	} else if (!strcmp(command, "loop")) {
		r = loop(number(arg1), alg, &failed, &longest);
		printf("done %d %d %d %" PRIu64 "\n", r > 0 ? r : 0, failed,
		    r < 0 ? -r : 0, longest);
	} else if (!strcmp(command, "fork")) {
		fork_children(number(arg1), number(arg2));
	} else if (!strcmp(command, "shares")) {
		print_shares(alg, number(arg2));
	} else if (!strcmp(command, "ping")) {
		r = mlkemclient_ping(client);
		if (r)
			print_error(r);
		else
			printf("ok\n");
	} else if (!strcmp(command, "counts")) {
		mlkemclient_get_counts(client, &counts);
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		    counts.by_daemon, counts.by_local, counts.fallbacks,
		    counts.timeouts, counts.connects);
	} else {
		printf("error: no command %s\n", command);
	}
}

int
main(int argc, char **argv)
{
	struct mlkemclient_options options = {
	    .size = sizeof(options), .route = MLKEMCLIENT_ROUTE_DAEMON};
	char line[256];

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "require"))
			options.require = true;
		else if (!strcmp(argv[i], "local"))
			options.route = MLKEMCLIENT_ROUTE_LOCAL;
		else if (i > 1)
			options.deadline_us = (uint32_t)strtoul(argv[i], NULL, 10);
	}
	options.socket_path = argc > 1 ? argv[1] : NULL;
	options.client_name = "client_loop";
	int r = mlkemclient_new(&client, &options);
	if (r) {
		printf("new %d %s\n", r, mlkemclient_strerror(r));
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		char command[32] = "", arg1[64] = "", arg2[64] = "";

		if (sscanf(line, "%31s %63s %63s", command, arg1, arg2) < 1)
			continue;
		obey(command, arg1, arg2);
		fflush(stdout);
	}
	mlkemclient_key_free(client, kept);
	mlkemclient_free(client);
	return 0;
}
