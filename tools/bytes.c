/* SPDX-License-Identifier: Apache-2.0 */
#include "bytes.h"

#include <stdbool.h>
#include <string.h>

int
bytes_format_parse(const char *name, enum bytes_format *formatp)
{
	if (strcmp(name, "hex") == 0)
		*formatp = BYTES_HEX;
	else if (strcmp(name, "base64") == 0)
		*formatp = BYTES_BASE64;
	else if (strcmp(name, "raw") == 0)
		*formatp = BYTES_RAW;
	else
		return -1;
	return 0;
}

/* 0xff where lo <= c <= hi, else 0. c, lo, hi: 1 to 255. */
static uint32_t
in_range(uint32_t c, uint32_t lo, uint32_t hi)
{
	return (((lo - 1 - c) & (c - (hi + 1))) >> 8) & 0xff;
}

static uint32_t
is_space(uint32_t c)
{
	return in_range(c, '\t', '\r') | in_range(c, ' ', ' ');
}

static uint32_t
is_hex(uint32_t c)
{
	return in_range(c, '0', '9') | in_range(c, 'a', 'f') | in_range(c, 'A', 'F');
}

static uint32_t
hex_value(uint32_t c)
{
	return (in_range(c, '0', '9') & (c - '0')) |
	       (in_range(c, 'a', 'f') & (c - 'a' + 10)) |
	       (in_range(c, 'A', 'F') & (c - 'A' + 10));
}

static uint32_t
is_base64(uint32_t c)
{
	return in_range(c, 'A', 'Z') | in_range(c, 'a', 'z') | in_range(c, '0', '9') |
	       in_range(c, '+', '+') | in_range(c, '-', '-') | in_range(c, '/', '/') |
	       in_range(c, '_', '_');
}

static uint32_t
base64_value(uint32_t c)
{
	return (in_range(c, 'A', 'Z') & (c - 'A')) |
	       (in_range(c, 'a', 'z') & (c - 'a' + 26)) |
	       (in_range(c, '0', '9') & (c - '0' + 52)) |
	       ((in_range(c, '+', '+') | in_range(c, '-', '-')) & 62) |
	       ((in_range(c, '/', '/') | in_range(c, '_', '_')) & 63);
}

static uint32_t
hex_letter(uint32_t v)
{
	return v + '0' + (((9u - v) >> 8) & ('a' - '0' - 10));
}

static uint32_t
base64_letter(uint32_t v)
{
	v += 1; /* in_range() starts at 1 */
	return (in_range(v, 1, 26) & (v + 'A' - 1)) |
	       (in_range(v, 27, 52) & (v + 'a' - 27)) |
	       (in_range(v, 53, 62) & (v + '0' - 53)) | (in_range(v, 63, 63) & '+') |
	       (in_range(v, 64, 64) & '/');
}

size_t
bytes_encoded_size(enum bytes_format format, size_t len)
{
	if (format == BYTES_RAW)
		return len;
	if (format == BYTES_BASE64)
		return (len + 2) / 3 * 4;
	return 2 * len;
}

static size_t
hex_encode(const uint8_t *data, size_t len, uint8_t *out)
{
	for (size_t i = 0; i < len; i++) {
		out[2 * i] = (uint8_t)hex_letter(data[i] >> 4);
		out[2 * i + 1] = (uint8_t)hex_letter(data[i] & 15);
	}
	return 2 * len;
}

static size_t
base64_encode(const uint8_t *data, size_t len, uint8_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)data[i] << 16;

		v |= i + 1 < len ? (uint32_t)data[i + 1] << 8 : 0;
		v |= i + 2 < len ? data[i + 2] : 0;
		out[n++] = (uint8_t)base64_letter(v >> 18);
		out[n++] = (uint8_t)base64_letter(v >> 12 & 63);
		out[n++] = i + 1 < len ? (uint8_t)base64_letter(v >> 6 & 63) : '=';
		out[n++] = i + 2 < len ? (uint8_t)base64_letter(v & 63) : '=';
	}
	return n;
}

size_t
bytes_encode(enum bytes_format format, const uint8_t *data, size_t len, uint8_t *out)
{
	if (format == BYTES_RAW) {
		memcpy(out, data, len);
		return len;
	}
	if (format == BYTES_BASE64)
		return base64_encode(data, len, out);
	return hex_encode(data, len, out);
}

enum bytes_format
bytes_guess(const uint8_t *data, size_t len)
{
	uint32_t hex = 0xff, base64 = 0xff;

	/* No early end: where a raw key stops looking like text is its own affair. */
	for (size_t i = 0; i < len; i++) {
		uint32_t c = data[i];

		hex &= is_hex(c) | is_space(c);
		base64 &= is_base64(c) | is_space(c) | in_range(c, '=', '=');
	}
	if (len == 0)
		return BYTES_RAW;
	if (hex)
		return BYTES_HEX;
	return base64 ? BYTES_BASE64 : BYTES_RAW;
}

/* Drops white space, and base64's padding at the end. Where they stand is no secret. */
static size_t
squeeze(uint8_t *data, size_t len, bool padded)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (!is_space(data[i]))
			data[n++] = data[i];
	}
	for (int pad = 0; padded && pad < 2 && n > 0 && data[n - 1] == '='; pad++)
		n--;
	return n;
}

static int
hex_decode(uint8_t *data, size_t *lenp)
{
	size_t len = squeeze(data, *lenp, false);
	uint32_t good = 0xff;

	for (size_t i = 0; i < len; i++)
		good &= is_hex(data[i]);
	if (!good)
		return BYTES_E_LETTER;
	if (len & 1)
		return BYTES_E_ODD;
	for (size_t i = 0; i < len / 2; i++)
		data[i] =
		    (uint8_t)(hex_value(data[2 * i]) << 4 | hex_value(data[2 * i + 1]));
	*lenp = len / 2;
	return 0;
}

static int
base64_decode(uint8_t *data, size_t *lenp)
{
	size_t len = squeeze(data, *lenp, true), n = 0;
	uint32_t good = 0xff, v = 0;

	for (size_t i = 0; i < len; i++)
		good &= is_base64(data[i]);
	if (!good)
		return BYTES_E_LETTER;
	if ((len & 3) == 1)
		return BYTES_E_ODD;
	for (size_t i = 0; i < len; i++) {
		v = v << 6 | base64_value(data[i]);
		/* After letter 1, 2, 3 of four there are 12, 18, 24 bits so far. */
		if ((i & 3) == 1)
			data[n++] = (uint8_t)(v >> 4);
		else if ((i & 3) == 2)
			data[n++] = (uint8_t)(v >> 2);
		else if ((i & 3) == 3)
			data[n++] = (uint8_t)v;
	}
	*lenp = n;
	return 0;
}

int
bytes_decode(enum bytes_format format, uint8_t *data, size_t *lenp)
{
	if (format == BYTES_AUTO)
		format = bytes_guess(data, *lenp);
	if (format == BYTES_HEX)
		return hex_decode(data, lenp);
	if (format == BYTES_BASE64)
		return base64_decode(data, lenp);
	return 0;
}
