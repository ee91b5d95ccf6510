/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "peer.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kem/kem.h"
#include "proto/wire.h"

static int
peer_listen(struct peer *peer, int backlog)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	snprintf(peer->dir, sizeof(peer->dir), "/tmp/mlkemd-peer-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(peer->dir));
	snprintf(peer->path, sizeof(peer->path), "%s/sock", peer->dir);
	memcpy(addr.sun_path, peer->path, strlen(peer->path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(fd, backlog), 0);
	return fd;
}

static void
peer_main(int listen_fd, peer_script *script, struct peer_counts *counts)
{
	signal(SIGCHLD, SIG_IGN);
	while (atomic_load(&counts->step) == UINT32_MAX)
		usleep(2000);
	for (;;) {
		int fd = accept(listen_fd, NULL, NULL);

		if (fd < 0)
			continue;
		atomic_fetch_add(&counts->connections, 1);
		if (fork() == 0) {
			close(listen_fd);
			script(fd, counts);
			atomic_fetch_add(&counts->ended, 1);
			_exit(0);
		}
		close(fd);
	}
}

static void
start(struct peer *peer, peer_script *script, int backlog, unsigned step)
{
	pid_t parent = getpid();
	int fd;

	memset(peer, 0, sizeof(*peer));
	peer->counts = mmap(NULL, sizeof(*peer->counts), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(peer->counts != MAP_FAILED);
	atomic_store(&peer->counts->step, step);
	fd = peer_listen(peer, backlog);
	peer->pid = fork();
	ck_assert_int_ge(peer->pid, 0);
	if (peer->pid == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		peer_main(fd, script, peer->counts);
	}
	setpgid(peer->pid, peer->pid);
	close(fd);
}

void
peer_start(struct peer *peer, peer_script *script)
{
	start(peer, script, PEER_BACKLOG, 0);
}

void
peer_start_closed(struct peer *peer, peer_script *script, int backlog)
{
	start(peer, script, backlog, UINT32_MAX);
}

void
peer_stop(struct peer *peer)
{
	kill(-peer->pid, SIGKILL);
	waitpid(peer->pid, NULL, 0);
	unlink(peer->path);
	rmdir(peer->dir);
	munmap(peer->counts, sizeof(*peer->counts));
}

uint64_t peer_clock_ahead_us;
static uint64_t stopped_at_us;

uint64_t
peer_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

static uint64_t
clock_ahead(void *arg)
{
	(void)arg;
	return (stopped_at_us != 0 ? stopped_at_us : peer_now_us()) +
	       peer_clock_ahead_us;
}

void
peer_clock_stop(void)
{
	stopped_at_us = peer_now_us();
}

void
peer_clock_go(void)
{
	peer_clock_ahead_us -= peer_now_us() - stopped_at_us;
	stopped_at_us = 0;
}

void
peer_wait(const _Atomic unsigned *count, unsigned n)
{
	for (int i = 0; i < 30000 && atomic_load(count) < n; i++)
		usleep(1000);
	ck_assert_uint_eq(atomic_load(count), n);
}

struct mlkemclient *
peer_client(const struct peer *peer, bool require, uint32_t deadline_us)
{
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = peer->path,
	    .client_name = "check",
	    .route = MLKEMCLIENT_ROUTE_DAEMON,
	    .require = require,
	    .deadline_us = deadline_us};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	client->clock = clock_ahead;
	return client;
}

int
peer_keygen_where(struct mlkemclient *client)
{
	uint8_t share[1184];
	struct mlkemclient_key *key;
	int err, where;

	memset(share, 0xee, sizeof(share));
	err = mlkemclient_keygen(
	    client, MLKEMCLIENT_ML_KEM_768, share, sizeof(share), &key);
	ck_assert((err == 0) == !is_zero(share, sizeof(share)));
	if (err != 0)
		return err;
	where = mlkemclient_key_in_daemon(key) ? PEER_BY_DAEMON : PEER_BY_LOCAL;
	mlkemclient_key_free(client, key);
	return where;
}

static bool
read_all(int fd, uint8_t *data, size_t len)
{
	while (len != 0) {
		ssize_t n = read(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

Mlkemd__V1__Request *
peer_read(int fd, struct peer_counts *counts)
{
	uint8_t header[WIRE_HEADER_BYTES], *data;
	Mlkemd__V1__Request *request;
	struct wire_prescan seen;
	uint32_t len;

	if (!read_all(fd, header, sizeof(header)))
		return NULL;
	len = wire_get_length(header);
	if (!wire_length_ok(len))
		abort();
	data = malloc(len);
	if (data == NULL || !read_all(fd, data, len))
		return NULL;
	if (wire_prescan(data, len, &seen) != 0 || seen.n_ops != 1)
		abort();
	request = mlkemd__v1__request__unpack(NULL, len, data);
	free(data);
	if (request == NULL)
		abort();
	atomic_fetch_add(&counts->requests, 1);
	if (request->op_case == MLKEMD__V1__REQUEST__OP_GENERATE_KEYS ||
	    request->op_case == MLKEMD__V1__REQUEST__OP_ENCAPSULATE ||
	    request->op_case == MLKEMD__V1__REQUEST__OP_DECAPSULATE)
		atomic_fetch_add(&counts->jobs, 1);
	if (request->op_case == MLKEMD__V1__REQUEST__OP_RELEASE)
		atomic_fetch_add(&counts->releases, 1);
	if (request->op_case == MLKEMD__V1__REQUEST__OP_HELLO) {
		atomic_store(&counts->fallbacks, request->hello->fallbacks);
		atomic_store(&counts->auto_daemon, request->hello->auto_daemon);
		atomic_store(&counts->auto_local, request->hello->auto_local);
	}
	return request;
}

void
peer_write(int fd, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len != 0) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		p += n;
		len -= (size_t)n;
	}
}

void
peer_answer(int fd, const Mlkemd__V1__Request *request)
{
	size_t len;
	uint8_t *frame = peer_reply(request, NULL, &len);

	peer_write(fd, frame, len);
}

void
peer_refuse(int fd, const Mlkemd__V1__Request *request, uint32_t status)
{
	static char text[] = "refused by the script";
	Mlkemd__V1__Response response = MLKEMD__V1__RESPONSE__INIT;
	uint8_t *frame;
	size_t len;

	response.id = request->id;
	response.status = (Mlkemd__V1__Status)status;
	response.message = text;
	frame = peer_frame_of(&response, &len);
	peer_write(fd, frame, len);
}

void
peer_greet(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request = peer_read(fd, counts);

	if (request == NULL)
		_exit(0);
	if (request->op_case != MLKEMD__V1__REQUEST__OP_HELLO)
		abort();
	peer_answer(fd, request);
}

void
peer_honest(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL)
		peer_answer(fd, request);
}

int
peer_encaps(struct mlkemclient *client, uint32_t tag)
{
	static uint8_t share[1216], ciphertext[1120], secret[64];
	int err;

	for (size_t i = 0; i < sizeof(share); i++)
		share[i] = (uint8_t)(tag >> (8 * (i % 4)) ^ i % 32);
	memset(ciphertext, 0xee, sizeof(ciphertext));
	memset(secret, 0xee, sizeof(secret));
	err = mlkemclient_encaps(client, MLKEMCLIENT_X25519MLKEM768, share,
	    sizeof(share), ciphertext, sizeof(ciphertext), secret, sizeof(secret));
	if (err == 0)
		return peer_secret_matches(secret, sizeof(secret), share)
			   ? 0
			   : PEER_FOREIGN;
	ck_assert(is_zero(ciphertext, sizeof(ciphertext)));
	ck_assert(is_zero(secret, sizeof(secret)));
	return err;
}
