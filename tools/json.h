/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h: one JSON object on one line of a stream (RFC 8259), written as it is made.
 * Strings from the daemon are escaped; bytes that are not UTF-8 become U+FFFD.
 */
#ifndef MLKEMCTL_JSON_H
#define MLKEMCTL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *file;
	bool more; /* a member was written already */
};

void json_begin(struct json *json, FILE *file);
void json_string(struct json *json, const char *name, const char *value);
void json_number(struct json *json, const char *name, uint64_t value);
void json_fixed(struct json *json, const char *name, double value); /* 3 decimals */
void json_flag(struct json *json, const char *name, bool value);
void json_end(struct json *json); /* ends the line and flushes */

#endif
