/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of received bytes to whole messages: chains of slab blocks, frame borders, and
 * the look at a message before it is decoded. The first byte says in what pieces the
 * rest arrives. Whatever the pieces, the frames are those of the whole.
 */
#include "daemon/frame.h"
#include "proto/wire.h"
#include "target.h"

#define SLAB_BYTES     (1536u * 1024u)
#define IOV_MAX_BLOCKS 160 /* hold the largest frame */
#define MEM_BYTES      (1280u * 1024u)

static uint8_t *slab_memory, *mem_memory;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	slab_memory = aligned_alloc(4096, SLAB_BYTES);
	mem_memory = aligned_alloc(64, MEM_BYTES);
	if (!slab_memory || !mem_memory)
		return 1;
	memset(mem_memory, 0, MEM_BYTES);
	memset(slab_memory, 0, SLAB_BYTES);
	return 0;
}

/* Puts a piece at the chain's end, as recv would. */
static size_t
piece_receive(struct chain *chain, struct slab *slab, const uint8_t *data, size_t size)
{
	struct iovec iov[IOV_MAX_BLOCKS];
	size_t at = 0;
	uint32_t n_blocks = chain->n_blocks + (uint32_t)(size / SLAB_BLOCK_BYTES) + 2;
	int n = chain_prepare(
	    chain, slab, n_blocks < IOV_MAX_BLOCKS ? n_blocks : IOV_MAX_BLOCKS, iov);

	for (int i = 0; i < n && at < size; i++) {
		size_t part = size - at < iov[i].iov_len ? size - at : iov[i].iov_len;

		memcpy(iov[i].iov_base, data + at, part);
		at += part;
	}
	if (n)
		chain_received(chain, slab, at, 1);
	return at;
}

/* Takes whole frames off; checks each against the flat input. Returns bytes taken. */
static size_t
frames_take(struct chain *chain, struct slab *slab, struct mem *mem,
    const uint8_t *flat, bool *brokenp)
{
	size_t taken = 0, size;
	enum frame_state state;

	while (
	    (state = frame_peek(chain, WIRE_MAX_FRAME_BYTES, &size)) == FRAME_WHOLE) {
		const uint8_t *message = frame_message(chain, size, mem);
		struct wire_prescan prescan;

		fuzz_require(message);
		fuzz_require(size > WIRE_HEADER_BYTES && size <= chain->len);
		fuzz_require(size - WIRE_HEADER_BYTES == wire_get_length(flat + taken));
		fuzz_require(!memcmp(message, flat + taken + WIRE_HEADER_BYTES,
		    size - WIRE_HEADER_BYTES));
		if (!wire_prescan(message, size - WIRE_HEADER_BYTES, &prescan))
			fuzz_point(prescan.n_items > 1 ? "frame-items" : "frame-whole");
		mem_unstage(mem);
		chain_drain(chain, slab, size);
		taken += size;
	}
	*brokenp = state == FRAME_BROKEN;
	if (*brokenp)
		fuzz_point("frame-broken");
	return taken;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slab slab = {0};
	struct chain chain;
	struct mem mem;
	bool broken = false;

	if (size < 1)
		return 0;
	size_t piece = data[0] ? data[0] : 4096;
	data++, size--;
	fuzz_require(!slab_init(&slab, slab_memory, SLAB_BYTES));
	mem_init(&mem, mem_memory, MEM_BYTES);
	chain_init(&chain);
	for (size_t at = 0, taken = 0; at < size && !broken;) {
		size_t want = size - at < piece ? size - at : piece;
		size_t got = piece_receive(&chain, &slab, data + at, want);

		fuzz_require(got > 0);
		at += got;
		taken += frames_take(&chain, &slab, &mem, data + taken, &broken);
		fuzz_require(taken + chain.len == at);
	}
	chain_drain(&chain, &slab, chain.len);
	fuzz_require(slab.n_idle == slab.n_blocks);
	slab_fini(&slab);
	mem_wipe(&mem);
	return 0;
}
