/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "rig.h"

static struct rig rig;
static struct rig_pair pair;
static uint32_t owned; /* keys, of whoever adds them */

#define LATER 1000000u

static void
setup(void)
{
	owned = 0;
	rig_open(&rig, 0);
	rig_pair_make(&rig, KEM_ALG_X25519MLKEM768, &pair);
}

static void
teardown(void)
{
	rig_close(&rig);
}

static void
add(uint64_t conn_id, uint64_t expires_us, uint8_t handle[WIRE_HANDLE_BYTES])
{
	ck_assert_int_eq(keytable_add(rig.keys, conn_id, KEM_ALG_X25519MLKEM768,
			     pair.share, pair.secret, expires_us, &owned, handle),
	    0);
}

static bool
take(uint64_t conn_id, const uint8_t *handle, uint64_t now_us)
{
	uint8_t secret[KEM_SECRET_MAX], share[KEM_SHARE_MAX];
	bool taken = keytable_take(rig.keys, conn_id, handle, now_us, secret, share);

	if (taken) {
		const struct kem_alg_info *alg = kem_alg_info(KEM_ALG_X25519MLKEM768);

		ck_assert_mem_eq(secret, pair.secret, alg->secret_bytes);
		ck_assert_mem_eq(share, pair.share, alg->share_bytes);
	}
	return taken;
}

static bool
secret_in_arena(void)
{
	return rig_in_arena(&rig, pair.secret, 32) ||
	       rig_in_arena(&rig, pair.secret + 1200, 32);
}

START_TEST(a_handle_is_used_once)
{
	uint8_t handle[WIRE_HANDLE_BYTES];
	enum kem_alg alg;

	add(RIG_CONN, LATER, handle);
	ck_assert_uint_eq(keytable_count(rig.keys), 1);
	ck_assert_uint_eq(rig.metrics.handles, 1);
	ck_assert(keytable_peek(rig.keys, RIG_CONN, handle, 0, &alg));
	ck_assert_int_eq(alg, KEM_ALG_X25519MLKEM768);
	ck_assert(take(RIG_CONN, handle, 0)); /* looking did not spend it */
	ck_assert(!take(RIG_CONN, handle, 0));
	ck_assert(!keytable_peek(rig.keys, RIG_CONN, handle, 0, &alg));
	ck_assert(!keytable_release(rig.keys, RIG_CONN, handle));
	ck_assert_uint_eq(keytable_count(rig.keys), 0);
	ck_assert_uint_eq(rig.metrics.handles, 0);
}
END_TEST

START_TEST(a_foreign_handle_is_none_and_stays_its_owners)
{
	uint8_t handle[WIRE_HANDLE_BYTES], near[WIRE_HANDLE_BYTES];
	enum kem_alg alg;

	add(RIG_CONN, LATER, handle);
	ck_assert(!keytable_peek(rig.keys, RIG_CONN + 1, handle, 0, &alg));
	ck_assert(!take(RIG_CONN + 1, handle, 0));
	ck_assert(!keytable_release(rig.keys, RIG_CONN + 1, handle));
	for (unsigned bit = 0; bit < 8 * WIRE_HANDLE_BYTES; bit++) {
		memcpy(near, handle, sizeof(near));
		near[bit / 8] ^= 1u << bit % 8;
		ck_assert(!take(RIG_CONN, near, 0));
	}
	ck_assert(take(RIG_CONN, handle, 0));
}
END_TEST

START_TEST(an_expired_handle_is_none)
{
	uint8_t handle[WIRE_HANDLE_BYTES];

	add(RIG_CONN, LATER, handle);
	ck_assert(!take(RIG_CONN, handle, LATER));
	ck_assert(take(RIG_CONN, handle, LATER - 1));
}
END_TEST

/* A lifetime made shorter by a reload: younger keys may go first. */
START_TEST(expiry_takes_the_soonest_first_whatever_came_first)
{
	uint8_t handle[3][WIRE_HANDLE_BYTES];

	add(RIG_CONN, 300, handle[0]);
	add(RIG_CONN, 100, handle[1]);
	add(RIG_CONN, 200, handle[2]);
	keytable_expire(rig.keys, 99);
	ck_assert_uint_eq(keytable_count(rig.keys), 3);
	keytable_expire(rig.keys, 100);
	ck_assert_uint_eq(keytable_count(rig.keys), 2);
	ck_assert(!take(RIG_CONN, handle[1], 0));
	keytable_expire(rig.keys, 250);
	ck_assert_uint_eq(keytable_count(rig.keys), 1);
	ck_assert(take(RIG_CONN, handle[0], 250));
	ck_assert_uint_eq(rig.metrics.handles_expired_total, 2);
}
END_TEST

START_TEST(a_full_table_says_so_and_takes_more_after_a_release)
{
	uint8_t handle[RIG_KEYS + 1][WIRE_HANDLE_BYTES];

	for (unsigned i = 0; i < RIG_KEYS; i++) {
		ck_assert_uint_eq(keytable_room(rig.keys), RIG_KEYS - i);
		add(i, LATER, handle[i]);
	}
	ck_assert_uint_eq(keytable_room(rig.keys), 0);
	ck_assert_int_eq(keytable_add(rig.keys, 0, KEM_ALG_X25519MLKEM768, pair.share,
			     pair.secret, LATER, &owned, handle[RIG_KEYS]),
	    KEYTABLE_E_FULL);
	ck_assert(keytable_release(rig.keys, 3, handle[3]));
	add(99, LATER, handle[RIG_KEYS]);
	ck_assert(take(99, handle[RIG_KEYS], 0));
}
END_TEST

START_TEST(handles_are_random_and_never_repeat)
{
	uint8_t handle[64][WIRE_HANDLE_BYTES];
	unsigned ones = 0;

	for (unsigned i = 0; i < 64; i++) {
		add(RIG_CONN, LATER, handle[i]);
		ck_assert(keytable_release(rig.keys, RIG_CONN, handle[i]));
		for (unsigned j = 0; j < i; j++)
			ck_assert_mem_ne(handle[i], handle[j], WIRE_HANDLE_BYTES);
		for (unsigned j = 0; j < WIRE_HANDLE_BYTES; j++)
			ones += (unsigned)__builtin_popcount(handle[i][j]);
	}
	/* 8192 fair coins: 4096 +- 6 standard deviations. */
	ck_assert_uint_gt(ones, 4096 - 272);
	ck_assert_uint_lt(ones, 4096 + 272);
}
END_TEST

START_TEST(no_randomness_no_handle)
{
	uint8_t handle[WIRE_HANDLE_BYTES];

	if (!rig_hooks())
		return;
	rig_fault("rng-fail");
	ck_assert_int_eq(keytable_add(rig.keys, RIG_CONN, KEM_ALG_X25519MLKEM768,
			     pair.share, pair.secret, LATER, &owned, handle),
	    KEM_FAIL_RNG);
	rig_fault(NULL);
	ck_assert_uint_eq(keytable_count(rig.keys), 0);
	ck_assert(!secret_in_arena());
	add(RIG_CONN, LATER, handle);
}
END_TEST

START_TEST(every_kind_of_algorithm_fits)
{
	for (enum kem_alg alg = 0; alg < KEM_N_ALGS; alg++) {
		const struct kem_alg_info *info = kem_alg_info(alg);
		uint8_t secret[KEM_SECRET_MAX], share[KEM_SHARE_MAX];
		uint8_t handle[WIRE_HANDLE_BYTES];
		struct rig_pair other;
		enum kem_alg seen;

		rig_pair_make(&rig, alg, &other);
		ck_assert_int_eq(keytable_add(rig.keys, RIG_CONN, alg, other.share,
				     other.secret, LATER, &owned, handle),
		    0);
		ck_assert(keytable_peek(rig.keys, RIG_CONN, handle, 0, &seen));
		ck_assert_int_eq(seen, alg);
		ck_assert(keytable_take(rig.keys, RIG_CONN, handle, 0, secret, share));
		ck_assert_mem_eq(secret, other.secret, info->secret_bytes);
		ck_assert_mem_eq(share, other.share, info->share_bytes);
	}
}
END_TEST

enum { GO_TAKE, GO_RELEASE, GO_CONN, GO_EXPIRE, GO_N };

static void
go(int way, const uint8_t *handle)
{
	switch (way) {
	case GO_TAKE:
		ck_assert(take(RIG_CONN, handle, 0));
		break;
	case GO_RELEASE:
		ck_assert(keytable_release(rig.keys, RIG_CONN, handle));
		break;
	case GO_CONN:
		keytable_conn_gone(rig.keys, RIG_CONN);
		break;
	default:
		keytable_expire(rig.keys, LATER);
		break;
	}
	ck_assert_uint_eq(keytable_count(rig.keys), 0);
}

START_TEST(a_key_is_wiped_whichever_way_it_goes)
{
	uint8_t handle[WIRE_HANDLE_BYTES];

	add(RIG_CONN, LATER, handle);
	ck_assert(secret_in_arena());
	go(_i, handle);
	ck_assert(!secret_in_arena());
}
END_TEST

START_TEST(a_missing_wipe_is_seen)
{
	uint8_t handle[WIRE_HANDLE_BYTES];

	if (!rig_hooks())
		return;
	rig_fault("keytable-no-wipe");
	add(RIG_CONN, LATER, handle);
	go(_i, handle);
	ck_assert(secret_in_arena());
}
END_TEST

/* Against a plain list, with few connections and few slots, so that chains collide. */
START_TEST(it_agrees_with_a_list)
{
	struct {
		bool live;
		uint64_t conn_id, expires_us;
		uint8_t handle[WIRE_HANDLE_BYTES];
	} model[RIG_KEYS] = {0};
	uint64_t now_us = 0;

	srandom(20);
	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = (unsigned)random() % RIG_KEYS, n_live = 0;
		uint64_t conn_id = (uint64_t)(random() % 4) * RIG_KEYS; /* one chain */
		unsigned what = (unsigned)random() % 16;

		if (what == 0) {
			keytable_conn_gone(rig.keys, conn_id);
			for (unsigned j = 0; j < RIG_KEYS; j++)
				if (model[j].conn_id == conn_id)
					model[j].live = false;
		} else if (what == 1) {
			now_us += (unsigned)random() % 50;
			keytable_expire(rig.keys, now_us);
			for (unsigned j = 0; j < RIG_KEYS; j++)
				if (model[j].expires_us <= now_us)
					model[j].live = false;
		} else if (!model[i].live) {
			model[i].live = true;
			model[i].conn_id = conn_id;
			model[i].expires_us = now_us + 1 + (unsigned)random() % 300;
			add(conn_id, model[i].expires_us, model[i].handle);
		} else if (what < 8) {
			ck_assert_int_eq(take(conn_id, model[i].handle, now_us),
			    conn_id == model[i].conn_id);
			if (conn_id == model[i].conn_id)
				model[i].live = false;
		} else {
			ck_assert_int_eq(
			    keytable_release(rig.keys, conn_id, model[i].handle),
			    conn_id == model[i].conn_id);
			if (conn_id == model[i].conn_id)
				model[i].live = false;
		}
		for (unsigned j = 0; j < RIG_KEYS; j++)
			n_live += model[j].live;
		ck_assert_uint_eq(keytable_count(rig.keys), n_live);
	}
	for (unsigned j = 0; j < RIG_KEYS; j++)
		if (model[j].live)
			ck_assert(take(model[j].conn_id, model[j].handle, now_us));
	ck_assert_uint_eq(keytable_count(rig.keys), 0);
	ck_assert(!secret_in_arena());
}
END_TEST

START_TEST(a_table_for_no_keys_is_always_full)
{
	struct keytable *none = NULL;
	uint8_t handle[WIRE_HANDLE_BYTES];
	enum kem_alg alg;

	ck_assert_int_eq(keytable_new(&none, 0, rig.kem, &rig.secmem, &rig.metrics), 0);
	ck_assert_int_eq(keytable_add(none, 1, KEM_ALG_MLKEM512, pair.share,
			     pair.secret, LATER, &owned, handle),
	    KEYTABLE_E_FULL);
	memset(handle, 0, sizeof(handle));
	ck_assert(!keytable_peek(none, 1, handle, 0, &alg));
	keytable_conn_gone(none, 1);
	keytable_expire(none, UINT64_MAX);
	ck_assert_ptr_null(keytable_free(none));
	ck_assert_ptr_null(keytable_free(NULL));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("keytable");
	TCase *tc = tcase_create("keytable");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_handle_is_used_once);
	tcase_add_test(tc, a_foreign_handle_is_none_and_stays_its_owners);
	tcase_add_test(tc, an_expired_handle_is_none);
	tcase_add_test(tc, expiry_takes_the_soonest_first_whatever_came_first);
	tcase_add_test(tc, a_full_table_says_so_and_takes_more_after_a_release);
	tcase_add_test(tc, handles_are_random_and_never_repeat);
	tcase_add_test(tc, no_randomness_no_handle);
	tcase_add_test(tc, every_kind_of_algorithm_fits);
	tcase_add_loop_test(tc, a_key_is_wiped_whichever_way_it_goes, 0, GO_N);
	tcase_add_loop_test(tc, a_missing_wipe_is_seen, 0, GO_N);
	tcase_add_test(tc, it_agrees_with_a_list);
	tcase_add_test(tc, a_table_for_no_keys_is_always_full);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
