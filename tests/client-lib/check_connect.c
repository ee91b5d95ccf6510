/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The way to the daemon: whose socket it is, a full backlog, long paths, options. */
#include <check.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

#define NOBODY    65534
#define PLENTY_US 20000000u

static int
dummy_connect(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	ck_assert_int_eq(errno, EAGAIN);
	close(fd);
	return -1;
}

enum { N_DUMMIES = 8 };

static void
fill_backlog(const char *path, int *fds)
{
	int n = 0;

	while (n < N_DUMMIES && (fds[n] = dummy_connect(path)) >= 0)
		n++;
	ck_assert_int_lt(n, N_DUMMIES);
	while (n < N_DUMMIES)
		fds[n++] = -1;
}

/* The peer takes people in again after a while; 0: never. */
static pid_t
open_later(struct peer *peer, useconds_t us)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (us == 0)
			_exit(0);
		usleep(us);
		atomic_store(&peer->counts->step, 1);
		_exit(0);
	}
	return pid;
}

static int
ping_with_full_backlog(uint32_t deadline_us, useconds_t open_after_us)
{
	int fds[N_DUMMIES], err;
	struct peer peer;
	struct mlkemclient *client;
	pid_t opener;

	peer_start_closed(&peer, peer_honest, 1);
	fill_backlog(peer.path, fds);
	opener = open_later(&peer, open_after_us);
	client = peer_client(&peer, true, deadline_us);
	err = mlkemclient_ping(client);
	for (int i = 0; i < N_DUMMIES; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	mlkemclient_free(client);
	waitpid(opener, NULL, 0);
	peer_stop(&peer);
	return err;
}

START_TEST(full_backlog_is_waited_for)
{
	ck_assert_int_eq(ping_with_full_backlog(PLENTY_US, 300000), 0);
}
END_TEST

START_TEST(full_backlog_until_the_deadline)
{
	ck_assert_int_eq(ping_with_full_backlog(100000, 0), MLKEMCLIENT_E_TIMEOUT);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: who takes EAGAIN for an end does not get in. */
START_TEST(full_backlog_needs_back_off)
{
	setenv("MLKEMD_FAULT", "client-no-backoff", 1);
	ck_assert_int_eq(
	    ping_with_full_backlog(PLENTY_US, 0), MLKEMCLIENT_E_UNAVAILABLE);
}
END_TEST
#endif

/*
 * Another user listens where the daemon should, in a folder that anybody may write to.
 * Returns what a ping says. server_uid is trusted if it is not 0.
 */
static int
ping_impostor(uid_t server_uid)
{
	char dir[] = "/tmp/mlkemd-impostor-XXXXXX", path[64];
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = path,
	    .require = true,
	    .server_uid_set = server_uid != 0,
	    .server_uid = server_uid,
	    .deadline_us = PLENTY_US};
	struct mlkemclient *client;
	int ready[2], err;
	char byte;
	pid_t pid;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chmod(dir, 01777), 0);
	snprintf(path, sizeof(path), "%s/sock", dir);
	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct sockaddr_un addr = {.sun_family = AF_UNIX};
		struct peer_counts counts = {0};
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memcpy(addr.sun_path, path, strlen(path) + 1);
		if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 ||
		    setuid(NOBODY) != 0 ||
		    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
		    listen(fd, 1) != 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			peer_honest(accept(fd, NULL, NULL), &counts);
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	err = mlkemclient_ping(client);
	if (err != 0)
		ck_assert_ptr_nonnull(
		    strstr(mlkemclient_last_message(client), "65534"));
	mlkemclient_free(client);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(path);
	rmdir(dir);
	return err;
}

START_TEST(impostor_gets_nothing)
{
	ck_assert_int_eq(ping_impostor(0), MLKEMCLIENT_E_IMPOSTOR);
	ck_assert_int_eq(ping_impostor(12345), MLKEMCLIENT_E_IMPOSTOR);
	ck_assert_int_eq(ping_impostor(NOBODY), 0);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
START_TEST(impostor_would_get_it)
{
	setenv("MLKEMD_FAULT", "client-any-peer", 1);
	ck_assert_int_eq(ping_impostor(0), 0);
}
END_TEST
#endif

/* A path of len bytes in a fresh folder. */
static void
make_path(char *path, char *dir, size_t len)
{
	size_t n;

	snprintf(dir, 64, "/tmp/mlkemd-path-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	n = (size_t)snprintf(path, len + 1, "%s/", dir);
	memset(path + n, 'p', len - n);
	path[len] = '\0';
}

START_TEST(path_lengths)
{
	static const size_t lengths[] = {106, 107, 108, 109, 200};
	char path[256], dir[64], cut[256];
	struct mlkemclient_options opts = {.size = sizeof(opts), .socket_path = path};
	struct mlkemclient *client = (struct mlkemclient *)path;
	size_t len = lengths[_i];
	struct peer peer;
	struct stat st;
	int err;

	make_path(path, dir, len);
	err = mlkemclient_new(&client, &opts);
	if (len > 107) {
		ck_assert_int_eq(err, MLKEMCLIENT_E_INVALID);
		ck_assert_ptr_null(client);
		memcpy(cut, path, 107);
		cut[107] = '\0';
		ck_assert_int_ne(lstat(cut, &st), 0);
	} else {
		ck_assert_int_eq(err, 0);
		peer_start(&peer, peer_honest);
		ck_assert_int_eq(link(peer.path, path), 0);
		ck_assert_int_eq(mlkemclient_ping(client), 0);
		unlink(path);
		mlkemclient_free(client);
		peer_stop(&peer);
	}
	rmdir(dir);
}
END_TEST

START_TEST(options_of_other_versions)
{
	struct {
		struct mlkemclient_options known;
		uint64_t later;
	} opts = {.known = {.size = sizeof(opts), .require = true}};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts.known), 0);
	ck_assert(client->require);
	mlkemclient_free(client);
	opts.later = 1; /* something that this version can't do */
	ck_assert_int_eq(mlkemclient_new(&client, &opts.known), MLKEMCLIENT_E_INVALID);
	ck_assert_ptr_null(client);

	/* an older caller, who knows the path and no more */
	opts.known = (struct mlkemclient_options){
	    .size = 2 * sizeof(size_t), .socket_path = "/p", .require = true};
	ck_assert_int_eq(mlkemclient_new(&client, &opts.known), 0);
	ck_assert(!client->require);
	ck_assert_str_eq(client->path, "/p");
	ck_assert_uint_eq(client->deadline_us, 1000000);
	mlkemclient_free(client);

	opts.known.size = 0;
	ck_assert_int_eq(mlkemclient_new(&client, &opts.known), MLKEMCLIENT_E_INVALID);
	opts.known = (struct mlkemclient_options){
	    .size = sizeof(opts.known), .route = (enum mlkemclient_route)3};
	ck_assert_int_eq(mlkemclient_new(&client, &opts.known), MLKEMCLIENT_E_INVALID);
	opts.known =
	    (struct mlkemclient_options){.size = sizeof(opts.known), .socket_path = ""};
	ck_assert_int_eq(mlkemclient_new(&client, &opts.known), MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(mlkemclient_new(NULL, NULL), MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(mlkemclient_new(&client, NULL), 0);
	mlkemclient_free(client);
	mlkemclient_free(NULL);
}
END_TEST

START_TEST(arguments_are_checked)
{
	static uint8_t share[1216], ct[1120], secret[64], dk[2432];
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_encaps_item item = {share, 1216, ct, secret, 1};
	struct mlkemclient_key *key = (struct mlkemclient_key *)share;
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	memset(share, 0xee, sizeof(share));
	ck_assert_int_eq(
	    mlkemclient_keygen(client, alg, share, 1215, &key), MLKEMCLIENT_E_INVALID);
	ck_assert_ptr_null(key);
	ck_assert(is_zero(share, 1215) && share[1215] == 0xee);
	ck_assert_int_eq(
	    mlkemclient_keygen(client, (enum mlkemclient_alg)0x11eb, share, 1216, &key),
	    MLKEMCLIENT_E_UNSUPPORTED);
	ck_assert_int_eq(
	    mlkemclient_keygen(client, alg, NULL, 1216, &key), MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(
	    mlkemclient_keygen(client, alg, share, 1216, NULL), MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(
	    mlkemclient_keygen(NULL, alg, share, 1216, &key), MLKEMCLIENT_E_INVALID);

	memset(secret, 0xee, sizeof(secret));
	ck_assert_int_eq(
	    mlkemclient_encaps(client, alg, share, 1216, ct, 1120, secret, 63),
	    MLKEMCLIENT_E_INVALID);
	ck_assert(is_zero(secret, 63) && secret[63] == 0xee);
	ck_assert_int_eq(
	    mlkemclient_encaps(client, alg, share, 1184, ct, 1120, secret, 64),
	    MLKEMCLIENT_E_LENGTH);
	ck_assert_ptr_nonnull(strstr(mlkemclient_last_message(client), "ML-KEM-768"));
	ck_assert_int_eq(
	    mlkemclient_encaps(client, alg, NULL, 1216, ct, 1120, secret, 64),
	    MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(
	    mlkemclient_encaps(client, alg, share, 0, ct, 1120, secret, 64),
	    MLKEMCLIENT_E_LENGTH);

	ck_assert_int_eq(
	    mlkemclient_decaps_with(client, alg, dk, 2400, ct, 1120, secret, 64),
	    MLKEMCLIENT_E_ALGORITHM);
	ck_assert_int_eq(
	    mlkemclient_decaps_with(client, alg, dk, 2431, ct, 1120, secret, 64),
	    MLKEMCLIENT_E_LENGTH);
	ck_assert_int_eq(
	    mlkemclient_decaps_with(client, alg, dk, 2432, ct, 1088, secret, 64),
	    MLKEMCLIENT_E_LENGTH);
	ck_assert_int_eq(mlkemclient_decaps(client, NULL, ct, 1120, secret, 64),
	    MLKEMCLIENT_E_INVALID);

	ck_assert_int_eq(
	    mlkemclient_encaps_batch(client, alg, &item, 0), MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(
	    mlkemclient_encaps_batch(client, alg, &item, 65), MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(
	    mlkemclient_encaps_batch(client, alg, NULL, 1), MLKEMCLIENT_E_INVALID);
	mlkemclient_free(client);
}
END_TEST

START_TEST(kdf_arguments_are_checked)
{
	static const uint8_t salt[1025];
	static uint8_t shares[64][1184], cts[64][1088], secrets[64][1025];
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient_encaps_item items[64];
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	ck_assert_int_eq(mlkemclient_set_kdf(client, 512, NULL, 0, NULL, 0, 32),
	    MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(mlkemclient_set_kdf(client, 256, salt, 1025, NULL, 0, 32),
	    MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(mlkemclient_set_kdf(client, 256, NULL, 1, NULL, 0, 32),
	    MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(mlkemclient_set_kdf(client, 256, NULL, 0, NULL, 0, 0),
	    MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(mlkemclient_set_kdf(client, 256, NULL, 0, NULL, 0, 8161),
	    MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(mlkemclient_set_kdf(client, 256, NULL, 0, NULL, 0, 8160), 0);
	ck_assert_int_eq(mlkemclient_set_kdf(client, 384, NULL, 0, NULL, 0, 12241),
	    MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(
	    mlkemclient_set_kdf(client, 384, salt, 1024, salt, 1024, 12240), 0);

	ck_assert_int_eq(mlkemclient_set_kdf(client, 256, NULL, 0, NULL, 0, 1025), 0);
	for (int i = 0; i < 64; i++)
		items[i] = (struct mlkemclient_encaps_item){
		    shares[i], 1184, cts[i], secrets[i], 1};
	ck_assert_int_eq(
	    mlkemclient_encaps_batch(client, MLKEMCLIENT_ML_KEM_768, items, 64),
	    MLKEMCLIENT_E_INVALID);
	ck_assert_int_eq(
	    mlkemclient_encaps_batch(client, MLKEMCLIENT_ML_KEM_768, items, 63), 0);
	mlkemclient_free(client);
}
END_TEST

START_TEST(names_and_errors)
{
	enum mlkemclient_alg alg;
	struct mlkemclient_sizes sizes;

	ck_assert_int_eq(mlkemclient_alg_parse("mlkem768", &alg), 0);
	ck_assert_int_eq(alg, MLKEMCLIENT_ML_KEM_768);
	ck_assert_int_eq(mlkemclient_alg_parse("X25519MLKEM768", &alg), 0);
	ck_assert_int_eq(alg, MLKEMCLIENT_X25519MLKEM768);
	ck_assert_str_eq(mlkemclient_alg_name(alg), "X25519MLKEM768");
	ck_assert_int_eq(
	    mlkemclient_alg_parse("kyber768", &alg), MLKEMCLIENT_E_UNSUPPORTED);
	ck_assert_ptr_null(mlkemclient_alg_name((enum mlkemclient_alg)7));
	ck_assert_int_eq(mlkemclient_get_sizes((enum mlkemclient_alg)7, &sizes),
	    MLKEMCLIENT_E_UNSUPPORTED);
	ck_assert_int_eq(mlkemclient_get_sizes(alg, &sizes), 0);
	ck_assert(sizes.share == 1216 && sizes.ciphertext == 1120 &&
		  sizes.secret == 64 && sizes.private_key == 2432 && sizes.seed == 96);
	for (int error = 0; error >= MLKEMCLIENT_E_INTERNAL; error--)
		ck_assert_str_ne(mlkemclient_strerror(error), "unknown error");
	ck_assert_str_eq(mlkemclient_strerror(-18), "unknown error");
	ck_assert_str_eq(mlkemclient_strerror(1), "unknown error");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("connect");
	TCase *tc = tcase_create("connect");
	SRunner *runner = srunner_create(suite);
	bool root = getuid() == 0;
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, full_backlog_is_waited_for);
	tcase_add_test(tc, full_backlog_until_the_deadline);
	if (root)
		tcase_add_test(tc, impostor_gets_nothing);
	else
		fprintf(
		    stderr, "impostor: skipped, it takes root to be somebody else\n");
	tcase_add_loop_test(tc, path_lengths, 0, 5);
	tcase_add_test(tc, options_of_other_versions);
	tcase_add_test(tc, arguments_are_checked);
	tcase_add_test(tc, kdf_arguments_are_checked);
	tcase_add_test(tc, names_and_errors);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, full_backlog_needs_back_off);
	if (root)
		tcase_add_test(tc, impostor_would_get_it);
#endif
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
