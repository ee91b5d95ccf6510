/* SPDX-License-Identifier: Apache-2.0 */
/* How secret_flow.c tells valgrind's memcheck what is secret, and by what it reports. */
#ifndef MLKEMD_TEST_TAINT_H
#define MLKEMD_TEST_TAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <valgrind/memcheck.h>

#define taint_works() RUNNING_ON_VALGRIND

static inline void
taint(void *p, size_t len)
{
	(void)VALGRIND_MAKE_MEM_UNDEFINED(p, len);
}

static inline void
untaint(void *p, size_t len)
{
	(void)VALGRIND_MAKE_MEM_DEFINED(p, len);
}

/* Whether each byte still counts as secret. */
static inline bool
tainted(const uint8_t *p, size_t len)
{
	uint8_t bits;

	for (size_t i = 0; i < len; i++) {
		if (VALGRIND_GET_VBITS(p + i, &bits, 1) != 1 || bits == 0)
			return false;
	}
	return true;
}

#endif
