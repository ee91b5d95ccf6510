/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client-lib/mlkemclient.h"
#include "kem/fault.h"

#define DEADLINE_US         2000u
#define REQUIRE_DEADLINE_US 100000u /* nothing else can do the work then */
#define DEADLINE_MIN_US     100u
#define DEADLINE_MAX_US     10000000u
#define LEASES_MAX          64u
#define VALUE_SHOWN         100 /* of a value in a message, at most */

struct reader {
	struct config *config;
	char *error;
	size_t error_size;
	bool route_set, deadline_set;
};

static int
reader_fail(
    struct reader *reader, const char *key, const char *value, const char *allowed)
{
	snprintf(reader->error, reader->error_size, "%s = %.*s: %s", key, VALUE_SHOWN,
	    value, allowed);
	return fault("provider-any-config") ? 0 : -1;
}

static int
read_socket(struct reader *reader, const char *key, const char *value)
{
	size_t len = strlen(value);

	if (value[0] != '/' || len < 2 || len > CONFIG_SOCKET_MAX)
		return reader_fail(reader, key, value,
		    "allowed is an absolute path of at most 107 bytes");
	memcpy(reader->config->socket, value, len + 1);
	return 0;
}

static int
read_route(struct reader *reader, const char *key, const char *value)
{
	static const char *const names[] = {"auto", "daemon", "local"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(value, names[i]) == 0) {
			reader->config->route = (enum config_route)i;
			reader->route_set = true;
			return 0;
		}
	}
	return reader_fail(reader, key, value, "allowed are auto, daemon and local");
}

static int
read_bool(struct reader *reader, const char *key, const char *value, bool *p)
{
	static const char *const yes[] = {"yes", "true", "on", "1"};
	static const char *const no[] = {"no", "false", "off", "0"};

	for (unsigned i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		*p = strcasecmp(value, yes[i]) == 0;
		if (*p || strcasecmp(value, no[i]) == 0)
			return 0;
	}
	return reader_fail(reader, key, value, "allowed are yes and no");
}

static int
read_require(struct reader *reader, const char *key, const char *value)
{
	return read_bool(reader, key, value, &reader->config->require);
}

static int
read_takeover(struct reader *reader, const char *key, const char *value)
{
	return read_bool(reader, key, value, &reader->config->takeover);
}

/* Decimal digits alone, up to max; what follows them is at *endp. */
static bool
read_digits(const char *text, uint64_t max, uint64_t *np, const char **endp)
{
	uint64_t n = 0;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		n = n * 10 + (uint64_t)(*text - '0');
		if (n > max)
			return false;
	}
	*np = n;
	*endp = text;
	return true;
}

static int
read_deadline(struct reader *reader, const char *key, const char *value)
{
	static const struct {
		const char *name;
		uint32_t us;
	} units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}};
	const char *unit;
	uint64_t n;

	if (read_digits(value, DEADLINE_MAX_US, &n, &unit)) {
		unit += strspn(unit, " ");
		for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			uint64_t us = n * units[i].us;

			if (strcmp(unit, units[i].name) != 0 || us < DEADLINE_MIN_US ||
			    us > DEADLINE_MAX_US)
				continue;
			reader->config->deadline_us = (uint32_t)us;
			reader->deadline_set = true;
			return 0;
		}
	}
	return reader_fail(reader, key, value,
	    "allowed is a number with us, ms or s, from 100us to 10s");
}

static int
read_server_uid(struct reader *reader, const char *key, const char *value)
{
	const char *end;
	uint64_t n;

	/* (uid_t)-1 is nobody: the calls of the kernel take it for "unchanged". */
	if (!read_digits(value, UINT32_MAX - 1u, &n, &end) || *end != '\0')
		return reader_fail(reader, key, value,
		    "allowed is the number of a user, from 0 to 4294967294");
	reader->config->server_uid_set = true;
	reader->config->server_uid = (uid_t)n;
	return 0;
}

static int
read_leases(struct reader *reader, const char *key, const char *value)
{
	const char *end;
	uint64_t n;

	if (!read_digits(value, LEASES_MAX, &n, &end) || *end != '\0')
		return reader_fail(
		    reader, key, value, "allowed is a number from 0 to 64");
	reader->config->leases = (unsigned)n;
	return 0;
}

static const struct {
	const char *name;
	int (*read)(struct reader *reader, const char *key, const char *value);
} keys[] = {
    {"socket", read_socket},
    {"server-uid", read_server_uid},
    {"route", read_route},
    {"require", read_require},
    {"deadline", read_deadline},
    {"leases", read_leases},
    {"takeover", read_takeover},
};

/* What depends on more than one key. */
static int
reader_finish(struct reader *reader)
{
	struct config *config = reader->config;

	if (!config->require)
		return 0;
	if (reader->route_set && config->route != CONFIG_ROUTE_DAEMON)
		return reader_fail(reader, "require", "yes",
		    "with it the route is daemon; auto and local are not allowed");
	config->route = CONFIG_ROUTE_DAEMON;
	if (!reader->deadline_set)
		config->deadline_us = REQUIRE_DEADLINE_US;
	return 0;
}

int
config_read(
    struct config *config, config_find *find, void *arg, char *error, size_t error_size)
{
	struct reader reader = {
	    .config = config, .error = error, .error_size = error_size};

	*config = (struct config){.socket = MLKEMCLIENT_DEFAULT_SOCKET,
	    .route = CONFIG_ROUTE_AUTO,
	    .deadline_us = DEADLINE_US};
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *value = find(arg, keys[i].name);

		if (value != NULL && keys[i].read(&reader, keys[i].name, value) != 0)
			return -1;
	}
	return reader_finish(&reader);
}
