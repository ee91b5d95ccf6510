/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/admission.h"
#include "rig.h"

static struct config config;
static uint32_t users[2], groups[2];
static int pair[2];

static void
setup(void)
{
	config =
	    (struct config){.allow_users = {users, 0}, .allow_groups = {groups, 0}};
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
}

static void
teardown(void)
{
	close(pair[0]);
	close(pair[1]);
}

START_TEST(only_who_is_listed)
{
	uid_t uid;

	/* Nobody is, not even root. */
	ck_assert(!admission_allows(pair[0], &config, &uid));
	ck_assert_uint_eq(uid, geteuid());
	users[0] = geteuid() + 1;
	groups[0] = getegid() + 1;
	config.allow_users.n = config.allow_groups.n = 1;
	ck_assert(!admission_allows(pair[0], &config, NULL));
	users[1] = geteuid();
	config.allow_users.n = 2;
	ck_assert(admission_allows(pair[0], &config, NULL));
	config.allow_users.n = 0;
	groups[1] = getegid();
	config.allow_groups.n = 2;
	ck_assert(admission_allows(pair[0], &config, NULL));
}
END_TEST

/* What the kernel does not vouch for is refused, whatever the lists say. */
START_TEST(no_credentials_no_entry)
{
	int fds[4] = {-1, open("/dev/null", O_RDONLY), socket(AF_INET, SOCK_STREAM, 0),
	    socket(AF_UNIX, SOCK_STREAM, 0)};
	uid_t uid;

	users[0] = 0;
	users[1] = geteuid();
	groups[0] = 0;
	config.allow_users.n = 2;
	config.allow_groups.n = 1;
	for (int i = 0; i < 4; i++) {
		ck_assert(!admission_allows(fds[i], &config, &uid));
		ck_assert_uint_eq(uid, (uid_t)-1);
		close(fds[i]);
	}
}
END_TEST

/* Of a peer that has since died, too: its pid, and so /proc, is not looked at. */
START_TEST(supplementary_groups_count)
{
	static const gid_t supplementary[] = {4711, 4712};
	int status, sockets[2];
	pid_t child;

	if (geteuid())
		return;
	child = fork();
	if (!child) {
		if (setgroups(2, supplementary) || setgid(4700) || setuid(4700) ||
		    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
			_exit(9);
		config.allow_groups.n = 1;
		groups[0] = 4712;
		status = !admission_allows(sockets[0], &config, NULL);
		groups[0] = 4700;
		status |= !admission_allows(sockets[0], &config, NULL) << 1;
		groups[0] = 4713;
		status |= admission_allows(sockets[0], &config, NULL) << 2;
		_exit(status);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("admission");
	TCase *tcase = tcase_create("admission");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, only_who_is_listed);
	tcase_add_test(tcase, no_credentials_no_entry);
	tcase_add_test(tcase, supplementary_groups_count);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
