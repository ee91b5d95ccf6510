/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/spin.h"

#define HITS_WHOLE 1024u
#define HITS_WEIGH 16u               /* waits that the moving share remembers */
#define HITS_WORTH (HITS_WHOLE / 2u) /* below it sleeping is cheaper */

/*
 * The quickest of each kind: a wait that something else delayed says nothing about
 * wake-ups, and there is always one that nothing delayed.
 */
uint32_t
spin_wakeup_us(const struct spin *spin)
{
	uint32_t saved;

	if (spin->n_slept < SPIN_MEASURE || spin->n_looked < SPIN_MEASURE ||
	    spin->slept_us <= spin->looked_us)
		return 0;
	saved = spin->slept_us - spin->looked_us;
	return saved < SPIN_CAP_US ? saved : SPIN_CAP_US;
}

uint32_t
spin_budget_us(struct spin *spin, unsigned n_cpus)
{
	if (n_cpus < 2 || spin->n_slept < SPIN_MEASURE)
		return 0;
	if (spin->n_looked < SPIN_MEASURE)
		return SPIN_CAP_US;
	if (spin->hits >= HITS_WORTH)
		return spin_wakeup_us(spin);
	if (++spin->n_off < SPIN_TRY)
		return 0;
	spin->n_off = 0;
	return spin_wakeup_us(spin);
}

static void
learn_quickest(uint32_t *n, uint32_t *us, uint32_t wait_us)
{
	if (*n == 0 || wait_us < *us)
		*us = wait_us;
	++*n;
}

void
spin_learn(struct spin *spin, uint32_t budget_us, uint32_t wait_us, bool hit)
{
	if (++spin->n_waits == SPIN_AGAIN)
		*spin = (struct spin){0};
	if (budget_us == 0) {
		if (spin->n_slept < SPIN_MEASURE)
			learn_quickest(&spin->n_slept, &spin->slept_us, wait_us);
		return;
	}
	if (spin->n_looked < SPIN_MEASURE)
		learn_quickest(&spin->n_looked, &spin->looked_us, wait_us);
	spin->hits -= spin->hits / HITS_WEIGH;
	if (!hit)
		return;
	if (spin->hits < HITS_WORTH)
		spin->n_off = SPIN_TRY - 1; /* it seems to pay again: see at once */
	spin->hits += HITS_WHOLE / HITS_WEIGH;
}
