/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission.h: who may come in: what the kernel says of a socket's peer (SO_PEERCRED,
 * SO_PEERGROUPS) against the configuration's lists. Never /proc. Any thread.
 */
#ifndef MLKEMD_ADMISSION_H
#define MLKEMD_ADMISSION_H

#include <stdbool.h>
#include <sys/types.h>

struct config;

/*
 * True if the peer of fd is on a list; false too if the kernel does not say who it is.
 * *uidp, if asked for, is its uid, (uid_t)-1 if not known.
 */
bool admission_allows(int fd, const struct config *config, uid_t *uidp);

/* The limited log line on a peer that was refused. Main's thread. */
void admission_log_denied(uid_t uid);

#endif
