/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations and their two classes of inputs. Keys, ciphertexts and bytes come from
 * the seed. Both classes lie in the same memory when they are measured, and an operation
 * gets nothing of them but their bytes.
 */
#include <string.h>

#include "kem/internal.h"
#include "kem/x25519.h"
#include "leak.h"
#include "tools/mlkem-bench/common.h"

#define HKDF_BYTES    64
#define CONTROL_BYTES 32

static unsigned
pick(struct subject *subject, unsigned n)
{
	return (unsigned)((tool_random(&subject->random) >> 32) * n >> 32);
}

/* Class 0: the same bytes in each input. Class 1: others each time. */
static void
fixed_or_random(struct subject *subject, unsigned class, uint8_t *input, size_t len)
{
	tool_random_fill(&subject->random, input, len);
	for (size_t i = 0; class == 0 && i < len; i++)
		input[i] = (uint8_t)(i * 37 + 11);
}

/* Of the key generated from nothing but these: d || z. */
static size_t
seed_bytes(const struct subject *subject)
{
	return kem_alg_info(subject->alg)->seed_bytes;
}

static int
seed_make(struct subject *subject, unsigned class, uint8_t *input)
{
	fixed_or_random(subject, class, input, seed_bytes(subject));
	return 0;
}

static int
keygen_run(struct subject *subject)
{
	struct kem_keygen_item item = {
	    .seed = subject->in, .share = subject->out[0], .secret = subject->out[1]};

	return kem_keygen(subject->kem, subject->alg, &item, 1, subject->scratch);
}

static int
decaps_run_key(
    struct subject *subject, const struct kem_private *key, const uint8_t *ct)
{
	struct kem_decaps_item item = {.key = key,
	    .ct = ct,
	    .ct_len = kem_alg_info(subject->alg)->ct_bytes,
	    .shared = &subject->shared[0]};

	return kem_decaps(subject->kem, subject->alg, &item, 1, subject->scratch);
}

/* An expanded key with a ciphertext. */
static size_t
dk_ct_bytes(const struct subject *subject)
{
	const struct kem_alg_info *info = kem_alg_info(subject->alg);

	return (size_t)info->dk_bytes + info->ct_bytes;
}

static void
dk_ct_put(struct subject *subject, unsigned dk, unsigned ct, uint8_t *input)
{
	const struct kem_alg_info *info = kem_alg_info(subject->alg);

	memcpy(input, subject->key[dk].dk, info->dk_bytes);
	memcpy(input + info->dk_bytes, subject->key[ct].ct, info->ct_bytes);
}

/* Each key with its own ciphertext. */
static int
import_make(struct subject *subject, unsigned class, uint8_t *input)
{
	unsigned other = 1 + pick(subject, LEAK_KEYS - 1), i = class ? other : 0;

	dk_ct_put(subject, i, i, input);
	return 0;
}

/* One ciphertext, with its key or with that of another. */
static int
foreign_make(struct subject *subject, unsigned class, uint8_t *input)
{
	unsigned other = 1 + pick(subject, LEAK_KEYS - 1);

	dk_ct_put(subject, class ? other : 0, 0, input);
	return 0;
}

/* As a key comes in: viewed, its hash checked (FIPS 203 7.3), used. */
static int
import_run(struct subject *subject)
{
	const struct kem_alg_info *info = kem_alg_info(subject->alg);
	struct kem_private key;

	if (kem_private_from_dk(&key, subject->alg, subject->in, info->dk_bytes) !=
	    KEM_OK)
		return -1;
	return decaps_run_key(subject, &key, subject->in + info->dk_bytes);
}

static size_t
message_bytes(const struct subject *subject)
{
	return 32;
}

static int
message_make(struct subject *subject, unsigned class, uint8_t *input)
{
	fixed_or_random(subject, class, input, 32);
	return 0;
}

static int
encaps_run(struct subject *subject)
{
	struct kem_encaps_item item = {.share = subject->key[0].share,
	    .share_len = kem_alg_info(subject->alg)->share_bytes,
	    .ephemeral = &subject->pair[0],
	    .ct = subject->out[0],
	    .shared = &subject->shared[0]};

	return kem_encaps_derand(subject->kem, subject->alg, &item, 1,
	    (const uint8_t(*)[32])subject->in, subject->scratch);
}

static size_t
ct_bytes(const struct subject *subject)
{
	return kem_alg_info(subject->alg)->ct_bytes;
}

/*
 * A new ciphertext for key 0. Not one for all: the same bits again and again draw another
 * current than random ones, which some CPUs show in their clock (a few ticks).
 */
static int
fresh_ct(struct subject *subject, uint8_t *ct)
{
	uint8_t m[1][32];
	struct kem_encaps_item item = {.share = subject->key[0].share,
	    .share_len = kem_alg_info(subject->alg)->share_bytes,
	    .ephemeral = &subject->pair[0],
	    .ct = ct,
	    .shared = &subject->shared[0]};

	tool_random_fill(&subject->random, m[0], sizeof m[0]);
	return kem_encaps_derand(subject->kem, subject->alg, &item, 1,
	    (const uint8_t(*)[32])m, subject->scratch);
}

/* A ciphertext, or random bytes (in the hybrid, a random X25519 share too). */
static int
random_ct_make(struct subject *subject, unsigned class, uint8_t *input)
{
	int r = fresh_ct(subject, input);

	if (class)
		tool_random_fill(&subject->random, input, ct_bytes(subject));
	return r;
}

/* One bit wrong, in each byte in turn. */
static int
bit_ct_make(struct subject *subject, unsigned class, uint8_t *input)
{
	unsigned at = subject->turn++ % (unsigned)ct_bytes(subject);
	int r = fresh_ct(subject, input);

	input[at] ^= (uint8_t)(class << pick(subject, 8));
	return r;
}

static int
decaps_run(struct subject *subject)
{
	return decaps_run_key(subject, &subject->key[0].view, subject->in);
}

static size_t
group_bytes(const struct subject *subject)
{
	return KEM_GROUP_MAX * ct_bytes(subject);
}

/* Eight good ones, or seven beside one that has a wrong bit. */
static int
group_make(struct subject *subject, unsigned class, uint8_t *input)
{
	unsigned at = pick(subject, (unsigned)group_bytes(subject));

	for (unsigned i = 0; i < KEM_GROUP_MAX; i++)
		memcpy(input + i * ct_bytes(subject), subject->key[i].ct,
		    ct_bytes(subject));
	input[at] ^= (uint8_t)(class << pick(subject, 8));
	return 0;
}

static int
group_run(struct subject *subject)
{
	struct kem_decaps_item item[KEM_GROUP_MAX];

	for (unsigned i = 0; i < KEM_GROUP_MAX; i++)
		item[i] = (struct kem_decaps_item){.key = &subject->key[i].view,
		    .ct = subject->in + i * ct_bytes(subject),
		    .ct_len = ct_bytes(subject),
		    .shared = &subject->shared[i]};
	return kem_decaps(
	    subject->kem, subject->alg, item, KEM_GROUP_MAX, subject->scratch);
}

static int
derive_run(struct subject *subject)
{
	struct x25519_item item = {.private_key = subject->in,
	    .peer = subject->pair[1].public_key,
	    .shared = subject->out[0]};

	return x25519_shared(subject->kem, &item, 1, subject->scratch);
}

static int
base_run(struct subject *subject)
{
	struct x25519_public_item item = {
	    .private_key = subject->in, .public_key = subject->out[0]};

	return x25519_public(subject->kem, &item, 1, subject->scratch);
}

static size_t
hkdf_bytes(const struct subject *subject)
{
	return HKDF_BYTES;
}

static int
hkdf_make(struct subject *subject, unsigned class, uint8_t *input)
{
	fixed_or_random(subject, class, input, HKDF_BYTES);
	return 0;
}

static int
hkdf_run(struct subject *subject)
{
	static const uint8_t salt[32] = {1}, info[16] = {2};

	return kem_hkdf(subject->kem, KEM_HASH_SHA256, subject->in, HKDF_BYTES, salt,
	    sizeof salt, info, sizeof info, subject->out[0], 32);
}

/* Two strings, equal or with one bit that is not, anywhere. */
static void
twins_make(struct subject *subject, unsigned class, uint8_t *input, size_t len)
{
	unsigned at = pick(subject, (unsigned)len);

	tool_random_fill(&subject->random, input, len);
	memcpy(input + len, input, len);
	input[at] ^= (uint8_t)(class << pick(subject, 8));
}

static size_t
compare_bytes(const struct subject *subject)
{
	return 2 * ct_bytes(subject);
}

static int
compare_make(struct subject *subject, unsigned class, uint8_t *input)
{
	twins_make(subject, class, input, ct_bytes(subject));
	return 0;
}

static int
compare_run(struct subject *subject)
{
	uint64_t differs = kem_backend(subject->kem)
			       ->compare(subject->in, subject->in + ct_bytes(subject),
				   ct_bytes(subject));

	memcpy(subject->out[0], &differs, sizeof differs);
	return 0;
}

static size_t
pair_bytes(const struct subject *subject)
{
	return 2 * CONTROL_BYTES;
}

static int
pair_make(struct subject *subject, unsigned class, uint8_t *input)
{
	twins_make(subject, class, input, CONTROL_BYTES);
	return 0;
}

static int
id_compare_run(struct subject *subject)
{
	subject->out[0][0] = (uint8_t)kem_compare(
	    subject->in, subject->in + CONTROL_BYTES, CONTROL_BYTES);
	return 0;
}

/* A mask, and two secrets to choose from. */
static size_t
select_bytes(const struct subject *subject)
{
	return 8 + 2 * 32;
}

static int
select_make(struct subject *subject, unsigned class, uint8_t *input)
{
	uint64_t mask = 0 - (uint64_t) class;

	memcpy(input, &mask, 8);
	tool_random_fill(&subject->random, input + 8, 2 * 32);
	return 0;
}

static int
select_run(struct subject *subject)
{
	uint64_t mask;

	memcpy(&mask, subject->in, 8);
	kem_backend(subject->kem)
	    ->select(subject->out[0], subject->in + 8, subject->in + 40, 32, mask);
	return 0;
}

/* What a comparison must not be: it stops at the first byte that differs. */
static int
control_run(struct subject *subject)
{
	const volatile uint8_t *a = subject->in, *b = a + CONTROL_BYTES;
	size_t i = 0;

	while (i < CONTROL_BYTES && a[i] == b[i])
		i++;
	subject->out[0][0] = i < CONTROL_BYTES;
	return 0;
}

static const struct leak_test tests[] = {
    {"control", "a comparison that stops early: has to be seen",
	LEAK_NO_SET | LEAK_CONTROL, 4, pair_bytes, pair_make, control_run},
    {"keygen", "key generation: fixed or random seed", LEAK_FLAT, 1, seed_bytes,
	seed_make, keygen_run},
    {"import", "an expanded key, checked and used: fixed or another", LEAK_FLAT, 1,
	dk_ct_bytes, import_make, import_run},
    {"encaps", "encapsulation: fixed or random message", 0, 1, message_bytes,
	message_make, encaps_run},
    {"decaps_valid_vs_invalid_ctxt", "decapsulation: ciphertext or random bytes", 0, 1,
	ct_bytes, random_ct_make, decaps_run},
    {"decaps_ctxt_off_by_one", "decapsulation: ciphertext, or one bit of it wrong", 0,
	1, ct_bytes, bit_ct_make, decaps_run},
    {"decaps_valid_vs_invalid_dk", "decapsulation: by its key, or by another's",
	LEAK_FLAT, 1, dk_ct_bytes, foreign_make, import_run},
    {"decaps_group", "eight decapsulations at once: all right, or one bit wrong", 0, 1,
	group_bytes, group_make, group_run},
    {"hybrid_decaps", "X25519MLKEM768: ciphertext share or random bytes", LEAK_HYBRID,
	1, ct_bytes, random_ct_make, decaps_run},
    {"x25519_derive", "X25519, shared secret: fixed or random private key", LEAK_NO_SET,
	1, message_bytes, message_make, derive_run},
    {"x25519_base", "X25519, public key: fixed or random private key", LEAK_NO_SET, 1,
	message_bytes, message_make, base_run},
    {"hkdf", "HKDF-SHA-256: fixed or random key material", LEAK_NO_SET, 1, hkdf_bytes,
	hkdf_make, hkdf_run},
    {"compare", "the kernel that compares ciphertexts: equal, or one bit not", 0, 8,
	compare_bytes, compare_make, compare_run},
    {"select", "the kernel that selects a secret: one or the other", LEAK_NO_SET, 16,
	select_bytes, select_make, select_run},
    {"id_compare", "kem_compare(), of handles: equal, or one bit not", LEAK_NO_SET, 16,
	pair_bytes, pair_make, id_compare_run},
    {"socket_decaps", "decapsulation by a running mlkemd: one bit wrong or none",
	LEAK_HYBRID | LEAK_SOCKET, 1, socket_input_bytes, socket_make, socket_run},
};

const struct leak_test *
leak_test_number(unsigned i)
{
	return i < sizeof tests / sizeof tests[0] ? &tests[i] : NULL;
}

const struct leak_test *
leak_test_find(const char *name)
{
	const struct leak_test *test;

	for (unsigned i = 0; (test = leak_test_number(i)) != NULL; i++) {
		if (strcmp(test->name, name) == 0)
			return test;
	}
	return NULL;
}
