/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busypoll.h: whether a shard that has nothing to do looks again before it sleeps. It
 * does so for at most as long as a wake-up costs, and only while requests have lately
 * come sooner than that after the last reply: then looking is cheaper than being woken.
 * Shard thread only, but for busypoll_measure().
 */
#ifndef MLKEMD_BUSYPOLL_H
#define MLKEMD_BUSYPOLL_H

#include <stdbool.h>
#include <stdint.h>

#define BUSYPOLL_MAX_US 20u
#define BUSYPOLL_GAPS   16u

struct busypoll {
	uint32_t limit_us; /* 0: never */
	uint64_t replied_us;
	uint32_t gaps_us[BUSYPOLL_GAPS]; /* from a reply to the next request */
	uint32_t gap_sum_us;
	unsigned next;
};

/*
 * Microseconds from a write until a thread that slept in read(2) on another CPU runs, the
 * median of some; at most BUSYPOLL_MAX_US. 0: it does not pay (this thread may run on one
 * CPU alone), or could not be measured.
 */
uint32_t busypoll_measure(void);

/* It begins as one that has had long gaps. */
void busypoll_init(struct busypoll *poll, uint32_t limit_us);

/* How a request was seen. */
enum busypoll_seen {
	BUSYPOLL_AWAKE,   /* it was there, or was found by looking */
	BUSYPOLL_ASLEEP,  /* so it had come a wake-up before that, which is no gap */
	BUSYPOLL_IN_VAIN, /* after looking and then sleeping all the same */
};

/* A request came while nothing was left to do; a reply has gone out. */
void busypoll_note_request(
    struct busypoll *poll, uint64_t now_us, enum busypoll_seen seen);
void busypoll_note_reply(struct busypoll *poll, uint64_t now_us);

/* Whether to look again now, rather than sleep. */
bool busypoll_wants(const struct busypoll *poll, uint64_t now_us);

#endif
