/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "kem/internal.h"
#include "kem/x25519.h"
#include "leak.h"
#include "tools/mlkem-bench/common.h"

/* SampleNTT without rejection: [0, 4095], which the kernels that read it allow. */
static unsigned
sample_flat(int16_t *r, unsigned count, const uint8_t *buf, size_t len)
{
	for (size_t i = 0; i + 3 <= len && count < MLKEM_N; i += 3) {
		r[count++] = (int16_t)(buf[i] | (buf[i + 1] & 15) << 8);
		r[count++] = (int16_t)(buf[i + 1] >> 4 | buf[i + 2] << 4);
	}
	return count;
}

static int
flat_open(struct subject *subject)
{
	int r;

	subject->backend = *kem_backend(subject->kem);
	subject->backend.rej_uniform = sample_flat;
	r = kem_open_with(&subject->flat, &subject->backend);
	if (r < 0)
		return tool_fail("%s", kem_strerror(r));
	subject->kem = subject->flat;
	return 0;
}

static int
key_make(struct subject *subject, struct leak_key *key)
{
	const struct kem_alg_info *info = kem_alg_info(subject->alg);
	uint8_t seed[KEM_SEED_MAX], m[1][32];
	struct kem_keygen_item keygen = {
	    .seed = seed, .share = key->share, .secret = key->secret};
	struct kem_encaps_item encaps = {.share = key->share,
	    .share_len = info->share_bytes,
	    .ephemeral = &subject->pair[0],
	    .ct = key->ct,
	    .shared = &subject->shared[0]};
	int r;

	tool_random_fill(&subject->random, seed, sizeof seed);
	tool_random_fill(&subject->random, m[0], sizeof m[0]);
	r = kem_keygen(subject->kem, subject->alg, &keygen, 1, subject->scratch);
	if (r == 0 && keygen.status == KEM_OK)
		r = kem_encaps_derand(subject->kem, subject->alg, &encaps, 1,
		    (const uint8_t(*)[32])m, subject->scratch);
	if (r < 0)
		return tool_fail("%s: %s", info->name, kem_strerror(r));
	if (keygen.status != KEM_OK || encaps.status != KEM_OK)
		return tool_fail("%s: no key", info->name);
	kem_private_from_parts(&key->view, subject->alg, key->secret, key->share);
	kem_private_export(subject->alg, key->secret, key->share, key->dk);
	return 0;
}

static int
pairs_make(struct subject *subject)
{
	struct x25519_public_item item[2];
	int r;

	for (unsigned i = 0; i < 2; i++) {
		struct kem_x25519 *pair = &subject->pair[i];

		tool_random_fill(&subject->random, pair->private_key, 32);
		item[i].private_key = pair->private_key;
		item[i].public_key = pair->public_key;
	}
	r = x25519_public(subject->kem, item, 2, subject->scratch);
	return r < 0 ? tool_fail("X25519: %s", kem_strerror(r)) : 0;
}

int
subject_init(struct subject *subject, const struct leak_case *leak)
{
	int r = 0;

	memset(subject, 0, sizeof *subject);
	subject->kem = leak->kem;
	subject->alg = leak->alg;
	subject->random = leak->random;
	subject->scratch = aligned_alloc(64, sizeof *subject->scratch);
	subject->key = calloc(LEAK_KEYS, sizeof *subject->key);
	if (!subject->scratch || !subject->key)
		return tool_fail("no memory");
	if (leak->test->flags & LEAK_FLAT)
		r = flat_open(subject);
	if (r == 0)
		r = pairs_make(subject);
	for (unsigned i = 0; r == 0 && i < LEAK_KEYS; i++)
		r = key_make(subject, &subject->key[i]);
	return r;
}

void
subject_fini(struct subject *subject)
{
	socket_fini(subject);
	kem_free(subject->flat);
	free(subject->scratch);
	free(subject->key);
}
