/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_tls_wire.c: one connection of `mlkemctl tls`: connect, send, receive, and what the
 * kernel counted of it. One deadline holds for all of it.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd_tls.h"

#define MS 1000000ull

/* Waits for events on fd until a time. Returns whether they came. */
static bool
wait_for(int fd, short events, uint64_t until_ns)
{
	struct pollfd pfd = {.fd = fd, .events = events};

	for (;;) {
		uint64_t now = ctl_now_ns();
		int n;

		if (now >= until_ns)
			return false;
		n = poll(&pfd, 1, (int)((until_ns - now + MS - 1) / MS));
		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
}

/* Connects to one address. Returns a socket, or -1 with errno. */
static int
connect_one(const struct addrinfo *address, uint64_t until_ns)
{
	int fd, error, one = 1;
	socklen_t len = sizeof(error);

	fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	error = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
	if (error == EINPROGRESS) {
		error = ETIMEDOUT;
		if (wait_for(fd, POLLOUT, until_ns))
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	}
	if (error) {
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

/* Tries the addresses of a name in their order. Returns CTL_OK or a status. */
static int
peer_connect(const struct ctl *ctl, struct tls_peer *peer, uint64_t until_ns,
    struct tls_seen *seen, int *fdp)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	int error, fd = -1;

	error = getaddrinfo(peer->host, peer->port, &hints, &list);
	if (error)
		return ctl_fail(
		    ctl, CTL_UNREACHABLE, "%s: %s", peer->host, gai_strerror(error));
	errno = EHOSTUNREACH;
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		getnameinfo(a->ai_addr, a->ai_addrlen, peer->address,
		    sizeof(peer->address), NULL, 0, NI_NUMERICHOST);
		seen->connect_ns = ctl_now_ns();
		fd = connect_one(a, until_ns);
	}
	error = errno;
	seen->connect_ns = ctl_now_ns() - seen->connect_ns;
	freeaddrinfo(list);
	*fdp = fd;
	if (fd >= 0)
		return CTL_OK;
	if (error == ECONNREFUSED)
		return ctl_fail(ctl, CTL_UNREACHABLE, "nothing listens at %s port %s",
		    peer->address, peer->port);
	return ctl_fail(ctl, error == ETIMEDOUT ? CTL_BUSY : CTL_UNREACHABLE,
	    "cannot connect to %s port %s: %s", peer->address, peer->port,
	    strerror(error));
}

/* What the kernel saw of the connection. */
static void
read_tcp_info(int fd, struct tls_seen *seen)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return;
	seen->segments_in = info.tcpi_data_segs_in;
	seen->segments_out = info.tcpi_data_segs_out;
	seen->rtt_us = info.tcpi_min_rtt;
	seen->mss =
	    info.tcpi_rcv_mss > info.tcpi_advmss ? info.tcpi_advmss : info.tcpi_rcv_mss;
}

static void
send_failed(struct tls_seen *seen, int error)
{
	if (error == ETIMEDOUT)
		seen->timed_out = true;
	else
		seen->reset = true;
}

static bool
send_all(
    int fd, const uint8_t *data, size_t len, uint64_t until_ns, struct tls_seen *seen)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			if (wait_for(fd, POLLOUT, until_ns))
				continue;
			errno = ETIMEDOUT;
		}
		if (n < 0) {
			send_failed(seen, errno);
			return false;
		}
		data += n;
		len -= (size_t)n;
		seen->sent_bytes += (size_t)n;
	}
	return true;
}

/*
 * The first part, a pause, the rest. In the pause an answer would be wrong and an end is
 * a finding: both show up as something to read.
 */
static bool
send_hello(int fd, const uint8_t *data, size_t len, size_t first, unsigned pause_ms,
    uint64_t until_ns, struct tls_seen *seen)
{
	uint64_t pause_end;

	if (first == 0 || first >= len)
		return send_all(fd, data, len, until_ns, seen);
	if (!send_all(fd, data, first, until_ns, seen))
		return false;
	pause_end = ctl_now_ns() + pause_ms * MS;
	if (pause_end > until_ns)
		pause_end = until_ns;
	if (wait_for(fd, POLLIN, pause_end))
		return true;
	return send_all(fd, data + first, len - first, until_ns, seen);
}

static void
note_arrival(struct tls_seen *seen, size_t bytes)
{
	struct tls_arrival *arrival;

	if (seen->n_arrivals < TLS_MAX_ARRIVALS)
		seen->n_arrivals++;
	arrival = &seen->arrivals[seen->n_arrivals - 1];
	arrival->time_ns = ctl_now_ns();
	arrival->bytes += bytes;
}

/*
 * Reads until the flight ended: by what the parser found, by a close, or in TLS 1.3, whose
 * end is encrypted, by silence, since a server that sent its Finished waits for ours.
 */
static void
receive(int fd, uint64_t until_ns, struct tls_seen *seen)
{
	struct tls_flight *flight = &seen->flight;
	uint64_t quiet_ns = 4 * seen->connect_ns;
	uint8_t buf[16384];

	if (quiet_ns < 200 * MS)
		quiet_ns = 200 * MS;
	while (!flight->done && !flight->alerted && !flight->not_tls &&
	       !flight->retry_seen_now) {
		uint64_t end = until_ns;
		ssize_t n;

		if (flight->hello && flight->sealed_bytes > 0 &&
		    ctl_now_ns() + quiet_ns < until_ns)
			end = ctl_now_ns() + quiet_ns;
		if (!wait_for(fd, POLLIN, end)) {
			seen->timed_out = !flight->hello;
			return;
		}
		n = recv(fd, buf, sizeof(buf), 0);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0) {
			seen->closed = n == 0;
			seen->reset = n < 0;
			return;
		}
		note_arrival(seen, (size_t)n);
		tls_flight_feed(flight, buf, (size_t)n);
	}
}

/* What a HelloRetryRequest asks for: one share of the group it names, and its cookie. */
static int
answer_retry(const struct ctl *ctl, struct tls_flight *flight, struct tls_offer *offer)
{
	flight->retry_seen_now = false;
	memcpy(offer->cookie, flight->cookie, flight->cookie_len);
	offer->cookie_len = flight->cookie_len;
	if (flight->group == 0) /* a cookie alone: the same shares again */
		return CTL_OK;
	offer->n_shares = 1;
	return tls_share_make(ctl, flight->group, &offer->shares[0]);
}

static int
exchange(const struct ctl *ctl, int fd, struct tls_offer *offer, size_t first_segment,
    unsigned pause_ms, uint64_t until_ns, struct tls_seen *seen)
{
	uint64_t sent_ns = ctl_now_ns();

	for (int round = 0; round < 2; round++) {
		uint8_t hello[TLS_MAX_HELLO];
		size_t len = tls_hello_build(offer, hello, sizeof(hello));
		int status;

		if (len == 0)
			return ctl_fail(
			    ctl, CTL_USAGE, "the ClientHello would be too long");
		if (!send_hello(
			fd, hello, len, first_segment, pause_ms, until_ns, seen))
			break;
		receive(fd, until_ns, seen);
		if (!seen->flight.retry_seen_now)
			break;
		if (round == 1) { /* RFC 8446 4.1.4 allows one */
			seen->flight.not_tls = true;
			break;
		}
		status = answer_retry(ctl, &seen->flight, offer);
		if (status)
			return status;
	}
	if (seen->n_arrivals > 0) {
		seen->answer_ns = seen->arrivals[0].time_ns - sent_ns;
		seen->flight_ns = seen->arrivals[seen->n_arrivals - 1].time_ns -
				  seen->arrivals[0].time_ns;
	}
	return CTL_OK;
}

int
tls_wire_run(const struct ctl *ctl, struct tls_peer *peer, struct tls_offer *offer,
    size_t first_segment, unsigned pause_ms, struct tls_seen *seen)
{
	uint64_t until_ns = ctl_now_ns() + ctl->timeout_ms * MS;
	int fd = -1, status;

	status = peer_connect(ctl, peer, until_ns, seen, &fd);
	if (status)
		return status;
	status = exchange(ctl, fd, offer, first_segment, pause_ms, until_ns, seen);
	read_tcp_info(fd, seen);
	close(fd);
	return status;
}
