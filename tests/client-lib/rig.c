/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "rig.h"

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

uint64_t rig_seed;

uint32_t
rig_draw(uint32_t n)
{
	rig_seed = rig_seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rig_seed >> 33) % n;
}

uint64_t
rig_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

struct mlkemclient *
daemon_client(const struct daemon *daemon, bool require, uint32_t deadline_us)
{
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = daemon->path,
	    .route = MLKEMCLIENT_ROUTE_DAEMON,
	    .require = require,
	    .deadline_us = deadline_us};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	return client;
}

void
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
	client = daemon_client(daemon, true, 1000000);
	while ((err = mlkemclient_ping(client)) != 0 && n++ < 12000)
		usleep(5000);
	ck_assert_int_eq(err, 0);
	mlkemclient_free(client);
}

void
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

void
daemon_kill(struct daemon *daemon)
{
	kill(daemon->pid, SIGKILL);
	waitpid(daemon->pid, NULL, 0);
}

/* An orderly end; sanitizers report by the status. */
void
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

int
rig_exchange(struct mlkemclient *a, struct mlkemclient *b, enum mlkemclient_alg alg,
    bool change_bit)
{
	static uint8_t share[MLKEMCLIENT_MAX_SHARE], ct[MLKEMCLIENT_MAX_CIPHERTEXT];
	static uint8_t sent[MLKEMCLIENT_MAX_SECRET], received[MLKEMCLIENT_MAX_SECRET];
	struct mlkemclient_key *key = NULL;
	struct mlkemclient_sizes sizes;
	int err;

	ck_assert_int_eq(mlkemclient_get_sizes(alg, &sizes), 0);
	err = mlkemclient_keygen(a, alg, share, sizes.share, &key);
	if (err == 0)
		err = mlkemclient_encaps(b, alg, share, sizes.share, ct,
		    sizes.ciphertext, sent, sizes.secret);
	if (err == 0 && change_bit)
		ct[rig_draw((uint32_t)sizes.ciphertext - 32)] ^=
		    (uint8_t)(1u << rig_draw(8));
	if (err == 0)
		err = mlkemclient_decaps(
		    a, key, ct, sizes.ciphertext, received, sizes.secret);
	mlkemclient_key_free(a, key);
	if (err != 0)
		return err;
	ck_assert(!is_zero(sent, 32) && !is_zero(received, 32));
	return (memcmp(sent, received, sizes.secret) == 0) == !change_bit ? 0 : 1;
}

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
rig_main(int argc, char **argv, Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int n_failed;

	rig_seed = choose_seed(argc, argv);
	printf("--seed %llu\n", (unsigned long long)rig_seed);
	fflush(stdout);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
