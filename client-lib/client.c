/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/client.h"
#include "kem/fault.h"

static uint64_t
clock_monotonic(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

uint64_t
client_now(const struct mlkemclient *client)
{
	return client->clock(client->clock_arg);
}

/*
 * Older callers know a shorter struct: what they did not give keeps its zero. A longer
 * one, from a later header, may only carry zeros beyond what is known here.
 */
static int
options_take(struct mlkemclient_options *known, const struct mlkemclient_options *opts)
{
	const uint8_t *bytes = (const uint8_t *)opts;
	size_t size;

	memset(known, 0, sizeof(*known));
	if (opts == NULL)
		return 0;
	size = opts->size;
	if (size < sizeof(opts->size))
		return MLKEMCLIENT_E_INVALID;
	for (size_t i = sizeof(*known); i < size; i++)
		if (bytes[i] != 0)
			return MLKEMCLIENT_E_INVALID;
	memcpy(known, opts, size < sizeof(*known) ? size : sizeof(*known));
	return 0;
}

int
mlkemclient_new(struct mlkemclient **clientp, const struct mlkemclient_options *opts)
{
	struct mlkemclient_options known;
	struct mlkemclient *client;
	const char *path, *name;

	if (clientp == NULL)
		return MLKEMCLIENT_E_INVALID;
	*clientp = NULL;
	if (options_take(&known, opts) != 0)
		return MLKEMCLIENT_E_INVALID;
	path =
	    known.socket_path != NULL ? known.socket_path : MLKEMCLIENT_DEFAULT_SOCKET;
	name = known.client_name != NULL ? known.client_name
					 : program_invocation_short_name;
	/* A path cut short would be another path. */
	if (path[0] == '\0' || strlen(path) > CLIENT_MAX_PATH)
		return MLKEMCLIENT_E_INVALID;
	if ((known.route != MLKEMCLIENT_ROUTE_AUTO &&
		known.route != MLKEMCLIENT_ROUTE_DAEMON &&
		known.route != MLKEMCLIENT_ROUTE_LOCAL) ||
	    known.leases > MLKEMCLIENT_MAX_LEASES)
		return MLKEMCLIENT_E_INVALID;

	client = calloc(1, sizeof(*client));
	if (client == NULL)
		return MLKEMCLIENT_E_INTERNAL;
	memcpy(client->path, path, strlen(path) + 1);
	snprintf(client->name, sizeof(client->name), "%s", name);
	client->route = known.route;
	client->require = known.require;
	client->deadline_us =
	    known.deadline_us != 0 ? known.deadline_us : CLIENT_DEFAULT_DEADLINE;
	client->daemon_deadline_us = known.daemon_deadline_us != 0
					 ? known.daemon_deadline_us
					 : client->deadline_us / 2;
	client->leases = known.leases;
	client->server_uid_set = known.server_uid_set;
	client->server_uid = known.server_uid;
	client->pid = getpid();
	client->link.fd = -1;
	client->clock = clock_monotonic;
	*clientp = client;
	return 0;
}

void
mlkemclient_free(struct mlkemclient *client)
{
	if (client == NULL)
		return;
	link_close(client);
	room_unmap(&client->link.room);
	local_free(client);
	key_blocks_free(client);
	kem_wipe(client, sizeof(*client));
	free(client);
}

/*
 * In a child the connection is the parent's: two processes on one stream would read
 * each other's secrets. Close our copy (no shutdown, it would reach the parent) and
 * start anew; keys of the parent are gone here, their memory is zero already.
 */
static void
client_enter_child(struct mlkemclient *client, pid_t pid)
{
	client->pid = pid;
	link_close(client);
	room_relock(&client->link.room);
	local_relock(client);
	key_blocks_relock(client);
}

void
client_check_process(struct mlkemclient *client)
{
	pid_t pid = getpid();

	if (pid != client->pid && !fault("client-no-pid-check"))
		client_enter_child(client, pid);
}

void
client_enter(struct mlkemclient *client)
{
	client->message[0] = '\0';
	client_check_process(client);
}

int
client_fail(struct mlkemclient *client, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(client->message, sizeof(client->message), format, ap);
	va_end(ap);
	return error;
}

const char *
mlkemclient_last_message(const struct mlkemclient *client)
{
	return client != NULL ? client->message : "";
}

void
mlkemclient_copy_message(const struct mlkemclient *client, char *buf, size_t size)
{
	if (buf != NULL && size != 0)
		snprintf(buf, size, "%s", mlkemclient_last_message(client));
}

static const struct {
	enum mlkemclient_alg wire;
	enum kem_alg alg;
} algs[] = {
    {MLKEMCLIENT_ML_KEM_512, KEM_ALG_MLKEM512},
    {MLKEMCLIENT_ML_KEM_768, KEM_ALG_MLKEM768},
    {MLKEMCLIENT_ML_KEM_1024, KEM_ALG_MLKEM1024},
    {MLKEMCLIENT_X25519MLKEM768, KEM_ALG_X25519MLKEM768},
};

#define N_ALGS (sizeof(algs) / sizeof(algs[0]))
_Static_assert(N_ALGS == KEM_N_ALGS, "an algorithm is missing here");

int
alg_from_public(enum mlkemclient_alg alg, enum kem_alg *algp)
{
	for (size_t i = 0; i < N_ALGS; i++) {
		if (algs[i].wire == alg) {
			*algp = algs[i].alg;
			return 0;
		}
	}
	return MLKEMCLIENT_E_UNSUPPORTED;
}

enum mlkemclient_alg
alg_to_public(enum kem_alg alg)
{
	size_t i = 0;

	while (algs[i].alg != alg)
		i++;
	return algs[i].wire;
}

int
mlkemclient_get_sizes(enum mlkemclient_alg alg, struct mlkemclient_sizes *sizes)
{
	const struct kem_alg_info *info;
	enum kem_alg kem_alg;

	if (sizes == NULL)
		return MLKEMCLIENT_E_INVALID;
	memset(sizes, 0, sizeof(*sizes));
	if (alg_from_public(alg, &kem_alg) != 0)
		return MLKEMCLIENT_E_UNSUPPORTED;
	info = kem_alg_info(kem_alg);
	sizes->share = info->share_bytes;
	sizes->ciphertext = info->ct_bytes;
	sizes->secret = info->shared_bytes;
	sizes->private_key = info->dk_bytes;
	sizes->seed = info->seed_bytes;
	return 0;
}

const char *
mlkemclient_alg_name(enum mlkemclient_alg alg)
{
	enum kem_alg kem_alg;

	if (alg_from_public(alg, &kem_alg) != 0)
		return NULL;
	return kem_alg_info(kem_alg)->name;
}

int
mlkemclient_alg_parse(const char *name, enum mlkemclient_alg *algp)
{
	enum kem_alg kem_alg;

	if (name == NULL || algp == NULL)
		return MLKEMCLIENT_E_INVALID;
	if (kem_alg_parse(name, &kem_alg) != 0)
		return MLKEMCLIENT_E_UNSUPPORTED;
	*algp = alg_to_public(kem_alg);
	return 0;
}

int
mlkemclient_set_kdf(struct mlkemclient *client, unsigned hash, const uint8_t *salt,
    size_t salt_len, const uint8_t *info, size_t info_len, uint32_t length)
{
	struct kdf *kdf;
	enum kem_hash kem_hash = hash == 384 ? KEM_HASH_SHA384 : KEM_HASH_SHA256;

	if (client == NULL)
		return MLKEMCLIENT_E_INVALID;
	client_enter(client);
	kdf = &client->kdf;
	kem_wipe(kdf, sizeof(*kdf));
	if (hash == 0)
		return 0;
	if (hash != 256 && hash != 384)
		return client_fail(client, MLKEMCLIENT_E_INVALID,
		    "kdf: hash %u; 256, 384 and 0 (off) are allowed", hash);
	if (salt_len > CLIENT_MAX_KDF_INPUT || info_len > CLIENT_MAX_KDF_INPUT ||
	    (salt == NULL && salt_len != 0) || (info == NULL && info_len != 0))
		return client_fail(client, MLKEMCLIENT_E_INVALID,
		    "kdf: salt and info may have up to %d bytes each",
		    CLIENT_MAX_KDF_INPUT);
	if (length == 0 || length > KEM_HKDF_MAX(kem_hash))
		return client_fail(client, MLKEMCLIENT_E_INVALID,
		    "kdf: length %u; 1 to %u is allowed", length,
		    KEM_HKDF_MAX(kem_hash));
	kdf->used = true;
	kdf->hash = kem_hash;
	kdf->length = length;
	kdf->salt_len = salt_len;
	kdf->info_len = info_len;
	if (salt_len != 0)
		memcpy(kdf->salt, salt, salt_len);
	if (info_len != 0)
		memcpy(kdf->info, info, info_len);
	return 0;
}

void
mlkemclient_get_counts(
    const struct mlkemclient *client, struct mlkemclient_counts *counts)
{
	if (counts == NULL)
		return;
	if (client == NULL)
		memset(counts, 0, sizeof(*counts));
	else
		*counts = client->counts;
}

void
mlkemclient_wipe(void *p, size_t len)
{
	kem_wipe(p, len);
}
