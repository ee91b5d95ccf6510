/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * client.h: the handle, which ties the files of client-lib together. The way of a call:
 *   single.c, batch.c -> route.c -> exchange.c -> link.c -> message_*.c -> daemon
 *                           '-> local.c -> kem.h
 * Calls of several threads overlap. What they share hangs from struct live, under its
 * lock, which nobody holds while waiting or computing.
 */
#ifndef MLKEMCLIENT_CLIENT_H
#define MLKEMCLIENT_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client-lib/breaker.h"
#include "client-lib/job.h"
#include "client-lib/key.h"
#include "client-lib/lease.h"
#include "client-lib/link.h"
#include "client-lib/local.h"
#include "client-lib/mlkemclient.h"
#include "client-lib/room.h"
#include "client-lib/route_auto.h"
#include "client-lib/spin.h"
#include "kem/kem.h"
#include "proto/wire.h"

#define CLIENT_MAX_PATH         107 /* of struct sockaddr_un, without the NUL */
#define CLIENT_DEFAULT_DEADLINE 1000000u
#define CLIENT_PROBE_US         100000u
#define CLIENT_N_RACKS          2

struct key_block; /* key.c */

/* What Hello tells the daemon of us. */
struct told {
	uint64_t fallbacks, auto_daemon, auto_local;
};

/*
 * What calls share. It lies in a mapping of its own that is all zero in a child: a lock
 * that another thread held when its process forked is free there, half-done changes
 * are undone, the parent's secrets are gone; and all zero is the state of a handle that
 * has done nothing yet.
 */
struct live {
	pthread_mutex_t
	    lock;  /* zero is PTHREAD_MUTEX_INITIALIZER; the tests assert it */
	bool ours; /* false: this process has not used the handle yet */
	unsigned n_cpus;
	struct link link;
	struct breaker breaker;
	struct local local;
	struct key_block *key_blocks;
	struct lease_rack racks[CLIENT_N_RACKS];
	struct spin spins[JOB_DECAPS + 1];
	struct route_auto costs;
	struct mlkemclient_counts counts;
	struct told untold;  /* since the last Hello */
	struct told telling; /* in one that is not answered yet */
	uint64_t told_us;    /* when it was sent */
};

struct mlkemclient {
	char path[CLIENT_MAX_PATH + 1];
	char name[WIRE_MAX_CLIENT_NAME + 1];
	enum mlkemclient_route route;
	bool require;
	uint32_t deadline_us, daemon_deadline_us;
	unsigned leases;
	bool server_uid_set;
	uid_t server_uid;
	bool server_user_found; /* the user mlkemd */
	uid_t server_user;
	uint64_t (*clock)(void *arg); /* microseconds; tests move it */
	void *clock_arg;
	uint64_t (*age_clock)(void *arg); /* goes on while the machine sleeps */

	struct live *live;

	/*
	 * What a child inherits of its parent's use: to let it go. Changed under the
	 * lock, each by one store, so that it is whole at any moment of a fork.
	 */
	uint32_t era;            /* counts processes: a key remembers its own */
	struct channel *channel; /* the open connection */
	struct room *rooms;      /* all mappings; the last is live's */
	struct kem *kem;         /* opened late, kept in a child */
	unsigned n_in_kem;       /* threads that may hold a lock of its libcrypto */
	struct kdf *kdf;
};

/* client.c. client_lock() also finds that this is another process now. */
void client_lock(struct mlkemclient *client);
void client_unlock(struct mlkemclient *client);
uint64_t client_now(const struct mlkemclient *client);
uint64_t clock_monotonic(void *arg);
uint64_t clock_boottime(void *arg);
/* For how long something that was prepared has lain here. */
uint64_t client_age_now(const struct mlkemclient *client);
void cond_init(pthread_cond_t *cond); /* waits on CLOCK_MONOTONIC */
/* False when deadline_us passed. */
bool client_wait(
    struct mlkemclient *client, pthread_cond_t *cond, uint64_t deadline_us);
must_check int alg_from_public(enum mlkemclient_alg alg, enum kem_alg *algp);
enum mlkemclient_alg alg_to_public(enum kem_alg alg);

/* report.c: what the thread's last failed call has to say. */
void report_clear(const struct mlkemclient *client); /* every call begins so */
__attribute__((format(printf, 3, 4))) int client_fail(
    const struct mlkemclient *client, int error, const char *format, ...);
/* In the words of kem_explain(). */
void client_explain(const struct mlkemclient *client, enum kem_status status,
    enum kem_alg alg, enum kem_part part, size_t len);

/*
 * counts.c, under the lock. counts_tell() says Hello again on a connection that lives, if
 * there is something new and the last one is a minute old; nobody waits for its answer.
 * Around each Hello: what is not told by the connection's end is told on the next one.
 */
void counts_tell(struct mlkemclient *client, uint64_t now_us);
void counts_telling(struct mlkemclient *client);
void counts_told(struct mlkemclient *client);
void counts_not_told(struct mlkemclient *client);

/* errors.c */
int error_from_status(uint32_t wire_status);
int error_from_kem(enum kem_status status);
/* Whether another place (this process) may do what failed so. */
bool error_is_elsewhere(int error);

/* route.c: works the job where it may and should be. Every item gets its error. */
void route_run(struct mlkemclient *client, struct job *job);

#endif
