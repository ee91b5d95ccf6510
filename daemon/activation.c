/* SPDX-License-Identifier: Apache-2.0 */
#include "activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"

#define FIRST_FD 3
#define FDS_MAX  16

/* A decimal number in an environment variable; -1 if it is none. */
static long
env_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	long value;

	if (!text || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	value = strtol(text, &end, 10);
	return errno || *end ? -1 : value;
}

static int
socket_option(int fd, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) ? -1 : value;
}

/* Listening, a stream, and of a family that its use allows. */
static bool
is_usable(int fd, bool unix_only)
{
	int family = socket_option(fd, SO_DOMAIN);
	int flags = fcntl(fd, F_GETFL);

	if (socket_option(fd, SO_TYPE) != SOCK_STREAM ||
	    socket_option(fd, SO_ACCEPTCONN) != 1)
		return false;
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return false;
	return family == AF_UNIX ||
	       (!unix_only && (family == AF_INET || family == AF_INET6));
}

static int
refuse(int fd, const char *name, const char *why)
{
	log_event(LOG_ERR, "listen-failed", "passed descriptor %d, \"%.64s\": %s", fd,
	    name, why);
	return -EINVAL;
}

/* name is cut out of LISTEN_FDNAMES; the socket is put where it belongs. */
static int
take_one(struct activation *activation, int fd, const char *name)
{
	bool is_metrics = !strcmp(name, "metrics");
	int *place = NULL;

	if (!strcmp(name, "data"))
		place = &activation->data;
	else if (!strcmp(name, "control"))
		place = &activation->control;
	else if (is_metrics && activation->n_metrics < METRICS_HTTP_LISTENERS_MAX)
		place = &activation->metrics[activation->n_metrics];
	if (!place)
		return refuse(fd, name,
		    is_metrics ? "too many of them"
			       : "FileDescriptorName= is data, control or metrics");
	if (*place >= 0)
		return refuse(fd, name, "passed twice");
	if (!is_usable(fd, !is_metrics))
		return refuse(fd, name,
		    is_metrics ? "it is no stream socket that listens"
			       : "it is no Unix stream socket that listens");
	*place = fd;
	activation->n_metrics += is_metrics;
	return 0;
}

static int
take_all(struct activation *activation, int n, const char *names)
{
	int r = 0;

	/* None of them may reach a program, should one ever be started. */
	for (int i = 0; i < n; i++)
		(void)!fcntl(FIRST_FD + i, F_SETFD, FD_CLOEXEC);
	for (int i = 0; !r && i < n; i++) {
		size_t len = strcspn(names, ":");
		char name[80];

		memcpy(name, names, len < sizeof(name) ? len : sizeof(name) - 1);
		name[len < sizeof(name) ? len : sizeof(name) - 1] = '\0';
		names += len + (names[len] == ':');
		r = take_one(activation, FIRST_FD + i, name);
	}
	for (int i = 0; r && i < n; i++)
		close(FIRST_FD + i);
	return r;
}

int
activation_take(struct activation *activation)
{
	const char *names = getenv("LISTEN_FDNAMES");
	long pid = env_number("LISTEN_PID"), n = env_number("LISTEN_FDS");
	int r = 0;

	*activation = (struct activation){.data = -1, .control = -1};
	for (int i = 0; i < METRICS_HTTP_LISTENERS_MAX; i++)
		activation->metrics[i] = -1;
	if (pid == getpid() && n > FDS_MAX) {
		log_event(
		    LOG_ERR, "listen-failed", "LISTEN_FDS=%ld: at most %d", n, FDS_MAX);
		r = -EINVAL;
	} else if (pid == getpid() && n > 0) {
		r = take_all(activation, (int)n, names ? names : "");
	}
	if (r)
		*activation = (struct activation){.data = -1, .control = -1};
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return r;
}
