/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * kem.h: the only face of kem/: ML-KEM-512/768/1024 (FIPS 203) and the hybrid
 * X25519MLKEM768 (RFC 10024), for one item or for many.
 *
 * struct kem is immutable once opened and may be used by several threads; each
 * thread brings its own struct kem_scratch. Nothing here is global, nothing logs.
 * Callers own every buffer; an output of a failed item is all zero.
 */
#ifndef MLKEMD_KEM_H
#define MLKEMD_KEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define kem_must_check __attribute__((warn_unused_result))

enum kem_alg {
	KEM_ALG_MLKEM512,
	KEM_ALG_MLKEM768,
	KEM_ALG_MLKEM1024,
	KEM_ALG_X25519MLKEM768,
	KEM_N_ALGS,
};

/* Items that the kernels work on at once; the operations below take any count. */
#define KEM_GROUP_MAX 8

/* The largest of each size over all algorithms, in bytes. */
#define KEM_SHARE_MAX  1568
#define KEM_CT_MAX     1568
#define KEM_SHARED_MAX 64
#define KEM_SECRET_MAX 1600
#define KEM_DK_MAX     3168
#define KEM_SEED_MAX   96

/*
 * Sizes of one algorithm in bytes (FIPS 203 table 3; RFC 10024 section 4.1).
 * share:  the public share: ek, or ek || x25519
 * ct:     the ciphertext share: ct, or ct || x25519
 * shared: the shared secret: 32, or mlkem || x25519 = 64
 * secret: the compact private key kept by this project:
 *         ByteEncode12(s^) 384k || H(ek) 32 || z 32 [|| x25519 private 32];
 *         with its public share it is a whole private key
 * dk:     the expanded decapsulation key on the wire: dk, or dk || x25519 private
 * seed:   d || z (64), or d || z || x25519 private (96)
 */
struct kem_alg_info {
	const char *name; /* "ML-KEM-768", "X25519MLKEM768" */
	uint16_t share_bytes;
	uint16_t ct_bytes;
	uint16_t shared_bytes;
	uint16_t secret_bytes;
	uint16_t dk_bytes;
	uint16_t seed_bytes;
};

const struct kem_alg_info *kem_alg_info(enum kem_alg alg);

/*
 * kem_alg_parse() takes a name in any common spelling: "mlkem768", "ML-KEM-768",
 * "ML_KEM_768", "x25519mlkem768", "X25519-MLKEM-768". Returns 0, or -1 if unknown.
 */
kem_must_check int kem_alg_parse(const char *name, enum kem_alg *algp);

/* What happened to one item. An implicit rejection is KEM_OK (FIPS 203 6.3). */
enum kem_status {
	KEM_OK = 0,
	KEM_E_LENGTH,   /* a share, ciphertext or key of another length (7.2, 7.3) */
	KEM_E_ALG,      /* a key of one algorithm used with another */
	KEM_E_SHARE,    /* modulus check of the encapsulation key failed (7.2) */
	KEM_E_KEY,      /* hash check of the decapsulation key failed (7.3) */
	KEM_E_ZERO,     /* X25519 gave all zero (RFC 7748 6.1, RFC 10024 4.2) */
	KEM_E_INTERNAL, /* randomness, memory or a library failed: no result */
	KEM_N_STATUS,
};

/* What was wrong with an item, for kem_explain(). */
enum kem_part { KEM_PART_SHARE, KEM_PART_CT, KEM_PART_KEY };

/*
 * kem_explain() writes the sentence for one failed item: what is wrong and what is
 * allowed, e.g. "ciphertext share of 1088 bytes is of ML-KEM-768; X25519MLKEM768
 * takes 1120". len is the length that was given. Never a byte of any value.
 * Always NUL-terminates; size should be at least 160.
 */
void kem_explain(char *buf, size_t size, enum kem_status status, enum kem_alg alg,
    enum kem_part part, size_t len);

/* Negative returns: the whole call failed, every item has KEM_E_INTERNAL. */
enum {
	KEM_FAIL_RNG = -1,      /* the random generator failed */
	KEM_FAIL_OPENSSL = -2,  /* libcrypto failed (memory, missing algorithm) */
	KEM_FAIL_BACKEND = -3,  /* the backend asked for is unknown or can't run here */
	KEM_FAIL_SELFTEST = -4, /* a known answer did not come out */
};

const char *kem_strerror(int fail);

struct kem;

/* Work space of one call at a time; 64-byte aligned; wiped before a call returns. */
#define KEM_SCRATCH_BYTES (96 * 1024 - 64)
struct kem_scratch {
	_Alignas(64) uint8_t bytes[KEM_SCRATCH_BYTES];
};

/*
 * kem_open() chooses the backend (the best for this CPU; backend names one, NULL
 * leaves it to MLKEMD_BACKEND, read with secure_getenv, or to the CPU), makes its own
 * OSSL_LIB_CTX and fetches what it needs once. *kemp is owned by the caller.
 * Returns 0, or a negative KEM_FAIL_...
 */
kem_must_check int kem_open(struct kem **kemp, const char *backend);
struct kem *kem_free(struct kem *kem); /* accepts NULL, returns NULL */
const char *kem_backend_name(const struct kem *kem);
unsigned kem_backend_lanes(const struct kem *kem);
/* The names of this build's backends, the best first; NULL behind the last. */
const char *kem_backend_known(unsigned n);

/*
 * kem_selftest() runs known answers through the chosen backend: key generation,
 * encapsulation, decapsulation, rejection, X25519, hybrid. On failure *stepp names
 * the step ("keygen", "encaps", "decaps", "reject", "x25519", "hybrid").
 * Returns 0, or KEM_FAIL_SELFTEST.
 */
kem_must_check int kem_selftest(
    const struct kem *kem, struct kem_scratch *scratch, const char **stepp);

struct kem_shared {
	uint8_t bytes[KEM_SHARED_MAX];
};

/* An X25519 key pair (RFC 7748): the private key with its public half. */
struct kem_x25519 {
	uint8_t private_key[32];
	uint8_t public_key[32];
};

/*
 * A private key, by where its parts lie (they may stand in an expanded dk, or be the
 * compact secret and its public share). The caller keeps the parts alive.
 */
struct kem_private {
	enum kem_alg alg;
	const uint8_t *s;      /* ByteEncode12(s^), 384k */
	const uint8_t *ek;     /* 384k + 32 */
	const uint8_t *h;      /* H(ek), 32 */
	const uint8_t *z;      /* 32 */
	const uint8_t *x_priv; /* hybrid: 32, else NULL */
	const uint8_t *x_pub;  /* hybrid: 32; NULL if not known (it is not needed) */
	bool trusted;          /* made here or checked before: no hash check (7.3) */
};

/* View a compact secret with its share (both of the algorithm's size). Trusted. */
void kem_private_from_parts(struct kem_private *key, enum kem_alg alg,
    const uint8_t *secret, const uint8_t *share);

/*
 * View an expanded decapsulation key (dk_bytes long). Not trusted: the hash check is
 * made by the decapsulation that uses it. Returns KEM_OK or KEM_E_LENGTH.
 */
kem_must_check enum kem_status kem_private_from_dk(
    struct kem_private *key, enum kem_alg alg, const uint8_t *dk, size_t dk_len);

/* Write the expanded form (dk_bytes of alg) of a compact secret and its share. */
void kem_private_export(
    enum kem_alg alg, const uint8_t *secret, const uint8_t *share, uint8_t *dk);

/*
 * The algorithm a key, share or ciphertext of this length belongs to. Returns 0, or
 * -1 when no algorithm has that length. (64 bytes, a seed, fit every ML-KEM set: -1.)
 */
kem_must_check int kem_alg_of_length(
    enum kem_part part, size_t len, enum kem_alg *algp);

/* FIPS 203 7.2 on a public share: length and modulus (nothing for the X25519 half). */
kem_must_check enum kem_status kem_check_share(const struct kem *kem, enum kem_alg alg,
    const uint8_t *share, size_t share_len, struct kem_scratch *scratch);

/* FIPS 203 7.3 on an expanded dk: length and hash. */
kem_must_check enum kem_status kem_check_dk(const struct kem *kem, enum kem_alg alg,
    const uint8_t *dk, size_t dk_len, struct kem_scratch *scratch);

struct kem_keygen_item {
	const uint8_t *seed; /* seed_bytes of alg, or NULL: random (FIPS 203 Alg. 19) */
	uint8_t *share;      /* out: share_bytes */
	uint8_t *secret;     /* out: secret_bytes, the compact private key */
	enum kem_status status;
};

struct kem_encaps_item {
	const uint8_t *share;
	size_t share_len;
	const struct kem_x25519 *ephemeral; /* hybrid: used once; NULL: made here */
	uint8_t *ct;                        /* out: ct_bytes */
	struct kem_shared *shared;          /* out: shared_bytes, rest zero */
	enum kem_status status;
};

struct kem_decaps_item {
	const struct kem_private *key;
	const uint8_t *ct;
	size_t ct_len;
	struct kem_shared *shared; /* out: shared_bytes, rest zero */
	enum kem_status status;
	/*
	 * Which part the status speaks of is told by it: KEM_E_LENGTH the ciphertext,
	 * KEM_E_KEY and KEM_E_ALG the key, KEM_E_ZERO the X25519 result.
	 */
};

/*
 * The operations (FIPS 203 Alg. 19, 20, 21; RFC 10024 4.1-4.3). n may be any number;
 * the items are worked in groups of up to KEM_GROUP_MAX. Inputs are checked on every
 * call. Outputs may not overlap inputs or each other. The scratch is wiped.
 * Return 0 with every item's status set, or a negative KEM_FAIL_... with all outputs
 * zero and all statuses KEM_E_INTERNAL.
 */
kem_must_check int kem_keygen(const struct kem *kem, enum kem_alg alg,
    struct kem_keygen_item *items, size_t n, struct kem_scratch *scratch);
kem_must_check int kem_encaps(const struct kem *kem, enum kem_alg alg,
    struct kem_encaps_item *items, size_t n, struct kem_scratch *scratch);
kem_must_check int kem_decaps(const struct kem *kem, enum kem_alg alg,
    struct kem_decaps_item *items, size_t n, struct kem_scratch *scratch);

/*
 * Pairs made on the way. Where the backend works X25519 in lanes, a hybrid encapsulation
 * or decapsulation costs the same for one item and for eight: lanes that no item fills
 * make a fresh pair each (a scalar, times the base point u = 9). Other algorithms, and
 * backends without lanes, make none. How many lanes are left over is public.
 */
#define KEM_SPARE_MAX (KEM_GROUP_MAX - 1)

struct kem_spare {
	struct kem_x25519 *pairs; /* out: the caller's secret memory, wanted of them */
	size_t wanted;            /* at most so many; one call makes <= KEM_SPARE_MAX */
	size_t n;                 /* out: pairs made, from the first on; 0 on failure */
	size_t used;              /* out: lanes of X25519 that worked items */
	size_t idle;              /* out: lanes of X25519 that did nothing of use */
};

/*
 * kem_encaps() and kem_decaps() that also make pairs; spare may be NULL. A pair is good
 * whatever became of the items. Private keys are drawn in one block with what the
 * encapsulation draws; a decapsulation draws only if pairs are wanted and lanes are left.
 */
kem_must_check int kem_encaps_spare(const struct kem *kem, enum kem_alg alg,
    struct kem_encaps_item *items, size_t n, struct kem_spare *spare,
    struct kem_scratch *scratch);
kem_must_check int kem_decaps_spare(const struct kem *kem, enum kem_alg alg,
    struct kem_decaps_item *items, size_t n, struct kem_spare *spare,
    struct kem_scratch *scratch);

/* Lanes of X25519: how many items one call of the kernel works, 1 by libcrypto. */
unsigned kem_x25519_lanes(const struct kem *kem);

/*
 * kem_pairwise_check() encapsulates to a fresh pair and decapsulates with it (FIPS 203
 * 7.1, pair-wise consistency): secret and share as kem_keygen() wrote them.
 * Returns 0, KEM_E_KEY if the pair does not agree with itself, or a negative
 * KEM_FAIL_...
 */
kem_must_check int kem_pairwise_check(const struct kem *kem, enum kem_alg alg,
    const uint8_t *secret, const uint8_t *share, struct kem_scratch *scratch);

/* n fresh X25519 key pairs, for the ephemeral side of the hybrid. As above. */
kem_must_check int kem_x25519_keygen(const struct kem *kem, struct kem_x25519 *pairs,
    size_t n, struct kem_scratch *scratch);

enum kem_hash { KEM_HASH_SHA256, KEM_HASH_SHA384 };
#define KEM_HKDF_MAX(hash) (255u * ((hash) == KEM_HASH_SHA384 ? 48u : 32u))
#define KEM_HKDF_MAX_INFO  2048u /* what every OpenSSL 3 takes */

/*
 * HKDF (RFC 5869), extract and expand. ikm has at least a byte; salt and info may be
 * empty (NULL, 0), and info has at most KEM_HKDF_MAX_INFO bytes. out_len is 1 to
 * KEM_HKDF_MAX(hash). Returns 0, or a negative KEM_FAIL_... with out zero.
 */
kem_must_check int kem_hkdf(const struct kem *kem, enum kem_hash hash,
    const uint8_t *ikm, size_t ikm_len, const uint8_t *salt, size_t salt_len,
    const uint8_t *info, size_t info_len, uint8_t *out, size_t out_len);

/*
 * Random bytes from the one door of this project: OpenSSL's private DRBG of this
 * kem's own context, with 32 bytes of getrandom(2) mixed into each block.
 * Returns 0, or KEM_FAIL_RNG with out zero.
 */
kem_must_check int kem_random(const struct kem *kem, uint8_t *out, size_t len);

/* Overwrites memory in a way that the compiler may not leave out. NULL, 0 is fine. */
void kem_wipe(void *p, size_t len);

/* Compares without early exit. Returns 0 if equal, else 1. For secrets and ids. */
kem_must_check int kem_compare(const void *a, const void *b, size_t len);

#endif
