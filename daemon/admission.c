/* SPDX-License-Identifier: Apache-2.0 */
#include "admission.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "config.h"
#include "log.h"

#define PEER_GROUPS_MAX 65536u /* NGROUPS_MAX */

static bool
ids_have(const struct config_ids *ids, uint32_t id)
{
	for (size_t i = 0; i < ids->n; i++) {
		if (ids->ids[i] == id)
			return true;
	}
	return false;
}

static bool
groups_allowed(int fd, const struct config_ids *allowed)
{
	socklen_t len = 0;
	gid_t *groups, none;
	bool found = false;

	if (!allowed->n)
		return false;
	/* The first call fails with ERANGE and tells the size. */
	getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &none, &len);
	if (!len || len > PEER_GROUPS_MAX * sizeof(*groups))
		return false;
	groups = malloc(len);
	if (groups && !getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len)) {
		for (size_t i = 0; i < len / sizeof(*groups) && !found; i++)
			found = ids_have(allowed, groups[i]);
	}
	free(groups);
	return found;
}

bool
admission_allows(int fd, const struct config *config, uid_t *uidp)
{
	struct ucred peer = {.uid = (uid_t)-1, .gid = (gid_t)-1};
	socklen_t len = sizeof(peer);
	bool known = !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
		     len == sizeof(peer) && peer.uid != (uid_t)-1;

	if (uidp)
		*uidp = known ? peer.uid : (uid_t)-1;
	if (!known)
		return false;
	return ids_have(&config->allow_users, peer.uid) ||
	       ids_have(&config->allow_groups, peer.gid) ||
	       groups_allowed(fd, &config->allow_groups);
}

/* From the file alone: the name services might ask a network and make main wait. */
static void
user_name(uid_t uid, char *name, size_t size)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd entry = {0}, *user;
	char line[1024];

	snprintf(name, size, "not in /etc/passwd");
	if (!file)
		return;
	while (!fgetpwent_r(file, &entry, line, sizeof(line), &user)) {
		if (user->pw_uid == uid) {
			snprintf(name, size, "%s", user->pw_name);
			break;
		}
	}
	fclose(file);
}

void
admission_log_denied(uid_t uid)
{
	static time_t looked_up;
	struct timespec now;
	char name[64] = "...";

	clock_gettime(CLOCK_MONOTONIC, &now);
	/* Not for lines that will be suppressed. */
	if (!looked_up || now.tv_sec > looked_up) {
		looked_up = now.tv_sec;
		user_name(uid, name, sizeof(name));
	}
	log_event_limited(LOG_NOTICE, "peer-denied",
	    "uid %u (%s) may not come in; to allow it, add under [access]: "
	    "allow-users = %u",
	    uid, name, uid);
}
