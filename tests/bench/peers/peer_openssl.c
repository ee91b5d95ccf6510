/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL with ML-KEM (3.5 and newer), as programs use it: EVP, with its randomness. Only
 * X25519 alone is measured by the functions below EVP, which is the faster way. encaps
 * and hybrid-server parse the share each time, as a server has to; encaps-parsed keeps
 * the parsed key, with the matrix that OpenSSL keeps in it. Private keys stay parsed.
 */
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "peer.h"

#define SHAKE128_RATE 168
#define KECCAK_BLOCKS 64

int ossl_x25519(uint8_t out_shared_key[32], const uint8_t private_key[32],
    const uint8_t peer_public_value[32]);
void ossl_x25519_public_from_private(
    uint8_t out_public_value[32], const uint8_t private_key[32]);

struct set {
	const char *name, *algorithm;
	EVP_PKEY_CTX *generator;
	EVP_PKEY *key[PEER_KEYS];
	EVP_PKEY_CTX *encapsulator[PEER_KEYS], *decapsulator[PEER_KEYS];
	uint8_t share[PEER_KEYS][PEER_SHARE_MAX], ct[PEER_KEYS][PEER_SHARE_MAX];
	size_t share_len, ct_len;
	unsigned at;
};

static struct set sets[] = {
    {.name = "512", .algorithm = "ML-KEM-512"},
    {.name = "768", .algorithm = "ML-KEM-768"},
    {.name = "1024", .algorithm = "ML-KEM-1024"},
    {.name = "x25519mlkem768", .algorithm = "X25519MLKEM768"},
};
#define N_SETS (sizeof sets / sizeof sets[0])

static uint8_t shared[64];
static uint8_t x_private[PEER_KEYS][32], x_public[PEER_KEYS][32];
static EVP_MD *shake128;

static unsigned
next(struct set *set)
{
	return set->at = (set->at + 1) % PEER_KEYS;
}

/* 1 when done, as all of EVP. */
static int
encapsulate(
    EVP_PKEY *key, uint8_t *ct, size_t *ct_len, uint8_t *secret, size_t *secret_len)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
	int ok = ctx && EVP_PKEY_encapsulate_init(ctx, NULL) == 1 &&
		 EVP_PKEY_encapsulate(ctx, ct, ct_len, secret, secret_len) == 1;

	EVP_PKEY_CTX_free(ctx);
	return ok;
}

static int
parse_and_encapsulate(const struct set *set, const uint8_t *share, size_t share_len,
    uint8_t *ct, size_t *ct_len, uint8_t *secret, size_t *secret_len)
{
	EVP_PKEY *key = EVP_PKEY_new_raw_public_key_ex(
	    NULL, set->algorithm, NULL, share, share_len);
	int ok = key && encapsulate(key, ct, ct_len, secret, secret_len);

	EVP_PKEY_free(key);
	return ok;
}

static int
decapsulate(EVP_PKEY *key, const uint8_t *ct, size_t ct_len)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
	size_t shared_len = sizeof shared;
	int ok = ctx && EVP_PKEY_decapsulate_init(ctx, NULL) == 1 &&
		 EVP_PKEY_decapsulate(ctx, shared, &shared_len, ct, ct_len) == 1;

	EVP_PKEY_CTX_free(ctx);
	return ok;
}

static int
run_keygen(void *ctx, uint64_t n)
{
	struct set *set = ctx;
	int ok = 1;

	for (uint64_t i = 0; ok && i < n; i++) {
		EVP_PKEY *key = NULL;

		ok = EVP_PKEY_generate(set->generator, &key) == 1;
		EVP_PKEY_free(key);
	}
	return ok ? 0 : -1;
}

static int
run_encaps(void *ctx, uint64_t n)
{
	struct set *set = ctx;
	int ok = 1;

	for (uint64_t i = 0; ok && i < n; i++) {
		unsigned key = next(set);
		size_t ct_len = sizeof set->ct[0], shared_len = sizeof shared;

		ok = parse_and_encapsulate(set, set->share[key], set->share_len,
		    set->ct[key], &ct_len, shared, &shared_len);
	}
	return ok ? 0 : -1;
}

static int
run_encaps_parsed(void *ctx, uint64_t n)
{
	struct set *set = ctx;
	int ok = 1;

	for (uint64_t i = 0; ok && i < n; i++) {
		unsigned key = next(set);
		size_t ct_len = sizeof set->ct[0], shared_len = sizeof shared;

		ok = EVP_PKEY_encapsulate(set->encapsulator[key], set->ct[key], &ct_len,
			 shared, &shared_len) == 1;
	}
	return ok ? 0 : -1;
}

static int
run_decaps(void *ctx, uint64_t n)
{
	struct set *set = ctx;
	int ok = 1;

	for (uint64_t i = 0; ok && i < n; i++) {
		unsigned key = next(set);
		size_t shared_len = sizeof shared;

		ok = EVP_PKEY_decapsulate(set->decapsulator[key], shared, &shared_len,
			 set->ct[key], set->ct_len) == 1;
	}
	return ok ? 0 : -1;
}

/* A fresh pair, its share, and a ciphertext opened with it: another's, which costs the
 * same (implicit rejection). */
static int
run_client(void *ctx, uint64_t n)
{
	struct set *set = ctx;
	uint8_t share[PEER_SHARE_MAX];
	int ok = 1;

	for (uint64_t i = 0; ok && i < n; i++) {
		size_t share_len = sizeof share;
		EVP_PKEY *key = NULL;

		ok = EVP_PKEY_generate(set->generator, &key) == 1 &&
		     EVP_PKEY_get_raw_public_key(key, share, &share_len) == 1 &&
		     decapsulate(key, set->ct[next(set)], set->ct_len);
		EVP_PKEY_free(key);
	}
	return ok ? 0 : -1;
}

static int
run_base(void *ctx, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		ossl_x25519_public_from_private(
		    x_public[i % PEER_KEYS], x_private[i % PEER_KEYS]);
	return 0;
}

static int
run_derive(void *ctx, uint64_t n)
{
	int ok = 1;

	for (uint64_t i = 0; ok && i < n; i++)
		ok = ossl_x25519(
		    shared, x_private[i % PEER_KEYS], x_public[(i + 1) % PEER_KEYS]);
	return ok ? 0 : -1;
}

/* A call is a permutation: blocks of a long input, 64 at a time. */
static int
run_keccak(void *ctx, uint64_t n)
{
	static const uint8_t blocks[KECCAK_BLOCKS * SHAKE128_RATE];
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	int ok = md && EVP_DigestInit_ex2(md, shake128, NULL) == 1;

	while (ok && n > 0) {
		uint64_t n_blocks = n < KECCAK_BLOCKS ? n : KECCAK_BLOCKS;

		ok = EVP_DigestUpdate(md, blocks, n_blocks * SHAKE128_RATE) == 1;
		n -= n_blocks;
	}
	EVP_MD_CTX_free(md);
	return ok ? 0 : -1;
}

static const struct peer_op ops[] = {
    {"keygen", "512", run_keygen, &sets[0]},
    {"encaps", "512", run_encaps, &sets[0]},
    {"encaps-parsed", "512", run_encaps_parsed, &sets[0]},
    {"decaps", "512", run_decaps, &sets[0]},
    {"keygen", "768", run_keygen, &sets[1]},
    {"encaps", "768", run_encaps, &sets[1]},
    {"encaps-parsed", "768", run_encaps_parsed, &sets[1]},
    {"decaps", "768", run_decaps, &sets[1]},
    {"keygen", "1024", run_keygen, &sets[2]},
    {"encaps", "1024", run_encaps, &sets[2]},
    {"encaps-parsed", "1024", run_encaps_parsed, &sets[2]},
    {"decaps", "1024", run_decaps, &sets[2]},
    {"hybrid-keygen", "768", run_keygen, &sets[3]},
    {"hybrid-server", "768", run_encaps, &sets[3]},
    {"hybrid-decaps", "768", run_decaps, &sets[3]},
    {"hybrid-client", "768", run_client, &sets[3]},
    {"x25519-base", "-", run_base, NULL},
    {"x25519-derive", "-", run_derive, NULL},
    {"keccak", "-", run_keccak, NULL},
};

static int
check(const char *name, const uint8_t *share, size_t share_len, uint8_t *ct,
    size_t *ct_len, uint8_t *secret, size_t *secret_len)
{
	for (size_t i = 0; i < N_SETS; i++) {
		if (strcmp(sets[i].name, name) == 0)
			return parse_and_encapsulate(&sets[i], share, share_len, ct,
				   ct_len, secret, secret_len)
				   ? 0
				   : -1;
	}
	return -1;
}

static void
set_init(struct set *set)
{
	set->generator = EVP_PKEY_CTX_new_from_name(NULL, set->algorithm, NULL);
	peer_need(set->generator && EVP_PKEY_keygen_init(set->generator) == 1,
	    set->algorithm);
	for (unsigned i = 0; i < PEER_KEYS; i++) {
		size_t shared_len = sizeof shared;
		int ok = EVP_PKEY_generate(set->generator, &set->key[i]) == 1;

		set->share_len = sizeof set->share[i];
		set->ct_len = sizeof set->ct[i];
		ok = ok &&
		     EVP_PKEY_get_raw_public_key(
			 set->key[i], set->share[i], &set->share_len) == 1 &&
		     encapsulate(
			 set->key[i], set->ct[i], &set->ct_len, shared, &shared_len);
		set->encapsulator[i] =
		    EVP_PKEY_CTX_new_from_pkey(NULL, set->key[i], NULL);
		set->decapsulator[i] =
		    EVP_PKEY_CTX_new_from_pkey(NULL, set->key[i], NULL);
		ok = ok && set->encapsulator[i] && set->decapsulator[i] &&
		     EVP_PKEY_encapsulate_init(set->encapsulator[i], NULL) == 1 &&
		     EVP_PKEY_decapsulate_init(set->decapsulator[i], NULL) == 1;
		peer_need(ok, set->algorithm);
	}
}

int
main(void)
{
	struct peer peer = {"openssl", "", ops, sizeof ops / sizeof ops[0], check};

	strncpy(
	    peer.version, OpenSSL_version(OPENSSL_VERSION), sizeof peer.version - 1);
	shake128 = EVP_MD_fetch(NULL, "SHAKE128", NULL);
	peer_need(shake128 != NULL, "SHAKE128");
	for (size_t i = 0; i < N_SETS; i++)
		set_init(&sets[i]);
	peer_fill((uint8_t *)x_private, sizeof x_private);
	run_base(NULL, PEER_KEYS);
	return peer_serve(&peer);
}
