/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h: protobuf written by hand, for what no library would write, and codec memory
 * to decode it in.
 */
#ifndef MLKEMD_MESSAGE_H
#define MLKEMD_MESSAGE_H

#include "proto/wire.h"
#include "rig.h"

#define MESSAGE_ARRIVED_US 1000000u
#define MESSAGE_DEFAULT_US 5000u

struct message {
	uint8_t data[WIRE_MAX_FRAME_BYTES];
	size_t len;
};

void message_put(struct message *to, const void *data, size_t len);
void message_put_varint(struct message *to, uint64_t value);
void message_put_number(struct message *to, uint32_t field, uint64_t value);
void message_put_bytes(
    struct message *to, uint32_t field, const void *data, size_t len);

/* Codec memory of its own; a checked fixture. */
extern struct mem message_mem;
void message_setup(void);
void message_teardown(void);

/* codec_decode() from where the daemon would have staged the message. */
int message_decode_raw(const void *data, size_t len, struct request **reqp);
struct request *message_decode(const struct message *from); /* asserts success */

#endif
