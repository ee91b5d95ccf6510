/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h: lines on stderr with journal priority prefixes (<6>event: text), each with a
 * documented event name (docs/operations.md). Any thread: one write(2) a line, and never
 * a wait: what stderr has no room for is counted, and the next line says how many were
 * lost. Repeated lines of one event are limited and counted too. Never a secret.
 */
#ifndef MLKEMD_LOG_H
#define MLKEMD_LOG_H

#include <syslog.h>

void log_set_level(int level);

/* event is a name from docs/operations.md such as "start", "peer-denied". */
__attribute__((format(printf, 3, 4))) void log_event(
    int level, const char *event, const char *format, ...);

/*
 * As log_event(), at most one line a second for each event, and ever fewer (down to one in
 * 32 seconds) while it goes on; the next line that passes says how many were suppressed.
 * For what peers can cause.
 */
__attribute__((format(printf, 3, 4))) void log_event_limited(
    int level, const char *event, const char *format, ...);

#endif
