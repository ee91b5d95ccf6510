/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "client-lib/client.h"

/*
 * All items failed alike, and by the way rather than by their input: then the call has
 * failed. Else each has its own result.
 */
static int
batch_error(const struct job *job)
{
	int error = job->items[0].error;

	for (size_t i = 1; i < job->n_items; i++)
		if (job->items[i].error != error)
			return 0;
	return error_is_elsewhere(error) ? error : 0;
}

int
mlkemclient_keygen_batch(struct mlkemclient *client, enum mlkemclient_alg alg,
    struct mlkemclient_keygen_item *items, size_t n_items)
{
	struct mlkemclient_sizes sizes;
	struct job job;
	int err;

	if (client == NULL || items == NULL)
		return MLKEMCLIENT_E_INVALID;
	(void)!mlkemclient_get_sizes(alg, &sizes); /* zeros, if it is unknown */
	err = job_begin(client, &job, JOB_KEYGEN, alg, n_items);
	for (size_t i = 0; i < n_items && n_items <= MLKEMCLIENT_MAX_ITEMS; i++) {
		bytes_zero(items[i].share, sizes.share);
		items[i].key = NULL;
		items[i].error = err;
	}
	if (err != 0)
		goto out;

	for (size_t i = 0; i < n_items; i++) {
		struct job_item *item = &job.items[i];

		item->out_share = items[i].share;
		if (item->out_share == NULL) {
			item->error = client_fail(
			    client, MLKEMCLIENT_E_INVALID, "no room for the share");
			continue;
		}
		item->key = key_new(client, job.alg);
		if (item->key == NULL)
			item->error =
			    client_fail(client, MLKEMCLIENT_E_INTERNAL, "no memory");
	}
	route_run(client, &job);
	for (size_t i = 0; i < n_items; i++) {
		items[i].error = job.items[i].error;
		if (items[i].error == 0)
			items[i].key = job.items[i].key;
		else
			key_free(job.items[i].key);
	}
	err = batch_error(&job);
out:
	job_end(client, &job);
	return err;
}

int
mlkemclient_encaps_batch(struct mlkemclient *client, enum mlkemclient_alg alg,
    struct mlkemclient_encaps_item *items, size_t n_items)
{
	struct mlkemclient_sizes sizes;
	struct job job;
	int err;

	if (client == NULL || items == NULL)
		return MLKEMCLIENT_E_INVALID;
	(void)!mlkemclient_get_sizes(alg, &sizes); /* zeros, if it is unknown */
	err = job_begin(client, &job, JOB_ENCAPS, alg, n_items);
	for (size_t i = 0; i < n_items && n_items <= MLKEMCLIENT_MAX_ITEMS; i++) {
		bytes_zero(items[i].ciphertext, sizes.ciphertext);
		bytes_zero(items[i].secret, job.secret_bytes);
		items[i].error = err;
	}
	if (err != 0)
		goto out;

	for (size_t i = 0; i < n_items; i++) {
		const struct kem_alg_info *info = kem_alg_info(job.alg);
		struct job_item *item = &job.items[i];

		item->share = items[i].share;
		item->share_len = items[i].share_len;
		item->out_ciphertext = items[i].ciphertext;
		item->out_secret = items[i].secret;
		if (item->share == NULL || item->out_ciphertext == NULL ||
		    item->out_secret == NULL)
			item->error = client_fail(
			    client, MLKEMCLIENT_E_INVALID, "a pointer is missing");
		item_check_length(client, &job, item, KEM_PART_SHARE, item->share_len,
		    info->share_bytes);
	}
	route_run(client, &job);
	for (size_t i = 0; i < n_items; i++)
		items[i].error = job.items[i].error;
	err = batch_error(&job);
out:
	job_end(client, &job);
	return err;
}

int
mlkemclient_decaps_batch(struct mlkemclient *client, enum mlkemclient_alg alg,
    struct mlkemclient_decaps_item *items, size_t n_items)
{
	struct job job;
	int err;

	if (client == NULL || items == NULL)
		return MLKEMCLIENT_E_INVALID;
	err = job_begin(client, &job, JOB_DECAPS, alg, n_items);
	for (size_t i = 0; i < n_items && n_items <= MLKEMCLIENT_MAX_ITEMS; i++) {
		bytes_zero(items[i].secret, job.secret_bytes);
		items[i].error = err;
	}
	if (err != 0)
		goto out;

	for (size_t i = 0; i < n_items; i++) {
		struct job_item *item = &job.items[i];

		item->key = items[i].key;
		item->ciphertext = items[i].ciphertext;
		item->ciphertext_len = items[i].ciphertext_len;
		item->out_secret = items[i].secret;
		item_check_key(client, &job, item);
		if (item->ciphertext == NULL || item->out_secret == NULL)
			item->error = client_fail(
			    client, MLKEMCLIENT_E_INVALID, "a pointer is missing");
		item_check_length(client, &job, item, KEM_PART_CT, item->ciphertext_len,
		    kem_alg_info(job.alg)->ct_bytes);
	}
	route_run(client, &job);
	for (size_t i = 0; i < n_items; i++)
		items[i].error = job.items[i].error;
	err = batch_error(&job);
out:
	job_end(client, &job);
	return err;
}
