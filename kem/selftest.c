/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Known answers for the chosen backend, run at each start. The inputs are values of the
 * standards' own tests: seed and m of the first known answer test of the round 3
 * submission (also in Wycheproof's ML-KEM files), Alice and Bob of RFC 7748 6.1. The
 * answers are the first 16 bytes of SHA-256 over the outputs, taken from those files and
 * not from this code; a rejected ciphertext's is SHAKE256(z || ct) (FIPS 203 Alg. 18).
 */
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "alg.h"
#include "context.h"
#include "fault.h"
#include "internal.h"
#include "x25519.h"

#define DIGEST_BYTES 16

struct answers {
	uint8_t keygen[DIGEST_BYTES]; /* share || secret */
	uint8_t encaps[DIGEST_BYTES]; /* ct || shared */
	uint8_t decaps[DIGEST_BYTES]; /* shared */
	uint8_t reject[DIGEST_BYTES]; /* shared, when bit 0 of ct[0] is flipped */
};

static const struct answers answers[KEM_N_ALGS] =
    {
	[KEM_ALG_MLKEM512] =
	    {
		.keygen = {0x9a, 0x6c, 0x62, 0x7f, 0xd8, 0x7f, 0x8f, 0x3d, 0x84, 0x2c,
		    0x75, 0x7c, 0x80, 0xfd, 0xaf, 0x0c},
		.encaps = {0x0d, 0x9a, 0x23, 0x1d, 0x4c, 0x00, 0x95, 0xd7, 0xbc, 0xb8,
		    0xe9, 0x5b, 0x1f, 0x84, 0xa8, 0xeb},
		.decaps = {0xd3, 0xd9, 0x85, 0xbe, 0xd6, 0x82, 0xd1, 0x7d, 0xc8, 0xd1,
		    0xa0, 0x93, 0x77, 0x94, 0x12, 0x05},
		.reject = {0xd3, 0x37, 0x44, 0x4b, 0x5b, 0x38, 0xd4, 0xc1, 0x0c, 0x6f,
		    0x28, 0x8c, 0x32, 0xfe, 0x23, 0x08},
	    },
	[KEM_ALG_MLKEM768] =
	    {
		.keygen = {0xad, 0x1f, 0xc7, 0xcc, 0x7b, 0x65, 0xc8, 0xf4, 0x30, 0xbc,
		    0x9c, 0xde, 0x7c, 0x31, 0x42, 0x66},
		.encaps = {0x7a, 0xb2, 0x4b, 0x6d, 0xe9, 0xef, 0x90, 0x45, 0xb0, 0x86,
		    0xe0, 0x46, 0xe0, 0x30, 0x71, 0x5e},
		.decaps = {0x1e, 0x68, 0x18, 0xa4, 0x1e, 0xb0, 0xec, 0x7f, 0x11, 0x87,
		    0xa4, 0x76, 0x2e, 0x4b, 0xc1, 0xda},
		.reject = {0x05, 0x89, 0x24, 0x82, 0x74, 0x17, 0x4e, 0xcd, 0xb5, 0x3e,
		    0x55, 0x20, 0x75, 0x9a, 0xf7, 0x18},
	    },
	[KEM_ALG_MLKEM1024] =
	    {
		.keygen = {0x09, 0x52, 0x0e, 0x40, 0x75, 0xec, 0x4d, 0xde, 0xed, 0x9f,
		    0x9c, 0x2d, 0xe3, 0x54, 0x2e, 0xc6},
		.encaps = {0xb1, 0xe3, 0x9b, 0x72, 0x50, 0xcf, 0x62, 0xde, 0x9a, 0xfe,
		    0xaa, 0x28, 0xed, 0x63, 0x08, 0x98},
		.decaps = {0xa2, 0x4c, 0xe2, 0xec, 0xa9, 0xd0, 0x24, 0x09, 0x6c, 0xb1,
		    0x74, 0x6b, 0x39, 0xd3, 0xe7, 0x9d},
		.reject = {0xbc, 0xed, 0xf2, 0x79, 0xaf, 0x61, 0xdf, 0x00, 0xfd, 0x16,
		    0x9b, 0xe1, 0x58, 0xb5, 0x9b, 0xa4},
	    },
	[KEM_ALG_X25519MLKEM768] =
	    {
		.keygen = {0x93, 0xb3, 0x76, 0xfc, 0x77, 0x2c, 0xbc, 0x59, 0x98, 0x2f,
		    0x80, 0x70, 0x9f, 0x46, 0x2e, 0x20},
		.encaps = {0x0c, 0x76, 0x59, 0x16, 0xa0, 0xea, 0x74, 0x9b, 0x54, 0xa9,
		    0xdc, 0x54, 0x7c, 0x86, 0xd0, 0x35},
		.decaps = {0x61, 0xb9, 0x60, 0x09, 0x36, 0x40, 0xd8, 0x16, 0x17, 0x8a,
		    0x7b, 0x45, 0x6a, 0x69, 0x1a, 0x7b},
		.reject = {0x0d, 0x32, 0xf4, 0x7b, 0x18, 0x16, 0x01, 0xaf, 0xf6, 0x13,
		    0x55, 0xeb, 0x12, 0x57, 0x75, 0xe7},
	    },
};

/* Alice's public key and the shared secret. */
static const uint8_t x25519_answer[DIGEST_BYTES] = {0x63, 0x2a, 0x03, 0xdc, 0x21, 0x40,
    0x33, 0x63, 0xca, 0x3b, 0x2f, 0xff, 0x0e, 0x2a, 0x2b, 0x2f};

/* d || z || Alice's private key */
static const uint8_t seed[KEM_SEED_MAX] = {0x7c, 0x99, 0x35, 0xa0, 0xb0, 0x76, 0x94,
    0xaa, 0x0c, 0x6d, 0x10, 0xe4, 0xdb, 0x6b, 0x1a, 0xdd, 0x2f, 0xd8, 0x1a, 0x25, 0xcc,
    0xb1, 0x48, 0x03, 0x2d, 0xcd, 0x73, 0x99, 0x36, 0x73, 0x7f, 0x2d, 0x86, 0x26, 0xed,
    0x79, 0xd4, 0x51, 0x14, 0x08, 0x00, 0xe0, 0x3b, 0x59, 0xb9, 0x56, 0xf8, 0x21, 0x0e,
    0x55, 0x60, 0x67, 0x40, 0x7d, 0x13, 0xdc, 0x90, 0xfa, 0x9e, 0x8b, 0x87, 0x2b, 0xfb,
    0x8f, 0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1, 0x72, 0x51,
    0xb2, 0x66, 0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb,
    0xa5, 0x1d, 0xb9, 0x2c, 0x2a};

static const uint8_t m[1][32] = {{0x14, 0x7c, 0x03, 0xf7, 0xa5, 0xbe, 0xbb, 0xa4, 0x06,
    0xc8, 0xfa, 0xe1, 0x87, 0x4d, 0x7f, 0x13, 0xc8, 0x0e, 0xfe, 0x79, 0xa3, 0xa9, 0xa8,
    0x74, 0xcc, 0x09, 0xfe, 0x76, 0xf6, 0x99, 0x76, 0x15}};

static const struct kem_x25519 bob = {
    .private_key = {0x5d, 0xab, 0x08, 0x7e, 0x62, 0x4a, 0x8a, 0x4b, 0x79, 0xe1, 0x7f,
	0x8b, 0x83, 0x80, 0x0e, 0xe6, 0x6f, 0x3b, 0xb1, 0x29, 0x26, 0x18, 0xb6, 0xfd,
	0x1c, 0x2f, 0x8b, 0x27, 0xff, 0x88, 0xe0, 0xeb},
    .public_key = {0xde, 0x9e, 0xdb, 0x7d, 0x7b, 0x7d, 0xc1, 0xb4, 0xd3, 0x5b, 0x61,
	0xc2, 0xec, 0xe4, 0x35, 0x37, 0x3f, 0x83, 0x43, 0xc8, 0x5b, 0x78, 0x67, 0x4d,
	0xad, 0xfc, 0x7e, 0x14, 0x6f, 0x88, 0x2b, 0x4f},
};

struct selftest {
	const struct kem *kem;
	struct kem_scratch *scratch;
	uint8_t share[KEM_SHARE_MAX];
	uint8_t secret[KEM_SECRET_MAX];
	uint8_t ct[KEM_CT_MAX];
	struct kem_shared shared;
};

_Static_assert(KEM_SPARE_OFFSET + sizeof(struct selftest) <= KEM_FRONT_BYTES, "spare");

/* Does SHA-256(a || b) begin with the answer? A planted fault makes the answer wrong. */
static bool
digest_is(const struct kem *kem, const uint8_t answer[DIGEST_BYTES], bool is_wrong,
    const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	uint8_t digest[EVP_MAX_MD_SIZE], expected[DIGEST_BYTES];
	EVP_MD_CTX *ctx;
	bool is_equal = false;

	memcpy(expected, answer, DIGEST_BYTES);
	expected[0] ^= is_wrong;
	ERR_set_mark();
	ctx = EVP_MD_CTX_new();
	if (ctx && EVP_DigestInit_ex(ctx, kem->sha256, NULL) == 1 &&
	    EVP_DigestUpdate(ctx, a, a_len) == 1 &&
	    EVP_DigestUpdate(ctx, b, b_len) == 1 &&
	    EVP_DigestFinal_ex(ctx, digest, NULL) == 1)
		is_equal = memcmp(digest, expected, DIGEST_BYTES) == 0;
	EVP_MD_CTX_free(ctx);
	ERR_pop_to_mark();
	return is_equal;
}

static bool
keygen_is_right(struct selftest *t, enum kem_alg alg, bool is_wrong)
{
	const struct kem_alg_info *info = kem_alg_info(alg);
	struct kem_keygen_item item = {
	    .seed = seed, .share = t->share, .secret = t->secret};

	return kem_keygen(t->kem, alg, &item, 1, t->scratch) == 0 &&
	       item.status == KEM_OK &&
	       digest_is(t->kem, answers[alg].keygen, is_wrong, t->share,
		   info->share_bytes, t->secret, info->secret_bytes);
}

static bool
encaps_is_right(struct selftest *t, enum kem_alg alg, bool is_wrong)
{
	const struct kem_alg_info *info = kem_alg_info(alg);
	struct kem_encaps_item item = {
	    .share = t->share,
	    .share_len = info->share_bytes,
	    .ephemeral = &bob,
	    .ct = t->ct,
	    .shared = &t->shared,
	};

	return kem_encaps_derand(t->kem, alg, &item, 1, m, t->scratch) == 0 &&
	       item.status == KEM_OK &&
	       digest_is(t->kem, answers[alg].encaps, is_wrong, t->ct, info->ct_bytes,
		   t->shared.bytes, info->shared_bytes);
}

static bool
decaps_is_right(struct selftest *t, enum kem_alg alg,
    const uint8_t answer[DIGEST_BYTES], bool is_wrong)
{
	const struct kem_alg_info *info = kem_alg_info(alg);
	struct kem_private key;
	struct kem_decaps_item item = {
	    .key = &key, .ct = t->ct, .ct_len = info->ct_bytes, .shared = &t->shared};

	kem_private_from_parts(&key, alg, t->secret, t->share);
	key.trusted = false; /* so that the hash check runs too */
	return kem_decaps(t->kem, alg, &item, 1, t->scratch) == 0 &&
	       item.status == KEM_OK &&
	       digest_is(t->kem, answer, is_wrong, t->shared.bytes, info->shared_bytes,
		   NULL, 0);
}

static bool
reject_is_right(struct selftest *t, enum kem_alg alg, bool is_wrong)
{
	t->ct[0] ^= 1;
	return decaps_is_right(t, alg, answers[alg].reject, is_wrong);
}

static bool
x25519_is_right(struct selftest *t)
{
	uint8_t public_key[X25519_KEY_BYTES];
	struct x25519_public_item pair = {
	    .private_key = seed + SEED_DZ_BYTES, .public_key = public_key};
	struct x25519_item item = {
	    .private_key = seed + SEED_DZ_BYTES,
	    .public_key = public_key,
	    .peer = bob.public_key,
	    .shared = t->shared.bytes,
	};

	return x25519_public(t->kem, &pair, 1, t->scratch) == 0 &&
	       x25519_shared(t->kem, &item, 1, t->scratch) == 0 && !item.is_zero &&
	       digest_is(t->kem, x25519_answer, fault("selftest-x25519"), public_key,
		   sizeof(public_key), t->shared.bytes, X25519_KEY_BYTES);
}

/* The name of the first step that failed, or NULL. */
static const char *
mlkem_failed_step(struct selftest *t, enum kem_alg alg)
{
	if (!keygen_is_right(t, alg, fault("selftest-keygen")))
		return "keygen";
	if (!encaps_is_right(t, alg, fault("selftest-encaps")))
		return "encaps";
	if (!decaps_is_right(t, alg, answers[alg].decaps, fault("selftest-decaps")))
		return "decaps";
	if (!reject_is_right(t, alg, fault("selftest-reject")))
		return "reject";
	return NULL;
}

static bool
hybrid_is_right(struct selftest *t)
{
	const enum kem_alg alg = KEM_ALG_X25519MLKEM768;

	return keygen_is_right(t, alg, fault("selftest-hybrid")) &&
	       encaps_is_right(t, alg, false) &&
	       decaps_is_right(t, alg, answers[alg].decaps, false) &&
	       reject_is_right(t, alg, false);
}

int
kem_selftest(const struct kem *kem, struct kem_scratch *scratch, const char **stepp)
{
	static const enum kem_alg sets[] = {
	    KEM_ALG_MLKEM768, KEM_ALG_MLKEM512, KEM_ALG_MLKEM1024};
	struct selftest *t = kem_spare(scratch);
	const char *failed = NULL;

	t->kem = kem;
	t->scratch = scratch;
	for (size_t i = 0; !failed && i < sizeof(sets) / sizeof(sets[0]); i++)
		failed = mlkem_failed_step(t, sets[i]);
	if (!failed && !x25519_is_right(t))
		failed = "x25519";
	if (!failed && !hybrid_is_right(t))
		failed = "hybrid";
	kem_wipe(t, sizeof(*t));
	*stepp = failed;
	return failed ? KEM_FAIL_SELFTEST : 0;
}
