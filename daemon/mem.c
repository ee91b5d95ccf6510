/* SPDX-License-Identifier: Apache-2.0 */
#include "mem.h"

#include <assert.h>
#include <string.h>

#include "kem/fault.h"
#include "kem/kem.h"

#define MEM_ALIGN 16u

void
mem_init(struct mem *mem, uint8_t *base, size_t size)
{
	assert((uintptr_t)base % MEM_ALIGN == 0);
	*mem = (struct mem){.base = base, .size = size - size % MEM_ALIGN};
}

size_t
mem_room(const struct mem *mem)
{
	return mem->size - mem->staged - mem->used;
}

void *
mem_alloc(struct mem *mem, size_t size)
{
	uint8_t *p = mem->base + mem->used;

	/* The room is a multiple of the alignment, so that rounding up can't pass it. */
	if (size > mem_room(mem))
		return NULL;
	mem->used += (size + MEM_ALIGN - 1) & ~(size_t)(MEM_ALIGN - 1);
	if (fault("codec-no-wipe"))
		memset(p, 0, size); /* what lies behind is what the fault is about */
	return p;
}

uint8_t *
mem_stage(struct mem *mem, size_t len)
{
	size_t rounded;

	assert(mem->staged == 0);
	if (len > mem_room(mem))
		return NULL;
	rounded = (len + MEM_ALIGN - 1) & ~(size_t)(MEM_ALIGN - 1);
	mem->staged = rounded;
	return mem->base + mem->size - rounded;
}

void
mem_unstage(struct mem *mem)
{
	if (!fault("codec-no-unstage-wipe"))
		kem_wipe(mem->base + mem->size - mem->staged, mem->staged);
	mem->staged = 0;
}

void
mem_rewind(struct mem *mem, size_t mark)
{
	assert(mark <= mem->used);
	kem_wipe(mem->base + mark, mem->used - mark);
	mem->used = mark;
}

void
mem_wipe(struct mem *mem)
{
	mem_unstage(mem);
	if (!fault("codec-no-wipe"))
		kem_wipe(mem->base, mem->used);
	mem->used = 0;
}
