/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * job.h: one operation on 1 to 64 items, as it goes from single.c and batch.c through
 * route.c to the daemon or to local.c. It lies on its caller's stack, a batch's items
 * on the heap, and belongs to that call alone.
 */
#ifndef MLKEMCLIENT_JOB_H
#define MLKEMCLIENT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-lib/mlkemclient.h"
#include "kem/kem.h"

#define must_check __attribute__((warn_unused_result))

struct mlkemclient_key;

/* Positive: conditions inside the library; negative: enum mlkemclient_error. */
enum {
	JOB_PENDING = 2, /* the item has no result yet */
};

/* One item of a call. Outputs are zero until error is 0. */
struct job_item {
	/* in */
	const uint8_t *share;
	const uint8_t *ciphertext;
	const uint8_t *private_key;
	size_t share_len, ciphertext_len, private_key_len;
	struct mlkemclient_key *key; /* decaps: in; keygen: out, made beforehand */
	/* out; NULL where the operation has none */
	uint8_t *out_share, *out_ciphertext, *out_secret, *out_private_key;
	int error;      /* 0, negative, or JOB_PENDING */
	bool by_daemon; /* asked of the daemon in the exchange under way */
};

enum job_op { JOB_KEYGEN, JOB_ENCAPS, JOB_DECAPS };

#define KDF_MAX_INPUT 1024
_Static_assert(KDF_MAX_INPUT <= KEM_HKDF_MAX_INFO, "kdf info");

/* What mlkemclient_set_kdf() said; shared by the jobs begun since (kdf.c). */
struct kdf {
	unsigned n_users;
	enum kem_hash hash;
	uint32_t length;
	size_t salt_len, info_len;
	uint8_t salt[KDF_MAX_INPUT], info[KDF_MAX_INPUT];
};

/* Both under the handle's lock. NULL is fine, and means none. */
struct kdf *kdf_ref(struct kdf *kdf);
void kdf_unref(struct kdf *kdf);

struct job {
	enum job_op op;
	enum kem_alg alg;
	bool export_private;
	struct kdf *kdf;     /* NULL: the raw secret */
	size_t secret_bytes; /* of each result: the algorithm's, or the kdf's length */
	uint32_t local_us;   /* out: what work in this process took */
	size_t n_items;
	struct job_item *items; /* one, or on the heap */
	struct job_item one;
};

/*
 * job_begin() leaves n_items pending items and is followed by job_end() even if it
 * failed; the checks set an item's error. Returns 0, or a negative MLKEMCLIENT_E_...
 */
must_check int job_begin(struct mlkemclient *client, struct job *job, enum job_op op,
    enum mlkemclient_alg alg, size_t n_items);
void job_end(struct mlkemclient *client, struct job *job);
size_t job_n_by_daemon(const struct job *job);
void job_fail_pending(struct job *job, int error);
void item_check_length(const struct mlkemclient *client, const struct job *job,
    struct job_item *item, enum kem_part part, size_t len, size_t right);
void item_check_private_key(
    const struct mlkemclient *client, const struct job *job, struct job_item *item);
void item_check_key(
    struct mlkemclient *client, const struct job *job, struct job_item *item);
void bytes_zero(uint8_t *p, size_t len); /* NULL is fine */

#endif
