/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.h: what the service manager is told: the protocol that sd_notify(3) documents
 * and promises to keep, one datagram for each state. Not by libsystemd: its sd_notify()
 * waits while the socket's queue is full, and main, which calls this, accepts and drains.
 */
#ifndef MLKEMD_NOTIFY_H
#define MLKEMD_NOTIFY_H

#include <stdbool.h>

/*
 * Sends one state such as "READY=1" if NOTIFY_SOCKET is set. Never waits; the first
 * failure is logged. Main's thread.
 */
void notify_state(const char *state);

/* True if "WATCHDOG=1" is waited for from this process (WATCHDOG_USEC, WATCHDOG_PID). */
bool notify_has_watchdog(void);

/* "RELOADING=1" with the time that Type=notify-reload asks for. */
void notify_reloading(void);

#endif
