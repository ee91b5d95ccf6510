/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>
#include <string.h>

#include "client-lib/client.h"

/* Secret and share of one local key; blocks of a few, so that the lock stays small. */
#define SLOT_BYTES  (KEM_SECRET_MAX + KEM_SHARE_MAX)
#define BLOCK_SLOTS 16u

/* Stands at the end of its own room, behind the slots. */
struct key_block {
	uint8_t slots[BLOCK_SLOTS][SLOT_BYTES];
	uint32_t taken; /* bit i: slot i */
	struct key_block *next;
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
	key->era = client->era; /* job_begin() has entered the process */
	return key;
}

static struct key_block *
key_block_with_room(struct mlkemclient *client)
{
	struct key_block *block = client->live->key_blocks;
	struct room *room;

	while (block != NULL && block->taken == (1u << BLOCK_SLOTS) - 1)
		block = block->next;
	if (block != NULL)
		return block;

	room = room_new(&client->rooms, sizeof(*block), ROOM_SECRET);
	if (room == NULL)
		return NULL;
	block = (struct key_block *)(void *)room->base;
	block->next = client->live->key_blocks;
	client->live->key_blocks = block;
	return block;
}

int
key_need_secret(struct mlkemclient_key *key)
{
	struct mlkemclient *client = key->owner;
	struct key_block *block;
	unsigned slot = 0;

	client_lock(client);
	block = key_block_with_room(client);
	if (block != NULL) {
		while (block->taken & 1u << slot)
			slot++;
		block->taken |= 1u << slot;
		key->secret = block->slots[slot];
	}
	client_unlock(client);
	return block != NULL ? 0 : MLKEMCLIENT_E_INTERNAL;
}

/* In a child the parent's blocks are gone, and nothing is left to be given back. */
void
key_drop_secret(struct mlkemclient_key *key)
{
	struct mlkemclient *client = key->owner;
	struct key_block *block;

	if (key->secret == NULL)
		return;
	client_lock(client);
	if (key->era == client->era) {
		kem_wipe(key->secret, SLOT_BYTES);
		block = client->live->key_blocks;
		while (key->secret < block->slots[0] ||
		       key->secret > block->slots[BLOCK_SLOTS - 1])
			block = block->next;
		block->taken &=
		    ~(1u << ((size_t)(key->secret - block->slots[0]) / SLOT_BYTES));
	}
	key->secret = NULL;
	client_unlock(client);
}

/* A daemon's key lives as long as the connection that it was made on. */
bool
key_is_live(const struct mlkemclient_key *key)
{
	const struct mlkemclient *client = key->owner;

	if (atomic_load(&key->spent) || key->era != client->era)
		return false;
	return !key->in_daemon || (client->live->link.ready &&
				      key->generation == client->live->link.generation);
}

/* Once for each key. A child knows nothing of what its parent has lost. */
void
key_lost(struct mlkemclient_key *key)
{
	if (key->leased && key->era == key->owner->era && !atomic_load(&key->spent))
		key->owner->live->counts.leases_lost++;
	key->leased = false;
}

void
key_made_in_daemon(struct mlkemclient_key *key, const uint8_t *handle, bool leased)
{
	memcpy(key->handle, handle, sizeof(key->handle));
	key->in_daemon = true;
	key->leased = leased;
	key->generation = key->owner->live->link.generation;
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

/*
 * The release goes out on the key's own open connection as soon as that is free, and
 * nobody waits for its answer.
 */
void
mlkemclient_key_free(struct mlkemclient *client, struct mlkemclient_key *key)
{
	if (key == NULL)
		return;
	client = key->owner;
	if (key->in_daemon && !atomic_load(&key->spent)) {
		client_lock(client);
		if (key_is_live(key)) {
			link_unwanted(&client->live->link, key->handle);
			link_release(client);
		}
		client_unlock(client);
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
