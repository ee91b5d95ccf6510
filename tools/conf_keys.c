/* SPDX-License-Identifier: Apache-2.0 */
#include "conf_keys.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kem/fault.h"

#define SOCKET_MAX  107 /* of struct sockaddr_un, without the NUL */
#define VALUE_SHOWN 100

enum kind { KIND_PATH, KIND_WORD, KIND_NUMBER, KIND_TIME };

static const char *const routes[] = {"auto", "daemon", "local", NULL};
static const char *const bools[] = {
    "yes", "true", "on", "1", "no", "false", "off", "0", NULL};

static const struct conf_key {
	const char *name;
	enum kind kind;
	const char *const *words;
	uint64_t min, max; /* of a number; of a time in microseconds */
	const char *allowed;
} keys[] = {
    {"socket", KIND_PATH, NULL, 2, SOCKET_MAX,
	"allowed is an absolute path of at most 107 bytes"},
    {"server-uid", KIND_NUMBER, NULL, 0, UINT32_MAX - 1u,
	"allowed is the number of a user, from 0 to 4294967294"},
    {"route", KIND_WORD, routes, 0, 0, "allowed are auto, daemon and local"},
    {"require", KIND_WORD, bools, 0, 0, "allowed are yes and no"},
    {"deadline", KIND_TIME, NULL, 100, 10000000,
	"allowed is a number with us, ms or s, from 100us to 10s"},
    {"leases", KIND_NUMBER, NULL, 0, 64, "allowed is a number from 0 to 64"},
    {"takeover", KIND_WORD, bools, 0, 0, "allowed are yes and no"},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

const char *
conf_key_number(unsigned i)
{
	return i < N_KEYS ? keys[i].name : NULL;
}

/* Digits alone, up to max. Returns what follows them, or NULL. */
static const char *
skip_digits(const char *text, uint64_t max, uint64_t *np)
{
	const char *end = text + strspn(text, "0123456789");

	*np = 0;
	if (end == text)
		return NULL;
	for (; text < end && *np <= max; text++)
		*np = *np * 10 + (uint64_t)(*text - '0');
	return *np <= max ? end : NULL;
}

static bool
is_number(const struct conf_key *key, const char *value)
{
	uint64_t n;
	const char *end = skip_digits(value, key->max, &n);

	return end && *end == '\0' && n >= key->min;
}

static bool
is_time(const struct conf_key *key, const char *value)
{
	uint64_t n, us;
	const char *unit = skip_digits(value, key->max, &n);

	if (!unit)
		return false;
	unit += strspn(unit, " ");
	if (strcmp(unit, "us") == 0)
		us = n;
	else if (strcmp(unit, "ms") == 0)
		us = n * 1000;
	else if (strcmp(unit, "s") == 0)
		us = n * 1000000;
	else
		return false;
	return us >= key->min && us <= key->max;
}

static bool
is_word(const struct conf_key *key, const char *value)
{
	for (const char *const *word = key->words; *word; word++) {
		if (strcasecmp(value, *word) == 0)
			return true;
	}
	return false;
}

static bool
key_takes(const struct conf_key *key, const char *value)
{
	size_t len = strlen(value);

	switch (key->kind) {
	case KIND_PATH:
		return value[0] == '/' && len >= key->min && len <= key->max;
	case KIND_WORD:
		return is_word(key, value);
	case KIND_NUMBER:
		return is_number(key, value);
	default:
		return is_time(key, value);
	}
}

bool
conf_key_check(const char *key, const char *value, char *error, size_t size)
{
	for (size_t i = 0; i < N_KEYS; i++) {
		if (strcmp(keys[i].name, key) != 0)
			continue;
		if (key_takes(&keys[i], value) || fault("ctl-any-conf-value"))
			return true;
		snprintf(error, size, "%s = %.*s: %s", key, VALUE_SHOWN, value,
		    keys[i].allowed);
		return false;
	}
	snprintf(error, size, "%.40s: no key of the provider", key);
	return false;
}

bool
conf_value_is_yes(const char *value)
{
	for (size_t i = 0; i < 4; i++) {
		if (strcasecmp(value, bools[i]) == 0)
			return true;
	}
	return false;
}

bool
conf_keys_agree(const char *route, const char *require, char *error, size_t size)
{
	if (!require || !conf_value_is_yes(require) || !route ||
	    strcasecmp(route, "daemon") == 0)
		return true;
	snprintf(error, size,
	    "require = yes: with it the route is daemon; auto and local are not "
	    "allowed");
	return false;
}
