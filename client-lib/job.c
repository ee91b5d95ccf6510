/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "client-lib/client.h"

void
bytes_zero(uint8_t *p, size_t len)
{
	if (p != NULL && len != 0)
		memset(p, 0, len);
}

/*
 * Every operation is a job of 1 to 64 items. The checks that need no key and no kernel
 * are made here, for the daemon and for this process alike.
 */
int
job_begin(struct mlkemclient *client, enum job_op op, enum mlkemclient_alg alg,
    size_t n_items)
{
	struct job *job = &client->job;
	const struct kdf *kdf = &client->kdf;
	bool use_kdf = kdf->used && op != JOB_KEYGEN;

	client_enter(client);
	memset(job, 0, sizeof(*job));
	job->op = op;
	if (n_items == 0 || n_items > MLKEMCLIENT_MAX_ITEMS)
		return client_fail(client, MLKEMCLIENT_E_INVALID,
		    "%zu items; 1 to %d are allowed", n_items, MLKEMCLIENT_MAX_ITEMS);
	if (alg_from_public(alg, &job->alg) != 0)
		return client_fail(client, MLKEMCLIENT_E_UNSUPPORTED,
		    "no algorithm has the number %d", (int)alg);
	if (use_kdf && kdf->length * n_items > WIRE_MAX_KDF_BYTES)
		return client_fail(client, MLKEMCLIENT_E_INVALID,
		    "kdf: %u bytes for %zu items; together up to %u are allowed",
		    kdf->length, n_items, WIRE_MAX_KDF_BYTES);
	job->secret_bytes =
	    use_kdf ? kdf->length : kem_alg_info(job->alg)->shared_bytes;
	job->n_items = n_items;
	for (size_t i = 0; i < n_items; i++)
		job->items[i].error = JOB_PENDING;
	return 0;
}

/* A length that is wrong here is wrong everywhere: nothing needs to be asked. */
void
item_check_length(struct mlkemclient *client, struct job_item *item, enum kem_part part,
    size_t len, size_t right)
{
	if (len == right || item->error != JOB_PENDING)
		return;
	item->error = MLKEMCLIENT_E_LENGTH;
	kem_explain(client->message, sizeof(client->message), KEM_E_LENGTH,
	    client->job.alg, part, len);
}

void
item_check_private_key(struct mlkemclient *client, struct job_item *item)
{
	const struct kem_alg_info *info = kem_alg_info(client->job.alg);
	size_t len = item->private_key_len;
	enum kem_status status = KEM_E_LENGTH;
	enum kem_alg other;

	if (item->error != JOB_PENDING || len == info->dk_bytes ||
	    len == info->seed_bytes)
		return;
	if (kem_alg_of_length(KEM_PART_KEY, len, &other) == 0)
		status = KEM_E_ALG;
	item->error = error_from_kem(status);
	kem_explain(client->message, sizeof(client->message), status, client->job.alg,
	    KEM_PART_KEY, len);
}

void
item_check_key(struct mlkemclient *client, struct job_item *item)
{
	const struct mlkemclient_key *key = item->key;

	if (key == NULL || key->owner != client)
		item->error = client_fail(client, MLKEMCLIENT_E_INVALID,
		    "the key is of another handle, or missing");
	else if (key->alg != client->job.alg)
		item->error = client_fail(client, MLKEMCLIENT_E_ALGORITHM,
		    "a key of %s among keys of %s", kem_alg_info(key->alg)->name,
		    kem_alg_info(client->job.alg)->name);
	else if (!key_is_live(key))
		item->error = client_fail(client, MLKEMCLIENT_E_KEY_GONE, "%s",
		    mlkemclient_strerror(MLKEMCLIENT_E_KEY_GONE));
}

size_t
job_n_by_daemon(const struct job *job)
{
	size_t n = 0;

	for (size_t i = 0; i < job->n_items; i++)
		n += job->items[i].by_daemon;
	return n;
}

void
job_wipe(struct job *job)
{
	kem_wipe(job, sizeof(*job)); /* pointers to the caller's secrets */
}
