/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h: where a frame begins and ends in a chain of received bytes (proto/wire.h has
 * its shape). Pure functions on the chain.
 */
#ifndef MLKEMD_FRAME_H
#define MLKEMD_FRAME_H

#include "mem.h"
#include "slab.h"

enum frame_state {
	FRAME_NONE,    /* no byte */
	FRAME_PARTIAL, /* some bytes of one */
	FRAME_WHOLE,   /* at least one, with all its bytes */
	FRAME_BROKEN,  /* its length is 0 or over the limit */
};

/*
 * What stands at the front of the chain. *sizep is the frame's size, header included, if
 * the header is there and legal (PARTIAL, WHOLE), else 0.
 */
enum frame_state frame_peek(
    const struct chain *chain, size_t max_message, size_t *sizep);

/*
 * The message of the whole frame at the front: in place if it lies in one block, else
 * staged in mem. NULL if mem has no room.
 */
const uint8_t *frame_message(
    const struct chain *chain, size_t frame_size, struct mem *mem);

#endif
