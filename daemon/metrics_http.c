/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics_http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kem/fault.h"
#include "log.h"
#include "metrics_text.h"

#define HEADERS_MAX_BYTES 8192
#define BODY_MAX_BYTES    4096  /* of a POST, read so that 405 can be said */
#define RESERVE_BYTES     65536 /* for one connection and its answer's headers */
#define IDLE_S            2
#define GENERATION_MS     4000
#define GENERATION_CONNS  16
#define BACKLOG           64

/*
 * evhttp has a time limit for silence, none for dripping, and none for the number of
 * connections; nor does it tell which it has. So there are two of them: one takes
 * connections, and after four seconds or sixteen connections the next one does. The one
 * before is freed, with all that still hangs on it, when the same has passed once more.
 * An answer takes milliseconds: who is still there then only holds a descriptor.
 */
struct generation {
	struct evhttp *evhttp;
	struct evhttp_bound_socket *bound[METRICS_HTTP_LISTENERS_MAX];
	unsigned n_accepted;
};

struct metrics_http {
	const struct metrics_http_ops *ops;
	void *owner;
	struct event_base *base;
	struct generation now, before; /* evhttp NULL: none */
	int fds[METRICS_HTTP_LISTENERS_MAX];
	void *reserve; /* NULL: given away, and no connection is taken */
	unsigned n_fds;
	struct event tick_event;
};

static void
free_text(const void *text, size_t len, void *arg)
{
	free((void *)(uintptr_t)text);
}

/* body goes with GET only; HEAD says its length. Takes text over. */
static void
http_answer(struct evhttp_request *req, int code, const char *reason, const char *type,
    char *text, size_t len)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	struct evbuffer *body = evbuffer_new();
	char length[24];

	snprintf(length, sizeof(length), "%zu", len);
	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "Content-Length", length);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "Connection", "close");
	if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD || !body ||
	    evbuffer_add_reference(body, text, len, free_text, NULL))
		free(text);
	evhttp_send_reply(req, code, reason, body);
	if (body)
		evbuffer_free(body);
}

static void
http_answer_line(
    struct evhttp_request *req, int code, const char *reason, const char *line)
{
	char *text = NULL;
	int len = asprintf(&text, "%s\n", line);

	if (len < 0)
		evhttp_send_error(req, HTTP_INTERNAL, NULL);
	else
		http_answer(
		    req, code, reason, "text/plain; charset=utf-8", text, (size_t)len);
}

static void
http_answer_metrics(struct metrics_http *http, struct evhttp_request *req)
{
	char *text = NULL;
	size_t len = 0;

	if (http->ops->text(http->owner, &text, &len))
		http_answer_line(
		    req, HTTP_SERVUNAVAIL, "Service Unavailable", "out of memory");
	else
		http_answer(req, HTTP_OK, "OK", METRICS_TEXT_TYPE, text, len);
}

static void
http_answer_state(
    struct evhttp_request *req, const char *(*why_not)(void *owner), void *owner)
{
	const char *why = why_not(owner);

	if (why)
		http_answer_line(req, HTTP_SERVUNAVAIL, "Service Unavailable", why);
	else
		http_answer_line(req, HTTP_OK, "OK", "ok");
}

static void
http_request(struct evhttp_request *req, void *arg)
{
	struct metrics_http *http = arg;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
	enum evhttp_cmd_type method = evhttp_request_get_command(req);

	if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		evhttp_add_header(
		    evhttp_request_get_output_headers(req), "Allow", "GET, HEAD");
		http_answer_line(req, HTTP_BADMETHOD, "Method Not Allowed",
		    "GET and HEAD are allowed");
	} else if (path && !strcmp(path, "/metrics")) {
		http_answer_metrics(http, req);
	} else if (path && !strcmp(path, "/healthz")) {
		http_answer_state(req, http->ops->unhealthy, http->owner);
	} else if (path && !strcmp(path, "/readyz")) {
		http_answer_state(req, http->ops->unready, http->owner);
	} else {
		http_answer_line(req, HTTP_NOTFOUND, "Not Found",
		    "there are /metrics, /healthz and /readyz");
	}
}

static void
generation_free(struct generation *generation)
{
	if (generation->evhttp)
		evhttp_free(generation->evhttp);
	*generation = (struct generation){0};
}

/* Out of descriptors: left alone, it would fire for ever. */
static void
http_accept_failed(struct evconnlistener *listener, void *arg)
{
	int err = EVUTIL_SOCKET_ERROR();

	log_event_limited(LOG_WARNING, "accept-paused", "metrics: %s", strerror(err));
	evconnlistener_disable(listener);
}

/*
 * Where there is no memory for a connection, evhttp does not refuse it but dereferences
 * NULL. So it is kept some: the last connection that is taken gets it, and no other is
 * taken until there is more.
 */
static void
http_keep_reserve(struct metrics_http *http)
{
	void *probe = malloc(RESERVE_BYTES);

	if (probe || fault("metrics-http-no-reserve")) {
		free(probe);
		return;
	}
	free(http->reserve);
	http->reserve = NULL;
	log_event_limited(LOG_WARNING, "accept-paused", "metrics: out of memory");
	for (unsigned i = 0; i < http->n_fds; i++) {
		if (http->now.bound[i])
			evconnlistener_disable(
			    evhttp_bound_socket_get_listener(http->now.bound[i]));
	}
}

void
metrics_http_resume(struct metrics_http *http)
{
	if (http && !http->reserve)
		http->reserve = malloc(RESERVE_BYTES);
	if (http && !http->reserve)
		return;
	for (unsigned i = 0; http && i < http->n_fds; i++) {
		if (http->now.bound[i])
			evconnlistener_enable(
			    evhttp_bound_socket_get_listener(http->now.bound[i]));
	}
}

/* Called for every connection, to make what carries it: evhttp's own choice will do. */
static struct bufferevent *
http_accepted(struct event_base *base, void *arg)
{
	struct metrics_http *http = arg;
	struct timeval tv = {.tv_sec = GENERATION_MS / 1000};

	http_keep_reserve(http);
	if (!evtimer_pending(&http->tick_event, NULL))
		evtimer_add(&http->tick_event, &tv);
	/* Not in here: this is the listener's call. */
	if (++http->now.n_accepted == GENERATION_CONNS)
		event_active(&http->tick_event, EV_TIMEOUT, 0);
	return NULL;
}

/* A copy of a listening descriptor for one generation. */
static int
generation_listen(struct metrics_http *http, struct generation *generation, unsigned i)
{
	struct evconnlistener *listener;
	int fd = fcntl(http->fds[i], F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	listener = evconnlistener_new(http->base, NULL, NULL,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!listener) {
		close(fd);
		return -ENOMEM;
	}
	generation->bound[i] = evhttp_bind_listener(generation->evhttp, listener);
	if (!generation->bound[i]) {
		evconnlistener_free(listener);
		return -ENOMEM;
	}
	evconnlistener_set_error_cb(listener, http_accept_failed);
	return 0;
}

static int
generation_init(struct metrics_http *http, struct generation *generation)
{
	int r = 0;

	*generation = (struct generation){.evhttp = evhttp_new(http->base)};
	if (!generation->evhttp)
		return -ENOMEM;
	evhttp_set_max_headers_size(generation->evhttp, HEADERS_MAX_BYTES);
	evhttp_set_max_body_size(generation->evhttp, BODY_MAX_BYTES);
	evhttp_set_timeout(generation->evhttp, IDLE_S);
	/* Those that are not answered get 405 from us, where evhttp would say 501. */
	evhttp_set_allowed_methods(generation->evhttp,
	    EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
		EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
		EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
	evhttp_set_bevcb(generation->evhttp, http_accepted, http);
	evhttp_set_gencb(generation->evhttp, http_request, http);
	for (unsigned i = 0; !r && i < http->n_fds; i++)
		r = generation_listen(http, generation, i);
	if (r)
		generation_free(generation);
	return r;
}

/* The one that took connections takes no more; the next one does. */
static int
http_rotate(struct metrics_http *http)
{
	struct generation next;
	int r = generation_init(http, &next);

	if (r)
		return r;
	for (unsigned i = 0; i < http->n_fds; i++)
		evhttp_del_accept_socket(http->now.evhttp, http->now.bound[i]);
	http->before = http->now;
	http->now = next;
	return 0;
}

static void
http_tick(evutil_socket_t fd, short what, void *arg)
{
	struct metrics_http *http = arg;
	struct timeval tv = {.tv_sec = GENERATION_MS / 1000};
	int r = 0;

	if (fault("metrics-http-drips"))
		return;
	generation_free(&http->before);
	if (http->now.n_accepted && http->reserve)
		r = http_rotate(http);
	if (r)
		log_event_limited(
		    LOG_WARNING, "accept-paused", "metrics: %s", strerror(-r));
	if (http->before.evhttp || http->now.n_accepted)
		evtimer_add(&http->tick_event, &tv);
}

int
metrics_http_new(struct metrics_http **httpp, struct event_base *base,
    const struct metrics_http_ops *ops, void *owner)
{
	struct metrics_http *http = calloc(1, sizeof(*http));

	if (!http)
		return -ENOMEM;
	http->ops = ops;
	http->owner = owner;
	http->base = base;
	http->reserve = malloc(RESERVE_BYTES);
	if (!http->reserve ||
	    evtimer_assign(&http->tick_event, base, http_tick, http) ||
	    generation_init(http, &http->now)) {
		metrics_http_free(http);
		return -ENOMEM;
	}
	*httpp = http;
	return 0;
}

int
metrics_http_listen(struct metrics_http *http, int fd)
{
	unsigned i = http->n_fds;

	if (i == METRICS_HTTP_LISTENERS_MAX) {
		close(fd);
		return -ENOMEM;
	}
	http->fds[i] = fd;
	http->n_fds++;
	return generation_listen(http, &http->now, i);
}

struct metrics_http *
metrics_http_free(struct metrics_http *http)
{
	if (!http)
		return NULL;
	generation_free(&http->now);
	generation_free(&http->before);
	event_del(&http->tick_event);
	for (unsigned i = 0; i < http->n_fds; i++)
		close(http->fds[i]);
	free(http->reserve);
	free(http);
	return NULL;
}

int
metrics_http_bind(const char *address)
{
	struct sockaddr_storage addr;
	int len = sizeof(addr), one = 1, fd, err;

	if (evutil_parse_sockaddr_port(address, (struct sockaddr *)&addr, &len))
		return -EINVAL;
	fd = socket(addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    !bind(fd, (struct sockaddr *)&addr, (socklen_t)len) && !listen(fd, BACKLOG))
		return fd;
	err = errno;
	log_event(LOG_ERR, "listen-failed", "metrics.listen %s: %s%s", address,
	    strerror(err),
	    err == EAFNOSUPPORT
		? "; the unit's RestrictAddressFamilies= does not have AF_INET: let "
		  "mlkemd-metrics.socket listen instead"
		: "");
	if (fd >= 0)
		close(fd);
	return -err;
}
