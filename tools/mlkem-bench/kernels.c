/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of each backend, one by one. An item is a polynomial, a vector of k of
 * them for basemul, or a Keccak state. Their time does not depend on values (rej_uniform
 * apart), so those that work in place start from zeros and stay in their ranges.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "kem/arch/backend.h"
#include "kem/internal.h"

#define K_MAX         4
#define REJ_BYTES     504
#define ABSORB_WORDS  17
#define SQUEEZE_WORDS 21
#define CT_BYTES      1088

/* One for all rows: nothing is kept from call to call. */
static struct {
	_Alignas(64) uint64_t state[KECCAK_WORDS * BACKEND_LANES_MAX];
	_Alignas(64) int16_t r[MLKEM_N];
	_Alignas(64) int16_t a[K_MAX * MLKEM_N];
	_Alignas(64) int16_t b[K_MAX * MLKEM_N];
	_Alignas(64) int16_t cache[K_MAX * MLKEM_N];
	_Alignas(64) uint8_t in[REJ_BYTES + CT_BYTES + 64];
	_Alignas(64) uint8_t out[BACKEND_LANES_MAX][192 + CT_BYTES];
} room;

static volatile uint64_t sink; /* for results that are nobody's */

#define KERNEL(name, call)                    \
 static int run_##name(void *ctx, uint64_t n) \
 {                                            \
  const struct backend *backend = ctx;        \
  for (uint64_t i = 0; i < n; i++)            \
   call;                                      \
  return 0;                                   \
 }

KERNEL(keccak, backend->keccak(room.state, (1u << backend->lanes) - 1))
KERNEL(keccak_one, backend->keccak(room.state, 1))
KERNEL(rej_uniform, sink = backend->rej_uniform(room.r, 0, room.in, REJ_BYTES))
KERNEL(cbd2, backend->cbd2(room.r, room.in))
KERNEL(cbd3, backend->cbd3(room.r, room.in))
KERNEL(ntt, backend->ntt(room.r))
KERNEL(invntt, backend->invntt(room.r))
KERNEL(mulcache, backend->mulcache(room.cache, room.b))
KERNEL(basemul2, backend->basemul(room.r, room.a, room.b, room.cache, 2))
KERNEL(basemul3, backend->basemul(room.r, room.a, room.b, room.cache, 3))
KERNEL(basemul4, backend->basemul(room.r, room.a, room.b, room.cache, 4))
KERNEL(tomont, backend->tomont(room.r))
KERNEL(add, backend->add(room.r, room.a))
KERNEL(rsub, backend->rsub(room.r, room.a))
KERNEL(compress1, backend->compress[COMPRESS_1](room.out[0], room.a))
KERNEL(compress4, backend->compress[COMPRESS_4](room.out[0], room.a))
KERNEL(compress5, backend->compress[COMPRESS_5](room.out[0], room.a))
KERNEL(compress10, backend->compress[COMPRESS_10](room.out[0], room.a))
KERNEL(compress11, backend->compress[COMPRESS_11](room.out[0], room.a))
KERNEL(decompress1, backend->decompress[COMPRESS_1](room.r, room.in))
KERNEL(decompress4, backend->decompress[COMPRESS_4](room.r, room.in))
KERNEL(decompress5, backend->decompress[COMPRESS_5](room.r, room.in))
KERNEL(decompress10, backend->decompress[COMPRESS_10](room.r, room.in))
KERNEL(decompress11, backend->decompress[COMPRESS_11](room.r, room.in))
KERNEL(pack12, backend->pack12(room.out[0], room.a))
KERNEL(unpack12, backend->unpack12(room.r, room.in))
KERNEL(check12, sink = backend->check12(room.in))
KERNEL(compare, sink = backend->compare(room.in, room.out[0], CT_BYTES))
KERNEL(select, backend->select(room.out[0], room.in, room.out[1], 32, sink))

static int
run_absorb(void *ctx, uint64_t n)
{
	const struct backend *backend = ctx;
	const uint8_t *block[BACKEND_LANES_MAX];
	uint8_t words[BACKEND_LANES_MAX], end[BACKEND_LANES_MAX] = {0};

	for (unsigned i = 0; i < BACKEND_LANES_MAX; i++) {
		block[i] = room.in + 8 * i;
		words[i] = ABSORB_WORDS;
	}
	for (uint64_t i = 0; i < n; i++)
		backend->absorb(room.state, block, words, end, 0);
	return 0;
}

static int
run_squeeze(void *ctx, uint64_t n)
{
	const struct backend *backend = ctx;
	uint8_t *out[BACKEND_LANES_MAX];
	uint8_t words[BACKEND_LANES_MAX];

	for (unsigned i = 0; i < BACKEND_LANES_MAX; i++) {
		out[i] = room.out[i];
		words[i] = SQUEEZE_WORDS;
	}
	for (uint64_t i = 0; i < n; i++)
		backend->squeeze(room.state, out, words);
	return 0;
}

static const struct {
	const char *op, *set;
	int (*run)(void *ctx, uint64_t n);
	bool lanes; /* an item is a lane */
} kernels[] = {
    {"absorb", "-", run_absorb, true},
    {"squeeze", "-", run_squeeze, true},
    {"rej-uniform", "-", run_rej_uniform, false},
    {"cbd2", "-", run_cbd2, false},
    {"cbd3", "-", run_cbd3, false},
    {"ntt", "-", run_ntt, false},
    {"invntt", "-", run_invntt, false},
    {"mulcache", "-", run_mulcache, false},
    {"basemul", "512", run_basemul2, false},
    {"basemul", "768", run_basemul3, false},
    {"basemul", "1024", run_basemul4, false},
    {"tomont", "-", run_tomont, false},
    {"add", "-", run_add, false},
    {"rsub", "-", run_rsub, false},
    {"compress1", "-", run_compress1, false},
    {"compress4", "-", run_compress4, false},
    {"compress5", "-", run_compress5, false},
    {"compress10", "-", run_compress10, false},
    {"compress11", "-", run_compress11, false},
    {"decompress1", "-", run_decompress1, false},
    {"decompress4", "-", run_decompress4, false},
    {"decompress5", "-", run_decompress5, false},
    {"decompress10", "-", run_decompress10, false},
    {"decompress11", "-", run_decompress11, false},
    {"pack12", "-", run_pack12, false},
    {"unpack12", "-", run_unpack12, false},
    {"check12", "-", run_check12, false},
    {"compare-ct", "-", run_compare, false},
    {"select-32", "-", run_select, false},
};

/* Values in every kernel's range, the same in each run. */
static void
room_fill(void)
{
	uint32_t x = 1;

	for (size_t i = 0; i < sizeof room.in; i++) {
		x = x * 1664525 + 1013904223;
		room.in[i] = (uint8_t)(x >> 24);
	}
	for (size_t i = 0; i < K_MAX * MLKEM_N; i++) {
		x = x * 1664525 + 1013904223;
		room.b[i] = (int16_t)((x >> 16) % MLKEM_Q);
	}
}

/* Rows of Keccak are there even if nobody asked: the floor of the others needs them. */
static int
add_keccak(struct bench *bench, const struct backend *backend)
{
	struct row row = {
	    .op = "keccak",
	    .set = "-",
	    .backend = backend->name,
	    .batch = backend->lanes,
	    .n_permutations = 1,
	    .work = {.run = run_keccak, .ctx = (void *)(uintptr_t)backend},
	    .hidden = true,
	};

	if (bench_add(bench, &row) < 0)
		return -1;
	row.batch = 1;
	row.work.run = run_keccak_one;
	row.hidden = false;
	return backend->lanes > 1 ? bench_add(bench, &row) : 0;
}

int
bench_add_kernels(struct bench *bench)
{
	room_fill();
	for (unsigned i = 0; i < bench->n_backends; i++) {
		const struct backend *backend = kem_backend(bench->kems[i]);

		if (add_keccak(bench, backend) < 0)
			return -1;
		for (size_t j = 0; j < sizeof kernels / sizeof kernels[0]; j++) {
			struct row row = {
			    .op = kernels[j].op,
			    .set = kernels[j].set,
			    .backend = backend->name,
			    .batch = kernels[j].lanes ? backend->lanes : 1,
			    .work.run = kernels[j].run,
			    .work.ctx = (void *)(uintptr_t)backend,
			};

			if (bench_add(bench, &row) < 0)
				return -1;
		}
	}
	return 0;
}
