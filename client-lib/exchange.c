/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client-lib/client.h"

static int
channel_new(struct mlkemclient *client)
{
	struct channel *channel = calloc(1, sizeof(*channel));

	if (channel == NULL)
		return client_fail(client, MLKEMCLIENT_E_INTERNAL, "no memory");
	channel->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (channel->fd < 0) {
		free(channel);
		return client_fail(
		    client, MLKEMCLIENT_E_INTERNAL, "socket: %s", strerror(errno));
	}
	client->channel = channel;
	return 0;
}

/* Connects and says Hello. A daemon that does not want us has said so by then. */
static int
open_link(struct mlkemclient *client, uint64_t deadline_us)
{
	struct link *link = &client->live->link;
	struct call hello = {.op = CALL_HELLO};
	int err = channel_new(client);

	if (err != 0)
		return err;
	link->generation++;
	err = transport_connect(client, deadline_us, client->channel->fd);
	if (err != 0) {
		link_close(client, LINK_E_LOST);
		return err;
	}
	client->live->counts.connects++;
	counts_telling(client);
	err = link_call(client, &hello, deadline_us);
	if (err == 0) {
		counts_told(client);
		link->ready = true;
		return 0;
	}
	link_close(client, LINK_E_LOST);
	if (err == LINK_E_LOST)
		return client_fail(client, MLKEMCLIENT_E_UNAVAILABLE,
		    "%s: the daemon closed the connection", client->path);
	return client_fail(client, err, "%s", hello.message);
}

/*
 * One opens for all: the others wait, and go by what it found, unless that was only
 * that its own time was up.
 */
static int
need_link(struct mlkemclient *client, const struct call *call, uint64_t deadline_us)
{
	struct link *link = &client->live->link;
	struct breaker *breaker = &client->live->breaker;

	while (!link->ready) {
		if (!link->opening) {
			link->opening = true;
			link->open_error = open_link(client, deadline_us);
			link->opening = false;
			pthread_cond_broadcast(&link->opened);
			return link->open_error;
		}
		if (!client_wait(client, &link->opened, deadline_us) && !link->ready)
			return client_fail(client, MLKEMCLIENT_E_TIMEOUT,
			    "%s: another call still tries to connect", client->path);
		if (link->ready || link->opening)
			continue;
		if (call->heeds_breaker && breaker_is_open(breaker, client_now(client)))
			return client_fail(client, breaker->error,
			    "%s: another call could not connect: %s", client->path,
			    mlkemclient_strerror(link->open_error));
	}
	return 0;
}

static bool
is_refusal(int error)
{
	return error_is_elsewhere(error) && error != MLKEMCLIENT_E_UNAVAILABLE &&
	       error != MLKEMCLIENT_E_TIMEOUT && error != MLKEMCLIENT_E_INTERNAL;
}

/*
 * A lost connection is followed by one new one: nothing that this library asks leaves a
 * trace but a key, and a key dies with its connection. What needs a key of the lost
 * connection can't be asked again.
 */
static int
exchange_try(struct mlkemclient *client, struct call *call, uint64_t deadline_us)
{
	struct link *link = &client->live->link;
	int err = LINK_E_LOST;

	if (call->needs_key && link->ready)
		err = link_call(client, call, deadline_us);
	if (call->needs_key && err == LINK_E_LOST)
		return client_fail(client, MLKEMCLIENT_E_KEY_GONE,
		    "the key's connection has ended, and the key with it");

	for (int attempt = 0; err == LINK_E_LOST; attempt++) {
		bool fresh = !link->ready;

		if (fresh) {
			err = need_link(client, call, deadline_us);
			if (err != 0 && is_refusal(err))
				breaker_trip(
				    &client->live->breaker, err, client_now(client));
			if (err != 0)
				return err;
		}
		err = link_call(client, call, deadline_us);
		if (err == LINK_E_LOST && (fresh || attempt > 0))
			return client_fail(client, MLKEMCLIENT_E_UNAVAILABLE,
			    "%s: the daemon closed the connection", client->path);
	}
	if (err != 0)
		return client_fail(client, err, "%s", call->message);
	/* An item's refusal speaks for itself. */
	if (call->message[0] != '\0')
		client_fail(client, 0, "%s", call->message);
	return 0;
}

int
exchange_run(struct mlkemclient *client, struct call *call, uint64_t deadline_us)
{
	struct breaker *breaker = &client->live->breaker;
	int err = exchange_try(client, call, deadline_us);

	if (err == MLKEMCLIENT_E_TIMEOUT) {
		client->live->counts.timeouts++;
		breaker_trip(breaker, MLKEMCLIENT_E_UNAVAILABLE, client_now(client));
	} else if (err == MLKEMCLIENT_E_DRAINING || call->draining) {
		breaker_trip(breaker, MLKEMCLIENT_E_DRAINING, client_now(client));
		lease_drop_all(client);
	} else if (client->live->link.ready) {
		breaker_reset(breaker);
	}
	return err;
}
