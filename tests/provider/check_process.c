/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and threads: forks before and after the first operation, threads that share
 * a provider, and threads that come and go, one a connection.
 */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/err.h>

#include "host.h"
#include "tests/client-lib/rig.h"

#define N_CHILDREN 8
#define N_KEYS     20
#define N_THREADS  8
#define N_ROUNDS   50
#define N_SHORT    100

static struct host host;
static struct daemon server;
static const struct alg *const alg = &algs[ALG_X25519MLKEM768];
static const struct {
	const char *route, *more;
} routes[] = {
    {"daemon", "deadline = 10s\n"}, {"auto", "deadline = 10s\n"},
    {"local", "deadline = 10s\n"},
    {"daemon", "deadline = 10s\nleases = 16\n"}, /* keys that are made before */
};
enum { N_ROUTES = sizeof(routes) / sizeof(routes[0]) };

static void
open_route(int i)
{
	daemon_start(&server, NULL);
	host_open(&host, settings(server.path, routes[i].route, routes[i].more));
}

static void
close_route(void)
{
	host_close(&host);
	daemon_stop(&server);
}

/* Both sides; returns whether they agree. */
static bool
exchange_agrees(void)
{
	uint8_t share[MLKEMCLIENT_MAX_SHARE];
	EVP_PKEY *own = pkey_try_generate(&host, alg, true), *peer = NULL;
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT], a[64], b[64];
	bool agrees = false;

	if (own != NULL && pkey_bytes(own, "pub", share, sizeof(share)) == alg->share)
		peer = pkey_try_peer(&host, alg, share, alg->share);
	if (peer != NULL && pkey_try_encaps(&host, alg, peer, ct, a) == 1 &&
	    pkey_try_decaps(&host, alg, own, ct, b) == 1)
		agrees = memcmp(a, b, sizeof(a)) == 0;
	EVP_PKEY_free(peer);
	EVP_PKEY_free(own);
	return agrees;
}

/* Writes the first bytes of its keys' shares; exit status 0 if all went well. */
static void
child_run(int fd, EVP_PKEY *of_parent)
{
	uint8_t share[MLKEMCLIENT_MAX_SHARE], ct[MLKEMCLIENT_MAX_CIPHERTEXT];
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	bool good = true;

	for (int i = 0; i < N_KEYS; i++) {
		EVP_PKEY *pkey = pkey_try_generate(&host, alg, true);

		if (pkey == NULL || pkey_bytes(pkey, "pub", share, sizeof(share)) == 0)
			_exit(2);
		good &= write(fd, share, 32) == 32;
		EVP_PKEY_free(pkey);
		good &= exchange_agrees();
	}
	/* A one-time key of the parent is not the child's: an error, and no secret. */
	if (of_parent != NULL) {
		must(pkey_try_encaps(&host, alg, of_parent, ct, secret));
		memset(secret, 0xa5, sizeof(secret));
		good &= pkey_try_decaps(&host, alg, of_parent, ct, secret) != 1;
		good &= bytes_are(secret, alg->secret, 0);
		ERR_clear_error();
		EVP_PKEY_free(of_parent);
	}
	host_close(&host);
	/* As programs end: OpenSSL's own clean-up runs. */
	exit(good ? 0 : 1);
}

static void
children_check(EVP_PKEY *of_parent)
{
	static uint8_t seen[N_CHILDREN * N_KEYS][32];
	int fds[2], status;
	pid_t pids[N_CHILDREN];
	size_t n = 0;

	ck_assert_int_eq(pipe(fds), 0);
	for (int i = 0; i < N_CHILDREN; i++) {
		pids[i] = fork();
		ck_assert_int_ge(pids[i], 0);
		if (pids[i] == 0) {
			close(fds[0]);
			child_run(fds[1], of_parent);
		}
	}
	close(fds[1]);
	ck_assert(exchange_agrees());
	while (n < N_CHILDREN * N_KEYS && read(fds[0], seen[n], 32) == 32)
		n++;
	close(fds[0]);
	for (int i = 0; i < N_CHILDREN; i++) {
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		    "child %d: %#x", i, status);
	}
	/* No two of them drew the same, however much state they shared. */
	ck_assert_uint_eq(n, N_CHILDREN * N_KEYS);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			ck_assert_mem_ne(seen[i], seen[j], 32);
	ck_assert(exchange_agrees());
}

/* nginx: the provider is loaded in the master and used by its children alone. */
START_TEST(fork_before_use)
{
	open_route(_i);
	children_check(NULL);
	close_route();
}
END_TEST

START_TEST(fork_after_use)
{
	EVP_PKEY *pkey;
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT], a[64], b[64];

	open_route(_i);
	for (int i = 0; i < 20; i++)
		ck_assert(exchange_agrees());
	pkey = pkey_generate(&host, alg, true);
	children_check(pkey);
	/* The parent's key is as good as before. */
	must(pkey_try_encaps(&host, alg, pkey, ct, a));
	must(pkey_try_decaps(&host, alg, pkey, ct, b));
	ck_assert_mem_eq(a, b, alg->secret);
	EVP_PKEY_free(pkey);
	close_route();
}
END_TEST

static void *
thread_run(void *arg)
{
	size_t n_rounds = (size_t)(uintptr_t)arg, n_good = 0;

	for (size_t i = 0; i < n_rounds; i++)
		n_good += exchange_agrees();
	return (void *)(uintptr_t)n_good;
}

static size_t
n_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

START_TEST(threads)
{
	pthread_t all[N_THREADS];
	void *n_good;

	open_route(_i);
	for (int i = 0; i < N_THREADS; i++)
		ck_assert_int_eq(pthread_create(&all[i], NULL, thread_run,
				     (void *)(uintptr_t)N_ROUNDS),
		    0);
	for (int i = 0; i < N_THREADS; i++) {
		ck_assert_int_eq(pthread_join(all[i], &n_good), 0);
		ck_assert_uint_eq((uintptr_t)n_good, N_ROUNDS);
	}
	ck_assert_uint_eq(
	    host_count(&host, "by-daemon") + host_count(&host, "by-local"),
	    3 * N_THREADS * N_ROUNDS);
	/* One connection, not one a thread. */
	ck_assert_uint_le(host_count(&host, "connects"), 1);
	close_route();
}
END_TEST

/* stunnel: each connection has a thread of its own, which leaves nothing behind. */
START_TEST(short_threads)
{
	pthread_t thread;
	size_t n_before;
	void *n_good;

	open_route(_i);
	ck_assert(exchange_agrees());
	n_before = n_fds();
	for (int i = 0; i < N_SHORT; i++) {
		ck_assert_int_eq(
		    pthread_create(&thread, NULL, thread_run, (void *)1), 0);
		ck_assert_int_eq(pthread_join(thread, &n_good), 0);
		ck_assert_uint_eq((uintptr_t)n_good, 1);
	}
	ck_assert_uint_le(n_fds(), n_before + 1); /* auto may have connected since */
	close_route();
}
END_TEST

/*
 * A program that ends with the provider, its keys and its connection as they are: the
 * clean-up of OpenSSL, in an atexit of its own, finds an order in which to free them.
 */
static void
end_without_freeing(void)
{
	static void *kept[3]; /* so that no sanitizer calls them lost */

	kept[0] = host.libctx;
	host.libctx = NULL; /* the default context: the one that is cleaned up */
	must(OSSL_LIB_CTX_load_config(NULL, host.config));
	for (int i = 0; i < 3; i++)
		if (!exchange_agrees())
			_exit(2);
	kept[1] = pkey_try_generate(&host, alg, true);
	kept[2] = pkey_try_generate(&host, alg, false);
	if (kept[1] == NULL || kept[2] == NULL)
		_exit(3);
	exit(0);
}

START_TEST(end_of_program)
{
	int status;
	pid_t pid;

	open_route(_i);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		end_without_freeing();
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(
	    WIFEXITED(status) && WEXITSTATUS(status) == 0, "ended by %#x", status);
	close_route();
}
END_TEST

/* Loaded, used and unloaded again and again, as configurations are read anew. */
START_TEST(reload)
{
	size_t n_before;

	daemon_start(&server, NULL);
	for (int i = 0; i < 20; i++) {
		host_open(
		    &host, settings(server.path, routes[_i].route, routes[_i].more));
		ck_assert(exchange_agrees());
		host_close(&host);
		if (i == 0)
			n_before = n_fds();
		ck_assert_uint_eq(n_fds(), n_before);
	}
	daemon_stop(&server);
}
END_TEST

/* Nothing of ours stays open across exec. */
START_TEST(close_on_exec)
{
	DIR *dir;
	struct dirent *entry;
	size_t n = 0;

	dir = opendir("/proc/self/fd");
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	open_route(0);
	ck_assert(exchange_agrees());
	dir = opendir("/proc/self/fd");
	while ((entry = readdir(dir)) != NULL) {
		int fd = atoi(entry->d_name), flags = fcntl(fd, F_GETFD);
		char path[64], target[256];
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = '\0';
		if (fd > 2 && strncmp(target, "socket:", 7) == 0)
			ck_assert_msg((flags & FD_CLOEXEC) != 0, "%s", target);
	}
	closedir(dir);
	ck_assert_uint_ge(n_fds(), n); /* a socket is there at all */
	close_route();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("provider in processes and threads");
	TCase *tcase = tcase_create("all");

	tcase_set_timeout(tcase, 240);
	tcase_add_loop_test(tcase, fork_before_use, 0, N_ROUTES);
	tcase_add_loop_test(tcase, fork_after_use, 0, N_ROUTES);
	tcase_add_loop_test(tcase, threads, 0, N_ROUTES);
	tcase_add_loop_test(tcase, short_threads, 0, N_ROUTES);
	tcase_add_loop_test(tcase, end_of_program, 0, N_ROUTES);
	tcase_add_loop_test(tcase, reload, 0, N_ROUTES);
	tcase_add_test(tcase, close_on_exec);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
