/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activation.h: listening sockets that a service manager made and passes, by the protocol
 * that sd_listen_fds(3) documents and promises to keep (LISTEN_PID, LISTEN_FDS,
 * LISTEN_FDNAMES). Not by libsystemd: it brings six more libraries, liblzma among them,
 * into a process that holds keys, and 0.7 MiB. Main's thread, once, at the start.
 */
#ifndef MLKEMD_ACTIVATION_H
#define MLKEMD_ACTIVATION_H

#include "metrics_http.h"

struct activation {
	int data, control; /* -1: not passed */
	int metrics[METRICS_HTTP_LISTENERS_MAX];
	unsigned n_metrics;
};

/*
 * Takes what was passed, by the names data, control and metrics (FileDescriptorName=), and
 * clears the environment. Nothing passed, or to another process, is no mistake. A name or
 * a kind of socket that makes no sense is: it is logged ("listen-failed"), and everything
 * is closed. Returns 0, or -EINVAL.
 */
__attribute__((warn_unused_result)) int activation_take(struct activation *activation);

#endif
