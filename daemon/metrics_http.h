/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_http.h: GET and HEAD of /metrics, /healthz and /readyz, over HTTP by libevent's
 * evhttp with what it leaves open closed: length of a header, bodies, methods, how many
 * connections and for how long. On main's event base, so that no shard is disturbed.
 */
#ifndef MLKEMD_METRICS_HTTP_H
#define MLKEMD_METRICS_HTTP_H

#include <event2/event.h>
#include <stddef.h>

#define METRICS_HTTP_LISTENERS_MAX 4

/* The server, as a scrape sees it. */
struct metrics_http_ops {
	/* *textp is for free(). Returns 0, or -ENOMEM. */
	int (*text)(void *owner, char **textp, size_t *lenp);
	/* NULL: yes. Else one line that says why not (static). */
	const char *(*unhealthy)(void *owner);
	const char *(*unready)(void *owner);
};

struct metrics_http;

/*
 * metrics_http_new() returns 0, or -ENOMEM. metrics_http_listen() takes over a descriptor
 * that listens: 0, or -ENOMEM with it closed. metrics_http_free() closes all; accepts
 * NULL, returns NULL.
 */
__attribute__((warn_unused_result)) int metrics_http_new(struct metrics_http **httpp,
    struct event_base *base, const struct metrics_http_ops *ops, void *owner);
__attribute__((warn_unused_result)) int metrics_http_listen(
    struct metrics_http *http, int fd);
struct metrics_http *metrics_http_free(struct metrics_http *http);

/* Once a second: accepts again, had it paused for want of descriptors. Accepts NULL. */
void metrics_http_resume(struct metrics_http *http);

/*
 * A listening descriptor for "127.0.0.1:9768" or "[::1]:9768"; logs what is wrong. Returns
 * it, or a negative errno.
 */
__attribute__((warn_unused_result)) int metrics_http_bind(const char *address);

#endif
