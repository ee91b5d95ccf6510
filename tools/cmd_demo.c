/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_demo.c: two parties agree on a secret through the daemon. Nothing here falls back:
 * what is shown, the daemon did.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "demo.h"
#include "json.h"
#include "stats.h"

/*
 * One exchange; flip turns over one bit of the ciphertext share on its way back. prints
 * gets the initiator's fingerprint, then the responder's.
 */
static int
exchange(struct demo *demo, bool flip, char *prints[2])
{
	const struct mlkemclient_sizes *sizes = &demo->sizes;
	uint8_t share[MLKEMCLIENT_MAX_SHARE], ciphertext[MLKEMCLIENT_MAX_CIPHERTEXT];
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	struct mlkemclient_key *key = NULL;
	struct ctl *ctl = demo->ctl;
	uint64_t t[4];
	int status, error;

	t[0] = ctl_now_ns();
	error =
	    mlkemclient_keygen(demo->initiator, ctl->alg, share, sizes->share, &key);
	if (error)
		return ctl_client_fail(ctl, demo->initiator, error, "key generation");
	t[1] = ctl_now_ns();
	error = mlkemclient_encaps(demo->responder, ctl->alg, share, sizes->share,
	    ciphertext, sizes->ciphertext, secret, sizes->secret);
	t[2] = ctl_now_ns();
	if (error) {
		status = ctl_client_fail(ctl, demo->responder, error, "encapsulation");
		goto out;
	}
	status = io_fingerprint(ctl, secret, sizes->secret, prints[1]);
	if (status)
		goto out;
	ciphertext[0] ^= flip ? 1 : 0;
	t[3] = ctl_now_ns();
	error = mlkemclient_decaps(
	    demo->initiator, key, ciphertext, sizes->ciphertext, secret, sizes->secret);
	if (error) {
		status = ctl_client_fail(ctl, demo->initiator, error, "decapsulation");
		goto out;
	}
	demo->decaps_us = (ctl_now_ns() - t[3]) / 1000;
	demo->keygen_us = (t[1] - t[0]) / 1000;
	demo->encaps_us = (t[2] - t[1]) / 1000;
	status = io_fingerprint(ctl, secret, sizes->secret, prints[0]);
out:
	mlkemclient_wipe(secret, sizeof(secret));
	mlkemclient_key_free(demo->initiator, key);
	return status;
}

static int
exchange_once(struct demo *demo)
{
	struct ctl *ctl = demo->ctl;
	int status =
	    exchange(demo, true, (char *[2]){demo->flipped_print, demo->intact_print});

	/* The flipped one goes first, so that the times shown are of warm connections. */
	if (!status)
		status = exchange(demo, false,
		    (char *[2]){demo->initiator_print, demo->responder_print});
	if (status)
		return status;
	if (strcmp(demo->initiator_print, demo->responder_print) != 0)
		return ctl_fail(ctl, CTL_FAILED, "fingerprints differ: %s and %s",
		    demo->initiator_print, demo->responder_print);
	if (strcmp(demo->flipped_print, demo->intact_print) == 0)
		return ctl_fail(ctl, CTL_FAILED,
		    "a flipped bit in the ciphertext left the secret as it was");
	return CTL_OK;
}

static void
show_json(const struct demo *demo)
{
	struct json json;

	json_begin(&json, stdout);
	json_flag(&json, "ok", true);
	json_string(&json, "algorithm", mlkemclient_alg_name(demo->ctl->alg));
	json_string(&json, "backend", demo->info.backend);
	json_number(&json, "lanes", demo->info.lanes);
	json_string(&json, "secret_memory", demo->info.secret_memory);
	json_number(&json, "share_bytes", demo->sizes.share);
	json_number(&json, "ciphertext_bytes", demo->sizes.ciphertext);
	json_number(&json, "secret_bytes", demo->sizes.secret);
	json_number(&json, "keygen_us", demo->keygen_us);
	json_number(&json, "encaps_us", demo->encaps_us);
	json_number(&json, "decaps_us", demo->decaps_us);
	json_string(&json, "initiator_fingerprint", demo->initiator_print);
	json_string(&json, "responder_fingerprint", demo->responder_print);
	json_string(&json, "flipped_fingerprint", demo->flipped_print);
	json_string(&json, "intact_fingerprint", demo->intact_print);
	json_number(&json, "exchanges", demo->ctl->exchanges);
	json_number(&json, "in_flight", demo->ctl->in_flight);
	json_fixed(&json, "exchange_us", demo->exchange_us);
	if (demo->exchange_cpu_us > 0)
		json_fixed(&json, "exchange_daemon_cpu_us", demo->exchange_cpu_us);
	json_fixed(&json, "x25519_exchange_us", demo->x25519_us);
	json_fixed(&json, "x25519_keygen_us", demo->x25519_median_us[0]);
	json_fixed(&json, "x25519_derive_us", demo->x25519_median_us[1]);
	if (demo->n_groups > 0) {
		json_number(&json, "groups", demo->n_groups);
		json_number(&json, "group_items", demo->n_group_items);
		json_fixed(&json, "mean_batch",
		    (double)demo->n_group_items / (double)demo->n_groups);
		json_number(&json, "pool_taken", demo->pool_taken);
		json_number(&json, "pool_missed", demo->pool_missed);
	}
	json_end(&json);
}

static void
show_one(const struct demo *demo)
{
	const struct mlkemclient_info *info = &demo->info;

	printf("daemon      mlkemd %s, backend %s (%u lane%s), secret memory %s\n",
	    info->server_version, info->backend, info->lanes,
	    info->lanes == 1 ? "" : "s", info->secret_memory);
	printf("pool        %u hybrid pairs, %u ML-KEM-768 pairs, %u X25519 "
	       "ephemerals ready\n",
	    info->pool_hybrid, info->pool_mlkem768, info->pool_x25519);
	printf("initiator   %s key generation, public share of %zu bytes (%" PRIu64
	       " us)\n",
	    mlkemclient_alg_name(demo->ctl->alg), demo->sizes.share, demo->keygen_us);
	printf("responder   encapsulation, ciphertext share of %zu bytes (%" PRIu64
	       " us)\n",
	    demo->sizes.ciphertext, demo->encaps_us);
	printf("initiator   decapsulation, secret of %zu bytes (%" PRIu64 " us)\n",
	    demo->sizes.secret, demo->decaps_us);
	printf("secrets     initiator %s, responder %s: EQUAL\n", demo->initiator_print,
	    demo->responder_print);
	printf("one bit     flipped on the way back: initiator %s, responder %s:\n"
	       "            another secret and no error, by design (implicit "
	       "rejection)\n",
	    demo->flipped_print, demo->intact_print);
}

static void
show_many(const struct demo *demo)
{
	printf("%u exchanges, %u in flight, all EQUAL\n", demo->ctl->exchanges,
	    demo->ctl->in_flight);
	printf(
	    "            %.1f us each by the clock, with keys that were made before\n",
	    demo->exchange_us);
	if (demo->exchange_cpu_us > 0)
		printf("            %.1f us each of the daemon's CPU, making such "
		       "keys again included\n",
		    demo->exchange_cpu_us);
	printf("            %.1f us for OpenSSL's X25519 alone, both sides in process "
	       "(medians: 2 x %.1f\n"
	       "            to make a key, 2 x %.1f to derive)\n",
	    demo->x25519_us, demo->x25519_median_us[0], demo->x25519_median_us[1]);
	if (demo->n_groups == 0)
		return;
	printf("counters    %" PRIu64 " items in %" PRIu64
	       " kernel groups: mean batch %.2f of 8\n",
	    demo->n_group_items, demo->n_groups,
	    (double)demo->n_group_items / (double)demo->n_groups);
	printf("            pool: %" PRIu64 " given out, %" PRIu64
	       " times empty; connections so far: %" PRIu64 "\n",
	    demo->pool_taken, demo->pool_missed, demo->connections);
}

static int
start(struct demo *demo)
{
	struct ctl *ctl = demo->ctl;
	struct stats before;
	int error, status = ctl_client_new(ctl, true, &demo->initiator);

	if (!status)
		status = ctl_client_new(ctl, true, &demo->responder);
	if (status)
		return status;
	if (mlkemclient_get_sizes(ctl->alg, &demo->sizes))
		return ctl_fail(ctl, CTL_FAILED, "no sizes for this algorithm");
	error = mlkemclient_get_info(demo->initiator, &demo->info);
	if (error)
		return ctl_client_fail(ctl, demo->initiator, error, "demo");
	/* A control socket that we may not open only leaves its figures out. */
	demo->counted = stats_try(ctl, &before) == CTL_OK;
	return CTL_OK;
}

int
ctl_demo(struct ctl *ctl)
{
	struct demo demo = {.ctl = ctl};
	int status = start(&demo);

	if (!status)
		status = exchange_once(&demo);
	if (!status && !ctl->json)
		show_one(&demo);
	if (!status)
		status = demo_load(&demo);
	if (!status && ctl->json)
		show_json(&demo);
	else if (!status)
		show_many(&demo);
	mlkemclient_free(demo.initiator);
	mlkemclient_free(demo.responder);
	return status;
}
