/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of a backend: by name, by environment, by default; never another one than
 * was asked for. And that no table has a hole.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kem/arch/backend.h"
#include "kem/arch/dispatch.h"
#include "tests/kem/kemtest.h"

static const char *const impossible[] = {"", " ", "Generic", "generic ", "generic8",
    "gener", "avx2,generic", "auto", "sse9", "../generic"};

START_TEST(test_by_name)
{
	const struct backend *backend = NULL;

	setenv("MLKEMD_BACKEND", "no-such", 1); /* the argument wins */
	ck_assert_int_eq(backend_choose("generic", &backend), 0);
	ck_assert_ptr_eq(backend, &backend_generic);
	for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
		backend = &backend_generic;
		ck_assert_int_eq(
		    backend_choose(impossible[i], &backend), KEM_FAIL_BACKEND);
		ck_assert_ptr_null(backend);
	}
}
END_TEST

START_TEST(test_by_environment)
{
	const struct backend *backend = NULL;

	setenv("MLKEMD_BACKEND", "generic", 1);
	ck_assert_int_eq(backend_choose(NULL, &backend), 0);
	ck_assert_ptr_eq(backend, &backend_generic);
	for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
		setenv("MLKEMD_BACKEND", impossible[i], 1);
		backend = &backend_generic;
		ck_assert_int_eq(backend_choose(NULL, &backend), KEM_FAIL_BACKEND);
		ck_assert_ptr_null(backend);
	}
	unsetenv("MLKEMD_BACKEND");
	ck_assert_int_eq(backend_choose(NULL, &backend), 0);
	ck_assert_ptr_nonnull(backend);
}
END_TEST

/* All members behind `lanes` are pointers to functions. */
static unsigned
holes(const struct backend *backend)
{
	const size_t first = offsetof(struct backend, keccak);
	unsigned n = 0;

	_Static_assert((sizeof(struct backend) - offsetof(struct backend, keccak)) %
			       sizeof(void *) ==
			   0,
	    "pointers only");
	for (size_t at = first; at < sizeof *backend; at += sizeof(void *)) {
		void *pointer;

		memcpy(&pointer, (const char *)backend + at, sizeof pointer);
		n += pointer == NULL;
	}
	return n;
}

START_TEST(test_table)
{
	const struct backend *backend = test_backend();
	struct backend bad = *backend;

	ck_assert_str_eq(backend->name, getenv("MLKEMD_BACKEND"));
	ck_assert(backend->lanes == 1 || backend->lanes == 4 || backend->lanes == 8);
	ck_assert_uint_eq(holes(backend), 0);
	bad.decompress[COMPRESS_11] = NULL;
	bad.select = NULL;
	ck_assert_uint_eq(holes(&bad), 2);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("dispatch");
	TCase *tcase = tcase_create("dispatch");

	setenv("MLKEMD_BACKEND", "generic", 0);
	tcase_add_test(tcase, test_by_name);
	tcase_add_test(tcase, test_by_environment);
	tcase_add_test(tcase, test_table);
	suite_add_tcase(suite, tcase);
	return test_main(argc, argv, suite);
}
