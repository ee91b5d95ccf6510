/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS-LC, by the functions behind its EVP interface: no objects are made and no
 * randomness is drawn in what is measured. It has no X25519MLKEM768 outside of its TLS;
 * the hybrid rows are its two halves, one after the other.
 */
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/curve25519.h>

#include "peer.h"

/* They return 0 when done. */
#define FUNCTIONS(set)                                                             \
 int ml_kem_##set##_keypair_deterministic(uint8_t *public_key, size_t *public_len, \
     uint8_t *secret_key, size_t *secret_len, const uint8_t *seed);                \
 int ml_kem_##set##_encapsulate_deterministic(uint8_t *ciphertext,                 \
     size_t *ciphertext_len, uint8_t *shared_secret, size_t *shared_secret_len,    \
     const uint8_t *public_key, const uint8_t *seed);                              \
 int ml_kem_##set##_decapsulate(uint8_t *shared_secret, size_t *shared_secret_len, \
     const uint8_t *ciphertext, const uint8_t *secret_key);
FUNCTIONS(512)
FUNCTIONS(768)
FUNCTIONS(1024)

struct set {
	const char *name;
	size_t ek_bytes, dk_bytes, ct_bytes;
	int (*keygen)(uint8_t *, size_t *, uint8_t *, size_t *, const uint8_t *);
	int (*encaps)(
	    uint8_t *, size_t *, uint8_t *, size_t *, const uint8_t *, const uint8_t *);
	int (*decaps)(uint8_t *, size_t *, const uint8_t *, const uint8_t *);
	unsigned at;
	uint8_t ek[PEER_KEYS][1568], dk[PEER_KEYS][3168], ct[PEER_KEYS][1568];
};

#define SET(set, ek, dk, ct)                                    \
 {                                                              \
  .name = #set, .ek_bytes = ek, .dk_bytes = dk, .ct_bytes = ct, \
  .keygen = ml_kem_##set##_keypair_deterministic,               \
  .encaps = ml_kem_##set##_encapsulate_deterministic,           \
  .decaps = ml_kem_##set##_decapsulate,                         \
 }
static struct set sets[] = {
    SET(512, 800, 1632, 768),
    SET(768, 1184, 2400, 1088),
    SET(1024, 1568, 3168, 1568),
};
#define N_SETS (sizeof sets / sizeof sets[0])

static uint8_t seed[PEER_KEYS][64], m[PEER_KEYS][32], shared[32];
static uint8_t x_private[PEER_KEYS][32], x_public[PEER_KEYS][32];

static unsigned
next(struct set *set)
{
	return set->at = (set->at + 1) % PEER_KEYS;
}

static int
keygen_one(struct set *set, unsigned key)
{
	size_t ek_len = set->ek_bytes, dk_len = set->dk_bytes;

	return set->keygen(set->ek[key], &ek_len, set->dk[key], &dk_len, seed[key]);
}

static int
encaps_one(struct set *set, unsigned key)
{
	size_t ct_len = set->ct_bytes, shared_len = sizeof shared;

	return set->encaps(
	    set->ct[key], &ct_len, shared, &shared_len, set->ek[key], m[key]);
}

static int
decaps_one(struct set *set, unsigned key)
{
	size_t shared_len = sizeof shared;

	return set->decaps(shared, &shared_len, set->ct[key], set->dk[key]);
}

static int
derive_one(unsigned key)
{
	return X25519(shared, x_private[key], x_public[(key + 1) % PEER_KEYS]) == 1
		   ? 0
		   : -1;
}

#define RUN(name, call)                       \
 static int run_##name(void *ctx, uint64_t n) \
 {                                            \
  struct set *set = ctx;                      \
  int r = 0;                                  \
  for (uint64_t i = 0; i < n; i++) {          \
   unsigned key = next(set);                  \
   call;                                      \
  }                                           \
  return r;                                   \
 }
RUN(keygen, r |= keygen_one(set, key))
RUN(encaps, r |= encaps_one(set, key))
RUN(decaps, r |= decaps_one(set, key))
RUN(base, X25519_public_from_private(x_public[key], x_private[key]))
RUN(derive, r |= derive_one(key))
RUN(server, X25519_public_from_private(x_public[key], x_private[key]);
    r |= derive_one(key) | encaps_one(set, key))
RUN(client, X25519_public_from_private(x_public[key], x_private[key]);
    r |= keygen_one(set, key) | derive_one(key) | decaps_one(set, key))

static const struct peer_op ops[] = {
    {"keygen", "512", run_keygen, &sets[0]},
    {"encaps", "512", run_encaps, &sets[0]},
    {"decaps", "512", run_decaps, &sets[0]},
    {"keygen", "768", run_keygen, &sets[1]},
    {"encaps", "768", run_encaps, &sets[1]},
    {"decaps", "768", run_decaps, &sets[1]},
    {"keygen", "1024", run_keygen, &sets[2]},
    {"encaps", "1024", run_encaps, &sets[2]},
    {"decaps", "1024", run_decaps, &sets[2]},
    {"x25519-base", "-", run_base, &sets[1]},
    {"x25519-derive", "-", run_derive, &sets[1]},
    {"hybrid-client", "768", run_client, &sets[1]},
    {"hybrid-server", "768", run_server, &sets[1]},
};

static int
check(const char *name, const uint8_t *share, size_t share_len, uint8_t *ct,
    size_t *ct_len, uint8_t *secret, size_t *secret_len)
{
	int is_hybrid = strcmp(name, "x25519mlkem768") == 0;
	size_t kem_len = *ct_len, kem_shared_len = 32;
	struct set *set = NULL;

	for (size_t i = 0; i < N_SETS; i++) {
		if (strcmp(sets[i].name, is_hybrid ? "768" : name) == 0)
			set = &sets[i];
	}
	if (!set || share_len != set->ek_bytes + (is_hybrid ? 32 : 0))
		return -1;
	if (set->encaps(ct, &kem_len, secret, &kem_shared_len, share, m[0]) != 0)
		return -1;
	*ct_len = kem_len;
	*secret_len = 32;
	if (!is_hybrid)
		return 0;
	X25519_public_from_private(ct + kem_len, x_private[0]);
	*ct_len += 32;
	*secret_len += 32;
	return X25519(secret + 32, x_private[0], share + set->ek_bytes) == 1 ? 0 : -1;
}

int
main(void)
{
	struct peer peer = {"aws-lc", "", ops, sizeof ops / sizeof ops[0], check};

	snprintf(peer.version, sizeof peer.version, "AWS-LC %s",
	    AWSLC_VERSION_NUMBER_STRING);
	peer_fill((uint8_t *)seed, sizeof seed);
	peer_fill((uint8_t *)m, sizeof m);
	peer_fill((uint8_t *)x_private, sizeof x_private);
	for (size_t i = 0; i < N_SETS; i++) {
		peer_need(run_keygen(&sets[i], PEER_KEYS) == 0, "key generation");
		peer_need(run_encaps(&sets[i], PEER_KEYS) == 0, "encapsulation");
	}
	run_base(&sets[1], PEER_KEYS);
	return peer_serve(&peer);
}
