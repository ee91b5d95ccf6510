/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "wipe.h"

#include <stdint.h>

#include "fault.h"
#include "kem.h"

#define STACK_WIPE_BYTES 6144

static __attribute__((noinline)) void
stack_overwrite(void)
{
	uint8_t below[STACK_WIPE_BYTES];

	kem_wipe(below, sizeof(below));
}

void
libcrypto_stack_wipe(void)
{
	if (!fault("kem-no-wipe-libcrypto-stack"))
		stack_overwrite();
}
