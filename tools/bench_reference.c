/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_reference.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_message.h"
#include "kem/kem.h"
#include "tools/mlkem-bench/bench.h"

#define LOCAL_CALLS 200
#define PEER_MS     100

struct bench_reference {
	struct ctl *ctl;
	enum bench_op op;
	struct bench_values values;
	struct mlkemclient *local;
	struct bench bench; /* of it only what a peer needs */
	struct peer *peer;
	struct row row;
};

/* What tests/bench/peers calls this operation. */
static void
name_row(struct row *row, enum bench_op op, enum mlkemclient_alg alg)
{
	bool hybrid = alg == MLKEMCLIENT_X25519MLKEM768;

	row->set = alg == MLKEMCLIENT_ML_KEM_512    ? "512"
		   : alg == MLKEMCLIENT_ML_KEM_1024 ? "1024"
						    : "768";
	if (op == BENCH_CLIENT)
		row->op = hybrid ? "hybrid-client" : "keygen";
	else
		row->op = hybrid ? "hybrid-server" : "encaps";
}

static int
open_peer(struct bench_reference *ref, char *path)
{
	int n = tool_open_backends(ref->bench.kems);

	if (n < 0)
		return ctl_fail(ref->ctl, CTL_FAILED, "no backend");
	ref->bench.n_backends = (unsigned)n;
	ref->bench.options.duration_ms = PEER_MS;
	ref->peer = peer_open(&ref->bench, path);
	if (!ref->peer)
		return ctl_fail(ref->ctl, CTL_FAILED, "--peer %s is no peer", path);
	return CTL_OK;
}

int
bench_reference_open(struct ctl *ctl, enum bench_op op, bool local, char *peer_path,
    struct bench_reference **refp)
{
	struct mlkemclient_options options = {
	    .size = sizeof(options), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct bench_reference *ref = calloc(1, sizeof(*ref));
	int error;

	*refp = ref;
	if (!ref)
		return ctl_fail(ctl, CTL_FAILED, "out of memory");
	ref->ctl = ctl;
	ref->op = op;
	name_row(&ref->row, op, ctl->alg);
	error = bench_values_make(&ref->values, ctl->alg);
	if (!error && local)
		error = mlkemclient_new(&ref->local, &options);
	if (error)
		return ctl_fail(ctl, CTL_FAILED, "%s", mlkemclient_strerror(error));
	return peer_path ? open_peer(ref, peer_path) : CTL_OK;
}

/* One operation as a caller of the library would do it. */
static int
local_once(struct bench_reference *ref, bool client)
{
	const struct bench_values *values = &ref->values;
	const struct mlkemclient_sizes *sizes = &values->sizes;
	uint8_t share[MLKEMCLIENT_MAX_SHARE], ciphertext[MLKEMCLIENT_MAX_CIPHERTEXT];
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	struct mlkemclient_key *key = NULL;
	int error;

	if (!client)
		return mlkemclient_encaps(ref->local, values->alg, values->share,
		    sizes->share, ciphertext, sizes->ciphertext, secret, sizes->secret);
	error = mlkemclient_keygen(ref->local, values->alg, share, sizes->share, &key);
	if (!error)
		error = mlkemclient_decaps(ref->local, key, values->ciphertext,
		    sizes->ciphertext, secret, sizes->secret);
	mlkemclient_key_free(ref->local, key);
	return error;
}

static double
thread_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int
local_round(struct bench_reference *ref, double *us)
{
	unsigned n_ops = 0;
	double start = thread_us();

	for (unsigned i = 0; i < LOCAL_CALLS; i++) {
		bool client =
		    ref->op == BENCH_CLIENT || (ref->op == BENCH_MIX && i % 2);

		if (local_once(ref, client))
			return ctl_fail(ref->ctl, CTL_FAILED, "route local failed");
		n_ops += client ? 2 : 1; /* as the daemon's requests are counted */
	}
	*us = (thread_us() - start) / n_ops;
	return CTL_OK;
}

int
bench_reference_round(struct bench_reference *ref, double *local_us, double *peer_us)
{
	struct measure measured;
	int status = CTL_OK;
	double cold;

	*local_us = *peer_us = 0;
	if (ref->local)
		status = local_round(ref, local_us);
	if (!status && ref->peer) {
		if (peer_measure(ref->peer, &ref->row, &ref->bench.options, &measured,
			&cold) < 0)
			return ctl_fail(ref->ctl, CTL_FAILED, "the peer failed");
		/* A client's two steps are two requests here. */
		*peer_us = measured.ns / 1000 / (ref->op == BENCH_CLIENT ? 2 : 1);
	}
	return status;
}

const char *
bench_reference_peer(const struct bench_reference *ref)
{
	return ref->peer ? peer_name(ref->peer) : NULL;
}

void
bench_reference_close(struct bench_reference *ref)
{
	if (!ref)
		return;
	if (ref->peer)
		peer_close(ref->peer);
	for (unsigned i = 0; i < TOOL_BACKENDS_MAX; i++)
		kem_free(ref->bench.kems[i]);
	mlkemclient_free(ref->local);
	free(ref);
}
