/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "config_keys.h"

static struct config_name *
name_find(const struct config *config, const char *name, bool is_group)
{
	for (struct config_name *known = config->names; known; known = known->next) {
		if (known->is_group == is_group && !strcmp(known->name, name))
			return known;
	}
	return NULL;
}

static int
name_add(struct config *config, const char *name, bool is_group, bool exists,
    uint32_t id, struct config_name **knownp)
{
	struct config_name *known = calloc(1, sizeof(*known));

	if (!known)
		return -ENOMEM;
	known->name = strdup(name);
	if (!known->name) {
		free(known);
		return -ENOMEM;
	}
	known->is_group = is_group;
	known->exists = exists;
	known->id = id;
	known->next = config->names;
	config->names = known;
	*knownp = known;
	return 0;
}

/* The user database, once, at the start: later it may lie behind a sandbox. */
static int
name_look_up(
    struct config *config, const char *name, bool is_group, struct config_name **knownp)
{
	bool exists = false;
	uint32_t id = 0;

	if (is_group) {
		/* No thread runs yet. */
		/* cppcheck-suppress getgrnamCalled */
		struct group *group = getgrnam(name);

		exists = group;
		id = group ? group->gr_gid : 0;
	} else {
		/* cppcheck-suppress getpwnamCalled */
		struct passwd *user = getpwnam(name);

		exists = user;
		id = user ? user->pw_uid : 0;
	}
	return name_add(config, name, is_group, exists, id, knownp);
}

static bool
id_parse(const char *text, uint32_t *idp)
{
	size_t n = strspn(text, "0123456789");
	unsigned long value;

	if (!n || n > 10 || text[n])
		return false;
	value = strtoul(text, NULL, 10);
	if (value >= UINT32_MAX) /* (uid_t)-1 means "none" to the kernel */
		return false;
	*idp = (uint32_t)value;
	return true;
}

int
config_name_resolve(struct config *config, const char *text, bool is_group,
    bool may_resolve, uint32_t *idp, bool *presentp, const char **allowedp)
{
	struct config_name *known;
	bool optional = text[0] == '?';

	*presentp = true;
	if (id_parse(text, idp))
		return 0;
	if (text[0] >= '0' && text[0] <= '9')
		return CONFIG_E_INVALID;
	text += optional;
	if (!*text)
		return CONFIG_E_INVALID;
	known = name_find(config, text, is_group);
	if (!known && !may_resolve) {
		*allowedp = "a name that is new at a reload must be given by its "
			    "number, or the daemon restarted";
		return CONFIG_E_INVALID;
	}
	if (!known) {
		int r = name_look_up(config, text, is_group, &known);

		if (r)
			return r;
	}
	*presentp = known->exists;
	*idp = known->id;
	if (known->exists || optional)
		return 0;
	*allowedp = is_group ? "no such group on this host; ?name if it need not exist"
			     : "no such user on this host; ?name if it need not exist";
	return CONFIG_E_INVALID;
}

int
config_names_copy(struct config *to, const struct config *from)
{
	for (const struct config_name *n = from->names; n; n = n->next) {
		struct config_name *known;
		int r = name_add(to, n->name, n->is_group, n->exists, n->id, &known);

		if (r)
			return r;
	}
	return 0;
}

void
config_names_free(struct config *config)
{
	while (config->names) {
		struct config_name *next = config->names->next;

		free(config->names->name);
		free(config->names);
		config->names = next;
	}
}
