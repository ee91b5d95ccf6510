/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mlkem-bench/measure.h"

#define OPS_MAX 64

void
peer_fill(uint8_t *out, size_t len)
{
	static uint64_t state = 2024;

	for (size_t i = 0; i < len; i++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		out[i] = (uint8_t)(state >> 56);
	}
}

void
peer_need(int ok, const char *what)
{
	if (ok)
		return;
	printf("error %s failed\n", what);
	exit(1);
}

static void
answer_run(const struct peer *peer, struct measure_work *works, const char *line)
{
	struct measure hot;
	char op[32], set[32], how[8];
	double amount, cold_ns;
	size_t i = 0;

	if (sscanf(line, "%7s %31s %31s %lf", how, op, set, &amount) != 4) {
		puts("error no such question");
		return;
	}
	while (i < peer->n_ops &&
	       (strcmp(peer->ops[i].op, op) != 0 || strcmp(peer->ops[i].set, set) != 0))
		i++;
	if (i == peer->n_ops) {
		puts("error no such operation");
		return;
	}
	works[i].run = peer->ops[i].run;
	works[i].ctx = peer->ops[i].ctx;
	if (strcmp(how, "cold") == 0) {
		if (measure_cold(&works[i], (unsigned)amount, &cold_ns) == 0)
			printf("ns %.3f 0\n", cold_ns);
		else
			puts("error the operation failed");
	} else if (measure_hot(&works[i], amount, 0, &hot) == 0) {
		printf("ns %.3f %.3f\n", hot.ns, hot.ticks);
	} else {
		puts("error the operation failed");
	}
}

static void
print_hex(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		printf("%02x", bytes[i]);
}

static void
answer_check(const struct peer *peer, const char *line)
{
	uint8_t share[PEER_SHARE_MAX], ct[PEER_SHARE_MAX], shared[64];
	size_t len = 0, ct_len = sizeof ct, shared_len = sizeof shared;
	char set[32];
	int at = 0;

	if (sscanf(line, "check %31s %n", set, &at) != 1 || at == 0) {
		puts("error no such question");
		return;
	}
	for (unsigned byte; sscanf(line + at, "%2x", &byte) == 1 && len < sizeof share;
	     at += 2)
		share[len++] = (uint8_t)byte;
	if (peer->check(set, share, len, ct, &ct_len, shared, &shared_len) != 0) {
		puts("error the encapsulation failed");
		return;
	}
	fputs("ct ", stdout);
	print_hex(ct, ct_len);
	putchar(' ');
	print_hex(shared, shared_len);
	putchar('\n');
}

int
peer_serve(const struct peer *peer)
{
	static struct measure_work works[OPS_MAX];
	static char line[2 * PEER_SHARE_MAX + 64];

	peer_need(peer->n_ops <= OPS_MAX, "a small enough table");
	printf("peer %s %s\n", peer->name, peer->version);
	for (size_t i = 0; i < peer->n_ops; i++)
		printf("op %s %s\n", peer->ops[i].op, peer->ops[i].set);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (strncmp(line, "check ", 6) == 0)
			answer_check(peer, line);
		else
			answer_run(peer, works, line);
		fflush(stdout);
	}
	return 0;
}
