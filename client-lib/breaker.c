/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/client.h"

#define PAUSE_FIRST_US 1000000u
#define PAUSE_MAX_US   30000000u

/* Only silence doubles: a refusal was an answer, and its cause may be gone any time. */
void
breaker_trip(struct breaker *breaker, int error, uint64_t now_us)
{
	if (error == MLKEMCLIENT_E_UNAVAILABLE && breaker->error == error &&
	    now_us < breaker->until_us)
		return; /* calls that passed an open breaker by: a key in the daemon */
	if (error != MLKEMCLIENT_E_UNAVAILABLE ||
	    breaker->error != MLKEMCLIENT_E_UNAVAILABLE)
		breaker->pause_us = PAUSE_FIRST_US;
	else if (breaker->pause_us < PAUSE_MAX_US / 2)
		breaker->pause_us *= 2;
	else
		breaker->pause_us = PAUSE_MAX_US;
	breaker->error = error;
	breaker->until_us = now_us + breaker->pause_us;
}

void
breaker_reset(struct breaker *breaker)
{
	*breaker = (struct breaker){0};
}

bool
breaker_is_open(const struct breaker *breaker, uint64_t now_us)
{
	return breaker->error != 0 && (breaker->probing || now_us < breaker->until_us);
}

bool
breaker_try(struct breaker *breaker, uint64_t now_us, bool *is_probep)
{
	*is_probep = false;
	if (breaker_is_open(breaker, now_us))
		return false;
	*is_probep = breaker->error != 0;
	breaker->probing = *is_probep;
	return true;
}

void
breaker_tried(struct breaker *breaker, bool is_probe)
{
	if (is_probe)
		breaker->probing = false;
}
