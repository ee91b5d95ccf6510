/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h: the whole daemon, as main's thread sees it: it starts all parts, accepts,
 * places connections, handles signals, reloads, drains and ends. Owns everything.
 */
#ifndef MLKEMD_SERVER_H
#define MLKEMD_SERVER_H

#include "config.h"

/* Exit statuses (docs/operations.md). */
enum {
	SERVER_EXIT_OK = 0,
	SERVER_EXIT_FAILED = 1, /* a socket, memory or a thread can't be had */
	SERVER_EXIT_CONFIG = 2, /* configuration or command line */
	SERVER_EXIT_BROKEN = 3, /* self-test, randomness or libcrypto failed */
};

/*
 * Runs the daemon until it is told to stop. Takes config over; sources are read again at
 * a reload. Returns an exit status.
 */
int server_run(struct config *config, const struct config_sources *sources);

/* Writes why there is no such backend, and which there are. */
void server_explain_backend(const struct config *config, char *text, size_t size);

#endif
