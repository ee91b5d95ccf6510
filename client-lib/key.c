/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client-lib/client.h"

/* Secret and share of one local key; blocks of a few, so that the lock stays small. */
#define SLOT_BYTES  (KEM_SECRET_MAX + KEM_SHARE_MAX)
#define BLOCK_SLOTS 16u

struct key_block {
	struct key_block *next;
	struct room room;
	uint32_t taken; /* bit i: slot i */
};

_Static_assert(BLOCK_SLOTS < 32, "taken is too narrow");

struct mlkemclient_key *
key_new(struct mlkemclient *client, enum kem_alg alg)
{
	struct mlkemclient_key *key = calloc(1, sizeof(*key));

	if (key == NULL)
		return NULL;
	key->owner = client;
	key->alg = alg;
	key->pid = client->pid;
	return key;
}

static struct key_block *
key_block_with_room(struct mlkemclient *client)
{
	struct key_block *block = client->key_blocks;

	while (block != NULL && block->taken == (1u << BLOCK_SLOTS) - 1)
		block = block->next;
	if (block != NULL)
		return block;

	block = calloc(1, sizeof(*block));
	if (block == NULL)
		return NULL;
	if (room_map(&block->room, BLOCK_SLOTS * SLOT_BYTES) != 0) {
		free(block);
		return NULL;
	}
	block->next = client->key_blocks;
	client->key_blocks = block;
	return block;
}

int
key_need_secret(struct mlkemclient_key *key)
{
	struct key_block *block = key_block_with_room(key->owner);
	unsigned slot = 0;

	if (block == NULL)
		return MLKEMCLIENT_E_INTERNAL;
	while (block->taken & 1u << slot)
		slot++;
	block->taken |= 1u << slot;
	key->secret = block->room.base + slot * SLOT_BYTES;
	return 0;
}

static void
key_drop_secret(struct mlkemclient_key *key)
{
	struct key_block *block = key->owner->key_blocks;

	if (key->secret == NULL)
		return;
	kem_wipe(key->secret, SLOT_BYTES);
	while (key->secret < block->room.base ||
	       key->secret >= block->room.base + block->room.size)
		block = block->next;
	block->taken &=
	    ~(1u << ((size_t)(key->secret - block->room.base) / SLOT_BYTES));
	key->secret = NULL;
}

void
key_spend(struct mlkemclient_key *key)
{
	key->spent = true;
	key_drop_secret(key);
}

/* A daemon's key lives as long as the connection that it was made on. */
bool
key_is_live(const struct mlkemclient_key *key)
{
	const struct link *link = &key->owner->link;

	if (key->spent || key->pid != key->owner->pid)
		return false;
	return !key->in_daemon ||
	       (link->fd >= 0 && key->generation == link->generation);
}

void
key_free(struct mlkemclient_key *key)
{
	if (key == NULL)
		return;
	key_drop_secret(key);
	kem_wipe(key, sizeof(*key));
	free(key);
}

void
key_blocks_free(struct mlkemclient *client)
{
	while (client->key_blocks != NULL) {
		struct key_block *block = client->key_blocks;

		client->key_blocks = block->next;
		room_unmap(&block->room);
		free(block);
	}
}

void
key_blocks_relock(struct mlkemclient *client)
{
	for (struct key_block *block = client->key_blocks; block; block = block->next)
		room_relock(&block->room);
}

/*
 * The release is asked for only where that is cheap: on the key's own open connection,
 * and not while the daemon is silent. Elsewhere its lifetime ends the key.
 */
void
mlkemclient_key_free(struct mlkemclient *client, struct mlkemclient_key *key)
{
	struct call call = {.op = CALL_RELEASE, .key = key, .needs_key = true};
	char message[sizeof(client->message)];

	if (key == NULL)
		return;
	client = key->owner;
	client_check_process(client);
	if (key->in_daemon && key_is_live(key) && client->link.timeouts_in_a_row == 0) {
		/* The caller may not have read yet why its last call failed. */
		memcpy(message, client->message, sizeof(message));
		(void)!exchange_run(
		    client, &call, client_now(client) + client->deadline_us);
		memcpy(client->message, message, sizeof(message));
	}
	key_free(key);
}

enum mlkemclient_alg
mlkemclient_key_alg(const struct mlkemclient_key *key)
{
	return alg_to_public(key->alg);
}

bool
mlkemclient_key_in_daemon(const struct mlkemclient_key *key)
{
	return key != NULL && key->in_daemon;
}
