/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_keys.h: what the provider takes as the keys of its section in openssl.cnf, for
 * who makes such a section. A section that the provider refuses leaves a program without
 * post-quantum groups, often silently. provider/config.c has the last word; the unit
 * test conf_keys holds the two equal.
 */
#ifndef MLKEMCTL_CONF_KEYS_H
#define MLKEMCTL_CONF_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#define CONF_ERROR_MAX 400

/* The name of each key, NULL behind the last. */
const char *conf_key_number(unsigned i);

/* One key. False: error has the provider's sentence. */
bool conf_key_check(const char *key, const char *value, char *error, size_t size);

/* What depends on more than one key; NULL for one that is absent. */
bool conf_keys_agree(const char *route, const char *require, char *error, size_t size);

/* Whether a value of require or takeover means yes. */
bool conf_value_is_yes(const char *value);

#endif
