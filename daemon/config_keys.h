/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_keys.h: the table of all keys, and how the text of one becomes a value. Within
 * config*.c only. docs/operations.md says the same to people; tests compare the two.
 */
#ifndef MLKEMD_CONFIG_KEYS_H
#define MLKEMD_CONFIG_KEYS_H

#include "config.h"

enum config_type {
	CONFIG_PATH,     /* char *, at most 107 bytes: it goes into a sockaddr_un */
	CONFIG_OPT_PATH, /* the same, NULL for an empty one */
	CONFIG_LOOPBACK, /* char *, loopback address:port, NULL for an empty one */
	CONFIG_BACKEND,  /* char *, NULL for auto */
	CONFIG_MODE,     /* mode_t, octal */
	CONFIG_GROUP,    /* gid_t */
	CONFIG_USERS,    /* struct config_ids; lines add up, an empty one clears */
	CONFIG_GROUPS,   /* the same */
	CONFIG_BOOL,     /* bool */
	CONFIG_PAIRWISE, /* bool */
	CONFIG_NUMBER,   /* uint32_t */
	CONFIG_SHARDS,   /* uint32_t, 0 for auto */
	CONFIG_PERCENT,  /* uint32_t */
	CONFIG_BYTES,    /* uint32_t */
	CONFIG_MS,       /* uint32_t, from a duration with its unit */
	CONFIG_US,       /* uint32_t, the same */
	CONFIG_SECMEM,   /* enum secmem_policy */
	CONFIG_SANDBOX,  /* enum sandbox_policy */
	CONFIG_LEVEL,    /* int */
};

struct config_key {
	const char *section, *name;
	size_t offset;     /* in struct config */
	uint64_t min, max; /* in the field's unit */
	const char *initial;
	const char *allowed; /* what a mistake's message says */
	enum config_type type;
	bool fixed; /* takes effect at a restart only */
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* A name that was looked up: kept, since later look-ups may be impossible. */
struct config_name {
	char *name;
	bool is_group, exists;
	uint32_t id;
	struct config_name *next;
};

/* Writes the one line that says what is wrong. Returns CONFIG_E_INVALID. */
__attribute__((format(printf, 3, 4))) int config_error(
    char *error, size_t size, const char *format, ...);

/*
 * Gives key a value from origin, or adds to a list. Returns 0; -ENOMEM; or
 * CONFIG_E_INVALID with error written.
 */
int config_set(struct config *config, const struct config_key *key, const char *value,
    const char *origin, bool may_resolve, char *error, size_t error_size);

/* Reads the text of one file, called name in messages. Returns as config_set(). */
int config_read_text(struct config *config, const char *name, const char *text,
    size_t len, bool may_resolve, char *error, size_t error_size);

/* NULL if there is none such. */
const struct config_key *config_key_find(const char *section, const char *name);

/*
 * Parses text into config's field. may_resolve: names may be looked up in the user
 * database. Returns 0; -ENOMEM; or CONFIG_E_INVALID with *allowedp set to what is
 * allowed instead (static).
 */
int config_key_parse(const struct config_key *key, const char *text, bool may_resolve,
    struct config *config, const char **allowedp);

/* Takes the value of key over from another configuration. Returns 0, or -ENOMEM. */
int config_key_copy(
    const struct config_key *key, struct config *to, const struct config *from);
void config_key_clear(const struct config_key *key, struct config *config);

/* Copies the names already looked up. Returns 0, or -ENOMEM. */
int config_names_copy(struct config *to, const struct config *from);
void config_names_free(struct config *config);

/*
 * "name", "?name" or a number to *idp; *presentp is false for a "?name" that does not
 * exist. As config_key_parse().
 */
int config_name_resolve(struct config *config, const char *text, bool is_group,
    bool may_resolve, uint32_t *idp, bool *presentp, const char **allowedp);

#endif
