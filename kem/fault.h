/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * fault.h: planted faults, by which the tests show that they can fail. In a build with
 * -Dtest-hooks=true, fault("name") is true when MLKEMD_FAULT names it (a comma list);
 * in every other build it is the constant false and leaves no code behind.
 */
#ifndef MLKEMD_FAULT_H
#define MLKEMD_FAULT_H

#include <stdbool.h>

#ifdef MLKEMD_TEST_HOOKS
bool fault(const char *name);
#else
static inline bool
fault(const char *name)
{
	(void)name;
	return false;
}
#endif

#endif
