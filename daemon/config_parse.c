/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "config_keys.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* In microseconds. */
static const struct unit units_time[] = {
    {"us", 1},
    {"ms", 1000},
    {"s", 1000000},
    {"m", 60000000},
    {"h", 3600000000},
    {NULL, 0},
};
static const struct unit units_size[] = {
    {"", 1},
    {"K", 1 << 10},
    {"M", 1 << 20},
    {"G", 1 << 30},
    {NULL, 0},
};
static const struct unit units_percent[] = {{"%", 1}, {"", 1}, {NULL, 0}};
static const struct unit units_none[] = {{"", 1}, {NULL, 0}};

/* Digits and one of the units. False for anything else and for what is over 2^53. */
static bool
number_parse(const char *text, const struct unit *units, uint64_t *valuep)
{
	uint64_t value = 0;
	size_t n = strspn(text, "0123456789");

	if (!n || n > 15)
		return false;
	for (size_t i = 0; i < n; i++)
		value = 10 * value + (uint64_t)(text[i] - '0');
	text += n;
	text += strspn(text, " ");
	for (; units->name; units++) {
		if (!strcmp(units->name, text)) {
			if (value > (UINT64_C(1) << 53) / units->factor)
				return false;
			*valuep = value * units->factor;
			return true;
		}
	}
	return false;
}

/* divisor turns the units' value into the field's; what does not go up is refused. */
static int
number_set(const struct config_key *key, const char *text, const struct unit *units,
    uint64_t divisor, uint32_t *field)
{
	uint64_t value;

	if (!number_parse(text, units, &value) || value % divisor)
		return CONFIG_E_INVALID;
	value /= divisor;
	if (value < key->min || value > key->max)
		return CONFIG_E_INVALID;
	*field = (uint32_t)value;
	return 0;
}

static int
mode_set(const struct config_key *key, const char *text, mode_t *field)
{
	size_t n = strspn(text, "01234567");

	if (!n || n > 4 || text[n])
		return CONFIG_E_INVALID;
	unsigned long value = strtoul(text, NULL, 8);
	if (value > key->max)
		return CONFIG_E_INVALID;
	*field = (mode_t)value;
	return 0;
}

static int
bool_set(const char *text, const char *yes, const char *no, bool *field)
{
	if (strcmp(text, yes) && strcmp(text, no))
		return CONFIG_E_INVALID;
	*field = !strcmp(text, yes);
	return 0;
}

static int
string_set(const char *text, char **field)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

static int
path_set(const struct config_key *key, const char *text, char **field)
{
	size_t len = strlen(text);

	/* Where a daemon is started must not settle where its sockets are. */
	if (len < key->min || len > key->max || *text != '/')
		return CONFIG_E_INVALID;
	return string_set(text, field);
}

/* An empty value is NULL. */
static int
opt_path_set(const struct config_key *key, const char *text, char **field)
{
	if (*text)
		return path_set(key, text, field);
	free(*field);
	*field = NULL;
	return 0;
}

/* Figures of who talks when are for this host: no other address is taken. */
static int
loopback_set(const struct config_key *key, const char *text, char **field)
{
	struct sockaddr_storage addr;
	int len = sizeof(addr);
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr;
	bool good = false;

	if (*text && strlen(text) <= key->max &&
	    !evutil_parse_sockaddr_port(text, (struct sockaddr *)&addr, &len)) {
		if (addr.ss_family == AF_INET)
			good = ntohl(v4->sin_addr.s_addr) >> 24 == 127 && v4->sin_port;
		else
			good = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) && v6->sin6_port;
	}
	if (!good && *text)
		return CONFIG_E_INVALID;
	free(*field);
	*field = NULL;
	return *text ? string_set(text, field) : 0;
}

static int
backend_set(const char *text, char **field)
{
	if (!*text || strlen(text) > 32)
		return CONFIG_E_INVALID;
	if (!strcmp(text, "auto")) {
		free(*field);
		*field = NULL;
		return 0;
	}
	return string_set(text, field);
}

static int
choice_set(const char *text, const char *const *choices, int *field)
{
	for (int i = 0; choices[i]; i++) {
		if (!strcmp(text, choices[i])) {
			*field = i;
			return 0;
		}
	}
	return CONFIG_E_INVALID;
}

static int
secmem_set(const char *text, enum secmem_policy *field)
{
	static const char *const choices[] = {
	    [SECMEM_PREFER] = "prefer",
	    [SECMEM_REQUIRE] = "require",
	    [SECMEM_OFF] = "off",
	    NULL,
	};
	int choice, r = choice_set(text, choices, &choice);

	if (!r)
		*field = (enum secmem_policy)choice;
	return r;
}

static int
sandbox_set(const char *text, enum sandbox_policy *field)
{
	static const char *const choices[] = {
	    [SANDBOX_PREFER] = "prefer",
	    [SANDBOX_REQUIRE] = "require",
	    [SANDBOX_OFF] = "off",
	    NULL,
	};
	int choice, r = choice_set(text, choices, &choice);

	if (!r)
		*field = (enum sandbox_policy)choice;
	return r;
}

static int
level_set(const char *text, int *field)
{
	static const char *const choices[] = {"emerg", "alert", "crit", "err",
	    "warning", "notice", "info", "debug", NULL};

	if (text[0] >= '0' && text[0] <= '7' && !text[1]) {
		*field = text[0] - '0';
		return 0;
	}
	return choice_set(text, choices, field);
}

static int
ids_add(struct config_ids *ids, uint32_t id)
{
	uint32_t *grown = realloc(ids->ids, (ids->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	ids->ids = grown;
	ids->ids[ids->n++] = id;
	return 0;
}

static int
ids_set(const char *text, bool is_group, bool may_resolve, struct config *config,
    struct config_ids *ids, const char **allowedp)
{
	static const char separators[] = ", \t", white[] = " \t";

	if (!*text)
		ids->n = 0;
	while (*text) {
		char word[256];
		size_t len = strcspn(text, separators);
		uint32_t id;
		bool present;
		int r;

		if (!len || len >= sizeof(word))
			return CONFIG_E_INVALID;
		memcpy(word, text, len);
		word[len] = '\0';
		r = config_name_resolve(
		    config, word, is_group, may_resolve, &id, &present, allowedp);
		if (!r && present)
			r = ids_add(ids, id);
		if (r)
			return r;
		text += len;
		text += strspn(text, white);
		if (*text != ',')
			continue;
		text++;
		text += strspn(text, white);
	}
	return 0;
}

static int
group_set(const char *text, bool may_resolve, struct config *config, gid_t *field,
    const char **allowedp)
{
	uint32_t id;
	bool present;

	*field = (gid_t)-1;
	if (!*text)
		return 0;
	int r = config_name_resolve(
	    config, text, true, may_resolve, &id, &present, allowedp);
	if (!r && present)
		*field = id;
	return r;
}

int
config_key_parse(const struct config_key *key, const char *text, bool may_resolve,
    struct config *config, const char **allowedp)
{
	void *field = (char *)config + key->offset;

	*allowedp = key->allowed;
	switch (key->type) {
	case CONFIG_PATH:
		return path_set(key, text, field);
	case CONFIG_OPT_PATH:
		return opt_path_set(key, text, field);
	case CONFIG_LOOPBACK:
		return loopback_set(key, text, field);
	case CONFIG_BACKEND:
		return backend_set(text, field);
	case CONFIG_MODE:
		return mode_set(key, text, field);
	case CONFIG_GROUP:
		return group_set(text, may_resolve, config, field, allowedp);
	case CONFIG_USERS:
		return ids_set(text, false, may_resolve, config, field, allowedp);
	case CONFIG_GROUPS:
		return ids_set(text, true, may_resolve, config, field, allowedp);
	case CONFIG_BOOL:
		return bool_set(text, "yes", "no", field);
	case CONFIG_PAIRWISE:
		return bool_set(text, "pool", "off", field);
	case CONFIG_NUMBER:
		return number_set(key, text, units_none, 1, field);
	case CONFIG_SHARDS:
		if (!strcmp(text, "auto")) {
			*(uint32_t *)field = 0;
			return 0;
		}
		return number_set(key, text, units_none, 1, field);
	case CONFIG_PERCENT:
		return number_set(key, text, units_percent, 1, field);
	case CONFIG_BYTES:
		return number_set(key, text, units_size, 1, field);
	case CONFIG_MS:
		return number_set(key, text, units_time, 1000, field);
	case CONFIG_US:
		return number_set(key, text, units_time, 1, field);
	case CONFIG_SECMEM:
		return secmem_set(text, field);
	case CONFIG_SANDBOX:
		return sandbox_set(text, field);
	case CONFIG_LEVEL:
		return level_set(text, field);
	}
	return CONFIG_E_INVALID;
}

void
config_key_clear(const struct config_key *key, struct config *config)
{
	void *field = (char *)config + key->offset;

	switch (key->type) {
	case CONFIG_PATH:
	case CONFIG_OPT_PATH:
	case CONFIG_LOOPBACK:
	case CONFIG_BACKEND:
		free(*(char **)field);
		*(char **)field = NULL;
		break;
	case CONFIG_USERS:
	case CONFIG_GROUPS:
		free(((struct config_ids *)field)->ids);
		*(struct config_ids *)field = (struct config_ids){0};
		break;
	default:
		break;
	}
}

/* Only fixed keys are taken over, and no list is one. */
int
config_key_copy(
    const struct config_key *key, struct config *to, const struct config *from)
{
	const void *source = (const char *)from + key->offset;
	void *field = (char *)to + key->offset;

	switch (key->type) {
	case CONFIG_PATH:
	case CONFIG_OPT_PATH:
	case CONFIG_LOOPBACK:
	case CONFIG_BACKEND:
		config_key_clear(key, to);
		if (*(char *const *)source)
			return string_set(*(char *const *)source, field);
		return 0;
	case CONFIG_MODE:
		*(mode_t *)field = *(const mode_t *)source;
		return 0;
	case CONFIG_GROUP:
		*(gid_t *)field = *(const gid_t *)source;
		return 0;
	case CONFIG_SECMEM:
		*(enum secmem_policy *)field = *(const enum secmem_policy *)source;
		return 0;
	case CONFIG_SANDBOX:
		*(enum sandbox_policy *)field = *(const enum sandbox_policy *)source;
		return 0;
	case CONFIG_NUMBER:
	case CONFIG_SHARDS:
	case CONFIG_BYTES:
		*(uint32_t *)field = *(const uint32_t *)source;
		return 0;
	default:
		return -EINVAL;
	}
}
