/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <time.h>

#include "client-lib/client.h"

#define CPU_SAMPLE 16 /* one call in so many looks at the thread's processor time */

/* A pending item goes to the daemon if its key is there, or if it has yet to start. */
static size_t
choose_items(struct job *job, bool keys_in_daemon)
{
	size_t n = 0;

	for (size_t i = 0; i < job->n_items; i++) {
		struct job_item *item = &job->items[i];
		bool starts = job->op != JOB_DECAPS || item->key == NULL;

		item->by_daemon =
		    item->error == JOB_PENDING &&
		    (keys_in_daemon ? !starts && item->key->in_daemon : starts);
		n += item->by_daemon;
	}
	return n;
}

static void
fail_chosen(struct job *job, int error)
{
	for (size_t i = 0; i < job->n_items; i++)
		if (job->items[i].by_daemon && job->items[i].error == JOB_PENDING)
			job->items[i].error = error;
}

static bool
some_pending(const struct job *job)
{
	for (size_t i = 0; i < job->n_items; i++)
		if (job->items[i].error == JOB_PENDING)
			return true;
	return false;
}

/* An item that came too late says that the daemon is behind: leave it alone a while. */
static void
note_late_items(struct mlkemclient *client, const struct job *job)
{
	for (size_t i = 0; i < job->n_items; i++) {
		if (job->items[i].by_daemon &&
		    job->items[i].error == MLKEMCLIENT_E_TIMEOUT) {
			breaker_trip(&client->live->breaker, MLKEMCLIENT_E_UNAVAILABLE,
			    client_now(client));
			return;
		}
	}
}

static unsigned
auto_op(const struct job *job)
{
	static const enum auto_op ops[] = {
	    [JOB_KEYGEN] = AUTO_KEYGEN,
	    [JOB_ENCAPS] = AUTO_ENCAPS,
	    [JOB_DECAPS] = AUTO_DECAPS,
	};

	return ROUTE_AUTO_OP(ops[job->op], job->alg);
}

/* What is learned is learned for route auto; the others need not pay for it. */
static bool
learns(const struct mlkemclient *client)
{
	return client->route == MLKEMCLIENT_ROUTE_AUTO && !client->require;
}

static uint64_t
thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* exchange_run(), and what it cost. */
static int
ask(struct mlkemclient *client, struct call *call, size_t n, uint64_t deadline_us,
    bool probe)
{
	struct route_auto *costs = &client->live->costs;
	bool measure = probe || client->live->counts.by_daemon % CPU_SAMPLE == 0;
	uint32_t cpu_us = UINT32_MAX;
	uint64_t start_us, cpu_ns;
	int err;

	if (!learns(client))
		return exchange_run(client, call, deadline_us);
	start_us = client_now(client);
	cpu_ns = measure ? thread_cpu_ns() : 0;
	err = exchange_run(client, call, deadline_us);
	if (measure)
		cpu_us = (uint32_t)((thread_cpu_ns() - cpu_ns) / 1000u);
	if (err == 0)
		route_auto_learn_daemon(costs, auto_op(call->job), n,
		    client_now(client), call->wait_us, cpu_us, call->batch_fill_milli,
		    call->service_us);
	else if (error_is_elsewhere(err))
		route_auto_learn_failure(costs, auto_op(call->job), n,
		    client_now(client), (uint32_t)(client_now(client) - start_us));
	return err;
}

/* What calls have: less for one that probes a daemon that was silent. */
static uint64_t
daemon_time(const struct mlkemclient *client, bool is_probe)
{
	uint32_t time = client->daemon_deadline_us;

	if (client->require)
		return client->deadline_us;
	return is_probe && time > CLIENT_PROBE_US ? CLIENT_PROBE_US : time;
}

static int
ask_to_start(struct mlkemclient *client, struct job *job, size_t n, uint64_t start_us,
    bool route_probe)
{
	struct call call = {.op = CALL_JOB, .job = job, .heeds_breaker = true};
	struct breaker *breaker = &client->live->breaker;
	bool is_probe;
	int err;

	if (!breaker_try(breaker, start_us, &is_probe))
		return client_fail(client, breaker->error, "%s is left alone: %s",
		    client->path, mlkemclient_strerror(breaker->error));
	err = ask(
	    client, &call, n, start_us + daemon_time(client, is_probe), route_probe);
	breaker_tried(breaker, is_probe);
	return err;
}

static void
fall_back(struct mlkemclient *client, struct job *job)
{
	for (size_t i = 0; i < job->n_items; i++) {
		struct job_item *item = &job->items[i];

		if (!item->by_daemon || item->error >= 0 ||
		    !error_is_elsewhere(item->error))
			continue;
		item->error = JOB_PENDING;
		client->live->counts.fallbacks++;
		client->live->untold.fallbacks++;
	}
}

/* The daemon is asked; with auto, if that is worth it, or worth knowing. */
static void
start_items(struct mlkemclient *client, struct job *job, uint64_t start_us, bool must)
{
	struct mlkemclient_counts *counts = &client->live->counts;
	size_t n = choose_items(job, false);
	bool probe = false;
	int err;

	if (n == 0)
		return;
	if (learns(client) && !must) {
		if (route_auto_choose(&client->live->costs, auto_op(job), n, start_us,
			&probe) == AUTO_LOCAL) {
			counts->route_probes += probe ? n : 0;
			client->live->untold.auto_local += n;
			return;
		}
		counts->shared_daemon += n;
		client->live->untold.auto_daemon += n;
		counts->route_probes += probe ? n : 0;
	}
	err = ask_to_start(client, job, n, start_us, probe);
	if (err != 0)
		fail_chosen(job, err);
	note_late_items(client, job);
	if (!client->require)
		fall_back(client, job);
}

/*
 * Keys that live in the daemon can be used there only, so an open breaker does not stop
 * them while their connection lives; that ends at the third silence in a row.
 */
static void
use_keys_in_daemon(struct mlkemclient *client, struct job *job, uint64_t start_us)
{
	struct call call = {.op = CALL_JOB, .job = job, .needs_key = true};
	size_t n;
	int err;

	for (size_t i = 0; i < job->n_items; i++)
		if (job->items[i].error == JOB_PENDING && job->items[i].key != NULL &&
		    job->items[i].key->in_daemon && !key_is_live(job->items[i].key)) {
			job->items[i].error = MLKEMCLIENT_E_KEY_GONE;
			key_lost(job->items[i].key);
		}
	n = choose_items(job, true);
	if (n == 0)
		return;
	err = ask(client, &call, n, start_us + client->deadline_us, false);
	if (err != 0)
		fail_chosen(job, err);
	note_late_items(client, job);
	for (size_t i = 0; i < job->n_items; i++) {
		struct job_item *item = &job->items[i];

		if (!item->by_daemon)
			continue;
		if (item->error == MLKEMCLIENT_E_KEY_GONE)
			key_lost(item->key);
		/*
		 * What the daemon refused before any work has left the key as it was.
		 */
		if (item->error == 0 || item->error == MLKEMCLIENT_E_ZERO_X25519 ||
		    item->error == MLKEMCLIENT_E_KEY_GONE ||
		    item->error == MLKEMCLIENT_E_INTERNAL)
			atomic_store(&item->key->spent, true);
	}
}

/* The rack that the one key may come from, if its answer is to be had from there. */
static struct lease_rack *
rack_for(struct mlkemclient *client, const struct job *job)
{
	if (job->op != JOB_KEYGEN || job->n_items != 1 || job->export_private ||
	    client->route == MLKEMCLIENT_ROUTE_LOCAL)
		return NULL;
	return lease_rack_of(client, job->alg);
}

/* All that is done under the lock. */
static void
run_by_daemon(struct mlkemclient *client, struct job *job, uint64_t start_us)
{
	struct lease_rack *rack;
	bool connect_for_leases;

	client_lock(client);
	pairs_drop_old(client);
	rack = rack_for(client, job);
	connect_for_leases = rack != NULL && !client->live->link.ready;
	if (rack == NULL || !lease_take(client, rack, &job->one)) {
		if (job->op == JOB_DECAPS)
			use_keys_in_daemon(client, job, start_us);
		if (client->route != MLKEMCLIENT_ROUTE_LOCAL)
			start_items(client, job, start_us, connect_for_leases);
	}
	if (rack != NULL)
		lease_tend(client, rack, start_us);
	counts_tell(client, start_us);
	client_unlock(client);
}

void
route_run(struct mlkemclient *client, struct job *job)
{
	uint64_t start_us = client_now(client), deadline_us = UINT64_MAX;
	bool only_local;

	if (!some_pending(job))
		return;
	run_by_daemon(client, job, start_us);
	if (!some_pending(job))
		return;
	only_local = client->route == MLKEMCLIENT_ROUTE_LOCAL;
	/* What the daemon did not do is done, whatever time it has taken. */
	if (only_local)
		deadline_us = start_us + client->deadline_us;
	local_run(client, job, deadline_us);
	if (learns(client)) {
		client_lock(client);
		route_auto_learn_local(&client->live->costs, auto_op(job), job->n_items,
		    client_now(client), job->local_us);
		client_unlock(client);
	}
}
