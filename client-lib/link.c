/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

bool
link_is_open(const struct mlkemclient *client)
{
	return client->channel != NULL;
}

void
waiter_done(struct waiter *waiter, int error)
{
	waiter->state = WAITER_DONE;
	waiter->error = error;
	pthread_cond_signal(&waiter->changed);
}

static void
channel_close(struct channel *channel)
{
	close(channel->fd);
	free(channel);
}

/*
 * The number of a socket may belong to another file as soon as it is closed, so who
 * sleeps at it is woken and closes it.
 */
void
link_close(struct mlkemclient *client, int error)
{
	struct link *link = &client->live->link;
	struct channel *channel = client->channel;

	client->channel = NULL;
	if (channel != NULL && channel->n_polls == 0)
		channel_close(channel);
	else if (channel != NULL)
		shutdown(channel->fd, SHUT_RDWR);
	for (struct waiter *waiter = link->waiters; waiter; waiter = waiter->next)
		if (waiter->state != WAITER_DONE)
			waiter_done(waiter, error);
	if (link->room != NULL) {
		kem_wipe(link->in, link->in_len);
		kem_wipe(link->out, link->out_len);
	}
	link->ready = false;
	link->leader = NULL;
	link->in_len = 0;
	link->out_len = 0;
	link->out_sent = 0;
	link->n_abandoned = 0;
	link->n_unwanted = 0;
	link->timeouts_in_a_row = 0;
	lease_link_gone(client);
	counts_not_told(client);
}

/* What was received moves along: a late reply may lie in the buffer between calls. */
static int
need_room(struct mlkemclient *client, bool large)
{
	struct link *link = &client->live->link;
	size_t out = large ? LARGE_OUT : SMALL_OUT;
	size_t in = large ? LARGE_IN : SMALL_IN;
	size_t arena = large ? LARGE_ARENA : SMALL_ARENA;
	struct room *room;

	if (link->room != NULL && (link->large || !large))
		return 0;
	room = room_new(&client->rooms, out + in + arena, ROOM_SECRET);
	if (room == NULL)
		return MLKEMCLIENT_E_INTERNAL;
	if (link->in_len != 0)
		memcpy(room->base + out, link->in, link->in_len);
	room_drop(link->room);
	link->room = room;
	link->large = large;
	link->out = room->base;
	link->out_size = out;
	link->in = room->base + out;
	link->in_size = in;
	link->arena = (struct arena){.base = room->base + out + in, .size = arena};
	return 0;
}

static bool
is_large(const struct call *call)
{
	return call->op == CALL_LEASE || (call->job != NULL && call->job->n_items > 1);
}

/* The request as a frame in link.out, which is free. */
static int
put_frame(struct mlkemclient *client, const struct call *call, uint64_t id,
    uint64_t deadline_us)
{
	struct link *link = &client->live->link;
	uint64_t now = client_now(client);
	ssize_t len;
	int err = need_room(client, is_large(call));

	if (err != 0)
		return err;
	if (now >= deadline_us)
		return MLKEMCLIENT_E_TIMEOUT;
	len = message_encode(client, call, id, deadline_us - now);
	if (len < 0)
		return (int)len;
	link->out_len = (size_t)len;
	link->out_sent = 0;
	return 0;
}

/* The next whose request waits for link.out has its turn, if that is free. */
static void
wake_sender(struct link *link)
{
	if (link->out_len != 0 || fault("client-no-turn"))
		return;
	for (struct waiter *next = link->waiters; next; next = next->next) {
		if (next->state == WAITER_TO_SEND) {
			pthread_cond_signal(&next->changed);
			return;
		}
	}
}

static void
out_free(struct link *link)
{
	kem_wipe(link->out, link->out_len);
	link->out_len = 0;
	link->out_sent = 0;
}

/* As much of link.out as the socket takes; all gone, it is free for the next. */
static int
push_out(struct mlkemclient *client)
{
	struct link *link = &client->live->link;
	size_t n;
	int err = transport_send(client->channel->fd, link->out + link->out_sent,
	    link->out_len - link->out_sent, &n);

	if (err != 0)
		return err;
	link->out_sent += n;
	if (link->out_sent != link->out_len)
		return 0;
	out_free(link);
	wake_sender(link);
	return 0;
}

/* Brings the waiter's request as far on its way as it goes without waiting. */
static void
waiter_push(struct mlkemclient *client, struct waiter *waiter)
{
	struct link *link = &client->live->link;
	int err = 0;

	if (waiter->state == WAITER_TO_SEND && link->out_len == 0) {
		err = put_frame(client, waiter->call, waiter->id, waiter->deadline_us);
		if (err != 0) {
			waiter_done(
			    waiter, call_fail(waiter->call, err,
					err == MLKEMCLIENT_E_TIMEOUT
					    ? "the deadline passed"
					    : "the request could not be encoded"));
			return;
		}
		waiter->state = WAITER_SENDING;
		/* The daemon may run, and answer, before send() has returned. */
		waiter->sent_us = client_now(client);
	}
	if (waiter->state != WAITER_SENDING)
		return;
	err = push_out(client);
	if (err != 0)
		link_close(client, err);
	else if (link->out_len == 0)
		waiter->state = WAITER_SENT;
}

/*
 * While there is no room to send, what comes is read: a daemon whose late replies
 * nobody reads would stop reading too, and both sides wait for ever.
 */
static void
wait_at_socket(
    struct mlkemclient *client, struct waiter *waiter, uint32_t spin_us, bool *hitp)
{
	struct channel *channel = client->channel;
	short events = POLLIN, revents;

	if (waiter->state == WAITER_SENDING)
		events = fault("client-send-blind") ? POLLOUT : POLLIN | POLLOUT;
	channel->n_polls++;
	client_unlock(client);
	revents = transport_wait(
	    client, channel->fd, events, waiter->deadline_us, spin_us, hitp);
	client_lock(client);
	channel->n_polls--;
	if (channel != client->channel && channel->n_polls == 0)
		channel_close(channel);
	else if (channel == client->channel && (revents & ~POLLOUT) != 0)
		answers_take(client);
}

static enum late
late_of(const struct call *call)
{
	const struct job *job = call->job;

	return job != NULL && job->op == JOB_KEYGEN && !job->export_private
		   ? LATE_KEYS_RELEASE
		   : LATE_DROP;
}

/*
 * The connection stays when a frame was simply not answered in time. Inside a frame, in
 * either direction, and at the third silence in a row, it is given up. What several
 * callers asked before the first of them gave up is one silence.
 */
static void
timed_out(struct mlkemclient *client, struct waiter *waiter)
{
	struct link *link = &client->live->link;
	bool others = false, inside;

	for (struct waiter *other = link->waiters; other; other = other->next)
		others |= other != waiter && other->state == WAITER_SENT;
	inside = link->in_len != 0 && !others;
	if (waiter->state == WAITER_SENDING && link->out_sent != 0)
		inside = true;
	else if (waiter->state == WAITER_SENDING)
		out_free(link);
	if (waiter->state == WAITER_SENT && waiter->id > link->last_silent_id) {
		link->timeouts_in_a_row++;
		link->last_silent_id = link->next_id;
	}
	if (inside || link->timeouts_in_a_row == LINK_MAX_IN_A_ROW ||
	    (waiter->state == WAITER_SENT &&
		!link_abandon(link, waiter->id, late_of(waiter->call))))
		link_close(client, LINK_E_LOST);
	waiter_done(waiter, call_fail(waiter->call, MLKEMCLIENT_E_TIMEOUT,
				"%s: no answer in time", client->path));
}

/* Someone who waits for an answer as well sees to the socket from now on. */
static void
lead_no_more(struct link *link)
{
	struct waiter *next = link->waiters;

	if (fault("client-no-handover"))
		return;
	while (next != NULL && next->state != WAITER_SENT)
		next = next->next;
	link->leader = next;
	if (next != NULL)
		pthread_cond_signal(&next->changed);
}

static void
waiter_leave(struct link *link, struct waiter *waiter)
{
	struct waiter **at = &link->waiters;

	while (*at != waiter)
		at = &(*at)->next;
	*at = waiter->next;
	if (link->leader == waiter)
		lead_no_more(link);
	/* Who gave up may have been the one that was woken to send. */
	wake_sender(link);
	pthread_cond_destroy(&waiter->changed);
}

/* One wait: at the socket as the leader or to go on sending, else until woken. */
static void
waiter_wait(struct mlkemclient *client, struct waiter *waiter, struct spin *spin)
{
	struct link *link = &client->live->link;
	uint32_t spin_us = 0, took;
	bool hit = false;

	if (link->leader == NULL && waiter->state == WAITER_SENT)
		link->leader = waiter;
	if (link->leader != waiter && waiter->state != WAITER_SENDING) {
		client_wait(client, &waiter->changed, waiter->deadline_us);
		return;
	}
	if (spin != NULL && waiter->state == WAITER_SENT)
		spin_us = spin_budget_us(spin, client->live->n_cpus);
	wait_at_socket(client, waiter, spin_us, &hit);
	if (spin != NULL && waiter->state == WAITER_DONE && waiter->error == 0) {
		took = (uint32_t)(client_now(client) - waiter->sent_us);
		spin_learn(spin, spin_us, took, hit);
	}
}

/* The last look takes what came while nobody was awake to read it. */
static bool
is_too_late(struct mlkemclient *client, struct waiter *waiter)
{
	if (client_now(client) < waiter->deadline_us)
		return false;
	if (waiter->state == WAITER_SENT)
		answers_take(client);
	return waiter->state != WAITER_DONE;
}

int
link_call(struct mlkemclient *client, struct call *call, uint64_t deadline_us)
{
	struct link *link = &client->live->link;
	struct spin *spin =
	    call->op == CALL_JOB ? &client->live->spins[call->job->op] : NULL;
	struct waiter waiter = {
	    .call = call, .id = ++link->next_id, .deadline_us = deadline_us};
	uint64_t start = client_now(client);

	cond_init(&waiter.changed);
	waiter.next = link->waiters;
	link->waiters = &waiter;
	for (;;) {
		waiter_push(client, &waiter);
		if (waiter.state == WAITER_DONE)
			break;
		if (is_too_late(client, &waiter))
			timed_out(client, &waiter);
		else if (waiter.state != WAITER_DONE)
			waiter_wait(client, &waiter, spin);
	}
	waiter_leave(link, &waiter);
	call->wait_us = (uint32_t)(client_now(client) - start);
	if (waiter.error == MLKEMCLIENT_E_PROTOCOL && call->message[0] == '\0')
		return call_fail(call, MLKEMCLIENT_E_PROTOCOL,
		    "%s: an answer is not one of this protocol", client->path);
	return waiter.error;
}

int
link_tell(struct mlkemclient *client, struct call *call, uint64_t *idp)
{
	struct link *link = &client->live->link;
	uint64_t now = client_now(client);
	int err;

	if (!link->ready || link->out_len != 0 ||
	    (call->op != CALL_LEASE && link->n_abandoned > LINK_MAX_ABANDONED / 2))
		return LINK_E_LOST;
	*idp = ++link->next_id;
	if (put_frame(client, call, *idp, now + client->deadline_us) != 0)
		return LINK_E_LOST;
	err = push_out(client);
	if (err == 0 && link->out_len != 0 && link->out_sent == 0) {
		out_free(link);
		return LINK_E_LOST;
	}
	/* A part of it is on its way, and there is nobody to send the rest. */
	if (err != 0 || link->out_len != 0) {
		link_close(client, LINK_E_LOST);
		return LINK_E_LOST;
	}
	if (call->op != CALL_LEASE)
		(void)link_abandon(
		    link, *idp, call->op == CALL_HELLO ? LATE_HELLO : LATE_DROP);
	return 0;
}
