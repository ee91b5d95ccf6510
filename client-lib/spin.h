/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * spin.h: how long to look for an answer before sleeping until it comes. Being woken
 * costs time that looking does not, but looking costs the processor. So: never longer
 * than a wake-up costs here, which the first calls measure (their answers as they come
 * to a sleeper and to one who looks), never over SPIN_CAP_US, never with one processor,
 * and only while answers do come in that time. Pure: no clock; under the handle's lock.
 */
#ifndef MLKEMCLIENT_SPIN_H
#define MLKEMCLIENT_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_CAP_US  20
#define SPIN_MEASURE 16 /* waits of each kind that measure what a wake-up costs */
#define SPIN_TRY     64 /* while off, one wait in so many tries again */
#define SPIN_AGAIN   (1u << 14) /* waits after which all is measured anew */

/* One kind of call: they take their daemon differently long. */
struct spin {
	uint32_t n_slept, n_looked; /* up to SPIN_MEASURE */
	uint32_t slept_us, looked_us;
	uint32_t hits;    /* moving share of waits that looking ended, in 1/1024 */
	uint32_t n_off;   /* waits since the last try */
	uint32_t n_waits; /* in all, up to SPIN_AGAIN */
};

uint32_t spin_budget_us(struct spin *spin, unsigned n_cpus);
/* How the wait went: what was allowed, from question to answer, and whether it hit. */
void spin_learn(struct spin *spin, uint32_t budget_us, uint32_t wait_us, bool hit);
uint32_t spin_wakeup_us(const struct spin *spin); /* 0: not known yet, or nothing */

#endif
