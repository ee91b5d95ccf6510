/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <inttypes.h>

/* Length of the UTF-8 sequence at s (RFC 3629), or 0 if it is none. */
static size_t
utf8_length(const unsigned char *s)
{
	static const struct {
		unsigned char lo, hi, min2, max2;
		size_t len;
	} forms[] = {
	    {0xc2, 0xdf, 0x80, 0xbf, 2},
	    {0xe0, 0xe0, 0xa0, 0xbf, 3},
	    {0xe1, 0xec, 0x80, 0xbf, 3},
	    {0xed, 0xed, 0x80, 0x9f, 3},
	    {0xee, 0xef, 0x80, 0xbf, 3},
	    {0xf0, 0xf0, 0x90, 0xbf, 4},
	    {0xf1, 0xf3, 0x80, 0xbf, 4},
	    {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	if (s[0] < 0x80)
		return 1;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (s[0] < forms[i].lo || s[0] > forms[i].hi)
			continue;
		if (s[1] < forms[i].min2 || s[1] > forms[i].max2)
			return 0;
		for (size_t k = 2; k < forms[i].len; k++) {
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		}
		return forms[i].len;
	}
	return 0;
}

static void
write_string(FILE *file, const char *value)
{
	const unsigned char *s = (const unsigned char *)value;

	fputc('"', file);
	while (*s) {
		size_t len = utf8_length(s);

		if (len == 0) {
			fputs("\\ufffd", file);
			s++;
		} else if (len == 1 && (*s < 0x20 || *s == 0x7f)) {
			fprintf(file, "\\u%04x", (unsigned)*s++);
		} else if (*s == '"' || *s == '\\') {
			fprintf(file, "\\%c", *s++);
		} else {
			fwrite(s, 1, len, file);
			s += len;
		}
	}
	fputc('"', file);
}

static void
write_name(struct json *json, const char *name)
{
	fputs(json->more ? ", " : "", json->file);
	json->more = true;
	write_string(json->file, name);
	fputs(": ", json->file);
}

void
json_begin(struct json *json, FILE *file)
{
	json->file = file;
	json->more = false;
	fputc('{', file);
}

void
json_string(struct json *json, const char *name, const char *value)
{
	write_name(json, name);
	write_string(json->file, value);
}

void
json_number(struct json *json, const char *name, uint64_t value)
{
	write_name(json, name);
	fprintf(json->file, "%" PRIu64, value);
}

void
json_fixed(struct json *json, const char *name, double value)
{
	write_name(json, name);
	fprintf(json->file, "%.3f", value);
}

void
json_flag(struct json *json, const char *name, bool value)
{
	write_name(json, name);
	fputs(value ? "true" : "false", json->file);
}

void
json_end(struct json *json)
{
	fputs("}\n", json->file);
	fflush(json->file);
}
