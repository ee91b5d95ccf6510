/* SPDX-License-Identifier: Apache-2.0 */
#include "slab.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kem/fault.h"
#include "kem/kem.h"

int
slab_init(struct slab *slab, uint8_t *memory, size_t size)
{
	size_t n = size / SLAB_BLOCK_BYTES;

	*slab = (struct slab){.blocks = calloc(n, sizeof(*slab->blocks))};
	if (!slab->blocks)
		return -ENOMEM;
	TAILQ_INIT(&slab->idle);
	slab->n_blocks = slab->n_idle = (uint32_t)n;
	slab->n_kept = slab->n_blocks / 4;
	for (size_t i = 0; i < n; i++) {
		slab->blocks[i].data = memory + i * SLAB_BLOCK_BYTES;
		TAILQ_INSERT_TAIL(&slab->idle, &slab->blocks[i], next);
	}
	return 0;
}

void
slab_fini(struct slab *slab)
{
	assert(slab->n_idle == slab->n_blocks);
	free(slab->blocks);
	*slab = (struct slab){0};
}

static struct slab_block *
slab_take(struct slab *slab)
{
	struct slab_block *block = TAILQ_FIRST(&slab->idle);

	if (!block)
		return NULL;
	TAILQ_REMOVE(&slab->idle, block, next);
	slab->n_idle--;
	block->start = block->end = 0;
	block->written_us = 0;
	return block;
}

/* The used blocks are used again first: few pages stay warm and resident. */
static void
slab_give(struct slab *slab, struct slab_block *block)
{
	TAILQ_INSERT_HEAD(&slab->idle, block, next);
	slab->n_idle++;
}

static void
block_wipe(struct slab_block *block, size_t len)
{
	if (!fault("conn-no-wipe"))
		kem_wipe(block->data + block->start, len);
}

void
chain_init(struct chain *chain)
{
	*chain = (struct chain){0};
	TAILQ_INIT(&chain->blocks);
}

static struct slab_block *
chain_last(const struct chain *chain)
{
	return TAILQ_LAST(&chain->blocks, slab_block_list);
}

static struct slab_block *
chain_grow(struct chain *chain, struct slab *slab)
{
	struct slab_block *block = slab_take(slab);

	if (block) {
		TAILQ_INSERT_TAIL(&chain->blocks, block, next);
		chain->n_blocks++;
	}
	return block;
}

int
chain_prepare(
    struct chain *chain, struct slab *slab, uint32_t n_blocks, struct iovec *iov)
{
	struct slab_block *last = chain_last(chain);
	int n = 0;

	if (last && last->end < SLAB_BLOCK_BYTES)
		iov[n++] = (struct iovec){
		    last->data + last->end, SLAB_BLOCK_BYTES - last->end};
	while (chain->n_blocks < n_blocks && slab_input_room(slab)) {
		struct slab_block *block = chain_grow(chain, slab);

		iov[n++] = (struct iovec){block->data, SLAB_BLOCK_BYTES};
	}
	return n;
}

void
chain_received(struct chain *chain, struct slab *slab, size_t len, uint64_t now_us)
{
	struct slab_block *block, *next;

	chain->len += len;
	TAILQ_FOREACH(block, &chain->blocks, next) {
		size_t room = SLAB_BLOCK_BYTES - block->end;
		size_t n = len < room ? len : room;

		if (n)
			block->written_us = now_us;
		block->end += (uint32_t)n;
		len -= n;
		if (block->end == block->start)
			break;
	}
	assert(!len);
	/* The rest was not written to: it goes back as it came. */
	for (; block; block = next) {
		next = TAILQ_NEXT(block, next);
		TAILQ_REMOVE(&chain->blocks, block, next);
		chain->n_blocks--;
		slab_give(slab, block);
	}
}

bool
chain_append(struct chain *chain, struct slab *slab, const uint8_t *data, size_t len)
{
	struct slab_block *block = chain_last(chain);

	while (len) {
		size_t room = block ? SLAB_BLOCK_BYTES - block->end : 0;
		size_t n = len < room ? len : room;

		if (!room) {
			block = chain_grow(chain, slab);
			if (!block)
				return false;
			continue;
		}
		memcpy(block->data + block->end, data, n);
		block->end += (uint32_t)n;
		chain->len += n;
		data += n;
		len -= n;
	}
	return true;
}

int
chain_iov(const struct chain *chain, struct iovec *iov, int n_iov)
{
	struct slab_block *block;
	int n = 0;

	TAILQ_FOREACH(block, &chain->blocks, next) {
		if (n == n_iov)
			break;
		iov[n++] = (struct iovec){
		    block->data + block->start, block->end - block->start};
	}
	return n;
}

/* The block in which the byte at *offsetp lies; *offsetp becomes the offset in it. */
static struct slab_block *
chain_find(const struct chain *chain, size_t *offsetp)
{
	struct slab_block *block;

	TAILQ_FOREACH(block, &chain->blocks, next) {
		size_t n = block->end - block->start;

		if (*offsetp < n)
			break;
		*offsetp -= n;
	}
	return block;
}

void
chain_copy(const struct chain *chain, size_t offset, uint8_t *out, size_t len)
{
	struct slab_block *block = chain_find(chain, &offset);

	while (len) {
		assert(block);
		size_t room = block->end - block->start - offset;
		size_t n = len < room ? len : room;

		memcpy(out, block->data + block->start + offset, n);
		out += n;
		len -= n;
		offset = 0;
		block = TAILQ_NEXT(block, next);
	}
}

const uint8_t *
chain_contiguous(const struct chain *chain, size_t offset, size_t len)
{
	struct slab_block *block = chain_find(chain, &offset);

	if (!block || block->end - block->start - offset < len)
		return NULL;
	return block->data + block->start + offset;
}

uint64_t
chain_written_us(const struct chain *chain, size_t offset)
{
	struct slab_block *block;

	offset--;
	block = chain_find(chain, &offset);
	return block ? block->written_us : 0;
}

void
chain_drain(struct chain *chain, struct slab *slab, size_t len)
{
	assert(len <= chain->len);
	chain->len -= len;
	while (len) {
		struct slab_block *block = TAILQ_FIRST(&chain->blocks);
		size_t used = block->end - block->start;
		size_t n = len < used ? len : used;

		block_wipe(block, n);
		block->start += (uint32_t)n;
		len -= n;
		if (n < used)
			break;
		TAILQ_REMOVE(&chain->blocks, block, next);
		chain->n_blocks--;
		slab_give(slab, block);
	}
}
