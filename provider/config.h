/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h: the keys of the provider's section in openssl.cnf. Pure: the caller says
 * how a key's text is found.
 */
#ifndef MLKEMD_PROVIDER_CONFIG_H
#define MLKEMD_PROVIDER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFIG_SOCKET_MAX 107 /* of struct sockaddr_un, without the NUL */
#define CONFIG_ERROR_MAX  400

enum config_route { CONFIG_ROUTE_AUTO, CONFIG_ROUTE_DAEMON, CONFIG_ROUTE_LOCAL };

struct config {
	char socket[CONFIG_SOCKET_MAX + 1];
	enum config_route route;
	bool require;
	uint32_t deadline_us;
	bool server_uid_set;
	uid_t server_uid;
	unsigned leases;
	bool takeover;
};

/* The text of a key, or NULL if the section does not have it. */
typedef const char *config_find(void *arg, const char *key);

/*
 * Fills config, with the default where a key is absent. Returns 0, or -1 with a
 * sentence in error that names the key, its value, and what is allowed.
 */
__attribute__((warn_unused_result)) int config_read(struct config *config,
    config_find *find, void *arg, char *error, size_t error_size);

#endif
