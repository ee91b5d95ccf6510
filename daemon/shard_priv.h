/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_priv.h: within shard*.c: shard.c is what runs on the shard's thread, shard_init.c
 * what main does with it before, after and from outside.
 */
#ifndef MLKEMD_SHARD_PRIV_H
#define MLKEMD_SHARD_PRIV_H

#include "keypool.h"
#include "shard.h"

#define SHARD_WINDOW_US  100000u /* how long a look at how busy it is */
#define SHARD_SUSPEND_US 1000000 /* a jump of the clocks that means sleep */

/* One shard's part of the daemon's pool. */
struct keypool_limits shard_pool_limits(const struct config *config, uint32_t n_shards);

/* Live keys of one user, as Hello tells them. */
uint32_t shard_user_handles(const struct config *config, uint32_t n_shards);

extern const struct conn_ops shard_conn_ops;

/* The pipe has records. */
void shard_told(evutil_socket_t fd, short what, void *arg);

/* The thread; arg is the shard. */
void *shard_main(void *arg);

#endif
