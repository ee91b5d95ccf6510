/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h: one request on its way through the daemon: codec makes it, service judges
 * it, batch computes it, and req->done(req) sends it back the way it came. It and all
 * that it points to lie in the shard's codec memory, wiped at the end of the turn; it
 * never outlives the turn, and so neither does any pointer into it.
 */
#ifndef MLKEMD_REQUEST_H
#define MLKEMD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "kem/kem.h"

enum request_op {
	REQUEST_NONE,
	REQUEST_HELLO,
	REQUEST_PING,
	REQUEST_INFO,
	REQUEST_KEYGEN,
	REQUEST_ENCAPS,
	REQUEST_DECAPS,
	REQUEST_RELEASE,
	REQUEST_CANCEL,
	/* control socket only */
	REQUEST_STATS,
	REQUEST_DRAIN,
	REQUEST_RESUME,
	REQUEST_RELOAD,
	REQUEST_SELFTEST,
	REQUEST_N_OPS,
};

/* The wire's Status, by its numbers (proto/mlkemd.proto); codec.c asserts they agree. */
enum request_status {
	STATUS_OK = 0,
	STATUS_INVALID_REQUEST = 10,
	STATUS_UNSUPPORTED = 11,
	STATUS_TOO_MANY_ITEMS = 12,
	STATUS_DENIED = 20,
	STATUS_EXPORT_DISABLED = 21,
	STATUS_BAD_LENGTH = 30,
	STATUS_BAD_SHARE = 31,
	STATUS_BAD_KEY = 32,
	STATUS_ALGORITHM_MISMATCH = 33,
	STATUS_ZERO_X25519 = 34,
	STATUS_KEY_NOT_FOUND = 40,
	STATUS_RESOURCE_EXHAUSTED = 50,
	STATUS_DEADLINE_EXCEEDED = 51,
	STATUS_DRAINING = 52,
	STATUS_CANCELLED = 53,
	STATUS_INTERNAL = 60,
};

struct request_bytes {
	const uint8_t *data;
	size_t len;
};

/*
 * One item. Inputs are set by codec (pointers into the decoded message), outputs point
 * to codec memory of the right size, set by service before the item enters a batch.
 */
struct request_item {
	/* in */
	struct request_bytes share;       /* encaps */
	struct request_bytes ciphertext;  /* decaps */
	struct request_bytes handle;      /* decaps, release */
	struct request_bytes private_key; /* decaps */

	/* out; a failed item's are not sent */
	enum request_status status;
	const char *message;     /* NULL or a sentence in codec memory or static */
	uint8_t *out_share;      /* keygen */
	uint8_t *out_handle;     /* keygen: WIRE_HANDLE_BYTES */
	uint8_t *out_dk;         /* keygen with export */
	uint8_t *out_ciphertext; /* encaps */
	uint8_t *out_secret;     /* encaps, decaps: request.secret_bytes of them */

	/* service's and batch's own; wiped when the item is finished */
	const uint8_t *seed; /* decaps with a seed for a key; keygen: NULL */
	uint8_t *secret;    /* compact private key (keygen; decaps by handle or seed) */
	uint8_t *key_share; /* decaps by handle or seed: that key's public share */
	struct kem_private key;       /* decaps */
	struct kem_shared *shared;    /* before the kdf */
	struct kem_x25519 *ephemeral; /* encaps, hybrid: from the pool, or NULL */
	struct request *request;
	STAILQ_ENTRY(request_item) next; /* batch's queue of one (op, alg) */
};

struct request_kdf {
	bool used;
	enum kem_hash hash;
	struct request_bytes salt, info;
	uint32_t length;
};

struct conn;
struct mem;
struct service;
struct user;

struct request {
	uint64_t id;
	enum request_op op;
	enum request_status status;
	const char *message;
	uint64_t arrived_us; /* CLOCK_MONOTONIC, when its last byte was read */
	uint64_t
	    deadline_us;   /* absolute; set by codec from timeout_us or the default */
	uint64_t conn_id;  /* owner of handles; the number told in Hello */
	bool control;      /* came by the control socket */
	struct user *user; /* whose it is; set by conn */
	struct mem *mem;

	/* Hello */
	uint32_t min_version, max_version;
	const char
	    *client_name; /* at most WIRE_MAX_CLIENT_NAME bytes, NUL-terminated */
	uint64_t fallbacks, auto_daemon, auto_local;
	/* Cancel */
	uint64_t cancel_id;
	/* KEM operations */
	enum kem_alg alg;
	bool export_private;
	struct request_kdf kdf;
	uint32_t secret_bytes; /* of each answer: kdf.length or the algorithm's */
	struct request_item *items;
	uint32_t n_items;
	uint32_t n_pending; /* items not yet worked; batch counts down */
	uint32_t n_released;
	/* Set by batch, for the log: of the last group that had an item of it. */
	uint32_t queue_us, work_us, batch_items;

	/*
	 * Set by service, called by batch for each item that was computed: settles what
	 * is no arithmetic (a new key's handle). Returns 0, or a negative KEM_FAIL_...
	 */
	int (*settle)(struct request_item *item);
	struct service *service;

	/* Called once, when every item has its status. Set by conn. */
	void (*done)(struct request *req);
	void *owner; /* the struct conn (or control peer) that waits */
	STAILQ_ENTRY(request) next;
};

STAILQ_HEAD(request_item_list, request_item);
STAILQ_HEAD(request_list, request);

/* CLOCK_MONOTONIC, as arrived_us and deadline_us count it. */
uint64_t request_now_us(void);

/*
 * Refuse an item, or a whole request, with a sentence of at most WIRE_MAX_MESSAGE_TEXT
 * bytes (cut there) in codec memory; without one if that is full. Never a secret.
 */
__attribute__((format(printf, 3, 4))) void request_item_fail(
    struct request_item *item, enum request_status status, const char *format, ...);
__attribute__((format(printf, 3, 4))) void request_fail(
    struct request *req, enum request_status status, const char *format, ...);

/* As above for what kem says of an item, in kem_explain()'s words. KEM_OK: STATUS_OK. */
void request_item_kem_status(
    struct request_item *item, enum kem_status status, enum kem_part part, size_t len);

#endif
