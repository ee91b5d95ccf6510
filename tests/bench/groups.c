/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups [BACKEND]: what groups of ML-KEM cost beside the Keccak permutations that they
 * can't do without (the floor), and what each kernel costs. For those who change kernels;
 * users have mlkem-bench.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>

#include "kem/arch/backend.h"
#include "kem/arch/dispatch.h"
#include "kem/mlkem.h"
#include "tests/kem/grouptest.h"

#define ROUNDS 101

static const struct backend *backend;
static struct group_of group;
static enum kem_alg set;
static size_t n_items;

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median and least nanoseconds a call, in rounds of about 0.3 ms. */
static double
measure(void (*run)(void), double *leastp)
{
	double ns[ROUNDS], start = now_ns();
	unsigned calls = 0;

	for (; now_ns() - start < 3e5; calls++)
		run();
	for (unsigned i = 0; i < ROUNDS; i++) {
		start = now_ns();
		for (unsigned j = 0; j < calls; j++)
			run();
		ns[i] = (now_ns() - start) / calls;
	}
	qsort(ns, ROUNDS, sizeof ns[0], compare_doubles);
	*leastp = ns[0];
	return ns[ROUNDS / 2];
}

static _Alignas(64) uint64_t state[KECCAK_WORDS * BACKEND_LANES_MAX];
static _Alignas(64) uint8_t bytes[8192];
static _Alignas(64) int16_t poly[5][4 * MLKEM_N];
static const uint8_t *blocks[BACKEND_LANES_MAX];
static uint8_t *outs[BACKEND_LANES_MAX];
static const uint8_t words[BACKEND_LANES_MAX] = {21, 21, 21, 21, 21, 21, 21, 21};

static void
run_keccak(void)
{
	backend->keccak(state, (1u << backend->lanes) - 1);
}

static void
run_keccak_half(void)
{
	backend->keccak(state, 1);
}

static void
run_absorb(void)
{
	backend->absorb(state, blocks, words, words, 0);
}

static void
run_squeeze(void)
{
	backend->squeeze(state, outs, words);
}

static void
run_rej(void)
{
	backend->rej_uniform(poly[0], 0, bytes, 504);
}

static void
run_cbd2(void)
{
	backend->cbd2(poly[0], bytes);
}

static void
run_cbd3(void)
{
	backend->cbd3(poly[0], bytes);
}

static void
run_ntt(void)
{
	backend->ntt(poly[1]);
}

static void
run_invntt(void)
{
	backend->invntt(poly[1]);
}

static void
run_mulcache(void)
{
	backend->mulcache(poly[3], poly[2]);
}

static void
run_basemul3(void)
{
	backend->basemul(poly[0], poly[1], poly[2], poly[3], 3);
}

static void
run_tomont(void)
{
	backend->tomont(poly[0]);
}

static void
run_add(void)
{
	backend->add(poly[0], poly[1]);
}

static void
run_compress4(void)
{
	backend->compress[COMPRESS_4](bytes, poly[1]);
}

static void
run_compress10(void)
{
	backend->compress[COMPRESS_10](bytes, poly[1]);
}

static void
run_compress11(void)
{
	backend->compress[COMPRESS_11](bytes, poly[1]);
}

static void
run_decompress10(void)
{
	backend->decompress[COMPRESS_10](poly[1], bytes);
}

static void
run_pack12(void)
{
	backend->pack12(bytes, poly[1]);
}

static void
run_unpack12(void)
{
	backend->unpack12(poly[1], bytes);
}

static void
run_check12(void)
{
	backend->check12(bytes);
}

static void
run_keygen(void)
{
	mlkem_keygen(backend, set, group.keygen, n_items, group_work);
}

static void
run_encaps(void)
{
	mlkem_encaps(backend, set, group.encaps, n_items, group_work);
}

static void
run_decaps(void)
{
	mlkem_decaps(backend, set, group.decaps, n_items, group_work);
}

/* SHAKE128 of many blocks by OpenSSL: one scalar permutation a block. */
#define SCALAR_BLOCKS 1000
static EVP_MD *shake128;
static uint8_t scalar_in[SCALAR_BLOCKS * 168];

static void
run_scalar(void)
{
	uint8_t out[32];

	EVP_Digest(scalar_in, sizeof scalar_in, out, NULL, shake128, NULL);
}

static void
report_kernels(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kernels[] = {{"keccak, one lane", run_keccak_half}, {"absorb", run_absorb},
	    {"squeeze", run_squeeze}, {"rej_uniform 504", run_rej}, {"cbd2", run_cbd2},
	    {"cbd3", run_cbd3}, {"ntt", run_ntt}, {"invntt", run_invntt},
	    {"mulcache", run_mulcache}, {"basemul 3", run_basemul3},
	    {"tomont", run_tomont}, {"add", run_add}, {"compress 4", run_compress4},
	    {"compress 10", run_compress10}, {"compress 11", run_compress11},
	    {"decompress 10", run_decompress10}, {"pack12", run_pack12},
	    {"unpack12", run_unpack12}, {"check12", run_check12}};

	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
		double least, ns = measure(kernels[i].run, &least);

		printf("%-18s %8.1f ns  (%.1f)\n", kernels[i].name, ns, least);
	}
}

/* Permutations an item, with the 3.065 blocks that a matrix entry takes on average. */
static double
permutations(enum kem_alg alg, char op)
{
	double k = (double)alg + 2, matrix = 3.065 * k * k;
	double hash = k * 3; /* blocks of H(ek) and of J(z || ct) for 768 */
	double j = hash;
	double noise = (alg == KEM_ALG_MLKEM512 ? 2 * k : k) + k;

	if (alg == KEM_ALG_MLKEM512)
		hash = 6, j = 6;
	if (alg == KEM_ALG_MLKEM1024)
		hash = 12, j = 12;
	if (op == 'k')
		return 1 + matrix + noise + hash;
	noise = (alg == KEM_ALG_MLKEM512 ? 2 * k : k) + k + 1;
	return 1 + matrix + noise + (op == 'e' ? hash : j);
}

int
main(int argc, char **argv)
{
	static const size_t sizes[] = {1, 2, 4, 8};
	double least, lane, scalar;

	if (backend_choose(argc > 1 ? argv[1] : NULL, &backend) < 0) {
		fprintf(stderr, "groups: no such backend here\n");
		return 1;
	}
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 24);
	for (unsigned i = 0; i < BACKEND_LANES_MAX; i++) {
		blocks[i] = bytes + 168 * i;
		outs[i] = bytes + 4096 + 256 * i;
	}
	shake128 = EVP_MD_fetch(NULL, "SHAKE128", NULL);
	measure(run_scalar, &least), scalar = least / SCALAR_BLOCKS;
	measure(run_keccak, &least), lane = least / backend->lanes;
	printf("backend %s\n", backend->name);
	printf("keccak: %.1f ns a lane (least %.1f), OpenSSL %.1f: %.2f times\n", lane,
	    least / backend->lanes, scalar, scalar / lane);
	report_kernels();
	for (set = KEM_ALG_MLKEM512; set <= KEM_ALG_MLKEM1024; set++) {
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			double us[3];

			n_items = sizes[i];
			group_reset(&group, set, n_items, "bench");
			for (size_t j = 0; j < n_items; j++)
				group.decaps[j].trusted = true;
			measure(run_keygen, &least),
			    us[0] = least / (double)n_items / 1e3;
			measure(run_encaps, &least),
			    us[1] = least / (double)n_items / 1e3;
			measure(run_decaps, &least),
			    us[2] = least / (double)n_items / 1e3;
			printf("%s batch %zu:", kem_alg_info(set)->name, n_items);
			for (unsigned op = 0; op < 3; op++)
				printf("  %c %6.3f us (%.2f)", "ked"[op], us[op],
				    us[op] * 1e3 /
					(lane * permutations(set, "ked"[op])));
			printf("\n");
		}
	}
	return 0;
}
