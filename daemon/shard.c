/* SPDX-License-Identifier: Apache-2.0 */
#include "shard.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "keypool.h"
#include "keytable.h"
#include "log.h"
#include "proto/wire.h"

#define TURN_ITEMS     64u
#define WINDOW_US      100000u
#define SUSPEND_US     1000000
#define LAST_TURNS_MAX 64 /* at the end, while there is still something to read */

static struct keypool_limits
shard_pool_limits(const struct config *config, uint32_t n_shards)
{
	struct keypool_limits limits = config->pool;

	for (int kind = 0; kind < KEYPOOL_N_KINDS; kind++) {
		if (!config->pool_enabled)
			limits.high[kind] = 0;
		limits.high[kind] = (limits.high[kind] + n_shards - 1) / n_shards;
	}
	return limits;
}

static uint32_t
shard_max_handles(const struct config *config, uint32_t n_shards)
{
	return (config->max_handles + n_shards - 1) / n_shards;
}

/* secmem_carve() gives out multiples of 64. */
static size_t
carved(size_t size)
{
	return (size + 63) / 64 * 64;
}

size_t
shard_arena_bytes(const struct config *config, uint32_t n_shards)
{
	struct keypool_limits limits = shard_pool_limits(config, n_shards);

	return carved(sizeof(struct kem_scratch)) + carved(CODEC_MEM_BYTES) +
	       carved(config->buffer_bytes) + carved(keypool_arena_bytes(&limits)) +
	       carved(keytable_arena_bytes(shard_max_handles(config, n_shards)));
}

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
	int r = kem_selftest(shard->common->kem, shard->scratch, &step);

	atomic_store(&shard->selftest_step, r ? step : NULL);
	if (r)
		shard_fail(shard, r);
}

static void
shard_record_do(struct shard *shard, const struct shard_record *record)
{
	switch (record->type) {
	case SHARD_NEW_CONN:
		if (conn_set_add(&shard->conns, record->fd, record->conn_id,
			record->uid, record->denied))
			atomic_fetch_add(&shard->n_ended, 1);
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

static void
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
shard_conn_gone(void *owner, uint64_t conn_id)
{
	struct shard *shard = owner;

	service_conn_gone(&shard->service, conn_id);
	atomic_fetch_add(&shard->n_ended, 1);
}

static const struct conn_ops shard_conn_ops = {
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
	if (ahead > shard->suspended_us + SUSPEND_US) {
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
	if (now_us < shard->window_us + WINDOW_US)
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

/* Architecture section 2 has the reasons for these steps and their order. */
static int
shard_turn(struct shard *shard)
{
	bool has_work =
	    conn_set_has_work(&shard->conns) || shard_wants_fill(shard) || shard->quit;
	uint64_t begin_us = has_work ? request_now_us() : 0, now_us;
	int r;

	shard->conns.woke_us = begin_us;
	conn_set_arm(&shard->conns);
	if (event_base_loop(
		shard->base, EVLOOP_ONCE | (has_work ? EVLOOP_NONBLOCK : 0)) < 0)
		return -EIO;

	conn_set_collect(&shard->conns, TURN_ITEMS);
	r = batch_run(&shard->batch);
	conn_set_flush(&shard->conns);
	now_us = request_now_us();
	keytable_expire(shard->keys, now_us);
	keypool_expire(shard->pool, now_us);
	if (!r && !conn_set_has_work(&shard->conns) && shard_wants_fill(shard))
		r = keypool_fill_group(shard->pool, now_us);

	now_us = request_now_us();
	if (shard->conns.woke_us) {
		shard->window_busy_us += now_us - shard->conns.woke_us;
		metrics_add(
		    &shard->metrics.busy_us_total, now_us - shard->conns.woke_us);
	}
	metrics_add(&shard->metrics.turns_total, 1);
	shard_publish(shard, now_us);
	return r;
}

static void *
shard_main(void *arg)
{
	struct shard *shard = arg;
	int r = 0;

	while (!shard->quit && !r)
		r = shard_turn(shard);
	/* What had been received when the end came is still answered. */
	for (int i = 0; !r && !atomic_load(&shard->failed) && i < LAST_TURNS_MAX; i++) {
		uint64_t before = atomic_load_explicit(
		    &shard->metrics.requests_total, memory_order_relaxed);

		r = shard_turn(shard);
		if (i && !conn_set_has_work(&shard->conns) &&
		    before == atomic_load_explicit(
				  &shard->metrics.requests_total, memory_order_relaxed))
			break;
	}
	if (r)
		shard_fail(shard, r);
	conn_set_fini(&shard->conns);
	atomic_store(&shard->ended, true);
	shard_wake_main(shard);
	return NULL;
}

static int
shard_init_memory(struct shard *shard)
{
	const struct config *config = shard->config;
	uint32_t n_shards = shard->common->n_shards;
	struct keypool_limits limits = shard_pool_limits(config, n_shards);
	int r = secmem_init(
	    &shard->secmem, shard_arena_bytes(config, n_shards), config->secret_memory);

	if (r)
		return r;
	metrics_set(&shard->metrics.secret_memory_bytes, shard->secmem.size);
	shard->scratch = secmem_carve(&shard->secmem, sizeof(*shard->scratch));
	mem_init(&shard->mem, secmem_carve(&shard->secmem, CODEC_MEM_BYTES),
	    CODEC_MEM_BYTES);
	r = slab_init(&shard->slab, secmem_carve(&shard->secmem, config->buffer_bytes),
	    config->buffer_bytes);
	if (!r)
		r = keypool_new(&shard->pool, &limits, shard->common->kem,
		    &shard->secmem, shard->scratch, &shard->metrics);
	if (!r)
		r = keytable_new(&shard->keys, shard_max_handles(config, n_shards),
		    shard->common->kem, &shard->secmem, &shard->metrics);
	if (!r)
		keypool_set_pairwise_check(shard->pool, config->pairwise_check);
	return r;
}

static int
shard_init_base(struct shard *shard)
{
	struct event_config *wish = event_config_new();
	int pipe_fds[2];

	if (!wish)
		return -ENOMEM;
	/* One thread each: no locks; what decides is no environment variable. */
	event_config_set_flag(wish, EVENT_BASE_FLAG_NOLOCK |
					EVENT_BASE_FLAG_IGNORE_ENV |
					EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
	shard->base = event_base_new_with_config(wish);
	event_config_free(wish);
	if (!shard->base)
		return -ENOMEM;
	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	shard->pipe_read = pipe_fds[0];
	shard->pipe_write = pipe_fds[1];
	if (event_assign(&shard->pipe_event, shard->base, shard->pipe_read,
		EV_READ | EV_PERSIST, shard_told, shard) ||
	    event_add(&shard->pipe_event, NULL))
		return -ENOMEM;
	return 0;
}

static int
shard_init_conns(struct shard *shard)
{
	const struct config *config = shard->config;

	shard->conns = (struct conn_set){
	    .base = shard->base,
	    .slab = &shard->slab,
	    .mem = &shard->mem,
	    .metrics = &shard->metrics,
	    .config = config,
	    .ops = &shard_conn_ops,
	    .owner = shard,
	    .max_message = WIRE_MAX_FRAME_BYTES,
	    .about = {.server_version = MLKEMD_VERSION,
		.backend = kem_backend_name(shard->common->kem),
		.secret_memory = secmem_mode_name(shard->secmem.mode),
		.lanes = kem_backend_lanes(shard->common->kem),
		.shards = shard->common->n_shards,
		.shard = shard->index,
		.max_handles = shard_max_handles(config, shard->common->n_shards),
		.handle_lifetime_ms = config->handle_lifetime_ms,
		.default_timeout_us = config->default_timeout_us,
		.export_allowed = config->export_private},
	};
	return conn_set_init(&shard->conns) ? -ENOMEM : 0;
}

int
shard_init(struct shard *shard, uint32_t index, const struct config *config,
    const struct shard_common *common)
{
	int r;

	memset(shard, 0, sizeof(*shard));
	shard->index = index;
	shard->common = common;
	shard->config = config;
	shard->pipe_read = shard->pipe_write = -1;
	r = shard_init_memory(shard);
	if (!r)
		r = shard_init_base(shard);
	if (!r)
		r = shard_init_conns(shard);
	if (r)
		return r;
	batch_init(&shard->batch, common->kem, shard->scratch, &shard->metrics);
	shard->service = (struct service){.batch = &shard->batch,
	    .pool = shard->pool,
	    .keys = shard->keys,
	    .config = config,
	    .metrics = &shard->metrics};
	shard->window_us = request_now_us();
	shard->suspended_us = INT64_MAX - SUSPEND_US;
	return 0;
}

int
shard_start(struct shard *shard)
{
	int r = pthread_create(&shard->thread, NULL, shard_main, shard);

	shard->running = !r;
	return r;
}

void
shard_fini(struct shard *shard)
{
	if (shard->running)
		pthread_join(shard->thread, NULL);
	else
		conn_set_fini(&shard->conns);
	shard->pool = keypool_free(shard->pool);
	shard->keys = keytable_free(shard->keys);
	if (shard->slab.blocks)
		slab_fini(&shard->slab);
	if (shard->base) {
		if (event_initialized(&shard->pipe_event))
			event_del(&shard->pipe_event);
		event_base_free(shard->base);
	}
	if (shard->common) {
		if (shard->pipe_read >= 0)
			close(shard->pipe_read);
		if (shard->pipe_write >= 0)
			close(shard->pipe_write);
	}
	secmem_fini(&shard->secmem);
	*shard = (struct shard){0};
}

bool
shard_tell(struct shard *shard, const struct shard_record *record)
{
	return write(shard->pipe_write, record, sizeof(*record)) == sizeof(*record);
}

uint32_t
shard_busy_permille(const struct shard *shard, uint64_t now_us)
{
	uint64_t until =
	    atomic_load_explicit(&shard->busy_until_us, memory_order_relaxed);

	/* A busy shard says so every 100 ms: one that is silent sleeps. */
	if (now_us > until + 2 * WINDOW_US)
		return 0;
	return atomic_load_explicit(&shard->busy_permille, memory_order_relaxed);
}
