/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h: the control socket: Ping, Info, Stats and what an administrator tells the
 * daemon. On main's event base, with the same connections, frames and codec as the data
 * socket but buffers of its own, so that it answers while the shards are busy.
 */
#ifndef MLKEMD_CONTROL_H
#define MLKEMD_CONTROL_H

#include "conn.h"
#include "listener.h"
#include "metrics.h"
#include "service.h"

#define CONTROL_WAITING_MAX 16

/* What a finished operation came to. */
struct control_result {
	enum request_status status;
	char message[512]; /* cut to WIRE_MAX_MESSAGE_TEXT in the answer */
	bool selftest_passed;
	const char *selftest_step;
};

/* The server, as control sees it. op is DRAIN, RESUME, RELOAD or SELFTEST. */
struct control_ops {
	/*
	 * Begins an operation. STATUS_OK: *serialp is what finish() is asked with; else
	 * result says why not.
	 */
	enum request_status (*begin)(void *owner, enum request_op op, uint64_t *serialp,
	    struct control_result *result);
	/* False: not finished yet. */
	bool (*finish)(void *owner, enum request_op op, uint64_t serial,
	    struct control_result *result);
	/* Brings the levels in about up to date. */
	void (*describe)(void *owner, struct codec_about *about);
};

struct control_waiting {
	uint64_t conn_id, id, serial;
	enum request_op op;
};

struct control {
	struct listener listener;
	struct conn_set conns;
	struct slab slab;
	struct mem mem;
	uint8_t *memory;
	struct metrics_shard metrics; /* not in Stats: the data socket's are */
	struct service service;
	const struct control_ops *ops;
	void *owner;
	uint64_t last_conn_id;
	struct control_waiting waiting[CONTROL_WAITING_MAX];
	uint32_t n_waiting;
};

/*
 * The listener is open, about filled in. control_init() returns 0, or -ENOMEM.
 * control_fini() accepts the zero state and leaves the listener.
 */
__attribute__((warn_unused_result)) int control_init(struct control *control,
    struct event_base *base, const struct config *config,
    const struct codec_about *about, const struct control_ops *ops, void *owner);
void control_fini(struct control *control);
void control_set_config(struct control *control, const struct config *config);

/* After each round of main's event loop: requests, answers, what has finished. */
void control_turn(struct control *control);
bool control_has_work(const struct control *control);

#endif
