/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h: lines for the system's log. A datagram to /dev/log, which never waits and
 * is lost where nobody listens: a library in somebody else's process has no other
 * voice.
 */
#ifndef MLKEMD_PROVIDER_REPORT_H
#define MLKEMD_PROVIDER_REPORT_H

struct provider;

/* Says that the configuration is wrong. */
void report_mistake(const struct provider *provider, const char *mistake);

/*
 * Says how many operations were worked here because the daemon did not do them, if
 * there are new ones and the last such line is a minute old.
 */
void report_fallbacks(struct provider *provider);

#endif
