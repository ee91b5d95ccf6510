/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.h: hex and base64, both ways, without a table or a branch that depends on the
 * value: private keys and secrets pass through here. Pure functions.
 */
#ifndef MLKEMCTL_BYTES_H
#define MLKEMCTL_BYTES_H

#include <stddef.h>
#include <stdint.h>

enum bytes_format { BYTES_AUTO, BYTES_HEX, BYTES_BASE64, BYTES_RAW };

/* "hex", "base64", "raw". Returns 0, or -1. */
__attribute__((warn_unused_result)) int bytes_format_parse(
    const char *name, enum bytes_format *formatp);

/* Bytes that bytes_encode() writes at most; text is not NUL-terminated. */
size_t bytes_encoded_size(enum bytes_format format, size_t len);

/* Writes len bytes in a format (AUTO is hex). Returns how many it wrote. */
size_t bytes_encode(
    enum bytes_format format, const uint8_t *data, size_t len, uint8_t *out);

/*
 * What a person gave us: only hex digits (and white space) is hex, only base64's letters
 * is base64, anything else is raw. Sizes here start at 64 bytes, so that raw bytes
 * pass for text less often than once in 2^100.
 */
enum bytes_format bytes_guess(const uint8_t *data, size_t len);

enum {
	BYTES_E_LETTER = 1, /* a character that the format does not have */
	BYTES_E_ODD,        /* half a byte at the end */
};

/*
 * Decodes in place: white space is skipped, base64 may be padded or not, standard or
 * URL-safe. *lenp becomes the decoded length. Returns 0, or a BYTES_E_...
 */
__attribute__((warn_unused_result)) int bytes_decode(
    enum bytes_format format, uint8_t *data, size_t *lenp);

#endif
