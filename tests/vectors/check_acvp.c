/* SPDX-License-Identifier: Apache-2.0 */
/* NIST's ACVP: key generation, encapsulation, decapsulation, key checks; tr1 too. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "vectors.h"

#define FILE_FIELDS "vsId algorithm mode revision isSample testGroups"

/* The answers of expectedResults.json by group and case; NULL: they stand in the test. */
static struct json_object *
answer_of(struct json_object *answers, size_t group, size_t test)
{
	struct json_object *groups, *tests;

	if (!answers)
		return NULL;
	groups = json_get(answers, "testGroups");
	for (size_t g = 0; g < json_len(groups); g++) {
		json_only(json_at(groups, g), "tgId tests");
		if (json_number(json_at(groups, g), "tgId") != group)
			continue;
		tests = json_get(json_at(groups, g), "tests");
		for (size_t t = 0; t < json_len(tests); t++) {
			if (json_number(json_at(tests, t), "tcId") == test)
				return json_at(tests, t);
		}
	}
	ck_abort_msg("no answer to case %zu of group %zu", test, group);
}

static void
keygen_case(struct vector *v, struct json_object *test, struct json_object *answer)
{
	json_only(answer, "tcId deferred z d ek dk");
	v->op = VECTOR_KEYGEN;
	v->seed = bytes_join(json_bytes(test, "d"), json_bytes(test, "z"));
	v->share = json_bytes(answer, "ek");
	v->dk = json_bytes(answer, "dk");
}

static void
encaps_case(struct vector *v, struct json_object *test, struct json_object *answer)
{
	json_only(answer, "tcId deferred ek dk c k m");
	v->op = VECTOR_ENCAPS;
	v->share = json_bytes(test, "ek");
	v->m = json_bytes(test, "m");
	v->ct = json_bytes(answer, "c");
	v->shared = json_bytes(answer, "k");
}

/* The key as the group says: tr1 gives it as a seed or expanded, the others expanded. */
static void
decaps_case(struct vector *v, struct json_object *test, struct json_object *answer,
    const char *format)
{
	json_only(answer, "tcId deferred ek dk z d c k reason");
	v->op = VECTOR_DECAPS;
	if (strcmp(format, "seed") == 0)
		v->seed = bytes_join(json_bytes(test, "d"), json_bytes(test, "z"));
	else
		v->dk = json_bytes(test, "dk");
	v->ct = json_bytes(test, "c");
	v->shared = json_bytes(answer, "k");
}

/* A key that is only looked at; and an operation with it on every path. */
static void
share_check_case(struct vector *v, struct json_object *test, struct json_object *answer)
{
	json_only(answer, "tcId testPassed deferred ek dk reason");
	v->op = VECTOR_ENCAPS;
	v->status = json_flag(answer, "testPassed") ? KEM_OK : KEM_E_SHARE;
	v->share = json_bytes(test, "ek");
	v->m = bytes_new((uint8_t[32]){1}, 32);
	ck_assert_int_eq(kem_check_share(test_kem(), v->alg, v->share.p, v->share.len,
			     test_scratch()),
	    v->status);
}

static void
key_check_case(struct vector *v, struct json_object *test, struct json_object *answer)
{
	static const uint8_t ct[KEM_CT_MAX];

	json_only(answer, "tcId testPassed deferred ek dk reason");
	v->op = VECTOR_DECAPS;
	v->status = json_flag(answer, "testPassed") ? KEM_OK : KEM_E_KEY;
	v->dk = json_bytes(test, "dk");
	v->ct = bytes_new(ct, kem_alg_info(v->alg)->ct_bytes);
	ck_assert_int_eq(
	    kem_check_dk(test_kem(), v->alg, v->dk.p, v->dk.len, test_scratch()),
	    v->status);
}

static void
case_read(struct vector *v, const char *function, const char *format,
    struct json_object *test, struct json_object *answer)
{
	if (!answer)
		answer = test;
	if (strcmp(function, "keyGen") == 0)
		keygen_case(v, test, answer);
	else if (strcmp(function, "encapsulation") == 0)
		encaps_case(v, test, answer);
	else if (strcmp(function, "decapsulation") == 0)
		decaps_case(v, test, answer, format);
	else if (strcmp(function, "encapsulationKeyCheck") == 0)
		share_check_case(v, test, answer);
	else if (strcmp(function, "decapsulationKeyCheck") == 0)
		key_check_case(v, test, answer);
	else
		ck_abort_msg("unknown function %s", function);
}

static void
group_read(struct vector_list *list, const char *mode, struct json_object *group,
    struct json_object *answers)
{
	struct json_object *tests = json_get(group, "tests");
	const char *function = mode, *format = "expanded";

	json_only(group, "tgId testType parameterSet function keyFormat tests");
	if (json_has(group, "function"))
		function = json_text(group, "function");
	if (json_has(group, "keyFormat"))
		format = json_text(group, "keyFormat");
	ck_assert(strcmp(format, "seed") == 0 || strcmp(format, "expanded") == 0 ||
		  strcmp(format, "none") == 0);
	for (size_t i = 0; i < json_len(tests); i++) {
		struct json_object *test = json_at(tests, i);
		struct vector *v = vector_add(list);

		v->id = (unsigned)json_number(test, "tcId");
		v->alg = json_alg(group, "parameterSet");
		case_read(v, function, format, test,
		    answer_of(answers, json_number(group, "tgId"), v->id));
	}
}

static void
file_read(
    struct vector_list *list, struct json_object *file, struct json_object *answers)
{
	struct json_object *groups = json_get(file, "testGroups");

	json_only(file, FILE_FIELDS);
	ck_assert_str_eq(json_text(file, "algorithm"), "ML-KEM");
	for (size_t i = 0; i < json_len(groups); i++)
		group_read(list, json_text(file, "mode"), json_at(groups, i), answers);
	vectors_ran(list->path, list->n, vectors_count(file));
}

static const char *const folders[] = {
    "acvp/ML-KEM-keyGen-FIPS203",
    "acvp/ML-KEM-encapDecap-FIPS203",
    "acvp/ML-KEM-encapDecap-FIPS203-tr1",
};

START_TEST(test_projection)
{
	char path[128];
	struct vector_list list = {.path = path};

	snprintf(path, sizeof(path), "%s/internalProjection.json", folders[_i]);
	file_read(&list, vectors_json(path), NULL);
	vectors_check(&list);
}
END_TEST

/* The same from the two files that a laboratory would get. */
START_TEST(test_prompt_and_results)
{
	char path[128], results[128];
	struct vector_list list = {.path = path};
	struct json_object *answers;

	snprintf(path, sizeof(path), "%s/prompt.json", folders[_i]);
	snprintf(results, sizeof(results), "%s/expectedResults.json", folders[_i]);
	answers = vectors_json(results);
	json_only(answers, FILE_FIELDS);
	file_read(&list, vectors_json(path), answers);
	vectors_ran(results, list.n, vectors_count(answers));
	vectors_check(&list);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("acvp");
	TCase *tc = tcase_create("acvp");

	tcase_set_timeout(tc, 600);
	tcase_add_checked_fixture(tc, NULL, vectors_forget);
	tcase_add_loop_test(tc, test_projection, 0, 3);
	tcase_add_loop_test(tc, test_prompt_and_results, 0, 3);
	suite_add_tcase(suite, tc);
	return vectors_main(argc, argv, suite);
}
