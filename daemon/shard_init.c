/* SPDX-License-Identifier: Apache-2.0 */
/* What a shard is made of, and main's side of it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "keypool.h"
#include "keytable.h"
#include "proto/wire.h"
#include "shard_priv.h"

struct keypool_limits
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

uint32_t
shard_user_handles(const struct config *config, uint32_t n_shards)
{
	return user_share(shard_max_handles(config, n_shards), config->user_share);
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
	/*
	 * One thread each: no locks; no environment variable decides. And no change list:
	 * it tells epoll of a closed descriptor later, when main may have its number anew.
	 */
	event_config_set_flag(
	    wish, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
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
		.max_handles = shard_user_handles(config, shard->common->n_shards),
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
	shard->batch.pool = shard->pool;
	shard->service = (struct service){.batch = &shard->batch,
	    .pool = shard->pool,
	    .keys = shard->keys,
	    .config = config,
	    .metrics = &shard->metrics};
	busypoll_init(&shard->poll, config->busy_poll ? common->wake_up_us : 0);
	shard->window_us = request_now_us();
	shard->suspended_us = INT64_MAX - SHARD_SUSPEND_US;
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
	memset(shard, 0, sizeof(*shard));
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
	if (now_us > until + 2 * SHARD_WINDOW_US)
		return 0;
	return atomic_load_explicit(&shard->busy_permille, memory_order_relaxed);
}
