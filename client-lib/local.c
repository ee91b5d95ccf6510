/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>
#include <string.h>

#include "client-lib/client.h"

/* All that passes through here in the clear, in one locked mapping. */
struct workplace {
	struct kem_scratch scratch;
	struct kem_shared shared[KEM_GROUP_MAX];
	uint8_t secret[KEM_GROUP_MAX][KEM_SECRET_MAX];
	uint8_t share[KEM_GROUP_MAX][KEM_SHARE_MAX];
};

struct local {
	struct kem *kem;
	struct room room;
	struct workplace *work;
};

/* The items of one group. */
struct group {
	struct job_item *items[KEM_GROUP_MAX];
	size_t n;
};

static int
local_open(struct mlkemclient *client)
{
	struct local *local;
	int err;

	if (client->local != NULL)
		return 0;
	local = calloc(1, sizeof(*local));
	if (local == NULL)
		return client_fail(client, MLKEMCLIENT_E_INTERNAL, "no memory");
	err = room_map(&local->room, sizeof(*local->work));
	if (err != 0) {
		free(local);
		return client_fail(client, err, "no memory for the local engine");
	}
	local->work = (struct workplace *)(void *)local->room.base;
	client->local = local;
	err = kem_open(&local->kem, NULL);
	if (err != 0) {
		local_free(client);
		return client_fail(
		    client, MLKEMCLIENT_E_INTERNAL, "%s", kem_strerror(err));
	}
	return 0;
}

void
local_free(struct mlkemclient *client)
{
	struct local *local = client->local;

	if (local == NULL)
		return;
	kem_free(local->kem);
	room_unmap(&local->room);
	free(local);
	client->local = NULL;
}

void
local_relock(struct mlkemclient *client)
{
	if (client->local != NULL)
		room_relock(&client->local->room);
}

static void
item_fail(struct mlkemclient *client, struct job_item *item, enum kem_status status,
    enum kem_alg alg, enum kem_part part, size_t len)
{
	item->error = error_from_kem(status);
	kem_explain(client->message, sizeof(client->message), status, alg, part, len);
}

/*
 * The next items that can be worked; a local key is taken by the first that names it.
 */
static void
group_take(
    struct mlkemclient *client, struct job *job, size_t *nextp, struct group *group)
{
	group->n = 0;
	for (; *nextp < job->n_items && group->n < KEM_GROUP_MAX; (*nextp)++) {
		struct job_item *item = &job->items[*nextp];

		if (item->error != JOB_PENDING)
			continue;
		if (item->key != NULL && item->key->spent) {
			item->error = client_fail(client, MLKEMCLIENT_E_KEY_GONE, "%s",
			    mlkemclient_strerror(MLKEMCLIENT_E_KEY_GONE));
			continue;
		}
		if (job->op == JOB_DECAPS && item->key != NULL)
			item->key->spent = true;
		group->items[group->n++] = item;
	}
}

static int
keygen_done(struct mlkemclient *client, const struct job *job, struct job_item *item,
    const uint8_t *secret)
{
	const struct kem_alg_info *info = kem_alg_info(job->alg);

	if (job->export_private) {
		kem_private_export(
		    job->alg, secret, item->out_share, item->out_private_key);
		return 0;
	}
	if (key_need_secret(item->key) != 0)
		return client_fail(
		    client, MLKEMCLIENT_E_INTERNAL, "no memory for the key");
	memcpy(item->key->secret, secret, info->secret_bytes);
	memcpy(
	    item->key->secret + info->secret_bytes, item->out_share, info->share_bytes);
	return 0;
}

static int
group_keygen(struct mlkemclient *client, const struct job *job, struct group *group)
{
	struct workplace *work = client->local->work;
	struct kem_keygen_item items[KEM_GROUP_MAX] = {{0}};
	int err;

	for (size_t i = 0; i < group->n; i++) {
		items[i].share = group->items[i]->out_share;
		items[i].secret = work->secret[i];
	}
	err = kem_keygen(client->local->kem, job->alg, items, group->n, &work->scratch);
	if (err != 0)
		return err;
	for (size_t i = 0; i < group->n; i++) {
		struct job_item *item = group->items[i];

		if (items[i].status != KEM_OK)
			item_fail(
			    client, item, items[i].status, job->alg, KEM_PART_KEY, 0);
		else
			item->error = keygen_done(client, job, item, work->secret[i]);
		if (item->error != 0)
			kem_wipe(item->out_share, kem_alg_info(job->alg)->share_bytes);
	}
	return 0;
}

/* The secret as it was asked for: raw, or through the kdf. */
static int
secret_done(struct mlkemclient *client, const struct job *job,
    const struct kem_shared *shared, uint8_t *out)
{
	const struct kdf *kdf = &client->kdf;
	int err;

	if (!kdf->used) {
		memcpy(out, shared->bytes, job->secret_bytes);
		return 0;
	}
	err = kem_hkdf(client->local->kem, kdf->hash, shared->bytes,
	    kem_alg_info(job->alg)->shared_bytes, kdf->salt, kdf->salt_len, kdf->info,
	    kdf->info_len, out, kdf->length);
	if (err != 0)
		return client_fail(
		    client, MLKEMCLIENT_E_INTERNAL, "%s", kem_strerror(err));
	return 0;
}

static int
group_encaps(struct mlkemclient *client, const struct job *job, struct group *group)
{
	struct workplace *work = client->local->work;
	struct kem_encaps_item items[KEM_GROUP_MAX] = {{0}};
	int err;

	for (size_t i = 0; i < group->n; i++) {
		items[i].share = group->items[i]->share;
		items[i].share_len = group->items[i]->share_len;
		items[i].ct = group->items[i]->out_ciphertext;
		items[i].shared = &work->shared[i];
	}
	err = kem_encaps(client->local->kem, job->alg, items, group->n, &work->scratch);
	if (err != 0)
		return err;
	for (size_t i = 0; i < group->n; i++) {
		struct job_item *item = group->items[i];

		if (items[i].status != KEM_OK)
			item_fail(client, item, items[i].status, job->alg,
			    KEM_PART_SHARE, item->share_len);
		else
			item->error = secret_done(
			    client, job, &work->shared[i], item->out_secret);
		if (item->error != 0)
			kem_wipe(
			    item->out_ciphertext, kem_alg_info(job->alg)->ct_bytes);
	}
	return 0;
}

/* A view of the item's private key: a local key, an expanded dk, or a seed. */
static int
private_view(struct mlkemclient *client, const struct job *job,
    const struct job_item *item, size_t i, struct kem_private *key,
    enum kem_status *statusp)
{
	const struct kem_alg_info *info = kem_alg_info(job->alg);
	struct workplace *work = client->local->work;
	struct kem_keygen_item keygen = {.seed = item->private_key,
	    .share = work->share[i],
	    .secret = work->secret[i]};
	int err;

	*statusp = KEM_OK;
	if (item->key != NULL) {
		kem_private_from_parts(key, job->alg, item->key->secret,
		    item->key->secret + info->secret_bytes);
		return 0;
	}
	if (item->private_key_len != info->seed_bytes) {
		*statusp = kem_private_from_dk(
		    key, job->alg, item->private_key, item->private_key_len);
		return 0;
	}
	err = kem_keygen(client->local->kem, job->alg, &keygen, 1, &work->scratch);
	if (err != 0)
		return err;
	*statusp = keygen.status;
	kem_private_from_parts(key, job->alg, work->secret[i], work->share[i]);
	return 0;
}

static void
decaps_done(struct mlkemclient *client, const struct job *job, struct job_item *item,
    enum kem_status status, const struct kem_shared *shared)
{
	enum kem_part part = status == KEM_E_LENGTH ? KEM_PART_CT : KEM_PART_KEY;

	if (status == KEM_OK)
		item->error = secret_done(client, job, shared, item->out_secret);
	else
		item_fail(client, item, status, job->alg, part,
		    part == KEM_PART_CT ? item->ciphertext_len : item->private_key_len);
}

static int
group_decaps(struct mlkemclient *client, const struct job *job, struct group *group)
{
	struct workplace *work = client->local->work;
	struct kem_decaps_item items[KEM_GROUP_MAX] = {{0}};
	struct kem_private keys[KEM_GROUP_MAX];
	struct job_item *worked[KEM_GROUP_MAX];
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < group->n && err == 0; i++) {
		struct job_item *item = group->items[i];
		enum kem_status status;

		err = private_view(client, job, item, n, &keys[n], &status);
		if (err == 0 && status != KEM_OK)
			item_fail(client, item, status, job->alg, KEM_PART_KEY,
			    item->private_key_len);
		if (err != 0 || status != KEM_OK)
			continue;
		items[n].key = &keys[n];
		items[n].ct = item->ciphertext;
		items[n].ct_len = item->ciphertext_len;
		items[n].shared = &work->shared[n];
		worked[n++] = item;
	}
	if (err == 0 && n != 0)
		err =
		    kem_decaps(client->local->kem, job->alg, items, n, &work->scratch);
	for (size_t i = 0; i < n && err == 0; i++)
		decaps_done(client, job, worked[i], items[i].status, &work->shared[i]);
	for (size_t i = 0; i < group->n; i++)
		if (group->items[i]->key != NULL)
			key_spend(group->items[i]->key);
	return err;
}

static int
group_run(struct mlkemclient *client, const struct job *job, struct group *group)
{
	switch (job->op) {
	case JOB_KEYGEN:
		return group_keygen(client, job, group);
	case JOB_ENCAPS:
		return group_encaps(client, job, group);
	case JOB_DECAPS:
		break;
	}
	return group_decaps(client, job, group);
}

/* What a failed call has not yet given a result, outputs still zero. */
static void
fail_pending(struct job *job, int error)
{
	for (size_t i = 0; i < job->n_items; i++)
		if (job->items[i].error == JOB_PENDING)
			job->items[i].error = error;
}

static void
wipe_work(struct workplace *work)
{
	kem_wipe(work->shared, sizeof(work->shared));
	kem_wipe(work->secret, sizeof(work->secret));
	kem_wipe(work->share, sizeof(work->share));
}

void
local_run(struct mlkemclient *client, struct job *job, uint64_t deadline_us)
{
	size_t next = 0;
	struct group group;
	int err = 0;

	while (next < job->n_items && job->items[next].error != JOB_PENDING)
		next++;
	if (next == job->n_items)
		return;
	if (local_open(client) != 0) {
		fail_pending(job, MLKEMCLIENT_E_INTERNAL);
		return;
	}
	for (;;) {
		if (client_now(client) >= deadline_us) {
			client_fail(
			    client, MLKEMCLIENT_E_TIMEOUT, "the deadline passed");
			fail_pending(job, MLKEMCLIENT_E_TIMEOUT);
			return;
		}
		group_take(client, job, &next, &group);
		if (group.n == 0)
			return;
		err = group_run(client, job, &group);
		wipe_work(client->local->work);
		if (err != 0)
			break;
		for (size_t i = 0; i < group.n; i++)
			client->counts.by_local += group.items[i]->error == 0;
	}
	client_fail(client, MLKEMCLIENT_E_INTERNAL, "%s", kem_strerror(err));
	fail_pending(job, MLKEMCLIENT_E_INTERNAL);
}

/* The X25519 public key of a private one stands at the end of a seed's share. */
static int
hybrid_public(struct mlkemclient *client, const uint8_t *x_private, uint8_t *x_public)
{
	const struct kem_alg_info *info = kem_alg_info(KEM_ALG_X25519MLKEM768);
	struct workplace *work = client->local->work;
	uint8_t *seed = work->shared[0].bytes;
	struct kem_keygen_item item;
	int err;

	_Static_assert(sizeof(work->shared) >= KEM_SEED_MAX, "no room for a seed");
	memset(seed, 0, info->seed_bytes - 32u);
	memcpy(seed + info->seed_bytes - 32, x_private, 32);
	item = (struct kem_keygen_item){
	    .seed = seed, .share = work->share[0], .secret = work->secret[0]};
	err = kem_keygen(
	    client->local->kem, KEM_ALG_X25519MLKEM768, &item, 1, &work->scratch);
	if (err != 0)
		return MLKEMCLIENT_E_INTERNAL;
	memcpy(x_public, work->share[0] + info->share_bytes - 32, 32);
	return error_from_kem(item.status);
}

static int
share_of_dk(struct mlkemclient *client, enum kem_alg alg, const uint8_t *dk,
    size_t dk_len, uint8_t *share)
{
	struct kem_private key;
	size_t ek_bytes = kem_alg_info(alg)->share_bytes;
	enum kem_status status;

	status = kem_check_dk(
	    client->local->kem, alg, dk, dk_len, &client->local->work->scratch);
	if (status == KEM_OK)
		status = kem_private_from_dk(&key, alg, dk, dk_len);
	if (status != KEM_OK)
		return error_from_kem(status);
	if (alg == KEM_ALG_X25519MLKEM768) {
		ek_bytes -= 32;
		if (hybrid_public(client, key.x_priv, share + ek_bytes) != 0)
			return MLKEMCLIENT_E_INTERNAL;
	}
	memcpy(share, key.ek, ek_bytes);
	return 0;
}

static int
share_of_seed(
    struct mlkemclient *client, enum kem_alg alg, const uint8_t *seed, uint8_t *share)
{
	struct workplace *work = client->local->work;
	struct kem_keygen_item item = {
	    .seed = seed, .share = share, .secret = work->secret[0]};

	if (kem_keygen(client->local->kem, alg, &item, 1, &work->scratch) != 0)
		return MLKEMCLIENT_E_INTERNAL;
	return error_from_kem(item.status);
}

int
local_share_of(struct mlkemclient *client, enum kem_alg alg, const uint8_t *private_key,
    size_t private_key_len, uint8_t *share)
{
	int err = local_open(client);

	if (err != 0)
		return err;
	if (private_key_len == kem_alg_info(alg)->seed_bytes)
		err = share_of_seed(client, alg, private_key, share);
	else
		err = share_of_dk(client, alg, private_key, private_key_len, share);
	wipe_work(client->local->work);
	if (err != 0)
		bytes_zero(share, kem_alg_info(alg)->share_bytes);
	return err;
}
