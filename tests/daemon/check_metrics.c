/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "rig.h"

/* A figure from which an implicit rejection could be read would be an oracle. */
static const char *const forbidden[] = {"reject", "implicit", "mismatch", "invalid_ct"};

START_TEST(each_field_is_summed_over_shards_under_its_own_name)
{
	static struct metrics_shard one, two;
	const struct metrics_shard *shards[] = {&one, &two};
	const char *names[METRICS_N_FIELDS];
	uint64_t n = 0;

#define SET(field, name, help) \
 metrics_set(&one.field, ++n); \
 metrics_add(&two.field, 1000 * n);
	METRICS_FIELDS(SET)
#undef SET
	ck_assert_uint_eq(n, METRICS_N_FIELDS);
	for (unsigned i = 0; i < METRICS_N_FIELDS; i++) {
		ck_assert_uint_eq(metrics_sum(shards, 2, i, &names[i]), 1001 * (i + 1));
		for (unsigned j = 0; j < i; j++)
			ck_assert_str_ne(names[i], names[j]);
	}
}
END_TEST

START_TEST(no_name_tells_of_a_rejection)
{
	static struct metrics_shard shard;
	const struct metrics_shard *shards[] = {&shard};

	for (unsigned i = 0; i < METRICS_N_FIELDS; i++) {
		const char *name;

		ck_assert_uint_eq(metrics_sum(shards, 1, i, &name), 0);
		for (size_t j = 0; j < sizeof(forbidden) / sizeof(forbidden[0]); j++)
			ck_assert_ptr_null(strstr(name, forbidden[j]));
	}
}
END_TEST

START_TEST(a_shard_counts_on_its_own_cache_lines)
{
	ck_assert_uint_eq(sizeof(struct metrics_shard) % 64, 0);
	ck_assert_uint_eq(_Alignof(struct metrics_shard), 64);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("metrics");
	TCase *tc = tcase_create("metrics");

	tcase_add_test(tc, each_field_is_summed_over_shards_under_its_own_name);
	tcase_add_test(tc, no_name_tells_of_a_rejection);
	tcase_add_test(tc, a_shard_counts_on_its_own_cache_lines);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
