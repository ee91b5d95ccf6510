/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/client.h"

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

/* A probe of a daemon that was silent gets less, for it may well be silent still. */
static uint64_t
daemon_time(const struct mlkemclient *client)
{
	uint32_t time = client->daemon_deadline_us;

	if (client->require)
		return client->deadline_us;
	if (client->breaker.error != 0 && time > CLIENT_PROBE_US)
		return CLIENT_PROBE_US;
	return time;
}

static int
ask_to_start(struct mlkemclient *client, struct job *job, uint64_t start_us)
{
	struct call call = {.op = CALL_JOB, .job = job};
	const struct breaker *breaker = &client->breaker;

	if (breaker_is_open(breaker, start_us))
		return client_fail(client, breaker->error,
		    "%s is left alone for %u ms: %s", client->path,
		    (unsigned)((breaker->until_us - start_us) / 1000),
		    mlkemclient_strerror(breaker->error));
	return exchange_run(client, &call, start_us + daemon_time(client));
}

/* An item that came too late says that the daemon is behind: leave it alone a while. */
static void
note_late_items(struct mlkemclient *client, const struct job *job)
{
	for (size_t i = 0; i < job->n_items; i++) {
		if (job->items[i].by_daemon &&
		    job->items[i].error == MLKEMCLIENT_E_TIMEOUT) {
			breaker_trip(&client->breaker, MLKEMCLIENT_E_UNAVAILABLE,
			    client_now(client));
			return;
		}
	}
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
		client->counts.fallbacks++;
		client->fallbacks_untold++;
	}
}

static void
start_items(struct mlkemclient *client, struct job *job, uint64_t start_us)
{
	int err;

	if (choose_items(job, false) == 0)
		return;
	err = ask_to_start(client, job, start_us);
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
	int err;

	if (choose_items(job, true) == 0)
		return;
	err = exchange_run(client, &call, start_us + client->deadline_us);
	if (err != 0)
		fail_chosen(job, err);
	note_late_items(client, job);
	for (size_t i = 0; i < job->n_items; i++) {
		struct job_item *item = &job->items[i];

		/*
		 * What the daemon refused before any work has left the key as it was.
		 */
		if (item->by_daemon &&
		    (item->error == 0 || item->error == MLKEMCLIENT_E_ZERO_X25519 ||
			item->error == MLKEMCLIENT_E_KEY_GONE ||
			item->error == MLKEMCLIENT_E_INTERNAL))
			key_spend(item->key);
	}
}

void
route_run(struct mlkemclient *client, struct job *job)
{
	uint64_t start_us = client_now(client);

	use_keys_in_daemon(client, job, start_us);
	if (client->route == MLKEMCLIENT_ROUTE_LOCAL) {
		local_run(client, job, start_us + client->deadline_us);
		return;
	}
	start_items(client, job, start_us);
	/* What the daemon did not do is done, whatever time it has taken. */
	local_run(client, job, UINT64_MAX);
}
