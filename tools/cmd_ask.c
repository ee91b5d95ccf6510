/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_ask.c: ping and info: is it there, and what is it. Both speak to the daemon
 * itself; only `info --local` looks at the code in this process instead.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl.h"
#include "json.h"
#include "kem/kem.h"

static int
compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
show_ping(const struct ctl *ctl, const struct mlkemclient_info *info, uint64_t *times)
{
	size_t middle = ctl->count / 2;
	double min_us, median_us, max_us;
	struct json json;

	qsort(times, ctl->count, sizeof(*times), compare_times);
	min_us = (double)times[0] / 1000;
	median_us = (double)times[middle] / 1000;
	max_us = (double)times[ctl->count - 1] / 1000;
	if (ctl->json) {
		json_begin(&json, stdout);
		json_flag(&json, "ok", true);
		json_string(&json, "server_version", info->server_version);
		json_number(&json, "count", ctl->count);
		json_fixed(&json, "min_us", min_us);
		json_fixed(&json, "median_us", median_us);
		json_fixed(&json, "max_us", max_us);
		json_flag(&json, "draining", info->draining);
		json_end(&json);
		return;
	}
	printf("mlkemd %s at %s answered in %.0f us%s\n", info->server_version,
	    ctl->socket_path, median_us, info->draining ? " (it is draining)" : "");
	if (ctl->count > 1)
		printf("%u pings: min %.0f us, median %.0f us, max %.0f us\n",
		    ctl->count, min_us, median_us, max_us);
}

int
ctl_ping(struct ctl *ctl)
{
	struct mlkemclient_info info = {0};
	struct mlkemclient *client = NULL;
	uint64_t *times;
	int status, error = 0;

	if (!ctl->count)
		ctl->count = 1;
	times = calloc(ctl->count, sizeof(*times));
	if (!times)
		return ctl_fail(ctl, CTL_FAILED, "out of memory");
	status = ctl_client_new(ctl, true, &client);
	if (status)
		goto out;
	/* The first call connects and says Hello: it is not the time of a ping. */
	error = mlkemclient_get_info(client, &info);
	for (uint32_t i = 0; i < ctl->count && !error; i++) {
		uint64_t start = ctl_now_ns();

		error = mlkemclient_ping(client);
		times[i] = ctl_now_ns() - start;
	}
	if (error)
		status = ctl_client_fail(ctl, client, error, "ping");
	else
		show_ping(ctl, &info, times);
out:
	mlkemclient_free(client);
	free(times);
	return status;
}

static int
info_local(struct ctl *ctl)
{
	struct kem *kem = NULL;
	int fail = kem_open(&kem, NULL);
	struct json json;

	if (fail)
		return ctl_fail(ctl, CTL_FAILED, "%s", kem_strerror(fail));
	if (ctl->json) {
		json_begin(&json, stdout);
		json_flag(&json, "ok", true);
		json_string(&json, "version", MLKEMD_VERSION);
		json_string(&json, "backend", kem_backend_name(kem));
		json_number(&json, "lanes", kem_backend_lanes(kem));
		json_end(&json);
	} else {
		printf("version:  %s (in this process, no daemon asked)\n"
		       "backend:  %s, %u lane%s\n",
		    MLKEMD_VERSION, kem_backend_name(kem), kem_backend_lanes(kem),
		    kem_backend_lanes(kem) == 1 ? "" : "s");
	}
	kem_free(kem);
	return CTL_OK;
}

static void
info_json(const struct ctl *ctl, const struct mlkemclient_info *info)
{
	struct json json;

	json_begin(&json, stdout);
	json_flag(&json, "ok", true);
	json_string(&json, "socket", ctl->socket_path);
	json_string(&json, "server_version", info->server_version);
	json_string(&json, "backend", info->backend);
	json_number(&json, "lanes", info->lanes);
	json_string(&json, "secret_memory", info->secret_memory);
	json_number(&json, "shards", info->shards);
	json_number(&json, "shard", info->shard);
	json_number(&json, "connection", info->connection);
	json_number(&json, "uptime_s", info->uptime_s);
	json_number(&json, "pool_hybrid", info->pool_hybrid);
	json_number(&json, "pool_mlkem768", info->pool_mlkem768);
	json_number(&json, "pool_x25519", info->pool_x25519);
	json_flag(&json, "export_allowed", info->export_allowed);
	json_number(&json, "max_items", info->max_items);
	json_number(&json, "max_handles", info->max_handles);
	json_number(&json, "handle_lifetime_ms", info->handle_lifetime_ms);
	json_number(&json, "batch_fill_milli", info->batch_fill_milli);
	json_number(&json, "service_us", info->service_us);
	json_flag(&json, "draining", info->draining);
	json_end(&json);
}

static void
info_text(const struct ctl *ctl, const struct mlkemclient_info *info)
{
	printf("mlkemd:         %s at %s, up %" PRIu64 " s%s\n", info->server_version,
	    ctl->socket_path, info->uptime_s, info->draining ? ", draining" : "");
	printf("backend:        %s, %u lane%s\n", info->backend, info->lanes,
	    info->lanes == 1 ? "" : "s");
	printf("secret memory:  %s\n", info->secret_memory);
	printf("this client:    connection %" PRIu64 " on shard %u of %u\n",
	    info->connection, info->shard, info->shards);
	printf("pool:           %u hybrid pairs, %u ML-KEM-768 pairs, %u X25519 "
	       "ephemerals\n",
	    info->pool_hybrid, info->pool_mlkem768, info->pool_x25519);
	printf("limits:         %u items a request, %u keys a connection for %u s\n",
	    info->max_items, info->max_handles, info->handle_lifetime_ms / 1000);
	printf("key export:     %s (export-private-keys)\n",
	    info->export_allowed ? "allowed" : "off");
	printf("load:           %.2f items a batch, %u us a request\n",
	    info->batch_fill_milli / 1000.0, info->service_us);
}

int
ctl_info(struct ctl *ctl)
{
	struct mlkemclient_info info;
	struct mlkemclient *client = NULL;
	int status, error;

	if (ctl->local)
		return info_local(ctl);
	status = ctl_client_new(ctl, true, &client);
	if (status)
		return status;
	error = mlkemclient_get_info(client, &info);
	if (error)
		status = ctl_client_fail(ctl, client, error, "info");
	else if (ctl->json)
		info_json(ctl, &info);
	else
		info_text(ctl, &info);
	mlkemclient_free(client);
	return status;
}
