/* SPDX-License-Identifier: Apache-2.0 */
#include "busypoll.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS      33
#define LONG_GAP_US 1000u /* longer ones are alike */

/* A thread that is woken by a byte on one pipe and answers on another. */
struct echo {
	int to, from;
};

static void *
echo_main(void *arg)
{
	const struct echo *echo = arg;
	char byte;

	while (read(echo->to, &byte, 1) == 1 && write(echo->from, &byte, 1) == 1)
		;
	return NULL;
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int
compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* There and back is two wake-ups. Returns 0 if a pipe failed. */
static uint64_t
echo_rounds(int write_fd, int read_fd)
{
	uint64_t ns[ROUNDS];
	char byte = 0;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = now_ns();

		if (write(write_fd, &byte, 1) != 1 || read(read_fd, &byte, 1) != 1)
			return 0;
		ns[i] = (now_ns() - start) / 2;
	}
	qsort(ns, ROUNDS, sizeof(ns[0]), compare_ns);
	return ns[ROUNDS / 2];
}

static bool
has_two_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) >= 2;
}

uint32_t
busypoll_measure(void)
{
	int there[2], back[2];
	struct echo echo;
	pthread_t thread;
	uint64_t ns = 0;

	if (!has_two_cpus() || pipe2(there, O_CLOEXEC))
		return 0;
	if (pipe2(back, O_CLOEXEC)) {
		close(there[0]);
		close(there[1]);
		return 0;
	}
	echo = (struct echo){.to = there[0], .from = back[1]};
	if (pthread_create(&thread, NULL, echo_main, &echo) == 0) {
		ns = echo_rounds(there[1], back[0]);
		close(there[1]); /* ends the thread */
		there[1] = -1;
		pthread_join(thread, NULL);
	}
	if (there[1] >= 0)
		close(there[1]);
	close(there[0]);
	close(back[0]);
	close(back[1]);
	ns = (ns + 999) / 1000;
	return ns < BUSYPOLL_MAX_US ? (uint32_t)ns : BUSYPOLL_MAX_US;
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

void
busypoll_note_request(struct busypoll *poll, uint64_t now_us)
{
	uint64_t gap = now_us > poll->replied_us ? now_us - poll->replied_us : 0;
	uint32_t clipped = gap < LONG_GAP_US ? (uint32_t)gap : LONG_GAP_US;

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
