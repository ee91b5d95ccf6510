/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when the daemon is gone, frozen or back again, when there are no
 * descriptors left, and what is said about it in the system's log.
 */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>

#include "host.h"
#include "tests/client-lib/rig.h"

#define N_QUEUED 200

static struct host host;
static struct daemon server;
static const struct alg *const alg = &algs[ALG_X25519MLKEM768];

static void
open_with_deadline(const char *lines)
{
	daemon_start(&server, NULL);
	host_open(&host, settings(server.path, "daemon", lines));
}

/* The server's part of a handshake. */
static bool
answer(void)
{
	static uint8_t share[MLKEMCLIENT_MAX_SHARE];
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT], secret[MLKEMCLIENT_MAX_SECRET];
	EVP_PKEY *peer;
	bool done;

	if (share[0] == 0 && share[1] == 0) {
		EVP_PKEY *own = pkey_generate(&host, alg, false);

		pkey_bytes(own, "pub", share, sizeof(share));
		EVP_PKEY_free(own);
	}
	peer = pkey_try_peer(&host, alg, share, alg->share);
	done = peer != NULL && pkey_try_encaps(&host, alg, peer, ct, secret) == 1 &&
	       !bytes_are(secret, alg->secret, 0);
	EVP_PKEY_free(peer);
	return done;
}

/* Many handshakes wait behind each other: only the first waits for the daemon. */
START_TEST(frozen)
{
	uint64_t start, seconds;
	int status;

	open_with_deadline("deadline = 2ms\n");
	start = rig_now_us();
	ck_assert(answer());
	kill(server.pid, SIGSTOP);
	ck_assert_int_eq(waitpid(server.pid, &status, WUNTRACED), server.pid);
	for (int i = 0; i < N_QUEUED; i++)
		ck_assert_msg(answer(), "%d: %s", i, host_errors());
	/* Each second, at most, the breaker lets one call try again. */
	seconds = (rig_now_us() - start) / 1000000;
	ck_assert_uint_ge(host_count(&host, "timeouts"), 1);
	ck_assert_uint_le(host_count(&host, "timeouts"), 1 + seconds);
	ck_assert_uint_ge(host_count(&host, "fallbacks"), N_QUEUED);
	kill(server.pid, SIGCONT);
	host_close(&host);
	daemon_stop(&server);
}
END_TEST

START_TEST(killed_and_back)
{
	struct timespec pause = {.tv_nsec = 20000000};
	uint64_t before;
	int n = 0;

	open_with_deadline("deadline = 10s\n");
	ck_assert(answer());
	daemon_kill(&server);
	for (int i = 0; i < N_QUEUED; i++)
		ck_assert_msg(answer(), "%d: %s", i, host_errors());
	ck_assert_uint_ge(host_count(&host, "fallbacks"), N_QUEUED);
	unlink(server.path);
	daemon_run(&server);
	before = host_count(&host, "by-daemon");
	while (host_count(&host, "by-daemon") == before && n++ < 3000) {
		ck_assert(answer());
		nanosleep(&pause, NULL);
	}
	ck_assert_uint_gt(host_count(&host, "by-daemon"), before);
	host_close(&host);
	daemon_stop(&server);
}
END_TEST

/* A key that lived in the daemon dies with it: an error, a word why, and no secret. */
START_TEST(key_dies_with_the_daemon)
{
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT], secret[MLKEMCLIENT_MAX_SECRET];
	EVP_PKEY *pkey;

	open_with_deadline("deadline = 10s\n");
	pkey = pkey_generate(&host, alg, true);
	must(pkey_try_encaps(&host, alg, pkey, ct, secret));
	daemon_kill(&server);
	for (int i = 0; i < 2; i++) {
		memset(secret, 0xa5, sizeof(secret));
		ck_assert_int_eq(pkey_try_decaps(&host, alg, pkey, ct, secret), 0);
		ck_assert(bytes_are(secret, alg->secret, 0));
		ck_assert_ptr_nonnull(strstr(host_errors(), "its daemon ended"));
	}
	EVP_PKEY_free(pkey);
	unlink(server.path);
	daemon_run(&server);
	host_close(&host);
	daemon_stop(&server);
}
END_TEST

/*
 * Keys that were made before they were asked for: used one by one, lost with the
 * daemon.
 */
START_TEST(leases)
{
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT], secret[MLKEMCLIENT_MAX_SECRET];
	EVP_PKEY *pkey;

	open_with_deadline("deadline = 10s\nleases = 8\n");
	for (int i = 0; i < 40; i++) {
		pkey = pkey_generate(&host, alg, true);
		ck_assert(pkeys_agree(&host, alg, pkey, pkey));
		EVP_PKEY_free(pkey);
	}
	ck_assert_uint_ge(host_count(&host, "by-lease"), 20);
	ck_assert_uint_eq(host_count(&host, "by-local"), 0);
	pkey = pkey_generate(&host, alg, true);
	must(pkey_try_encaps(&host, alg, pkey, ct, secret));
	daemon_kill(&server);
	ck_assert_int_eq(pkey_try_decaps(&host, alg, pkey, ct, secret), 0);
	ck_assert(bytes_are(secret, alg->secret, 0));
	ERR_clear_error();
	EVP_PKEY_free(pkey);
	/* What is left in the rack is worth nothing now and is not given out. */
	for (int i = 0; i < 20; i++) {
		pkey = pkey_generate(&host, alg, true);
		ck_assert_msg(pkeys_agree(&host, alg, pkey, pkey), "%s", host_errors());
		EVP_PKEY_free(pkey);
	}
	unlink(server.path);
	daemon_run(&server);
	host_close(&host);
	daemon_stop(&server);
}
END_TEST

/* With require the same is an error, and the output stays without a secret. */
START_TEST(require)
{
	uint8_t share[MLKEMCLIENT_MAX_SHARE], ct[MLKEMCLIENT_MAX_CIPHERTEXT];
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	EVP_PKEY *pkey, *peer;

	open_with_deadline("require = yes\ndeadline = 10s\n");
	pkey = pkey_generate(&host, alg, true);
	pkey_bytes(pkey, "pub", share, sizeof(share));
	EVP_PKEY_free(pkey);
	peer = pkey_try_peer(&host, alg, share, alg->share);
	must(pkey_try_encaps(&host, alg, peer, ct, secret));
	daemon_kill(&server);
	for (int i = 0; i < 5; i++) {
		memset(secret, 0xa5, sizeof(secret));
		memset(ct, 0xa5, sizeof(ct));
		ck_assert_int_eq(pkey_try_encaps(&host, alg, peer, ct, secret), 0);
		ck_assert(bytes_are(secret, alg->secret, 0));
		ck_assert(bytes_are(ct, alg->ciphertext, 0));
		ck_assert_ptr_nonnull(strstr(host_errors(), server.path));
		ck_assert_ptr_null(pkey_try_generate(&host, alg, true));
		ERR_clear_error();
	}
	ck_assert_uint_eq(host_count(&host, "fallbacks"), 0);
	EVP_PKEY_free(peer);
	unlink(server.path);
	daemon_run(&server);
	host_close(&host);
	daemon_stop(&server);
}
END_TEST

/* A proxy at its limit of descriptors still finishes its handshakes. */
START_TEST(no_descriptors)
{
	struct rlimit limit, none;

	open_with_deadline("deadline = 10s\n");
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < 20; i++)
		ck_assert_msg(answer(), "%s", host_errors());
	ck_assert_uint_eq(host_count(&host, "by-daemon"), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	host_close(&host);
	daemon_stop(&server);
}
END_TEST

/* The log's socket, beside the daemon's. */
static int
log_listen(char path[108])
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	snprintf(path, 108, "%.100s/log", server.dir);
	memcpy(addr.sun_path, path, strlen(path));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static int
log_count(int fd, char *last, size_t size)
{
	ssize_t len;
	int n = 0;

	while ((len = recv(fd, last, size - 1, 0)) > 0) {
		last[len] = '\0';
		n++;
	}
	return n;
}

static int
lines_of_fallbacks(const char *faults, char *last, size_t size)
{
	char path[108];
	int fd, n;

	setenv("MLKEMD_FAULT", faults, 1);
	open_with_deadline("deadline = 10s\n");
	fd = log_listen(path);
	ck_assert(answer());
	ck_assert_int_eq(log_count(fd, last, size), 0); /* nothing to say yet */
	daemon_kill(&server);
	n = 0;
	for (int i = 0; i < N_QUEUED; i++) {
		ck_assert(answer());
		n += log_count(fd, last, size);
	}
	unsetenv("MLKEMD_FAULT");
	close(fd);
	unlink(path);
	host_close(&host);
	unlink(server.path);
	daemon_run(&server);
	daemon_stop(&server);
	return n;
}

/* One line a minute, and what is in it. */
START_TEST(log_line)
{
	char line[1024] = "";

	ck_assert_int_eq(
	    lines_of_fallbacks("provider-log-beside-socket", line, sizeof(line)), 1);
	ck_assert_msg(strncmp(line, "<28>check-provider-", 19) == 0, "%s", line);
	ck_assert_ptr_nonnull(strstr(line, "mlkemd provider: "));
	ck_assert_ptr_nonnull(strstr(line, "worked in this process"));
	ck_assert_ptr_nonnull(strstr(line, "/sock"));
}
END_TEST

/* Control: without the limit there is a line for each. */
START_TEST(log_planted)
{
	char line[1024] = "";

	ck_assert_int_eq(
	    lines_of_fallbacks(
		"provider-log-beside-socket,provider-log-always", line, sizeof(line)),
	    N_QUEUED);
}
END_TEST

/* A log that takes nothing in: nobody waits for it. */
START_TEST(log_full)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char path[108];
	int fd, sender;

	setenv("MLKEMD_FAULT", "provider-log-beside-socket,provider-log-always", 1);
	open_with_deadline("deadline = 10s\n");
	fd = log_listen(path);
	memcpy(addr.sun_path, path, strlen(path));
	sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	while (sendto(sender, "x", 1, 0, (struct sockaddr *)&addr, sizeof(addr)) == 1)
		;
	ck_assert(errno == EAGAIN);
	daemon_kill(&server);
	for (int i = 0; i < 10; i++)
		ck_assert(answer());
	unsetenv("MLKEMD_FAULT");
	close(sender);
	close(fd);
	unlink(path);
	unlink(server.path);
	host_close(&host);
	daemon_run(&server);
	daemon_stop(&server);
}
END_TEST

/* A mistake in openssl.cnf is swallowed by OpenSSL: the log is where it can be seen. */
START_TEST(log_mistake)
{
	char path[108], line[1024] = "";
	int fd;

	setenv("MLKEMD_FAULT", "provider-log-beside-socket", 1);
	daemon_start(&server, NULL);
	fd = log_listen(path);
	ck_assert(!host_try(&host, settings(server.path, "fast", NULL)));
	ck_assert_int_eq(log_count(fd, line, sizeof(line)), 1);
	ck_assert_ptr_nonnull(
	    strstr(line, "not loaded: in openssl.cnf, route = fast: allowed are"));
	unsetenv("MLKEMD_FAULT");
	close(fd);
	unlink(path);
	ERR_clear_error();
	host_close(&host);
	daemon_stop(&server);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("provider without its daemon");
	TCase *tcase = tcase_create("all");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, frozen);
	tcase_add_test(tcase, killed_and_back);
	tcase_add_test(tcase, key_dies_with_the_daemon);
	tcase_add_test(tcase, leases);
	tcase_add_test(tcase, require);
	tcase_add_test(tcase, no_descriptors);
	if (host_has_hooks()) {
		tcase_add_test(tcase, log_line);
		tcase_add_test(tcase, log_planted);
		tcase_add_test(tcase, log_full);
		tcase_add_test(tcase, log_mistake);
	}
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
