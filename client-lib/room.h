/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * room.h: memory for secrets (room.c): locked where the limit allows it, never dumped,
 * all zero in a child after fork. A handle's rooms are on one list that only grows, so
 * that it is whole at whatever moment another thread forks.
 */
#ifndef MLKEMCLIENT_ROOM_H
#define MLKEMCLIENT_ROOM_H

#include <stddef.h>
#include <stdint.h>

struct room {
	uint8_t *base; /* NULL: given back */
	size_t size;
	struct room *next;
};

/* NULL: no memory. What is not secret need not be locked. */
enum room_kind { ROOM_SECRET, ROOM_NOT_SECRET };
struct room *room_new(struct room **list, size_t size, enum room_kind kind);
/* Wipes it and gives the memory back; the entry stays on its list. NULL is fine. */
void room_drop(struct room *room);
/* Drops them all, and the list. */
void room_free_list(struct room **list);

/* A bump allocator over a part of a room. */
struct arena {
	uint8_t *base;
	size_t size, used;
};

void *arena_alloc(struct arena *arena, size_t size); /* zero; NULL when full */
void arena_wipe(struct arena *arena);

#endif
