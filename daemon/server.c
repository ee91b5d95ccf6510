/* SPDX-License-Identifier: Apache-2.0 */
#include "server_priv.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admission.h"
#include "log.h"
#include "notify.h"

#define BUSY_PERMILLE     600u /* a shard that is busier gets no new connection */
#define PATH_CHECK_TICKS  10u
#define DESCRIPTORS_SPARE 64u

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
 * Packs, since spreading empties lanes: the first shard that is not busy gets it. If all
 * are, the least busy.
 */
static struct shard *
server_place(struct server *server)
{
	uint64_t now_us = request_now_us();
	struct shard *best = NULL;
	uint32_t best_busy = 0;

	for (uint32_t i = 0; i < server->common.n_shards; i++) {
		struct shard *shard = &server->shards[i];
		uint32_t busy = shard_busy_permille(shard, now_us);

		if (busy <= BUSY_PERMILLE)
			return shard;
		if (!best || busy < best_busy) {
			best = shard;
			best_busy = busy;
		}
	}
	return best;
}

static uint64_t
server_n_open(const struct server *server)
{
	uint64_t n = server->n_placed;

	for (uint32_t i = 0; i < server->common.n_shards; i++)
		n -= atomic_load(&server->shards[i].n_ended);
	return n;
}

static void
server_accepted(void *owner, int fd)
{
	struct server *server = owner;
	struct shard_record record = {.type = SHARD_NEW_CONN, .fd = fd};

	record.denied = !admission_allows(fd, server->config, &record.uid);
	if (record.denied) {
		metrics_add(&server->metrics.denied_total, 1);
		admission_log_denied(record.uid);
	}
	record.conn_id = ++server->last_conn_id;
	if (server_n_open(server) >= server->config->max_connections) {
		metrics_add(&server->metrics.shed_total, 1);
		log_event_limited(LOG_WARNING, "connections-full",
		    "a connection was closed: limits.max-connections is %u",
		    server->config->max_connections);
		close(fd);
		return;
	}
	if (!server_tell_conn(server, server_place(server), &record)) {
		metrics_add(&server->metrics.shed_total, 1);
		log_event_limited(LOG_WARNING, "shard-busy",
		    "a connection was closed: its shard takes none");
		close(fd);
		return;
	}
	server->n_placed++;
}

static void
server_on_stop(evutil_socket_t fd, short what, void *arg)
{
	server_stop(arg);
}

static void
server_on_hup(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	char error[512];

	if (server->reload_serial)
		server->reload_again = true;
	else
		(void)server_reload(server, error, sizeof(error));
}

static void
server_on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	eventfd_t count;

	(void)!eventfd_read(fd, &count);
	server_look(server);
}

static void
server_on_drained(evutil_socket_t fd, short what, void *arg)
{
	server_quit(arg);
}

/* A cleaner may have removed the socket, or somebody put another in its place. */
static void
server_check_path(struct server *server, struct listener *listener)
{
	if (listener_holds_path(listener))
		return;
	log_event(LOG_WARNING, "socket-lost", "%s is gone or another's; binding again",
	    listener->path);
	listener_close(listener);
	if (listener_open(listener) || listener_start(listener, server->base)) {
		server->status = SERVER_EXIT_FAILED;
		server_stop(server);
	}
}

static void
server_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;

	if (++server->n_ticks % PATH_CHECK_TICKS || server->state != SERVER_RUNNING)
		return;
	server_check_path(server, &server->listener);
	if (server->state == SERVER_RUNNING)
		server_check_path(server, &server->control.listener);
}

/* Connections need descriptors; what the hard limit allows is taken. */
static void
server_raise_nofile(const struct config *config)
{
	struct rlimit limit;
	rlim_t wanted = config->max_connections + DESCRIPTORS_SPARE;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int
server_init_kem(struct server *server)
{
	const struct config *config = server->config;
	const char *step = NULL;
	struct kem_scratch *scratch;
	int r = kem_open(&server->kem, config->backend);

	if (r == KEM_FAIL_BACKEND) {
		log_event(LOG_ERR, "config-invalid",
		    "%s: kem.backend: %s: unknown, or not for this CPU",
		    config->backend ? config_origin(config, "kem.backend")
				    : "MLKEMD_BACKEND",
		    config->backend ? config->backend : "its value");
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
	if (!r)
		return 0;
	log_event(LOG_CRIT, "broken", "%s%s%s", kem_strerror(r), step ? ": " : "",
	    step ? step : "");
	return SERVER_EXIT_BROKEN;
}

static void
server_log_memory(const struct server *server)
{
	const struct secmem *secmem = &server->shards[0].secmem;
	size_t kib = server->common.n_shards * secmem->size / 1024;

	if (secmem->mode != SECMEM_MODE_OFF)
		log_event(LOG_INFO, "secret-memory", "%s, %zu KiB%s%s",
		    secmem_mode_name(secmem->mode), kib,
		    secmem->why ? "; memfd_secret: " : "",
		    secmem->why ? secmem->why : "");
	else if (server->config->secret_memory == SECMEM_PREFER)
		log_event(LOG_WARNING, "secret-memory",
		    "%zu KiB are not locked and may be swapped: raise LimitMEMLOCK "
		    "(%s)",
		    kib, secmem->why ? secmem->why : "mlock failed");
	else
		log_event(LOG_INFO, "secret-memory", "off, as configured");
}

static int
server_init_shards(struct server *server)
{
	uint32_t n = server_count_shards(server->config);
	struct rlimit limit = {0};

	server->shards = aligned_alloc(64, n * sizeof(*server->shards));
	server->owed = calloc(n, sizeof(*server->owed));
	server->all_metrics = calloc(n + 1, sizeof(struct metrics_shard *));
	if (!server->shards || !server->owed || !server->all_metrics) {
		log_event(LOG_ERR, "start-failed", "out of memory");
		return SERVER_EXIT_FAILED;
	}
	server->common.n_shards = n;
	for (uint32_t i = 0; i < n; i++) {
		int r =
		    shard_init(&server->shards[i], i, server->config, &server->common);

		server->n_inited = i + 1;
		server->all_metrics[i] = &server->shards[i].metrics;
		if (!r)
			continue;
		getrlimit(RLIMIT_MEMLOCK, &limit);
		log_event(LOG_ERR, "start-failed",
		    "%u of %u shards: %s; secret memory needs %zu KiB, "
		    "RLIMIT_MEMLOCK is %llu KiB",
		    i, n, strerror(-r), n * shard_arena_bytes(server->config, n) / 1024,
		    (unsigned long long)limit.rlim_cur / 1024);
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

	data->path = server->config->path;
	data->mode = server->config->mode;
	data->group = server->config->group;
	data->accepted = server_accepted;
	data->owner = server;
	control->path = server->config->control_path;
	control->mode = 0600;
	if (listener_open(data) || listener_open(control))
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

static int
server_start(struct server *server)
{
	int r;

	signal(SIGPIPE, SIG_IGN);
	server_raise_nofile(server->config);
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
	r = server_init_shards(server);
	if (r)
		return r;
	if (server_init_control(server) || server_start_threads(server) ||
	    listener_start(&server->listener, server->base)) {
		log_event(LOG_ERR, "start-failed", "out of memory or threads");
		return SERVER_EXIT_FAILED;
	}
	log_event(LOG_INFO, "ready", "%s (control: %s), %u shard%s, backend %s",
	    server->config->path, server->config->control_path, server->common.n_shards,
	    server->common.n_shards == 1 ? "" : "s", kem_backend_name(server->kem));
	notify_state("READY=1\nSTATUS=Exchanging keys");
	return 0;
}

static void
server_loop(struct server *server)
{
	while (server->state != SERVER_ENDED) {
		bool has_work = control_has_work(&server->control);

		conn_set_arm(&server->control.conns);
		if (event_base_loop(server->base,
			EVLOOP_ONCE | (has_work ? EVLOOP_NONBLOCK : 0)) < 0)
			break;
		control_turn(&server->control);
	}
}

/* Shards that were not told to quit, or did not yet, can't be waited for: see below. */
static bool
server_shards_ended(const struct server *server)
{
	for (uint32_t i = 0; i < server->n_inited; i++) {
		if (server->shards[i].running && !atomic_load(&server->shards[i].ended))
			return false;
	}
	return true;
}

static void
server_fini(struct server *server)
{
	struct event *events[] = {&server->term_event, &server->int_event,
	    &server->hup_event, &server->wake_event, &server->tick_event,
	    &server->retry_event, &server->drain_event};

	listener_close(&server->listener);
	control_fini(&server->control);
	listener_close(&server->control.listener);
	/* Told to stop twice: the kernel takes back what running shards still use. */
	if (!server_shards_ended(server))
		_exit(server->status);
	for (uint32_t i = 0; i < server->n_inited; i++)
		shard_fini(&server->shards[i]);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (event_initialized(events[i]))
			event_del(events[i]);
	}
	if (server->base)
		event_base_free(server->base);
	if (server->common.wake_fd >= 0)
		close(server->common.wake_fd);
	free(server->shards);
	free(server->owed);
	free(server->all_metrics);
	kem_free(server->kem);
	config_free(server->retired);
	config_free(server->config);
}

int
server_run(struct config *config, const struct config_sources *sources)
{
	static struct server server; /* large, and one a process */

	server = (struct server){.config = config, .sources = sources};
	server.common.wake_fd = -1;
	listener_reset(&server.listener);
	listener_reset(&server.control.listener);
	log_set_level(config->log_level);
	server.status = server_start(&server);
	if (!server.status)
		server_loop(&server);
	if (!server.status)
		log_event(LOG_INFO, "stopped", "every answer was sent");
	server_fini(&server);
	return server.status;
}
