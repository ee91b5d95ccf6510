/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "client-lib/client.h"

/* The items of one group. */
struct group {
	struct job_item *items[KEM_GROUP_MAX];
	size_t n;
};

static void
item_fail(const struct mlkemclient *client, struct job_item *item,
    enum kem_status status, enum kem_alg alg, enum kem_part part, size_t len)
{
	item->error = error_from_kem(status);
	client_explain(client, status, alg, part, len);
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
		if (job->op == JOB_DECAPS && item->key != NULL &&
		    atomic_exchange(&item->key->spent, true)) {
			item->error = client_fail(client, MLKEMCLIENT_E_KEY_GONE, "%s",
			    mlkemclient_strerror(MLKEMCLIENT_E_KEY_GONE));
			continue;
		}
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
group_keygen(struct mlkemclient *client, const struct job *job, struct bench *bench,
    struct group *group)
{
	struct kem_keygen_item items[KEM_GROUP_MAX] = {{0}};
	int err;

	for (size_t i = 0; i < group->n; i++) {
		items[i].share = group->items[i]->out_share;
		items[i].secret = bench->secret[i];
	}
	err = kem_keygen(bench->kem, job->alg, items, group->n, &bench->scratch);
	if (err != 0)
		return err;
	for (size_t i = 0; i < group->n; i++) {
		struct job_item *item = group->items[i];

		if (items[i].status != KEM_OK)
			item_fail(
			    client, item, items[i].status, job->alg, KEM_PART_KEY, 0);
		else
			item->error = keygen_done(client, job, item, bench->secret[i]);
		if (item->error != 0)
			kem_wipe(item->out_share, kem_alg_info(job->alg)->share_bytes);
	}
	return 0;
}

/* The secret as it was asked for: raw, or through the kdf. */
static int
secret_done(const struct mlkemclient *client, const struct job *job,
    const struct bench *bench, const struct kem_shared *shared, uint8_t *out)
{
	const struct kdf *kdf = job->kdf;
	int err;

	if (kdf == NULL) {
		memcpy(out, shared->bytes, job->secret_bytes);
		return 0;
	}
	err = kem_hkdf(bench->kem, kdf->hash, shared->bytes,
	    kem_alg_info(job->alg)->shared_bytes, kdf->salt, kdf->salt_len, kdf->info,
	    kdf->info_len, out, kdf->length);
	if (err != 0)
		return client_fail(
		    client, MLKEMCLIENT_E_INTERNAL, "%s", kem_strerror(err));
	return 0;
}

static int
group_encaps(struct mlkemclient *client, const struct job *job, struct bench *bench,
    struct group *group)
{
	struct kem_encaps_item items[KEM_GROUP_MAX] = {{0}};
	struct kem_spare spare = {.pairs = bench->made, .wanted = KEM_SPARE_MAX};
	int err;

	if (job->alg == KEM_ALG_X25519MLKEM768)
		bench_trade_pairs(client, bench, group->n);
	for (size_t i = 0; i < group->n; i++) {
		items[i].share = group->items[i]->share;
		items[i].share_len = group->items[i]->share_len;
		items[i].ephemeral = i < bench->n_pairs ? &bench->pairs[i] : NULL;
		items[i].ct = group->items[i]->out_ciphertext;
		items[i].shared = &bench->shared[i];
	}
	err = kem_encaps_spare(
	    bench->kem, job->alg, items, group->n, &spare, &bench->scratch);
	bench->n_made = spare.n;
	if (err != 0)
		return err;
	for (size_t i = 0; i < group->n; i++) {
		struct job_item *item = group->items[i];

		if (items[i].status != KEM_OK)
			item_fail(client, item, items[i].status, job->alg,
			    KEM_PART_SHARE, item->share_len);
		else
			item->error = secret_done(
			    client, job, bench, &bench->shared[i], item->out_secret);
		if (item->error != 0)
			kem_wipe(
			    item->out_ciphertext, kem_alg_info(job->alg)->ct_bytes);
	}
	return 0;
}

/* A view of the item's private key: a local key, an expanded dk, or a seed. */
static int
private_view(const struct job *job, struct bench *bench, const struct job_item *item,
    size_t i, struct kem_private *key, enum kem_status *statusp)
{
	const struct kem_alg_info *info = kem_alg_info(job->alg);
	struct kem_keygen_item keygen = {.seed = item->private_key,
	    .share = bench->share[i],
	    .secret = bench->secret[i]};
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
	err = kem_keygen(bench->kem, job->alg, &keygen, 1, &bench->scratch);
	if (err != 0)
		return err;
	*statusp = keygen.status;
	kem_private_from_parts(key, job->alg, bench->secret[i], bench->share[i]);
	return 0;
}

static void
decaps_done(const struct mlkemclient *client, const struct job *job,
    const struct bench *bench, struct job_item *item, enum kem_status status,
    const struct kem_shared *shared)
{
	enum kem_part part = status == KEM_E_LENGTH ? KEM_PART_CT : KEM_PART_KEY;

	if (status == KEM_OK)
		item->error = secret_done(client, job, bench, shared, item->out_secret);
	else
		item_fail(client, item, status, job->alg, part,
		    part == KEM_PART_CT ? item->ciphertext_len : item->private_key_len);
}

static int
group_decaps(struct mlkemclient *client, const struct job *job, struct bench *bench,
    struct group *group)
{
	struct kem_decaps_item items[KEM_GROUP_MAX] = {{0}};
	struct kem_private keys[KEM_GROUP_MAX];
	struct job_item *worked[KEM_GROUP_MAX];
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < group->n && err == 0; i++) {
		struct job_item *item = group->items[i];
		enum kem_status status;

		err = private_view(job, bench, item, n, &keys[n], &status);
		if (err == 0 && status != KEM_OK)
			item_fail(client, item, status, job->alg, KEM_PART_KEY,
			    item->private_key_len);
		if (err != 0 || status != KEM_OK)
			continue;
		items[n].key = &keys[n];
		items[n].ct = item->ciphertext;
		items[n].ct_len = item->ciphertext_len;
		items[n].shared = &bench->shared[n];
		worked[n++] = item;
	}
	if (err == 0 && n != 0)
		err = kem_decaps(bench->kem, job->alg, items, n, &bench->scratch);
	for (size_t i = 0; i < n && err == 0; i++)
		decaps_done(
		    client, job, bench, worked[i], items[i].status, &bench->shared[i]);
	for (size_t i = 0; i < group->n; i++)
		if (group->items[i]->key != NULL)
			key_drop_secret(group->items[i]->key);
	return err;
}

static int
group_run(struct mlkemclient *client, const struct job *job, struct bench *bench,
    struct group *group)
{
	switch (job->op) {
	case JOB_KEYGEN:
		return group_keygen(client, job, bench, group);
	case JOB_ENCAPS:
		return group_encaps(client, job, bench, group);
	case JOB_DECAPS:
		break;
	}
	return group_decaps(client, job, bench, group);
}

/* Returns how many items were done. */
static size_t
work_groups(struct mlkemclient *client, struct job *job, struct bench *bench,
    uint64_t deadline_us)
{
	size_t next = 0, n_done = 0;
	struct group group;
	int err;

	for (;;) {
		if (client_now(client) >= deadline_us) {
			client_fail(
			    client, MLKEMCLIENT_E_TIMEOUT, "the deadline passed");
			job_fail_pending(job, MLKEMCLIENT_E_TIMEOUT);
			return n_done;
		}
		group_take(client, job, &next, &group);
		if (group.n == 0)
			return n_done;
		err = group_run(client, job, bench, &group);
		bench_wipe(bench);
		if (err != 0)
			break;
		for (size_t i = 0; i < group.n; i++)
			n_done += group.items[i]->error == 0;
	}
	client_fail(client, MLKEMCLIENT_E_INTERNAL, "%s", kem_strerror(err));
	job_fail_pending(job, MLKEMCLIENT_E_INTERNAL);
	return n_done;
}

void
local_run(struct mlkemclient *client, struct job *job, uint64_t deadline_us)
{
	struct bench *bench;
	size_t next = 0, n_done;
	uint64_t start_us;

	while (next < job->n_items && job->items[next].error != JOB_PENDING)
		next++;
	if (next == job->n_items)
		return;
	bench = bench_take(client);
	if (bench == NULL) {
		job_fail_pending(job, MLKEMCLIENT_E_INTERNAL);
		return;
	}
	start_us = client_now(client);
	n_done = work_groups(client, job, bench, deadline_us);
	job->local_us = (uint32_t)(client_now(client) - start_us);
	bench_give(client, bench, n_done);
}
