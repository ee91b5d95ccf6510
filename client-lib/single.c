/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/client.h"

/* An output buffer of another size than the result is a mistake in the caller. */
static int
check_room(struct mlkemclient *client, const char *what, const void *p, size_t len,
    size_t right)
{
	if (p != NULL && len == right)
		return 0;
	return client_fail(client, MLKEMCLIENT_E_INVALID,
	    "the buffer for the %s has %zu bytes; it takes %zu", what, p ? len : 0,
	    right);
}

/* The job of a single call, its item ready to be filled. */
static int
job_begin_one(struct mlkemclient *client, enum job_op op, enum mlkemclient_alg alg,
    struct job_item **itemp)
{
	*itemp = &client->job.items[0];
	return job_begin(client, op, alg, 1);
}

static int
job_run_one(struct mlkemclient *client)
{
	int err;

	route_run(client, &client->job);
	err = client->job.items[0].error;
	job_wipe(&client->job);
	return err;
}

int
mlkemclient_keygen(struct mlkemclient *client, enum mlkemclient_alg alg, uint8_t *share,
    size_t share_len, struct mlkemclient_key **keyp)
{
	struct mlkemclient_key *key;
	struct job_item *item;
	int err;

	bytes_zero(share, share_len);
	if (keyp != NULL)
		*keyp = NULL;
	if (client == NULL || keyp == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin_one(client, JOB_KEYGEN, alg, &item);
	if (err == 0)
		err = check_room(client, "share", share, share_len,
		    kem_alg_info(client->job.alg)->share_bytes);
	if (err != 0)
		return err;

	key = key_new(client, client->job.alg);
	if (key == NULL)
		return client_fail(client, MLKEMCLIENT_E_INTERNAL, "no memory");
	item->out_share = share;
	item->key = key;
	err = job_run_one(client);
	if (err != 0)
		key_free(key);
	else
		*keyp = key;
	return err;
}

int
mlkemclient_keygen_export(struct mlkemclient *client, enum mlkemclient_alg alg,
    uint8_t *share, size_t share_len, uint8_t *private_key, size_t private_key_len)
{
	struct job_item *item;
	int err;

	bytes_zero(share, share_len);
	bytes_zero(private_key, private_key_len);
	if (client == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin_one(client, JOB_KEYGEN, alg, &item);
	if (err == 0)
		err = check_room(client, "share", share, share_len,
		    kem_alg_info(client->job.alg)->share_bytes);
	if (err == 0)
		err = check_room(client, "private key", private_key, private_key_len,
		    kem_alg_info(client->job.alg)->dk_bytes);
	if (err != 0)
		return err;
	client->job.export_private = true;
	item->out_share = share;
	item->out_private_key = private_key;
	return job_run_one(client);
}

int
mlkemclient_encaps(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *share, size_t share_len, uint8_t *ciphertext, size_t ciphertext_len,
    uint8_t *secret, size_t secret_len)
{
	struct job_item *item;
	int err;

	bytes_zero(ciphertext, ciphertext_len);
	bytes_zero(secret, secret_len);
	if (client == NULL || share == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin_one(client, JOB_ENCAPS, alg, &item);
	if (err == 0)
		err = check_room(client, "ciphertext share", ciphertext, ciphertext_len,
		    kem_alg_info(client->job.alg)->ct_bytes);
	if (err == 0)
		err = check_room(
		    client, "secret", secret, secret_len, client->job.secret_bytes);
	if (err != 0)
		return err;
	item->share = share;
	item->share_len = share_len;
	item->out_ciphertext = ciphertext;
	item->out_secret = secret;
	item_check_length(client, item, KEM_PART_SHARE, share_len,
	    kem_alg_info(client->job.alg)->share_bytes);
	return job_run_one(client);
}

/* Both decapsulations: by a key object, or by a private key of the caller's. */
static int
decaps_one(struct mlkemclient *client, struct job_item *item, const uint8_t *ciphertext,
    size_t ciphertext_len, uint8_t *secret, size_t secret_len)
{
	int err =
	    check_room(client, "secret", secret, secret_len, client->job.secret_bytes);

	if (err != 0)
		return err;
	item->ciphertext = ciphertext;
	item->ciphertext_len = ciphertext_len;
	item->out_secret = secret;
	item_check_length(client, item, KEM_PART_CT, ciphertext_len,
	    kem_alg_info(client->job.alg)->ct_bytes);
	return job_run_one(client);
}

int
mlkemclient_decaps(struct mlkemclient *client, struct mlkemclient_key *key,
    const uint8_t *ciphertext, size_t ciphertext_len, uint8_t *secret,
    size_t secret_len)
{
	struct job_item *item;
	int err;

	bytes_zero(secret, secret_len);
	if (client == NULL || key == NULL || ciphertext == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin_one(client, JOB_DECAPS, alg_to_public(key->alg), &item);
	if (err != 0)
		return err;
	item->key = key;
	item_check_key(client, item);
	return decaps_one(client, item, ciphertext, ciphertext_len, secret, secret_len);
}

int
mlkemclient_decaps_with(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *private_key, size_t private_key_len, const uint8_t *ciphertext,
    size_t ciphertext_len, uint8_t *secret, size_t secret_len)
{
	struct job_item *item;
	int err;

	bytes_zero(secret, secret_len);
	if (client == NULL || private_key == NULL || ciphertext == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin_one(client, JOB_DECAPS, alg, &item);
	if (err != 0)
		return err;
	item->private_key = private_key;
	item->private_key_len = private_key_len;
	item_check_private_key(client, item);
	return decaps_one(client, item, ciphertext, ciphertext_len, secret, secret_len);
}

int
mlkemclient_share_of(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *private_key, size_t private_key_len, uint8_t *share,
    size_t share_len)
{
	struct job_item *item;
	int err;

	bytes_zero(share, share_len);
	if (client == NULL || private_key == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin_one(client, JOB_KEYGEN, alg, &item);
	if (err == 0)
		err = check_room(client, "share", share, share_len,
		    kem_alg_info(client->job.alg)->share_bytes);
	if (err != 0)
		return err;
	item->private_key = private_key;
	item->private_key_len = private_key_len;
	item_check_private_key(client, item);
	if (item->error != JOB_PENDING)
		return item->error;
	err = local_share_of(
	    client, client->job.alg, private_key, private_key_len, share);
	if (err != 0)
		client_fail(client, err, "%s", mlkemclient_strerror(err));
	return err;
}
