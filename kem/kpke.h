/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * kpke.h: K-PKE (FIPS 203 ch. 5) for a group of items, and the group itself: everything
 * that one call computes with lies in the caller's work behind a struct group, and is
 * wiped at once by group_fini(). K-PKE alone is not to be used (3.3); mlkem.c does.
 */
#ifndef MLKEMD_KPKE_H
#define MLKEMD_KPKE_H

#include "encode.h"
#include "mlkem.h"
#include "sample.h"

/* Table 2. */
struct mlkem_set {
	unsigned k;
	unsigned eta1; /* eta2 is 2 in all sets */
	enum compress du, dv;
};

struct group_item {
	const uint8_t *ek;    /* encrypt: 384k + 32 */
	const uint8_t *s;     /* decrypt: 384k */
	const uint8_t *ct;    /* decrypt, and what encrypt compares with */
	uint8_t *ct_out;      /* encrypt; NULL: compare with ct instead */
	uint8_t *ek_out;      /* keygen */
	uint8_t *secret_out;  /* keygen */
	const uint8_t *m;     /* encrypt: the message, 32 */
	const uint8_t *h;     /* H(ek), computed or given, 32 */
	uint64_t differs;     /* secret: not 0 if encrypt found another ciphertext */
	uint8_t seed[64];     /* G: rho || sigma, or K || r */
	uint8_t message[32];  /* decrypt */
	uint8_t hash[32];     /* H(ek) */
	uint8_t rejected[32]; /* J(z || c) */
};

struct group {
	struct sponge sponge;
	const struct backend *backend;
	const struct mlkem_set *set;
	unsigned n;
	struct group_item item[KEM_GROUP_MAX];
	struct matrix matrix;
	struct noise noise;
	struct stream_job *riding; /* keygen: H(ek), begun beside the matrix; or NULL */
	size_t ek_missing;         /* keygen: bytes of each ek_out still to come */
	uint8_t packed[352];       /* one polynomial of c', where it is only compared */
	struct poly *s, *e;        /* n * k: s^ or y^, and e or e1 */
	struct poly *e2;           /* n */
	struct poly
	    *ring; /* the matrix; before it s^ in decrypt, after it t^ in encrypt */
	struct poly *sum;       /* one */
	struct poly *mu;        /* one */
	struct mulcache *cache; /* n * k, of s */
	size_t used;            /* bytes of work */
};

/* n items of a set, in work of MLKEM_WORK_BYTES; the caller fills the items in. */
struct group *group_init(uint8_t *work, const struct backend *backend,
    const struct mlkem_set *set, size_t n);
void group_fini(struct group *group);

/*
 * Queue the matrices behind what the sponge has. rho is taken from seed for a new key,
 * else from ek, and the matrix transposed.
 */
void kpke_expand(struct group *group, bool new_key);

/* Alg. 13 from seed on: t^ and rho to ek_out, s^ to secret_out. */
void kpke_keygen(struct group *group);

/* Alg. 14 of ek, m and r (in seed), after kpke_expand(): to ct_out, or to differs. */
void kpke_encrypt(struct group *group);

/* Alg. 15 of s and ct: to message. Before kpke_expand(): it takes the room of the matrix. */
void kpke_decrypt(struct group *group);

#endif
