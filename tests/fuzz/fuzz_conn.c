/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole connection: the input is what a peer sends over a socketpair to a real shard,
 * with kem, pool and key table behind it, and then shuts down its side. Every answer is
 * a frame that protobuf reads; the shard ends the connection, keeps no handle and still
 * serves the next. The first byte says in what pieces the rest is sent.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/shard.h"
#include "mlkemd.pb-c.h"
#include "proto/wire.h"
#include "target.h"

#define WAIT_MS 60000

static struct kem *kem;
static struct config *config;
static struct shard_common common;
static struct shard shard;
static const struct metrics_shard *metrics[1];
static uint64_t n_conns;
static pid_t owner;

static void
shard_end(void)
{
	const struct shard_record quit = {.type = SHARD_QUIT};

	if (getpid() != owner)
		return;
	fuzz_require(shard_tell(&shard, &quit));
	shard_fini(&shard);
	config_free(config);
	kem_free(kem);
	close(common.wake_fd);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct config_flag flags[] = {
	    {"-", "pool.hybrid", "16"},
	    {"-", "pool.mlkem768", "16"},
	    {"-", "pool.x25519", "16"},
	    {"-", "kem.export-private-keys", "yes"},
	    {"-", "limits.hello-timeout", "1m"},
	    {"-", "daemon.secret-memory", "off"},
	};
	const struct config_sources sources = {.file = "/nonexistent/mlkemd.conf",
	    .flags = flags,
	    .n_flags = sizeof(flags) / sizeof(flags[0])};
	char error[512];

	(void)argc, (void)argv;
	signal(SIGPIPE, SIG_IGN);
	log_set_level(-1);
	if (config_load(&config, &sources, NULL, error, sizeof(error))) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	common =
	    (struct shard_common){.n_shards = 1, .wake_fd = eventfd(0, EFD_NONBLOCK)};
	if (kem_open(&kem, NULL))
		return 1;
	common.kem = kem;
	metrics[0] = &shard.metrics;
	if (shard_init(&shard, 0, config, &common) || shard_start(&shard))
		return 1;
	owner = getpid();
	atexit(shard_end);
	return 0;
}

/* Answers as they come, frame by frame. */
struct reader {
	uint8_t *data;
	size_t len, room;
	unsigned n_answers;
};

static void
answers_check(struct reader *reader)
{
	size_t at = 0;

	while (reader->len - at >= WIRE_HEADER_BYTES) {
		uint32_t length = wire_get_length(reader->data + at);

		fuzz_require(length > 0);
		if (reader->len - at - WIRE_HEADER_BYTES < length)
			break;
		Mlkemd__V1__Response *response = mlkemd__v1__response__unpack(
		    NULL, length, reader->data + at + WIRE_HEADER_BYTES);
		fuzz_require(response);
		reader->n_answers++;
		if (response->status == MLKEMD__V1__STATUS__OK &&
		    response->result_case == MLKEMD__V1__RESPONSE__RESULT_DECAPSULATED)
			fuzz_point("conn-decaps");
		if (response->result_case == MLKEMD__V1__RESPONSE__RESULT_KEYS)
			fuzz_point("conn-keys");
		if (response->status == MLKEMD__V1__STATUS__INVALID_REQUEST)
			fuzz_point("conn-refused");
		mlkemd__v1__response__free_unpacked(response, NULL);
		at += WIRE_HEADER_BYTES + length;
	}
	memmove(reader->data, reader->data + at, reader->len - at);
	reader->len -= at;
}

/* Reads what is there. False at the end of the connection. */
static bool
reader_read(struct reader *reader, int fd)
{
	if (reader->room - reader->len < 65536) {
		reader->room = reader->room * 2 + 131072;
		reader->data = realloc(reader->data, reader->room);
		fuzz_require(reader->data);
	}
	ssize_t n = recv(
	    fd, reader->data + reader->len, reader->room - reader->len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	reader->len += (size_t)n;
	answers_check(reader);
	return n > 0;
}

/* Sends all and reads all: neither side may wait for the other for ever. */
static void
conversation(int fd, const uint8_t *data, size_t size, size_t piece)
{
	struct reader reader = {0};
	bool sending = true;

	for (;;) {
		struct pollfd p = {fd, POLLIN, 0};

		if (sending && size == 0) {
			shutdown(fd, SHUT_WR);
			sending = false;
		}
		if (sending)
			p.events |= POLLOUT;
		int n_ready;
		do { /* libFuzzer's alarm interrupts it */
			n_ready = poll(&p, 1, WAIT_MS);
		} while (n_ready < 0 && errno == EINTR);
		fuzz_require(n_ready == 1);
		if (p.revents & POLLOUT) {
			ssize_t n = send(fd, data, size < piece ? size : piece,
			    MSG_DONTWAIT | MSG_NOSIGNAL);

			if (n > 0) {
				data += n;
				size -= (size_t)n;
			} else if (errno != EAGAIN && errno != EINTR) {
				size = 0; /* it has closed: read what it said */
			}
		}
		if (p.revents & (POLLIN | POLLHUP | POLLERR) &&
		    !reader_read(&reader, fd))
			break;
	}
	free(reader.data);
}

static uint64_t
level(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fds[2];

	if (size < 1)
		return 0;
	fuzz_require(
	    !socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	const struct shard_record record = {.type = SHARD_NEW_CONN,
	    .fd = fds[1],
	    .peer = {.uid = getuid(), .id = ++n_conns}};
	fuzz_require(shard_tell(&shard, &record));
	conversation(fds[0], data + 1, size - 1, data[0] ? data[0] : 65536);
	close(fds[0]);
	/* It has ended there too before the next one begins: inputs stand alone. */
	for (int i = 0; i < WAIT_MS && atomic_load(&shard.n_ended) < n_conns; i++)
		usleep(i < 100 ? 50 : 1000);
	fuzz_require(atomic_load(&shard.n_ended) == n_conns);
	fuzz_require(atomic_load(&shard.failed) == 0);
	fuzz_require(level(&shard.metrics.handles) == 0);
	return 0;
}
