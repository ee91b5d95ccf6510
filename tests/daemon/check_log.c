/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "rig.h"

static char got[65536];
static int file = -1, old_stderr = -1;

static void
setup(void)
{
	char path[] = "/tmp/check-log-XXXXXX";

	file = mkstemp(path);
	ck_assert_int_ge(file, 0);
	unlink(path);
	old_stderr = dup(STDERR_FILENO);
	dup2(file, STDERR_FILENO);
	log_set_level(LOG_INFO);
}

static void
teardown(void)
{
	dup2(old_stderr, STDERR_FILENO);
	close(old_stderr);
	close(file);
}

/* What was logged since the last call. */
static const char *
logged(void)
{
	ssize_t n = pread(file, got, sizeof(got) - 1, 0);

	ck_assert_int_ge(n, 0);
	got[n] = '\0';
	ck_assert_int_eq(ftruncate(file, 0), 0);
	lseek(file, 0, SEEK_SET);
	return got;
}

START_TEST(a_line_has_priority_event_and_text)
{
	log_event(LOG_ERR, "listen-failed", "%s: %d", "/a b", 7);
	ck_assert_str_eq(logged(), "<3>listen-failed: /a b: 7\n");
}
END_TEST

START_TEST(the_level_decides)
{
	log_event(LOG_DEBUG, "hello", "x");
	ck_assert_str_eq(logged(), "");
	log_set_level(LOG_DEBUG);
	log_event(LOG_DEBUG, "hello", "x");
	ck_assert_str_eq(logged(), "<7>hello: x\n");
	log_set_level(LOG_ERR);
	log_event(LOG_WARNING, "hello", "x");
	log_event_limited(LOG_WARNING, "hello", "x");
	ck_assert_str_eq(logged(), "");
}
END_TEST

/* A client's name must not be able to end the line or write one of its own. */
START_TEST(what_peers_chose_is_escaped)
{
	log_event(LOG_INFO, "hello", "\"%s\"", "a\n<3>b\033[2J\177\303\244\t");
	ck_assert_str_eq(
	    logged(), "<6>hello: \"a\\x0a<3>b\\x1b[2J\\x7f\\xc3\\xa4\\x09\"\n");
}
END_TEST

START_TEST(long_texts_are_cut)
{
	static char text[5000];
	size_t len;

	memset(text, '\n', sizeof(text) - 1);
	log_event(LOG_INFO, "hello", "%s", text);
	len = strlen(logged());
	ck_assert_uint_gt(len, 500);
	ck_assert_uint_lt(len, 1200);
	ck_assert_int_eq(got[len - 1], '\n');
	ck_assert_ptr_eq(strchr(got, '\n'), got + len - 1);
}
END_TEST

START_TEST(repeated_lines_are_limited_and_counted)
{
	for (int i = 0; i < 1000; i++)
		log_event_limited(LOG_NOTICE, "peer-denied", "uid %d", i);
	log_event_limited(LOG_NOTICE, "frame-broken", "another event");
	ck_assert_str_eq(
	    logged(), "<5>peer-denied: uid 0\n<5>frame-broken: another event\n");
	usleep(1100000);
	log_event_limited(LOG_NOTICE, "peer-denied", "again");
	log_event_limited(LOG_NOTICE, "peer-denied", "again");
	ck_assert_str_eq(logged(), "<5>peer-denied: again (999 more like this)\n");
	/* It goes on: the next one has to wait for two seconds. */
	usleep(1200000);
	log_event_limited(LOG_NOTICE, "peer-denied", "too soon");
	ck_assert_str_eq(logged(), "");
	usleep(900000);
	log_event_limited(LOG_NOTICE, "peer-denied", "late");
	ck_assert_str_eq(logged(), "<5>peer-denied: late (2 more like this)\n");
}
END_TEST

static volatile sig_atomic_t waited;

static void
note_wait(int signal)
{
	waited = 1;
}

enum { MANY_LINES = 4000 }; /* more than a pipe holds */

/* stderr is a pipe that nobody reads; ends early if a line waits for room so long. */
static void
fill_a_pipe(int pipe_fds[2], unsigned seconds)
{
	struct sigaction action = {.sa_handler = note_wait}; /* write(2) ends */

	ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
	dup2(pipe_fds[1], STDERR_FILENO);
	waited = 0;
	sigaction(SIGALRM, &action, NULL);
	alarm(seconds);
	for (int i = 0; i < MANY_LINES && !waited; i++)
		log_event(LOG_INFO, "hello", "a line of some length, number %d", i);
	alarm(0);
}

static void
close_pipe(int pipe_fds[2])
{
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

START_TEST(a_full_pipe_stops_nobody)
{
	static char drained[1 << 17];
	int pipe_fds[2], n_written = 0;
	ssize_t n;

	fill_a_pipe(pipe_fds, 60);
	ck_assert(!waited);
	n = read(pipe_fds[0], drained, sizeof(drained));
	ck_assert_int_gt(n, 0);
	for (ssize_t i = 0; i < n; i++)
		n_written += drained[i] == '\n';
	ck_assert_int_gt(n_written, 0);
	ck_assert_int_lt(n_written, MANY_LINES);
	log_event(LOG_INFO, "hello", "after");
	log_event(LOG_INFO, "hello", "again");
	n = read(pipe_fds[0], drained, sizeof(drained) - 1);
	ck_assert_int_gt(n, 0);
	drained[n] = '\0';
	snprintf(got, sizeof(got),
	    "<6>hello: after (%d lines lost before this)\n<6>hello: again\n",
	    MANY_LINES - n_written);
	ck_assert_str_eq(drained, got);
	close_pipe(pipe_fds);
}
END_TEST

START_TEST(a_line_that_waits_is_seen)
{
	int pipe_fds[2];

	if (!rig_hooks())
		return;
	rig_fault("log-blocks");
	fill_a_pipe(pipe_fds, 3);
	ck_assert(waited);
	close_pipe(pipe_fds);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("log");
	TCase *tcase = tcase_create("log");

	tcase_set_timeout(tcase, 80);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_line_has_priority_event_and_text);
	tcase_add_test(tcase, the_level_decides);
	tcase_add_test(tcase, what_peers_chose_is_escaped);
	tcase_add_test(tcase, long_texts_are_cut);
	tcase_add_test(tcase, a_full_pipe_stops_nobody);
	tcase_add_test(tcase, a_line_that_waits_is_seen);
	tcase_add_test(tcase, repeated_lines_are_limited_and_counted);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
