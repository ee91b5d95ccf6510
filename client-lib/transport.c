/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/client.h"
#include "kem/fault.h"

#define SERVER_USER       "mlkemd"
#define PASSWD_FILE       "/etc/passwd"
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

/*
 * Read from the file, without NSS: its modules need more stack than a fibre has, and
 * some of them use libcrypto, in whose middle this library may be called. A system user
 * stands in the file; for others there is server_uid.
 */
void
server_user_find(struct mlkemclient *client)
{
	struct passwd pw = {0}, *found = NULL;
	char buf[1024];
	FILE *file = fopen(PASSWD_FILE, "re");

	if (file == NULL)
		return;
	while (!client->server_user_found &&
	       fgetpwent_r(file, &pw, buf, sizeof(buf), &found) == 0) {
		client->server_user = found->pw_uid;
		client->server_user_found = strcmp(found->pw_name, SERVER_USER) == 0;
	}
	fclose(file);
}

/* Looked up again if there was none when the handle was made: before a chroot, say. */
static bool
uid_is_server_user(struct mlkemclient *client, uid_t uid)
{
	if (!client->server_user_found)
		server_user_find(client);
	return client->server_user_found && client->server_user == uid;
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
	    uid_is_server_user(client, cred.uid) || fault("client-any-peer"))
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
transport_connect(struct mlkemclient *client, uint64_t deadline_us, int fd)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	uint64_t pause = CONNECT_PAUSE_US, left;

	memcpy(addr.sun_path, client->path, strlen(client->path));
	while (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		struct timespec ts;

		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || fault("client-no-backoff"))
			return connect_failed(client);
		left = time_left(client, deadline_us);
		if (left == 0)
			return client_fail(client, MLKEMCLIENT_E_TIMEOUT,
			    "connect to %s: its backlog stayed full", client->path);
		ts = timespec_of(pause < left ? pause : left);
		client_unlock(client);
		nanosleep(&ts, NULL);
		client_lock(client);
		if (pause < CONNECT_PAUSE_MAX)
			pause *= 2;
	}
	return server_check(client, fd);
}

/* What there is to be had within spin_us, by looking again and again. */
static short
look(const struct mlkemclient *client, struct pollfd *pfd, uint32_t spin_us)
{
	uint64_t until = client_now(client) + spin_us;

	do
		if (poll(pfd, 1, 0) > 0)
			return pfd->revents;
	while (client_now(client) < until);
	return 0;
}

short
transport_wait(const struct mlkemclient *client, int fd, short events,
    uint64_t deadline_us, uint32_t spin_us, bool *hitp)
{
	struct pollfd pfd = {.fd = fd, .events = events};
	short revents = spin_us != 0 ? look(client, &pfd, spin_us) : 0;

	*hitp = revents != 0;
	while (revents == 0) {
		uint64_t left = time_left(client, deadline_us);
		struct timespec ts = timespec_of(left);
		int n;

		if (left == 0)
			return 0;
		n = ppoll(&pfd, 1, &ts, NULL);
		if (n > 0)
			revents = pfd.revents;
		else if (n < 0 && errno != EINTR)
			return POLLERR;
	}
	return revents;
}

/* What the socket takes now; *sentp is 0 if it takes nothing. */
int
transport_send(int fd, const uint8_t *data, size_t len, size_t *sentp)
{
	ssize_t n;

	*sentp = 0;
	n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0)
		*sentp = (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		return LINK_E_LOST;
	return 0;
}

/* What has come; *gotp is 0 if nothing has. */
int
transport_recv(int fd, uint8_t *data, size_t size, size_t *gotp)
{
	ssize_t n;

	*gotp = 0;
	n = recv(fd, data, size, MSG_DONTWAIT);
	if (n > 0)
		*gotp = (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		return LINK_E_LOST;
	return 0;
}
