/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <string.h>

struct mem message_mem;
static struct secmem message_secmem;

void
message_setup(void)
{
	ck_assert_int_eq(secmem_init(&message_secmem, CODEC_MEM_BYTES, SECMEM_OFF), 0);
	mem_init(&message_mem, secmem_carve(&message_secmem, CODEC_MEM_BYTES),
	    CODEC_MEM_BYTES);
}

void
message_teardown(void)
{
	rig_fault(NULL);
	secmem_fini(&message_secmem);
}

void
message_put(struct message *to, const void *data, size_t len)
{
	ck_assert_uint_le(to->len + len, sizeof(to->data));
	if (len > 0)
		memcpy(to->data + to->len, data, len);
	to->len += len;
}

void
message_put_varint(struct message *to, uint64_t value)
{
	do {
		uint8_t byte = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);

		message_put(to, &byte, 1);
		value >>= 7;
	} while (value != 0);
}

void
message_put_number(struct message *to, uint32_t field, uint64_t value)
{
	message_put_varint(to, (uint64_t)field << 3);
	message_put_varint(to, value);
}

void
message_put_bytes(struct message *to, uint32_t field, const void *data, size_t len)
{
	message_put_varint(to, (uint64_t)field << 3 | 2);
	message_put_varint(to, len);
	message_put(to, data, len);
}

/* Decodes a message from where the daemon would have staged it. */
int
message_decode_raw(const void *data, size_t len, struct request **reqp)
{
	uint8_t *staged = mem_stage(&message_mem, len);

	ck_assert_ptr_nonnull(staged);
	if (len > 0)
		memcpy(staged, data, len);
	return codec_decode(
	    &message_mem, staged, len, MESSAGE_ARRIVED_US, MESSAGE_DEFAULT_US, reqp);
}

struct request *
message_decode(const struct message *from)
{
	struct request *req = NULL;

	ck_assert_int_eq(message_decode_raw(from->data, from->len, &req), 0);
	ck_assert_ptr_nonnull(req);
	ck_assert_uint_eq(message_mem.staged, 0);
	return req;
}
