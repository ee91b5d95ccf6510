/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>
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
job_begin(struct mlkemclient *client, struct job *job, enum job_op op,
    enum mlkemclient_alg alg, size_t n_items)
{
	report_clear(client);
	memset(job, 0, sizeof(*job));
	job->op = op;
	if (n_items == 0 || n_items > MLKEMCLIENT_MAX_ITEMS)
		return client_fail(client, MLKEMCLIENT_E_INVALID,
		    "%zu items; 1 to %d are allowed", n_items, MLKEMCLIENT_MAX_ITEMS);
	if (alg_from_public(alg, &job->alg) != 0)
		return client_fail(client, MLKEMCLIENT_E_UNSUPPORTED,
		    "no algorithm has the number %d", (int)alg);
	client_lock(client);
	if (op != JOB_KEYGEN)
		job->kdf = kdf_ref(client->kdf);
	client_unlock(client);
	if (job->kdf != NULL && job->kdf->length * n_items > WIRE_MAX_KDF_BYTES)
		return client_fail(client, MLKEMCLIENT_E_INVALID,
		    "kdf: %u bytes for %zu items; together up to %u are allowed",
		    job->kdf->length, n_items, WIRE_MAX_KDF_BYTES);
	job->secret_bytes =
	    job->kdf != NULL ? job->kdf->length : kem_alg_info(job->alg)->shared_bytes;
	job->items = n_items == 1 ? &job->one : calloc(n_items, sizeof(*job->items));
	if (job->items == NULL)
		return client_fail(client, MLKEMCLIENT_E_INTERNAL, "no memory");
	job->n_items = n_items;
	for (size_t i = 0; i < n_items; i++)
		job->items[i].error = JOB_PENDING;
	return 0;
}

/* What is wiped are pointers to the caller's secrets. */
void
job_end(struct mlkemclient *client, struct job *job)
{
	if (job->kdf != NULL) {
		client_lock(client);
		kdf_unref(job->kdf);
		client_unlock(client);
	}
	if (job->items != NULL && job->items != &job->one) {
		kem_wipe(job->items, job->n_items * sizeof(*job->items));
		free(job->items);
	}
	kem_wipe(job, sizeof(*job));
}

/* A length that is wrong here is wrong everywhere: nothing needs to be asked. */
void
item_check_length(const struct mlkemclient *client, const struct job *job,
    struct job_item *item, enum kem_part part, size_t len, size_t right)
{
	if (len == right || item->error != JOB_PENDING)
		return;
	item->error = MLKEMCLIENT_E_LENGTH;
	client_explain(client, KEM_E_LENGTH, job->alg, part, len);
}

void
item_check_private_key(
    const struct mlkemclient *client, const struct job *job, struct job_item *item)
{
	const struct kem_alg_info *info = kem_alg_info(job->alg);
	size_t len = item->private_key_len;
	enum kem_status status = KEM_E_LENGTH;
	enum kem_alg other;

	if (item->error != JOB_PENDING || len == info->dk_bytes ||
	    len == info->seed_bytes)
		return;
	if (kem_alg_of_length(KEM_PART_KEY, len, &other) == 0)
		status = KEM_E_ALG;
	item->error = error_from_kem(status);
	client_explain(client, status, job->alg, KEM_PART_KEY, len);
}

static bool
key_is_gone(struct mlkemclient *client, struct mlkemclient_key *key)
{
	bool gone;

	client_lock(client);
	gone = !key_is_live(key);
	if (gone)
		key_lost(key);
	client_unlock(client);
	return gone;
}

void
item_check_key(struct mlkemclient *client, const struct job *job, struct job_item *item)
{
	struct mlkemclient_key *key = item->key;

	if (key == NULL || key->owner != client)
		item->error = client_fail(client, MLKEMCLIENT_E_INVALID,
		    "the key is of another handle, or missing");
	else if (key->alg != job->alg)
		item->error = client_fail(client, MLKEMCLIENT_E_ALGORITHM,
		    "a key of %s among keys of %s", kem_alg_info(key->alg)->name,
		    kem_alg_info(job->alg)->name);
	else if (key_is_gone(client, key))
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

/* What a failed call has not yet given a result, outputs still zero. */
void
job_fail_pending(struct job *job, int error)
{
	for (size_t i = 0; i < job->n_items; i++)
		if (job->items[i].error == JOB_PENDING)
			job->items[i].error = error;
}
