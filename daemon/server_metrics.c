/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says of itself: figures, health, readiness, and the watchdog's food. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kem/fault.h"
#include "log.h"
#include "metrics_text.h"
#include "notify.h"
#include "server_priv.h"
#include "shard_priv.h"

#define STUCK_TICKS 5u /* an idle shard turns once a second, main ticks as often */

uint64_t
server_unix_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* What one shard may hold of a kind, and where filling begins: keypool_set_limits(). */
static void
pool_marks(const struct server *server, unsigned kind, uint32_t *high, uint32_t *low)
{
	struct keypool_limits limits =
	    shard_pool_limits(server->config, server->common.n_shards);

	*high = limits.high[kind];
	if (*high > server->pool_first.high[kind])
		*high = server->pool_first.high[kind];
	*low = (uint32_t)((uint64_t)*high * limits.low_percent / 100);
	if (!*low && *high)
		*low = 1;
}

static int
server_metrics_text(void *owner, char **textp, size_t *lenp)
{
	const struct server *server = owner;
	const struct codec_about *about = &server->shards[0].conns.about;
	uint32_t n_shards = server->common.n_shards;
	struct metrics_view view = {.shards = server->all_metrics,
	    .n_shards = n_shards,
	    .version = MLKEMD_VERSION,
	    .backend = about->backend,
	    .secret_memory = about->secret_memory,
	    .lanes = about->lanes,
	    .now_us = request_now_us(),
	    .started_unix_us = server->started_unix_us,
	    .selftest_unix_us = server->selftest_unix_us,
	    .selftest_passed = server->status != SERVER_EXIT_BROKEN,
	    .reload_unix_us = server->reload_unix_us,
	    .reload_good = server->reload_good,
	    .draining = server->draining,
	    .sandboxed = server->sandboxed};

	for (unsigned kind = 0; kind < METRICS_N_POOLS; kind++) {
		pool_marks(server, kind, &view.pool_high[kind], &view.pool_low[kind]);
		view.pool_high[kind] *= n_shards;
		view.pool_low[kind] *= n_shards;
	}
	return metrics_text(&view, textp, lenp);
}

static const char *
server_unhealthy(void *owner)
{
	const struct server *server = owner;

	for (uint32_t i = 0; i < server->common.n_shards; i++) {
		if (server->n_still[i] >= STUCK_TICKS)
			return "a shard does not turn";
	}
	return NULL;
}

/* Shards that nobody talks to let their pool be, but for the first. */
static bool
pool_is_low(const struct server *server)
{
	for (uint32_t i = 0; i < server->common.n_shards; i++) {
		const struct metrics_shard *metrics = &server->shards[i].metrics;
		const uint64_t levels[METRICS_N_POOLS] = {
		    metrics_get(&metrics->pool_hybrid),
		    metrics_get(&metrics->pool_mlkem768),
		    metrics_get(&metrics->pool_x25519)};

		if (i && !metrics_get(&metrics->connections))
			continue;
		for (unsigned kind = 0; kind < METRICS_N_POOLS; kind++) {
			uint32_t high, low;

			pool_marks(server, kind, &high, &low);
			if (levels[kind] < low)
				return true;
		}
	}
	return false;
}

static const char *
server_unready(void *owner)
{
	const struct server *server = owner;
	const char *unhealthy = server_unhealthy(owner);

	if (unhealthy)
		return unhealthy;
	if (server->status == SERVER_EXIT_BROKEN)
		return "the self-test failed";
	if (server->state != SERVER_RUNNING)
		return "stopping";
	if (server->draining)
		return "draining";
	return pool_is_low(server) ? "the pool is below low water" : NULL;
}

static const struct metrics_http_ops server_http_ops = {
    .text = server_metrics_text,
    .unhealthy = server_unhealthy,
    .unready = server_unready,
};

/* The path's owner is struct listener, as for the other sockets; evhttp gets a copy. */
static int
server_metrics_path(struct server *server)
{
	struct listener *listener = &server->metrics_listener;
	int fd, r;

	snprintf(server->metrics_path, sizeof(server->metrics_path), "%s",
	    server->config->metrics_path);
	listener->path = server->metrics_path;
	listener->mode = server->config->metrics_mode;
	r = listener_open(listener);
	if (r)
		return r;
	fd = fcntl(listener->fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : metrics_http_listen(server->http, fd);
}

/* Without a socket to listen on, nothing of this is loaded, opened or allocated. */
int
server_init_metrics(struct server *server)
{
	const struct config *config = server->config;
	const struct activation *activation = &server->activation;
	int r = 0;

	if (!config->metrics_listen && !config->metrics_path && !activation->n_metrics)
		return 0;
	r = metrics_http_new(&server->http, server->base, &server_http_ops, server);
	for (unsigned i = 0; !r && i < activation->n_metrics; i++)
		r = metrics_http_listen(server->http, activation->metrics[i]);
	/* What is passed wins: in a unit's sandbox there is no other way. */
	if (!r && config->metrics_listen && !activation->n_metrics) {
		r = metrics_http_bind(config->metrics_listen);
		if (r >= 0)
			r = metrics_http_listen(server->http, r);
	}
	if (!r && config->metrics_path)
		r = server_metrics_path(server);
	return r;
}

/*
 * Once a second. The service manager's watchdog is fed only if every shard has turned
 * since it was fed last: one that hangs has the daemon killed and started again.
 */
void
server_watch(struct server *server)
{
	bool all_turned = true;

	metrics_http_resume(server->http);
	for (uint32_t i = 0; i < server->common.n_shards; i++) {
		uint64_t turns = metrics_get(&server->shards[i].metrics.turns_total);

		if (server->fed)
			server->turned[i] = false;
		if (turns != server->last_turns[i]) {
			server->turned[i] = true;
			server->n_still[i] = 0;
		} else if (++server->n_still[i] == STUCK_TICKS) {
			log_event(LOG_ERR, "shard-stuck",
			    "shard %u has not turned for %u s", i, STUCK_TICKS);
		}
		server->last_turns[i] = turns;
		all_turned = all_turned && server->turned[i];
	}
	server->fed = all_turned || fault("watchdog-blind");
	if (server->fed && server->has_watchdog)
		notify_state("WATCHDOG=1");
}
