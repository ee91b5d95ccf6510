/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "client-lib/client.h"
#include "kem/fault.h"

/*
 * Buffers for calls of one item, and for calls of many. A reply of 64 encapsulations is
 * 64 x (1568 + 1024) bytes of values; the longest single one carries a kdf of 12240.
 * The arena holds a copy of the reply's values and what protobuf-c puts around them.
 */
enum {
	SMALL_OUT = 12 * 1024,
	SMALL_IN = 20 * 1024,
	SMALL_ARENA = 32 * 1024,
	LARGE_OUT = 116 * 1024,
	LARGE_IN = 192 * 1024,
	LARGE_ARENA = 288 * 1024,
};

void
link_close(struct mlkemclient *client)
{
	struct link *link = &client->link;

	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	if (link->room.base != NULL)
		kem_wipe(link->in, link->in_len);
	link->in_len = 0;
	link->n_abandoned = 0;
	link->timeouts_in_a_row = 0;
}

/* What was received moves along: a late reply may lie in the buffer between calls. */
static int
link_need_room(struct mlkemclient *client, bool large)
{
	struct link *link = &client->link;
	size_t out = large ? LARGE_OUT : SMALL_OUT;
	size_t in = large ? LARGE_IN : SMALL_IN;
	size_t arena = large ? LARGE_ARENA : SMALL_ARENA;
	struct room room = {0};

	if (link->room.base != NULL && (link->large || !large))
		return 0;
	if (room_map(&room, out + in + arena) != 0)
		return client_fail(
		    client, MLKEMCLIENT_E_INTERNAL, "no memory for the connection");
	if (link->in_len != 0)
		memcpy(room.base + out, link->in, link->in_len);
	room_unmap(&link->room);
	link->room = room;
	link->large = large;
	link->out = room.base;
	link->out_size = out;
	link->in = room.base + out;
	link->in_size = in;
	link->arena = (struct arena){.base = room.base + out + in, .size = arena};
	return 0;
}

/* Removes the first used bytes of the input and wipes where they were. */
static void
link_consume(struct link *link, size_t used)
{
	size_t rest = link->in_len - used;

	memmove(link->in, link->in + used, rest);
	if (!fault("client-no-wipe"))
		kem_wipe(link->in + rest, used);
	link->in_len = rest;
}

/* False when too many are open: then only closing keeps later replies apart. */
static bool
link_abandon(struct link *link, uint64_t id)
{
	if (link->n_abandoned == LINK_MAX_ABANDONED)
		return false;
	link->abandoned[link->n_abandoned++] = id;
	return true;
}

static bool
link_was_abandoned(struct link *link, uint64_t id)
{
	for (unsigned i = 0; i < link->n_abandoned; i++) {
		if (link->abandoned[i] == id) {
			link->abandoned[i] = link->abandoned[--link->n_abandoned];
			return true;
		}
	}
	return false;
}

/*
 * The whole frame at the front of the input: *lenp is its message's length, 0 if it is
 * not all here. A frame that no honest answer needs is a fault.
 */
static int
link_front(const struct link *link, size_t *lenp)
{
	uint32_t length;

	*lenp = 0;
	if (link->in_len < WIRE_HEADER_BYTES)
		return 0;
	length = wire_get_length(link->in);
	if (!wire_length_ok(length) || length > link->in_size - WIRE_HEADER_BYTES)
		return MLKEMCLIENT_E_PROTOCOL;
	if (link->in_len - WIRE_HEADER_BYTES >= length)
		*lenp = length;
	return 0;
}

/*
 * Looks for the answer to id among what has been received, and drops late ones. *lenp
 * is its length, 0 if it is not here yet. id 0 (never used) only drops.
 */
static int
link_find(struct link *link, uint64_t id, size_t *lenp)
{
	for (;;) {
		struct wire_prescan scan;
		int err = link_front(link, lenp);

		if (err != 0 || *lenp == 0)
			return err;
		if (wire_prescan_response(link->in + WIRE_HEADER_BYTES, *lenp, &scan) !=
			0 ||
		    scan.n_ops > 1 || scan.n_items > WIRE_MAX_ITEMS ||
		    scan.n_fields > WIRE_MAX_FIELDS)
			return MLKEMCLIENT_E_PROTOCOL;
		if ((scan.id == id && id != 0) || fault("client-any-id"))
			return 0;
		if (!link_was_abandoned(link, scan.id))
			return MLKEMCLIENT_E_PROTOCOL;
		link_consume(link, WIRE_HEADER_BYTES + *lenp);
	}
}

/*
 * While there is no room to send, what comes is read: a daemon whose late replies
 * nobody reads would stop reading too, and both sides wait for ever.
 */
static int
link_send(struct mlkemclient *client, size_t len, uint64_t deadline_us, size_t *sentp)
{
	struct link *link = &client->link;
	short events = fault("client-send-blind") ? POLLOUT : POLLIN | POLLOUT;

	*sentp = 0;
	for (;;) {
		size_t n, found;
		short revents;
		int err = transport_send(client, link->out + *sentp, len - *sentp, &n);

		if (err != 0)
			return err;
		*sentp += n;
		if (*sentp == len)
			return 0;
		err = link_find(link, 0, &found);
		if (err == 0)
			err = transport_wait(client, events, deadline_us, &revents);
		if (err == 0 && (revents & ~POLLOUT) != 0)
			err = transport_recv(client, &n);
		if (err != 0)
			return err;
	}
}

static int
link_receive(
    struct mlkemclient *client, uint64_t id, uint64_t deadline_us, size_t *lenp)
{
	for (;;) {
		size_t got;
		short revents;
		int err = link_find(&client->link, id, lenp);

		if (err != 0 || *lenp != 0)
			return err;
		err = transport_wait(client, POLLIN, deadline_us, &revents);
		if (err == 0)
			err = transport_recv(client, &got);
		if (err != 0)
			return err;
	}
}

/*
 * The connection stays when a frame was simply not answered in time. Inside a frame, in
 * either direction, and at the third silence in a row, it is given up.
 */
static int
link_timed_out(struct mlkemclient *client, uint64_t id, size_t sent, size_t len)
{
	struct link *link = &client->link;
	bool inside = (sent != 0 && sent != len) || link->in_len != 0;

	link->timeouts_in_a_row++;
	if (inside || link->timeouts_in_a_row == LINK_MAX_IN_A_ROW ||
	    (sent == len && !link_abandon(link, id)))
		link_close(client);
	return client_fail(
	    client, MLKEMCLIENT_E_TIMEOUT, "%s: no answer in time", client->path);
}

static int
link_broken(struct mlkemclient *client)
{
	link_close(client);
	return client_fail(client, MLKEMCLIENT_E_PROTOCOL,
	    "%s: the answer is not one of this protocol", client->path);
}

/* One question and its answer on the open connection. May give LINK_E_LOST. */
static int
link_call(struct mlkemclient *client, struct call *call, uint64_t deadline_us)
{
	struct link *link = &client->link;
	uint64_t now = client_now(client), id = ++link->next_id;
	size_t sent = 0, answer_len = 0;
	ssize_t len;
	int err;

	if (now >= deadline_us)
		return client_fail(
		    client, MLKEMCLIENT_E_TIMEOUT, "the deadline passed");
	len = message_encode(client, call, id, deadline_us - now);
	if (len < 0)
		return client_fail(
		    client, (int)len, "the request could not be encoded");
	err = link_send(client, (size_t)len, deadline_us, &sent);
	kem_wipe(link->out, (size_t)len);
	if (err == 0)
		err = link_receive(client, id, deadline_us, &answer_len);

	if (err == MLKEMCLIENT_E_TIMEOUT)
		return link_timed_out(client, id, sent, (size_t)len);
	if (err == LINK_E_LOST) {
		link_close(client);
		return err;
	}
	if (err != 0)
		return link_broken(client);

	link->timeouts_in_a_row = 0;
	err = message_decode(client, call, link->in + WIRE_HEADER_BYTES, answer_len);
	link_consume(link, WIRE_HEADER_BYTES + answer_len);
	return err == MESSAGE_E_LIE ? link_broken(client) : err;
}

/* Connects and says Hello. A daemon that does not want us has said so by then. */
static int
link_open(struct mlkemclient *client, uint64_t deadline_us)
{
	struct link *link = &client->link;
	struct call hello = {.op = CALL_HELLO};
	int fd, err;

	err = transport_connect(client, deadline_us, &fd);
	if (err != 0)
		return err;
	link->fd = fd;
	link->generation++;
	client->counts.connects++;
	err = link_call(client, &hello, deadline_us);
	if (err == 0)
		return 0;
	link_close(client);
	if (err == LINK_E_LOST)
		return client_fail(client, MLKEMCLIENT_E_UNAVAILABLE,
		    "%s: the daemon closed the connection", client->path);
	return err;
}

/*
 * A lost connection is followed by one new one: nothing that this library asks leaves a
 * trace but a key, and a key dies with its connection. What needs a key of the lost
 * connection can't be asked again.
 */
static int
exchange_try(struct mlkemclient *client, struct call *call, uint64_t deadline_us)
{
	struct link *link = &client->link;

	for (int attempt = 0;; attempt++) {
		bool fresh = link->fd < 0;
		int err;

		if (fresh && call->needs_key)
			return client_fail(client, MLKEMCLIENT_E_KEY_GONE,
			    "the key's connection has ended, and the key with it");
		if (fresh) {
			err = link_open(client, deadline_us);
			if (err != 0) {
				if (error_is_elsewhere(err) &&
				    err != MLKEMCLIENT_E_UNAVAILABLE &&
				    err != MLKEMCLIENT_E_TIMEOUT &&
				    err != MLKEMCLIENT_E_INTERNAL)
					breaker_trip(
					    &client->breaker, err, client_now(client));
				return err;
			}
		}
		err = link_call(client, call, deadline_us);
		if (err != LINK_E_LOST)
			return err;
		if ((fresh || attempt > 0) && !call->needs_key)
			return client_fail(client, MLKEMCLIENT_E_UNAVAILABLE,
			    "%s: the daemon closed the connection", client->path);
	}
}

int
exchange_run(struct mlkemclient *client, struct call *call, uint64_t deadline_us)
{
	bool large = call->job != NULL && call->job->n_items > 1;
	int err = link_need_room(client, large);

	if (err != 0)
		return err;
	err = exchange_try(client, call, deadline_us);
	if (err == MLKEMCLIENT_E_TIMEOUT) {
		client->counts.timeouts++;
		breaker_trip(
		    &client->breaker, MLKEMCLIENT_E_UNAVAILABLE, client_now(client));
	} else if (err == MLKEMCLIENT_E_DRAINING || call->draining) {
		breaker_trip(
		    &client->breaker, MLKEMCLIENT_E_DRAINING, client_now(client));
	} else if (client->link.fd >= 0) {
		breaker_reset(&client->breaker);
	}
	return err;
}
