/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/prctl.h>
#include <sys/resource.h>

#include "kem/fault.h"
#include "sandbox.h"

void
sandbox_harden(void)
{
	struct rlimit none = {0, 0};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (fault_build())
		return;
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
}
