/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon is told while it runs: reload, drain, resume, self-test, stop. */
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "notify.h"
#include "server_priv.h"

#define QUIT_SECONDS 10u /* for the last turns; one that hangs makes none */

enum request_status
server_reload(struct server *server, char *error, size_t size)
{
	struct config *config = NULL;
	char changed[256];
	int r;

	if (server->reload_serial || server->state != SERVER_RUNNING) {
		snprintf(error, size, "%s",
		    server->reload_serial ? "a reload is under way"
					  : "the daemon is stopping");
		return STATUS_RESOURCE_EXHAUSTED;
	}
	r = config_load(&config, server->sources, server->config, error, size);
	if (!r)
		r = config_keep_fixed(config, server->config, changed, sizeof(changed));
	if (r) {
		if (r != CONFIG_E_INVALID)
			snprintf(error, size, "%s", strerror(-r));
		config_free(config);
		server->reload_good = false;
		log_event(LOG_ERR, "reload-refused",
		    "%s; the old configuration stays in force", error);
		return STATUS_INVALID_REQUEST;
	}
	notify_reloading();
	log_set_level(config->log_level);
	if (*changed)
		log_event(LOG_WARNING, "reload-partly",
		    "%s: a change takes effect at a restart", changed);
	server->retired = server->config;
	server->config = config;
	control_set_config(&server->control, config);
	server_tell_all(server, SHARD_RELOAD, config, &server->reload_serial);
	return STATUS_OK;
}

void
server_reload_finish(struct server *server)
{
	char error[512];

	server->retired = config_free(server->retired);
	server->reload_serial = 0;
	server->reload_good = true;
	server->reload_unix_us = server_unix_us();
	log_event(LOG_INFO, "reloaded", "the new configuration is in force");
	notify_state("READY=1");
	if (server->reload_again) {
		server->reload_again = false;
		(void)server_reload(server, error, sizeof(error));
	}
}

void
server_stop(struct server *server)
{
	struct timeval tv = {.tv_sec = server->config->drain_timeout_ms / 1000,
	    .tv_usec = server->config->drain_timeout_ms % 1000 * 1000};

	if (server->state != SERVER_RUNNING) {
		log_event(LOG_NOTICE, "stopped", "at once: told twice");
		server->at_once = true;
		server->state = SERVER_ENDED;
		return;
	}
	log_event(LOG_INFO, "stop", "draining for at most %u ms",
	    server->config->drain_timeout_ms);
	notify_state("STOPPING=1");
	server->state = SERVER_STOPPING;
	server->draining = true;
	listener_close(&server->listener);
	server_tell_all(server, SHARD_DRAIN, NULL, NULL);
	if (evtimer_add(&server->drain_event, &tv))
		server_quit(server);
}

void
server_quit(struct server *server)
{
	struct timeval tv = {.tv_sec = QUIT_SECONDS};

	if (server->state != SERVER_STOPPING)
		return;
	server->state = SERVER_QUITTING;
	server_tell_all(server, SHARD_QUIT, NULL, NULL);
	if (evtimer_add(&server->drain_event, &tv))
		server_give_up(server);
}

void
server_give_up(struct server *server)
{
	for (uint32_t i = 0; i < server->common.n_shards; i++) {
		if (!atomic_load(&server->shards[i].ended))
			log_event(LOG_ERR, "shard-stuck",
			    "shard %u did not end in %u s; the daemon ends without it",
			    i, QUIT_SECONDS);
	}
	if (!server->status)
		server->status = SERVER_EXIT_FAILED;
	server->state = SERVER_ENDED;
}

/* Fate four of four: what is broken must not go on. */
static void
server_broken(struct server *server, const struct shard *shard, int fail)
{
	const char *step = atomic_load(&shard->selftest_step);

	log_event(LOG_CRIT, "broken", "shard %u: %s%s%s; the daemon stops",
	    shard->index,
	    fail >= KEM_FAIL_SELFTEST ? kem_strerror(fail) : strerror(-fail),
	    step ? ": " : "", step ? step : "");
	notify_state("STOPPING=1");
	server->status = SERVER_EXIT_BROKEN;
	if (server->state < SERVER_STOPPING)
		listener_close(&server->listener);
	server->state = SERVER_STOPPING;
	server_quit(server);
}

void
server_look(struct server *server)
{
	bool drained = true, ended = true;

	for (uint32_t i = 0; i < server->common.n_shards; i++) {
		struct shard *shard = &server->shards[i];
		int fail = atomic_load(&shard->failed);

		drained = drained && atomic_load(&shard->drained);
		ended = ended && atomic_load(&shard->ended);
		if (fail && server->state < SERVER_QUITTING)
			server_broken(server, shard, fail);
	}
	if (server->reload_serial && server_all_did(server, server->reload_serial))
		server_reload_finish(server);
	if (server->state == SERVER_STOPPING && drained)
		server_quit(server);
	if (server->state == SERVER_QUITTING && ended)
		server->state = SERVER_ENDED;
}

static enum request_status
server_op_begin(
    void *owner, enum request_op op, uint64_t *serialp, struct control_result *result)
{
	struct server *server = owner;

	result->status = STATUS_OK;
	switch (op) {
	case REQUEST_RELOAD:
		result->status =
		    server_reload(server, result->message, sizeof(result->message));
		*serialp = server->reload_serial;
		break;
	case REQUEST_DRAIN:
		server->draining = true;
		log_event(LOG_INFO, "drain", "new operations are refused");
		server_tell_all(server, SHARD_DRAIN, NULL, serialp);
		break;
	case REQUEST_RESUME:
		if (server->state != SERVER_RUNNING) {
			result->status = STATUS_DRAINING;
			snprintf(result->message, sizeof(result->message),
			    "the daemon is stopping");
			break;
		}
		server->draining = false;
		log_event(LOG_INFO, "resume", "operations are taken again");
		server_tell_all(server, SHARD_RESUME, NULL, serialp);
		break;
	default:
		server_tell_all(server, SHARD_SELFTEST, NULL, serialp);
		break;
	}
	return result->status;
}

static bool
server_op_finish(
    void *owner, enum request_op op, uint64_t serial, struct control_result *result)
{
	struct server *server = owner;

	if (!server_all_did(server, serial))
		return false;
	if (op != REQUEST_SELFTEST)
		return true;
	result->selftest_passed = true;
	server->selftest_unix_us = server_unix_us();
	for (uint32_t i = 0; i < server->common.n_shards; i++) {
		const char *step = atomic_load(&server->shards[i].selftest_step);

		if (step) {
			result->selftest_passed = false;
			result->selftest_step = step;
		}
	}
	return true;
}

static uint32_t
sum_of(const struct server *server, size_t offset)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < server->common.n_shards; i++) {
		const char *metrics = (const char *)&server->shards[i].metrics;

		sum += atomic_load_explicit(
		    (const _Atomic uint64_t *)(metrics + offset), memory_order_relaxed);
	}
	return (uint32_t)sum;
}

#define SUM_OF(server, field) sum_of(server, offsetof(struct metrics_shard, field))

static void
server_describe(void *owner, struct codec_about *about)
{
	struct server *server = owner;
	uint64_t now_us = request_now_us();

	about->uptime_s = (now_us - server->common.started_us) / 1000000;
	about->draining = server->draining;
	about->pool_hybrid = SUM_OF(server, pool_hybrid);
	about->pool_mlkem768 = SUM_OF(server, pool_mlkem768);
	about->pool_x25519 = SUM_OF(server, pool_x25519);
}

const struct control_ops server_control_ops = {
    .begin = server_op_begin,
    .finish = server_op_finish,
    .describe = server_describe,
};
