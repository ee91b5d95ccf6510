/* SPDX-License-Identifier: Apache-2.0 */
#include "notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "request.h"

static void
notify_failed(const char *path, int err)
{
	static int said;

	if (said++)
		return;
	log_event(LOG_WARNING, "notify-failed", "NOTIFY_SOCKET=%.120s: %s", path,
	    strerror(err));
}

void
notify_state(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;
	socklen_t addr_len;
	int fd;

	if (!len)
		return;
	if ((path[0] != '/' && path[0] != '@') || len > sizeof(addr.sun_path)) {
		notify_failed(
		    path, len > sizeof(addr.sun_path) ? ENAMETOOLONG : EINVAL);
		return;
	}
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = '\0';
	addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL,
			  (struct sockaddr *)&addr, addr_len) < 0)
		notify_failed(path, errno);
	if (fd >= 0)
		close(fd);
}

/* Less than main's tick leaves room for is a mistake of the unit's. */
#define WATCHDOG_LEAST_US 3000000

/* A number in the environment; 0 if there is none, -1 if it is something else. */
static long long
env_number(const char *name)
{
	const char *text = getenv(name);
	char *end;
	long long value;

	if (!text)
		return 0;
	value = strtoll(text, &end, 10);
	return *text && !*end ? value : -1;
}

bool
notify_has_watchdog(void)
{
	long long us = env_number("WATCHDOG_USEC"), pid = env_number("WATCHDOG_PID");

	if (us <= 0 || (pid && pid != getpid()))
		return false;
	if (us < WATCHDOG_LEAST_US)
		log_event(LOG_WARNING, "notify-failed",
		    "WatchdogSec= is %lld us; an idle daemon speaks once a second: "
		    "3s is the least",
		    us);
	return true;
}

void
notify_reloading(void)
{
	char state[64];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
	    request_now_us());
	notify_state(state);
}
