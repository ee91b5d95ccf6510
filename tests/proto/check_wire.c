/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "mlkemd.pb-c.h"
#include "proto/wire.h"

/* A message under construction. */
struct bytes {
	uint8_t data[16384];
	size_t len;
};

static void
put_varint(struct bytes *b, uint64_t value)
{
	while (value >= 0x80) {
		b->data[b->len++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	b->data[b->len++] = (uint8_t)value;
}

static void
put_field(struct bytes *b, uint32_t number, unsigned type)
{
	put_varint(b, (uint64_t)number << 3 | type);
}

static void
put_bytes(struct bytes *b, uint32_t number, const void *data, size_t len)
{
	put_field(b, number, 2);
	put_varint(b, len);
	if (len != 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
}

/* Exactly as long as the message, so that a step beyond its end is seen. */
static int
scan(const struct bytes *b, struct wire_prescan *out)
{
	uint8_t *exact = malloc(b->len != 0 ? b->len : 1);
	int err;

	ck_assert_ptr_nonnull(exact);
	memcpy(exact, b->data, b->len);
	err = wire_prescan(exact, b->len, out);
	free(exact);
	return err;
}

static int
scan_raw(const char *raw, size_t len, struct wire_prescan *out)
{
	struct bytes b = {.len = len};

	memcpy(b.data, raw, len);
	return scan(&b, out);
}

#define SCAN_LITERAL(s, out) scan_raw(s, sizeof(s) - 1, out)

START_TEST(length_is_big_endian)
{
	const uint8_t header[4] = {0x01, 0x02, 0x03, 0x04};
	uint8_t out[4];

	ck_assert_uint_eq(wire_get_length(header), 0x01020304u);
	wire_put_length(out, 0xfffefdfcu);
	ck_assert_uint_eq(out[0], 0xff);
	ck_assert_uint_eq(out[3], 0xfc);
	ck_assert_uint_eq(wire_get_length(out), 0xfffefdfcu);
}
END_TEST

START_TEST(length_limits)
{
	static const uint32_t bad[] = {0, WIRE_MAX_FRAME_BYTES + 1, 0x7fffffffu,
	    0x80000000u, 0xfffffffbu, 0xfffffffcu, 0xffffffffu};

	ck_assert(wire_length_ok(1));
	ck_assert(wire_length_ok(WIRE_MAX_FRAME_BYTES));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!wire_length_ok(bad[i]), "%u passes", bad[i]);
}
END_TEST

START_TEST(counts_items_and_operations)
{
	struct bytes request = {.len = 0}, op = {.len = 0};
	struct wire_prescan seen;

	put_field(&op, 1, 0);
	put_varint(&op, 4588);
	for (int i = 0; i < 65; i++)
		put_bytes(&op, 2, "share", 5);
	put_field(&request, 1, 0);
	put_varint(&request, 7);
	put_bytes(&request, 21, op.data, op.len);
	put_field(&request, 1, 0);
	put_varint(&request, UINT64_MAX);

	ck_assert_int_eq(scan(&request, &seen), 0);
	ck_assert_uint_eq(seen.id, UINT64_MAX);
	ck_assert_uint_eq(seen.op, 21);
	ck_assert_uint_eq(seen.n_ops, 1);
	ck_assert_uint_eq(seen.n_items, 65);
	ck_assert_uint_eq(seen.n_fields, 4);

	put_bytes(&request, 21, op.data, op.len);
	put_bytes(&request, 11, "", 0);
	ck_assert_int_eq(scan(&request, &seen), 0);
	ck_assert_uint_eq(seen.n_ops, 3);
	ck_assert_uint_eq(seen.op, 11);
	ck_assert_uint_eq(seen.n_items, 130);
}
END_TEST

START_TEST(counts_fields_inside_items)
{
	struct bytes request = {.len = 0}, op = {.len = 0}, item = {.len = 0};
	struct wire_prescan seen;

	for (int i = 0; i < 100; i++)
		put_bytes(&item, 1, "h", 1);
	put_bytes(&op, 2, item.data, item.len);
	put_bytes(&op, 2, "", 0);
	put_bytes(&request, 22, op.data, op.len);
	ck_assert_int_eq(scan(&request, &seen), 0);
	ck_assert_uint_eq(seen.n_items, 2);
	ck_assert_uint_eq(seen.n_fields, 101);
}
END_TEST

START_TEST(walks_over_unknown_fields)
{
	struct bytes request = {.len = 0};
	struct wire_prescan seen;

	put_field(&request, 99, 0);
	put_varint(&request, UINT64_MAX);
	put_field(&request, 536870911, 1);
	memset(request.data + request.len, 0xff, 8);
	request.len += 8;
	put_bytes(&request, 100, "\xff\xff\xff", 3);
	put_field(&request, 101, 5);
	memset(request.data + request.len, 0xff, 4);
	request.len += 4;
	put_bytes(&request, 11, "", 0);
	ck_assert_int_eq(scan(&request, &seen), 0);
	ck_assert_uint_eq(seen.op, 11);
	ck_assert_uint_eq(seen.n_ops, 1);
	ck_assert_uint_eq(seen.n_fields, 5);
}
END_TEST

START_TEST(takes_padded_varints_within_their_width)
{
	struct wire_prescan seen;

	/* id 1 as tag 88 80 00 and value 81 80 80 80 80 80 80 80 80 00 */
	ck_assert_int_eq(
	    SCAN_LITERAL("\x88\x80\x00\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", &seen),
	    0);
	ck_assert_uint_eq(seen.id, 1);
}
END_TEST

#define MALFORMED(s)                                                  \
 do {                                                                 \
  struct wire_prescan seen_;                                          \
  ck_assert_int_eq(SCAN_LITERAL(s, &seen_), WIRE_E_MALFORMED);        \
  ck_assert_uint_eq(seen_.n_ops + seen_.n_fields + seen_.n_items, 0); \
 } while (0)

START_TEST(refuses_what_is_not_protobuf)
{
	MALFORMED("\xf8\xff\xff\xff\x7f\x00"); /* tag of 35 bits */
	MALFORMED("\x5a\x00\xf8\xff\xff\xff\x7f\x00");
	MALFORMED("\x88\x80\x80\x80\x80\x00\x01"); /* tag of 6 bytes */
	MALFORMED("\x00\x00");                     /* field number 0 */
	MALFORMED("\x02\x00");
	MALFORMED("\x0b\x0c"); /* a group */
	MALFORMED("\x0e\x00"); /* wire types 6 and 7 */
	MALFORMED("\x0f\x00");
	MALFORMED("\x08");                     /* value missing */
	MALFORMED("\x08\x80");                 /* value cut */
	MALFORMED("\x5a\x01");                 /* bytes cut */
	MALFORMED("\x5a");                     /* length missing */
	MALFORMED("\x5a\xff\xff\xff\xff\x0f"); /* length 2^32-1 */
	MALFORMED("\x5a\xff\xff\xff\xff\x1f"); /* length of 33 bits */
	MALFORMED("\xfd\x06\x00\x00\x00");     /* 32-bit value cut */
	/* value of 65 bits, and of 11 bytes */
	MALFORMED("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
	MALFORMED("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00");
	/* the same inside an operation and inside an item */
	MALFORMED("\xaa\x01\x02\x08\x80");
	MALFORMED("\xb2\x01\x04\x12\x02\x0a\x05");
}
END_TEST

/* 150 nested messages crash protobuf-c on a small stack; here they are bytes. */
START_TEST(goes_no_deeper_than_the_schema)
{
	struct bytes inner = {.len = 0}, outer;
	struct wire_prescan seen;

	for (int i = 0; i < 4000; i++) {
		outer.len = 0;
		if (inner.len > sizeof(inner.data) - 16)
			break;
		put_bytes(&outer, 22, inner.data, inner.len);
		inner = outer;
	}
	ck_assert_int_eq(scan(&inner, &seen), 0);
	ck_assert_uint_eq(seen.n_ops, 1);
	ck_assert_uint_eq(seen.n_fields, 2);
}
END_TEST

START_TEST(every_cut_of_a_message_is_safe)
{
	struct bytes request = {.len = 0}, op = {.len = 0}, item = {.len = 0};
	struct wire_prescan seen;
	size_t n_good = 0;

	put_bytes(&item, 1, "0123456789abcdef", 16);
	put_bytes(&item, 3, "ciphertext", 10);
	put_bytes(&op, 2, item.data, item.len);
	put_bytes(&op, 3, "\x08\x01\x20\x20", 4);
	put_field(&request, 1, 0);
	put_varint(&request, 300);
	put_bytes(&request, 22, op.data, op.len);
	for (size_t len = 0; len <= request.len; len++) {
		struct bytes cut = request;

		cut.len = len;
		n_good += scan(&cut, &seen) == 0;
	}
	/* empty, after the id, and whole */
	ck_assert_uint_eq(n_good, 3);
}
END_TEST

static unsigned
wire_type(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_STRING:
		return 2;
	default:
		return 0;
	}
}

typedef int scan_function(const uint8_t *message, size_t len, struct wire_prescan *out);

/* path: the bytes that lead to this message, from the outermost inwards. */
static unsigned
check_shape(const ProtobufCMessageDescriptor *message, const uint32_t *path,
    unsigned depth, scan_function *scan_one)
{
	unsigned n = 0;

	/* The schema is acyclic and shallow: else this recursion finds out. */
	ck_assert_uint_le(depth, 2);
	for (unsigned i = 0; i < message->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->fields[i];
		bool any_type = field->label == PROTOBUF_C_LABEL_REPEATED &&
				field->type == PROTOBUF_C_TYPE_ENUM;

		for (unsigned type = 0; type <= 2; type += 2) {
			struct bytes b = {.len = 0};
			struct wire_prescan seen;
			int want =
			    any_type || type == wire_type(field) ? 0 : WIRE_E_MALFORMED;

			put_field(&b, field->id, type);
			put_varint(&b, 0);
			for (unsigned d = depth; d > 0; d--) {
				struct bytes wrapped = {.len = 0};

				put_bytes(&wrapped, path[d - 1], b.data, b.len);
				b = wrapped;
			}
			ck_assert_msg(scan_one(b.data, b.len, &seen) == want,
			    "%s.%s with wire type %u", message->short_name, field->name,
			    type);
			n++;
		}
		if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
			uint32_t longer[4];

			memcpy(longer, path, depth * sizeof(path[0]));
			longer[depth] = field->id;
			n +=
			    check_shape(field->descriptor, longer, depth + 1, scan_one);
		}
	}
	return n;
}

/* wire.c knows the schema by a table of its own: here both are held together. */
START_TEST(table_is_the_schema)
{
	const uint32_t path[4] = {0};

	ck_assert_uint_gt(
	    check_shape(&mlkemd__v1__request__descriptor, path, 0, wire_prescan), 80);
	ck_assert_uint_gt(check_shape(&mlkemd__v1__response__descriptor, path, 0,
			      wire_prescan_response),
	    120);
}
END_TEST

/* Whatever passes is safe to hand on: protobuf-c and the walk agree on the id. */
START_TEST(random_bytes_are_judged_like_protobuf)
{
	uint32_t state = 1;
	unsigned n_passed = 0;

	for (int round = 0; round < 200000; round++) {
		uint8_t data[12];
		struct wire_prescan seen;
		Mlkemd__V1__Request *request;

		for (size_t i = 0; i < sizeof(data); i++) {
			state = state * 1664525u + 1013904223u;
			data[i] = (uint8_t)(state >> 24) & (i % 2 == 0 ? 0x7f : 0x0f);
		}
		if (wire_prescan(data, sizeof(data), &seen) != 0)
			continue;
		n_passed++;
		request = mlkemd__v1__request__unpack(NULL, sizeof(data), data);
		if (request == NULL)
			continue;
		ck_assert_uint_eq(request->id, seen.id);
		ck_assert_uint_eq(request->op_case, seen.op);
		mlkemd__v1__request__free_unpacked(request, NULL);
	}
	ck_assert_uint_gt(n_passed, 100);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("wire");
	TCase *tc = tcase_create("wire");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, length_is_big_endian);
	tcase_add_test(tc, length_limits);
	tcase_add_test(tc, counts_items_and_operations);
	tcase_add_test(tc, counts_fields_inside_items);
	tcase_add_test(tc, walks_over_unknown_fields);
	tcase_add_test(tc, takes_padded_varints_within_their_width);
	tcase_add_test(tc, refuses_what_is_not_protobuf);
	tcase_add_test(tc, goes_no_deeper_than_the_schema);
	tcase_add_test(tc, every_cut_of_a_message_is_safe);
	tcase_add_test(tc, table_is_the_schema);
	tcase_add_test(tc, random_bytes_are_judged_like_protobuf);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
