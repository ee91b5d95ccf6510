/* SPDX-License-Identifier: Apache-2.0 */
/* One file's text: [section], key = value, # comment. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config_keys.h"

#define LINE_MAX_BYTES 2048

/* What a file holds comes out on terminals and in logs: no control byte does. */
int
config_error(char *error, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, size, format, args);
	va_end(args);
	for (char *c = error; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	return CONFIG_E_INVALID;
}

static int
text_set(char **field, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

/* A list's text and origin grow, as its lines add up. */
static int
text_join(char **field, const char *text)
{
	char *joined;

	if (!**field)
		return text_set(field, text);
	if (asprintf(&joined, "%s, %s", *field, text) < 0)
		return -ENOMEM;
	free(*field);
	*field = joined;
	return 0;
}

static bool
is_bare_time(const struct config_key *key, const char *value)
{
	return (key->type == CONFIG_MS || key->type == CONFIG_US) && *value &&
	       !value[strspn(value, "0123456789")];
}

int
config_set(struct config *config, const struct config_key *key, const char *value,
    const char *origin, bool may_resolve, char *error, size_t error_size)
{
	bool list = key->type == CONFIG_USERS || key->type == CONFIG_GROUPS;
	struct config_text *text = &config->texts[key - config_keys];
	const char *allowed;
	int r = config_key_parse(key, value, may_resolve, config, &allowed);

	if (r == CONFIG_E_INVALID && is_bare_time(key, value))
		return config_error(error, error_size,
		    "%s: %s.%s: \"%.200s\" given without a unit (%.20ss?); allowed: %s",
		    origin, key->section, key->name, value, value, allowed);
	if (r == CONFIG_E_INVALID)
		return config_error(error, error_size,
		    "%s: %s.%s: \"%.200s\" given; %s%s", origin, key->section,
		    key->name, value, allowed == key->allowed ? "allowed: " : "",
		    allowed);
	if (r)
		return r;
	if (list && *value && text->value) {
		r = text_join(&text->value, value);
		if (!r)
			r = text_join(&text->origin, origin);
		return r;
	}
	r = text_set(&text->value, value);
	if (!r)
		r = text_set(&text->origin, origin);
	return r;
}

/* Cuts white space off both ends, in place. */
static char *
line_trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	len = strlen(text);
	while (len && strchr(" \t\r", text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* "#" opens a comment at the start of a line and after white space. */
static void
line_uncomment(char *line)
{
	for (char *p = line; (p = strchr(p, '#')); p++) {
		if (p == line || p[-1] == ' ' || p[-1] == '\t') {
			*p = '\0';
			return;
		}
	}
}

struct reader {
	struct config *config;
	const char *name; /* the file's */
	bool may_resolve;
	char *error;
	size_t error_size;
	unsigned line;
	char section[32];
	unsigned seen[64]; /* the line of this file on which key i was given */
};

static bool
section_known(const char *section)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		if (!strcmp(config_keys[i].section, section))
			return true;
	}
	return false;
}

/* The names of a section's keys, or of all sections, for a mistake's message. */
static void
names_list(const char *section, char *out, size_t size)
{
	const char *last = "";
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < config_n_keys && used < size; i++) {
		const char *name =
		    section ? config_keys[i].name : config_keys[i].section;

		if (!strcmp(name, last) ||
		    (section && strcmp(config_keys[i].section, section)))
			continue;
		last = name;
		used += (size_t)snprintf(
		    out + used, size - used, "%s%s", used ? ", " : "", name);
	}
}

static int
section_read(struct reader *reader, char *line)
{
	char names[256];
	size_t len = strlen(line);

	if (line[len - 1] != ']')
		return config_error(reader->error, reader->error_size,
		    "%s:%u: a section is written [name]", reader->name, reader->line);
	line[len - 1] = '\0';
	line = line_trim(line + 1);
	if (!section_known(line)) {
		names_list(NULL, names, sizeof(names));
		return config_error(reader->error, reader->error_size,
		    "%s:%u: [%.40s]: no such section; there are %s", reader->name,
		    reader->line, line, names);
	}
	snprintf(reader->section, sizeof(reader->section), "%s", line);
	return 0;
}

static int
key_read(struct reader *reader, const char *name, const char *value)
{
	const struct config_key *key = config_key_find(reader->section, name);
	char text[512];
	unsigned *seen;

	if (!key) {
		names_list(reader->section, text, sizeof(text));
		return config_error(reader->error, reader->error_size,
		    "%s:%u: %s.%.40s: no such key; [%s] has %s", reader->name,
		    reader->line, reader->section, name, reader->section, text);
	}
	seen = &reader->seen[key - config_keys];
	if (*seen && key->type != CONFIG_USERS && key->type != CONFIG_GROUPS)
		return config_error(reader->error, reader->error_size,
		    "%s:%u: %s.%s: given before, on line %u; once a file is allowed",
		    reader->name, reader->line, reader->section, name, *seen);
	*seen = reader->line;
	snprintf(text, sizeof(text), "%s:%u", reader->name, reader->line);
	return config_set(reader->config, key, value, text, reader->may_resolve,
	    reader->error, reader->error_size);
}

static int
line_read(struct reader *reader, char *line)
{
	char *equals;

	line_uncomment(line);
	line = line_trim(line);
	if (!*line)
		return 0;
	if (*line == '[')
		return section_read(reader, line);
	equals = strchr(line, '=');
	if (!equals || equals == line)
		return config_error(reader->error, reader->error_size,
		    "%s:%u: %.40s: a line is [section], key = value or # comment",
		    reader->name, reader->line, line);
	*equals = '\0';
	line = line_trim(line);
	if (!*reader->section)
		return config_error(reader->error, reader->error_size,
		    "%s:%u: %.40s: a [section] must stand above the first key",
		    reader->name, reader->line, line);
	return key_read(reader, line, line_trim(equals + 1));
}

int
config_read_text(struct config *config, const char *name, const char *text, size_t len,
    bool may_resolve, char *error, size_t error_size)
{
	struct reader reader = {.config = config,
	    .name = name,
	    .may_resolve = may_resolve,
	    .error = error,
	    .error_size = error_size};

	while (len) {
		char line[LINE_MAX_BYTES];
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		int r;

		reader.line++;
		if (n >= sizeof(line))
			return config_error(error, error_size,
			    "%s:%u: a line of at most %d bytes is allowed", name,
			    reader.line, LINE_MAX_BYTES - 1);
		if (memchr(text, '\0', n))
			return config_error(error, error_size,
			    "%s:%u: text without NUL bytes is allowed", name,
			    reader.line);
		memcpy(line, text, n);
		line[n] = '\0';
		r = line_read(&reader, line);
		if (r)
			return r;
		n += end != NULL;
		text += n;
		len -= n;
	}
	return 0;
}
