/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * breaker.h: keeps calls away from a daemon that does not answer: 1 s after the first
 * timeout, then doubling to 30 s. When the pause is over the next call is the probe. A
 * refused Hello and a draining daemon pause for a second too, without doubling. Pure.
 */
#ifndef MLKEMCLIENT_BREAKER_H
#define MLKEMCLIENT_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

struct breaker {
	int error;    /* why it is open; 0: closed */
	bool probing; /* one call finds out; for all others it is open meanwhile */
	uint64_t until_us;
	uint32_t pause_us;
};

void breaker_trip(struct breaker *breaker, int error, uint64_t now_us);
void breaker_reset(struct breaker *breaker);
bool breaker_is_open(const struct breaker *breaker, uint64_t now_us);

/* False: leave it alone. After true the call ends with breaker_tried(). */
bool breaker_try(struct breaker *breaker, uint64_t now_us, bool *is_probep);
void breaker_tried(struct breaker *breaker, bool is_probe);

#endif
