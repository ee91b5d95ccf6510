/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * rig.h: the real daemon (MLKEMD_DAEMON names it) on a private socket, for the tests
 * that use the library against it; and a stream of choices that a seed plays again.
 */
#ifndef TESTS_CLIENT_LIB_RIG_H
#define TESTS_CLIENT_LIB_RIG_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client-lib/client.h"

struct daemon {
	pid_t pid;
	char dir[64], path[108], control[108], config[108];
	const char *setting; /* one more --set, or NULL */
};

void daemon_start(struct daemon *daemon, const char *setting);
void daemon_run(struct daemon *daemon); /* again, after daemon_kill() */
void daemon_kill(struct daemon *daemon);
void daemon_stop(struct daemon *daemon); /* insists on an orderly end */
struct mlkemclient *daemon_client(
    const struct daemon *daemon, bool require, uint32_t deadline_us);

/*
 * One exchange: a makes the key, b answers, a takes the secret. Returns 0, the first
 * error, or 1 if the secrets are not equal (or, after a changed bit, not different).
 */
int rig_exchange(struct mlkemclient *a, struct mlkemclient *b, enum mlkemclient_alg alg,
    bool change_bit);

uint64_t rig_now_us(void);
uint32_t rig_draw(uint32_t n); /* 0 to n - 1 */

/* Takes --seed N or makes a seed, prints it, runs the suite; main's status. */
int rig_main(int argc, char **argv, Suite *suite);
extern uint64_t rig_seed;

#endif
