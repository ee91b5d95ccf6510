/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h: the parts of mlkemctl doctor: each looks at one thing and tells what it
 * found by doctor_say(). cmd_doctor.c looks at the daemon, doctor_host.c at the machine,
 * doctor_proxies.c at the programs that could use it.
 */
#ifndef MLKEMCTL_DOCTOR_H
#define MLKEMCTL_DOCTOR_H

#include "ctl.h"

enum finding {
	FINDING_GOOD,
	FINDING_NOTE, /* as good as it gets here */
	FINDING_WARN, /* slower, or less safe, than it could be */
	FINDING_BAD,  /* does not work */
	FINDING_N,
};

struct doctor {
	struct ctl *ctl;
	struct mlkemclient_info info; /* of the daemon, if it answers */
	bool answers;
	unsigned n[FINDING_N];
};

/*
 * One finding: what was looked at, what is so, and what to type about it (NULL: nothing
 * is to be done).
 */
__attribute__((format(printf, 5, 6))) void doctor_say(struct doctor *doctor,
    enum finding finding, const char *what, const char *remedy, const char *format,
    ...);

void doctor_look_at_cpu(struct doctor *doctor);
void doctor_look_at_memory(struct doctor *doctor);
void doctor_look_at_socket(struct doctor *doctor);
void doctor_look_at_users(struct doctor *doctor);
void doctor_look_at_provider(struct doctor *doctor);

#endif
