/* SPDX-License-Identifier: Apache-2.0 */
#include "guarded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 65536 /* of any system that we know, or a multiple of it */

void
guarded_init(struct guarded *guarded)
{
	size_t len = PAGE_BYTES + 2 * PAGE_BYTES;
	uint8_t *p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED ||
	    mprotect(p + PAGE_BYTES, PAGE_BYTES, PROT_READ | PROT_WRITE) != 0) {
		perror("guarded");
		abort();
	}
	guarded->memory = p + 2 * PAGE_BYTES - GUARDED_BYTES;
	guarded_place(guarded, 0, 0);
}

uint8_t *
guarded_place(struct guarded *guarded, size_t len, size_t slack)
{
	memset(guarded->memory, GUARDED_CANARY, GUARDED_BYTES);
	guarded->len = len;
	guarded->p = guarded->memory + GUARDED_BYTES - slack - len;
	return guarded->p;
}

bool
guarded_is_intact(const struct guarded *guarded)
{
	for (size_t i = 0; i < GUARDED_BYTES; i++) {
		const uint8_t *p = guarded->memory + i;

		if (p >= guarded->p && p < guarded->p + guarded->len)
			continue;
		if (*p != GUARDED_CANARY)
			return false;
	}
	return true;
}
