/* SPDX-License-Identifier: Apache-2.0 */
#include "shard.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "kem/fault.h"
#include "keypool.h"
#include "keytable.h"
#include "log.h"
#include "shard_priv.h"

#define TURN_ITEMS     64u
#define LAST_TURNS_MAX 64 /* at the end, while there is still something to read */

/* Main looks at the levels when its eventfd counts. */
static void
shard_wake_main(struct shard *shard)
{
	(void)!eventfd_write(shard->common->wake_fd, 1);
}

static void
shard_fail(struct shard *shard, int fail)
{
	atomic_store(&shard->failed, fail);
	shard->quit = true;
	shard_wake_main(shard);
}

static void
shard_set_draining(struct shard *shard, bool draining)
{
	shard->service.draining = draining;
	shard->conns.about.draining = draining;
	shard->batch.pool = draining ? NULL : shard->pool;
	atomic_store(&shard->drained, false);
}

static void
shard_reload(struct shard *shard, const struct shard_record *record)
{
	struct keypool_limits limits =
	    shard_pool_limits(record->config, shard->common->n_shards);

	shard->config = record->config;
	shard->service.config = record->config;
	shard->conns.config = record->config;
	shard->conns.about.max_handles =
	    shard_user_handles(record->config, shard->common->n_shards);
	shard->conns.about.handle_lifetime_ms = record->config->handle_lifetime_ms;
	shard->conns.about.default_timeout_us = record->config->default_timeout_us;
	shard->conns.about.export_allowed = record->config->export_private;
	keypool_set_limits(shard->pool, &limits);
	keypool_set_pairwise_check(shard->pool, record->config->pairwise_check);
	conn_set_recheck(&shard->conns);
}

static void
shard_selftest(struct shard *shard)
{
	const char *step = NULL;
	int r;

	while (fault("shard-stall"))
		pause();
	r = kem_selftest(shard->common->kem, shard->scratch, &step);

	atomic_store(&shard->selftest_step, r ? step : NULL);
	if (r)
		shard_fail(shard, r);
}

static void
shard_count_ended(struct shard *shard, const struct conn_peer *peer)
{
	atomic_fetch_add(&shard->n_ended, 1);
	if (peer->refusal)
		atomic_fetch_add(&shard->n_refused_ended, 1);
}

static void
shard_new_conn(struct shard *shard, const struct shard_record *record)
{
	if (!conn_set_add(&shard->conns, record->fd, &record->peer))
		return;
	shard_count_ended(shard, &record->peer);
}

static void
shard_record_do(struct shard *shard, const struct shard_record *record)
{
	switch (record->type) {
	case SHARD_NEW_CONN:
		shard_new_conn(shard, record);
		break;
	case SHARD_DRAIN:
		shard_set_draining(shard, true);
		break;
	case SHARD_RESUME:
		shard_set_draining(shard, false);
		break;
	case SHARD_SELFTEST:
		shard_selftest(shard);
		break;
	case SHARD_RELOAD:
		shard_reload(shard, record);
		break;
	case SHARD_QUIT:
		shard->quit = true;
		break;
	}
	if (record->serial) {
		atomic_store(&shard->serial, record->serial);
		shard_wake_main(shard);
	}
}

void
shard_told(evutil_socket_t fd, short what, void *arg)
{
	struct shard *shard = arg;
	struct shard_record records[16];
	ssize_t n;

	conn_set_woke(&shard->conns);
	n = read(fd, records, sizeof(records));
	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(records[0]); i++)
		shard_record_do(shard, &records[i]);
}

static void
shard_handle(void *owner, struct request *req)
{
	struct shard *shard = owner;

	service_handle(&shard->service, req);
}

static void
shard_conn_gone(void *owner, const struct conn_peer *peer)
{
	struct shard *shard = owner;

	service_conn_gone(&shard->service, peer->id);
	shard_count_ended(shard, peer);
}

const struct conn_ops shard_conn_ops = {
    .handle = shard_handle,
    .gone = shard_conn_gone,
};

/* A host that slept: what lay in memory meanwhile is not given out any more. */
static void
shard_watch_suspend(struct shard *shard)
{
	struct timespec boot, mono;
	int64_t ahead;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	ahead = (boot.tv_sec - mono.tv_sec) * 1000000 +
		(boot.tv_nsec - mono.tv_nsec) / 1000;
	if (ahead > shard->suspended_us + SHARD_SUSPEND_US) {
		log_event_limited(
		    LOG_NOTICE, "suspend", "the host was suspended: pool flushed");
		keypool_flush(shard->pool);
	}
	shard->suspended_us = ahead;
}

static void
shard_publish(struct shard *shard, uint64_t now_us)
{
	struct codec_about *about = &shard->conns.about;

	about->uptime_s = (now_us - shard->common->started_us) / 1000000;
	about->batch_fill_milli = shard->batch.fill_milli;
	about->pool_hybrid = keypool_level(shard->pool, KEYPOOL_HYBRID);
	about->pool_mlkem768 = keypool_level(shard->pool, KEYPOOL_MLKEM768);
	about->pool_x25519 = keypool_level(shard->pool, KEYPOOL_X25519);
	if (shard->service.draining && !atomic_load(&shard->drained) &&
	    !keytable_count(shard->keys) && conn_set_is_quiet(&shard->conns)) {
		atomic_store(&shard->drained, true);
		shard_wake_main(shard);
	}
	if (now_us < shard->window_us + SHARD_WINDOW_US)
		return;
	atomic_store_explicit(&shard->busy_permille,
	    (uint32_t)(shard->window_busy_us * 1000 / (now_us - shard->window_us)),
	    memory_order_relaxed);
	atomic_store_explicit(&shard->busy_until_us, now_us, memory_order_relaxed);
	shard->window_us = now_us;
	shard->window_busy_us = 0;
	shard_watch_suspend(shard);
}

/* An awake shard keeps its pool filled, one group a turn, when nobody waits. */
static bool
shard_wants_fill(const struct shard *shard)
{
	bool awake = shard->index == 0 || shard->conns.n_conns;

	return awake && !shard->service.draining && keypool_wants_fill(shard->pool);
}

static int
shard_fill(struct shard *shard, uint64_t now_us)
{
	int r = keypool_fill_group(shard->pool, now_us);

	if (r == KEM_FAIL_SELFTEST)
		atomic_store(&shard->selftest_step, "pairwise check");
	return r;
}

static uint64_t
shard_n_requests(const struct shard *shard)
{
	return atomic_load_explicit(
	    &shard->metrics.requests_total, memory_order_relaxed);
}

/*
 * Moves bytes; sleeps for them if there is nothing else to do and none are expected
 * within the time that a wake-up would cost. Returns 0, or -EIO.
 */
static int
shard_wait(struct shard *shard, bool has_work, enum busypoll_seen *seenp)
{
	bool look = !has_work && busypoll_wants(&shard->poll, request_now_us());
	bool looked = look;

	conn_set_arm(&shard->conns);
	do {
		int flags = EVLOOP_ONCE | (has_work || look ? EVLOOP_NONBLOCK : 0);

		*seenp = flags & EVLOOP_NONBLOCK ? BUSYPOLL_AWAKE
			 : looked                ? BUSYPOLL_IN_VAIN
						 : BUSYPOLL_ASLEEP;
		if (event_base_loop(shard->base, flags) < 0)
			return -EIO;
		if (!look || shard->conns.woke_us)
			return 0;
		look = busypoll_wants(&shard->poll, request_now_us());
	} while (true);
}

/*
 * Written out, and not left to libevent's priorities: libevent looks at the highest again
 * after each event, so that a client that pipelines would starve the batch for ever. The
 * loop only moves bytes. Then whole requests are taken in rotation, worked together and
 * answered with one send a connection; nobody waits for company, since under load requests
 * come while a batch runs. The pool gets one group, when nobody waits.
 */
static int
shard_turn(struct shard *shard)
{
	bool has_work =
	    conn_set_has_work(&shard->conns) || shard_wants_fill(shard) || shard->quit;
	uint64_t begin_us = has_work ? request_now_us() : 0, now_us;
	uint64_t n_before = shard_n_requests(shard);
	enum busypoll_seen seen;
	int r;

	shard->conns.woke_us = begin_us;
	r = shard_wait(shard, has_work, &seen);
	if (r)
		return r;
	conn_set_collect(&shard->conns, TURN_ITEMS);
	if (shard_n_requests(shard) != n_before)
		busypoll_note_request(&shard->poll, shard->conns.woke_us, seen);
	r = batch_run(&shard->batch);
	conn_set_flush(&shard->conns);
	now_us = request_now_us();
	if (shard_n_requests(shard) != n_before)
		busypoll_note_reply(&shard->poll, now_us);
	keytable_expire(shard->keys, now_us);
	keypool_expire(shard->pool, now_us);
	/* Filling the pool is no load: it ends as soon as somebody comes. */
	if (shard->conns.woke_us)
		shard->window_busy_us += now_us - shard->conns.woke_us;
	if (!r && !conn_set_has_work(&shard->conns) && shard_wants_fill(shard)) {
		r = shard_fill(shard, now_us);
		now_us = request_now_us();
	}
	if (shard->conns.woke_us)
		metrics_add(
		    &shard->metrics.busy_us_total, now_us - shard->conns.woke_us);
	metrics_add(&shard->metrics.turns_total, 1);
	shard_publish(shard, now_us);
	return r;
}

void *
shard_main(void *arg)
{
	struct shard *shard = arg;
	int r = 0;

	while (!shard->quit && !r)
		r = shard_turn(shard);
	/* What had been received when the end came is still answered. */
	for (int i = 0; !r && !atomic_load(&shard->failed) && i < LAST_TURNS_MAX; i++) {
		uint64_t before = shard_n_requests(shard);

		r = shard_turn(shard);
		if (i && !conn_set_has_work(&shard->conns) &&
		    before == shard_n_requests(shard))
			break;
	}
	if (r)
		shard_fail(shard, r);
	conn_set_fini(&shard->conns);
	atomic_store(&shard->ended, true);
	shard_wake_main(shard);
	return NULL;
}
