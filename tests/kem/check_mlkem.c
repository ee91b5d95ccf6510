/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ML-KEM for groups: known answers, groups against single operations, bad items among
 * good ones. Rejection is in check_rejection.c.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "tests/kem/generic8.h"
#include "tests/kem/grouptest.h"
#include "tests/kem/kemtest.h"

/*
 * Known answers: the accumulated recipe of C2SP/CCTV, 100 rounds with dk, for final FIPS
 * 203. A group takes the rounds of up to eight; sizes go round.
 */
static const char *const accumulated[] = {
    "449120c6e320ef3e9fbfa2316e5f2d2e1e6dd37d8ff5d086d5d2db7d42aff0a1",
    "8d65b902f28edc683cebee2872962fd165a4d197c9e24ec74caa4470270df0b7",
    "c3ffe9ebecfa479c142656cbfbc6417efa05b77e994fe538eef4daed166363df",
};

/* One round: ek, dk, ct, K; then K of the ciphertext that means nothing. */
static void
accumulate(EVP_MD_CTX *ctx, struct group_of *g, size_t i, const uint8_t *random_ct)
{
	const struct kem_alg_info *info = kem_alg_info(g->set);
	size_t s_bytes = info->secret_bytes - 64u;
	struct pair *p = &g->pair[i];

	ck_assert_mem_eq(p->made, p->found, 32);
	EVP_DigestUpdate(ctx, p->ek, info->share_bytes);
	EVP_DigestUpdate(ctx, p->secret, s_bytes);
	EVP_DigestUpdate(ctx, p->ek, info->share_bytes);
	EVP_DigestUpdate(ctx, p->secret + s_bytes, 64);
	EVP_DigestUpdate(ctx, p->ct, info->ct_bytes);
	EVP_DigestUpdate(ctx, p->made, 32);
	g->decaps[i].ct = random_ct;
	mlkem_decaps(test_backend(), g->set, &g->decaps[i], 1, group_work);
	EVP_DigestUpdate(ctx, p->found, 32);
}

static void
accumulated_run(enum kem_alg set, size_t group, char *hex)
{
	static uint8_t stream[100 * (96 + KEM_CT_MAX)];
	const size_t round_bytes = 96 + kem_alg_info(set)->ct_bytes;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	const uint8_t *at = stream;
	uint8_t digest[32];
	static struct group_of g;

	ck_assert_int_eq(EVP_DigestInit_ex(ctx, EVP_shake128(), NULL), 1);
	ck_assert_int_eq(EVP_DigestFinalXOF(ctx, stream, 100 * round_bytes), 1);
	ck_assert_int_eq(EVP_DigestInit_ex(ctx, EVP_shake128(), NULL), 1);
	for (size_t done = 0; done < 100; done += g.n) {
		size_t n = 100 - done < group ? 100 - done : group;

		group_reset(&g, set, n, "unused");
		for (size_t i = 0; i < n; i++)
			memcpy(g.pair[i].d, at + i * round_bytes, 96);
		group_run(&g, test_backend());
		for (size_t i = 0; i < n; i++)
			accumulate(ctx, &g, i, at + i * round_bytes + 96);
		at += n * round_bytes;
	}
	ck_assert_int_eq(EVP_DigestFinalXOF(ctx, digest, 32), 1);
	for (size_t i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	EVP_MD_CTX_free(ctx);
}

START_TEST(test_known)
{
	const char *length = getenv("MLKEMD_TEST_LENGTH");
	char hex[65];

	if (length && strcmp(length, "quick") == 0 && _i != 0 && _i != 7)
		return; /* an emulated CPU has time for two of the sizes */
	for (size_t s = 0; s < 3; s++) {
		accumulated_run(group_sets[s], 1 + (size_t)_i, hex);
		ck_assert_str_eq(hex, accumulated[s]);
	}
}
END_TEST

/* Without the byte k in G, as a draft had it, the first key is another. */
START_TEST(test_known_control)
{
	char hex[65];

	if (!test_has_hooks())
		return;
	setenv("MLKEMD_FAULT", "kem-no-k", 1);
	for (size_t s = 0; s < 3; s++) {
		accumulated_run(group_sets[s], 8, hex);
		ck_assert_str_ne(hex, accumulated[s]);
	}
	unsetenv("MLKEMD_FAULT");
}
END_TEST

/* The same d makes other keys in another set. */
START_TEST(test_sets_differ)
{
	static struct group_of a, b;

	group_reset(&a, KEM_ALG_MLKEM512, 1, "sets");
	group_reset(&b, KEM_ALG_MLKEM768, 1, "sets");
	memcpy(b.pair[0].d, a.pair[0].d, 32);
	group_run(&a, test_backend());
	group_run(&b, test_backend());
	ck_assert_mem_ne(a.pair[0].ek + 768, b.pair[0].ek + 1152, 32); /* rho */
}
END_TEST

/* Group sizes 1 to 8 give what single operations give, whatever is in work before. */
static void
groups_check(const struct backend *backend)
{
	static struct group_of group, single;

	for (size_t s = 0; s < 3; s++) {
		for (size_t n = 1; n <= N_MAX; n++) {
			memset(group_work, (int)(0x11 * n), sizeof group_work);
			group_reset(&group, group_sets[s], n, "groups");
			group_reset(&single, group_sets[s], n, "groups");
			group_run(&group, backend);
			group_run_singly(&single, &backend_generic);
			ck_assert_mem_eq(group.pair, single.pair, sizeof group.pair);
			for (size_t i = 0; i < n; i++) {
				ck_assert_mem_eq(
				    group.pair[i].made, group.pair[i].found, 32);
				ck_assert_int_eq(group.encaps[i].status, KEM_OK);
				ck_assert_int_eq(group.decaps[i].status, KEM_OK);
			}
		}
	}
}

START_TEST(test_groups)
{
	struct backend four;

	groups_check(test_backend());
	generic4_init(&four);
	groups_check(&four);
}
END_TEST

/* The same key in every lane, the same item twice. */
START_TEST(test_same_key)
{
	static struct group_of g;

	for (size_t s = 0; s < 3; s++) {
		group_reset(&g, group_sets[s], N_MAX, "same");
		mlkem_keygen(test_backend(), g.set, g.keygen, 1, group_work);
		for (size_t i = 1; i < N_MAX; i++) {
			g.encaps[i].ek = g.encaps[0].ek;
			g.decaps[i].s = g.decaps[0].s;
			g.decaps[i].ek = g.decaps[0].ek;
			g.decaps[i].h = g.decaps[0].h;
			g.decaps[i].z = g.decaps[0].z;
		}
		g.encaps[7].m = g.encaps[2].m;
		mlkem_encaps(test_backend(), g.set, g.encaps, N_MAX, group_work);
		mlkem_decaps(test_backend(), g.set, g.decaps, N_MAX, group_work);
		for (size_t i = 0; i < N_MAX; i++)
			ck_assert_mem_eq(g.pair[i].made, g.pair[i].found, 32);
		ck_assert_mem_eq(
		    g.pair[7].ct, g.pair[2].ct, kem_alg_info(g.set)->ct_bytes);
		ck_assert_mem_eq(g.pair[7].made, g.pair[2].made, 32);
		ck_assert_mem_ne(g.pair[6].made, g.pair[2].made, 32);
	}
}
END_TEST

/* A share that is not reduced, at each position: no result, neighbours untouched. */
START_TEST(test_bad_share)
{
	static struct group_of good, bad;
	static struct mlkem_encaps_item looked[N_MAX];

	for (size_t s = 0; s < 3; s++) {
		const struct kem_alg_info *info = kem_alg_info(group_sets[s]);
		size_t t_bytes = info->share_bytes - 32u;

		group_reset(&good, group_sets[s], N_MAX, "share");
		group_run(&good, test_backend());
		for (size_t at = 0; at <= N_MAX; at++) { /* N_MAX: all of them */
			group_reset(&bad, group_sets[s], N_MAX, "share");
			mlkem_keygen(
			    test_backend(), bad.set, bad.keygen, N_MAX, group_work);
			for (size_t i = 0; i < N_MAX; i++) {
				uint8_t *ek = bad.pair[i].ek;

				if (i != at && at != N_MAX)
					continue;
				/* q, in the first coefficient or in the last */
				if (i & 1) {
					ek[0] = 0x01;
					ek[1] = (uint8_t)((ek[1] & 0xf0) | 0x0d);
				} else {
					ek[t_bytes - 2] =
					    (uint8_t)((ek[t_bytes - 2] & 0x0f) | 0x10);
					ek[t_bytes - 1] = 0xd0;
				}
			}
			memcpy(looked, bad.encaps, sizeof looked);
			mlkem_check_ek(
			    test_backend(), bad.set, looked, N_MAX, group_work);
			mlkem_encaps(
			    test_backend(), bad.set, bad.encaps, N_MAX, group_work);
			group_canaries(&bad);
			for (size_t i = 0; i < N_MAX; i++) {
				const struct pair *p = &bad.pair[i];
				bool is_bad = i == at || at == N_MAX;

				ck_assert_int_eq(
				    looked[i].status, is_bad ? KEM_E_SHARE : KEM_OK);
				ck_assert_int_eq(
				    bad.encaps[i].status, looked[i].status);
				ck_assert(
				    test_is_zero(p->ct, info->ct_bytes) == is_bad);
				ck_assert(test_is_zero(p->made, 32) == is_bad);
				if (is_bad)
					continue;
				ck_assert_mem_eq(
				    p->ct, good.pair[i].ct, info->ct_bytes);
				ck_assert_mem_eq(p->made, good.pair[i].made, 32);
			}
		}
	}
}
END_TEST

/*
 * Bit flips in each part of a decapsulation key, at each position: H(ek) and ek are
 * noticed where the key is not trusted; z is free.
 */
START_TEST(test_bad_key)
{
	static struct group_of good, bad;

	for (size_t s = 0; s < 3; s++) {
		const struct kem_alg_info *info = kem_alg_info(group_sets[s]);
		size_t h_at = info->secret_bytes - 64u;

		group_reset(&good, group_sets[s], N_MAX, "key");
		group_run(&good, test_backend());
		for (size_t at = 0; at < 3 * N_MAX; at++) {
			size_t who = at / 3;

			group_reset(&bad, group_sets[s], N_MAX, "key");
			group_run(&bad, test_backend());
			for (size_t i = 0; i < N_MAX; i++)
				bad.decaps[i].trusted = false;
			if (at % 3 == 0)
				bad.pair[who].secret[h_at + 31 - at] ^= 0x10;
			if (at % 3 == 1)
				bad.pair[who].ek[at * 7 % info->share_bytes] ^= 1;
			if (at % 3 == 2)
				bad.pair[who].secret[h_at + 32 + at % 32] ^= 0x80;
			mlkem_check_dk(
			    test_backend(), bad.set, bad.decaps, N_MAX, group_work);
			for (size_t i = 0; i < N_MAX; i++)
				ck_assert_int_eq(bad.decaps[i].status,
				    i == who && at % 3 != 2 ? KEM_E_KEY : KEM_OK);
			mlkem_decaps(
			    test_backend(), bad.set, bad.decaps, N_MAX, group_work);
			group_canaries(&bad);
			for (size_t i = 0; i < N_MAX; i++) {
				bool is_bad = i == who && at % 3 != 2;

				ck_assert_int_eq(
				    bad.decaps[i].status, is_bad ? KEM_E_KEY : KEM_OK);
				ck_assert(
				    test_is_zero(bad.pair[i].found, 32) == is_bad);
				if (!is_bad)
					ck_assert_mem_eq(
					    bad.pair[i].found, good.pair[i].made, 32);
			}
		}
	}
}
END_TEST

/* Unreduced values in a key that is not looked at don't harm anybody. */
START_TEST(test_wild_key)
{
	static struct group_of g;

	for (size_t s = 0; s < 3; s++) {
		group_reset(&g, group_sets[s], N_MAX, "wild");
		group_run(&g, test_backend());
		memset(g.pair[3].secret, 0xff,
		    kem_alg_info(group_sets[s])->secret_bytes - 64u);
		memset(g.pair[3].ek, 0xff, kem_alg_info(group_sets[s])->share_bytes);
		mlkem_decaps(test_backend(), g.set, g.decaps, N_MAX, group_work);
		ck_assert_int_eq(g.decaps[3].status, KEM_OK); /* 3 is trusted */
		for (size_t i = 0; i < N_MAX; i++)
			ck_assert((memcmp(g.pair[i].made, g.pair[i].found, 32) == 0) ==
				  (i != 3));
	}
}
END_TEST

/* No items: nothing happens. */
START_TEST(test_none)
{
	for (size_t s = 0; s < 3; s++) {
		mlkem_keygen(test_backend(), group_sets[s], NULL, 0, group_work);
		mlkem_encaps(test_backend(), group_sets[s], NULL, 0, group_work);
		mlkem_decaps(test_backend(), group_sets[s], NULL, 0, group_work);
		mlkem_check_ek(test_backend(), group_sets[s], NULL, 0, group_work);
		mlkem_check_dk(test_backend(), group_sets[s], NULL, 0, group_work);
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("mlkem");
	TCase *tcase = tcase_create("mlkem");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, test_known, 0, N_MAX);
	tcase_add_test(tcase, test_known_control);
	tcase_add_test(tcase, test_sets_differ);
	tcase_add_test(tcase, test_groups);
	tcase_add_test(tcase, test_same_key);
	tcase_add_test(tcase, test_bad_share);
	tcase_add_test(tcase, test_bad_key);
	tcase_add_test(tcase, test_wild_key);
	tcase_add_test(tcase, test_none);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
