/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.h: a listening Unix socket with its path: exactly one listener however many
 * start at once, exact mode and group whatever the umask, never another's file removed,
 * and accepting that pauses when descriptors run out. Main's thread.
 */
#ifndef MLKEMD_LISTENER_H
#define MLKEMD_LISTENER_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <sys/types.h>

#define LISTENER_PATH_MAX 107u /* sun_path, with its NUL */

struct listener {
	const char *path; /* outlives it */
	mode_t mode;
	gid_t group; /* (gid_t)-1: leave */
	int fd;      /* -1: not open */
	int lock_fd; /* held, flock, on "PATH.lock" */
	dev_t dev;
	ino_t ino;
	struct event accept_event, resume_event;
	bool paused;
	bool passed; /* the service manager's: its path is not ours to remove or make */
	void (*accepted)(void *owner, int fd); /* takes fd over */
	void *owner;
};

/* The zero state, as listener_close() leaves it. */
void listener_reset(struct listener *listener);

/*
 * listener_open() takes the lock, removes a stale socket, binds, sets mode and group and
 * listens. path, mode, group are set. Failures are logged (one line, "listen-failed").
 * Returns 0, or a negative errno: -EADDRINUSE if another daemon has the path.
 */
__attribute__((warn_unused_result)) int listener_open(struct listener *listener);

/*
 * In place of listener_open(): fd listens already. Writes its path to path, which is
 * listener->path's room.
 */
void listener_adopt(
    struct listener *listener, int fd, char path[LISTENER_PATH_MAX + 1]);

/* Begins to accept on base; accepted and owner are set. Returns 0, or -ENOMEM. */
__attribute__((warn_unused_result)) int listener_start(
    struct listener *listener, struct event_base *base);

/* True if the path still leads to this socket. */
bool listener_holds_path(const struct listener *listener);

/* Stops, and removes the socket if it is ours and the path still leads to it. */
void listener_close(struct listener *listener);

#endif
