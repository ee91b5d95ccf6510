/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the daemon hears of the work that this process did or kept: in Hello. */
#include "client-lib/client.h"
#include "kem/fault.h"

#define EVERY_US 60000000u

static bool
is_something(const struct told *told)
{
	return told->fallbacks != 0 || told->auto_daemon != 0 || told->auto_local != 0;
}

static void
add(struct told *to, struct told *from)
{
	to->fallbacks += from->fallbacks;
	to->auto_daemon += from->auto_daemon;
	to->auto_local += from->auto_local;
	*from = (struct told){0};
}

void
counts_telling(struct mlkemclient *client)
{
	struct live *live = client->live;

	add(&live->telling, &live->untold);
	live->told_us = client_now(client);
}

void
counts_told(struct mlkemclient *client)
{
	client->live->telling = (struct told){0};
}

void
counts_not_told(struct mlkemclient *client)
{
	add(&client->live->untold, &client->live->telling);
}

void
counts_tell(struct mlkemclient *client, uint64_t now_us)
{
	struct live *live = client->live;
	struct call hello = {.op = CALL_HELLO};
	uint64_t before = live->told_us, id;

	if (!live->link.ready || !is_something(&live->untold) ||
	    now_us < live->told_us + EVERY_US || is_something(&live->telling) ||
	    live->link.timeouts_in_a_row != 0 || fault("client-tells-once"))
		return;
	counts_telling(client);
	if (link_tell(client, &hello, &id) != 0) {
		counts_not_told(client);
		live->told_us = before; /* the next call tries again */
	}
}
