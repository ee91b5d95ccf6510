/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/client.h"

/* An output buffer of another size than the result is a mistake in the caller. */
static int
check_room(const struct mlkemclient *client, const char *what, const void *p,
    size_t len, size_t right)
{
	if (p != NULL && len == right)
		return 0;
	return client_fail(client, MLKEMCLIENT_E_INVALID,
	    "the buffer for the %s has %zu bytes; it takes %zu", what, p ? len : 0,
	    right);
}

static int
job_run_one(struct mlkemclient *client, struct job *job)
{
	route_run(client, job);
	return job->one.error;
}

int
mlkemclient_keygen(struct mlkemclient *client, enum mlkemclient_alg alg, uint8_t *share,
    size_t share_len, struct mlkemclient_key **keyp)
{
	struct mlkemclient_key *key = NULL;
	struct job job;
	int err;

	bytes_zero(share, share_len);
	if (keyp != NULL)
		*keyp = NULL;
	if (client == NULL || keyp == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin(client, &job, JOB_KEYGEN, alg, 1);
	if (err == 0)
		err = check_room(client, "share", share, share_len,
		    kem_alg_info(job.alg)->share_bytes);
	if (err != 0)
		goto out;

	key = key_new(client, job.alg);
	if (key == NULL) {
		err = client_fail(client, MLKEMCLIENT_E_INTERNAL, "no memory");
		goto out;
	}
	job.one.out_share = share;
	job.one.key = key;
	err = job_run_one(client, &job);
	if (err == 0) {
		*keyp = key;
		key = NULL;
	}
out:
	key_free(key);
	job_end(client, &job);
	return err;
}

int
mlkemclient_keygen_export(struct mlkemclient *client, enum mlkemclient_alg alg,
    uint8_t *share, size_t share_len, uint8_t *private_key, size_t private_key_len)
{
	struct job job;
	int err;

	bytes_zero(share, share_len);
	bytes_zero(private_key, private_key_len);
	if (client == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin(client, &job, JOB_KEYGEN, alg, 1);
	if (err == 0)
		err = check_room(client, "share", share, share_len,
		    kem_alg_info(job.alg)->share_bytes);
	if (err == 0)
		err = check_room(client, "private key", private_key, private_key_len,
		    kem_alg_info(job.alg)->dk_bytes);
	if (err == 0) {
		job.export_private = true;
		job.one.out_share = share;
		job.one.out_private_key = private_key;
		err = job_run_one(client, &job);
	}
	job_end(client, &job);
	return err;
}

int
mlkemclient_encaps(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *share, size_t share_len, uint8_t *ciphertext, size_t ciphertext_len,
    uint8_t *secret, size_t secret_len)
{
	struct job job;
	int err;

	bytes_zero(ciphertext, ciphertext_len);
	bytes_zero(secret, secret_len);
	if (client == NULL || share == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin(client, &job, JOB_ENCAPS, alg, 1);
	if (err == 0)
		err = check_room(client, "ciphertext share", ciphertext, ciphertext_len,
		    kem_alg_info(job.alg)->ct_bytes);
	if (err == 0)
		err =
		    check_room(client, "secret", secret, secret_len, job.secret_bytes);
	if (err == 0) {
		job.one.share = share;
		job.one.share_len = share_len;
		job.one.out_ciphertext = ciphertext;
		job.one.out_secret = secret;
		item_check_length(client, &job, &job.one, KEM_PART_SHARE, share_len,
		    kem_alg_info(job.alg)->share_bytes);
		err = job_run_one(client, &job);
	}
	job_end(client, &job);
	return err;
}

/* Both decapsulations: by a key object, or by a private key of the caller's. */
static int
decaps_one(struct mlkemclient *client, struct job *job, const uint8_t *ciphertext,
    size_t ciphertext_len, uint8_t *secret, size_t secret_len)
{
	int err = check_room(client, "secret", secret, secret_len, job->secret_bytes);

	if (err != 0)
		return err;
	job->one.ciphertext = ciphertext;
	job->one.ciphertext_len = ciphertext_len;
	job->one.out_secret = secret;
	item_check_length(client, job, &job->one, KEM_PART_CT, ciphertext_len,
	    kem_alg_info(job->alg)->ct_bytes);
	return job_run_one(client, job);
}

int
mlkemclient_decaps(struct mlkemclient *client, struct mlkemclient_key *key,
    const uint8_t *ciphertext, size_t ciphertext_len, uint8_t *secret,
    size_t secret_len)
{
	struct job job;
	int err;

	bytes_zero(secret, secret_len);
	if (client == NULL || key == NULL || ciphertext == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin(client, &job, JOB_DECAPS, alg_to_public(key->alg), 1);
	if (err == 0) {
		job.one.key = key;
		item_check_key(client, &job, &job.one);
		err = decaps_one(
		    client, &job, ciphertext, ciphertext_len, secret, secret_len);
	}
	job_end(client, &job);
	return err;
}

int
mlkemclient_decaps_with(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *private_key, size_t private_key_len, const uint8_t *ciphertext,
    size_t ciphertext_len, uint8_t *secret, size_t secret_len)
{
	struct job job;
	int err;

	bytes_zero(secret, secret_len);
	if (client == NULL || private_key == NULL || ciphertext == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin(client, &job, JOB_DECAPS, alg, 1);
	if (err == 0) {
		job.one.private_key = private_key;
		job.one.private_key_len = private_key_len;
		item_check_private_key(client, &job, &job.one);
		err = decaps_one(
		    client, &job, ciphertext, ciphertext_len, secret, secret_len);
	}
	job_end(client, &job);
	return err;
}
