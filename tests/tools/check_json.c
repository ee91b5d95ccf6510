/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: whatever a daemon calls itself, json-c reads the same back. */
#include <check.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/json.h"

/* Writes {"s": value, ...} and returns it parsed; line gets the text. */
static json_object *
round_trip(const char *value, char *line, size_t size)
{
	FILE *file = fmemopen(line, size, "w");
	json_object *object;
	struct json json;

	ck_assert_ptr_nonnull(file);
	json_begin(&json, file);
	json_string(&json, "s", value);
	json_number(&json, "n", UINT64_MAX);
	json_fixed(&json, "f", 1.5);
	json_flag(&json, "b", true);
	json_end(&json);
	fclose(file);
	ck_assert_ptr_nonnull(strchr(line, '\n'));
	ck_assert_int_eq(strchr(line, '\n')[1], '\0');
	object = json_tokener_parse(line);
	ck_assert_msg(object != NULL, "not JSON: %s", line);
	return object;
}

static void
expect(const char *value, const char *expected)
{
	char line[4096] = "";
	json_object *object = round_trip(value, line, sizeof(line)), *member;

	ck_assert(json_object_object_get_ex(object, "s", &member));
	ck_assert_str_eq(json_object_get_string(member), expected);
	ck_assert(json_object_object_get_ex(object, "n", &member));
	ck_assert(json_object_get_uint64(member) == UINT64_MAX);
	ck_assert(json_object_object_get_ex(object, "b", &member));
	ck_assert(json_object_get_boolean(member));
	json_object_put(object);
}

START_TEST(test_strings)
{
	char all[128];

	for (int c = 1; c < 128; c++)
		all[c - 1] = (char)c;
	all[127] = '\0';
	expect(all, all);
	expect("", "");
	expect("a\"b\\c\n</script>", "a\"b\\c\n</script>");
	expect("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\x91",
	    "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\x91");
}
END_TEST

#define REPLACEMENT "\xef\xbf\xbd"

START_TEST(test_what_is_no_utf8)
{
	expect("\xff"
	       "x",
	    REPLACEMENT "x");
	expect("a\xc3", "a" REPLACEMENT);
	/* Overlong, surrogate, beyond U+10FFFF, cut short (RFC 3629). */
	expect("\xc0\x80", REPLACEMENT REPLACEMENT);
	expect("\xe0\x80\x80", REPLACEMENT REPLACEMENT REPLACEMENT);
	expect("\xed\xa0\x80", REPLACEMENT REPLACEMENT REPLACEMENT);
	expect("\xf4\x90\x80\x80", REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT);
	expect("\xe2\x82", REPLACEMENT REPLACEMENT);
	expect("\xf0\x9f\x94", REPLACEMENT REPLACEMENT REPLACEMENT);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("json");
	TCase *tc = tcase_create("json");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, test_strings);
	tcase_add_test(tc, test_what_is_no_utf8);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
