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
#include "sandbox.h"
#include "secmem.h"

#define CONFIG_DEFAULT_FILE "/etc/mlkemd/mlkemd.conf"
#define CONFIG_RUN_DIR      "/run/mlkemd"

struct config_ids {
	uint32_t *ids; /* uids or gids, resolved */
	size_t n;
};

/* As it was written, for --print-config and for telling what a reload changes. */
struct config_text {
	char *value, *origin; /* origin: "default", "FILE:LINE" or a flag */
};

struct config_name;

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
	bool pool_enabled;
	struct keypool_limits pool; /* for the daemon; divided among shards */
	/* [limits] */
	uint32_t max_connections;
	uint32_t max_handles; /* for the daemon */
	uint32_t user_share;  /* percent of connections, keys and pool */
	uint32_t handle_lifetime_ms;
	uint32_t default_timeout_us;
	uint32_t hello_timeout_ms, frame_timeout_ms, drain_timeout_ms;
	uint32_t buffer_bytes; /* the slab of a shard */
	/* [metrics] */
	char *metrics_listen; /* "127.0.0.1:9768"; NULL: no TCP */
	char *metrics_path;   /* NULL: no Unix socket */
	mode_t metrics_mode;
	/* [daemon] */
	uint32_t shards; /* 0: auto */
	enum secmem_policy secret_memory;
	bool busy_poll;
	int log_level;            /* syslog's numbers */
	uint32_t slow_request_us; /* 0: none is told of */
	enum sandbox_policy sandbox;

	struct config_text *texts; /* one a key */
	struct config_name *names; /* resolved so far: a reload can't resolve more */
};

/* A value from the command line: it wins over every file. */
struct config_flag {
	const char *flag; /* "--socket", for messages and --print-config */
	const char *key;  /* "socket.path" */
	const char *value;
};

struct config_sources {
	const char *file; /* its conf.d lies beside it */
	bool file_required;
	const struct config_flag *flags;
	size_t n_flags;
};

enum {
	CONFIG_E_INVALID = 1, /* error says where and what is allowed, in one line */
};

/*
 * config_load() reads all sources. running is the configuration in force at a reload,
 * NULL at the start: then user and group names are resolved, later only those known.
 * error (at least 512 bytes) gets "FILE:LINE: KEY: what is allowed" for the first
 * mistake. Returns 0, -ENOMEM, or CONFIG_E_INVALID.
 */
__attribute__((warn_unused_result)) int config_load(struct config **configp,
    const struct config_sources *sources, const struct config *running, char *error,
    size_t error_size);
struct config *config_free(struct config *config); /* accepts NULL, returns NULL */

/* Every key with its value and where it came from: itself a configuration file. */
void config_print(const struct config *config, FILE *out);

/* Where the value of "section.key" came from. */
const char *config_origin(const struct config *config, const char *key);

/*
 * Puts the running value back where the new one needs a restart to take effect.
 * Writes the keys concerned, comma separated, to changed ("" if there are none).
 * Returns 0, or -ENOMEM.
 */
__attribute__((warn_unused_result)) int config_keep_fixed(struct config *config,
    const struct config *running, char *changed, size_t changed_size);

#endif
