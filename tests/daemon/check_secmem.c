/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

#define SIZE (256u * 1024u)

/* Can this byte be read? The kernel says so without a signal. */
static bool
readable(const uint8_t *p)
{
	int fds[2];
	ssize_t n;

	ck_assert_int_eq(pipe(fds), 0);
	n = write(fds[1], p, 1);
	ck_assert(n == 1 || errno == EFAULT);
	close(fds[0]);
	close(fds[1]);
	return n == 1;
}

/* The VmFlags line of /proc/self/smaps for the mapping that begins at p. */
static void
vm_flags(const uint8_t *p, char *flags, size_t size)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	char line[512];
	bool here = false;

	ck_assert_ptr_nonnull(smaps);
	flags[0] = '\0';
	while (fgets(line, sizeof(line), smaps) != NULL) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from <= (uintptr_t)p && (uintptr_t)p < to;
		else if (here && !strncmp(line, "VmFlags:", 8))
			snprintf(flags, size, "%s ", line + 8);
	}
	fclose(smaps);
	ck_assert_str_ne(flags, "");
}

/* Is there a mapping without any rights that ends, or begins, at p? */
static bool
guard_at(const uint8_t *p, bool ends)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], rights[5];
	bool found = false;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps) != NULL) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3 &&
		    (ends ? to : from) == (uintptr_t)p && !strncmp(rights, "---", 3))
			found = true;
	}
	fclose(maps);
	return found;
}

static void
arena_is_guarded(const struct secmem *secmem)
{
	ck_assert(readable(secmem->base));
	ck_assert(readable(secmem->base + secmem->size - 1));
	ck_assert(!readable(secmem->base - 1));
	ck_assert(!readable(secmem->base + secmem->size));
	ck_assert(guard_at(secmem->base, true));
	ck_assert(guard_at(secmem->base + secmem->size, false));
}

static void
child_must_not_read(const uint8_t *p)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(readable(p) ? 1 : 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

START_TEST(carving_is_aligned_zero_and_ends)
{
	struct secmem secmem;
	uint8_t *last = NULL, *p;
	size_t n = 0;

	ck_assert_int_eq(secmem_init(&secmem, SIZE, SECMEM_PREFER), 0);
	while ((p = secmem_carve(&secmem, 1000)) != NULL) {
		ck_assert_uint_eq((uintptr_t)p % 64, 0);
		ck_assert(last == NULL || p == last + 1024);
		for (size_t i = 0; i < 1000; i++)
			ck_assert_uint_eq(p[i], 0);
		memset(p, 0xff, 1000);
		last = p;
		n++;
	}
	ck_assert_uint_eq(n, SIZE / 1024);
	ck_assert_ptr_null(secmem_carve(&secmem, SIZE_MAX));
	secmem_fini(&secmem);
	ck_assert_ptr_null(secmem.base);
	secmem_fini(&secmem); /* the zero state is fine */
}
END_TEST

START_TEST(every_mode_has_guards_and_does_not_fork)
{
	static const enum secmem_policy policies[] = {SECMEM_PREFER, SECMEM_OFF};
	struct secmem secmem;

	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(secmem_init(&secmem, SIZE, policies[i]), 0);
		arena_is_guarded(&secmem);
		child_must_not_read(secmem.base);
		secmem_fini(&secmem);
	}
}
END_TEST

/* The control of the test above: memory that is not ours alone is seen by a child. */
START_TEST(ordinary_memory_is_seen_by_a_child)
{
	uint8_t *p = malloc(64);
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(readable(p) ? 1 : 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	free(p);
}
END_TEST

START_TEST(secret_pages_are_out_of_reach_for_the_kernel_too)
{
	struct secmem secmem;
	uint8_t copy[16];
	struct iovec to = {copy, sizeof(copy)}, from;

	ck_assert_int_eq(secmem_init(&secmem, SIZE, SECMEM_PREFER), 0);
	if (secmem.mode == SECMEM_MODE_MEMFD_SECRET) {
		ck_assert_ptr_null(secmem.why);
		from = (struct iovec){secmem.base, sizeof(copy)};
		ck_assert_int_eq(process_vm_readv(getpid(), &to, 1, &from, 1, 0), -1);
		/* The control: an ordinary arena can be read that way. */
		secmem_fini(&secmem);
		ck_assert_int_eq(secmem_init(&secmem, SIZE, SECMEM_OFF), 0);
		from = (struct iovec){secmem.base, sizeof(copy)};
		ck_assert_int_eq(process_vm_readv(getpid(), &to, 1, &from, 1, 0), 16);
	} else {
		ck_assert_ptr_nonnull(
		    secmem.why); /* this kernel has none: it says so */
	}
	secmem_fini(&secmem);
}
END_TEST

START_TEST(without_memfd_secret_it_is_locked_and_not_dumped)
{
	struct secmem secmem;
	char flags[512];

	if (!rig_hooks())
		return;
	rig_fault("no-memfd-secret");
	ck_assert_int_eq(secmem_init(&secmem, SIZE, SECMEM_REQUIRE), 0);
	ck_assert_int_eq(secmem.mode, SECMEM_MODE_MLOCK);
	ck_assert_ptr_nonnull(secmem.why);
	vm_flags(secmem.base, flags, sizeof(flags));
	ck_assert_ptr_nonnull(strstr(flags, " lo "));
	ck_assert_ptr_nonnull(strstr(flags, " dd "));
	ck_assert_ptr_nonnull(strstr(flags, " dc "));
	secmem_fini(&secmem);
}
END_TEST

START_TEST(policies_differ_when_nothing_can_be_had)
{
	struct secmem secmem;
	char flags[512];

	if (!rig_hooks())
		return;
	rig_fault("no-memfd-secret,no-mlock");
	ck_assert_int_lt(secmem_init(&secmem, SIZE, SECMEM_REQUIRE), 0);
	ck_assert_ptr_null(secmem.base);
	ck_assert_int_eq(secmem_init(&secmem, SIZE, SECMEM_PREFER), 0);
	ck_assert_int_eq(secmem.mode, SECMEM_MODE_OFF);
	ck_assert_ptr_nonnull(strstr(secmem.why, "RLIMIT_MEMLOCK"));
	vm_flags(secmem.base, flags, sizeof(flags));
	ck_assert_ptr_null(strstr(flags, " lo "));
	ck_assert_ptr_nonnull(strstr(flags, " dd "));
	arena_is_guarded(&secmem);
	secmem_fini(&secmem);
}
END_TEST

/* Under a limit that is too small, by the kernel's own refusal. */
START_TEST(a_small_memlock_limit_is_told_from_none)
{
	struct rlimit limit = {65536, 65536};
	struct secmem secmem;
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(1);
		if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
			_exit(2);
		if (secmem_init(&secmem, SIZE, SECMEM_REQUIRE) >= 0)
			_exit(3);
		if (secmem_init(&secmem, SIZE, SECMEM_PREFER) != 0)
			_exit(4);
		if (secmem.mode != SECMEM_MODE_OFF || secmem.why == NULL)
			_exit(5);
		secmem_fini(&secmem);
		/* The control: what fits is had. */
		if (secmem_init(&secmem, 32768, SECMEM_REQUIRE) != 0)
			_exit(6);
		_exit(secmem.mode == SECMEM_MODE_OFF ? 7 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(modes_have_names)
{
	ck_assert_str_eq(secmem_mode_name(SECMEM_MODE_MEMFD_SECRET), "memfd_secret");
	ck_assert_str_eq(secmem_mode_name(SECMEM_MODE_MLOCK), "mlock");
	ck_assert_str_eq(secmem_mode_name(SECMEM_MODE_OFF), "off");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("secmem");
	TCase *tc = tcase_create("secmem");

	tcase_add_test(tc, carving_is_aligned_zero_and_ends);
	tcase_add_test(tc, every_mode_has_guards_and_does_not_fork);
	tcase_add_test(tc, ordinary_memory_is_seen_by_a_child);
	tcase_add_test(tc, secret_pages_are_out_of_reach_for_the_kernel_too);
	tcase_add_test(tc, without_memfd_secret_it_is_locked_and_not_dumped);
	tcase_add_test(tc, policies_differ_when_nothing_can_be_had);
	tcase_add_test(tc, a_small_memlock_limit_is_told_from_none);
	tcase_add_test(tc, modes_have_names);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
