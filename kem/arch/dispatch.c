/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "backend.h"

/* The best first. */
static const struct backend *const backends[] = {
    &backend_generic,
};

int
backend_choose(const char *name, const struct backend **backendp)
{
	*backendp = NULL;
	if (name == NULL)
		name = secure_getenv("MLKEMD_BACKEND");
	for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
		if (name == NULL || strcmp(name, backends[i]->name) == 0) {
			*backendp = backends[i];
			return 0;
		}
	}
	return KEM_FAIL_BACKEND;
}
