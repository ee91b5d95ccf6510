/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/wire.h"

/* One call's connection: all its waits together last timeout_ms. */
struct control {
	int fd;
	struct timespec deadline; /* CLOCK_MONOTONIC */
};

static int
explain_connect(const struct ctl *ctl, int error)
{
	if (error == EACCES || error == EPERM)
		return ctl_fail(ctl, CTL_DENIED,
		    "control socket %s: %s; it is for root and the daemon's own user",
		    ctl->control_path, strerror(error));
	return ctl_fail(ctl, CTL_UNREACHABLE,
	    "control socket %s: %s; is mlkemd running there? (--control-socket names "
	    "another)",
	    ctl->control_path, strerror(error));
}

static int
explain_io(const struct ctl *ctl)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return ctl_fail(ctl, CTL_BUSY,
		    "no answer on %s within %u ms (--timeout-ms)", ctl->control_path,
		    ctl->timeout_ms);
	return ctl_fail(ctl, CTL_UNREACHABLE, "control socket %s: %s",
	    ctl->control_path, errno ? strerror(errno) : "closed by the daemon");
}

/* Lets the next send or receive wait as long as is left. False: nothing is. */
static bool
limit_wait(const struct control *control)
{
	struct timespec now;
	struct timeval left;
	int64_t us;

	clock_gettime(CLOCK_MONOTONIC, &now);
	us = (control->deadline.tv_sec - now.tv_sec) * INT64_C(1000000) +
	     (control->deadline.tv_nsec - now.tv_nsec) / 1000;
	errno = EAGAIN;
	if (us <= 0)
		return false;
	left = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
	/* connect(2) waits for a full backlog as long as a send may take. */
	return setsockopt(control->fd, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left)) ==
		   0 &&
	       setsockopt(control->fd, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof(left)) ==
		   0;
}

static int
open_socket(const struct ctl *ctl, struct control *control)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = strlen(ctl->control_path);

	if (len >= sizeof(addr.sun_path))
		return ctl_fail(ctl, CTL_USAGE,
		    "--control-socket is %zu bytes long; a socket's path has at most "
		    "%zu",
		    len, sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, ctl->control_path, len + 1);
	control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (control->fd < 0)
		return ctl_fail(ctl, CTL_FAILED, "socket: %s", strerror(errno));
	clock_gettime(CLOCK_MONOTONIC, &control->deadline);
	control->deadline.tv_sec += ctl->timeout_ms / 1000;
	control->deadline.tv_nsec += (long)(ctl->timeout_ms % 1000) * 1000000;
	if (!limit_wait(control) ||
	    connect(control->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return explain_connect(ctl, errno);
	return CTL_OK;
}

static int
send_all(const struct control *control, const uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n;

		if (!limit_wait(control))
			return -1;
		n = send(control->fd, data, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int
recv_all(const struct control *control, uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n;

		if (!limit_wait(control))
			return -1;
		n = recv(control->fd, data, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 ? 0 : errno;
			return -1;
		}
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int
send_request(const struct ctl *ctl, const struct control *control,
    const Mlkemd__V1__Request *request)
{
	uint8_t frame[WIRE_HEADER_BYTES + 512];
	size_t len = mlkemd__v1__request__get_packed_size(request);

	if (len > sizeof(frame) - WIRE_HEADER_BYTES)
		return ctl_fail(ctl, CTL_FAILED, "request of %zu bytes", len);
	wire_put_length(frame, (uint32_t)len);
	mlkemd__v1__request__pack(request, frame + WIRE_HEADER_BYTES);
	if (send_all(control, frame, WIRE_HEADER_BYTES + len) < 0)
		return explain_io(ctl);
	return CTL_OK;
}

/* What answers may be anybody: its words reach a terminal as plain ASCII only. */
static void
text_clean(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

/* A string that was not sent is protobuf-c's constant: empty, so not written to. */
static void
response_clean(Mlkemd__V1__Response *response)
{
	text_clean(response->message);
	if (response->result_case == MLKEMD__V1__RESPONSE__RESULT_STATS) {
		for (size_t i = 0; i < response->stats->n_counters; i++)
			text_clean(response->stats->counters[i]->name);
	} else if (response->result_case == MLKEMD__V1__RESPONSE__RESULT_SELF_TEST) {
		text_clean(response->self_test->backend);
		text_clean(response->self_test->failed_step);
	}
}

static int
receive_response(const struct ctl *ctl, const struct control *control, uint64_t id,
    Mlkemd__V1__Response **responsep)
{
	uint8_t header[WIRE_HEADER_BYTES], *body;
	uint32_t len;
	int status = CTL_OK;

	if (recv_all(control, header, sizeof(header)) < 0)
		return explain_io(ctl);
	len = wire_get_length(header);
	if (!wire_length_ok(len))
		return ctl_fail(ctl, CTL_UNREACHABLE,
		    "what answers on %s does not speak this protocol (frame of %u "
		    "bytes)",
		    ctl->control_path, len);
	body = malloc(len);
	if (!body)
		return ctl_fail(ctl, CTL_FAILED, "out of memory");
	if (recv_all(control, body, len) < 0) {
		status = explain_io(ctl);
	} else {
		*responsep = mlkemd__v1__response__unpack(NULL, len, body);
		if (*responsep && (*responsep)->id != id) {
			mlkemd__v1__response__free_unpacked(*responsep, NULL);
			*responsep = NULL;
		}
		if (*responsep)
			response_clean(*responsep);
		else
			status = ctl_fail(ctl, CTL_UNREACHABLE,
			    "what answers on %s does not speak this protocol",
			    ctl->control_path);
	}
	free(body);
	return status;
}

static enum ctl_exit
exit_of_status(Mlkemd__V1__Status status)
{
	switch (status) {
	case MLKEMD__V1__STATUS__DENIED:
		return CTL_DENIED;
	case MLKEMD__V1__STATUS__RESOURCE_EXHAUSTED:
	case MLKEMD__V1__STATUS__DEADLINE_EXCEEDED:
	case MLKEMD__V1__STATUS__DRAINING:
		return CTL_BUSY;
	default:
		return CTL_FAILED;
	}
}

/* One round: the answer in *responsep has status OK, or there is none. */
static int
round_trip(const struct ctl *ctl, const struct control *control,
    const Mlkemd__V1__Request *request, Mlkemd__V1__Response **responsep)
{
	int status = send_request(ctl, control, request);

	if (!status)
		status = receive_response(ctl, control, request->id, responsep);
	if (status)
		return status;
	assert(*responsep);
	if ((*responsep)->status == MLKEMD__V1__STATUS__OK)
		return CTL_OK;
	status =
	    ctl_fail(ctl, exit_of_status((*responsep)->status), "mlkemd refuses: %s",
		*(*responsep)->message ? (*responsep)->message : "it does not say why");
	mlkemd__v1__response__free_unpacked(*responsep, NULL);
	*responsep = NULL;
	return status;
}

static int
say_hello(const struct ctl *ctl, const struct control *control)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__Hello hello = MLKEMD__V1__HELLO__INIT;
	Mlkemd__V1__Response *response = NULL;
	int status;

	hello.min_version = WIRE_VERSION;
	hello.max_version = WIRE_VERSION;
	hello.client_name = (char *)"mlkemctl";
	request.id = 1;
	request.op_case = MLKEMD__V1__REQUEST__OP_HELLO;
	request.hello = &hello;
	status = round_trip(ctl, control, &request, &response);
	if (response)
		mlkemd__v1__response__free_unpacked(response, NULL);
	return status;
}

int
control_call(const struct ctl *ctl, Mlkemd__V1__Request *op,
    Mlkemd__V1__Response **responsep, pid_t *pidp)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct control control = {.fd = -1};
	int status = open_socket(ctl, &control);

	if (!status && pidp) {
		*pidp = 0;
		if (getsockopt(control.fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
			*pidp = peer.pid;
	}
	if (!status)
		status = say_hello(ctl, &control);
	op->id = 2;
	op->timeout_us = (uint64_t)ctl->timeout_ms * 1000;
	if (!status)
		status = round_trip(ctl, &control, op, responsep);
	if (control.fd >= 0)
		close(control.fd);
	return status;
}
