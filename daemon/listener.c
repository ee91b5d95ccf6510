/* SPDX-License-Identifier: Apache-2.0 */
#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config.h"
#include "kem/fault.h"
#include "log.h"

#define BACKLOG    1024
#define ACCEPT_MAX 64 /* in one go: the control socket waits meanwhile */
#define PAUSE_MS   100

void
listener_reset(struct listener *listener)
{
	*listener = (struct listener){.fd = -1, .lock_fd = -1, .group = (gid_t)-1};
}

static int
listener_fail(const struct listener *listener, int err, const char *why)
{
	log_event(LOG_ERR, "listen-failed", "%s: %s%s%s", listener->path, why,
	    err ? ": " : "", err ? strerror(err) : "");
	return err ? -err : -EINVAL;
}

static int
listener_no_folder(const struct listener *listener)
{
	const char *slash = strrchr(listener->path, '/');

	log_event(LOG_ERR, "listen-failed",
	    "%s: there is no folder %.*s; make it first", listener->path,
	    slash ? (int)(slash - listener->path) : 0, listener->path);
	return -ENOENT;
}

static int
lock_path(const struct listener *listener, char path[LISTENER_PATH_MAX + 6])
{
	return snprintf(path, LISTENER_PATH_MAX + 6, "%s.lock", listener->path);
}

/*
 * The lock settles who may look at the socket's path and bind there. It is unlinked
 * while it is held, so that nothing is left behind: who locked a file that is no longer
 * the one at the path has lost a race and tries again.
 */
static int
listener_lock(struct listener *listener)
{
	char path[LISTENER_PATH_MAX + 6];
	struct stat held, named;

	lock_path(listener, path);
	for (;;) {
		int fd = open(
		    path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

		if (fd < 0 && errno == ENOENT)
			return listener_no_folder(listener);
		if (fd < 0)
			return listener_fail(listener, errno, "can't make its .lock");
		if (flock(fd, LOCK_EX | LOCK_NB) && !fault("accept-no-lock")) {
			int err = errno;

			close(fd);
			if (err == EWOULDBLOCK)
				return listener_fail(listener, EADDRINUSE,
				    "another mlkemd is already running there");
			return listener_fail(listener, err, "can't lock its .lock");
		}
		if (!fstat(fd, &held) && !lstat(path, &named) &&
		    held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
			listener->lock_fd = fd;
			return 0;
		}
		close(fd);
	}
}

static void
listener_unlock(struct listener *listener)
{
	char path[LISTENER_PATH_MAX + 6];
	struct stat held, named;

	if (listener->lock_fd < 0)
		return;
	lock_path(listener, path);
	if (!fstat(listener->lock_fd, &held) && !lstat(path, &named) &&
	    held.st_dev == named.st_dev && held.st_ino == named.st_ino)
		unlink(path);
	close(listener->lock_fd);
	listener->lock_fd = -1;
}

/* Only a socket that refuses connections is stale; a full backlog (EAGAIN) is not. */
static int
listener_remove_stale(struct listener *listener, const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, err = 0;

	if (lstat(listener->path, &st))
		return errno == ENOENT ? 0
				       : listener_fail(listener, errno, "can't look");
	if (!S_ISSOCK(st.st_mode))
		return listener_fail(
		    listener, EEXIST, "what lies there is no socket; it is left alone");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return listener_fail(listener, errno, "no socket");
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		err = errno;
	close(fd);
	if (err == ENOENT)
		return 0;
	if (!err || err == EAGAIN)
		return listener_fail(
		    listener, EADDRINUSE, "another program is listening there");
	if (err != ECONNREFUSED)
		return listener_fail(listener, err, "can't tell if it is in use");
	if (unlink(listener->path) && errno != ENOENT)
		return listener_fail(listener, errno, "can't remove a stale socket");
	log_event(LOG_INFO, "stale-socket", "%s: removed", listener->path);
	return 0;
}

/*
 * Bound with no permission at all, so that it is never wider than configured; chmod()
 * then gives exactly the mode, which the umask can't take from. Until listen() nobody
 * gets in anyway.
 */
static int
listener_bind(struct listener *listener, const struct sockaddr_un *addr)
{
	struct stat st;
	mode_t mask;
	int r;

	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener->fd < 0)
		return listener_fail(listener, errno, "no socket");
	mask = umask(0777);
	r = bind(listener->fd, (const struct sockaddr *)addr, sizeof(*addr)) ? errno
									     : 0;
	umask(mask);
	if (r)
		return listener_fail(listener, r, "can't bind");
	if (lstat(listener->path, &st))
		return listener_fail(listener, errno, "can't look");
	listener->dev = st.st_dev;
	listener->ino = st.st_ino;
	if (listener->group != (gid_t)-1 &&
	    lchown(listener->path, (uid_t)-1, listener->group))
		return listener_fail(listener, errno, "can't set socket.group");
	if (chmod(listener->path, listener->mode))
		return listener_fail(listener, errno, "can't set socket.mode");
	if (listen(listener->fd, BACKLOG))
		return listener_fail(listener, errno, "can't listen");
	return 0;
}

/* Only the default directory is made; any other is its owner's matter. */
static void
listener_make_dir(const struct listener *listener)
{
	size_t len = strlen(CONFIG_RUN_DIR);

	if (!strncmp(listener->path, CONFIG_RUN_DIR "/", len + 1) &&
	    !strchr(listener->path + len + 1, '/') && !mkdir(CONFIG_RUN_DIR, 0755))
		chmod(CONFIG_RUN_DIR, 0755);
}

int
listener_open(struct listener *listener)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = strlen(listener->path);
	int r;

	if (len > LISTENER_PATH_MAX) {
		log_event(LOG_ERR, "listen-failed",
		    "%s: a socket's path has at most %u bytes; this one has %zu",
		    listener->path, LISTENER_PATH_MAX, len);
		return -ENAMETOOLONG;
	}
	memcpy(addr.sun_path, listener->path, len);
	listener_make_dir(listener);
	r = listener_lock(listener);
	if (!r)
		r = listener_remove_stale(listener, &addr);
	if (!r)
		r = listener_bind(listener, &addr);
	if (r)
		listener_close(listener);
	return r;
}

void
listener_adopt(struct listener *listener, int fd, char path[LISTENER_PATH_MAX + 1])
{
	struct sockaddr_un addr = {0};
	socklen_t len = sizeof(addr);
	struct stat st;

	if (!getsockname(fd, (struct sockaddr *)&addr, &len) && addr.sun_path[0])
		snprintf(path, LISTENER_PATH_MAX + 1, "%.*s", (int)LISTENER_PATH_MAX,
		    addr.sun_path);
	listener->path = path;
	listener->fd = fd;
	listener->passed = true;
	if (!lstat(path, &st)) {
		listener->dev = st.st_dev;
		listener->ino = st.st_ino;
	}
}

/* Out of descriptors or memory: the event would fire for ever, so it goes for a while. */
static void
listener_pause(struct listener *listener, int err)
{
	struct timeval tv = {.tv_usec = PAUSE_MS * 1000};

	log_event_limited(
	    LOG_WARNING, "accept-paused", "%s: %s", listener->path, strerror(err));
	if (!evtimer_add(&listener->resume_event, &tv)) {
		event_del(&listener->accept_event);
		listener->paused = true;
	}
}

static void
listener_resume(evutil_socket_t fd, short what, void *arg)
{
	struct listener *listener = arg;

	listener->paused = false;
	event_add(&listener->accept_event, NULL);
}

static void
listener_accept(evutil_socket_t fd, short what, void *arg)
{
	struct listener *listener = arg;

	for (int i = 0; i < ACCEPT_MAX; i++) {
		int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (peer >= 0) {
			listener->accepted(listener->owner, peer);
			continue;
		}
		switch (errno) {
		case EAGAIN:
			return;
		case EINTR:
		case ECONNABORTED:
			continue;
		default:
			listener_pause(listener, errno);
			return;
		}
	}
}

int
listener_start(struct listener *listener, struct event_base *base)
{
	if (event_assign(&listener->accept_event, base, listener->fd,
		EV_READ | EV_PERSIST, listener_accept, listener) ||
	    evtimer_assign(&listener->resume_event, base, listener_resume, listener) ||
	    event_add(&listener->accept_event, NULL))
		return -ENOMEM;
	return 0;
}

bool
listener_holds_path(const struct listener *listener)
{
	struct stat st;

	return listener->fd >= 0 && !lstat(listener->path, &st) &&
	       st.st_dev == listener->dev && st.st_ino == listener->ino;
}

void
listener_close(struct listener *listener)
{
	if (event_initialized(&listener->accept_event)) {
		event_del(&listener->accept_event);
		event_del(&listener->resume_event);
	}
	/* ino is 0 until the path was ours. */
	if (listener->ino && !listener->passed && listener_holds_path(listener))
		unlink(listener->path);
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
	listener->ino = 0;
	listener_unlock(listener);
	memset(&listener->accept_event, 0, sizeof(listener->accept_event));
	memset(&listener->resume_event, 0, sizeof(listener->resume_event));
	listener->paused = listener->passed = false;
}
