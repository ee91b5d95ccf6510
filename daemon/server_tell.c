/* SPDX-License-Identifier: Apache-2.0 */
/* What main tells the shards. It never waits for one: what a pipe does not take is owed. */
#include "server_priv.h"

#include <assert.h>

#define RETRY_US 10000

static void
server_retry_soon(struct server *server)
{
	struct timeval tv = {.tv_usec = RETRY_US};

	if (!evtimer_pending(&server->retry_event, NULL))
		evtimer_add(&server->retry_event, &tv);
}

void
server_retry(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;

	for (uint32_t i = 0; i < server->common.n_shards; i++) {
		struct server_owed *owed = &server->owed[i];
		uint32_t done = 0;

		while (done < owed->n &&
		       shard_tell(&server->shards[i], &owed->records[done]))
			done++;
		owed->n -= done;
		for (uint32_t j = 0; j < owed->n; j++)
			owed->records[j] = owed->records[j + done];
		if (owed->n)
			server_retry_soon(server);
	}
}

static void
server_tell(struct server *server, uint32_t index, const struct shard_record *record)
{
	struct server_owed *owed = &server->owed[index];

	if (!owed->n && shard_tell(&server->shards[index], record))
		return;
	assert(owed->n < SERVER_OWED_MAX);
	owed->records[owed->n++] = *record;
	server_retry_soon(server);
}

void
server_tell_all(struct server *server, enum shard_record_type type,
    const struct config *config, uint64_t *serialp)
{
	struct shard_record record = {
	    .type = type, .fd = -1, .config = config, .serial = ++server->serial};

	for (uint32_t i = 0; i < server->common.n_shards; i++)
		server_tell(server, i, &record);
	if (serialp)
		*serialp = record.serial;
}

bool
server_tell_conn(
    struct server *server, struct shard *shard, const struct shard_record *record)
{
	return !server->owed[shard->index].n && shard_tell(shard, record);
}

bool
server_all_did(const struct server *server, uint64_t serial)
{
	for (uint32_t i = 0; i < server->common.n_shards; i++) {
		if (atomic_load(&server->shards[i].serial) < serial)
			return false;
	}
	return true;
}
