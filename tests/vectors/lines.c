/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

void
lines_read(struct lines *lines, const char *path, const char *sign)
{
	char *text = vectors_text(path), *line, *found;

	lines->n = 0;
	while ((line = vectors_line(&text))) {
		ck_assert_uint_lt(lines->n, N_LINES_MAX);
		found = strstr(line, sign);
		ck_assert_msg(found, "no '%s' in %s", sign, line);
		*found = '\0';
		lines->line[lines->n++] =
		    (struct line){.name = line, .value = found + strlen(sign)};
	}
}

const char *
lines_get(struct lines *lines, const char *name, unsigned which)
{
	for (size_t i = 0; i < lines->n; i++) {
		if (strcmp(lines->line[i].name, name) != 0 || which-- > 0)
			continue;
		lines->line[i].is_read = true;
		return lines->line[i].value;
	}
	ck_abort_msg("no line %s", name);
}

/* Hex is the last word: "dkPKE = NTT(s) = 2d17", "A[0, 0] = {2322, 479} = 12f9". */
struct bytes
lines_hex(struct lines *lines, const char *name, unsigned which)
{
	const char *value = lines_get(lines, name, which), *more;

	while ((more = strstr(value, " = ")))
		value = more + 3;
	return bytes_hex(value);
}

void
lines_list(struct lines *lines, const char *name, int16_t *out, size_t n)
{
	const char *p = lines_get(lines, name, 0);
	char *end;

	ck_assert_int_eq(*p, '{');
	for (size_t i = 0; i < n; i++) {
		long x = strtol(p + 1, &end, 10);

		ck_assert(end != p + 1 && x >= 0 && x < 4096);
		ck_assert_int_eq(*end, i + 1 < n ? ',' : '}');
		out[i] = (int16_t)x;
		p = end;
	}
}

void
lines_done(const struct lines *lines, const char *path, size_t n)
{
	for (size_t i = 0; i < lines->n; i++)
		ck_assert_msg(lines->line[i].is_read, "%s: line %s was not looked at",
		    path, lines->line[i].name);
	vectors_ran(path, lines->n, n);
}
