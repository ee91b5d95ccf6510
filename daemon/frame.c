/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include "proto/wire.h"

enum frame_state
frame_peek(const struct chain *chain, size_t max_message, size_t *sizep)
{
	uint8_t header[WIRE_HEADER_BYTES];
	uint32_t length;

	*sizep = 0;
	if (!chain->len)
		return FRAME_NONE;
	if (chain->len < sizeof(header))
		return FRAME_PARTIAL;
	chain_copy(chain, 0, header, sizeof(header));
	length = wire_get_length(header);
	if (!wire_length_ok(length) || length > max_message)
		return FRAME_BROKEN;
	*sizep = sizeof(header) + (size_t)length;
	return chain->len < *sizep ? FRAME_PARTIAL : FRAME_WHOLE;
}

const uint8_t *
frame_message(const struct chain *chain, size_t frame_size, struct mem *mem)
{
	size_t len = frame_size - WIRE_HEADER_BYTES;
	const uint8_t *in_place = chain_contiguous(chain, WIRE_HEADER_BYTES, len);
	uint8_t *staged;

	if (in_place)
		return in_place;
	staged = mem_stage(mem, len);
	if (staged)
		chain_copy(chain, WIRE_HEADER_BYTES, staged, len);
	return staged;
}
