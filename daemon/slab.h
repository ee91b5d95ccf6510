/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab.h: the buffers of all connections of one thread: a fixed number of 4 KiB blocks,
 * in the arena, and chains of them. Bytes are wiped as they leave a chain. What input may
 * take ends before the last quarter, which is kept for answers.
 */
#ifndef MLKEMD_SLAB_H
#define MLKEMD_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#define SLAB_BLOCK_BYTES 4096u

struct slab_block {
	uint8_t *data;       /* SLAB_BLOCK_BYTES in the arena */
	uint32_t start, end; /* the bytes in use */
	uint64_t written_us; /* when its last byte was read from a socket */
	TAILQ_ENTRY(slab_block) next;
};

TAILQ_HEAD(slab_block_list, slab_block);

struct slab {
	struct slab_block *blocks; /* heads only; the heap */
	struct slab_block_list idle;
	uint32_t n_blocks, n_idle;
	uint32_t n_kept; /* not for input */
};

/* memory is size bytes and stays the caller's. Returns 0, or -ENOMEM. */
__attribute__((warn_unused_result)) int slab_init(
    struct slab *slab, uint8_t *memory, size_t size);
void slab_fini(struct slab *slab);

/* Blocks that input could still take. */
static inline uint32_t
slab_input_room(const struct slab *slab)
{
	return slab->n_idle > slab->n_kept ? slab->n_idle - slab->n_kept : 0;
}

/* Bytes in order. All zero is an empty chain but for its list: use chain_init(). */
struct chain {
	struct slab_block_list blocks;
	size_t len;
	uint32_t n_blocks;
};

void chain_init(struct chain *chain);

/*
 * Room for input: up to n_blocks in use in all, put behind the chain's end and described
 * by iov (which has place for n_blocks). Returns the number of entries; 0 if there is
 * none. chain_received() must follow, with what was read.
 */
int chain_prepare(
    struct chain *chain, struct slab *slab, uint32_t n_blocks, struct iovec *iov);
void chain_received(
    struct chain *chain, struct slab *slab, size_t len, uint64_t now_us);

/* Adds bytes, from the blocks kept for answers too. False: the slab is used up. */
bool chain_append(
    struct chain *chain, struct slab *slab, const uint8_t *data, size_t len);

/* Describes what is in the chain, from its front. Returns the number of entries. */
int chain_iov(const struct chain *chain, struct iovec *iov, int n_iov);

/* Copies len bytes from offset on; they must be there. */
void chain_copy(const struct chain *chain, size_t offset, uint8_t *out, size_t len);

/* The len bytes from offset on if they lie in one block, else NULL. */
const uint8_t *chain_contiguous(const struct chain *chain, size_t offset, size_t len);

/* When the byte before offset was read. */
uint64_t chain_written_us(const struct chain *chain, size_t offset);

/* Takes len bytes off the front and wipes them. */
void chain_drain(struct chain *chain, struct slab *slab, size_t len);

#endif
