/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_priv.h: struct server, within server*.c: server_start.c starts; server.c runs,
 * accepts and ends; server_tell.c tells the shards things; server_ops.c reloads, drains
 * and does what the control socket asks for; server_metrics.c says how all of it is.
 */
#ifndef MLKEMD_SERVER_PRIV_H
#define MLKEMD_SERVER_PRIV_H

#include "activation.h"
#include "control.h"
#include "listener.h"
#include "server.h"
#include "shard.h"

/*
 * All that can be under way at once: each control operation, a reload by signal, and the
 * two words of the end. None may be lost: a reload frees the configuration before.
 */
#define SERVER_OWED_MAX (CONTROL_WAITING_MAX + 3)

#define SERVER_SHARDS_MAX 64 /* of daemon.shards */

/* Records that a full pipe did not take yet, in order. */
struct server_owed {
	struct shard_record records[SERVER_OWED_MAX];
	uint32_t n;
};

enum server_state {
	SERVER_RUNNING,
	SERVER_STOPPING, /* nothing is accepted; live handles still decapsulate */
	SERVER_QUITTING, /* the shards make their last turns */
	SERVER_ENDED,
};

struct server {
	struct config *config;
	struct config *retired; /* until every shard has the new one */
	const struct config_sources *sources;
	struct kem *kem;
	struct event_base *base;
	struct shard_common common;
	struct shard *shards;
	struct server_owed *owed; /* one a shard */
	uint32_t n_inited;        /* shards */
	/* Copies: the configuration that they were read from may be gone. */
	char path[LISTENER_PATH_MAX + 1], control_path[LISTENER_PATH_MAX + 1];
	struct activation activation; /* sockets that came from the service manager */
	struct listener listener;
	struct control control;
	/* server_metrics.c */
	struct metrics_http *http; /* NULL: off */
	char metrics_path[LISTENER_PATH_MAX + 1];
	struct listener metrics_listener;
	struct keypool_limits pool_first; /* a shard's at the start: it can't grow */
	uint64_t started_unix_us, selftest_unix_us, reload_unix_us;
	bool reload_good, sandboxed;
	bool has_watchdog, fed;         /* fed at the last tick */
	bool turned[SERVER_SHARDS_MAX]; /* since it was fed */
	uint64_t last_turns[SERVER_SHARDS_MAX];
	uint32_t n_still[SERVER_SHARDS_MAX]; /* ticks without a turn */
	struct metrics_shard metrics;        /* what main itself counts */
	const struct metrics_shard **all_metrics;
	enum server_state state;
	int status;
	bool draining;
	bool at_once;           /* told to stop twice */
	bool reload_again;      /* SIGHUP came while a reload was under way */
	uint64_t serial;        /* of the last record told to all */
	uint64_t reload_serial; /* of the reload under way, 0: none */
	uint64_t last_conn_id, n_placed, n_refused_placed;
	uint32_t descriptors; /* that connections may take */
	struct user_seat *seats;
	uint32_t n_ticks;
	struct event term_event, int_event, hup_event;
	struct event wake_event, tick_event, retry_event, drain_event;
};

/* server.c */
void server_accepted(void *owner, int fd);
void server_on_stop(evutil_socket_t fd, short what, void *arg);
void server_on_hup(evutil_socket_t fd, short what, void *arg);
void server_on_wake(evutil_socket_t fd, short what, void *arg);
void server_on_tick(evutil_socket_t fd, short what, void *arg);
void server_on_drained(evutil_socket_t fd, short what, void *arg);

/* server_start.c */
/* Everything up to READY. Returns 0, or an exit status, logged. */
int server_start(struct server *server);

/* server_metrics.c */
/* Listens for scrapes, if there is a socket for them. Returns 0, or negative, logged. */
int server_init_metrics(struct server *server);
void server_watch(struct server *server);
uint64_t server_unix_us(void);

/* server_tell.c */
/* Tells all shards; *serialp (may be NULL) is what server_all_did() is asked with. */
void server_tell_all(struct server *server, enum shard_record_type type,
    const struct config *config, uint64_t *serialp);
bool server_all_did(const struct server *server, uint64_t serial);
/* False if the shard's pipe is full. */
bool server_tell_conn(
    struct server *server, struct shard *shard, const struct shard_record *record);
void server_retry(evutil_socket_t fd, short what, void *arg);

/* server_ops.c */
extern const struct control_ops server_control_ops;
/* Returns 0, or a request_status with error written. */
enum request_status server_reload(struct server *server, char *error, size_t size);
/* Every shard has the new configuration: the old one is freed. */
void server_reload_finish(struct server *server);
void server_stop(struct server *server);
void server_quit(struct server *server);
/* Ends without the shards that have not ended. */
void server_give_up(struct server *server);
/* Looks at what the shards say of themselves. */
void server_look(struct server *server);

#endif
