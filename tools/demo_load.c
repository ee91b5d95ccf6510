/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "demo.h"
#include "kem/kem.h"
#include "stats.h"

#define X25519_ROUNDS  400
#define REFILL_WAIT_MS 3000

/* The buffers of one round of exchanges. */
struct round {
	struct mlkemclient_keygen_item keygen[MLKEMCLIENT_MAX_ITEMS];
	struct mlkemclient_encaps_item encaps[MLKEMCLIENT_MAX_ITEMS];
	struct mlkemclient_decaps_item decaps[MLKEMCLIENT_MAX_ITEMS];
	uint8_t share[MLKEMCLIENT_MAX_ITEMS][MLKEMCLIENT_MAX_SHARE];
	uint8_t ciphertext[MLKEMCLIENT_MAX_ITEMS][MLKEMCLIENT_MAX_CIPHERTEXT];
	uint8_t secrets[2][MLKEMCLIENT_MAX_ITEMS][MLKEMCLIENT_MAX_SECRET];
};

static void
prepare(struct round *round, const struct mlkemclient_sizes *sizes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		round->keygen[i] =
		    (struct mlkemclient_keygen_item){.share = round->share[i]};
		round->encaps[i] =
		    (struct mlkemclient_encaps_item){.share = round->share[i],
			.share_len = sizes->share,
			.ciphertext = round->ciphertext[i],
			.secret = round->secrets[0][i]};
		round->decaps[i] =
		    (struct mlkemclient_decaps_item){.ciphertext = round->ciphertext[i],
			.ciphertext_len = sizes->ciphertext,
			.secret = round->secrets[1][i]};
	}
}

/* The first error among items that may each have failed; 0 if none has. */
static int
first_error(const int *error, size_t stride, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int one;

		memcpy(&one, (const char *)error + i * stride, sizeof(one));
		if (one)
			return one;
	}
	return 0;
}

static int
exchange_round(struct demo *demo, struct round *round, size_t n)
{
	struct ctl *ctl = demo->ctl;
	int error;

	prepare(round, &demo->sizes, n);
	error = mlkemclient_keygen_batch(demo->initiator, ctl->alg, round->keygen, n);
	if (!error)
		error = first_error(&round->keygen->error, sizeof(*round->keygen), n);
	if (error)
		return ctl_client_fail(
		    ctl, demo->initiator, error, "key generation, batch");
	error = mlkemclient_encaps_batch(demo->responder, ctl->alg, round->encaps, n);
	if (!error)
		error = first_error(&round->encaps->error, sizeof(*round->encaps), n);
	if (error)
		return ctl_client_fail(
		    ctl, demo->responder, error, "encapsulation, batch");
	for (size_t i = 0; i < n; i++)
		round->decaps[i].key = round->keygen[i].key;
	error = mlkemclient_decaps_batch(demo->initiator, ctl->alg, round->decaps, n);
	if (!error)
		error = first_error(&round->decaps->error, sizeof(*round->decaps), n);
	if (error)
		return ctl_client_fail(
		    ctl, demo->initiator, error, "decapsulation, batch");
	for (size_t i = 0; i < n; i++) {
		if (kem_compare(round->secrets[0][i], round->secrets[1][i],
			demo->sizes.secret) != 0)
			return ctl_fail(ctl, CTL_FAILED,
			    "the two sides of an exchange have different secrets");
	}
	return CTL_OK;
}

static int
exchange_all(struct demo *demo, struct round *round)
{
	size_t left = demo->ctl->exchanges;
	int status = CTL_OK;

	while (left > 0 && !status) {
		size_t n = left < demo->ctl->in_flight ? left : demo->ctl->in_flight;

		status = exchange_round(demo, round, n);
		for (size_t i = 0; i < n; i++) {
			mlkemclient_key_free(demo->initiator, round->keygen[i].key);
			round->keygen[i].key = NULL;
		}
		left -= n;
	}
	return status;
}

/* Keys taken are made again afterwards: their cost belongs to the exchanges. */
static void
wait_for_refill(struct demo *demo)
{
	struct mlkemclient_info info;
	uint64_t until = ctl_now_ns() + REFILL_WAIT_MS * 1000000ull;
	unsigned last = 0;

	while (ctl_now_ns() < until) {
		unsigned level;

		poll(NULL, 0, 50);
		if (mlkemclient_get_info(demo->initiator, &info))
			return;
		level = info.pool_hybrid + info.pool_mlkem768 + info.pool_x25519;
		if (level == last)
			return;
		last = level;
	}
}

static int
compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* One X25519 exchange as a TLS stack does it. Returns 0, or -1. */
static int
x25519_exchange(EVP_PKEY_CTX *keygen, uint64_t ns[2])
{
	EVP_PKEY *a = NULL, *b = NULL;
	EVP_PKEY_CTX *derive = NULL;
	uint8_t secret[32];
	size_t len = sizeof(secret);
	uint64_t start = ctl_now_ns();
	int rc = -1;

	if (EVP_PKEY_generate(keygen, &a) <= 0)
		goto out;
	ns[0] = ctl_now_ns() - start;
	if (EVP_PKEY_generate(keygen, &b) <= 0)
		goto out;
	start = ctl_now_ns();
	derive = EVP_PKEY_CTX_new_from_pkey(NULL, a, NULL);
	if (!derive || EVP_PKEY_derive_init(derive) <= 0 ||
	    EVP_PKEY_derive_set_peer(derive, b) <= 0 ||
	    EVP_PKEY_derive(derive, secret, &len) <= 0)
		goto out;
	ns[1] = ctl_now_ns() - start;
	rc = 0;
out:
	mlkemclient_wipe(secret, sizeof(secret));
	EVP_PKEY_CTX_free(derive);
	EVP_PKEY_free(a);
	EVP_PKEY_free(b);
	return rc;
}

/* Medians of one key generation and one derivation; an exchange is two of each. */
static int
measure_x25519(struct demo *demo)
{
	EVP_PKEY_CTX *keygen = EVP_PKEY_CTX_new_from_name(NULL, "X25519", NULL);
	const size_t middle = X25519_ROUNDS / 2;
	uint64_t ns[2][X25519_ROUNDS];
	int status = CTL_OK;

	if (!keygen || EVP_PKEY_keygen_init(keygen) <= 0)
		status = ctl_fail(demo->ctl, CTL_FAILED, "libcrypto has no X25519");
	for (int i = 0; i < X25519_ROUNDS && !status; i++) {
		uint64_t one[2] = {0, 0};

		if (x25519_exchange(keygen, one) < 0)
			status = ctl_fail(
			    demo->ctl, CTL_FAILED, "X25519 failed in libcrypto");
		ns[0][i] = one[0];
		ns[1][i] = one[1];
	}
	EVP_PKEY_CTX_free(keygen);
	if (status)
		return status;
	for (int k = 0; k < 2; k++) {
		qsort(ns[k], X25519_ROUNDS, sizeof(ns[k][0]), compare_ns);
		demo->x25519_median_us[k] = (double)ns[k][middle] / 1000;
	}
	demo->x25519_us = 2 * (demo->x25519_median_us[0] + demo->x25519_median_us[1]);
	return CTL_OK;
}

int
demo_load(struct demo *demo)
{
	struct round *round = calloc(1, sizeof(*round));
	struct stats before, after;
	uint64_t start, cpu;
	int status;

	if (!round)
		return ctl_fail(demo->ctl, CTL_FAILED, "out of memory");
	before.pid = 0;
	if (demo->counted)
		demo->counted = stats_try(demo->ctl, &before) == CTL_OK;
	cpu = stats_cpu_ns(before.pid);
	start = ctl_now_ns();
	status = exchange_all(demo, round);
	demo->exchange_us =
	    (double)(ctl_now_ns() - start) / 1000 / demo->ctl->exchanges;
	if (status)
		goto out;
	wait_for_refill(demo);
	if (cpu)
		demo->exchange_cpu_us = (double)(stats_cpu_ns(before.pid) - cpu) /
					1000 / demo->ctl->exchanges;
	if (demo->counted && stats_try(demo->ctl, &after) == CTL_OK) {
		demo->n_groups = stats_grown(&before, &after, "groups_total");
		demo->n_group_items = stats_grown(&before, &after, "group_items_total");
		demo->pool_taken = stats_grown(&before, &after, "pool_taken_total");
		demo->pool_missed = stats_grown(&before, &after, "pool_missed_total");
		demo->connections = stats_value(&after, "connections_total");
	}
	status = measure_x25519(demo);
out:
	mlkemclient_wipe(round, sizeof(*round));
	free(round);
	return status;
}
