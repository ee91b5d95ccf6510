/* SPDX-License-Identifier: Apache-2.0 */
#include "busypoll.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "kem/fault.h"

#define ROUNDS      33
#define ASLEEP_NS   50000u /* after so long a thread with nothing to do sleeps */
#define LONG_GAP_US 1000u  /* longer ones are alike */

/* A thread that is woken by a count, and says when it ran. */
struct sleeper {
	int fd;
	cpu_set_t cpus;
	_Atomic bool over;
	_Atomic uint64_t awake_ns; /* 0: not yet */
};

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void *
sleeper_main(void *arg)
{
	struct sleeper *sleeper = arg;
	eventfd_t count;

	/* Where a sandbox refuses that, a busy machine may look cheap to wake. */
	(void)sched_setaffinity(0, sizeof(sleeper->cpus), &sleeper->cpus);
	while (!atomic_load(&sleeper->over)) {
		(void)!eventfd_read(sleeper->fd, &count);
		atomic_store(&sleeper->awake_ns, now_ns());
	}
	return NULL;
}

static int
compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * Two threads on one CPU would measure a switch, a fifth of what waking a CPU takes that
 * sleeps. This one never sleeps meanwhile, and an eventfd does not tell the scheduler that
 * it is about to, as pipes and sockets do; else it would put them together.
 */
static uint64_t
sleeper_wake(struct sleeper *sleeper)
{
	uint64_t start_ns = now_ns(), awake_ns;

	while (now_ns() < start_ns + ASLEEP_NS)
		sched_yield();
	atomic_store(&sleeper->awake_ns, 0);
	start_ns = now_ns();
	if (eventfd_write(sleeper->fd, 1))
		return 0;
	while (!(awake_ns = atomic_load(&sleeper->awake_ns)))
		sched_yield();
	return awake_ns - start_ns;
}

/* All CPUs that this thread may run on, but the one that it is on. */
static bool
other_cpus(cpu_set_t *cpus)
{
	int here = sched_getcpu();

	if (here < 0 || sched_getaffinity(0, sizeof(*cpus), cpus))
		return false;
	CPU_CLR(here, cpus);
	return CPU_COUNT(cpus) > 0;
}

uint32_t
busypoll_measure(void)
{
	struct sleeper sleeper = {.fd = -1};
	uint64_t ns[ROUNDS], us;
	pthread_t thread;

	if (other_cpus(&sleeper.cpus))
		sleeper.fd = eventfd(0, EFD_CLOEXEC);
	if (sleeper.fd < 0)
		return 0;
	if (pthread_create(&thread, NULL, sleeper_main, &sleeper)) {
		close(sleeper.fd);
		return 0;
	}
	for (int i = 0; i < ROUNDS; i++)
		ns[i] = sleeper_wake(&sleeper);
	atomic_store(&sleeper.over, true);
	(void)!eventfd_write(sleeper.fd, 1);
	pthread_join(thread, NULL);
	close(sleeper.fd);
	qsort(ns, ROUNDS, sizeof(ns[0]), compare_ns);
	us = (ns[ROUNDS / 2] + 999) / 1000;
	return us < BUSYPOLL_MAX_US ? (uint32_t)us : BUSYPOLL_MAX_US;
}

void
busypoll_init(struct busypoll *poll, uint32_t limit_us)
{
	memset(poll, 0, sizeof(*poll));
	poll->limit_us = limit_us;
	for (unsigned i = 0; i < BUSYPOLL_GAPS; i++)
		poll->gaps_us[i] = LONG_GAP_US;
	poll->gap_sum_us = BUSYPOLL_GAPS * LONG_GAP_US;
}

/*
 * Were a wake-up in the gap, no shard that sleeps would ever find that it need not. But a
 * client on the same CPU can't ask before the shard sleeps, and its gaps look short from
 * then on: so two looks in vain of 16 are enough to leave it.
 */
void
busypoll_note_request(struct busypoll *poll, uint64_t now_us, enum busypoll_seen seen)
{
	uint64_t gap = now_us > poll->replied_us ? now_us - poll->replied_us : 0;
	uint32_t in_vain_us = poll->limit_us * BUSYPOLL_GAPS / 2, clipped;

	if (seen == BUSYPOLL_ASLEEP && !fault("poll-late"))
		gap -= gap < poll->limit_us ? gap : poll->limit_us;
	if (seen == BUSYPOLL_IN_VAIN && gap < in_vain_us && !fault("poll-stubborn"))
		gap = in_vain_us;
	clipped = gap < LONG_GAP_US ? (uint32_t)gap : LONG_GAP_US;

	poll->gap_sum_us += clipped - poll->gaps_us[poll->next];
	poll->gaps_us[poll->next] = clipped;
	poll->next = (poll->next + 1) % BUSYPOLL_GAPS;
}

void
busypoll_note_reply(struct busypoll *poll, uint64_t now_us)
{
	poll->replied_us = now_us;
}

bool
busypoll_wants(const struct busypoll *poll, uint64_t now_us)
{
	return poll->gap_sum_us < BUSYPOLL_GAPS * poll->limit_us &&
	       now_us < poll->replied_us + poll->limit_us;
}
