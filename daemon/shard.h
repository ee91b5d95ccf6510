/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.h: one thread with its event base, connections, queue, keys, arena and counters.
 * Made, started, told and freed by main; everything else in it is the shard's own. Main
 * tells it things by records on one pipe; what it has to say are levels (atomics), and a
 * write to main's eventfd says that one of them changed: levels can't fill up, get lost
 * or come in the wrong order, and no second pipe needs reading.
 */
#ifndef MLKEMD_SHARD_H
#define MLKEMD_SHARD_H

#include <pthread.h>
#include <stdatomic.h>

#include "batch.h"
#include "busypoll.h"
#include "conn.h"
#include "metrics.h"
#include "secmem.h"
#include "service.h"
#include "slab.h"

struct config;
struct keypool;
struct keytable;

enum shard_record_type {
	SHARD_NEW_CONN, /* fd, peer */
	SHARD_DRAIN,
	SHARD_RESUME,
	SHARD_SELFTEST,
	SHARD_RELOAD, /* config */
	SHARD_QUIT,   /* after a last round over what has been received */
};

/* One write each, far below PIPE_BUF: whole or not at all. */
struct shard_record {
	enum shard_record_type type;
	int fd;
	struct conn_peer peer;
	const struct config *config;
	uint64_t serial; /* of what all shards are told, from 1 on; 0: NEW_CONN */
};

/* What all shards have in common; main's, constant after the start. */
struct shard_common {
	const struct kem *kem;
	uint32_t n_shards;
	uint64_t started_us;
	int wake_fd;         /* main's eventfd */
	uint32_t wake_up_us; /* for busypoll */
};

struct shard {
	struct metrics_shard metrics;

	/* Levels for main; the shard writes them. */
	_Atomic uint64_t serial;             /* of the last record carried out */
	_Atomic(const char *) selftest_step; /* static; that failed last, or NULL */
	_Atomic uint64_t n_ended;            /* connections */
	_Atomic uint64_t n_refused_ended;    /* of them, such as were refused */
	_Atomic uint64_t
	    busy_until_us; /* the end of the 100 ms that are meant in ... */
	_Atomic uint32_t busy_permille; /* ... how busy it was */
	_Atomic int failed;   /* a KEM_FAIL_... or negative errno: main must stop */
	_Atomic bool ended;   /* the thread is about to return */
	_Atomic bool drained; /* draining, and no handle and no answer is left */

	/* main's */
	bool running;
	uint32_t index;
	int pipe_write;
	const struct shard_common *common;
	pthread_t thread;

	/* the shard's */
	int pipe_read;
	bool quit;
	struct event_base *base;
	struct event pipe_event;
	struct secmem secmem;
	struct kem_scratch *scratch;
	struct slab slab;
	struct mem mem;
	struct keypool *pool;
	struct keytable *keys;
	struct batch batch;
	struct service service;
	struct conn_set conns;
	struct busypoll poll;
	const struct config *config;
	uint64_t window_us, window_busy_us; /* since when; how much of it */
	int64_t suspended_us; /* CLOCK_BOOTTIME ahead of CLOCK_MONOTONIC */
};

/* Bytes of secret memory that one shard takes. */
size_t shard_arena_bytes(const struct config *config, uint32_t n_shards);

/*
 * shard_init() makes all of it, prefaulted, on main's thread. Returns 0, or a negative
 * errno. shard_start() starts the thread: 0, or a positive errno. shard_fini() joins a
 * running thread (which must have been told to quit or have failed) and wipes.
 */
__attribute__((warn_unused_result)) int shard_init(struct shard *shard, uint32_t index,
    const struct config *config, const struct shard_common *common);
__attribute__((warn_unused_result)) int shard_start(struct shard *shard);
void shard_fini(struct shard *shard);

/* Main's side of the pipe; never waits. False: the pipe is full. */
__attribute__((warn_unused_result)) bool shard_tell(
    struct shard *shard, const struct shard_record *record);

/* Busy permille of the last 100 ms, as main sees it at now_us. */
uint32_t shard_busy_permille(const struct shard *shard, uint64_t now_us);

#endif
