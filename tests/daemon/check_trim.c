/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the file leave memory and come back as they were; no others are touched. */
#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/trim.h"
#include "rig.h"

#define N_PAGES 512
#define PAGE    4096 /* at least; larger ones: fewer of them */

static const uint8_t constants[N_PAGES * PAGE] = {1, 2, 3, [sizeof(constants) - 1] = 4};
static uint8_t changed[N_PAGES * PAGE] = {1, 2, 3, [sizeof(changed) - 1] = 4};

/*
 * How many of the whole pages from p on are in this process's page table (proc(5)), or
 * UINT_MAX; fd is that of its pagemap. Whatever reads a constant beside p (ck_assert, a
 * sanitizer) brings in some pages around it: few of so many.
 */
static unsigned
count_present(int fd, const uint8_t *p)
{
	uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t page = (uintptr_t)p / size + 1;
	unsigned n = 0;
	uint64_t entry;

	for (uintptr_t end = ((uintptr_t)p + sizeof(constants)) / size; page < end;
	     page++) {
		if (pread(fd, &entry, sizeof(entry), (off_t)(page * sizeof(entry))) !=
		    sizeof(entry))
			return UINT_MAX;
		n += entry >> 63;
	}
	return n;
}

/* As many lie in it whole. */
static unsigned
count_whole(void)
{
	return (unsigned)(sizeof(constants) / (size_t)sysconf(_SC_PAGESIZE)) - 1;
}

static unsigned
sum(const volatile uint8_t *p)
{
	unsigned total = 0;

	for (size_t i = 0; i < sizeof(constants); i++)
		total += p[i];
	return total;
}

START_TEST(constants_leave_and_come_back)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	unsigned left;

	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(sum(constants), 10);
	ck_assert_uint_eq(
	    count_present(fd, constants), count_whole()); /* the control */
	trim_after_start();
	left = count_present(fd, constants);
	ck_assert_uint_lt(left, count_whole() / 2);
	ck_assert_uint_eq(sum(constants), 10);
	close(fd);
}
END_TEST

START_TEST(control_pages_that_stay_are_seen)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (!rig_hooks())
		return;
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(sum(constants), 10);
	rig_fault("trim-nothing");
	trim_after_start();
	ck_assert_uint_ge(count_present(fd, constants), count_whole());
	close(fd);
}
END_TEST

START_TEST(what_was_written_stays)
{
	uint8_t *heap = malloc(sizeof(changed));

	ck_assert_ptr_nonnull(heap);
	memset(heap, 5, sizeof(changed));
	memset(changed, 5, sizeof(changed));
	trim_after_start();
	ck_assert_uint_eq(sum(changed), 5 * sizeof(changed));
	ck_assert_mem_eq(heap, changed, sizeof(changed));
	free(heap);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("trim");
	TCase *tcase = tcase_create("trim");

	tcase_add_test(tcase, constants_leave_and_come_back);
	tcase_add_test(tcase, control_pages_that_stay_are_seen);
	tcase_add_test(tcase, what_was_written_stays);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
