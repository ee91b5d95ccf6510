/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guarded.h: buffers that end where their memory ends: a byte read or written behind
 * them stops the program. What lies before them is CANARY, and looked at.
 */
#ifndef MLKEMD_TESTS_GUARDED_H
#define MLKEMD_TESTS_GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUARDED_BYTES  8192 /* of one, at most */
#define GUARDED_CANARY 0xc5

struct guarded {
	uint8_t *memory; /* GUARDED_BYTES, no pages before and behind */
	uint8_t *p;      /* the buffer */
	size_t len;
};

/* Maps it; never unmapped. */
void guarded_init(struct guarded *guarded);

/* len bytes that end `slack` bytes before the end of the memory. */
uint8_t *guarded_place(struct guarded *guarded, size_t len, size_t slack);

/* The bytes before the buffer, and in the slack, are as they were. */
bool guarded_is_intact(const struct guarded *guarded);

#endif
