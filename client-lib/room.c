/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>
#include <sys/mman.h>

#include "client-lib/client.h"

/*
 * A refused mlock (RLIMIT_MEMLOCK) is no reason to refuse service: what remains is
 * DONTDUMP, and the host's policy on swap.
 */
int
room_map(struct room *room, size_t size)
{
	const int mode = PROT_READ | PROT_WRITE;
	void *base;

	/* cppcheck-suppress invalidFunctionArg ; -1 goes with MAP_ANONYMOUS */
	base = mmap(NULL, size, mode, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return MLKEMCLIENT_E_INTERNAL;
	if (madvise(base, size, MADV_DONTDUMP) != 0 ||
	    madvise(base, size, MADV_WIPEONFORK) != 0) {
		munmap(base, size);
		return MLKEMCLIENT_E_INTERNAL;
	}
	room->base = base;
	room->size = size;
	room_relock(room);
	return 0;
}

void
room_relock(struct room *room)
{
	if (room->base != NULL)
		(void)mlock(room->base, room->size);
}

void
room_unmap(struct room *room)
{
	if (room->base == NULL)
		return;
	kem_wipe(room->base, room->size);
	munmap(room->base, room->size);
	memset(room, 0, sizeof(*room));
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
