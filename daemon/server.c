/* SPDX-License-Identifier: Apache-2.0 */
#include "server_priv.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "admission.h"
#include "kem/fault.h"
#include "log.h"
#include "notify.h"

#define BUSY_PERMILLE    600u /* a shard that is busier gets no new connection */
#define SILENT_TICKS     2u   /* without a turn: nor does one that may hang */
#define PATH_CHECK_TICKS 10u
#define REFUSED_PART     8u /* of max-connections: for those who will hear "no" */

/*
 * One that hangs looks idle to who asks how busy it was: nobody is sent there to wait for
 * the watchdog. An idle one turns once a second, and main ticks as often.
 */
static bool
server_is_silent(const struct server *server, uint32_t index)
{
	return server->n_still[index] >= SILENT_TICKS && !fault("place-blind");
}

/*
 * Packs, since spreading empties lanes: the first shard that is not busy gets it. If all
 * are, the least busy; if all are silent, the first.
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

		if (server_is_silent(server, i))
			continue;
		if (busy <= BUSY_PERMILLE)
			return shard;
		if (!best || busy < best_busy) {
			best = shard;
			best_busy = busy;
		}
	}
	return best ? best : &server->shards[0];
}

static uint64_t
server_n_open(const struct server *server)
{
	uint64_t n = server->n_placed;

	for (uint32_t i = 0; i < server->common.n_shards; i++)
		n -= atomic_load(&server->shards[i].n_ended);
	return n;
}

static uint32_t
server_max_connections(const struct server *server)
{
	uint32_t most = server->config->max_connections;

	if (fault("descriptors-to-the-last"))
		return most;
	return most < server->descriptors ? most : server->descriptors;
}

/* Those who wait to hear that they are refused take no place of those who are not. */
static bool
server_is_full(const struct server *server, bool refused)
{
	uint32_t most = server_max_connections(server);
	uint64_t n_refused = server->n_refused_placed;

	if (server_n_open(server) >= most)
		return true;
	for (uint32_t i = 0; i < server->common.n_shards; i++)
		n_refused -= atomic_load(&server->shards[i].n_refused_ended);
	return refused && n_refused > most / REFUSED_PART;
}

/* Who it is, whether it may come in, and whether there is a seat for it. */
static void
server_judge(struct server *server, int fd, struct conn_peer *peer)
{
	const struct config *config = server->config;
	uint32_t most = server_max_connections(server);

	peer->id = ++server->last_conn_id;
	if (!admission_allows(fd, config, &peer->uid)) {
		peer->refusal = STATUS_DENIED;
		metrics_add(&server->metrics.denied_total, 1);
		admission_log_denied(peer->uid);
		return;
	}
	peer->seat = user_seat_take(
	    &server->seats, peer->uid, user_share(most, config->user_share));
	if (!peer->seat) {
		peer->refusal = STATUS_RESOURCE_EXHAUSTED;
		log_event_limited(LOG_WARNING, "user-full",
		    "uid %u has as many connections as one user may have: "
		    "limits.user-share is %u%% of limits.max-connections, %u",
		    peer->uid, config->user_share, most);
	}
}

static void
server_turn_away(struct server *server, const struct shard_record *record)
{
	metrics_add(&server->metrics.shed_total, 1);
	user_seat_give(record->peer.seat);
	close(record->fd);
}

void
server_accepted(void *owner, int fd)
{
	struct server *server = owner;
	struct shard_record record = {.type = SHARD_NEW_CONN, .fd = fd};
	bool refused;

	server_judge(server, fd, &record.peer);
	refused = record.peer.refusal != STATUS_OK;
	if (server_is_full(server, refused)) {
		log_event_limited(LOG_WARNING, "connections-full",
		    "a connection%s was closed: limits.max-connections is %u",
		    refused ? " that may not come in" : "",
		    server_max_connections(server));
		server_turn_away(server, &record);
		return;
	}
	if (!server_tell_conn(server, server_place(server), &record)) {
		log_event_limited(LOG_WARNING, "shard-busy",
		    "a connection was closed: its shard takes none");
		server_turn_away(server, &record);
		return;
	}
	server->n_placed++;
	server->n_refused_placed += refused;
}

void
server_on_stop(evutil_socket_t fd, short what, void *arg)
{
	server_stop(arg);
}

void
server_on_hup(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	char error[512];

	if (server->reload_serial)
		server->reload_again = true;
	else
		(void)server_reload(server, error, sizeof(error));
}

void
server_on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	eventfd_t count;

	(void)!eventfd_read(fd, &count);
	server_look(server);
}

/* The time for draining is over; then that of the shards' last turns. */
void
server_on_drained(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;

	if (server->state == SERVER_QUITTING)
		server_give_up(server);
	else
		server_quit(server);
}

/* A cleaner may have removed the socket, or somebody put another in its place. */
static void
server_check_path(struct server *server, struct listener *listener)
{
	if (listener_holds_path(listener))
		return;
	if (listener->passed) {
		log_event_limited(LOG_WARNING, "socket-lost",
		    "%s is gone or another's; it is the service manager's: restart its "
		    ".socket unit",
		    listener->path);
		return;
	}
	log_event(LOG_WARNING, "socket-lost", "%s is gone or another's; binding again",
	    listener->path);
	listener_close(listener);
	if (listener_open(listener) || listener_start(listener, server->base)) {
		server->status = SERVER_EXIT_FAILED;
		server_stop(server);
	}
}

void
server_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;

	server_watch(server);
	if (++server->n_ticks % PATH_CHECK_TICKS || server->state != SERVER_RUNNING)
		return;
	server_check_path(server, &server->listener);
	if (server->state == SERVER_RUNNING)
		server_check_path(server, &server->control.listener);
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
	server->http = metrics_http_free(server->http);
	listener_close(&server->metrics_listener);
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
	user_seats_free(server->seats);
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
	listener_reset(&server.metrics_listener);
	server.started_unix_us = server.reload_unix_us = server_unix_us();
	server.reload_good = true;
	log_set_level(config->log_level);
	server.status = server_start(&server);
	if (!server.status)
		server_loop(&server);
	if (!server.status && !server.at_once)
		log_event(LOG_INFO, "stopped", "every answer was sent");
	server_fini(&server);
	return server.status;
}
