/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The library against the real daemon (MLKEMD_DAEMON names it), each test with its own
 * on a private socket: whole exchanges, handles, restarts under use, a stopped daemon.
 * The rounds are chosen by a seed that is printed; --seed N plays them again.
 */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"

#define PLENTY_US 10000000u
#define N_ROUNDS  1000

static const enum mlkemclient_alg algs[] = {MLKEMCLIENT_ML_KEM_512,
    MLKEMCLIENT_ML_KEM_768, MLKEMCLIENT_ML_KEM_1024, MLKEMCLIENT_X25519MLKEM768};
enum { N_ALGS = sizeof(algs) / sizeof(algs[0]) };

static uint64_t seed;

static uint32_t
draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

struct daemon {
	pid_t pid;
	char dir[64], path[108], control[108], config[108];
	const char *setting; /* one more --set, or NULL */
};

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

static struct mlkemclient *
client_of(const struct daemon *daemon, bool require, uint32_t deadline_us)
{
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = daemon->path,
	    .require = require,
	    .deadline_us = deadline_us};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	return client;
}

static void
daemon_run(struct daemon *daemon)
{
	const char *exe = getenv("MLKEMD_DAEMON");
	struct mlkemclient *client;
	int n = 0, err;

	ck_assert_msg(exe != NULL, "MLKEMD_DAEMON must name the daemon");
	daemon->pid = fork();
	ck_assert_int_ge(daemon->pid, 0);
	if (daemon->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(exe, exe, "--config", daemon->config, "--socket", daemon->path,
		    "--control-socket", daemon->control, "--log-level", "warning",
		    daemon->setting != NULL ? "--set" : NULL, daemon->setting, NULL);
		_exit(127);
	}
	client = client_of(daemon, true, 1000000);
	while ((err = mlkemclient_ping(client)) != 0 && n++ < 2000)
		usleep(5000);
	ck_assert_int_eq(err, 0);
	mlkemclient_free(client);
}

static void
daemon_start(struct daemon *daemon, const char *setting)
{
	int fd;

	*daemon = (struct daemon){.setting = setting};
	snprintf(daemon->dir, sizeof(daemon->dir), "/tmp/mlkemd-check-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(daemon->dir));
	snprintf(daemon->path, sizeof(daemon->path), "%s/sock", daemon->dir);
	snprintf(daemon->control, sizeof(daemon->control), "%s/control", daemon->dir);
	snprintf(daemon->config, sizeof(daemon->config), "%s/conf", daemon->dir);
	fd = open(daemon->config, O_CREAT | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	daemon_run(daemon);
}

static void
daemon_kill(struct daemon *daemon)
{
	kill(daemon->pid, SIGKILL);
	waitpid(daemon->pid, NULL, 0);
}

/* An orderly end; sanitizers report by the status. */
static void
daemon_stop(struct daemon *daemon)
{
	int status;

	kill(daemon->pid, SIGTERM);
	waitpid(daemon->pid, &status, 0);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	    "the daemon ended with %#x", status);
	unlink(daemon->path);
	unlink(daemon->control);
	unlink(daemon->config);
	rmdir(daemon->dir);
}

static uint8_t shares[64][MLKEMCLIENT_MAX_SHARE];
static uint8_t cts[64][MLKEMCLIENT_MAX_CIPHERTEXT];
static uint8_t sent[64][MLKEMCLIENT_MAX_SECRET];
static uint8_t received[64][MLKEMCLIENT_MAX_SECRET];
static uint8_t private_key[MLKEMCLIENT_MAX_PRIVATE_KEY];

/*
 * One exchange: a makes the key, b answers, a takes the secret. Returns 0, the first
 * error, or 1 if the secrets are not equal (or, after a changed bit, not different).
 */
static int
exchange(struct mlkemclient *a, struct mlkemclient *b, enum mlkemclient_alg alg,
    bool change_bit)
{
	struct mlkemclient_key *key = NULL;
	struct mlkemclient_sizes sizes;
	int err;

	ck_assert_int_eq(mlkemclient_get_sizes(alg, &sizes), 0);
	err = mlkemclient_keygen(a, alg, shares[0], sizes.share, &key);
	if (err == 0)
		err = mlkemclient_encaps(b, alg, shares[0], sizes.share, cts[0],
		    sizes.ciphertext, sent[0], sizes.secret);
	if (err == 0 && change_bit)
		cts[0][draw((uint32_t)sizes.ciphertext - 32)] ^=
		    (uint8_t)(1u << draw(8));
	if (err == 0)
		err = mlkemclient_decaps(
		    a, key, cts[0], sizes.ciphertext, received[0], sizes.secret);
	mlkemclient_key_free(a, key);
	if (err != 0)
		return err;
	ck_assert(!is_zero(sent[0], 32) && !is_zero(received[0], 32));
	return (memcmp(sent[0], received[0], sizes.secret) == 0) == !change_bit ? 0 : 1;
}

START_TEST(random_rounds)
{
	enum mlkemclient_alg alg = algs[_i];
	struct mlkemclient_counts counts;
	struct mlkemclient *near, *far[2];
	struct daemon daemon;

	seed += (uint64_t)_i;
	daemon_start(&daemon, NULL);
	far[0] = client_of(&daemon, true, PLENTY_US);
	far[1] = client_of(&daemon, true, PLENTY_US);
	near = client_of(&daemon, true, PLENTY_US);
	near->route = MLKEMCLIENT_ROUTE_LOCAL;
	for (int round = 0; round < N_ROUNDS; round++) {
		struct mlkemclient *a = draw(4) ? far[draw(2)] : near;
		struct mlkemclient *b = draw(4) ? far[draw(2)] : near;

		ck_assert_msg(exchange(a, b, alg, draw(4) == 0) == 0, "round %d: %s",
		    round, mlkemclient_last_message(a));
	}
	mlkemclient_get_counts(far[0], &counts);
	ck_assert_uint_ge(counts.by_daemon, N_ROUNDS / 2);
	ck_assert_uint_eq(counts.connects, 1);
	mlkemclient_free(near);
	mlkemclient_free(far[0]);
	mlkemclient_free(far[1]);
	daemon_stop(&daemon);
}
END_TEST

static struct mlkemclient_keygen_item keygen_items[64];
static struct mlkemclient_encaps_item encaps_items[64];
static struct mlkemclient_decaps_item decaps_items[64];

static void
batch_round(struct mlkemclient *client, enum mlkemclient_alg alg, size_t n, size_t bad)
{
	struct mlkemclient_sizes sizes;

	ck_assert_int_eq(mlkemclient_get_sizes(alg, &sizes), 0);
	for (size_t i = 0; i < n; i++) {
		keygen_items[i] = (struct mlkemclient_keygen_item){shares[i], NULL, 1};
		encaps_items[i] = (struct mlkemclient_encaps_item){
		    shares[i], sizes.share, cts[i], sent[i], 1};
	}
	ck_assert_int_eq(mlkemclient_keygen_batch(client, alg, keygen_items, n), 0);
	if (bad < n)
		memset(shares[bad], 0xff, 3); /* over the modulus */
	ck_assert_int_eq(mlkemclient_encaps_batch(client, alg, encaps_items, n), 0);
	for (size_t i = 0; i < n; i++)
		decaps_items[i] = (struct mlkemclient_decaps_item){
		    keygen_items[i].key, cts[i], sizes.ciphertext, received[i], 1};
	if (bad < n)
		decaps_items[bad].ciphertext_len--;
	ck_assert_int_eq(mlkemclient_decaps_batch(client, alg, decaps_items, n), 0);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(keygen_items[i].error, 0);
		ck_assert(mlkemclient_key_in_daemon(keygen_items[i].key));
		ck_assert_int_eq(
		    encaps_items[i].error, i == bad ? MLKEMCLIENT_E_BAD_SHARE : 0);
		ck_assert_int_eq(
		    decaps_items[i].error, i == bad ? MLKEMCLIENT_E_LENGTH : 0);
		ck_assert_mem_eq(sent[i], received[i], sizes.secret);
		ck_assert(is_zero(sent[i], 32) == (i == bad));
		mlkemclient_key_free(client, keygen_items[i].key);
	}
}

START_TEST(batches)
{
	static const size_t counts[] = {1, 2, 7, 8, 9, 33, 64};
	struct mlkemclient *client;
	struct daemon daemon;

	daemon_start(&daemon, NULL);
	client = client_of(&daemon, true, PLENTY_US);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		size_t n = counts[i];

		batch_round(client, algs[_i], n, n); /* none bad */
		batch_round(client, algs[_i], n, 0);
		batch_round(client, algs[_i], n, n / 2);
		batch_round(client, algs[_i], n, n - 1);
	}
	mlkemclient_free(client);
	daemon_stop(&daemon);
}
END_TEST

/* A private key of one's own: the daemon and this process give the same, kdf or not. */
START_TEST(own_keys_and_kdf)
{
	enum mlkemclient_alg alg = algs[_i];
	static uint8_t by_daemon[12240], by_local[12240];
	const uint8_t *salt = (const uint8_t *)"salt", *info = (const uint8_t *)"info";
	struct mlkemclient_sizes sizes;
	struct mlkemclient *far, *near;
	struct daemon daemon;

	daemon_start(&daemon, "kem.export-private-keys=yes");
	far = client_of(&daemon, true, PLENTY_US);
	near = client_of(&daemon, true, PLENTY_US);
	near->route = MLKEMCLIENT_ROUTE_LOCAL;
	ck_assert_int_eq(mlkemclient_get_sizes(alg, &sizes), 0);
	ck_assert_int_eq(mlkemclient_keygen_export(far, alg, shares[0], sizes.share,
			     private_key, sizes.private_key),
	    0);
	ck_assert_int_eq(mlkemclient_encaps(far, alg, shares[0], sizes.share, cts[0],
			     sizes.ciphertext, sent[0], sizes.secret),
	    0);
	for (int kdf = 0; kdf < 3; kdf++) {
		size_t len = kdf == 0 ? sizes.secret : kdf == 1 ? 32 : 12240;

		for (int i = 0; i < 2 && kdf != 0; i++)
			ck_assert_int_eq(
			    mlkemclient_set_kdf(i ? near : far, kdf == 1 ? 256 : 384,
				salt, 4, info, 4, (uint32_t)len),
			    0);
		ck_assert_int_eq(
		    mlkemclient_decaps_with(far, alg, private_key, sizes.private_key,
			cts[0], sizes.ciphertext, by_daemon, len),
		    0);
		ck_assert_int_eq(
		    mlkemclient_decaps_with(near, alg, private_key, sizes.private_key,
			cts[0], sizes.ciphertext, by_local, len),
		    0);
		ck_assert_mem_eq(by_daemon, by_local, len);
		if (kdf == 0)
			ck_assert_mem_eq(by_daemon, sent[0], len);

		/* and by a seed, with a ciphertext that is none of its own */
		ck_assert_int_eq(
		    mlkemclient_decaps_with(far, alg, private_key, sizes.seed, cts[0],
			sizes.ciphertext, by_daemon, len),
		    0);
		ck_assert_int_eq(
		    mlkemclient_decaps_with(near, alg, private_key, sizes.seed, cts[0],
			sizes.ciphertext, by_local, len),
		    0);
		ck_assert_mem_eq(by_daemon, by_local, len);
	}
	/* a bit of ek inside: the hash check */
	private_key[sizes.private_key / 2] ^= 1;
	ck_assert_int_eq(
	    mlkemclient_decaps_with(far, alg, private_key, sizes.private_key, cts[0],
		sizes.ciphertext, by_daemon, 12240),
	    MLKEMCLIENT_E_BAD_KEY);
	ck_assert(is_zero(by_daemon, 12240));
	mlkemclient_free(far);
	mlkemclient_free(near);
	daemon_stop(&daemon);
}
END_TEST

START_TEST(export_is_off_by_default)
{
	struct mlkemclient_info info;
	struct mlkemclient *client;
	struct daemon daemon;

	daemon_start(&daemon, NULL);
	client = client_of(&daemon, false, PLENTY_US);
	ck_assert_int_eq(mlkemclient_get_info(client, &info), 0);
	ck_assert(!info.export_allowed);
	ck_assert_uint_eq(info.max_items, 64);
	ck_assert_uint_gt(info.lanes, 0);
	ck_assert_uint_eq(info.handle_lifetime_ms, 60000);
	ck_assert_int_eq(mlkemclient_keygen_export(client, MLKEMCLIENT_ML_KEM_768,
			     shares[0], 1184, private_key, 2400),
	    MLKEMCLIENT_E_NO_EXPORT);
	ck_assert(is_zero(private_key, 2400) && is_zero(shares[0], 1184));
	mlkemclient_free(client);
	daemon_stop(&daemon);
}
END_TEST

/* The same handle three times in one request, and all the ways of ending one. */
START_TEST(handles_are_used_once)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_key *key;
	struct mlkemclient *client;
	struct daemon daemon;

	daemon_start(&daemon, "limits.max-handles=64");
	client = client_of(&daemon, true, PLENTY_US);
	for (int round = 0; round < 300; round++) {
		ck_assert_int_eq(
		    mlkemclient_keygen(client, alg, shares[0], 1216, &key), 0);
		ck_assert_int_eq(mlkemclient_encaps(client, alg, shares[0], 1216,
				     cts[0], 1120, sent[0], 64),
		    0);
		for (int i = 0; i < 3; i++)
			decaps_items[i] = (struct mlkemclient_decaps_item){
			    key, cts[0], 1120, received[i], 1};
		ck_assert_int_eq(
		    mlkemclient_decaps_batch(client, alg, decaps_items, 3), 0);
		ck_assert_int_eq(decaps_items[0].error, 0);
		ck_assert_int_eq(decaps_items[1].error, MLKEMCLIENT_E_KEY_GONE);
		ck_assert_int_eq(decaps_items[2].error, MLKEMCLIENT_E_KEY_GONE);
		ck_assert_mem_eq(sent[0], received[0], 64);
		ck_assert_int_eq(
		    mlkemclient_decaps(client, key, cts[0], 1120, received[0], 64),
		    MLKEMCLIENT_E_KEY_GONE);
		mlkemclient_key_free(client, key);
		/* released unused: else 64 would be reached */
		ck_assert_int_eq(
		    mlkemclient_keygen(client, alg, shares[0], 1216, &key), 0);
		mlkemclient_key_free(client, key);
	}
	for (int i = 0; i < 64; i++)
		keygen_items[i] = (struct mlkemclient_keygen_item){shares[i], NULL, 1};
	ck_assert_int_eq(mlkemclient_keygen_batch(client, alg, keygen_items, 64), 0);
	ck_assert_int_eq(mlkemclient_keygen(client, alg, shares[0], 1216, &key),
	    MLKEMCLIENT_E_EXHAUSTED);
	for (int i = 0; i < 64; i++)
		mlkemclient_key_free(client, keygen_items[i].key);

	/* a connection that ends takes its keys along */
	for (int round = 0; round < 20; round++) {
		struct mlkemclient *passer = client_of(&daemon, true, PLENTY_US);

		ck_assert_int_eq(
		    mlkemclient_keygen_batch(passer, alg, keygen_items, 64), 0);
		link_close(passer);
		for (int i = 0; i < 64; i++)
			mlkemclient_key_free(passer, keygen_items[i].key);
		ck_assert_int_eq(mlkemclient_ping(client), 0);
		mlkemclient_free(passer);
	}
	mlkemclient_free(client);
	daemon_stop(&daemon);
}
END_TEST

/* A handle means something on its own connection only. */
START_TEST(handles_of_others)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_ML_KEM_768;
	struct mlkemclient_key *key, *stolen;
	struct mlkemclient *owner, *thief;
	struct daemon daemon;

	daemon_start(&daemon, NULL);
	owner = client_of(&daemon, true, PLENTY_US);
	thief = client_of(&daemon, true, PLENTY_US);
	ck_assert_int_eq(mlkemclient_keygen(owner, alg, shares[0], 1184, &key), 0);
	ck_assert_int_eq(
	    mlkemclient_encaps(thief, alg, shares[0], 1184, cts[0], 1088, sent[0], 32),
	    0);
	for (int delta = -1; delta <= 1; delta++) {
		ck_assert_int_eq(
		    mlkemclient_keygen(thief, alg, shares[1], 1184, &stolen), 0);
		memcpy(stolen->handle, key->handle, sizeof(key->handle));
		stolen->handle[15] = (uint8_t)(stolen->handle[15] + delta);
		ck_assert_int_eq(
		    mlkemclient_decaps(thief, stolen, cts[0], 1088, received[0], 32),
		    MLKEMCLIENT_E_KEY_GONE);
		ck_assert(is_zero(received[0], 32));
		stolen->spent = false;
		mlkemclient_key_free(thief, stolen); /* a release that is not his */
	}
	ck_assert_int_eq(
	    mlkemclient_decaps(owner, key, cts[0], 1088, received[0], 32), 0);
	ck_assert_mem_eq(sent[0], received[0], 32);
	mlkemclient_key_free(owner, key);
	mlkemclient_free(owner);
	mlkemclient_free(thief);
	daemon_stop(&daemon);
}
END_TEST

START_TEST(restart_between_calls)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_counts counts;
	struct mlkemclient_key *key;
	struct mlkemclient *client;
	struct daemon daemon;

	daemon_start(&daemon, NULL);
	client = client_of(&daemon, true, PLENTY_US);
	for (int round = 0; round < 5; round++) {
		ck_assert_int_eq(exchange(client, client, alg, false), 0);
		ck_assert_int_eq(
		    mlkemclient_keygen(client, alg, shares[0], 1216, &key), 0);
		daemon_kill(&daemon);
		if (round % 2 == 1)
			ck_assert_int_eq(exchange(client, client, alg, false),
			    MLKEMCLIENT_E_UNAVAILABLE);
		daemon_run(&daemon);
		ck_assert_int_eq(
		    mlkemclient_decaps(client, key, cts[0], 1120, received[0], 64),
		    MLKEMCLIENT_E_KEY_GONE);
		ck_assert(is_zero(received[0], 64));
		mlkemclient_key_free(client, key);
		ck_assert_int_eq(exchange(client, client, alg, false), 0);
	}
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.connects, 6);
	ck_assert_uint_eq(counts.timeouts, 0);
	mlkemclient_free(client);
	daemon_stop(&daemon);
}
END_TEST

/*
 * kill -9 and restart while a child goes on exchanging keys. With require its calls may
 * fail for want of a daemon or of a key, and for nothing else; without, only the keys
 * that died with the daemon may fail.
 */
static void
go_on(const struct daemon *daemon, bool require, unsigned ms)
{
	struct mlkemclient *client = client_of(daemon, require, 2000000);
	uint64_t end = now_us() + ms * 1000u;
	unsigned n_good = 0;

	while (now_us() < end) {
		int err = exchange(client, client, MLKEMCLIENT_X25519MLKEM768, false);

		n_good += err == 0;
		if (err == MLKEMCLIENT_E_UNAVAILABLE && require)
			usleep(1000);
		else if (err != 0 && err != MLKEMCLIENT_E_KEY_GONE)
			_exit(1);
	}
	client->require = true;
	if (exchange(client, client, MLKEMCLIENT_X25519MLKEM768, false) != 0)
		_exit(2);
	mlkemclient_free(client);
	_exit(n_good > 100 ? 0 : 3);
}

START_TEST(restarts_under_use)
{
	struct daemon daemon;
	int status;
	pid_t pid;

	daemon_start(&daemon, NULL);
	pid = fork();
	if (pid == 0)
		go_on(&daemon, _i == 0, 2000);
	for (int i = 0; i < 5; i++) {
		usleep(150000 + draw(50000));
		daemon_kill(&daemon);
		if (i == 2)
			usleep(300000);
		daemon_run(&daemon);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "the client ended with %#x", status);
	daemon_stop(&daemon);
}
END_TEST

START_TEST(stopped_daemon)
{
	enum mlkemclient_alg alg = MLKEMCLIENT_X25519MLKEM768;
	struct mlkemclient_key *key;
	struct mlkemclient *client, *soft;
	struct daemon daemon;
	uint64_t start;

	daemon_start(&daemon, NULL);
	client = client_of(&daemon, true, 100000);
	soft = client_of(&daemon, false, 200000);
	ck_assert_int_eq(mlkemclient_keygen(client, alg, shares[0], 1216, &key), 0);
	ck_assert_int_eq(
	    mlkemclient_encaps(client, alg, shares[0], 1216, cts[0], 1120, sent[0], 64),
	    0);
	ck_assert_int_eq(exchange(soft, soft, alg, false), 0);
	kill(daemon.pid, SIGSTOP);

	start = now_us();
	ck_assert_int_eq(mlkemclient_ping(client), MLKEMCLIENT_E_TIMEOUT);
	ck_assert_uint_ge(now_us() - start, 100000);
	ck_assert_uint_le(now_us() - start, 400000);
	start = now_us();
	ck_assert_int_eq(
	    exchange(client, client, alg, false), MLKEMCLIENT_E_UNAVAILABLE);
	ck_assert_uint_le(now_us() - start, 50000);
	/* goes on here, at most half a deadline late once */
	start = now_us();
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(exchange(soft, soft, alg, false), 0);
	ck_assert_uint_le(now_us() - start, 1000000);

	/* Awake again: late answers are dropped, the key of before still works. */
	kill(daemon.pid, SIGCONT);
	client->deadline_us = PLENTY_US;
	ck_assert_int_eq(mlkemclient_ping(client), 0);
	ck_assert_int_eq(
	    mlkemclient_decaps(client, key, cts[0], 1120, received[0], 64), 0);
	ck_assert_int_eq(mlkemclient_ping(soft), 0);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(exchange(client, client, alg, false), 0);
		ck_assert_int_eq(exchange(soft, soft, alg, false), 0);
	}
	ck_assert_uint_eq(client->counts.connects, 1);
	mlkemclient_key_free(client, key);
	mlkemclient_free(client);
	mlkemclient_free(soft);
	daemon_stop(&daemon);
}
END_TEST

START_TEST(children_of_one_handle)
{
	struct mlkemclient *client;
	struct daemon daemon;
	pid_t pids[8];

	daemon_start(&daemon, NULL);
	client = client_of(&daemon, true, PLENTY_US);
	ck_assert_int_eq(exchange(client, client, MLKEMCLIENT_ML_KEM_512, false), 0);
	for (int i = 0; i < 8; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			for (int round = 0; round < 500; round++)
				if (exchange(client, client, MLKEMCLIENT_ML_KEM_512,
					false) != 0)
					_exit(1);
			_exit(0);
		}
	}
	for (int i = 0; i < 8; i++) {
		int status;

		for (int round = 0; round < 50; round++)
			ck_assert_int_eq(
			    exchange(client, client, MLKEMCLIENT_ML_KEM_512, false), 0);
		waitpid(pids[i], &status, 0);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_uint_eq(client->counts.connects, 1);
	mlkemclient_free(client);
	daemon_stop(&daemon);
}
END_TEST

START_TEST(examples)
{
	const char *exe = getenv(_i == 0 ? "MLKEMD_EXCHANGE" : "MLKEMD_BATCH64");
	char command[512], line[256] = "";
	struct daemon daemon;
	FILE *out;

	ck_assert_msg(
	    exe != NULL, "MLKEMD_EXCHANGE and MLKEMD_BATCH64 name the examples");
	daemon_start(&daemon, NULL);
	snprintf(command, sizeof(command), "%s %s", exe, daemon.path);
	out = popen(command, "r");
	ck_assert_ptr_nonnull(out);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), out));
	ck_assert_int_eq(pclose(out), 0);
	ck_assert_ptr_nonnull(strstr(
	    line, _i == 0 ? "key in the daemon" : "64 of 64 secrets are equal; 192"));
	daemon_stop(&daemon);
}
END_TEST

static uint64_t
choose_seed(int argc, char **argv)
{
	struct timespec ts;

	if (argc == 3 && strcmp(argv[1], "--seed") == 0)
		return strtoull(argv[2], NULL, 0);
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000003u + (uint64_t)ts.tv_nsec;
}

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("with daemon");
	TCase *tc = tcase_create("with daemon");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	seed = choose_seed(argc, argv);
	printf("--seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 180);
	tcase_add_loop_test(tc, random_rounds, 0, N_ALGS);
	tcase_add_loop_test(tc, batches, 0, N_ALGS);
	tcase_add_loop_test(tc, own_keys_and_kdf, 0, N_ALGS);
	tcase_add_test(tc, export_is_off_by_default);
	tcase_add_test(tc, handles_are_used_once);
	tcase_add_test(tc, handles_of_others);
	tcase_add_test(tc, restart_between_calls);
	tcase_add_loop_test(tc, restarts_under_use, 0, 2);
	tcase_add_test(tc, stopped_daemon);
	tcase_add_test(tc, children_of_one_handle);
	tcase_add_loop_test(tc, examples, 0, 2);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
