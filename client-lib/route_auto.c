/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/route_auto.h"

#include <assert.h>

#include "kem/fault.h"

#define ONE_US         256u      /* of a figure */
#define WALL_MAX_US    10000000u /* more says nothing more */
#define OWN_CPU_US     8u        /* two system calls, until it is measured */
#define LEAST_OF       4u        /* first samples: the least of them counts */
#define WEIGHT_MAX     16u       /* a sample moves the mean by a 16th, at least */
#define CLIP           4u        /* an outlier counts as this many times the mean */
#define OUTLIER_WEIGHT 64u
/* Two far ones in a row, or one in 64 for long: what p99 would show. */
#define OUTLIERS_TOO_MANY (3u * 65536 / (2 * OUTLIER_WEIGHT))
#define FLOOR_COST \
 (ROUTE_AUTO_FLOOR_US * ONE_US + ROUTE_AUTO_FLOOR_US * ONE_US / ROUTE_AUTO_HELD_DIVISOR)
#define BUDGET_MAX (ROUTE_AUTO_BUDGET_MAX_US * ROUTE_AUTO_TIME)

/* Classes of 1, 2 to 3, 4 to 7 ... 64 items. */
static unsigned
size_class(size_t n_items)
{
	unsigned size = 0;

	while (n_items > 1 && size < ROUTE_AUTO_N_SIZES - 1) {
		n_items >>= 1;
		size++;
	}
	return size;
}

static struct auto_kind *
kind_of(struct route_auto *costs, unsigned op, size_t n_items)
{
	assert(op < ROUTE_AUTO_N_OPS && n_items > 0);
	return &costs->kinds[op][size_class(n_items)];
}

/* Several threads may have read the clock and tell it out of order. */
static uint64_t
time_told(struct route_auto *costs, uint64_t now_us)
{
	uint64_t passed;

	if (now_us <= costs->now_us)
		return costs->now_us;
	passed = costs->now_us != 0 ? now_us - costs->now_us : 0;
	if (passed > BUDGET_MAX)
		passed = BUDGET_MAX;
	costs->budget += (int64_t)passed;
	if (costs->budget > (int64_t)BUDGET_MAX)
		costs->budget = (int64_t)BUDGET_MAX;
	costs->now_us = now_us;
	return now_us;
}

static uint32_t
sample_of(uint64_t us, size_t n_items)
{
	if (us > WALL_MAX_US)
		us = WALL_MAX_US;
	return (uint32_t)(us * ONE_US / n_items);
}

static bool
figure_is_old(const struct auto_figure *figure, uint64_t now_us)
{
	return now_us - figure->at_us > ROUTE_AUTO_FORGET_US;
}

static void
figure_note_outlier(struct auto_figure *figure, bool is_one)
{
	figure->outlier -= figure->outlier / OUTLIER_WEIGHT;
	if (is_one)
		figure->outlier += 65536 / OUTLIER_WEIGHT;
}

/* Robust: one sample of any size moves the mean by no more than 3/16 of it. */
static void
figure_learn(struct auto_figure *figure, uint32_t sample, uint64_t now_us)
{
	uint32_t limit =
	    figure->mean > UINT32_MAX / CLIP ? UINT32_MAX : figure->mean * CLIP;
	uint32_t weight;
	int64_t off;

	if (figure_is_old(figure, now_us) && !fault("client-auto-keeps-old"))
		*figure = (struct auto_figure){0};
	figure->at_us = now_us;
	if (figure->n < LEAST_OF) {
		if (figure->n == 0 || sample < figure->mean)
			figure->mean = sample;
		figure->n++;
		return;
	}

	/* A mean of nothing (a clock that stands still) has no outliers. */
	figure_note_outlier(figure, limit > 0 && sample > limit);
	if (limit > 0 && sample > limit && !fault("client-auto-no-clip"))
		sample = limit;
	weight = figure->n < WEIGHT_MAX ? figure->n + 1 : WEIGHT_MAX;
	off = (int64_t)sample - figure->mean;
	figure->mean = (uint32_t)((int64_t)figure->mean + off / (int64_t)weight);
	off = (off < 0 ? -off : off) - figure->deviation;
	figure->deviation = (uint32_t)((int64_t)figure->deviation + off / 8);
	if (figure->n < WEIGHT_MAX)
		figure->n++;
}

static uint64_t
cost_of(uint64_t cpu, const struct auto_figure *wall)
{
	return cpu + ((uint64_t)wall->mean + wall->deviation) / ROUTE_AUTO_HELD_DIVISOR;
}

static uint64_t
kind_cost(const struct auto_kind *kind, enum auto_choice choice)
{
	uint64_t own;

	if (choice == AUTO_LOCAL)
		return kind->local.n ? cost_of(kind->local.mean, &kind->local) : 0;
	if (kind->daemon.n == 0)
		return 0;
	own = kind->own_cpu.n ? kind->own_cpu.mean : OWN_CPU_US * ONE_US;
	return cost_of(own + kind->share_cpu.mean, &kind->daemon);
}

/*
 * What a key generation is for: the use of its keys, which may be one by one although
 * they were made in numbers. NULL for the other operations.
 */
static const struct auto_kind *
kind_of_use(const struct route_auto *costs, unsigned op, unsigned size)
{
	const struct auto_kind *use;

	if (op % AUTO_N_OPS != AUTO_KEYGEN)
		return NULL;
	op += AUTO_DECAPS - AUTO_KEYGEN;
	use = &costs->kinds[op][size];
	return use->local.n && use->daemon.n ? use : &costs->kinds[op][0];
}

uint64_t
route_auto_cost(const struct route_auto *costs, unsigned op, size_t n_items,
    enum auto_choice choice)
{
	unsigned size = size_class(n_items);
	const struct auto_kind *use = kind_of_use(costs, op, size);
	uint64_t cost = kind_cost(&costs->kinds[op][size], choice);
	uint64_t use_cost = use ? kind_cost(use, choice) : 0;

	if (cost == 0 || (use && use_cost == 0))
		return 0;
	return cost + use_cost;
}

static bool
kind_is_late(const struct auto_kind *kind)
{
	return kind->daemon.outlier > kind->local.outlier + OUTLIERS_TOO_MANY;
}

static bool
daemon_is_late(const struct route_auto *costs, unsigned op, size_t n_items)
{
	unsigned size = size_class(n_items);
	const struct auto_kind *use = kind_of_use(costs, op, size);

	return kind_is_late(&costs->kinds[op][size]) || (use && kind_is_late(use));
}

/* Dearer daemons are looked at more and more seldom. */
static void
burst_end(struct auto_kind *kind, uint64_t now_us, bool dearer, uint32_t period_max_us)
{
	kind->n_burst = 0;
	kind->in_burst = false;
	kind->since_us = now_us;
	if (dearer && kind->period_us < period_max_us)
		kind->period_us *= 2;
}

/* Judged once, when a burst is over: what it cost, all processes at once. */
static void
settle_local(
    struct auto_kind *kind, uint64_t local, uint64_t daemon, bool late, uint64_t now_us)
{
	bool known = kind->daemon.n >= ROUTE_AUTO_SAMPLES && local != 0 &&
		     daemon != 0 && !figure_is_old(&kind->daemon, now_us);
	unsigned percent =
	    fault("client-auto-no-hysteresis") ? 100 : ROUTE_AUTO_TO_DAEMON_PERCENT;

	if (!kind->in_burst || kind->n_burst > 0)
		return;
	if (known && !late && daemon * 100 < local * percent) {
		kind->choice = AUTO_DAEMON;
		burst_end(kind, now_us, false, 0);
		return;
	}
	burst_end(kind, now_us, true,
	    known && daemon * 2 < local * 3 ? ROUTE_AUTO_PERIOD_MAX_US / 4
					    : ROUTE_AUTO_PERIOD_MAX_US);
}

static void
settle_daemon(
    struct auto_kind *kind, uint64_t local, uint64_t daemon, bool late, uint64_t now_us)
{
	unsigned percent =
	    fault("client-auto-no-hysteresis") ? 100 : ROUTE_AUTO_TO_LOCAL_PERCENT;

	if (!late && (local == 0 || daemon == 0 || daemon * 100 <= local * percent))
		return;
	/* After a stay that was worth it the next look comes soon, else later. */
	if (now_us - kind->since_us > 2ull * ROUTE_AUTO_PERIOD_MAX_US)
		kind->period_us = ROUTE_AUTO_PERIOD_MIN_US;
	kind->choice = AUTO_LOCAL;
	kind->calls = 0;
	burst_end(kind, now_us, true, ROUTE_AUTO_PERIOD_MAX_US);
}

static bool
burst_may_begin(
    const struct route_auto *costs, const struct auto_kind *kind, uint64_t local)
{
	uint64_t since_us = costs->now_us - kind->since_us;
	uint32_t share = fault("client-auto-probe-often") ? 8 : ROUTE_AUTO_SHARE;

	if (kind->calls < ROUTE_AUTO_BURST * share || costs->budget <= 0 ||
	    kind->local.n < ROUTE_AUTO_SAMPLES || local < FLOOR_COST)
		return false;
	if ((costs->now_us & (kind->period_us - 1)) < ROUTE_AUTO_WINDOW_US)
		return since_us >= kind->period_us / 2;
	return since_us >= 2ull * ROUTE_AUTO_PERIOD_MAX_US;
}

/* Whether a call of a kind that is worked here goes to the daemon. */
static bool
probe_daemon(struct route_auto *costs, struct auto_kind *kind, uint64_t local)
{
	if (kind->n_burst == 0 && !kind->in_burst &&
	    burst_may_begin(costs, kind, local)) {
		kind->in_burst = true;
		kind->n_burst = ROUTE_AUTO_BURST;
		kind->n_unused = ROUTE_AUTO_BURST_UNUSED;
		kind->calls = 0;
	}
	if (kind->n_burst > 0 && costs->budget <= 0 && !fault("client-auto-no-budget"))
		kind->n_burst = 0;
	if (kind->n_burst == 0)
		return false;
	kind->n_burst--;
	return true;
}

/* And the other way round, now and then: the local figure must not grow old. */
static bool
probe_local(struct auto_kind *kind)
{
	if (kind->calls < ROUTE_AUTO_SHARE)
		return false;
	kind->calls = 0;
	return true;
}

enum auto_choice
route_auto_choose(struct route_auto *costs, unsigned op, size_t n_items,
    uint64_t now_us, bool *probep)
{
	struct auto_kind *kind = kind_of(costs, op, n_items);
	uint64_t local = route_auto_cost(costs, op, n_items, AUTO_LOCAL);
	uint64_t daemon = route_auto_cost(costs, op, n_items, AUTO_DAEMON);
	bool late = daemon_is_late(costs, op, n_items);

	now_us = time_told(costs, now_us);
	if (kind->period_us == 0) {
		kind->period_us = ROUTE_AUTO_PERIOD_MIN_US;
		kind->since_us = now_us;
	}
	if (kind->calls < UINT32_MAX)
		kind->calls++;

	if (kind->choice == AUTO_LOCAL)
		settle_local(kind, local, daemon, late, now_us);
	else
		settle_daemon(kind, local, daemon, late, now_us);
	if (kind->choice == AUTO_LOCAL) {
		*probep = probe_daemon(costs, kind, local);
		return *probep ? AUTO_DAEMON : AUTO_LOCAL;
	}
	*probep = probe_local(kind);
	return *probep ? AUTO_LOCAL : AUTO_DAEMON;
}

void
route_auto_learn_local(struct route_auto *costs, unsigned op, size_t n_items,
    uint64_t now_us, uint32_t wall_us)
{
	figure_learn(&kind_of(costs, op, n_items)->local, sample_of(wall_us, n_items),
	    time_told(costs, now_us));
}

/* Key generations that are probes bring decapsulations that are. */
static bool
is_probing(const struct route_auto *costs, unsigned op, unsigned size)
{
	if (costs->kinds[op][size].in_burst)
		return true;
	if (op % AUTO_N_OPS != AUTO_DECAPS)
		return false;
	op -= AUTO_DECAPS - AUTO_KEYGEN;
	return costs->kinds[op][size].in_burst || costs->kinds[op][0].in_burst;
}

/* What it took longer than it would have here. */
static void
budget_charge(struct route_auto *costs, unsigned op, size_t n_items, uint32_t wall_us)
{
	unsigned size = size_class(n_items);
	uint64_t local_us =
	    (uint64_t)costs->kinds[op][size].local.mean * n_items / ONE_US;

	if (is_probing(costs, op, size) && wall_us > local_us)
		costs->budget -= (int64_t)((wall_us - local_us) * ROUTE_AUTO_TIME);
}

/*
 * The items' part of the processor time that answering took. service_us runs while the
 * shard works a whole batch, for fill items; a large request is several batches.
 */
static uint64_t
daemon_share_us(
    size_t n_items, uint32_t wall_us, uint32_t batch_fill_milli, uint32_t service_us)
{
	uint64_t share = service_us;

	if (service_us == 0 || service_us > wall_us)
		share = service_us = wall_us;
	if (batch_fill_milli >= 1000)
		share = (uint64_t)service_us * n_items * 1000 / batch_fill_milli;
	return (share < service_us ? share : service_us) + ROUTE_AUTO_SOCKET_US;
}

void
route_auto_learn_daemon(struct route_auto *costs, unsigned op, size_t n_items,
    uint64_t now_us, uint32_t wall_us, uint32_t own_cpu_us, uint32_t batch_fill_milli,
    uint32_t service_us)
{
	struct auto_kind *kind = kind_of(costs, op, n_items);
	uint64_t share_us =
	    daemon_share_us(n_items, wall_us, batch_fill_milli, service_us);

	now_us = time_told(costs, now_us);
	budget_charge(costs, op, n_items, wall_us);
	if (kind->n_unused > 0) {
		kind->n_unused--;
		return;
	}
	if (own_cpu_us != UINT32_MAX)
		figure_learn(&kind->own_cpu, sample_of(own_cpu_us, n_items), now_us);
	figure_learn(&kind->share_cpu, sample_of(share_us, n_items), now_us);
	figure_learn(&kind->daemon, sample_of(wall_us, n_items), now_us);
}

void
route_auto_learn_failure(struct route_auto *costs, unsigned op, size_t n_items,
    uint64_t now_us, uint32_t wall_us)
{
	struct auto_kind *kind = kind_of(costs, op, n_items);

	now_us = time_told(costs, now_us);
	budget_charge(costs, op, n_items, wall_us);
	kind->choice = AUTO_LOCAL;
	kind->calls = 0;
	kind->daemon = kind->own_cpu = kind->share_cpu = (struct auto_figure){0};
	burst_end(kind, now_us, true, ROUTE_AUTO_PERIOD_MAX_US);
}
