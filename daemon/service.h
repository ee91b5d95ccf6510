/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h: what a request means: limits, deadlines, handles and pool are settled here,
 * before anything is computed. Answers at once (req->done) or hands items to the batch.
 * Shard thread only.
 */
#ifndef MLKEMD_SERVICE_H
#define MLKEMD_SERVICE_H

#include "request.h"

struct batch;
struct keypool;
struct keytable;
struct config;
struct metrics_shard;

struct service {
	struct batch *batch;
	struct keypool *pool;
	struct keytable *keys;
	const struct config *config; /* this generation's; changed by RELOAD */
	struct metrics_shard *metrics;
	bool draining;
	uint32_t n_reserved;   /* handles promised to key generations in the batch */
	uint64_t reserved_for; /* the run of the batch that they are promised to */
};

/*
 * service_handle() takes a decoded request with its owner fields set. Every request ends
 * in exactly one req->done(req), in this call or in the next batch_run(). Hello and Info
 * only get their status here; codec_encode fills their answer from what conn gives it.
 * Counts requests_total and what becomes of them (failed, shed, deadline, items).
 * Operations of the control socket are refused; on it (req->control) they have been
 * carried out by control.c and are only counted and finished.
 */
void service_handle(struct service *service, struct request *req);

/*
 * Upper bound in bytes of the reply to a request as codec_decode() left it, frame header
 * included.
 */
size_t service_reply_bound(const struct request *req);

/*
 * A connection has ended: its keys go with it. Not between service_handle() and the
 * batch_run() of the same turn: its requests may wait there.
 */
void service_conn_gone(struct service *service, uint64_t conn_id);

#endif
