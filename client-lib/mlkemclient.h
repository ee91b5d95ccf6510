/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * mlkemclient.h: key exchange through mlkemd, or by the same code in this process.
 *
 * A struct mlkemclient is a process's way to the daemon. It starts no thread, sets no
 * signal handler, registers no atexit, prints nothing, raises no SIGPIPE and keeps no
 * global but each thread's last message. It connects at the first call that needs it
 * and again after the daemon was restarted.
 *
 * Calls of several threads on one handle may overlap: they share one connection, and
 * work in this process at the same time. A key is used by one thread at a time, and
 * mlkemclient_free() by the last. A child after fork() has a handle that has done
 * nothing yet, whatever other threads were doing at that moment: its own connection,
 * counts and leases. Calls use at most 24 KiB of stack, so that they may be made on a
 * fibre.
 *
 * All calls are synchronous and end within their deadline, which runs from the start of
 * the call, connecting included; what falls back is done even if that takes longer.
 * Buffers are the caller's; sizes are in bytes and exact. On an error every output is
 * all zero. Secrets that you no longer need are yours to wipe: mlkemclient_wipe().
 *
 * Where a call is worked. On route daemon an operation that starts something (key
 * generation, encapsulation, decapsulation with a private key of yours) is asked of the
 * daemon, which has daemon_deadline_us; if it can't, this process does it, whatever is
 * left of the deadline. With require there is no such fallback and the daemon has the
 * whole deadline. A key that lives in the daemon can be used there only. A daemon that
 * did not answer in time is left alone for 1 s, then 2, 4 ... 30 s, and then tried
 * again by one call; meanwhile calls go local, or fail with MLKEMCLIENT_E_UNAVAILABLE
 * if require. One that drains or refused us is left alone for a second
 * (MLKEMCLIENT_E_DRAINING, MLKEMCLIENT_E_DENIED ... if require).
 *
 * Memory that holds secrets is locked as far as RLIMIT_MEMLOCK allows (32 KiB for the
 * handle, 64 KiB for the connection, 600 KiB once a batch or leases were used, 130 KiB
 * for each thread that works here at the same time, up to 16, and 50 KiB for 16 local
 * keys), kept out of core dumps, and empty in a child.
 */
#ifndef MLKEMCLIENT_H
#define MLKEMCLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define MLKEMCLIENT_DEFAULT_SOCKET "/run/mlkemd/mlkemd.sock"
#define MLKEMCLIENT_MAX_ITEMS      64 /* items of one batch call */

/* Algorithms, by their TLS Supported Groups code points. */
enum mlkemclient_alg {
	MLKEMCLIENT_ML_KEM_512 = 0x0200,     /* FIPS 203 */
	MLKEMCLIENT_ML_KEM_768 = 0x0201,     /* FIPS 203 */
	MLKEMCLIENT_ML_KEM_1024 = 0x0202,    /* FIPS 203 */
	MLKEMCLIENT_X25519MLKEM768 = 0x11ec, /* RFC 10024 */
};

/* The largest of each size over all algorithms. */
#define MLKEMCLIENT_MAX_SHARE       1568
#define MLKEMCLIENT_MAX_CIPHERTEXT  1568
#define MLKEMCLIENT_MAX_SECRET      64
#define MLKEMCLIENT_MAX_PRIVATE_KEY 3168

/* Sizes of one algorithm, in bytes. */
struct mlkemclient_sizes {
	size_t share;       /* public share: ek [|| x25519] */
	size_t ciphertext;  /* ciphertext share: ct [|| x25519] */
	size_t secret;      /* 32; hybrid: mlkem || x25519, 64 */
	size_t private_key; /* expanded: dk [|| x25519 private] */
	size_t seed;        /* d || z [|| x25519 private] */
};

/*
 * Errors. The number is stable. Every function that returns int returns 0 or one of
 * these; mlkemclient_strerror() has a sentence for each, mlkemclient_last_message()
 * the details of the last failed call.
 */
enum mlkemclient_error {
	MLKEMCLIENT_E_INVALID = -1,     /* an argument is out of its range */
	MLKEMCLIENT_E_LENGTH = -2,      /* share, ciphertext or key of another length */
	MLKEMCLIENT_E_BAD_SHARE = -3,   /* FIPS 203 7.2: modulus check */
	MLKEMCLIENT_E_BAD_KEY = -4,     /* FIPS 203 7.3: hash check */
	MLKEMCLIENT_E_ALGORITHM = -5,   /* key of one algorithm used with another */
	MLKEMCLIENT_E_ZERO_X25519 = -6, /* RFC 10024 4.2: all-zero result */
	MLKEMCLIENT_E_KEY_GONE = -7,  /* used, expired, released, or its daemon ended */
	MLKEMCLIENT_E_DENIED = -8,    /* the daemon does not serve this user */
	MLKEMCLIENT_E_NO_EXPORT = -9, /* export is off in the daemon's configuration */
	MLKEMCLIENT_E_TIMEOUT = -10,  /* the deadline passed */
	MLKEMCLIENT_E_UNAVAILABLE = -11, /* no daemon, or the breaker is open */
	MLKEMCLIENT_E_EXHAUSTED =
	    -12, /* the daemon is at a limit: later, or elsewhere */
	MLKEMCLIENT_E_DRAINING = -13, /* the daemon takes no new operations */
	MLKEMCLIENT_E_IMPOSTOR = -14, /* the socket's owner is not one to trust */
	MLKEMCLIENT_E_PROTOCOL = -15, /* the peer does not speak this protocol */
	MLKEMCLIENT_E_UNSUPPORTED =
	    -16,                      /* version or algorithm that the daemon lacks */
	MLKEMCLIENT_E_INTERNAL = -17, /* randomness, memory or a library failed */
};

enum mlkemclient_route {
	MLKEMCLIENT_ROUTE_AUTO = 0,   /* wherever it costs less, as measured */
	MLKEMCLIENT_ROUTE_DAEMON = 1, /* through the daemon; locally where it can't */
	MLKEMCLIENT_ROUTE_LOCAL = 2,  /* always in this process */
};

/*
 * How to reach the daemon. Zero-initialise it: every zero field means its default.
 * New fields are only added at the end; size is sizeof(struct mlkemclient_options) and
 * must be set.
 */
struct mlkemclient_options {
	size_t size;
	const char *socket_path; /* default MLKEMCLIENT_DEFAULT_SOCKET; copied; at most
				      107 bytes */
	const char *client_name; /* for the daemon's log; default the program's name */
	enum mlkemclient_route route;
	bool require;         /* no local fallback; auto is then daemon */
	uint32_t deadline_us; /* of each call; default 1 000 000 */
	bool server_uid_set;  /* trust server_uid beside root, mlkemd, own uid */
	uid_t server_uid;
	uint32_t daemon_deadline_us; /* what the daemon has of it, before this process
					does the work; default half of deadline_us */
	unsigned leases; /* key pairs kept ready from the daemon for ML-KEM-768 and for
			    X25519MLKEM768 each, once asked for: 0 (none) to 64 */
};

#define MLKEMCLIENT_MAX_LEASES 64

struct mlkemclient;
struct mlkemclient_key;

/*
 * mlkemclient_new() makes a handle; opts may be NULL. Nothing is connected yet.
 * *clientp is yours, to be given to mlkemclient_free(). Returns 0, or a negative
 * MLKEMCLIENT_E_...
 */
int mlkemclient_new(
    struct mlkemclient **clientp, const struct mlkemclient_options *opts);

/* Frees it and wipes what it held; its keys must be freed before. NULL is fine. */
void mlkemclient_free(struct mlkemclient *client);

/* The sizes of an algorithm. Returns 0, or MLKEMCLIENT_E_UNSUPPORTED. */
int mlkemclient_get_sizes(enum mlkemclient_alg alg, struct mlkemclient_sizes *sizes);

/* "X25519MLKEM768", or NULL if unknown. Static. */
const char *mlkemclient_alg_name(enum mlkemclient_alg alg);

/*
 * Takes any common spelling ("mlkem768", "ML-KEM-768", "ML_KEM_768"). Returns 0, or
 * MLKEMCLIENT_E_UNSUPPORTED.
 */
int mlkemclient_alg_parse(const char *name, enum mlkemclient_alg *algp);

/* One sentence for an error number. Static; never NULL. */
const char *mlkemclient_strerror(int error);

/*
 * What went wrong in the last failed call of this handle in this thread; "" if none
 * did. Valid until the thread's next call.
 */
const char *mlkemclient_last_message(const struct mlkemclient *client);

/* The same, copied: cut to size - 1 bytes and always ended by a NUL. */
void mlkemclient_copy_message(const struct mlkemclient *client, char *buf, size_t size);

/*
 * mlkemclient_keygen() makes a key pair (FIPS 203 Alg. 19; RFC 10024 4.1): the public
 * share is written to share (share_len = sizes.share), *keyp is yours, to be used once
 * and freed. On route daemon the private key stays in the daemon, bound to this
 * handle's connection, for about a minute. Falls back to this process unless require.
 * Returns 0, or a negative MLKEMCLIENT_E_...
 */
int mlkemclient_keygen(struct mlkemclient *client, enum mlkemclient_alg alg,
    uint8_t *share, size_t share_len, struct mlkemclient_key **keyp);

/*
 * mlkemclient_encaps() makes a secret for the owner of share (FIPS 203 Alg. 20; RFC
 * 10024 4.2): ciphertext_len = sizes.ciphertext, secret_len = sizes.secret. The share
 * is checked (7.2). Falls back to this process unless require. Returns 0, or a negative
 * MLKEMCLIENT_E_...
 */
int mlkemclient_encaps(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *share, size_t share_len, uint8_t *ciphertext, size_t ciphertext_len,
    uint8_t *secret, size_t secret_len);

/*
 * mlkemclient_decaps() gives the secret of a ciphertext share (FIPS 203 Alg. 21; RFC
 * 10024 4.3). A wrong ciphertext of the right length is not an error: the secret is
 * then another (implicit rejection). The key is spent by its first use, whatever comes
 * out; a refused length leaves it. After MLKEMCLIENT_E_TIMEOUT it may be tried again:
 * if the daemon had used it meanwhile the answer is MLKEMCLIENT_E_KEY_GONE. Where the
 * key lives in the daemon there is no fallback and no second connection; a key made
 * before fork() is gone in the child. Returns 0, or a negative MLKEMCLIENT_E_...
 */
int mlkemclient_decaps(struct mlkemclient *client, struct mlkemclient_key *key,
    const uint8_t *ciphertext, size_t ciphertext_len, uint8_t *secret,
    size_t secret_len);

/*
 * Frees a key; a live one in the daemon is released, by a message whose answer nobody
 * waits for. client is the handle that made it. NULL is fine.
 */
void mlkemclient_key_free(struct mlkemclient *client, struct mlkemclient_key *key);

enum mlkemclient_alg mlkemclient_key_alg(const struct mlkemclient_key *key);

/* Whether the private key lives in the daemon (else in this process). */
bool mlkemclient_key_in_daemon(const struct mlkemclient_key *key);

/*
 * mlkemclient_keygen_export() is mlkemclient_keygen() for a private key that leaves the
 * daemon: private_key (private_key_len = sizes.private_key) gets the expanded form. The
 * daemon's configuration has to allow it (MLKEMCLIENT_E_NO_EXPORT). Falls back to this
 * process unless require, but not where the daemon forbids it. Returns 0, or a negative
 * MLKEMCLIENT_E_...
 */
int mlkemclient_keygen_export(struct mlkemclient *client, enum mlkemclient_alg alg,
    uint8_t *share, size_t share_len, uint8_t *private_key, size_t private_key_len);

/*
 * mlkemclient_decaps_with() decapsulates with a private key of your own, expanded or
 * seed (told apart by length; an expanded one is checked by FIPS 203 7.3). Not
 * one-time. Falls back to this process unless require. Returns 0, or a negative
 * MLKEMCLIENT_E_...
 */
int mlkemclient_decaps_with(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *private_key, size_t private_key_len, const uint8_t *ciphertext,
    size_t ciphertext_len, uint8_t *secret, size_t secret_len);

/*
 * mlkemclient_share_of() gives the public share of a private key: of an expanded one,
 * after the check of FIPS 203 7.3, or of a seed. Always computed in this process. share
 * has share_len = sizes.share. Returns 0, or a negative MLKEMCLIENT_E_...
 */
int mlkemclient_share_of(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *private_key, size_t private_key_len, uint8_t *share,
    size_t share_len);

/*
 * mlkemclient_expand_seed() gives the expanded private key (FIPS 203 Alg. 16) of a seed:
 * seed_len = sizes.seed, private_key_len = sizes.private_key. Always computed in this
 * process. Returns 0, or a negative MLKEMCLIENT_E_...
 */
int mlkemclient_expand_seed(struct mlkemclient *client, enum mlkemclient_alg alg,
    const uint8_t *seed, size_t seed_len, uint8_t *private_key, size_t private_key_len);

/*
 * Batch forms: 1 to MLKEMCLIENT_MAX_ITEMS items of one algorithm in one frame. Each
 * item gets its own error (0 or negative MLKEMCLIENT_E_...); a bad one never touches
 * its neighbours. Returns 0 when every item has its error set (some may have failed),
 * or a negative MLKEMCLIENT_E_... with every item's error the same and no result in any
 * output. With a kdf, each secret has the kdf's length.
 */
struct mlkemclient_keygen_item {
	uint8_t *share;              /* out: sizes.share */
	struct mlkemclient_key *key; /* out: yours */
	int error;
};
int mlkemclient_keygen_batch(struct mlkemclient *client, enum mlkemclient_alg alg,
    struct mlkemclient_keygen_item *items, size_t n_items);

struct mlkemclient_encaps_item {
	const uint8_t *share;
	size_t share_len;
	uint8_t *ciphertext; /* out: sizes.ciphertext */
	uint8_t *secret;     /* out: sizes.secret */
	int error;
};
int mlkemclient_encaps_batch(struct mlkemclient *client, enum mlkemclient_alg alg,
    struct mlkemclient_encaps_item *items, size_t n_items);

struct mlkemclient_decaps_item {
	struct mlkemclient_key *key; /* all of one algorithm */
	const uint8_t *ciphertext;
	size_t ciphertext_len;
	uint8_t *secret; /* out: sizes.secret */
	int error;
};
int mlkemclient_decaps_batch(struct mlkemclient *client, enum mlkemclient_alg alg,
    struct mlkemclient_decaps_item *items, size_t n_items);

/*
 * HKDF (RFC 5869) applied to the secret of the next operations of this handle, in the
 * daemon or here alike: secret_len is then length. hash 256 or 384; 0 turns it off.
 * salt and info are copied (at most 1024 bytes each). Returns 0, or a negative
 * MLKEMCLIENT_E_...
 */
int mlkemclient_set_kdf(struct mlkemclient *client, unsigned hash, const uint8_t *salt,
    size_t salt_len, const uint8_t *info, size_t info_len, uint32_t length);

/*
 * One round trip to the daemon, even if calls leave it alone for now; never falls back.
 * Returns 0, or a negative MLKEMCLIENT_E_...
 */
int mlkemclient_ping(struct mlkemclient *client);

struct mlkemclient_info {
	char server_version[32];
	char backend[32];
	char secret_memory[16]; /* "memfd_secret", "mlock", "off" */
	unsigned lanes;
	unsigned shards, shard;
	uint64_t connection; /* the daemon's number for this connection */
	uint64_t uptime_s;
	unsigned pool_hybrid, pool_mlkem768, pool_x25519;
	bool export_allowed;
	unsigned max_items, max_handles;
	uint32_t handle_lifetime_ms;
	unsigned batch_fill_milli; /* recent mean items in a kernel group, x 1000 */
	unsigned service_us;
	bool draining;
};

/*
 * Asks the daemon about itself, as mlkemclient_ping() does. Returns 0, or a negative
 * MLKEMCLIENT_E_...
 */
int mlkemclient_get_info(struct mlkemclient *client, struct mlkemclient_info *info);

/* What this handle has done since it was made. */
struct mlkemclient_counts {
	uint64_t by_daemon; /* operations (items) */
	uint64_t by_local;  /* operations computed here, fallbacks included */
	uint64_t fallbacks;
	uint64_t timeouts;
	uint64_t connects;
	uint64_t by_lease;       /* keys given out of the leases; in by_daemon too */
	uint64_t leases_lost;    /* of these: gone, with their daemon, when used */
	uint64_t leases_dropped; /* never given out: too old, or their daemon went */
	uint64_t route_probes;   /* items sent where they cost more, to measure it */
	uint64_t shared_daemon;  /* items that route auto sent to the daemon */
};
void mlkemclient_get_counts(
    const struct mlkemclient *client, struct mlkemclient_counts *counts);

/* Overwrites memory in a way that the compiler may not leave out. */
void mlkemclient_wipe(void *p, size_t len);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
