/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h: codec memory: one bump allocator with a hard end, in the shard's arena. All
 * that a request needs for its turn lies in it, and it is wiped when the turn ends.
 * Shard thread only (the control socket has one of its own).
 */
#ifndef MLKEMD_MEM_H
#define MLKEMD_MEM_H

#include <stddef.h>
#include <stdint.h>

/*
 * Allocations grow from the front; a message that must be made contiguous before it is
 * decoded is staged at the back. The memory is all zero wherever nothing lies.
 */
struct mem {
	uint8_t *base; /* 16-aligned */
	size_t size, used;
	size_t staged; /* bytes in use at the back */
};

/* base is size bytes of zeros, 16-aligned, and stays the caller's. */
void mem_init(struct mem *mem, uint8_t *base, size_t size);

/* size bytes, 16-aligned, zero; NULL when there is no room. */
void *mem_alloc(struct mem *mem, size_t size);

/* Bytes that mem_alloc() could still give. */
size_t mem_room(const struct mem *mem);

/*
 * len bytes at the back in which conn puts together the pieces of one message. Valid
 * until codec_decode() has returned (which gives them back) or mem_unstage(). NULL when
 * there is no room. One at a time.
 */
uint8_t *mem_stage(struct mem *mem, size_t len);
void mem_unstage(struct mem *mem); /* wipes it; nothing staged is fine */

/* Gives back, wiped, all that was allocated since used was mark. */
void mem_rewind(struct mem *mem, size_t mark);

/* The turn is over: wipes what was used and begins anew. */
void mem_wipe(struct mem *mem);

#endif
