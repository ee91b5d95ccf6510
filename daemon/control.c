/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "log.h"
#include "service.h"

/* Its requests are small; the largest answer, Stats, has a few KiB. */
#define CONTROL_MESSAGE_BYTES (16u * 1024u)
#define CONTROL_SLAB_BYTES    (256u * 1024u)
#define CONTROL_MEMORY_BYTES  (CONTROL_SLAB_BYTES + CODEC_MEM_BYTES)
#define CONTROL_TURN_ITEMS    16u
#define CONTROL_CONNS_MAX     32u

static void
control_begin(struct control *control, struct request *req)
{
	struct control_result result = {.status = STATUS_RESOURCE_EXHAUSTED};
	uint64_t serial = 0;

	if (control->n_waiting == CONTROL_WAITING_MAX) {
		request_fail(req, STATUS_RESOURCE_EXHAUSTED,
		    "%d operations are under way", CONTROL_WAITING_MAX);
		return;
	}
	if (control->ops->begin(control->owner, req->op, &serial, &result) !=
	    STATUS_OK) {
		request_fail(req, result.status, "%s", result.message);
		return;
	}
	control->waiting[control->n_waiting++] = (struct control_waiting){
	    .conn_id = req->conn_id, .id = req->id, .serial = serial, .op = req->op};
	conn_defer(req);
}

static void
control_handle(void *owner, struct request *req)
{
	struct control *control = owner;
	uint32_t n_waiting = control->n_waiting;

	switch (req->op) {
	case REQUEST_DRAIN:
	case REQUEST_RESUME:
	case REQUEST_RELOAD:
	case REQUEST_SELFTEST:
		if (req->status == STATUS_OK)
			control_begin(control, req);
		if (control->n_waiting > n_waiting)
			return;
		break;
	case REQUEST_KEYGEN:
	case REQUEST_ENCAPS:
	case REQUEST_DECAPS:
	case REQUEST_RELEASE:
	case REQUEST_CANCEL:
		request_fail(req, STATUS_DENIED,
		    "this is the control socket; keys are exchanged on socket.path");
		break;
	default:
		break;
	}
	control->ops->describe(control->owner, &control->conns.about);
	service_handle(&control->service, req);
}

static void
control_conn_gone(void *owner, const struct conn_peer *peer)
{
}

static const struct conn_ops control_conn_ops = {
    .handle = control_handle,
    .gone = control_conn_gone,
};

/* The socket's mode keeps others out; this does too, should somebody have widened it. */
static void
control_accepted(void *owner, int fd)
{
	struct control *control = owner;
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	bool allowed = !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
		       (!cred.uid || cred.uid == geteuid());
	struct conn_peer peer = {.id = ++control->last_conn_id,
	    .uid = cred.uid,
	    .refusal = allowed ? STATUS_OK : STATUS_DENIED};

	if (control->conns.n_conns >= CONTROL_CONNS_MAX) {
		log_event_limited(LOG_NOTICE, "connections-full",
		    "the control socket takes %u connections", CONTROL_CONNS_MAX);
		close(fd);
		return;
	}
	if (!allowed)
		log_event_limited(LOG_WARNING, "peer-denied",
		    "uid %u may not use the control socket: root and the daemon's own "
		    "user may",
		    cred.uid);
	if (conn_set_add(&control->conns, fd, &peer))
		log_event_limited(LOG_WARNING, "accept-paused", "out of memory");
}

int
control_init(struct control *control, struct event_base *base,
    const struct config *config, const struct codec_about *about,
    const struct control_ops *ops, void *owner)
{
	control->ops = ops;
	control->owner = owner;
	/* Not in the arena: no secret is asked for here. Pages come as they are used. */
	control->memory = calloc(1, CONTROL_MEMORY_BYTES);
	if (!control->memory)
		return -ENOMEM;
	mem_init(&control->mem, control->memory + CONTROL_SLAB_BYTES, CODEC_MEM_BYTES);
	if (slab_init(&control->slab, control->memory, CONTROL_SLAB_BYTES))
		return -ENOMEM;
	control->service =
	    (struct service){.config = config, .metrics = &control->metrics};
	control->conns = (struct conn_set){.base = base,
	    .slab = &control->slab,
	    .mem = &control->mem,
	    .metrics = &control->metrics,
	    .config = config,
	    .ops = &control_conn_ops,
	    .owner = control,
	    .control = true,
	    .max_message = CONTROL_MESSAGE_BYTES,
	    .about = *about};
	if (conn_set_init(&control->conns))
		return -ENOMEM;
	control->listener.accepted = control_accepted;
	control->listener.owner = control;
	return listener_start(&control->listener, base);
}

void
control_fini(struct control *control)
{
	conn_set_fini(&control->conns);
	if (control->slab.blocks)
		slab_fini(&control->slab);
	free(control->memory);
	control->memory = NULL;
}

void
control_set_config(struct control *control, const struct config *config)
{
	struct codec_about *about = &control->conns.about;

	control->conns.config = config;
	control->service.config = config;
	about->handle_lifetime_ms = config->handle_lifetime_ms;
	about->default_timeout_us = config->default_timeout_us;
	about->export_allowed = config->export_private;
}

static void
control_answer(struct control *control, const struct control_waiting *waiting,
    const struct control_result *result)
{
	struct request answer = {.id = waiting->id,
	    .op = waiting->op,
	    .status = result->status,
	    .message = *result->message ? result->message : NULL,
	    .conn_id = waiting->conn_id,
	    .control = true,
	    .mem = &control->mem};

	control->ops->describe(control->owner, &control->conns.about);
	control->conns.about.selftest_passed = result->selftest_passed;
	control->conns.about.selftest_step = result->selftest_step;
	conn_answer_deferred(&control->conns, &answer);
}

static void
control_finish(struct control *control)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < control->n_waiting; i++) {
		struct control_waiting waiting = control->waiting[i];
		struct control_result result = {.status = STATUS_OK};

		if (control->ops->finish(
			control->owner, waiting.op, waiting.serial, &result))
			control_answer(control, &waiting, &result);
		else
			control->waiting[n++] = waiting;
	}
	control->n_waiting = n;
}

void
control_turn(struct control *control)
{
	conn_set_collect(&control->conns, CONTROL_TURN_ITEMS);
	control_finish(control);
	conn_set_flush(&control->conns);
}

bool
control_has_work(const struct control *control)
{
	return conn_set_has_work(&control->conns);
}
