/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/listener.h"
#include "daemon/log.h"
#include "rig.h"

static char dir[64], path[200];
static struct listener listener;
static struct event_base *base;
static int accepted[512];
static unsigned n_accepted;

static void
on_accepted(void *owner, int fd)
{
	accepted[n_accepted++] = fd;
}

static void
setup(void)
{
	strcpy(dir, "/tmp/check-listener-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s.sock", dir);
	listener_reset(&listener);
	listener.path = path;
	listener.mode = 0600;
	listener.accepted = on_accepted;
	base = event_base_new();
	n_accepted = 0;
	log_set_level(LOG_EMERG);
}

static void
teardown(void)
{
	char command[128];

	rig_fault(NULL);
	listener_close(&listener);
	event_base_free(base);
	for (unsigned i = 0; i < n_accepted; i++)
		close(accepted[i]);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static struct listener
another(void)
{
	struct listener other;

	listener_reset(&other);
	other.path = path;
	other.mode = 0600;
	return other;
}

static int
client(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(addr.sun_path, path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		int err = errno;

		close(fd);
		return -err;
	}
	return fd;
}

/* A socket of somebody else's at the path; backlog < 0: nobody listens. */
static int
somebody(int backlog)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(addr.sun_path, path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	if (backlog >= 0)
		ck_assert_int_eq(listen(fd, backlog), 0);
	return fd;
}

static unsigned
files_in_dir(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	unsigned n = 0;

	while ((entry = readdir(d)))
		n += entry->d_name[0] != '.';
	closedir(d);
	return n;
}

START_TEST(exact_mode_and_group_whatever_the_umask)
{
	static const mode_t masks[] = {0, 022, 027, 077, 0777};
	static const mode_t modes[] = {0666, 0660, 0600, 0777, 0};
	struct stat st;

	for (size_t i = 0; i < 25; i++) {
		mode_t before = umask(masks[i / 5]);

		listener.mode = modes[i % 5];
		listener.group = geteuid() ? (gid_t)-1 : 12345;
		ck_assert_int_eq(listener_open(&listener), 0);
		ck_assert_uint_eq(umask(before), masks[i / 5]);
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, modes[i % 5]);
		if (!geteuid())
			ck_assert_uint_eq(st.st_gid, 12345);
		listener_close(&listener);
	}
}
END_TEST

START_TEST(nothing_is_left_behind)
{
	ck_assert_int_eq(listener_open(&listener), 0);
	ck_assert_uint_eq(files_in_dir(), 2);
	listener_close(&listener);
	ck_assert_uint_eq(files_in_dir(), 0);
	listener_close(&listener); /* once more does no harm */
}
END_TEST

START_TEST(the_second_is_refused)
{
	struct listener other = another();
	int fd;

	ck_assert_int_eq(listener_open(&listener), 0);
	ck_assert_int_eq(listener_open(&other), -EADDRINUSE);
	ck_assert(listener_holds_path(&listener));
	fd = client();
	ck_assert_int_ge(fd, 0);
	close(fd);
}
END_TEST

/* The lock holds even where the socket's file has been removed. */
START_TEST(the_lock_decides)
{
	struct listener other = another();

	ck_assert_int_eq(listener_open(&listener), 0);
	unlink(path);
	ck_assert_int_eq(listener_open(&other), -EADDRINUSE);
	ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(control_without_the_lock_two_listen)
{
	struct listener other = another();

	if (!rig_hooks())
		return;
	rig_fault("accept-no-lock");
	ck_assert_int_eq(listener_open(&listener), 0);
	unlink(path);
	ck_assert_int_eq(listener_open(&other), 0);
	listener_close(&other);
}
END_TEST

START_TEST(a_stale_socket_is_replaced)
{
	int fd;

	close(somebody(5));
	ck_assert_int_eq(client(), -ECONNREFUSED);
	ck_assert_int_eq(listener_open(&listener), 0);
	fd = client();
	ck_assert_int_ge(fd, 0);
	close(fd);
}
END_TEST

START_TEST(a_living_one_is_left_alone)
{
	struct stat before, after;
	int fd = somebody(5);

	stat(path, &before);
	ck_assert_int_eq(listener_open(&listener), -EADDRINUSE);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	close(fd);
}
END_TEST

START_TEST(a_full_backlog_is_alive)
{
	int fd = somebody(0), clients[16];
	unsigned n = 0;

	while (n < 16 && (clients[n] = client()) >= 0)
		n++;
	ck_assert_int_eq(clients[n], -EAGAIN);
	ck_assert_int_eq(listener_open(&listener), -EADDRINUSE);
	ck_assert_int_eq(access(path, F_OK), 0);
	while (n--)
		close(clients[n]);
	close(fd);
}
END_TEST

START_TEST(what_is_no_socket_is_left_alone)
{
	struct stat before, after;
	char target[100];

	snprintf(target, sizeof(target), "%s/target", dir);
	close(open(target, O_CREAT | O_WRONLY, 0644));
	for (int kind = 0; kind < 4; kind++) {
		if (kind == 0)
			close(open(path, O_CREAT | O_WRONLY, 0644));
		else if (kind == 1)
			ck_assert_int_eq(mkdir(path, 0755), 0);
		else
			ck_assert_int_eq(
			    symlink(kind == 2 ? target : "/nowhere/at/all", path), 0);
		lstat(path, &before);
		ck_assert_int_lt(listener_open(&listener), 0);
		ck_assert_int_eq(lstat(path, &after), 0);
		ck_assert_uint_eq(before.st_ino, after.st_ino);
		ck_assert_uint_eq(before.st_mode, after.st_mode);
		ck_assert_int_eq(access(target, F_OK), 0);
		ck_assert_int_eq(remove(path), 0);
	}
}
END_TEST

START_TEST(paths_of_every_length)
{
	static const size_t lengths[] = {106, 107, 108, 109, 200};

	for (size_t i = 0; i < 5; i++) {
		char name[256];
		size_t len = strlen(dir);

		memset(name, 'x', sizeof(name));
		memcpy(name, dir, len);
		name[len] = '/';
		name[lengths[i]] = '\0';
		listener.path = name;
		if (lengths[i] <= LISTENER_PATH_MAX) {
			ck_assert_int_eq(listener_open(&listener), 0);
			ck_assert_int_eq(access(name, F_OK), 0);
			listener_close(&listener);
		} else {
			ck_assert_int_eq(listener_open(&listener), -ENAMETOOLONG);
		}
		/* Not at a name that was cut, either. */
		ck_assert_uint_eq(files_in_dir(), 0);
		listener.path = path;
	}
}
END_TEST

START_TEST(only_its_own_is_unlinked)
{
	int fd;

	ck_assert_int_eq(listener_open(&listener), 0);
	unlink(path);
	fd = somebody(5);
	ck_assert(!listener_holds_path(&listener));
	listener_close(&listener);
	ck_assert_int_eq(access(path, F_OK), 0);
	close(fd);
}
END_TEST

/* Runs the loop for so long; returns its rounds. */
static unsigned
run_ms(unsigned ms)
{
	struct timeval tv = {.tv_usec = ms * 1000};
	unsigned rounds = 0;

	event_base_loopexit(base, &tv);
	do {
		event_base_loop(base, EVLOOP_ONCE);
		rounds++;
	} while (!event_base_got_exit(base));
	return rounds;
}

START_TEST(out_of_descriptors_it_pauses_and_recovers)
{
	struct rlimit limit, low;
	int clients[20];

	ck_assert_int_eq(listener_open(&listener), 0);
	ck_assert_int_eq(listener_start(&listener, base), 0);
	for (int i = 0; i < 20; i++)
		clients[i] = client();
	getrlimit(RLIMIT_NOFILE, &limit);
	low = limit;
	low.rlim_cur = (rlim_t)clients[19] + 6;
	setrlimit(RLIMIT_NOFILE, &low);
	ck_assert_uint_lt(run_ms(450), 20); /* level triggered, it would be thousands */
	ck_assert_uint_eq(n_accepted, 5);
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < 100 && n_accepted < 20; i++)
		run_ms(100);
	ck_assert_uint_eq(n_accepted, 20);
	for (int i = 0; i < 20; i++)
		close(clients[i]);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("listener");
	TCase *tcase = tcase_create("listener");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, exact_mode_and_group_whatever_the_umask);
	tcase_add_test(tcase, nothing_is_left_behind);
	tcase_add_test(tcase, the_second_is_refused);
	tcase_add_test(tcase, the_lock_decides);
	tcase_add_test(tcase, control_without_the_lock_two_listen);
	tcase_add_test(tcase, a_stale_socket_is_replaced);
	tcase_add_test(tcase, a_living_one_is_left_alone);
	tcase_add_test(tcase, a_full_backlog_is_alive);
	tcase_add_test(tcase, what_is_no_socket_is_left_alone);
	tcase_add_test(tcase, paths_of_every_length);
	tcase_add_test(tcase, only_its_own_is_unlinked);
	tcase_add_test(tcase, out_of_descriptors_it_pauses_and_recovers);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
