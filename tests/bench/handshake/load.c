/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: makes TLS 1.3 handshakes, or plain HTTP requests, so many at a time on loopback,
 * and says how long each took. It offers one group alone, so that a handshake that
 * succeeds has used it, and never resumes. One thread, for one processor; it runs with
 * whatever libssl of OpenSSL 3 is found, and is compiled with 3.0's headers.
 *
 *   load PORT tls GROUP COUNT AT-A-TIME SECONDS
 *   load PORT http - COUNT AT-A-TIME SECONDS
 *
 * Prints one line of JSON: "us", the times of the good ones in microseconds (tls: from
 * connect() until the client has sent its Finished), "failed", "error" (of the first
 * failure), "seconds" of all. What is not done after SECONDS has failed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define AT_A_TIME_MAX 4096
#define COUNT_MAX     10000000

enum phase { IDLE, CONNECTING, HANDSHAKE, CLOSING, REQUEST };

struct slot {
	enum phase phase;
	int fd;
	SSL *ssl;
	uint64_t began_us;
	uint32_t events;
	/* http */
	char in[4096];
	size_t n_in;
};

struct load {
	struct sockaddr_in to;
	SSL_CTX *ctx; /* NULL: http */
	int epoll;
	struct slot *slots;
	unsigned n_slots;
	unsigned count, n_started, n_good, n_failed, n_ended;
	uint32_t *us;
	char error[200];
};

static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void
die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	ERR_print_errors_fp(stderr);
	exit(2);
}

static void
slot_watch(struct load *load, struct slot *slot, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = slot};

	if (slot->events == events)
		return;
	if (epoll_ctl(load->epoll, slot->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
		slot->fd, &event) != 0)
		die("epoll_ctl");
	slot->events = events;
}

static void
slot_close(struct slot *slot)
{
	SSL_free(slot->ssl);
	if (slot->fd >= 0)
		close(slot->fd);
	*slot = (struct slot){.fd = -1};
}

/* This one is over; load_start() gives the slot the next. */
static void
slot_next(struct load *load, struct slot *slot)
{
	load->n_ended++;
	slot->phase = IDLE;
	if (load->ctx)
		slot_close(slot);
}

static void
slot_good(struct load *load, struct slot *slot)
{
	load->us[load->n_good++] = (uint32_t)(now_us() - slot->began_us);
}

static void
slot_fail(struct load *load, struct slot *slot, const char *what)
{
	unsigned long error = ERR_peek_error();

	if (load->n_failed++ == 0) {
		char text[120] = "";

		if (error)
			ERR_error_string_n(error, text, sizeof(text));
		snprintf(load->error, sizeof(load->error), "%s: %s", what,
		    error ? text : strerror(errno));
	}
	ERR_clear_error();
	load->n_ended++;
	slot_close(slot);
}

/* The client's part is done with its Finished; the server's ends with its close. */
static void
slot_closing(struct load *load, struct slot *slot)
{
	char buf[4096];
	int n;

	while ((n = SSL_read(slot->ssl, buf, sizeof(buf))) > 0)
		;
	if (SSL_get_error(slot->ssl, n) == SSL_ERROR_WANT_READ) {
		slot_watch(load, slot, EPOLLIN);
		return;
	}
	ERR_clear_error();
	slot_next(load, slot);
}

static void
slot_handshake(struct load *load, struct slot *slot)
{
	int n = SSL_do_handshake(slot->ssl);

	if (n == 1) {
		slot_good(load, slot);
		slot->phase = CLOSING;
		SSL_shutdown(slot->ssl);
		slot_closing(load, slot);
		return;
	}
	switch (SSL_get_error(slot->ssl, n)) {
	case SSL_ERROR_WANT_READ:
		slot_watch(load, slot, EPOLLIN);
		break;
	case SSL_ERROR_WANT_WRITE:
		slot_watch(load, slot, EPOLLOUT);
		break;
	default:
		slot_fail(load, slot, "handshake");
	}
}

static void
slot_send_request(struct load *load, struct slot *slot)
{
	slot->phase = REQUEST;
	slot->n_in = 0;
	if (write(slot->fd, request, sizeof(request) - 1) != sizeof(request) - 1)
		slot_fail(load, slot, "request");
	else
		slot_watch(load, slot, EPOLLIN);
}

/* Whether the whole answer is in; its length has to be told. */
static bool
answer_is_whole(struct slot *slot)
{
	char *end, *length;

	slot->in[slot->n_in] = '\0';
	end = strstr(slot->in, "\r\n\r\n");
	length = end ? strcasestr(slot->in, "\r\ncontent-length:") : NULL;
	return length && slot->n_in >= (size_t)(end + 4 - slot->in) +
					   strtoul(length + 17, NULL, 10);
}

static void
slot_answer(struct load *load, struct slot *slot)
{
	ssize_t n =
	    read(slot->fd, slot->in + slot->n_in, sizeof(slot->in) - 1 - slot->n_in);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		slot_fail(load, slot, "answer");
		return;
	}
	slot->n_in += (size_t)n;
	if (!answer_is_whole(slot)) {
		if (slot->n_in == sizeof(slot->in) - 1)
			slot_fail(load, slot, "answer too long");
		return;
	}
	if (strncmp(slot->in, "HTTP/1.1 200", 12) != 0) {
		slot->in[strcspn(slot->in, "\r")] = '\0';
		slot_fail(load, slot, slot->in);
		return;
	}
	slot_good(load, slot);
	/* The proxy closes after some number of requests, and says so. */
	if (strcasestr(slot->in, "\r\nconnection: close"))
		slot_close(slot);
	slot_next(load, slot);
}

static void
slot_connected(struct load *load, struct slot *slot)
{
	int error = 0;
	socklen_t len = sizeof(error);

	getsockopt(slot->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error != 0) {
		errno = error;
		slot_fail(load, slot, "connect");
		return;
	}
	if (!load->ctx) {
		slot_send_request(load, slot);
		return;
	}
	slot->phase = HANDSHAKE;
	slot_handshake(load, slot);
}

static void
slot_connect(struct load *load, struct slot *slot)
{
	int one = 1;

	slot->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (slot->fd < 0)
		die("socket");
	setsockopt(slot->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(slot->fd, (struct sockaddr *)&load->to, sizeof(load->to)) != 0 &&
	    errno != EINPROGRESS) {
		slot_fail(load, slot, "connect");
		return;
	}
	if (load->ctx) {
		slot->ssl = SSL_new(load->ctx);
		if (!slot->ssl || SSL_set_fd(slot->ssl, slot->fd) != 1)
			die("SSL_new");
		SSL_set_connect_state(slot->ssl);
	}
	slot->phase = CONNECTING;
	slot_watch(load, slot, EPOLLOUT);
}

/* Returns false when some of them failed at once: there may be more to start. */
static bool
load_start(struct load *load)
{
	bool all = true;

	for (unsigned i = 0; i < load->n_slots; i++) {
		struct slot *slot = &load->slots[i];

		if (slot->phase != IDLE || load->n_started == load->count)
			continue;
		load->n_started++;
		slot->began_us = now_us();
		if (slot->fd < 0)
			slot_connect(load, slot);
		else
			slot_send_request(load, slot);
		all = all && slot->phase != IDLE;
	}
	return all;
}

static void
slot_turn(struct load *load, struct slot *slot)
{
	switch (slot->phase) {
	case CONNECTING:
		slot_connected(load, slot);
		break;
	case HANDSHAKE:
		slot_handshake(load, slot);
		break;
	case CLOSING:
		slot_closing(load, slot);
		break;
	case REQUEST:
		slot_answer(load, slot);
		break;
	case IDLE:
		break;
	}
}

static void
load_run(struct load *load, uint64_t until_us)
{
	struct epoll_event events[256];
	uint64_t now;

	for (unsigned i = 0; i < load->n_slots; i++)
		load->slots[i].fd = -1;
	while (load->n_ended < load->count && (now = now_us()) < until_us) {
		int n, ms = (int)((until_us - now) / 1000) + 1;

		n = epoll_wait(load->epoll, events, 256, load_start(load) ? ms : 0);
		if (n < 0 && errno != EINTR)
			die("epoll_wait");
		for (int i = 0; i < n; i++)
			slot_turn(load, events[i].data.ptr);
	}
}

static SSL_CTX *
context_new(const char *group)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, group) != 1)
		die(group);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	/* The certificate's signature is checked, its chain is the test's own. */
	SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
	return ctx;
}

static unsigned
number(const char *text, unsigned max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || n == 0 || n > max) {
		fprintf(stderr, "load: %s: not a number from 1 to %u\n", text, max);
		exit(2);
	}
	return (unsigned)n;
}

int
main(int argc, char **argv)
{
	struct load load = {.to.sin_family = AF_INET};
	uint64_t start_us;
	unsigned seconds;

	if (argc != 7 ||
	    (strcmp(argv[2], "tls") != 0 && strcmp(argv[2], "http") != 0)) {
		fputs("usage: load PORT tls|http GROUP COUNT AT-A-TIME SECONDS\n",
		    stderr);
		return 2;
	}
	load.to.sin_port = htons((uint16_t)number(argv[1], 65535));
	load.to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	load.count = number(argv[4], COUNT_MAX);
	load.n_slots = number(argv[5], AT_A_TIME_MAX);
	seconds = number(argv[6], 3600);
	if (strcmp(argv[2], "tls") == 0)
		load.ctx = context_new(argv[3]);
	load.slots = calloc(load.n_slots, sizeof(*load.slots));
	load.us = calloc(load.count, sizeof(*load.us));
	load.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!load.slots || !load.us || load.epoll < 0)
		die("memory");

	start_us = now_us();
	load_run(&load, start_us + seconds * 1000000ull);
	printf("{\"failed\": %u, \"error\": \"", load.count - load.n_good);
	for (const char *p = load.error; *p; p++)
		putchar(*p == '"' || *p == '\\' || *p < ' ' ? '?' : *p);
	printf("\", \"seconds\": %.6f, \"us\": [", (double)(now_us() - start_us) / 1e6);
	for (unsigned i = 0; i < load.n_good; i++)
		printf("%s%u", i ? ", " : "", load.us[i]);
	puts("]}");

	for (unsigned i = 0; i < load.n_slots; i++)
		slot_close(&load.slots[i]);
	SSL_CTX_free(load.ctx);
	free(load.slots);
	free(load.us);
	close(load.epoll);
	return 0;
}
