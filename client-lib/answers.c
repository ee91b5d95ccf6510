/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "client-lib/client.h"
#include "kem/fault.h"

/*
 * Removes the first used bytes of the input and wipes where they were. What holds
 * shares and handles only, which are of no use elsewhere, is not worth the wiping.
 */
static void
consume(struct link *link, size_t used, bool secret)
{
	size_t rest = link->in_len - used;

	memmove(link->in, link->in + used, rest);
	if (secret && !fault("client-no-wipe"))
		kem_wipe(link->in + rest, used);
	link->in_len = rest;
}

/*
 * The whole frame at the front of the input: *lenp is its message's length, 0 if it is
 * not all here. A frame that no honest answer needs is a fault.
 */
static int
front(const struct link *link, size_t *lenp)
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

bool
link_abandon(struct link *link, uint64_t id, enum late late)
{
	if (link->n_abandoned == LINK_MAX_ABANDONED)
		return false;
	link->abandoned[link->n_abandoned++] = (struct abandoned){id, late};
	return true;
}

void
link_unwanted(struct link *link, const uint8_t handle[WIRE_HANDLE_BYTES])
{
	if (link->n_unwanted < WIRE_MAX_ITEMS)
		memcpy(link->unwanted[link->n_unwanted++], handle, WIRE_HANDLE_BYTES);
}

/* Not while the daemon is silent: it would have more to do when it wakes up. */
void
link_release(struct mlkemclient *client)
{
	struct link *link = &client->live->link;
	struct call call = {.op = CALL_RELEASE,
	    .handles = link->unwanted,
	    .n_handles = link->n_unwanted};
	uint64_t id;

	if (link->n_unwanted != 0 && link->timeouts_in_a_row == 0 &&
	    link_tell(client, &call, &id) == 0)
		link->n_unwanted = 0;
}

static bool
was_abandoned(struct link *link, uint64_t id, enum late *latep)
{
	for (unsigned i = 0; i < link->n_abandoned; i++) {
		if (link->abandoned[i].id == id) {
			*latep = link->abandoned[i].late;
			link->abandoned[i] = link->abandoned[--link->n_abandoned];
			return true;
		}
	}
	return false;
}

/*
 * Nobody waits for it. Keys that it made would count against the user for a minute, if
 * they were not released.
 */
static void
take_late(
    struct mlkemclient *client, enum late late, const uint8_t *message, size_t len)
{
	struct call call = {.op = CALL_LATE};
	int err;

	if (late == LATE_DROP || fault("client-keeps-late-keys"))
		return;
	err = message_decode(client, &call, message, len);
	if (late == LATE_HELLO && err == 0)
		counts_told(client);
	else if (late == LATE_HELLO)
		counts_not_told(client);
}

static struct waiter *
asker_of(const struct link *link, uint64_t id)
{
	struct waiter *waiter = link->waiters, *other;

	while (waiter != NULL && (waiter->state != WAITER_SENT || waiter->id != id) &&
	       !fault("client-any-id"))
		waiter = waiter->next;
	if (waiter == NULL || !fault("client-answers-swapped"))
		return waiter;
	for (other = link->waiters; other != NULL; other = other->next)
		if (other != waiter && other->state == WAITER_SENT &&
		    other->call->op == waiter->call->op)
			return other;
	return waiter;
}

/* Returns 0, or MLKEMCLIENT_E_PROTOCOL for an answer that can't be right. */
static int
give(struct mlkemclient *client, struct waiter *waiter, const uint8_t *message,
    size_t len)
{
	int err = message_decode(client, waiter->call, message, len);

	client->live->link.timeouts_in_a_row = 0;
	if (err != MESSAGE_E_LIE) {
		waiter_done(waiter, err);
		return 0;
	}
	waiter_done(
	    waiter, call_fail(waiter->call, MLKEMCLIENT_E_PROTOCOL,
			"%s: the answer is not one of this protocol", client->path));
	return MLKEMCLIENT_E_PROTOCOL;
}

static int
fill_rack(struct mlkemclient *client, struct lease_rack *rack, const uint8_t *message,
    size_t len)
{
	struct call call = {.op = CALL_LEASE, .rack = rack};
	int err = message_decode(client, &call, message, len);

	lease_answered(client, rack, err);
	if (call.draining) {
		lease_drop_all(client);
		breaker_trip(
		    &client->live->breaker, MLKEMCLIENT_E_DRAINING, client_now(client));
	}
	return err == MESSAGE_E_LIE ? MLKEMCLIENT_E_PROTOCOL : 0;
}

/* Gives the frame at the front to whom it belongs. */
static int
deliver(struct mlkemclient *client, size_t len)
{
	struct link *link = &client->live->link;
	const uint8_t *message = link->in + WIRE_HEADER_BYTES;
	struct lease_rack *rack;
	struct wire_prescan scan;
	struct waiter *waiter;
	enum late late;
	int err = MLKEMCLIENT_E_PROTOCOL;

	if (wire_prescan_response(message, len, &scan) != 0 || scan.n_ops > 1 ||
	    scan.n_items > WIRE_MAX_ITEMS || scan.n_fields > WIRE_MAX_FIELDS)
		return err;
	waiter = asker_of(link, scan.id);
	rack = lease_find(client, scan.id);
	if (waiter != NULL) {
		err = give(client, waiter, message, len);
	} else if (rack != NULL) {
		err = fill_rack(client, rack, message, len);
	} else if (was_abandoned(link, scan.id, &late)) {
		take_late(client, late, message, len);
		err = 0;
	}
	consume(link, WIRE_HEADER_BYTES + len, rack == NULL);
	return err;
}

void
answers_take(struct mlkemclient *client)
{
	struct link *link = &client->live->link;
	size_t got, len;
	int err;

	err = transport_recv(client->channel->fd, link->in + link->in_len,
	    link->in_size - link->in_len, &got);
	if (err != 0) {
		link_close(client, err);
		return;
	}
	link->in_len += got;
	do {
		err = front(link, &len);
		if (err == 0 && len != 0)
			err = deliver(client, len);
	} while (err == 0 && len != 0);
	if (err != 0)
		link_close(client, err);
	else
		link_release(client);
}
