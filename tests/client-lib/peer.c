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

struct mlkemclient *
peer_client(const struct peer *peer, bool require, uint32_t deadline_us)
{
	struct mlkemclient_options opts = {.size = sizeof(opts),
	    .socket_path = peer->path,
	    .client_name = "check",
	    .require = require,
	    .deadline_us = deadline_us};
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	return client;
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
	if (request->op_case == MLKEMD__V1__REQUEST__OP_HELLO)
		atomic_store(&counts->fallbacks, request->hello->fallbacks);
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

/* Memory of a connection's process, which ends with it: nothing here is freed. */
static void *
zalloc(size_t size)
{
	void *p = calloc(1, size);

	if (p == NULL)
		abort();
	return p;
}

static ProtobufCBinaryData
filled(size_t len, const uint8_t *from, uint8_t mask)
{
	ProtobufCBinaryData data = {.len = len, .data = zalloc(len)};

	for (size_t i = 0; i < len; i++)
		data.data[i] = (uint8_t)(from[i % 32] ^ mask);
	return data;
}

bool
peer_secret_matches(const uint8_t *secret, size_t len, const uint8_t *input)
{
	for (size_t i = 0; i < len; i++)
		if (secret[i] != (input[i % 32] ^ 0x5a))
			return false;
	return true;
}

bool
is_zero(const void *p, size_t len)
{
	const uint8_t *bytes = p;

	for (size_t i = 0; i < len; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

static const struct kem_alg_info *
info_of(Mlkemd__V1__Algorithm algorithm)
{
	enum kem_alg alg;

	if (alg_from_public((enum mlkemclient_alg)algorithm, &alg) != 0)
		abort();
	return kem_alg_info(alg);
}

static size_t
secret_len(const Mlkemd__V1__Kdf *kdf, const struct kem_alg_info *info)
{
	return kdf != NULL ? kdf->length : info->shared_bytes;
}

static void
reply_keys(Mlkemd__V1__Response *response, const Mlkemd__V1__Request *request)
{
	const Mlkemd__V1__GenerateKeys *op = request->generate_keys;
	const struct kem_alg_info *info = info_of(op->algorithm);
	Mlkemd__V1__KeysResult *result = zalloc(sizeof(*result));

	mlkemd__v1__keys_result__init(result);
	result->n_items = op->count;
	result->items = zalloc(op->count * sizeof(*result->items));
	for (size_t i = 0; i < op->count; i++) {
		Mlkemd__V1__KeyItem *item = zalloc(sizeof(*item));
		uint8_t from[32];

		memset(from, (int)(request->id * 64 + i), sizeof(from));
		mlkemd__v1__key_item__init(item);
		item->share = filled(info->share_bytes, from, 0x01);
		if (op->export_private)
			item->private_key = filled(info->dk_bytes, from, 0x02);
		else
			item->handle = filled(WIRE_HANDLE_BYTES, from, 0x03);
		result->items[i] = item;
	}
	response->keys = result;
	response->result_case = MLKEMD__V1__RESPONSE__RESULT_KEYS;
}

static void
reply_encaps(Mlkemd__V1__Response *response, const Mlkemd__V1__Encapsulate *op)
{
	const struct kem_alg_info *info = info_of(op->algorithm);
	Mlkemd__V1__EncapsulateResult *result = zalloc(sizeof(*result));

	mlkemd__v1__encapsulate_result__init(result);
	result->n_items = op->n_shares;
	result->items = zalloc(op->n_shares * sizeof(*result->items));
	for (size_t i = 0; i < op->n_shares; i++) {
		Mlkemd__V1__EncapsulatedItem *item = zalloc(sizeof(*item));

		mlkemd__v1__encapsulated_item__init(item);
		item->ciphertext = filled(info->ct_bytes, op->shares[i].data, 0x04);
		item->secret =
		    filled(secret_len(op->kdf, info), op->shares[i].data, 0x5a);
		result->items[i] = item;
	}
	response->encapsulated = result;
	response->result_case = MLKEMD__V1__RESPONSE__RESULT_ENCAPSULATED;
}

static void
reply_decaps(Mlkemd__V1__Response *response, const Mlkemd__V1__Decapsulate *op)
{
	const struct kem_alg_info *info = info_of(op->algorithm);
	Mlkemd__V1__DecapsulateResult *result = zalloc(sizeof(*result));

	mlkemd__v1__decapsulate_result__init(result);
	result->n_items = op->n_items;
	result->items = zalloc(op->n_items * sizeof(*result->items));
	for (size_t i = 0; i < op->n_items; i++) {
		Mlkemd__V1__DecapsulatedItem *item = zalloc(sizeof(*item));

		mlkemd__v1__decapsulated_item__init(item);
		item->secret = filled(
		    secret_len(op->kdf, info), op->items[i]->ciphertext.data, 0x5a);
		result->items[i] = item;
	}
	response->decapsulated = result;
	response->result_case = MLKEMD__V1__RESPONSE__RESULT_DECAPSULATED;
}

static void
reply_about(Mlkemd__V1__Response *response, const Mlkemd__V1__Request *request)
{
	static char version[] = "9.9.9", backend[] = "peer", memory[] = "off";

	if (request->op_case == MLKEMD__V1__REQUEST__OP_HELLO) {
		response->hello = zalloc(sizeof(*response->hello));
		mlkemd__v1__hello_result__init(response->hello);
		response->hello->version = 1;
		response->hello->connection = 77;
		response->result_case = MLKEMD__V1__RESPONSE__RESULT_HELLO;
	} else if (request->op_case == MLKEMD__V1__REQUEST__OP_INFO) {
		response->info = zalloc(sizeof(*response->info));
		mlkemd__v1__info_result__init(response->info);
		response->info->server_version = version;
		response->info->backend = backend;
		response->info->secret_memory = memory;
		response->info->lanes = 8;
		response->result_case = MLKEMD__V1__RESPONSE__RESULT_INFO;
	} else if (request->op_case == MLKEMD__V1__REQUEST__OP_RELEASE) {
		response->released = zalloc(sizeof(*response->released));
		mlkemd__v1__release_result__init(response->released);
		response->released->released = 1;
		response->result_case = MLKEMD__V1__RESPONSE__RESULT_RELEASED;
	}
}

static uint8_t *
frame_of(const Mlkemd__V1__Response *response, size_t *lenp)
{
	size_t len = mlkemd__v1__response__get_packed_size(response);
	uint8_t *frame = zalloc(WIRE_HEADER_BYTES + len);

	wire_put_length(frame, (uint32_t)len);
	mlkemd__v1__response__pack(response, frame + WIRE_HEADER_BYTES);
	*lenp = WIRE_HEADER_BYTES + len;
	return frame;
}

uint8_t *
peer_reply(const Mlkemd__V1__Request *request,
    void (*tamper)(Mlkemd__V1__Response *response), size_t *lenp)
{
	Mlkemd__V1__Response response = MLKEMD__V1__RESPONSE__INIT;

	response.id = request->id;
	switch (request->op_case) {
	case MLKEMD__V1__REQUEST__OP_GENERATE_KEYS:
		reply_keys(&response, request);
		break;
	case MLKEMD__V1__REQUEST__OP_ENCAPSULATE:
		reply_encaps(&response, request->encapsulate);
		break;
	case MLKEMD__V1__REQUEST__OP_DECAPSULATE:
		reply_decaps(&response, request->decapsulate);
		break;
	default:
		reply_about(&response, request);
		break;
	}
	if (tamper != NULL)
		tamper(&response);
	return frame_of(&response, lenp);
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
	frame = frame_of(&response, &len);
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
