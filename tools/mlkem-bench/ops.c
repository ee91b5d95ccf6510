/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations as programs know them, per backend, set and batch. Keys, seeds and
 * randomness come from a generator with a fixed start, so that runs are alike; a call
 * takes the next of at least 64 keys, so that no branch predictor learns one matrix.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "kem/arch/backend.h"
#include "kem/internal.h"
#include "kem/kem.h"
#include "kem/x25519.h"

#define N_KEYS_MIN 64

struct op {
	struct op *next;
	struct fixture *fixture;
	unsigned batch, at;
};

/* n keys of one algorithm in one backend, and all that the operations read and write. */
struct fixture {
	struct fixture *next;
	struct op *ops;
	const struct kem *kem;
	enum kem_alg alg;
	unsigned n;
	struct kem_scratch *scratch;
	uint8_t *seed, *share, *secret, *ct, *dk;
	uint8_t (*m)[32];
	struct kem_shared *shared;
	struct kem_private *key, *key_dk;
	struct kem_x25519 *pair;
	struct kem_keygen_item *keygen;
	struct kem_encaps_item *encaps, *encaps_pooled;
	struct kem_decaps_item *decaps, *decaps_checked;
	struct x25519_public_item *base;
	struct x25519_item *derive;
};

/* Nothing here is secret. */
static void
fill(uint8_t *out, size_t len)
{
	static uint64_t state = 2024;

	tool_random_fill(&state, out, len);
}

/* The first item of the next call. */
static unsigned
op_next(struct op *op)
{
	unsigned first = op->at;

	op->at = first + 2 * op->batch <= op->fixture->n ? first + op->batch : 0;
	return first;
}

static int
run_keygen(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = kem_keygen(
		    f->kem, f->alg, &f->keygen[op_next(op)], op->batch, f->scratch);
	return r;
}

static int
run_encaps(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++) {
		unsigned first = op_next(op);

		r = kem_encaps_derand(f->kem, f->alg, &f->encaps_pooled[first],
		    op->batch, (const uint8_t(*)[32]) & f->m[first], f->scratch);
	}
	return r;
}

/* With randomness and ephemerals drawn, as the daemon answers a share. */
static int
run_server(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = kem_encaps(
		    f->kem, f->alg, &f->encaps[op_next(op)], op->batch, f->scratch);
	return r;
}

/* The same with ephemerals made before. */
static int
run_pooled(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = kem_encaps(f->kem, f->alg, &f->encaps_pooled[op_next(op)],
		    op->batch, f->scratch);
	return r;
}

static int
run_decaps(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = kem_decaps(
		    f->kem, f->alg, &f->decaps[op_next(op)], op->batch, f->scratch);
	return r;
}

static int
run_decaps_checked(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = kem_decaps(f->kem, f->alg, &f->decaps_checked[op_next(op)],
		    op->batch, f->scratch);
	return r;
}

/* The whole of the client's side: a fresh pair, and the answer opened with it. */
static int
run_client(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++) {
		unsigned first = op_next(op);

		r = kem_keygen(
		    f->kem, f->alg, &f->keygen[first], op->batch, f->scratch);
		if (r == 0)
			r = kem_decaps(
			    f->kem, f->alg, &f->decaps[first], op->batch, f->scratch);
	}
	return r;
}

static int
run_check_share(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	size_t len = kem_alg_info(f->alg)->share_bytes;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = kem_check_share(
		    f->kem, f->alg, f->share + op_next(op) * len, len, f->scratch);
	return r;
}

static int
run_check_dk(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	size_t len = kem_alg_info(f->alg)->dk_bytes;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = kem_check_dk(
		    f->kem, f->alg, f->dk + op_next(op) * len, len, f->scratch);
	return r;
}

/* kem/x25519.h takes one group at a time. */
static int
run_base(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++) {
		unsigned first = op_next(op), end = first + op->batch, n_group;

		for (; r == 0 && first < end; first += n_group) {
			n_group =
			    end - first < KEM_GROUP_MAX ? end - first : KEM_GROUP_MAX;
			r = x25519_public(f->kem, &f->base[first], n_group, f->scratch);
		}
	}
	return r;
}

static int
run_derive(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++) {
		unsigned first = op_next(op), end = first + op->batch, n_group;

		for (; r == 0 && first < end; first += n_group) {
			n_group =
			    end - first < KEM_GROUP_MAX ? end - first : KEM_GROUP_MAX;
			r = x25519_shared(
			    f->kem, &f->derive[first], n_group, f->scratch);
		}
	}
	return r;
}

/* 64 bytes a call: what one key generation needs. */
static int
run_random(void *ctx, uint64_t n)
{
	struct op *op = ctx;
	struct fixture *f = op->fixture;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = kem_random(f->kem, f->shared[0].bytes, 64);
	return r;
}

static void
fixture_link(struct fixture *f)
{
	const struct kem_alg_info *info = kem_alg_info(f->alg);

	for (unsigned i = 0; i < f->n; i++) {
		uint8_t *share = f->share + (size_t)i * info->share_bytes;
		uint8_t *secret = f->secret + (size_t)i * info->secret_bytes;
		uint8_t *ct = f->ct + (size_t)i * info->ct_bytes;

		f->keygen[i] = (struct kem_keygen_item){
		    .seed = f->seed + (size_t)i * info->seed_bytes,
		    .share = share,
		    .secret = secret,
		};
		f->encaps[i] = (struct kem_encaps_item){
		    .share = share,
		    .share_len = info->share_bytes,
		    .ct = ct,
		    .shared = &f->shared[i],
		};
		f->encaps_pooled[i] = f->encaps[i];
		f->encaps_pooled[i].ephemeral = &f->pair[i];
		f->decaps[i] = (struct kem_decaps_item){
		    .key = &f->key[i],
		    .ct = ct,
		    .ct_len = info->ct_bytes,
		    .shared = &f->shared[i],
		};
		f->decaps_checked[i] = f->decaps[i];
		f->decaps_checked[i].key = &f->key_dk[i];
		kem_private_from_parts(&f->key[i], f->alg, secret, share);
		f->base[i].private_key = f->pair[i].private_key;
		f->base[i].public_key = f->pair[i].public_key;
		f->derive[i].private_key = f->pair[i].private_key;
		f->derive[i].public_key = f->pair[i].public_key;
		f->derive[i].peer = f->pair[(i + 1) % f->n].public_key;
		f->derive[i].shared = f->shared[i].bytes;
	}
}

/* Make the keys, the expanded keys and the ciphertexts. */
static int
fixture_fill(struct fixture *f)
{
	const struct kem_alg_info *info = kem_alg_info(f->alg);
	struct op all = {.fixture = f, .batch = f->n};
	int r;

	fill(f->seed, (size_t)f->n * info->seed_bytes);
	fill((uint8_t *)f->m, (size_t)f->n * 32);
	fill((uint8_t *)f->pair, f->n * sizeof f->pair[0]);
	r = run_base(&all, 1);
	if (r == 0)
		r = run_keygen(&all, 1);
	if (r == 0)
		r = run_encaps(&all, 1);
	for (unsigned i = 0; r == 0 && i < f->n; i++) {
		uint8_t *dk = f->dk + (size_t)i * info->dk_bytes;

		if (f->keygen[i].status != KEM_OK ||
		    f->encaps_pooled[i].status != KEM_OK)
			return -1;
		kem_private_export(f->alg, f->keygen[i].secret, f->keygen[i].share, dk);
		if (kem_private_from_dk(&f->key_dk[i], f->alg, dk, info->dk_bytes) !=
		    KEM_OK)
			return -1;
	}
	return r;
}

static void
fixture_free(struct fixture *f)
{
	for (struct op *op = f->ops, *next; op; op = next) {
		next = op->next;
		free(op);
	}
	free(f->scratch);
	free(f->seed), free(f->share), free(f->secret), free(f->ct), free(f->dk);
	free(f->m), free(f->shared), free(f->key), free(f->key_dk), free(f->pair);
	free(f->keygen), free(f->encaps), free(f->encaps_pooled);
	free(f->decaps), free(f->decaps_checked), free(f->base), free(f->derive);
	free(f);
}

static struct fixture *
fixture_new(const struct kem *kem, enum kem_alg alg, unsigned n)
{
	const struct kem_alg_info *info = kem_alg_info(alg);
	struct fixture *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->kem = kem;
	f->alg = alg;
	f->n = n;
	f->scratch = aligned_alloc(64, sizeof *f->scratch);
	f->seed = malloc((size_t)n * info->seed_bytes);
	f->share = malloc((size_t)n * info->share_bytes);
	f->secret = malloc((size_t)n * info->secret_bytes);
	f->ct = malloc((size_t)n * info->ct_bytes);
	f->dk = malloc((size_t)n * info->dk_bytes);
	f->m = malloc((size_t)n * sizeof f->m[0]);
	f->shared = calloc(n, sizeof f->shared[0]);
	f->key = calloc(n, sizeof f->key[0]);
	f->key_dk = calloc(n, sizeof f->key_dk[0]);
	f->pair = malloc(n * sizeof f->pair[0]);
	f->keygen = calloc(n, sizeof f->keygen[0]);
	f->encaps = calloc(n, sizeof f->encaps[0]);
	f->encaps_pooled = calloc(n, sizeof f->encaps_pooled[0]);
	f->decaps = calloc(n, sizeof f->decaps[0]);
	f->decaps_checked = calloc(n, sizeof f->decaps_checked[0]);
	f->base = calloc(n, sizeof f->base[0]);
	f->derive = calloc(n, sizeof f->derive[0]);
	if (!f->scratch || !f->seed || !f->share || !f->secret || !f->ct || !f->dk ||
	    !f->m || !f->shared || !f->key || !f->key_dk || !f->pair || !f->keygen ||
	    !f->encaps || !f->encaps_pooled || !f->decaps || !f->decaps_checked ||
	    !f->base || !f->derive) {
		fixture_free(f);
		return NULL;
	}
	fixture_link(f);
	if (fixture_fill(f) != 0) {
		fixture_free(f);
		return NULL;
	}
	return f;
}

void
bench_fini_ops(struct bench *bench)
{
	for (struct fixture *f = bench->fixtures, *next; f; f = next) {
		next = f->next;
		fixture_free(f);
	}
	bench->fixtures = NULL;
}

/* Which operation there is for which algorithm. */
enum { PLAIN = 1, HYBRID = 2, ONCE = 4 };

static const struct {
	const char *op;
	int (*run)(void *ctx, uint64_t n);
	unsigned what; /* ONCE: takes one item, and needs no other batch */
} kinds[] = {
    {"keygen", run_keygen, PLAIN},
    {"encaps", run_encaps, PLAIN},
    {"decaps", run_decaps, PLAIN},
    {"decaps-checked", run_decaps_checked, PLAIN},
    {"check-share", run_check_share, PLAIN | ONCE},
    {"check-dk", run_check_dk, PLAIN | ONCE},
    {"hybrid-keygen", run_keygen, HYBRID},
    {"hybrid-decaps", run_decaps, HYBRID},
    {"hybrid-client", run_client, HYBRID},
    {"hybrid-server", run_server, HYBRID},
    {"hybrid-pooled", run_pooled, HYBRID},
    {"x25519-base", run_base, HYBRID},
    {"x25519-derive", run_derive, HYBRID},
    {"random-64", run_random, HYBRID | ONCE},
};

/* The fixture of this backend and algorithm, made when a row first needs it, or NULL. */
static struct fixture *
fixture_get(struct bench *bench, const struct kem *kem, enum kem_alg alg)
{
	const struct bench_options *options = &bench->options;
	unsigned n = options->batch[options->n_batches - 1];
	struct fixture *f;

	for (f = bench->fixtures; f; f = f->next) {
		if (f->kem == kem && f->alg == alg)
			return f;
	}
	f = fixture_new(kem, alg, n > N_KEYS_MIN ? n : N_KEYS_MIN);
	if (!f) {
		tool_fail("%s by %s: no memory, or the keys could not be made",
		    kem_alg_info(alg)->name, kem_backend_name(kem));
		return NULL;
	}
	f->next = bench->fixtures;
	bench->fixtures = f;
	return f;
}

static int
add_row(struct bench *bench, const struct kem *kem, enum kem_alg alg, struct row *row)
{
	struct fixture *f;
	struct op *op;

	if (!bench_wants(bench, row))
		return 0;
	f = fixture_get(bench, kem, alg);
	if (!f)
		return -1;
	op = calloc(1, sizeof *op);
	if (!op)
		return tool_fail("no memory");
	op->fixture = f;
	op->batch = row->batch;
	op->next = f->ops;
	f->ops = op;
	row->work.ctx = op;
	return bench_add(bench, row);
}

static int
add_alg(struct bench *bench, const struct kem *kem, enum kem_alg alg)
{
	static const char *const sets[] = {"512", "768", "1024", "768"};
	bool is_hybrid = alg == KEM_ALG_X25519MLKEM768;

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		bool has_set = !is_hybrid || strncmp(kinds[i].op, "hybrid", 6) == 0;

		if (!(kinds[i].what & (is_hybrid ? HYBRID : PLAIN)))
			continue;
		for (unsigned b = 0; b < bench->options.n_batches; b++) {
			struct row row = {
			    .op = kinds[i].op,
			    .set = has_set ? sets[alg] : "-",
			    .backend = kem_backend_name(kem),
			    .batch = bench->options.batch[b],
			    .work.run = kinds[i].run,
			};

			if (kinds[i].what & ONCE)
				row.batch = 1;
			row.n_permutations = permutations(row.op, row.set);
			if (add_row(bench, kem, alg, &row) < 0)
				return -1;
			if (kinds[i].what & ONCE)
				break;
		}
	}
	return 0;
}

int
bench_add_ops(struct bench *bench)
{
	for (unsigned i = 0; i < bench->n_backends; i++) {
		for (unsigned alg = 0; alg < KEM_N_ALGS; alg++) {
			if (add_alg(bench, bench->kems[i], alg) < 0)
				return -1;
		}
	}
	return 0;
}
