/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "client-lib/client.h"

/* The X25519 public key of a private one stands at the end of a seed's share. */
static int
hybrid_public(struct bench *bench, const uint8_t *x_private, uint8_t *x_public)
{
	const struct kem_alg_info *info = kem_alg_info(KEM_ALG_X25519MLKEM768);
	uint8_t *seed = bench->share[1];
	struct kem_keygen_item item;
	int err;

	_Static_assert(KEM_SHARE_MAX >= KEM_SEED_MAX, "no room for a seed");
	memset(seed, 0, info->seed_bytes - 32u);
	memcpy(seed + info->seed_bytes - 32, x_private, 32);
	item = (struct kem_keygen_item){
	    .seed = seed, .share = bench->share[0], .secret = bench->secret[0]};
	err = kem_keygen(bench->kem, KEM_ALG_X25519MLKEM768, &item, 1, &bench->scratch);
	if (err != 0)
		return MLKEMCLIENT_E_INTERNAL;
	memcpy(x_public, bench->share[0] + info->share_bytes - 32, 32);
	return error_from_kem(item.status);
}

static int
share_of_dk(struct bench *bench, enum kem_alg alg, const uint8_t *dk, size_t dk_len,
    uint8_t *share)
{
	struct kem_private key;
	size_t ek_bytes = kem_alg_info(alg)->share_bytes;
	enum kem_status status;

	status = kem_check_dk(bench->kem, alg, dk, dk_len, &bench->scratch);
	if (status == KEM_OK)
		status = kem_private_from_dk(&key, alg, dk, dk_len);
	if (status != KEM_OK)
		return error_from_kem(status);
	if (alg == KEM_ALG_X25519MLKEM768) {
		ek_bytes -= 32;
		if (hybrid_public(bench, key.x_priv, share + ek_bytes) != 0)
			return MLKEMCLIENT_E_INTERNAL;
	}
	memcpy(share, key.ek, ek_bytes);
	return 0;
}

static int
share_of_seed(
    struct bench *bench, enum kem_alg alg, const uint8_t *seed, uint8_t *share)
{
	struct kem_keygen_item item = {
	    .seed = seed, .share = share, .secret = bench->secret[0]};

	if (kem_keygen(bench->kem, alg, &item, 1, &bench->scratch) != 0)
		return MLKEMCLIENT_E_INTERNAL;
	return error_from_kem(item.status);
}

static int
share_run(struct mlkemclient *client, const struct job *job, uint8_t *share)
{
	const struct kem_alg_info *info = kem_alg_info(job->alg);
	const struct job_item *item = &job->one;
	struct bench *bench = bench_take(client);
	int err;

	if (bench == NULL)
		return MLKEMCLIENT_E_INTERNAL;
	if (item->private_key_len == info->seed_bytes)
		err = share_of_seed(bench, job->alg, item->private_key, share);
	else
		err = share_of_dk(
		    bench, job->alg, item->private_key, item->private_key_len, share);
	bench_wipe(bench);
	bench_give(client, bench, 0);
	if (err == 0)
		return 0;
	bytes_zero(share, info->share_bytes);
	return client_fail(client, err, "%s", mlkemclient_strerror(err));
}

int
mlkemclient_share_of(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *private_key, size_t private_key_len, uint8_t *share,
    size_t share_len)
{
	struct job job;
	int err;

	bytes_zero(share, share_len);
	if (client == NULL || private_key == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin(client, &job, JOB_KEYGEN, alg, 1);
	if (err == 0 &&
	    (share == NULL || share_len != kem_alg_info(job.alg)->share_bytes)) {
		err = MLKEMCLIENT_E_INVALID;
		client_fail(client, err,
		    "the buffer for the share has %zu bytes; it takes %u",
		    share != NULL ? share_len : 0,
		    (unsigned)kem_alg_info(job.alg)->share_bytes);
	}
	if (err == 0) {
		job.one.private_key = private_key;
		job.one.private_key_len = private_key_len;
		item_check_private_key(client, &job, &job.one);
		err = job.one.error;
	}
	if (err == JOB_PENDING)
		err = share_run(client, &job, share);
	job_end(client, &job);
	return err;
}

static int
expand_run(struct mlkemclient *client, const struct job *job)
{
	const struct job_item *item = &job->one;
	struct bench *bench = bench_take(client);
	int err;

	if (bench == NULL)
		return MLKEMCLIENT_E_INTERNAL;
	err = share_of_seed(bench, job->alg, item->private_key, bench->share[0]);
	if (err == 0)
		kem_private_export(
		    job->alg, bench->secret[0], bench->share[0], item->out_private_key);
	bench_wipe(bench);
	bench_give(client, bench, 0);
	if (err != 0)
		client_fail(client, err, "%s", mlkemclient_strerror(err));
	return err;
}

int
mlkemclient_expand_seed(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *seed, size_t seed_len, uint8_t *private_key, size_t private_key_len)
{
	const struct kem_alg_info *info;
	struct job job;
	int err;

	bytes_zero(private_key, private_key_len);
	if (client == NULL || seed == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin(client, &job, JOB_KEYGEN, alg, 1);
	if (err != 0)
		goto out;
	info = kem_alg_info(job.alg);
	if (seed_len != info->seed_bytes) {
		err = client_fail(client, MLKEMCLIENT_E_LENGTH,
		    "a seed of %s has %u bytes, not %zu", info->name,
		    (unsigned)info->seed_bytes, seed_len);
	} else if (private_key == NULL || private_key_len != info->dk_bytes) {
		err = client_fail(client, MLKEMCLIENT_E_INVALID,
		    "the buffer for the private key has %zu bytes; it takes %u",
		    private_key != NULL ? private_key_len : 0,
		    (unsigned)info->dk_bytes);
	} else {
		job.one.private_key = seed;
		job.one.private_key_len = seed_len;
		job.one.out_private_key = private_key;
		err = expand_run(client, &job);
	}
out:
	job_end(client, &job);
	return err;
}
