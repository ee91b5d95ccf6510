/* SPDX-License-Identifier: Apache-2.0 */
#include "conn_rig.h"
#include "daemon/conn_priv.h"
#include "daemon/user.h"

static struct user_table table;

static void
open_table(void)
{
	user_table_init(&table);
}

START_TEST(a_user_is_a_uid)
{
	struct user *a = user_join(&table, 1000, false);
	struct user *b = user_join(&table, 1001, false);
	struct user *stranger = user_join(&table, 1000, true);

	ck_assert_ptr_eq(user_join(&table, 1000, false), a);
	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_ne(a, stranger);
	/* Those who are refused are one, whoever they are. */
	ck_assert_ptr_eq(user_join(&table, 1002, true), stranger);
	ck_assert_uint_eq(table.n_users, 2);
	user_leave(a);
	ck_assert_uint_eq(table.n_users, 2);
	user_leave(a);
	ck_assert_uint_eq(table.n_users, 1);
	user_leave(b);
	user_leave(stranger);
	user_leave(stranger);
	ck_assert_uint_eq(table.n_users, 0);
	ck_assert(TAILQ_EMPTY(&table.all));
}
END_TEST

START_TEST(users_alternate_and_their_connections_too)
{
	struct user *a = user_join(&table, 1, false), *b = user_join(&table, 2, false);
	struct conn conns[3] = {{.user = a}, {.user = a}, {.user = b}};
	const int order[] = {0, 2, 1, 2, 0};

	ck_assert_ptr_null(conn_turn_next(&table));
	for (int i = 0; i < 3; i++)
		conn_turn_add(conns[i].user, &conns[i]);
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		struct conn *conn = conn_turn_next(&table);

		ck_assert_ptr_eq(conn, &conns[order[i]]);
		conn_turn_pass(conn->user, conn);
	}
	conn_turn_remove(b, &conns[2]);
	ck_assert_ptr_eq(conn_turn_next(&table), &conns[1]);
	conn_turn_remove(a, &conns[1]);
	conn_turn_remove(a, &conns[0]);
	ck_assert_ptr_null(conn_turn_next(&table));
	user_leave(a);
	user_leave(b);
}
END_TEST

START_TEST(buffers_up_to_seven_times_what_is_free)
{
	struct user user = {.n_in = 60, .n_out = 5, .n_reserved = 5};

	ck_assert(user_may_hold(&user, 0, 10));
	ck_assert(!user_may_hold(&user, 1, 10)); /* 71 > 7 x 9 */
	ck_assert(user_may_hold(&user, 1, 12));
	ck_assert(!user_may_hold(&user, 13, 12));
	ck_assert(!user_may_hold(&user, UINT32_MAX, 12));
	user = (struct user){0};
	ck_assert(user_may_hold(&user, 1, 1)); /* who holds nothing gets the last */
	ck_assert(!user_may_hold(&user, 1, 0));
	user.n_in = 1;
	ck_assert(!user_may_hold(&user, 1, 1));
}
END_TEST

START_TEST(the_pool_is_shared_while_others_are_there)
{
	struct user *a = user_join(&table, 1, false), *b;
	const uint64_t t = 5000000;

	for (unsigned i = 0; i < 100; i++)
		ck_assert(user_take_pooled(a, 0, 10, 50, t));
	b = user_join(&table, 2, false);
	ck_assert(!user_take_pooled(a, 0, 10, 50, t + 999999));
	ck_assert(user_take_pooled(a, 1, 10, 50, t)); /* another pool */
	for (unsigned i = 0; i < 5; i++)
		ck_assert(user_take_pooled(b, 0, 10, 50, t));
	ck_assert(!user_take_pooled(b, 0, 10, 50, t));
	ck_assert(user_take_pooled(b, 0, 10, 50, t + 1000000));
	user_leave(b);
	ck_assert(user_take_pooled(a, 0, 10, 50, t));
	user_leave(a);
}
END_TEST

START_TEST(seats_are_counted_and_given_back)
{
	struct user_seat *seats = NULL, *taken[3], *other;

	for (int i = 0; i < 3; i++) {
		taken[i] = user_seat_take(&seats, 1000, 3);
		ck_assert_ptr_nonnull(taken[i]);
	}
	ck_assert_ptr_null(user_seat_take(&seats, 1000, 3));
	other = user_seat_take(&seats, 1001, 3);
	ck_assert_ptr_nonnull(other);
	user_seat_give(taken[0]);
	ck_assert_ptr_nonnull(user_seat_take(&seats, 1000, 3));
	/* A limit made smaller by a reload takes nobody's seat away. */
	ck_assert_ptr_null(user_seat_take(&seats, 1000, 1));
	/* The entry of who has none is the next one's. */
	user_seat_give(other);
	ck_assert_ptr_eq(user_seat_take(&seats, 1002, 3), other);
	ck_assert_uint_eq(other->uid, 1002);
	user_seats_free(seats);
}
END_TEST

START_TEST(missing_limits_are_seen)
{
	struct user_seat *seats = NULL;
	struct user user = {.n_in = 1000};

	if (!rig_hooks())
		return;
	rig_fault("user-no-limit");
	ck_assert_ptr_nonnull(user_seat_take(&seats, 1, 1));
	ck_assert_ptr_nonnull(user_seat_take(&seats, 1, 1));
	ck_assert(user_may_hold(&user, 1, 2));
	rig_fault(NULL);
	user_seats_free(seats);
}
END_TEST

START_TEST(a_share_is_at_least_one)
{
	ck_assert_uint_eq(user_share(0, 50), 1);
	ck_assert_uint_eq(user_share(1, 1), 1);
	ck_assert_uint_eq(user_share(1024, 50), 512);
	ck_assert_uint_eq(user_share(UINT32_MAX, 100), UINT32_MAX);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("user");
	TCase *tcase = tcase_create("user");

	tcase_add_checked_fixture(tcase, open_table, NULL);
	tcase_add_test(tcase, a_user_is_a_uid);
	tcase_add_test(tcase, users_alternate_and_their_connections_too);
	tcase_add_test(tcase, buffers_up_to_seven_times_what_is_free);
	tcase_add_test(tcase, the_pool_is_shared_while_others_are_there);
	tcase_add_test(tcase, seats_are_counted_and_given_back);
	tcase_add_test(tcase, missing_limits_are_seen);
	tcase_add_test(tcase, a_share_is_at_least_one);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
