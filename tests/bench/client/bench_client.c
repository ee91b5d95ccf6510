/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_client DAEMON [ROUNDS [leases]]: what the library costs its caller. Starts
 * DAEMON on a private socket and prints, for one thread,
 *   - key generation by leases, refills included (CPU and wall, a key)
 *   - the three operations through the daemon, sleeping and looking first
 *   - the same in this process
 * and the rate of several threads that share one handle.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/client.h"

#define ALG         MLKEMCLIENT_X25519MLKEM768
#define SHARE       1216
#define CT          1120
#define SECRET      64
#define MAX_ROUNDS  100000u
#define N_THREADS   8
#define LEASE_ROUND 1024u /* keys of one connection */

static char dir[] = "/tmp/mlkemd-bench-XXXXXX", socket_path[64], control_path[64],
	    config_path[64];
static pid_t daemon_pid;
static unsigned n_rounds = 20000;
static uint32_t samples[MAX_ROUNDS];

static void
die(const char *what)
{
	fprintf(stderr, "bench_client: %s\n", what);
	exit(1);
}

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct mlkemclient *
client_new(enum mlkemclient_route route, unsigned leases)
{
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = socket_path,
	    .route = route,
	    .leases = leases,
	    .require = route == MLKEMCLIENT_ROUTE_DAEMON};
	struct mlkemclient *client;

	if (mlkemclient_new(&client, &opts) != 0)
		die("no handle");
	return client;
}

static void
daemon_end(void)
{
	kill(daemon_pid, SIGTERM);
	waitpid(daemon_pid, NULL, 0);
	unlink(config_path);
	unlink(control_path);
	unlink(socket_path);
	rmdir(dir);
}

static void
daemon_begin(const char *exe)
{
	struct mlkemclient *client;
	int tries = 0, fd;

	if (mkdtemp(dir) == NULL)
		die("no folder in /tmp");
	snprintf(socket_path, sizeof(socket_path), "%s/sock", dir);
	snprintf(control_path, sizeof(control_path), "%s/control", dir);
	snprintf(config_path, sizeof(config_path), "%s/conf", dir);
	fd = open(config_path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	daemon_pid = fork();
	if (daemon_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(exe, exe, "--config", config_path, "--socket", socket_path,
		    "--control-socket", control_path, "--log-level", "warning", "--set",
		    "limits.max-handles=4096", NULL);
		_exit(127);
	}
	atexit(daemon_end);
	client = client_new(MLKEMCLIENT_ROUTE_DAEMON, 0);
	while (mlkemclient_ping(client) != 0 && tries++ < 400)
		usleep(5000);
	if (tries >= 400)
		die("the daemon does not answer");
	mlkemclient_free(client);
}

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void
print_row(const char *what, uint64_t cpu_ns, unsigned n)
{
	qsort(samples, n, sizeof(samples[0]), compare);
	printf("%-34s cpu %7.2f us  p50 %7.2f us  p99 %7.2f us\n", what,
	    (double)cpu_ns / n / 1000, samples[n / 2] / 1000.0,
	    samples[n - n / 100 - 1] / 1000.0);
}

/* Keys between two looks at the clock of the thread's processor time. */
#define BURST 16u

/* What lets the daemon work, and a proxy would spend on its connections. */
static void
pause_us(unsigned us)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	while (clock_ns(CLOCK_MONOTONIC) - start < us * 1000u)
		continue;
}

static void
make_keys(struct mlkemclient *client, struct mlkemclient_key **keys, uint32_t *took)
{
	uint8_t share[SHARE];

	for (unsigned i = 0; i < BURST; i++) {
		uint64_t start = took != NULL ? clock_ns(CLOCK_MONOTONIC) : 0;

		if (mlkemclient_keygen(client, ALG, share, SHARE, &keys[i]) != 0)
			die(mlkemclient_last_message(client));
		if (took != NULL)
			took[i] = (uint32_t)(clock_ns(CLOCK_MONOTONIC) - start);
	}
}

/*
 * One connection's keys, the first ones left out: they come while racks are filled.
 * Processor time is that of key generation, in which refills are asked for and taken;
 * of every second burst, that looks at no other clock.
 */
static unsigned
lease_round(struct mlkemclient *client, unsigned n, uint64_t *cpu_nsp)
{
	struct mlkemclient_key *keys[BURST];
	unsigned first = n;

	for (unsigned made = 0; made < LEASE_ROUND; made += BURST) {
		bool warm = made >= LEASE_ROUND / 4, timed = made % (2 * BURST) == 0;
		uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		make_keys(client, keys, timed ? &samples[n] : NULL);
		cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
		*cpu_nsp += warm && !timed ? cpu : 0;
		n += warm && timed ? BURST : 0;
		for (unsigned i = 0; i < BURST; i++) {
			atomic_store(&keys[i]->spent, true); /* no release */
			mlkemclient_key_free(client, keys[i]);
		}
		pause_us(200);
	}
	return n - first;
}

static void
bench_leases(unsigned leases)
{
	struct mlkemclient *client = client_new(MLKEMCLIENT_ROUTE_DAEMON, leases);
	struct mlkemclient_counts counts;
	uint64_t cpu_ns = 0;
	char what[64];
	unsigned n = 0;

	while (n + LEASE_ROUND < n_rounds) {
		n += lease_round(client, n, &cpu_ns);
		/* The daemon's limit of handles: the next connection has its own. */
		client_lock(client);
		link_close(client, LINK_E_LOST);
		client_unlock(client);
	}
	mlkemclient_get_counts(client, &counts);
	snprintf(what, sizeof(what), "keygen, leases %u (%.1f %% copies)", leases,
	    100.0 * (double)counts.by_lease / (double)counts.by_daemon);
	print_row(what, cpu_ns, n);
	mlkemclient_free(client);
}

static uint8_t share[SHARE], ct[CT], secret[SECRET];

static void
one(struct mlkemclient *client, enum job_op op, struct mlkemclient_key **keyp)
{
	int err = 0;

	switch (op) {
	case JOB_KEYGEN:
		err = mlkemclient_keygen(client, ALG, share, SHARE, keyp);
		break;
	case JOB_ENCAPS:
		err = mlkemclient_encaps(
		    client, ALG, share, SHARE, ct, CT, secret, SECRET);
		break;
	case JOB_DECAPS:
		err = mlkemclient_decaps(client, *keyp, ct, CT, secret, SECRET);
		break;
	}
	if (err != 0)
		die(mlkemclient_last_message(client));
}

/* Each operation in turn, as in handshakes; one of them is timed. */
static void
bench_op(struct mlkemclient *client, enum job_op op, const char *what)
{
	struct mlkemclient_key *key;
	uint64_t cpu = 0;

	for (unsigned i = 0; i < n_rounds + 200; i++) {
		for (enum job_op now = JOB_KEYGEN; now <= JOB_DECAPS; now++) {
			uint64_t wall = clock_ns(CLOCK_MONOTONIC);
			uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

			one(client, now, &key);
			if (now != op || i < 200)
				continue;
			cpu += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
			samples[i - 200] = (uint32_t)(clock_ns(CLOCK_MONOTONIC) - wall);
		}
		mlkemclient_key_free(client, key);
	}
	print_row(what, cpu, n_rounds);
}

static void
bench_ops(enum mlkemclient_route route, bool look, const char *how)
{
	static const char *const names[] = {"keygen", "encaps", "decaps"};
	struct mlkemclient *client = client_new(route, 0);
	char what[64];

	client_lock(client); /* enters the process */
	if (!look)
		client->live->n_cpus = 1;
	client_unlock(client);
	for (enum job_op op = JOB_KEYGEN; op <= JOB_DECAPS; op++) {
		snprintf(what, sizeof(what), "%s, %s", names[op], how);
		bench_op(client, op, what);
	}
	for (enum job_op op = JOB_KEYGEN;
	     look && route == MLKEMCLIENT_ROUTE_DAEMON && op <= JOB_DECAPS; op++) {
		const struct spin *spin = &client->live->spins[op];

		printf("  %s: %u us asleep, %u us looking; a wake-up costs %u us; "
		       "looking ends %u %% of waits\n",
		    names[op], spin->slept_us, spin->looked_us, spin_wakeup_us(spin),
		    spin->hits * 100 / 1024);
	}
	mlkemclient_free(client);
}

struct worker {
	pthread_t thread;
	struct mlkemclient *client;
	unsigned n;
};

static void *
work(void *arg)
{
	struct worker *worker = arg;
	uint8_t their_ct[CT], their_secret[SECRET];

	for (unsigned i = 0; i < worker->n; i++)
		if (mlkemclient_encaps(worker->client, ALG, share, SHARE, their_ct, CT,
			their_secret, SECRET) != 0)
			die(mlkemclient_last_message(worker->client));
	return NULL;
}

static void
bench_threads(enum mlkemclient_route route, const char *how)
{
	struct mlkemclient *client = client_new(route, 0);
	struct worker workers[N_THREADS];

	for (unsigned n = 1; n <= N_THREADS; n *= 2) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC), took;

		for (unsigned i = 0; i < n; i++) {
			workers[i] =
			    (struct worker){.client = client, .n = n_rounds / n};
			pthread_create(&workers[i].thread, NULL, work, &workers[i]);
		}
		for (unsigned i = 0; i < n; i++)
			pthread_join(workers[i].thread, NULL);
		took = clock_ns(CLOCK_MONOTONIC) - start;
		printf("encaps, %s, %u threads: %.0f a second\n", how, n,
		    n_rounds / n * n * 1e9 / (double)took);
	}
	mlkemclient_free(client);
}

int
main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: bench_client DAEMON [ROUNDS [leases]]");
	if (argc > 2)
		n_rounds = (unsigned)strtoul(argv[2], NULL, 10);
	if (n_rounds < 1000 || n_rounds > MAX_ROUNDS)
		die("1000 to 100000 rounds");
	daemon_begin(argv[1]);
	bench_leases(64);
	bench_leases(16);
	if (argc > 3 && strcmp(argv[3], "leases") == 0)
		return 0;
	bench_ops(MLKEMCLIENT_ROUTE_DAEMON, false, "daemon, sleeping");
	bench_ops(MLKEMCLIENT_ROUTE_DAEMON, true, "daemon, looking first");
	bench_ops(MLKEMCLIENT_ROUTE_LOCAL, true, "local");
	bench_threads(MLKEMCLIENT_ROUTE_DAEMON, "daemon");
	bench_threads(MLKEMCLIENT_ROUTE_LOCAL, "local");
	return 0;
}
