/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "proto/wire.h"

#include <string.h>

uint32_t
wire_get_length(const uint8_t header[WIRE_HEADER_BYTES])
{
	return (uint32_t)header[0] << 24 | (uint32_t)header[1] << 16 |
	       (uint32_t)header[2] << 8 | header[3];
}

void
wire_put_length(uint8_t header[WIRE_HEADER_BYTES], uint32_t length)
{
	header[0] = (uint8_t)(length >> 24);
	header[1] = (uint8_t)(length >> 16);
	header[2] = (uint8_t)(length >> 8);
	header[3] = (uint8_t)length;
}

bool
wire_length_ok(uint32_t length)
{
	return length >= 1 && length <= WIRE_MAX_FRAME_BYTES;
}

/* Wire types of protobuf. Groups (3, 4) are no part of proto3. */
enum { TYPE_VARINT = 0, TYPE_64BIT = 1, TYPE_BYTES = 2, TYPE_32BIT = 5 };

/*
 * The schema as far as the walk needs it. A message is a list of its fields, ended by
 * number 0; a field with a child is a message of that shape.
 */
struct shape_field {
	uint32_t number;
	uint8_t type;
	bool item; /* an element of the operation's array */
	bool op;   /* a member of the oneof */
	bool id;   /* whose value is told */
	bool kdf;
	const struct shape_field *child;
};

/* clang-format off */
static const struct shape_field shape_empty[] = { { 0 } };

static const struct shape_field shape_kdf[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_BYTES },
	{ .number = 3, .type = TYPE_BYTES },
	{ .number = 4, .type = TYPE_VARINT },
	{ 0 },
};

static const struct shape_field shape_hello[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_VARINT },
	{ .number = 3, .type = TYPE_BYTES },
	{ .number = 4, .type = TYPE_VARINT },
	{ .number = 5, .type = TYPE_VARINT },
	{ .number = 6, .type = TYPE_VARINT },
	{ 0 },
};

static const struct shape_field shape_generate_keys[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_VARINT },
	{ .number = 3, .type = TYPE_VARINT },
	{ 0 },
};

static const struct shape_field shape_encapsulate[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_BYTES, .item = true },
	{ .number = 3, .type = TYPE_BYTES, .kdf = true, .child = shape_kdf },
	{ 0 },
};

static const struct shape_field shape_decapsulate_item[] = {
	{ .number = 1, .type = TYPE_BYTES },
	{ .number = 2, .type = TYPE_BYTES },
	{ .number = 3, .type = TYPE_BYTES },
	{ 0 },
};

static const struct shape_field shape_decapsulate[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_BYTES, .item = true,
	    .child = shape_decapsulate_item },
	{ .number = 3, .type = TYPE_BYTES, .kdf = true, .child = shape_kdf },
	{ 0 },
};

static const struct shape_field shape_release[] = {
	{ .number = 1, .type = TYPE_BYTES, .item = true },
	{ 0 },
};

static const struct shape_field shape_cancel[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ 0 },
};

static const struct shape_field shape_request[] = {
	{ .number = 1, .type = TYPE_VARINT, .id = true },
	{ .number = 2, .type = TYPE_VARINT },
	{ .number = 10, .type = TYPE_BYTES, .op = true, .child = shape_hello },
	{ .number = 11, .type = TYPE_BYTES, .op = true, .child = shape_empty },
	{ .number = 12, .type = TYPE_BYTES, .op = true, .child = shape_empty },
	{ .number = 20, .type = TYPE_BYTES, .op = true, .child = shape_generate_keys },
	{ .number = 21, .type = TYPE_BYTES, .op = true, .child = shape_encapsulate },
	{ .number = 22, .type = TYPE_BYTES, .op = true, .child = shape_decapsulate },
	{ .number = 23, .type = TYPE_BYTES, .op = true, .child = shape_release },
	{ .number = 24, .type = TYPE_BYTES, .op = true, .child = shape_cancel },
	{ .number = 40, .type = TYPE_BYTES, .op = true, .child = shape_empty },
	{ .number = 41, .type = TYPE_BYTES, .op = true, .child = shape_empty },
	{ .number = 42, .type = TYPE_BYTES, .op = true, .child = shape_empty },
	{ .number = 43, .type = TYPE_BYTES, .op = true, .child = shape_empty },
	{ .number = 44, .type = TYPE_BYTES, .op = true, .child = shape_empty },
	{ 0 },
};

static const struct shape_field shape_load[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_VARINT },
	{ .number = 3, .type = TYPE_VARINT },
	{ 0 },
};

static const struct shape_field shape_limits[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_VARINT },
	{ .number = 3, .type = TYPE_VARINT },
	{ .number = 4, .type = TYPE_VARINT },
	{ .number = 5, .type = TYPE_VARINT },
	{ .number = 6, .type = TYPE_VARINT },
	{ .number = 7, .type = TYPE_VARINT },
	{ 0 },
};

/* algorithms (repeated enum) may come packed or not: its type is left to protobuf-c. */
static const struct shape_field shape_hello_result[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_BYTES },
	{ .number = 3, .type = TYPE_VARINT },
	{ .number = 4, .type = TYPE_BYTES },
	{ .number = 6, .type = TYPE_BYTES, .child = shape_limits },
	{ 0 },
};

static const struct shape_field shape_info_result[] = {
	{ .number = 1, .type = TYPE_BYTES },
	{ .number = 2, .type = TYPE_BYTES },
	{ .number = 3, .type = TYPE_VARINT },
	{ .number = 4, .type = TYPE_BYTES },
	{ .number = 6, .type = TYPE_BYTES, .child = shape_limits },
	{ .number = 7, .type = TYPE_VARINT },
	{ .number = 8, .type = TYPE_VARINT },
	{ .number = 9, .type = TYPE_VARINT },
	{ .number = 10, .type = TYPE_VARINT },
	{ .number = 11, .type = TYPE_VARINT },
	{ .number = 12, .type = TYPE_VARINT },
	{ 0 },
};

static const struct shape_field shape_key_item[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_BYTES },
	{ .number = 3, .type = TYPE_BYTES },
	{ .number = 4, .type = TYPE_BYTES },
	{ .number = 5, .type = TYPE_BYTES },
	{ 0 },
};

static const struct shape_field shape_keys_result[] = {
	{ .number = 1, .type = TYPE_BYTES, .item = true, .child = shape_key_item },
	{ 0 },
};

static const struct shape_field shape_encapsulated_item[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_BYTES },
	{ .number = 3, .type = TYPE_BYTES },
	{ .number = 4, .type = TYPE_BYTES },
	{ 0 },
};

static const struct shape_field shape_encapsulated_result[] = {
	{ .number = 1, .type = TYPE_BYTES, .item = true,
	    .child = shape_encapsulated_item },
	{ 0 },
};

static const struct shape_field shape_decapsulated_item[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_BYTES },
	{ .number = 3, .type = TYPE_BYTES },
	{ 0 },
};

static const struct shape_field shape_decapsulated_result[] = {
	{ .number = 1, .type = TYPE_BYTES, .item = true,
	    .child = shape_decapsulated_item },
	{ 0 },
};

static const struct shape_field shape_release_result[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ 0 },
};

static const struct shape_field shape_counter[] = {
	{ .number = 1, .type = TYPE_BYTES },
	{ .number = 2, .type = TYPE_VARINT },
	{ 0 },
};

static const struct shape_field shape_stats_result[] = {
	{ .number = 1, .type = TYPE_BYTES, .item = true, .child = shape_counter },
	{ 0 },
};

static const struct shape_field shape_self_test_result[] = {
	{ .number = 1, .type = TYPE_VARINT },
	{ .number = 2, .type = TYPE_BYTES },
	{ .number = 3, .type = TYPE_BYTES },
	{ 0 },
};

static const struct shape_field shape_response[] = {
	{ .number = 1, .type = TYPE_VARINT, .id = true },
	{ .number = 2, .type = TYPE_VARINT },
	{ .number = 3, .type = TYPE_BYTES },
	{ .number = 4, .type = TYPE_BYTES, .child = shape_load },
	{ .number = 10, .type = TYPE_BYTES, .op = true, .child = shape_hello_result },
	{ .number = 12, .type = TYPE_BYTES, .op = true, .child = shape_info_result },
	{ .number = 20, .type = TYPE_BYTES, .op = true, .child = shape_keys_result },
	{ .number = 21, .type = TYPE_BYTES, .op = true,
	    .child = shape_encapsulated_result },
	{ .number = 22, .type = TYPE_BYTES, .op = true,
	    .child = shape_decapsulated_result },
	{ .number = 23, .type = TYPE_BYTES, .op = true, .child = shape_release_result },
	{ .number = 40, .type = TYPE_BYTES, .op = true, .child = shape_stats_result },
	{ .number = 44, .type = TYPE_BYTES, .op = true,
	    .child = shape_self_test_result },
	{ 0 },
};
/* clang-format on */

struct cursor {
	const uint8_t *p, *end;
};

struct field {
	uint32_t number;
	uint32_t type;
	uint64_t value;      /* of a varint */
	const uint8_t *data; /* of bytes */
	size_t len;
};

/*
 * At most max_bits bits: 32 for tags and lengths, 64 for values. protobuf-c shifts what
 * is beyond (undefined) or drops it; here it is refused. Zero bytes of padding within
 * the width are legal protobuf.
 */
static int
varint_take(struct cursor *cur, unsigned max_bits, uint64_t *valuep)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < max_bits; shift += 7) {
		uint64_t bits;

		if (cur->p == cur->end)
			return WIRE_E_MALFORMED;
		bits = *cur->p & 0x7fu;
		if (shift + 7 > max_bits && bits >> (max_bits - shift) != 0)
			return WIRE_E_MALFORMED;
		value |= bits << shift;
		if ((*cur->p++ & 0x80u) == 0) {
			*valuep = value;
			return 0;
		}
	}
	return WIRE_E_MALFORMED;
}

static int
field_take(struct cursor *cur, struct field *field)
{
	uint64_t tag, len = 0;

	if (varint_take(cur, 32, &tag) != 0)
		return WIRE_E_MALFORMED;
	field->number = (uint32_t)(tag >> 3);
	field->type = tag & 7u;
	if (field->number == 0)
		return WIRE_E_MALFORMED;

	switch (field->type) {
	case TYPE_VARINT:
		return varint_take(cur, 64, &field->value);
	case TYPE_64BIT:
		len = 8;
		break;
	case TYPE_32BIT:
		len = 4;
		break;
	case TYPE_BYTES:
		if (varint_take(cur, 32, &len) != 0)
			return WIRE_E_MALFORMED;
		break;
	default:
		return WIRE_E_MALFORMED;
	}

	if (len > (size_t)(cur->end - cur->p))
		return WIRE_E_MALFORMED;
	field->data = cur->p;
	field->len = len;
	cur->p += len;
	return 0;
}

/* Goes as deep as the shapes do, which is three levels; never by the input alone. */
static int
shape_walk(const struct shape_field *shape, const uint8_t *data, size_t len,
    struct wire_prescan *out)
{
	struct cursor cur = {data, data + len};

	while (cur.p != cur.end) {
		const struct shape_field *known = shape;
		struct field field = {0};

		if (field_take(&cur, &field) != 0)
			return WIRE_E_MALFORMED;
		while (known->number != 0 && known->number != field.number)
			known++;
		if (known->number != 0 && known->type != field.type)
			return WIRE_E_MALFORMED;

		if (known->op) {
			out->op = field.number;
			out->n_ops++;
		}
		if (known->item)
			out->n_items++;
		else
			out->n_fields++;
		if (known->kdf)
			out->n_kdfs++;
		if (known->id)
			out->id = field.value;

		if (known->child != NULL &&
		    shape_walk(known->child, field.data, field.len, out) != 0)
			return WIRE_E_MALFORMED;
	}
	return 0;
}

static int
prescan(const struct shape_field *shape, const uint8_t *message, size_t len,
    struct wire_prescan *out)
{
	memset(out, 0, sizeof(*out));
	if (shape_walk(shape, message, len, out) != 0) {
		memset(out, 0, sizeof(*out));
		return WIRE_E_MALFORMED;
	}
	return 0;
}

int
wire_prescan(const uint8_t *message, size_t len, struct wire_prescan *out)
{
	return prescan(shape_request, message, len, out);
}

int
wire_prescan_response(const uint8_t *message, size_t len, struct wire_prescan *out)
{
	return prescan(shape_response, message, len, out);
}
