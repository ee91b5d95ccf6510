/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * route_auto.h: daemon or this process, whichever is cheaper. What calls cost is learned
 * as moving figures, an item's share, for each kind of operation and size of a call.
 * Pure: no clock, no socket, no allocation; the zero state is one that has learned
 * nothing. One thread at a time: route.c holds the handle's lock around each call.
 */
#ifndef MLKEMCLIENT_ROUTE_AUTO_H
#define MLKEMCLIENT_ROUTE_AUTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What is compared is, in microseconds an item,
 *
 *     cost = processor time + time that the caller is held / 8
 *
 * Here the two are the same thing: a local call holds its caller for as long as it
 * works. Through the daemon, processor time is the caller's own (system calls, spinning)
 * and its share of the daemon's, which a full batch makes small; both are taken from the
 * same host. Being held is not free, since a blocking proxy's other connections wait with
 * it, but it counts an eighth: only many callers at once fill a batch, and where they are
 * that busy, handshakes queue for processors. An eighth keeps what is given away within
 * 5 % of a handshake of 290 us: a daemon that saves 13 us of 53 in 110 us is taken. The
 * time held is the mean and its mean deviation, so that a daemon that is quick only
 * mostly is charged for the rest.
 */
#define ROUTE_AUTO_HELD_DIVISOR 8

/* What a request costs in the daemon beside its service time: recv, send, epoll. */
#define ROUTE_AUTO_SOCKET_US 8
/* No daemon can be cheaper than system calls on both sides: shorter work stays here. */
#define ROUTE_AUTO_FLOOR_US 16

/* Going to the daemon takes 1/20 less than local; coming back, as much more. */
#define ROUTE_AUTO_TO_DAEMON_PERCENT 95
#define ROUTE_AUTO_TO_LOCAL_PERCENT  105

/*
 * Probes come in bursts of ROUTE_AUTO_BURST calls in a row, of which the first ones are
 * not learned from (they wake the daemon). A burst begins in the first
 * ROUTE_AUTO_WINDOW_US of a period of the monotonic clock, which is the same clock for
 * all processes: what the daemon costs depends on how many use it at once, and probes
 * that come alone would never see a batch. The period doubles from one second to 64
 * while the daemon is dearer. A caller that is too seldom awake to meet a window makes
 * its bursts at any time.
 *
 * Never more than one call in ROUTE_AUTO_SHARE is a probe, at any point of a sequence
 * of calls of a kind; and what probes take longer than local calls would is below
 * 1/ROUTE_AUTO_TIME of the time that passes, up to one call that was under way.
 */
#define ROUTE_AUTO_BURST         16
#define ROUTE_AUTO_BURST_UNUSED  4
#define ROUTE_AUTO_SHARE         128
#define ROUTE_AUTO_TIME          128
#define ROUTE_AUTO_BUDGET_MAX_US 4000u
#define ROUTE_AUTO_WINDOW_US     16384u
#define ROUTE_AUTO_PERIOD_MIN_US (1u << 20)
#define ROUTE_AUTO_PERIOD_MAX_US (1u << 26)

/* A figure that is this old is replaced by the next sample, not moved by it. */
#define ROUTE_AUTO_FORGET_US 10000000u

/* Enough to choose by. */
#define ROUTE_AUTO_SAMPLES 8

enum auto_choice { AUTO_LOCAL, AUTO_DAEMON };
enum auto_op { AUTO_KEYGEN, AUTO_ENCAPS, AUTO_DECAPS, AUTO_N_OPS };

/* The op of the functions below: an operation of an algorithm (enum kem_alg). */
#define ROUTE_AUTO_OP(auto_op, alg) ((unsigned)(alg)*AUTO_N_OPS + (unsigned)(auto_op))
#define ROUTE_AUTO_N_OPS            (4u * AUTO_N_OPS)
#define ROUTE_AUTO_N_SIZES          7u /* 1, 2 to 3, 4 to 7 ... 64 items */

/* A moving figure, in 1/256 us an item. */
struct auto_figure {
	uint32_t mean, deviation;
	uint32_t n;       /* samples, up to a limit: how much a new one weighs */
	uint32_t outlier; /* share of calls far above the mean, in 2^-16 */
	uint64_t at_us;   /* of the last sample */
};

struct auto_kind {
	struct auto_figure local;     /* wall, which is processor time too */
	struct auto_figure daemon;    /* wall */
	struct auto_figure own_cpu;   /* of that, the caller's processor time */
	struct auto_figure share_cpu; /* the items' part of the daemon's */
	enum auto_choice choice;
	bool in_burst;     /* until what it showed was judged */
	unsigned n_burst;  /* probes still to come */
	unsigned n_unused; /* samples of the burst that are not to be learned from */
	uint32_t calls;    /* since the last burst; on route daemon: local probe */
	uint32_t period_us;
	uint64_t since_us; /* when the last burst ended */
};

struct route_auto {
	struct auto_kind kinds[ROUTE_AUTO_N_OPS][ROUTE_AUTO_N_SIZES];
	uint64_t now_us; /* the latest that was told */
	int64_t budget;  /* that probes may still take, in us x ROUTE_AUTO_TIME */
};

/*
 * Where to work a call of n_items (1 to 64). *probep: it goes there to learn what that
 * costs, not because it is cheaper. Key generation is judged together with the
 * decapsulation that follows it, since the key lives where it was made.
 */
enum auto_choice route_auto_choose(struct route_auto *costs, unsigned op,
    size_t n_items, uint64_t now_us, bool *probep);

/*
 * What a call through the daemon took, connecting not included: wall_us, own_cpu_us of
 * the calling thread, and the Load of the answer. own_cpu_us may be UINT32_MAX: not
 * measured this time; batch_fill_milli and service_us may be 0: not told.
 */
void route_auto_learn_daemon(struct route_auto *costs, unsigned op, size_t n_items,
    uint64_t now_us, uint32_t wall_us, uint32_t own_cpu_us, uint32_t batch_fill_milli,
    uint32_t service_us);

/* The daemon did not do it in wall_us: local for now, and a longer pause. */
void route_auto_learn_failure(struct route_auto *costs, unsigned op, size_t n_items,
    uint64_t now_us, uint32_t wall_us);

void route_auto_learn_local(struct route_auto *costs, unsigned op, size_t n_items,
    uint64_t now_us, uint32_t wall_us);

/* The cost above, in 1/256 us an item; 0: not known (yet). */
uint64_t route_auto_cost(const struct route_auto *costs, unsigned op, size_t n_items,
    enum auto_choice choice);

#endif
