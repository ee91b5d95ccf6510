/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h: one request over the daemon's control socket, where Stats, Reload, Drain,
 * Resume and SelfTest are served. Synchronous, with the deadline of --timeout-ms.
 */
#ifndef MLKEMCTL_CONTROL_H
#define MLKEMCTL_CONTROL_H

#include <sys/types.h>

#include "ctl.h"
#include "mlkemd.pb-c.h"

/*
 * Connects, says Hello, sends op (a Request with only its operation set) and returns the
 * answer in *responsep, to be freed with mlkemd__v1__response__free_unpacked(). pidp may
 * be NULL; else it gets the daemon's process id as the kernel knows it (0 if in another
 * namespace). Returns CTL_OK, or an exit status after saying what is wrong.
 */
int control_call(const struct ctl *ctl, Mlkemd__V1__Request *op,
    Mlkemd__V1__Response **responsep, pid_t *pidp);

#endif
