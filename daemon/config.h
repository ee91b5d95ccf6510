/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h: the configuration: /etc/mlkemd/mlkemd.conf, then its conf.d (*.conf), then
 * flags; every key has a default. Immutable once loaded: a reload makes a new one, and
 * shards change over to it by a RELOAD record. Owned by main.
 */
#ifndef MLKEMD_CONFIG_H
#define MLKEMD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "keypool.h"
#include "secmem.h"

struct config_ids {
	uint32_t *ids; /* uids or gids, resolved */
	size_t n;
};

struct config {
	/* [socket] */
	char *path;         /* /run/mlkemd/mlkemd.sock */
	char *control_path; /* /run/mlkemd/control.sock */
	mode_t mode;        /* 0666 */
	gid_t group;        /* (gid_t)-1: leave */
	/* [access] */
	struct config_ids allow_users, allow_groups;
	/* [kem] */
	char *backend; /* NULL: auto */
	bool export_private;
	bool pairwise_check; /* pairwise-check = off | pool */
	/* [pool] */
	struct keypool_limits pool; /* for the daemon; divided among shards */
	/* [limits] */
	uint32_t max_connections;
	uint32_t max_handles; /* for the daemon */
	uint32_t handle_lifetime_ms;
	uint32_t default_timeout_us;
	uint32_t hello_timeout_ms, frame_timeout_ms, drain_timeout_ms;
	uint32_t buffer_bytes; /* the slab of a shard */
	/* [daemon] */
	uint32_t shards; /* 0: auto */
	enum secmem_policy secret_memory;
	int log_level; /* syslog's numbers */
};

#endif
