/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * client.h: what the files of client-lib share. The way of a call:
 *   single.c, batch.c -> route.c -> exchange.c -> message_*.c, transport.c -> daemon
 *                           '-> local.c -> kem.h
 * One thread at a time for a handle; everything hangs from struct mlkemclient, which
 * owns the connection, the locked rooms and the job of the call that is under way.
 */
#ifndef MLKEMCLIENT_CLIENT_H
#define MLKEMCLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client-lib/mlkemclient.h"
#include "kem/kem.h"
#include "proto/wire.h"

#define must_check __attribute__((warn_unused_result))

#define CLIENT_MAX_PATH         107 /* of struct sockaddr_un, without the NUL */
#define CLIENT_MAX_KDF_INPUT    1024
#define CLIENT_DEFAULT_DEADLINE 1000000u
#define CLIENT_PROBE_US         100000u

_Static_assert(CLIENT_MAX_KDF_INPUT <= KEM_HKDF_MAX_INFO, "kdf info");

/* Positive: conditions inside the library; negative: enum mlkemclient_error. */
enum {
	LINK_E_LOST = 1, /* the peer closed, between frames or inside one */
	JOB_PENDING = 2, /* the item has no result yet */
};

/*
 * A locked mapping (room.c): mlock where the limit allows it, never dumped, all zero in
 * a child after fork. Wiped when it is unmapped. The zero state is "none".
 */
struct room {
	uint8_t *base;
	size_t size;
};

must_check int room_map(struct room *room, size_t size);
void room_unmap(struct room *room);
void room_relock(struct room *room); /* a child does not inherit the lock */

/* A bump allocator over a part of a room. */
struct arena {
	uint8_t *base;
	size_t size, used;
};

void *arena_alloc(struct arena *arena, size_t size); /* zero; NULL when full */
void arena_wipe(struct arena *arena);

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

struct job {
	enum job_op op;
	enum kem_alg alg;
	bool export_private;
	size_t secret_bytes; /* of each result: the algorithm's, or the kdf's length */
	size_t n_items;
	struct job_item items[MLKEMCLIENT_MAX_ITEMS];
};

/*
 * job.c: what single.c and batch.c begin with. job_begin() leaves n_items pending
 * items; the checks set an item's error.
 */
must_check int job_begin(struct mlkemclient *client, enum job_op op,
    enum mlkemclient_alg alg, size_t n_items);
void job_wipe(struct job *job);
size_t job_n_by_daemon(const struct job *job);
void item_check_length(struct mlkemclient *client, struct job_item *item,
    enum kem_part part, size_t len, size_t right);
void item_check_private_key(struct mlkemclient *client, struct job_item *item);
void item_check_key(struct mlkemclient *client, struct job_item *item);
void bytes_zero(uint8_t *p, size_t len); /* NULL is fine */

struct kdf {
	bool used;
	enum kem_hash hash;
	uint32_t length;
	size_t salt_len, info_len;
	uint8_t salt[CLIENT_MAX_KDF_INPUT], info[CLIENT_MAX_KDF_INPUT];
};

/*
 * Keeps calls away from a daemon that does not answer: 1 s after the first timeout,
 * then doubling to 30 s. When the pause is over the next call is the probe. A refused
 * Hello and a draining daemon pause for a second too, without doubling. (breaker.c)
 */
struct breaker {
	int error; /* why it is open; 0: closed */
	uint64_t until_us;
	uint32_t pause_us;
};

void breaker_trip(struct breaker *breaker, int error, uint64_t now_us);
void breaker_reset(struct breaker *breaker);
bool breaker_is_open(const struct breaker *breaker, uint64_t now_us);

#define LINK_MAX_ABANDONED 8
#define LINK_MAX_IN_A_ROW  3

/* The connection (transport.c, exchange.c). Buffers lie in room. */
struct link {
	int fd;              /* -1: none */
	uint64_t generation; /* counts connections; a key remembers its own */
	uint64_t next_id;
	uint64_t abandoned[LINK_MAX_ABANDONED]; /* timed out: replies are dropped */
	unsigned n_abandoned;
	unsigned timeouts_in_a_row;
	uint64_t connection; /* the daemon's number for it */
	struct room room;
	bool large; /* room is for more than one item */
	uint8_t *out, *in;
	size_t out_size, in_size, in_len;
	struct arena arena; /* for encoding and decoding */
};

struct local; /* local.c */

struct key_block; /* key.c */

struct mlkemclient {
	char path[CLIENT_MAX_PATH + 1];
	char name[WIRE_MAX_CLIENT_NAME + 1];
	enum mlkemclient_route route;
	bool require;
	uint32_t deadline_us, daemon_deadline_us;
	unsigned leases;
	bool server_uid_set;
	uid_t server_uid;

	pid_t pid; /* of the process that owns the connection and the keys */
	struct link link;
	struct breaker breaker;
	struct kdf kdf;
	struct local *local;
	struct key_block *key_blocks;
	struct mlkemclient_counts counts;
	uint64_t fallbacks_untold; /* since the last Hello */
	char message[256];
	struct job job;

	uint64_t (*clock)(void *arg); /* microseconds; tests move it */
	void *clock_arg;
};

/* client.c */
uint64_t client_now(const struct mlkemclient *client);
void client_check_process(struct mlkemclient *client); /* have we forked? */
void client_enter(struct mlkemclient *client); /* every call: process, message */
__attribute__((format(printf, 3, 4))) int client_fail(
    struct mlkemclient *client, int error, const char *format, ...);
must_check int alg_from_public(enum mlkemclient_alg alg, enum kem_alg *algp);
enum mlkemclient_alg alg_to_public(enum kem_alg alg);

/* errors.c */
int error_from_status(uint32_t wire_status);
int error_from_kem(enum kem_status status);
/* Whether another place (this process) may do what failed so. */
bool error_is_elsewhere(int error);

/* key.c: key objects on the heap, their secrets in locked blocks. */
struct mlkemclient_key {
	struct mlkemclient *owner;
	enum kem_alg alg;
	bool in_daemon;
	bool spent;
	pid_t pid;
	uint64_t generation;
	uint8_t handle[WIRE_HANDLE_BYTES];
	uint8_t *secret; /* local: secret_bytes, then share_bytes; in a key block */
};

struct mlkemclient_key *key_new(struct mlkemclient *client, enum kem_alg alg);
void key_free(struct mlkemclient_key *key); /* without telling the daemon */
must_check int key_need_secret(struct mlkemclient_key *key);
void key_spend(struct mlkemclient_key *key); /* wipes what is here */
bool key_is_live(const struct mlkemclient_key *key);
void key_blocks_free(struct mlkemclient *client);
void key_blocks_relock(struct mlkemclient *client);

/*
 * local.c: works every pending item of the job in this process, up to deadline_us (a
 * started group ends). Each gets its error.
 */
void local_run(struct mlkemclient *client, struct job *job, uint64_t deadline_us);
/* The share of a private key of the right length. 0, or a negative MLKEMCLIENT_E_... */
must_check int local_share_of(struct mlkemclient *client, enum kem_alg alg,
    const uint8_t *private_key, size_t private_key_len, uint8_t *share);
void local_free(struct mlkemclient *client);
void local_relock(struct mlkemclient *client);

/* route.c: works the job where it may be worked. Every item gets its error. */
void route_run(struct mlkemclient *client, struct job *job);

/* One question to the daemon. */
enum call_op { CALL_HELLO, CALL_PING, CALL_INFO, CALL_JOB, CALL_RELEASE };
struct call {
	enum call_op op;
	struct job *job;                   /* CALL_JOB: the items that are by_daemon */
	struct mlkemclient_info *info;     /* CALL_INFO: out */
	const struct mlkemclient_key *key; /* CALL_RELEASE */
	bool needs_key; /* a key of this connection: never asked on another */
	bool draining;  /* out: the daemon said so */
};

/*
 * exchange.c: asks and takes the answer, by deadline_us, connecting first if need be.
 * Returns 0 when the answer is in (items have their errors), or a negative
 * MLKEMCLIENT_E_...
 */
must_check int exchange_run(
    struct mlkemclient *client, struct call *call, uint64_t deadline_us);
void link_close(struct mlkemclient *client);

/*
 * message_encode.c, message_decode.c: the only ones that see protobuf. message_encode()
 * writes frame header and message into link.out and returns the length, or a negative
 * MLKEMCLIENT_E_... message_decode() takes the answer in: 0, a negative
 * MLKEMCLIENT_E_... (the daemon refused), or MESSAGE_E_LIE (the answer can't be right:
 * nothing of it was used).
 */
enum { MESSAGE_E_LIE = 1 };
must_check ssize_t message_encode(struct mlkemclient *client, const struct call *call,
    uint64_t id, uint64_t timeout_us);
must_check int message_decode(
    struct mlkemclient *client, struct call *call, const uint8_t *message, size_t len);

/*
 * transport.c: bytes. All of them end by deadline_us with MLKEMCLIENT_E_TIMEOUT, and
 * give LINK_E_LOST when the peer is gone.
 */
must_check int transport_connect(
    struct mlkemclient *client, uint64_t deadline_us, int *fdp);
must_check int transport_wait(
    struct mlkemclient *client, short events, uint64_t deadline_us, short *reventsp);
must_check int transport_send(
    struct mlkemclient *client, const uint8_t *data, size_t len, size_t *sentp);
must_check int transport_recv(struct mlkemclient *client, size_t *gotp);

#endif
