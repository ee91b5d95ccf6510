/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdio.h>
#include <string.h>

#include "client-lib/client.h"
#include "kem/fault.h"
#include "mlkemd.pb-c.h"

/* The daemon's words, made fit to print: cut to size - 1 bytes of plain ASCII. */
static void
text_take(char *out, size_t size, const char *text)
{
	size_t n = 0;

	for (; text != NULL && text[n] != '\0' && n + 1 < size; n++)
		out[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	out[n] = '\0';
}

static int
refusal(struct call *call, uint32_t status, const char *text)
{
	int error = error_from_status(status);
	char clean[WIRE_MAX_MESSAGE_TEXT + 1];

	text_take(clean, sizeof(clean), text);
	if (*clean == '\0')
		snprintf(clean, sizeof(clean), "%s", mlkemclient_strerror(error));
	return call_fail(call, error, "%s (status %u)", clean, status);
}

/* One item of an answer, whatever its operation. */
struct incoming_item {
	uint32_t status;
	const char *message;
	ProtobufCBinaryData share, handle, private_key, ciphertext, secret;
};

static size_t
incoming_n_items(const Mlkemd__V1__Response *response, enum job_op op)
{
	switch (op) {
	case JOB_KEYGEN:
		return response->keys->n_items;
	case JOB_ENCAPS:
		return response->encapsulated->n_items;
	case JOB_DECAPS:
		break;
	}
	return response->decapsulated->n_items;
}

static struct incoming_item
incoming_item(const Mlkemd__V1__Response *response, enum job_op op, size_t i)
{
	switch (op) {
	case JOB_KEYGEN: {
		const Mlkemd__V1__KeyItem *item = response->keys->items[i];

		return (struct incoming_item){.status = item->status,
		    .message = item->message,
		    .share = item->share,
		    .handle = item->handle,
		    .private_key = item->private_key};
	}
	case JOB_ENCAPS: {
		const Mlkemd__V1__EncapsulatedItem *item =
		    response->encapsulated->items[i];

		return (struct incoming_item){.status = item->status,
		    .message = item->message,
		    .ciphertext = item->ciphertext,
		    .secret = item->secret};
	}
	case JOB_DECAPS:
		break;
	}
	return (struct incoming_item){
	    .status = response->decapsulated->items[i]->status,
	    .message = response->decapsulated->items[i]->message,
	    .secret = response->decapsulated->items[i]->secret};
}

/* A result must have exactly what its operation gives, to the byte. */
static bool
incoming_is_honest(const struct incoming_item *in, const struct job *job)
{
	const struct kem_alg_info *info = kem_alg_info(job->alg);

	if (in->status != 0)
		return true;
	switch (job->op) {
	case JOB_KEYGEN:
		return in->share.len == info->share_bytes &&
		       in->handle.len ==
			   (job->export_private ? 0 : WIRE_HANDLE_BYTES) &&
		       in->private_key.len ==
			   (job->export_private ? info->dk_bytes : 0u);
	case JOB_ENCAPS:
		return in->ciphertext.len == info->ct_bytes &&
		       in->secret.len == job->secret_bytes;
	case JOB_DECAPS:
		break;
	}
	return in->secret.len == job->secret_bytes;
}

/* The length was found right by incoming_is_honest(). */
static void
bytes_take(uint8_t *out, ProtobufCBinaryData in)
{
	if (out != NULL && in.data != NULL)
		memcpy(out, in.data, in.len);
}

static void
item_take(struct call *call, struct job_item *item, const struct incoming_item *in)
{
	if (in->status != 0) {
		item->error = refusal(call, in->status, in->message);
		return;
	}
	bytes_take(item->out_share, in->share);
	bytes_take(item->out_private_key, in->private_key);
	bytes_take(item->out_ciphertext, in->ciphertext);
	bytes_take(item->out_secret, in->secret);
	if (in->handle.len != 0)
		key_made_in_daemon(item->key, in->handle.data, false);
	item->error = 0;
}

/* All is looked at before anything is used: an answer that lies gives nothing. */
static int
job_take(
    struct mlkemclient *client, struct call *call, const Mlkemd__V1__Response *response)
{
	struct job *job = call->job;
	static const Mlkemd__V1__Response__ResultCase results[] = {
	    [JOB_KEYGEN] = MLKEMD__V1__RESPONSE__RESULT_KEYS,
	    [JOB_ENCAPS] = MLKEMD__V1__RESPONSE__RESULT_ENCAPSULATED,
	    [JOB_DECAPS] = MLKEMD__V1__RESPONSE__RESULT_DECAPSULATED,
	};
	size_t n = job_n_by_daemon(job), taken = 0;

	if (response->result_case != results[job->op] ||
	    incoming_n_items(response, job->op) != n)
		return MESSAGE_E_LIE;
	for (size_t i = 0; i < n; i++) {
		struct incoming_item in = incoming_item(response, job->op, i);

		if (!incoming_is_honest(&in, job))
			return MESSAGE_E_LIE;
	}
	for (size_t i = 0; i < job->n_items; i++) {
		struct incoming_item in;

		if (!job->items[i].by_daemon)
			continue;
		in = incoming_item(response, job->op, taken++);
		item_take(call, &job->items[i], &in);
		client->live->counts.by_daemon += job->items[i].error == 0;
	}
	return 0;
}

/* As honest as a job's answer has to be. The first refusal is why there are no more. */
static int
lease_fill(
    struct mlkemclient *client, struct call *call, const Mlkemd__V1__Response *response)
{
	const struct job like = {.op = JOB_KEYGEN, .alg = call->rack->alg};
	int err = 0;

	if (response->result_case != MLKEMD__V1__RESPONSE__RESULT_KEYS ||
	    response->keys->n_items != call->rack->n_asked)
		return MESSAGE_E_LIE;
	for (size_t i = 0; i < response->keys->n_items; i++) {
		struct incoming_item in = incoming_item(response, JOB_KEYGEN, i);

		if (!incoming_is_honest(&in, &like))
			return MESSAGE_E_LIE;
	}
	for (size_t i = 0; i < response->keys->n_items; i++) {
		struct incoming_item in = incoming_item(response, JOB_KEYGEN, i);

		if (in.status == 0)
			lease_put(client, call->rack, in.share.data, in.handle.data);
		else if (err == 0)
			err = refusal(call, in.status, in.message);
	}
	return err;
}

/* What has a handle is a key in the daemon, and nobody's. */
static int
late_take(struct mlkemclient *client, const Mlkemd__V1__Response *response)
{
	if (response->result_case != MLKEMD__V1__RESPONSE__RESULT_KEYS)
		return 0;
	for (size_t i = 0; i < response->keys->n_items; i++) {
		struct incoming_item in = incoming_item(response, JOB_KEYGEN, i);

		if (in.handle.len == WIRE_HANDLE_BYTES)
			link_unwanted(&client->live->link, in.handle.data);
	}
	return 0;
}

static int
hello_take(struct mlkemclient *client, const Mlkemd__V1__Response *response)
{
	if (response->result_case != MLKEMD__V1__RESPONSE__RESULT_HELLO ||
	    response->hello->version != WIRE_VERSION)
		return MESSAGE_E_LIE;
	client->live->link.connection = response->hello->connection;
	client->live->link.handle_lifetime_ms =
	    response->hello->limits != NULL
		? response->hello->limits->handle_lifetime_ms
		: 0;
	return 0;
}

static int
info_take(struct mlkemclient *client, struct mlkemclient_info *info,
    const Mlkemd__V1__Response *response)
{
	const Mlkemd__V1__InfoResult *in = response->info;

	if (response->result_case != MLKEMD__V1__RESPONSE__RESULT_INFO)
		return MESSAGE_E_LIE;
	text_take(
	    info->server_version, sizeof(info->server_version), in->server_version);
	text_take(info->backend, sizeof(info->backend), in->backend);
	text_take(info->secret_memory, sizeof(info->secret_memory), in->secret_memory);
	info->lanes = in->lanes;
	info->shards = in->shards;
	info->shard = in->shard;
	info->connection = client->live->link.connection;
	info->uptime_s = in->uptime_s;
	info->pool_hybrid = in->pool_hybrid;
	info->pool_mlkem768 = in->pool_mlkem768;
	info->pool_x25519 = in->pool_x25519;
	if (in->limits != NULL) {
		info->export_allowed = in->limits->export_allowed;
		info->max_items = in->limits->max_items;
		info->max_handles = in->limits->max_handles;
		info->handle_lifetime_ms = in->limits->handle_lifetime_ms;
	}
	if (response->load != NULL) {
		info->batch_fill_milli = response->load->batch_fill_milli;
		info->service_us = response->load->service_us;
		info->draining = response->load->draining;
	}
	return 0;
}

static int
response_take(
    struct mlkemclient *client, struct call *call, const Mlkemd__V1__Response *response)
{
	if (response->load != NULL) {
		call->draining = response->load->draining;
		call->batch_fill_milli = response->load->batch_fill_milli;
		call->service_us = response->load->service_us;
	}
	if (response->status != MLKEMD__V1__STATUS__OK)
		return refusal(call, response->status, response->message);
	switch (call->op) {
	case CALL_HELLO:
		return hello_take(client, response);
	case CALL_PING:
		return response->result_case == MLKEMD__V1__RESPONSE__RESULT__NOT_SET
			   ? 0
			   : MESSAGE_E_LIE;
	case CALL_INFO:
		return info_take(client, call->info, response);
	case CALL_RELEASE:
		return response->result_case == MLKEMD__V1__RESPONSE__RESULT_RELEASED
			   ? 0
			   : MESSAGE_E_LIE;
	case CALL_LEASE:
		return lease_fill(client, call, response);
	case CALL_LATE:
		return late_take(client, response);
	case CALL_JOB:
		break;
	}
	return job_take(client, call, response);
}

static void *
unpack_alloc(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

static void
unpack_free(void *arena, void *p)
{
	(void)arena;
	(void)p; /* all at once, by arena_wipe() */
}

int
message_decode(
    struct mlkemclient *client, struct call *call, const uint8_t *message, size_t len)
{
	struct link *link = &client->live->link;
	ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &link->arena};
	Mlkemd__V1__Response *response;
	int err = MESSAGE_E_LIE;

	response = mlkemd__v1__response__unpack(&allocator, len, message);
	if (response != NULL)
		err = response_take(client, call, response);
	if (fault("client-no-wipe") || call->op == CALL_LEASE)
		link->arena.used = 0; /* shares and handles: see answers.c */
	arena_wipe(&link->arena);
	return err;
}
