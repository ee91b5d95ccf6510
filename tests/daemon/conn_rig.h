/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_rig.h: a set of connections over real socket pairs, with a handler that answers at
 * once or at the end of the turn as a batch does. Connection i has the number i + 1, and
 * peers[i] is its other end.
 */
#ifndef MLKEMD_CONN_RIG_H
#define MLKEMD_CONN_RIG_H

#include "daemon/config.h"
#include "daemon/conn.h"
#include "rig.h"

#define TURN_ITEMS  64u
#define CONNS_MAX   600
#define SMALL_SLAB  (384u * SLAB_BLOCK_BYTES) /* the least that may be configured */
#define HELLO_BYTES 12u
#define PING_BYTES  8u

extern uint8_t *slab_memory;
extern struct slab slab;
extern struct metrics_shard metrics;
extern struct config config;
extern struct conn_set set;
extern bool batching; /* Pings are answered by the test */
extern unsigned n_handled, n_gone, n_turns;
extern uint64_t handled[4096]; /* the connection of each request, in order */
extern int peers[CONNS_MAX];

void conn_rig_start(size_t slab_bytes);
void conn_rig_setup(void); /* with SMALL_SLAB */
void conn_rig_teardown(void);
bool slab_is_zero(void);

void turn(void);
void turns(unsigned n);
void turns_for_ms(unsigned ms);
struct conn *conn_of(int i); /* NULL: it has ended */

/* A connection of that user, or of this one; refused or not. */
void open_as(int i, uid_t uid, enum request_status refusal);
void open_raw(int i, bool denied);
/* The same, that has said Hello. */
void join_as(int i, uid_t uid);
void join(int i);

/* Request { id; op {} } for an operation without fields; id below 128. */
size_t put_ping(uint8_t *to, unsigned id);
size_t put_hello(uint8_t *to);
/* A Ping of any size: the rest is a field that nobody knows (number 100). */
size_t put_padded(uint8_t *to, unsigned id, size_t message);

void say(int i, const void *data, size_t len);
/* Frames that the peer has got since the last call; -1 if the connection has ended. */
int hear(int i);

#endif
