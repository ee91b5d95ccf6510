/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "client-lib/client.h"

/*
 * Questions about the daemon itself go past the breaker: who asks wants to know, and a
 * daemon that answers again is then in use again at once.
 */
static int
ask(struct mlkemclient *client, struct call *call)
{
	int err;

	report_clear(client);
	client_lock(client);
	err = exchange_run(client, call, client_now(client) + client->deadline_us);
	client_unlock(client);
	return err;
}

int
mlkemclient_ping(struct mlkemclient *client)
{
	struct call call = {.op = CALL_PING};

	if (client == NULL)
		return MLKEMCLIENT_E_INVALID;
	return ask(client, &call);
}

int
mlkemclient_get_info(struct mlkemclient *client, struct mlkemclient_info *info)
{
	struct call call = {.op = CALL_INFO, .info = info};

	if (client == NULL || info == NULL)
		return MLKEMCLIENT_E_INVALID;
	memset(info, 0, sizeof(*info));
	return ask(client, &call);
}
