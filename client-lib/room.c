/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/room.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kem/fault.h"
#include "kem/kem.h"

/*
 * A refused mlock (RLIMIT_MEMLOCK) is no reason to refuse service: what remains is
 * DONTDUMP, and the host's policy on swap.
 */
static void *
map(size_t size, enum room_kind kind)
{
	const int mode = PROT_READ | PROT_WRITE;
	void *base;

	/* cppcheck-suppress invalidFunctionArg ; -1 goes with MAP_ANONYMOUS */
	base = mmap(NULL, size, mode, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	if (madvise(base, size, MADV_DONTDUMP) != 0 ||
	    (!fault("client-no-pid-check") &&
		madvise(base, size, MADV_WIPEONFORK) != 0)) {
		munmap(base, size);
		return NULL;
	}
	if (kind == ROOM_SECRET)
		(void)mlock(base, size);
	return base;
}

struct room *
room_new(struct room **list, size_t size, enum room_kind kind)
{
	struct room *room = calloc(1, sizeof(*room));

	if (room == NULL)
		return NULL;
	room->base = map(size, kind);
	if (room->base == NULL) {
		free(room);
		return NULL;
	}
	room->size = size;
	room->next = *list;
	__atomic_store_n(list, room, __ATOMIC_RELEASE);
	return room;
}

void
room_drop(struct room *room)
{
	uint8_t *base = room != NULL ? room->base : NULL;

	if (base == NULL)
		return;
	kem_wipe(base, room->size);
	__atomic_store_n(&room->base, NULL, __ATOMIC_RELEASE);
	munmap(base, room->size);
}

void
room_free_list(struct room **list)
{
	while (*list != NULL) {
		struct room *room = *list;

		*list = room->next;
		room_drop(room);
		free(room);
	}
}

void *
arena_alloc(struct arena *arena, size_t size)
{
	size_t rounded;
	uint8_t *p;

	if (size > arena->size)
		return NULL;
	rounded = (size + 15) & ~(size_t)15;
	if (rounded > arena->size - arena->used)
		return NULL;
	p = arena->base + arena->used;
	arena->used += rounded;
	return memset(p, 0, rounded);
}

void
arena_wipe(struct arena *arena)
{
	kem_wipe(arena->base, arena->used);
	arena->used = 0;
}
