/* SPDX-License-Identifier: Apache-2.0 */
/* kem.c: any number of items, and a bad one that leaves its neighbours alone. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "kem/mlkem.h"
#include "tests/kem/generic8.h"
#include "tests/kem/kemtest.h"

#define N_MAX 64

static const size_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 64};
#define N_COUNTS (sizeof(counts) / sizeof(counts[0]))

/* What single calls made, and what a batch makes of the same inputs. */
static struct test_item single[N_MAX], batch[N_MAX];
static struct kem_keygen_item keygen[N_MAX];
static struct kem_encaps_item encaps[N_MAX];
static struct kem_decaps_item decaps[N_MAX];
static uint8_t m[N_MAX][32];

static void
prepare(enum kem_alg alg, size_t n, const char *label)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), label);
	for (size_t i = 0; i < n; i++) {
		test_item_make(&single[i], alg, &stream);
		test_item_blank(&batch[i], alg);
		keygen[i] = test_keygen_item(&single[i], &batch[i]);
		encaps[i] = test_encaps_item(&single[i], &batch[i]);
		decaps[i] = test_decaps_item(&single[i], &batch[i]);
		memcpy(m[i], single[i].m, 32);
	}
}

static void
assert_keygen_equal(size_t i)
{
	const struct kem_alg_info *info = kem_alg_info(single[i].alg);

	ck_assert_int_eq(keygen[i].status, KEM_OK);
	ck_assert_mem_eq(batch[i].share, single[i].share, info->share_bytes);
	ck_assert_mem_eq(batch[i].secret, single[i].secret, info->secret_bytes);
	test_item_check(&batch[i]);
}

static void
assert_encaps_equal(size_t i)
{
	const struct kem_alg_info *info = kem_alg_info(single[i].alg);

	ck_assert_int_eq(encaps[i].status, KEM_OK);
	ck_assert_mem_eq(batch[i].ct, single[i].ct, info->ct_bytes);
	ck_assert_mem_eq(&batch[i].made, &single[i].made, sizeof(struct kem_shared));
	test_item_check(&batch[i]);
}

static void
assert_encaps_failed(size_t i, enum kem_status status)
{
	ck_assert_int_eq(encaps[i].status, status);
	ck_assert(test_is_zero(batch[i].ct, kem_alg_info(single[i].alg)->ct_bytes));
	ck_assert(test_is_zero(&batch[i].made, sizeof(struct kem_shared)));
	test_item_check(&batch[i]);
}

static void
assert_decaps_equal(size_t i)
{
	ck_assert_int_eq(decaps[i].status, KEM_OK);
	ck_assert_mem_eq(&batch[i].found, &single[i].made, sizeof(struct kem_shared));
	test_item_check(&batch[i]);
}

static void
assert_decaps_failed(size_t i, enum kem_status status)
{
	ck_assert_int_eq(decaps[i].status, status);
	ck_assert(test_is_zero(&batch[i].found, sizeof(struct kem_shared)));
	test_item_check(&batch[i]);
}

/* Used scratch is zero, what was not used is as it was. */
static void
scratch_fill(void)
{
	memset(test_scratch(), 0x5a, sizeof(struct kem_scratch));
}

static void
assert_scratch_wiped(void)
{
	const uint8_t *bytes = test_scratch()->bytes;

	for (size_t i = 0; i < KEM_SCRATCH_BYTES; i++) {
		if (bytes[i] != 0 && bytes[i] != 0x5a)
			ck_abort_msg(
			    "byte %zu of the scratch holds 0x%02x", i, bytes[i]);
	}
}

START_TEST(test_batch_equals_single)
{
	const enum kem_alg alg = (enum kem_alg)(_i / (int)N_COUNTS);
	const size_t n = counts[_i % (int)N_COUNTS];

	prepare(alg, n, "batch");
	scratch_fill();
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, n, test_scratch()), 0);
	assert_scratch_wiped();
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, n, m, test_scratch()), 0);
	assert_scratch_wiped();
	ck_assert_int_eq(kem_decaps(test_kem(), alg, decaps, n, test_scratch()), 0);
	assert_scratch_wiped();
	for (size_t i = 0; i < n; i++) {
		assert_keygen_equal(i);
		assert_encaps_equal(i);
		assert_decaps_equal(i);
	}
}
END_TEST

/*
 * Groups are full: 16 items take twice the permutations of 8, which are those of one call
 * of mlkem_encaps(), and bad items among them take none.
 */
START_TEST(test_groups_are_full)
{
	static _Alignas(64) uint8_t work[MLKEM_WORK_BYTES];
	const enum kem_alg alg = KEM_ALG_MLKEM768;
	struct mlkem_encaps_item direct[8];
	unsigned long n_one, n_two;

	if (test_backend() != &backend_generic8)
		return;
	prepare(alg, 20, "full");
	/* one key for all, so that rejected samples don't make a difference */
	for (size_t i = 0; i < 20; i++)
		encaps[i].share = single[0].share;
	for (size_t i = 0; i < 8; i++)
		direct[i] = (struct mlkem_encaps_item){.ek = single[0].share,
		    .m = m[i],
		    .ct = batch[i].ct,
		    .shared = batch[i].made.bytes};
	generic8_reset();
	mlkem_encaps(test_backend(), alg, direct, 8, work);
	n_one = generic8_counts().permutations;
	ck_assert_uint_gt(n_one, 27);
	generic8_reset();
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, 8, m, test_scratch()), 0);
	ck_assert_uint_eq(generic8_counts().permutations, n_one);
	for (size_t i = 1; i < 20; i += 5)
		encaps[i].share_len--;
	generic8_reset();
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, 20, m, test_scratch()), 0);
	n_two = generic8_counts().permutations;
	ck_assert_uint_eq(n_two, 2 * n_one);
}
END_TEST

/* The slots behind the last item are not touched. */
START_TEST(test_slots_past_the_end)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	struct test_item before;

	prepare(alg, 4, "past");
	before = batch[3];
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, 3, test_scratch()), 0);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, 3, m, test_scratch()), 0);
	ck_assert_int_eq(kem_decaps(test_kem(), alg, decaps, 3, test_scratch()), 0);
	ck_assert_mem_eq(&before, &batch[3], sizeof(before));
}
END_TEST

START_TEST(test_same_item_in_all_lanes)
{
	const enum kem_alg alg = (enum kem_alg)_i;

	prepare(alg, 8, "same");
	for (size_t i = 1; i < 8; i++) {
		single[i] = single[0];
		kem_private_from_parts(
		    &single[i].key, alg, single[i].secret, single[i].share);
		memcpy(m[i], m[0], 32);
	}
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, 8, test_scratch()), 0);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, 8, m, test_scratch()), 0);
	ck_assert_int_eq(kem_decaps(test_kem(), alg, decaps, 8, test_scratch()), 0);
	for (size_t i = 0; i < 8; i++) {
		assert_keygen_equal(i);
		assert_encaps_equal(i);
		assert_decaps_equal(i);
	}
}
END_TEST

static const size_t bad_counts[] = {1, 2, 7, 8, 9, 17};

/* Every wrong length of a share, at every place of a group and behind it. */
START_TEST(test_share_length)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const size_t right = kem_alg_info(alg)->share_bytes;
	const size_t wrong[] = {
	    0, 1, 32, right - 1, right + 1, 800, 1184, 1216, 1568, (size_t)-1};

	for (size_t c = 0; c < sizeof(bad_counts) / sizeof(bad_counts[0]); c++) {
		const size_t n = bad_counts[c];

		prepare(alg, n, "share");
		for (size_t bad = 0; bad < n; bad++) {
			const size_t len = wrong[(bad + c) % 10];

			if (len == right)
				continue;
			for (size_t i = 0; i < n; i++)
				test_item_blank(&batch[i], alg);
			encaps[bad].share_len = len;
			ck_assert_int_eq(kem_encaps_derand(test_kem(), alg, encaps, n,
					     m, test_scratch()),
			    0);
			for (size_t i = 0; i < n; i++) {
				if (i == bad)
					assert_encaps_failed(i, KEM_E_LENGTH);
				else
					assert_encaps_equal(i);
			}
			encaps[bad].share_len = right;
		}
	}
}
END_TEST

/* A value of q at the first, the last and a middle place (FIPS 203 7.2). */
START_TEST(test_share_modulus)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const size_t ek_values = kem_alg_info(alg)->secret_bytes / 384 * 256;
	const size_t places[] = {
	    0, 1, 255, 256, ek_values / 2, ek_values - 2, ek_values - 1};
	uint8_t *share, kept[3];

	prepare(alg, 9, "modulus");
	for (size_t bad = 0; bad < 9; bad++) {
		const size_t place = places[bad % 7];

		share = single[bad].share + place / 2 * 3;
		memcpy(kept, share, 3);
		if (place % 2 == 0) {
			share[0] = 0x01;
			share[1] = (uint8_t)((share[1] & 0xf0) | 0x0d);
		} else {
			share[1] = (uint8_t)((share[1] & 0x0f) | 0x10);
			share[2] = 0xd0;
		}
		ck_assert_int_eq(kem_check_share(test_kem(), alg, single[bad].share,
				     kem_alg_info(alg)->share_bytes, test_scratch()),
		    KEM_E_SHARE);
		ck_assert_int_eq(
		    kem_encaps_derand(test_kem(), alg, encaps, 9, m, test_scratch()),
		    0);
		for (size_t i = 0; i < 9; i++) {
			if (i == bad)
				assert_encaps_failed(i, KEM_E_SHARE);
			else
				assert_encaps_equal(i);
		}
		memcpy(share, kept, 3);
	}
}
END_TEST

START_TEST(test_ct_length)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const size_t right = kem_alg_info(alg)->ct_bytes;
	const size_t wrong[] = {
	    0, 1, 32, right - 1, right + 1, 768, 1088, 1120, 1568, (size_t)-1};

	prepare(alg, 17, "ct");
	for (size_t bad = 0; bad < 17; bad++) {
		const size_t len = wrong[bad % 10];

		if (len == right)
			continue;
		for (size_t i = 0; i < 17; i++)
			test_item_blank(&batch[i], alg);
		decaps[bad].ct_len = len;
		ck_assert_int_eq(
		    kem_decaps(test_kem(), alg, decaps, 17, test_scratch()), 0);
		for (size_t i = 0; i < 17; i++) {
			if (i == bad)
				assert_decaps_failed(i, KEM_E_LENGTH);
			else
				assert_decaps_equal(i);
		}
		decaps[bad].ct_len = right;
	}
}
END_TEST

START_TEST(test_key_of_another_algorithm)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	struct test_stream stream;
	struct test_item other;

	prepare(alg, 9, "alg");
	test_stream_init(&stream, test_seed(), "other");
	for (int o = 0; o < KEM_N_ALGS; o++) {
		if ((enum kem_alg)o == alg)
			continue;
		test_item_make(&other, (enum kem_alg)o, &stream);
		for (size_t bad = 0; bad < 9; bad++) {
			decaps[bad].key = &other.key;
			ck_assert_int_eq(
			    kem_decaps(test_kem(), alg, decaps, 9, test_scratch()), 0);
			for (size_t i = 0; i < 9; i++) {
				if (i == bad)
					assert_decaps_failed(i, KEM_E_ALG);
				else
					assert_decaps_equal(i);
			}
			decaps[bad].key = &single[bad].key;
		}
	}
}
END_TEST

/* FIPS 203 7.3: the hash of the encapsulation key, wrong in itself or of another key. */
START_TEST(test_key_hash)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const struct kem_alg_info *info = kem_alg_info(alg);
	static struct kem_private views[9];

	prepare(alg, 9, "hash");
	for (size_t i = 0; i < 9; i++) {
		ck_assert_int_eq(
		    kem_private_from_dk(&views[i], alg, single[i].dk, info->dk_bytes),
		    KEM_OK);
		ck_assert(!views[i].trusted);
		decaps[i].key = &views[i];
	}
	for (size_t bad = 0; bad < 9; bad++) {
		uint8_t *where = single[bad].dk +
				 (size_t)((bad % 2 ? views[bad].h : views[bad].ek) -
					  single[bad].dk) +
				 bad;

		*where ^= 0x10;
		ck_assert_int_eq(kem_check_dk(test_kem(), alg, single[bad].dk,
				     info->dk_bytes, test_scratch()),
		    KEM_E_KEY);
		ck_assert_int_eq(
		    kem_decaps(test_kem(), alg, decaps, 9, test_scratch()), 0);
		for (size_t i = 0; i < 9; i++) {
			if (i == bad)
				assert_decaps_failed(i, KEM_E_KEY);
			else
				assert_decaps_equal(i);
		}
		*where ^= 0x10;
		ck_assert_int_eq(kem_check_dk(test_kem(), alg, single[bad].dk,
				     info->dk_bytes, test_scratch()),
		    KEM_OK);
	}
}
END_TEST

/*
 * Every rejected value is exactly J(z || ct), computed by other code, and status and
 * neighbours show nothing; z itself is free to be anything.
 */
START_TEST(test_implicit_rejection)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const size_t ct_bytes = kem_alg_info(alg)->ct_bytes;
	const size_t ml_bytes = ct_bytes - (alg == KEM_ALG_X25519MLKEM768 ? 32 : 0);
	struct test_stream stream;
	struct kem_shared expected[9];

	prepare(alg, 9, "reject");
	test_stream_init(&stream, test_seed(), "flips");
	for (int round = 0; round < 60; round++) {
		for (size_t i = 0; i < 9; i++)
			expected[i] = single[i].made;
		for (size_t i = round % 9; i < 9;
		     i += 1 + test_stream_below(&stream, 4)) {
			single[i].ct[test_stream_below(&stream, (uint32_t)ml_bytes)] ^=
			    (uint8_t)(1u << test_stream_below(&stream, 8));
			test_rejected(
			    &expected[i], &single[i], single[i].ct, &single[i].made);
		}
		ck_assert_int_eq(
		    kem_decaps(test_kem(), alg, decaps, 9, test_scratch()), 0);
		for (size_t i = 0; i < 9; i++) {
			ck_assert_int_eq(decaps[i].status, KEM_OK);
			ck_assert_mem_eq(
			    &batch[i].found, &expected[i], sizeof(expected[i]));
			single[i].found = single[i].made;
		}
		for (size_t i = 0; i < 9; i++) {
			ck_assert_int_eq(
			    kem_encaps_derand(test_kem(), alg,
				&(struct kem_encaps_item){.share = single[i].share,
				    .share_len = kem_alg_info(alg)->share_bytes,
				    .ephemeral = &single[i].ephemeral,
				    .ct = single[i].ct,
				    .shared = &single[i].found},
				1, &m[i], test_scratch()),
			    0);
		}
	}
}
END_TEST

START_TEST(test_random_keys_differ)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	const struct kem_alg_info *info = kem_alg_info(alg);

	prepare(alg, 17, "random");
	for (size_t i = 0; i < 17; i++) {
		keygen[i].seed = NULL;
		encaps[i].share = batch[i].share;
		encaps[i].ephemeral = NULL;
		decaps[i].ct = batch[i].ct;
		single[i].key.alg = alg;
		kem_private_from_parts(
		    &single[i].key, alg, batch[i].secret, batch[i].share);
	}
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, 17, test_scratch()), 0);
	ck_assert_int_eq(kem_encaps(test_kem(), alg, encaps, 17, test_scratch()), 0);
	ck_assert_int_eq(kem_decaps(test_kem(), alg, decaps, 17, test_scratch()), 0);
	for (size_t i = 0; i < 17; i++) {
		ck_assert_int_eq(keygen[i].status, KEM_OK);
		ck_assert_int_eq(encaps[i].status, KEM_OK);
		ck_assert_int_eq(decaps[i].status, KEM_OK);
		ck_assert_mem_eq(
		    &batch[i].made, &batch[i].found, sizeof(struct kem_shared));
		for (size_t j = 0; j < i; j++) {
			ck_assert_mem_ne(batch[i].share, batch[j].share, 32);
			ck_assert_mem_ne(batch[i].share + info->share_bytes - 32,
			    batch[j].share + info->share_bytes - 32, 32);
			ck_assert_mem_ne(batch[i].secret + info->secret_bytes - 32,
			    batch[j].secret + info->secret_bytes - 32, 32);
			ck_assert_mem_ne(batch[i].ct, batch[j].ct, 32);
			ck_assert_mem_ne(&batch[i].made, &batch[j].made, 32);
		}
	}
	/* one key, many encapsulations */
	for (size_t i = 0; i < 9; i++)
		encaps[i].share = batch[16].share;
	ck_assert_int_eq(kem_encaps(test_kem(), alg, encaps, 9, test_scratch()), 0);
	for (size_t i = 1; i < 9; i++)
		ck_assert_mem_ne(&batch[i].made, &batch[0].made, 32);
}
END_TEST

/* Some items with a seed, some without: the seeded ones come out as always. */
START_TEST(test_seeds_among_random)
{
	const enum kem_alg alg = (enum kem_alg)_i;

	prepare(alg, 17, "mixed");
	for (size_t i = 0; i < 17; i += 3)
		keygen[i].seed = NULL;
	for (size_t i = 0; i < 17; i += 2)
		encaps[i].ephemeral = NULL;
	ck_assert_int_eq(kem_keygen(test_kem(), alg, keygen, 17, test_scratch()), 0);
	ck_assert_int_eq(
	    kem_encaps_derand(test_kem(), alg, encaps, 17, m, test_scratch()), 0);
	for (size_t i = 0; i < 17; i++) {
		ck_assert_int_eq(keygen[i].status, KEM_OK);
		ck_assert_int_eq(encaps[i].status, KEM_OK);
		if (i % 3)
			assert_keygen_equal(i);
		else
			ck_assert_mem_ne(batch[i].share, single[i].share, 32);
		ck_assert_mem_eq(&batch[i].made, &single[i].made, 32);
		if (i % 2)
			assert_encaps_equal(i);
		else if (alg == KEM_ALG_X25519MLKEM768)
			ck_assert_mem_ne(
			    batch[i].made.bytes + 32, single[i].made.bytes + 32, 32);
	}
}
END_TEST

/* Inputs and outputs at every offset from a cache line. */
START_TEST(test_any_alignment)
{
	static uint8_t share[KEM_SHARE_MAX + 64], secret[KEM_SECRET_MAX + 64];
	static uint8_t ct[KEM_CT_MAX + 64], seed[KEM_SEED_MAX + 64];
	static uint8_t shared[sizeof(struct kem_shared) + 64];
	const enum kem_alg alg = (enum kem_alg)_i;
	const struct kem_alg_info *info = kem_alg_info(alg);

	prepare(alg, 1, "alignment");
	for (size_t offset = 0; offset < 64; offset++) {
		struct kem_private key;
		struct kem_keygen_item k = {.seed = seed + offset,
		    .share = share + offset,
		    .secret = secret + offset};
		struct kem_encaps_item e = {.share = share + offset,
		    .share_len = info->share_bytes,
		    .ephemeral = &single[0].ephemeral,
		    .ct = ct + offset,
		    .shared = (struct kem_shared *)(shared + offset)};
		struct kem_decaps_item d = {.key = &key,
		    .ct = ct + offset,
		    .ct_len = info->ct_bytes,
		    .shared = (struct kem_shared *)(shared + offset)};

		memcpy(seed + offset, single[0].seed, info->seed_bytes);
		ck_assert_int_eq(kem_keygen(test_kem(), alg, &k, 1, test_scratch()), 0);
		ck_assert_mem_eq(share + offset, single[0].share, info->share_bytes);
		ck_assert_int_eq(
		    kem_encaps_derand(test_kem(), alg, &e, 1, m, test_scratch()), 0);
		ck_assert_mem_eq(shared + offset, &single[0].made, 64);
		kem_private_from_parts(&key, alg, secret + offset, share + offset);
		ck_assert_int_eq(kem_decaps(test_kem(), alg, &d, 1, test_scratch()), 0);
		ck_assert_mem_eq(shared + offset, &single[0].made, 64);
	}
}
END_TEST

START_TEST(test_random_rounds)
{
	const enum kem_alg alg = (enum kem_alg)_i;
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), kem_alg_info(alg)->name);
	for (size_t done = 0; done < 1000; done += N_MAX) {
		for (size_t i = 0; i < N_MAX; i++) {
			/* the direct path compares both sides itself */
			test_item_make(&single[i], alg, &stream);
			test_item_blank(&batch[i], alg);
			keygen[i] = test_keygen_item(&single[i], &batch[i]);
			encaps[i] = test_encaps_item(&single[i], &batch[i]);
			decaps[i] = test_decaps_item(&single[i], &batch[i]);
			memcpy(m[i], single[i].m, 32);
		}
		ck_assert_int_eq(
		    kem_keygen(test_kem(), alg, keygen, N_MAX, test_scratch()), 0);
		ck_assert_int_eq(kem_encaps_derand(
				     test_kem(), alg, encaps, N_MAX, m, test_scratch()),
		    0);
		ck_assert_int_eq(
		    kem_decaps(test_kem(), alg, decaps, N_MAX, test_scratch()), 0);
		for (size_t i = 0; i < N_MAX; i++) {
			assert_keygen_equal(i);
			assert_encaps_equal(i);
			assert_decaps_equal(i);
		}
	}
}
END_TEST

/* The host's error queue and default properties are its own. */
START_TEST(test_host_is_left_alone)
{
	struct kem *kem = NULL;

	prepare(KEM_ALG_X25519MLKEM768, 3, "host");
	ERR_clear_error();
	ERR_raise(ERR_LIB_USER, 42);
	ck_assert_int_eq(EVP_set_default_properties(NULL, "fips=yes"), 1);
	ck_assert_ptr_null(EVP_MD_fetch(NULL, "SHA256", NULL));
	ERR_clear_error();
	ERR_raise(ERR_LIB_USER, 42);
	ck_assert_int_eq(kem_open_with(&kem, test_backend()), 0);
	memset(single[1].share + 1184, 0, 32);
	ck_assert_int_eq(kem_encaps_derand(
			     kem, KEM_ALG_X25519MLKEM768, encaps, 3, m, test_scratch()),
	    0);
	assert_encaps_equal(0);
	assert_encaps_failed(1, KEM_E_ZERO);
	ck_assert_int_eq(ERR_GET_REASON(ERR_get_error()), 42);
	ck_assert_uint_eq(ERR_get_error(), 0);
	kem = kem_free(kem);
	ck_assert_ptr_null(kem);
	ck_assert_ptr_null(kem_free(NULL));
	EVP_set_default_properties(NULL, "");
}
END_TEST

START_TEST(test_unknown_backend)
{
	struct kem *kem = (struct kem *)1;

	ck_assert_int_eq(kem_open(&kem, "none-such"), KEM_FAIL_BACKEND);
	ck_assert_ptr_null(kem);
	setenv("MLKEMD_BACKEND", "none-such", 1);
	ck_assert_int_eq(kem_open(&kem, NULL), KEM_FAIL_BACKEND);
	ck_assert_ptr_null(kem);
	ck_assert_int_eq(kem_open(&kem, "generic"), 0);
	ck_assert_str_eq(kem_backend_name(kem), "generic");
	ck_assert_uint_eq(kem_backend_lanes(kem), 1);
	kem_free(kem);
}
END_TEST

/* One kem, many threads, each with a scratch of its own. */
static void *
thread_rounds(void *arg)
{
	struct kem_scratch *scratch = aligned_alloc(64, sizeof(*scratch));
	struct test_item item;
	const enum kem_alg alg = *(const enum kem_alg *)arg;
	struct kem_keygen_item k = {.share = item.share, .secret = item.secret};
	struct kem_encaps_item e = {.share = item.share,
	    .share_len = kem_alg_info(alg)->share_bytes,
	    .ct = item.ct,
	    .shared = &item.made};
	struct kem_decaps_item d = {.key = &item.key,
	    .ct = item.ct,
	    .ct_len = kem_alg_info(alg)->ct_bytes,
	    .shared = &item.found};
	size_t n_bad = 0;

	for (int i = 0; i < 20; i++) {
		if (kem_keygen(test_kem(), alg, &k, 1, scratch) < 0)
			n_bad++;
		kem_private_from_parts(&item.key, alg, item.secret, item.share);
		if (kem_encaps(test_kem(), alg, &e, 1, scratch) < 0 ||
		    kem_decaps(test_kem(), alg, &d, 1, scratch) < 0 ||
		    memcmp(&item.made, &item.found, sizeof(item.made)) != 0)
			n_bad++;
	}
	free(scratch);
	return (void *)n_bad;
}

START_TEST(test_threads)
{
	pthread_t threads[8];
	enum kem_alg algs[8];
	void *n_bad;

	(void)test_kem();
	for (size_t i = 0; i < 8; i++) {
		algs[i] = (enum kem_alg)(i % KEM_N_ALGS);
		ck_assert_int_eq(
		    pthread_create(&threads[i], NULL, thread_rounds, &algs[i]), 0);
	}
	for (size_t i = 0; i < 8; i++) {
		pthread_join(threads[i], &n_bad);
		ck_assert_ptr_null(n_bad);
	}
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("kem");
	TCase *tc = tcase_create("batches");

	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(
	    tc, test_batch_equals_single, 0, KEM_N_ALGS * (int)N_COUNTS);
	tcase_add_test(tc, test_groups_are_full);
	tcase_add_loop_test(tc, test_slots_past_the_end, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_same_item_in_all_lanes, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_any_alignment, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_random_keys_differ, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_seeds_among_random, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_random_rounds, 0, KEM_N_ALGS);
	suite_add_tcase(suite, tc);
	tc = tcase_create("bad items");
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, test_share_length, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_share_modulus, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_ct_length, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_key_of_another_algorithm, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_key_hash, 0, KEM_N_ALGS);
	tcase_add_loop_test(tc, test_implicit_rejection, 0, KEM_N_ALGS);
	suite_add_tcase(suite, tc);
	tc = tcase_create("surroundings");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, test_host_is_left_alone);
	tcase_add_test(tc, test_unknown_backend);
	tcase_add_test(tc, test_threads);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
