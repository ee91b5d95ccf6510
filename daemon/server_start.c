/* SPDX-License-Identifier: Apache-2.0 */
/* From nothing to READY. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "log.h"
#include "notify.h"
#include "sandbox.h"
#include "server_priv.h"
#include "shard_priv.h"
#include "trim.h"

/* The control socket's connections, scrapes, and what else is open. */
#define DESCRIPTORS_SPARE 192u

static uint32_t
server_count_shards(const struct config *config)
{
	cpu_set_t cpus;
	int n;

	if (config->shards)
		return config->shards;
	n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);
	return n >= 16 ? (uint32_t)n / 8 : 1;
}

/*
 * Connections need descriptors; what the hard limit allows is taken. Where that is too
 * little for limits.max-connections, fewer are let in: whoever gets none is told at once,
 * and those for the control socket, for scrapes and for what the daemon itself opens are
 * there when it is busiest.
 */
static void
server_raise_nofile(struct server *server)
{
	const struct config *config = server->config;
	struct rlimit limit;
	rlim_t wanted = config->max_connections + DESCRIPTORS_SPARE, spare;

	server->descriptors = UINT32_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	spare = limit.rlim_cur / 2;
	if (spare > DESCRIPTORS_SPARE)
		spare = DESCRIPTORS_SPARE;
	if (limit.rlim_cur - spare < UINT32_MAX)
		server->descriptors = (uint32_t)(limit.rlim_cur - spare);
	if (server->descriptors < config->max_connections)
		log_event(LOG_WARNING, "descriptors",
		    "limits.max-connections is %u, LimitNOFILE= leaves room for %u",
		    config->max_connections, server->descriptors);
}

void
server_explain_backend(const struct config *config, char *text, size_t size)
{
	const char *name = config->backend, *origin = "MLKEMD_BACKEND", *known;
	size_t used;

	if (name)
		origin = config_origin(config, "kem.backend");
	else
		name = getenv("MLKEMD_BACKEND");
	used = (size_t)snprintf(text, size,
	    "%.200s: kem.backend: %.40s: unknown, or not for this CPU; there are auto",
	    origin, name ? name : "");
	for (unsigned i = 0; (known = kem_backend_known(i)) && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, ", %s", known);
}

static int
server_init_kem(struct server *server)
{
	const struct config *config = server->config;
	const char *step = NULL;
	struct kem_scratch *scratch;
	char text[512];
	int r = kem_open(&server->kem, config->backend);

	if (r == KEM_FAIL_BACKEND) {
		server_explain_backend(config, text, sizeof(text));
		log_event(LOG_ERR, "config-invalid", "%s", text);
		return SERVER_EXIT_CONFIG;
	}
	scratch = r ? NULL : aligned_alloc(64, sizeof(*scratch));
	if (!r && !scratch) {
		log_event(LOG_ERR, "start-failed", "out of memory");
		return SERVER_EXIT_FAILED;
	}
	if (!r)
		r = kem_selftest(server->kem, scratch, &step);
	free(scratch);
	server->selftest_unix_us = server_unix_us();
	if (!r)
		return 0;
	log_event(LOG_CRIT, "broken", "%s%s%s", kem_strerror(r), step ? ": " : "",
	    step ? step : "");
	return SERVER_EXIT_BROKEN;
}

static unsigned long long
server_memlock_kib(void)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	return (unsigned long long)limit.rlim_cur / 1024;
}

static void
server_log_memory(const struct server *server)
{
	const struct secmem *secmem = &server->shards[0].secmem;
	size_t kib = server->common.n_shards * secmem->size / 1024;

	if (secmem->mode != SECMEM_MODE_OFF)
		log_event(LOG_INFO, "secret-memory", "%s, %zu KiB%s%s",
		    secmem_mode_name(secmem->mode), kib, secmem->why ? "; " : "",
		    secmem->why ? secmem->why : "");
	else if (server->config->secret_memory == SECMEM_PREFER)
		log_event(LOG_WARNING, "secret-memory",
		    "%zu KiB are not locked and may be swapped; RLIMIT_MEMLOCK is %llu "
		    "KiB: raise LimitMEMLOCK=",
		    kib, server_memlock_kib());
	else
		log_event(LOG_INFO, "secret-memory", "off, as configured");
}

static int
server_init_shards(struct server *server)
{
	uint32_t n = server_count_shards(server->config);

	server->shards = aligned_alloc(64, n * sizeof(*server->shards));
	server->owed = calloc(n, sizeof(*server->owed));
	server->all_metrics = calloc(n + 1, sizeof(struct metrics_shard *));
	if (!server->shards || !server->owed || !server->all_metrics) {
		log_event(LOG_ERR, "start-failed", "out of memory");
		return SERVER_EXIT_FAILED;
	}
	server->common.n_shards = n;
	server->pool_first = shard_pool_limits(server->config, n);
	for (uint32_t i = 0; i < n; i++) {
		int r =
		    shard_init(&server->shards[i], i, server->config, &server->common);

		server->n_inited = i + 1;
		server->all_metrics[i] = &server->shards[i].metrics;
		if (!r)
			continue;
		log_event(LOG_ERR, "start-failed",
		    "%u of %u shards: %s; secret memory needs %zu KiB, "
		    "RLIMIT_MEMLOCK is %llu KiB",
		    i, n, strerror(-r), n * shard_arena_bytes(server->config, n) / 1024,
		    server_memlock_kib());
		return SERVER_EXIT_FAILED;
	}
	server->all_metrics[n] = &server->metrics;
	server_log_memory(server);
	return 0;
}

static int
server_init_events(struct server *server)
{
	struct event_base *base;
	struct event_config *wish = event_config_new();
	struct timeval second = {.tv_sec = 1};

	if (!wish)
		return -ENOMEM;
	event_config_set_flag(
	    wish, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
	base = server->base = event_base_new_with_config(wish);
	event_config_free(wish);
	server->common.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!base || server->common.wake_fd < 0)
		return -ENOMEM;
	if (evsignal_assign(
		&server->term_event, base, SIGTERM, server_on_stop, server) ||
	    evsignal_assign(&server->int_event, base, SIGINT, server_on_stop, server) ||
	    evsignal_assign(&server->hup_event, base, SIGHUP, server_on_hup, server) ||
	    event_assign(&server->wake_event, base, server->common.wake_fd,
		EV_READ | EV_PERSIST, server_on_wake, server) ||
	    event_assign(
		&server->tick_event, base, -1, EV_PERSIST, server_on_tick, server) ||
	    evtimer_assign(&server->retry_event, base, server_retry, server) ||
	    evtimer_assign(&server->drain_event, base, server_on_drained, server))
		return -ENOMEM;
	if (event_add(&server->term_event, NULL) ||
	    event_add(&server->int_event, NULL) ||
	    event_add(&server->hup_event, NULL) ||
	    event_add(&server->wake_event, NULL) ||
	    event_add(&server->tick_event, &second))
		return -ENOMEM;
	return 0;
}

static int
server_open_sockets(struct server *server)
{
	struct listener *data = &server->listener, *control = &server->control.listener;

	const struct activation *activation = &server->activation;

	snprintf(server->path, sizeof(server->path), "%s", server->config->path);
	snprintf(server->control_path, sizeof(server->control_path), "%s",
	    server->config->control_path);
	data->path = server->path;
	data->mode = server->config->mode;
	data->group = server->config->group;
	data->accepted = server_accepted;
	data->owner = server;
	control->path = server->control_path;
	control->mode = 0600;
	if (activation->data >= 0)
		listener_adopt(data, activation->data, server->path);
	else if (listener_open(data))
		return SERVER_EXIT_FAILED;
	if (activation->control >= 0)
		listener_adopt(control, activation->control, server->control_path);
	else if (listener_open(control))
		return SERVER_EXIT_FAILED;
	return 0;
}

static int
server_init_control(struct server *server)
{
	struct codec_about about = server->shards[0].conns.about;

	about.metrics = server->all_metrics;
	about.n_metrics = server->common.n_shards + 1;
	return control_init(&server->control, server->base, server->config, &about,
	    &server_control_ops, server);
}

/* Signals are main's: a shard that took one would leave libevent's pipe in main alone. */
static int
server_start_threads(struct server *server)
{
	sigset_t all, before;
	int r = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (uint32_t i = 0; !r && i < server->common.n_shards; i++)
		r = shard_start(&server->shards[i]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

/* The last step, since everything before may open, make and start more. */
static int
server_enter_sandbox(struct server *server)
{
	enum sandbox_policy policy = server->config->sandbox;
	int r = policy == SANDBOX_OFF ? 0 : sandbox_enter();

	if (r >= 0) {
		server->sandboxed = policy != SANDBOX_OFF && !r;
		sandbox_try();
		return 0;
	}
	log_event(policy == SANDBOX_REQUIRE ? LOG_ERR : LOG_WARNING, "sandbox",
	    "seccomp: %s%s", strerror(-r),
	    policy == SANDBOX_REQUIRE ? "; daemon.sandbox requires it" : "");
	return policy == SANDBOX_REQUIRE ? SERVER_EXIT_FAILED : 0;
}

int
server_start(struct server *server)
{
	int r;

	signal(SIGPIPE, SIG_IGN);
	if (activation_take(&server->activation))
		return SERVER_EXIT_FAILED;
	server_raise_nofile(server);
	r = server_init_kem(server);
	if (!r)
		r = server_open_sockets(server);
	if (r)
		return r;
	if (server_init_events(server)) {
		log_event(LOG_ERR, "start-failed", "no event base");
		return SERVER_EXIT_FAILED;
	}
	server->common.kem = server->kem;
	server->common.started_us = request_now_us();
	if (server->config->busy_poll)
		server->common.wake_up_us = busypoll_measure();
	log_event(LOG_DEBUG, "busy-poll", "looks for %u us before it sleeps",
	    server->common.wake_up_us);
	r = server_init_shards(server);
	if (r)
		return r;
	if (server_init_control(server) || server_init_metrics(server) ||
	    server_start_threads(server) ||
	    listener_start(&server->listener, server->base)) {
		log_event(LOG_ERR, "start-failed",
		    "no metrics socket, or out of memory or threads");
		return SERVER_EXIT_FAILED;
	}
	r = server_enter_sandbox(server);
	if (r)
		return r;
	server->has_watchdog = notify_has_watchdog();
	trim_after_start();
	log_event(LOG_INFO, "ready", "%s (control: %s), %u shard%s, backend %s",
	    server->path, server->control_path, server->common.n_shards,
	    server->common.n_shards == 1 ? "" : "s", kem_backend_name(server->kem));
	notify_state("READY=1\nSTATUS=Exchanging keys");
	return 0;
}
