/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/client.h"
#include "kem/fault.h"

#define SERVER_USER       "mlkemd"
#define CONNECT_PAUSE_US  500u
#define CONNECT_PAUSE_MAX 20000u

static struct timespec
timespec_of(uint64_t us)
{
	return (struct timespec){
	    .tv_sec = (time_t)(us / 1000000u), .tv_nsec = (long)(us % 1000000u) * 1000};
}

static uint64_t
time_left(const struct mlkemclient *client, uint64_t deadline_us)
{
	uint64_t now = client_now(client);

	return now < deadline_us ? deadline_us - now : 0;
}

static bool
uid_is_server_user(uid_t uid)
{
	struct passwd pw, *found = NULL;
	char buf[2048];

	return getpwnam_r(SERVER_USER, &pw, buf, sizeof(buf), &found) == 0 &&
	       found != NULL && found->pw_uid == uid;
}

/*
 * Whoever can create the path first could pose as the daemon and read every secret. The
 * kernel tells who called listen(): systemd (root), the daemon's user, or ourselves.
 */
static int
server_check(struct mlkemclient *client, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 ||
	    len != sizeof(cred))
		return client_fail(client, MLKEMCLIENT_E_IMPOSTOR,
		    "%s: the kernel does not tell whose socket it is", client->path);
	if (cred.uid == 0 || cred.uid == geteuid() ||
	    (client->server_uid_set && cred.uid == client->server_uid) ||
	    uid_is_server_user(cred.uid) || fault("client-any-peer"))
		return 0;
	return client_fail(client, MLKEMCLIENT_E_IMPOSTOR,
	    "%s belongs to uid %u: neither root, nor %s, nor this user, nor server_uid",
	    client->path, (unsigned)cred.uid, SERVER_USER);
}

static int
connect_failed(struct mlkemclient *client)
{
	int error = MLKEMCLIENT_E_UNAVAILABLE;

	if (errno == EACCES || errno == EPERM)
		error = MLKEMCLIENT_E_DENIED;
	return client_fail(
	    client, error, "connect to %s: %s", client->path, strerror(errno));
}

/*
 * A full backlog is EAGAIN at once on a Unix socket, not EINPROGRESS: nothing will
 * announce that there is room again, so ask again, at growing distance.
 */
int
transport_connect(struct mlkemclient *client, uint64_t deadline_us, int *fdp)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	uint64_t pause = CONNECT_PAUSE_US, left;
	int fd, err;

	memcpy(addr.sun_path, client->path, strlen(client->path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return client_fail(
		    client, MLKEMCLIENT_E_INTERNAL, "socket: %s", strerror(errno));

	while (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		struct timespec ts;

		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || fault("client-no-backoff")) {
			err = connect_failed(client);
			goto out;
		}
		left = time_left(client, deadline_us);
		if (left == 0) {
			err = client_fail(client, MLKEMCLIENT_E_TIMEOUT,
			    "connect to %s: its backlog stayed full", client->path);
			goto out;
		}
		ts = timespec_of(pause < left ? pause : left);
		nanosleep(&ts, NULL);
		if (pause < CONNECT_PAUSE_MAX)
			pause *= 2;
	}
	err = server_check(client, fd);
out:
	if (err != 0) {
		close(fd);
		return err;
	}
	*fdp = fd;
	return 0;
}

int
transport_wait(
    struct mlkemclient *client, short events, uint64_t deadline_us, short *reventsp)
{
	struct pollfd pfd = {.fd = client->link.fd, .events = events};

	for (;;) {
		uint64_t left = time_left(client, deadline_us);
		struct timespec ts = timespec_of(left);
		int n;

		if (left == 0)
			return MLKEMCLIENT_E_TIMEOUT;
		n = ppoll(&pfd, 1, &ts, NULL);
		if (n > 0) {
			*reventsp = pfd.revents;
			return 0;
		}
		if (n < 0 && errno != EINTR)
			return LINK_E_LOST;
	}
}

/* What the socket takes now; *sentp is 0 if it takes nothing. */
int
transport_send(
    struct mlkemclient *client, const uint8_t *data, size_t len, size_t *sentp)
{
	ssize_t n;

	*sentp = 0;
	n = send(client->link.fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0)
		*sentp = (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		return LINK_E_LOST;
	return 0;
}

/* What has come, behind what is in link.in; *gotp is 0 if nothing has. */
int
transport_recv(struct mlkemclient *client, size_t *gotp)
{
	struct link *link = &client->link;
	ssize_t n;

	*gotp = 0;
	n = recv(link->fd, link->in + link->in_len, link->in_size - link->in_len,
	    MSG_DONTWAIT);
	if (n > 0) {
		*gotp = (size_t)n;
		link->in_len += (size_t)n;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		return LINK_E_LOST;
	}
	return 0;
}
