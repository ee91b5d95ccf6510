/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/client.h"

uint64_t
clock_monotonic(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

uint64_t
clock_boottime(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

uint64_t
client_now(const struct mlkemclient *client)
{
	return client->clock(client->clock_arg);
}

uint64_t
client_age_now(const struct mlkemclient *client)
{
	return client->age_clock(client->clock_arg);
}

void
cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool
client_wait(struct mlkemclient *client, pthread_cond_t *cond, uint64_t deadline_us)
{
	uint64_t now = client_now(client), until;
	struct timespec ts;

	if (now >= deadline_us)
		return false;
	until = clock_monotonic(NULL) + (deadline_us - now);
	ts.tv_sec = (time_t)(until / 1000000u);
	ts.tv_nsec = (long)(until % 1000000u) * 1000;
	return pthread_cond_timedwait(cond, &client->live->lock, &ts) != ETIMEDOUT;
}

/*
 * Older callers know a shorter struct: what they did not give keeps its zero. A longer
 * one, from a later header, may only carry zeros beyond what is known here.
 */
static int
options_take(struct mlkemclient_options *known, const struct mlkemclient_options *opts)
{
	const uint8_t *bytes = (const uint8_t *)opts;
	size_t size;

	memset(known, 0, sizeof(*known));
	if (opts == NULL)
		return 0;
	size = opts->size;
	if (size < sizeof(opts->size))
		return MLKEMCLIENT_E_INVALID;
	for (size_t i = sizeof(*known); i < size; i++)
		if (bytes[i] != 0)
			return MLKEMCLIENT_E_INVALID;
	memcpy(known, opts, size < sizeof(*known) ? size : sizeof(*known));
	return 0;
}

static int
options_check(struct mlkemclient_options *known)
{
	if (known->socket_path == NULL)
		known->socket_path = MLKEMCLIENT_DEFAULT_SOCKET;
	if (known->client_name == NULL)
		known->client_name = program_invocation_short_name;
	if (known->deadline_us == 0)
		known->deadline_us = CLIENT_DEFAULT_DEADLINE;
	if (known->daemon_deadline_us == 0)
		known->daemon_deadline_us = known->deadline_us / 2;
	/* A path cut short would be another path. */
	if (known->socket_path[0] == '\0' ||
	    strlen(known->socket_path) > CLIENT_MAX_PATH ||
	    known->leases > MLKEMCLIENT_MAX_LEASES)
		return MLKEMCLIENT_E_INVALID;
	switch (known->route) {
	case MLKEMCLIENT_ROUTE_AUTO:
	case MLKEMCLIENT_ROUTE_DAEMON:
	case MLKEMCLIENT_ROUTE_LOCAL:
		return 0;
	}
	return MLKEMCLIENT_E_INVALID;
}

int
mlkemclient_new(struct mlkemclient **clientp, const struct mlkemclient_options *opts)
{
	struct mlkemclient_options known;
	struct mlkemclient *client;
	struct room *room;

	if (clientp == NULL)
		return MLKEMCLIENT_E_INVALID;
	*clientp = NULL;
	if (options_take(&known, opts) != 0 || options_check(&known) != 0)
		return MLKEMCLIENT_E_INVALID;

	client = calloc(1, sizeof(*client));
	if (client == NULL)
		return MLKEMCLIENT_E_INTERNAL;
	room = room_new(&client->rooms, sizeof(*client->live), ROOM_SECRET);
	if (room == NULL) {
		free(client);
		return MLKEMCLIENT_E_INTERNAL;
	}
	client->live = (struct live *)(void *)room->base;
	memcpy(client->path, known.socket_path, strlen(known.socket_path) + 1);
	snprintf(client->name, sizeof(client->name), "%s", known.client_name);
	client->route = known.route;
	client->require = known.require;
	client->deadline_us = known.deadline_us;
	client->daemon_deadline_us = known.daemon_deadline_us;
	client->leases = known.leases;
	client->server_uid_set = known.server_uid_set;
	client->server_uid = known.server_uid;
	client->clock = clock_monotonic;
	client->age_clock = clock_boottime;
	server_user_find(client);
	report_clear(client); /* of another that lay here */
	*clientp = client;
	return 0;
}

void
mlkemclient_free(struct mlkemclient *client)
{
	if (client == NULL)
		return;
	client_lock(client);
	link_close(client, LINK_E_LOST);
	client_unlock(client);
	kdf_unref(client->kdf);
	kem_free(client->kem);
	room_free_list(&client->rooms);
	report_clear(client);
	kem_wipe(client, sizeof(*client));
	free(client);
}

/*
 * In a child the connection is the parent's: two processes on one stream would read
 * each other's secrets. Close our copy (no shutdown, it would reach the parent) and
 * start anew; keys of the parent are gone here, their memory is zero already. A kem in
 * which another thread was at work may have a lock held for ever: leave it, and open
 * another when it is needed.
 */
static void
let_go_of_parent(struct mlkemclient *client)
{
	struct channel *channel = client->channel;
	struct room **list = &client->rooms;

	client->channel = NULL;
	if (channel != NULL) {
		close(channel->fd);
		free(channel);
	}
	if (client->n_in_kem != 0)
		client->kem = NULL;
	client->n_in_kem = 0;
	while ((*list)->next != NULL) {
		struct room *room = *list;

		*list = room->next;
		room_drop(room);
		free(room);
	}
}

static void
enter_process(struct mlkemclient *client)
{
	cpu_set_t cpus;

	_Static_assert(
	    sizeof(struct live) < 32 * 1024, "live is mapped for each handle");
	client->era++;
	let_go_of_parent(client);
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		client->live->n_cpus = (unsigned)CPU_COUNT(&cpus);
	cond_init(&client->live->link.opened);
	cond_init(&client->live->local.given_back);
	client->live->ours = true;
}

void
client_lock(struct mlkemclient *client)
{
	pthread_mutex_lock(&client->live->lock);
	if (!client->live->ours)
		enter_process(client);
}

void
client_unlock(struct mlkemclient *client)
{
	pthread_mutex_unlock(&client->live->lock);
}

void
mlkemclient_get_counts(
    const struct mlkemclient *client, struct mlkemclient_counts *counts)
{
	/* To count is to look, but the lock has to be taken for it. */
	struct mlkemclient *handle = (struct mlkemclient *)(uintptr_t)client;

	if (counts == NULL)
		return;
	memset(counts, 0, sizeof(*counts));
	if (client == NULL)
		return;
	client_lock(handle);
	*counts = handle->live->counts;
	client_unlock(handle);
}

void
mlkemclient_wipe(void *p, size_t len)
{
	kem_wipe(p, len);
}
