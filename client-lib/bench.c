/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "client-lib/client.h"
#include "kem/fault.h"

/*
 * Opened at the first local work, under the lock: whoever comes meanwhile needs it too.
 */
static int
kem_need(struct mlkemclient *client)
{
	struct kem *kem;
	int err;

	if (client->kem != NULL)
		return 0;
	err = kem_open(&kem, NULL);
	if (err != 0)
		return client_fail(
		    client, MLKEMCLIENT_E_INTERNAL, "%s", kem_strerror(err));
	client->kem = kem;
	return 0;
}

/*
 * An idle one, a new one, or, when there may be no more, the next that is given back.
 */
static struct bench *
bench_find(struct mlkemclient *client)
{
	struct local *local = &client->live->local;
	struct bench *bench;
	struct room *room;

	for (;;) {
		bench = local->idle;
		if (bench != NULL) {
			local->idle = bench->next;
			return bench;
		}
		if (local->n_benches < LOCAL_MAX_BENCHES) {
			room = room_new(&client->rooms, sizeof(*bench), ROOM_SECRET);
			if (room != NULL) {
				local->n_benches++;
				return (struct bench *)(void *)room->base;
			}
			if (local->n_benches == 0)
				return NULL;
		}
		pthread_cond_wait(&local->given_back, &client->live->lock);
	}
}

static void
bench_put(struct mlkemclient *client, struct bench *bench)
{
	struct local *local = &client->live->local;

	bench->next = local->idle;
	local->idle = bench;
	pthread_cond_signal(&local->given_back);
}

struct bench *
bench_take(struct mlkemclient *client)
{
	struct bench *bench;

	client_lock(client);
	bench = bench_find(client);
	if (bench == NULL)
		client_fail(client, MLKEMCLIENT_E_INTERNAL, "no memory to work in");
	if (bench != NULL && kem_need(client) != 0) {
		bench_put(client, bench);
		bench = NULL;
	}
	if (bench != NULL) {
		bench->kem = client->kem;
		client->n_in_kem++;
	}
	client_unlock(client);
	return bench;
}

/* What the pool has no place for is wiped. */
static void
put_pairs(struct mlkemclient *client, struct bench *bench)
{
	struct local *local = &client->live->local;
	uint64_t now_us = bench->n_made != 0 ? client_age_now(client) : 0;

	while (bench->n_made != 0 && local->n_pairs < LOCAL_MAX_PAIRS) {
		local->made_us[local->n_pairs] = now_us;
		local->pairs[local->n_pairs++] = bench->made[--bench->n_made];
	}
	bench->n_made = 0;
	kem_wipe(bench->made, sizeof(bench->made));
}

void
bench_give(struct mlkemclient *client, struct bench *bench, size_t n_done)
{
	client_lock(client);
	put_pairs(client, bench);
	client->n_in_kem--;
	client->live->counts.by_local += n_done;
	bench_put(client, bench);
	client_unlock(client);
}

void
pairs_drop_old(struct mlkemclient *client)
{
	struct local *local = &client->live->local;
	size_t n = 0, rest;
	uint64_t now_us;

	if (local->n_pairs == 0 || fault("client-old-pairs"))
		return;
	now_us = client_age_now(client);
	while (n < local->n_pairs && now_us - local->made_us[n] >= LOCAL_MAX_AGE_US)
		n++;
	if (n == 0)
		return;
	rest = local->n_pairs - n;
	memmove(local->pairs, local->pairs + n, rest * sizeof(*local->pairs));
	memmove(local->made_us, local->made_us + n, rest * sizeof(*local->made_us));
	kem_wipe(local->pairs + rest, n * sizeof(*local->pairs));
	local->n_pairs = rest;
}

/* A pair leaves the pool by a move: nobody can be given the same one again. */
void
bench_trade_pairs(struct mlkemclient *client, struct bench *bench, size_t n)
{
	struct local *local = &client->live->local;

	client_lock(client);
	pairs_drop_old(client);
	put_pairs(client, bench);
	for (bench->n_pairs = 0; bench->n_pairs < n && local->n_pairs != 0;) {
		bench->pairs[bench->n_pairs++] = local->pairs[--local->n_pairs];
		if (fault("client-pair-twice"))
			local->n_pairs++;
		else
			kem_wipe(&local->pairs[local->n_pairs], sizeof(*local->pairs));
	}
	client_unlock(client);
}

void
bench_wipe(struct bench *bench)
{
	kem_wipe(bench->shared, sizeof(bench->shared));
	kem_wipe(bench->secret, sizeof(bench->secret));
	kem_wipe(bench->share, sizeof(bench->share));
	kem_wipe(bench->pairs, sizeof(bench->pairs));
}
