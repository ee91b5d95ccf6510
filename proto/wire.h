/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * wire.h: the frame around mlkemd's protobuf messages, its limits, and the look at a
 * message before it is decoded. Pure functions on the caller's bytes; any thread.
 */
#ifndef MLKEMD_WIRE_H
#define MLKEMD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION          1u
#define WIRE_HEADER_BYTES     4u
#define WIRE_MAX_FRAME_BYTES  (512u * 1024u) /* of the message, header not counted */
#define WIRE_MAX_HELLO_BYTES  4092u /* of a message before Hello is answered OK */
#define WIRE_MAX_ITEMS        64u
#define WIRE_MAX_FIELDS       1024u /* fields of one request, items not counted */
#define WIRE_MAX_KDF_BYTES    (64u * 1024u) /* kdf length x items */
#define WIRE_HANDLE_BYTES     16u
#define WIRE_MAX_CLIENT_NAME  64u
#define WIRE_MAX_MESSAGE_TEXT 200u

/* The length of the message that follows a frame header. Big-endian. */
uint32_t wire_get_length(const uint8_t header[WIRE_HEADER_BYTES]);
void wire_put_length(uint8_t header[WIRE_HEADER_BYTES], uint32_t length);

/* 1 to WIRE_MAX_FRAME_BYTES is a legal length. */
bool wire_length_ok(uint32_t length);

/* What wire_prescan() saw. */
struct wire_prescan {
	uint64_t id;    /* field 1 (the last one, as protobuf has it), 0 if absent */
	uint32_t op;    /* field number of the operation, 0 if none that is known */
	uint32_t n_ops; /* operations present: more than one is INVALID_REQUEST */
	uint32_t
	    n_items; /* elements of the operation's array (shares, items, handles) */
	/*
	 * All other fields, unknown ones and those inside items included. What a
	 * decoder allocates grows with their number, not with the bytes: over
	 * WIRE_MAX_FIELDS is INVALID_REQUEST, undecoded. No honest request has more
	 * than 64 x 3 + 16.
	 */
	uint32_t n_fields;
	/*
	 * kdf of the operation: more than one is INVALID_REQUEST. Protobuf would merge
	 * them, and not every library does so in the same way.
	 */
	uint32_t n_kdfs;
};

enum {
	WIRE_E_MALFORMED = 1, /* not protobuf: closes the connection */
};

/*
 * wire_prescan() walks the tags of a Request without decoding or allocating: so the
 * count of items is known, and odd input refused, before protobuf-c sees a byte. Odd
 * is: a tag of more than 32 bits or field number 0, a varint of more than 64 bits, a
 * group, a field of this schema with another wire type, anything cut short. Unknown
 * fields of later versions are walked over. Nesting is at most two levels below the
 * Request, by the schema. Returns 0, or WIRE_E_MALFORMED.
 */
__attribute__((warn_unused_result)) int wire_prescan(
    const uint8_t *message, size_t len, struct wire_prescan *out);

/*
 * wire_prescan_response() does the same for a Response, for clients: op is the field
 * number of the result, n_items the number of its items. Returns 0, or
 * WIRE_E_MALFORMED.
 */
__attribute__((warn_unused_result)) int wire_prescan_response(
    const uint8_t *message, size_t len, struct wire_prescan *out);

#endif
