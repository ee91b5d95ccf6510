/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_tls.c: mlkemctl tls HOST:PORT: what a TLS server does with a post-quantum
 * ClientHello, read off the wire. Two connections: one as it should be, and one whose
 * ClientHello comes in two segments, which some servers and middleboxes drop.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_tls.h"
#include "json.h"

#define DEFAULT_GROUPS "X25519MLKEM768:X25519:P-256:P-384"
#define SPLIT_PAUSE_MS 300

/* 1 to 65535, or 0 if it is no port. */
static unsigned
parse_port(const char *text)
{
	size_t len = strlen(text);
	unsigned long port;

	if (len < 1 || len > 5 || strspn(text, "0123456789") != len)
		return 0;
	port = strtoul(text, NULL, 10);
	return port <= 65535 ? (unsigned)port : 0;
}

/* host:port, [v6]:port or host alone, which means 443. */
static int
parse_peer(const struct ctl *ctl, const char *text, struct tls_peer *peer)
{
	const char *host = text, *end = strrchr(text, ':'), *port = "443";
	size_t len;

	if (*text == '[') {
		host = text + 1;
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return ctl_fail(
			    ctl, CTL_USAGE, "an IPv6 address is written [::1]:443");
		if (end[1])
			port = end + 2;
	} else if (end) {
		port = end + 1;
	}
	len = end ? (size_t)(end - host) : strlen(host);
	if (len == 0 || len >= sizeof(peer->host) || parse_port(port) == 0)
		return ctl_fail(ctl, CTL_USAGE,
		    "the peer is written HOST:PORT, as in example.org:443");
	memcpy(peer->host, host, len);
	peer->host[len] = '\0';
	snprintf(peer->port, sizeof(peer->port), "%s", port);
	return CTL_OK;
}

static bool
is_address(const char *host)
{
	struct in6_addr address;

	return inet_pton(AF_INET, host, &address) == 1 ||
	       inet_pton(AF_INET6, host, &address) == 1;
}

/* The server's name is sent as it is given; an address is none (RFC 6066 3). */
static const char *
name_to_send(const struct ctl *ctl, const struct tls_peer *peer)
{
	if (ctl->servername)
		return *ctl->servername ? ctl->servername : NULL;
	return is_address(peer->host) ? NULL : peer->host;
}

/* Shares as browsers send them: of the first group, and of X25519 if that is another. */
static int
make_offer(const struct ctl *ctl, const struct tls_peer *peer, struct tls_offer *offer)
{
	int status;

	offer->servername = name_to_send(ctl, peer);
	if (offer->servername && strlen(offer->servername) > 255)
		return ctl_fail(ctl, CTL_USAGE, "--servername is too long");
	status = tls_groups_parse(ctl, ctl->groups ? ctl->groups : DEFAULT_GROUPS,
	    offer->groups, &offer->n_groups);
	if (!status)
		status = tls_share_make(ctl, offer->groups[0], &offer->shares[0]);
	offer->n_shares = 1;
	for (size_t i = 1; i < offer->n_groups && !status && offer->n_shares < 2; i++) {
		if (offer->groups[i] == 0x001d)
			status = tls_share_make(
			    ctl, 0x001d, &offer->shares[offer->n_shares++]);
	}
	if (!status && (RAND_bytes(offer->random, sizeof(offer->random)) != 1 ||
			   RAND_bytes(offer->session, sizeof(offer->session)) != 1))
		status = ctl_fail(ctl, CTL_FAILED, "libcrypto has no randomness");
	return status;
}

static const char *
version_name(uint16_t version)
{
	switch (version) {
	case TLS_1_3:
		return "TLS 1.3";
	case TLS_1_2:
		return "TLS 1.2";
	case 0x0302:
		return "TLS 1.1";
	case 0x0301:
		return "TLS 1.0";
	default:
		return "an unknown version";
	}
}

/* What a peer that is no TLS server said, as far as it is text. */
static void
printable(const struct tls_flight *flight, char text[6])
{
	for (size_t i = 0; i < 5; i++) {
		uint8_t byte = flight->head[i];

		text[i] = i < flight->head_len && isprint(byte) ? (char)byte : '.';
	}
	text[5] = '\0';
}

/* Whether the first connection showed a server's choice; says why not. */
static int
check_seen(const struct ctl *ctl, const struct tls_seen *seen)
{
	const struct tls_flight *flight = &seen->flight;
	char text[6];

	if (flight->not_tls) {
		printable(flight, text);
		return ctl_fail(ctl, CTL_FAILED,
		    "the peer does not speak TLS: its answer begins \"%s\"", text);
	}
	if (flight->alerted)
		return ctl_fail(ctl, CTL_REFUSED,
		    "the peer refused with the alert %s (%u)%s",
		    tls_alert_name(flight->alert), flight->alert,
		    flight->alert == 40 ? ": it shares no group or cipher suite" : "");
	if (flight->hello)
		return CTL_OK;
	if (seen->timed_out)
		return ctl_fail(ctl, CTL_BUSY, "no answer within %u ms (--timeout-ms)",
		    ctl->timeout_ms);
	return ctl_fail(ctl, CTL_FAILED, "the peer %s the connection without an answer",
	    seen->reset ? "reset" : "closed");
}

enum split_verdict {
	SPLIT_SKIPPED,
	SPLIT_TAKEN,
	SPLIT_REFUSED,
	SPLIT_SILENT,
};

static const char *const split_names[] = {
    [SPLIT_SKIPPED] = "not tried",
    [SPLIT_TAKEN] = "taken",
    [SPLIT_REFUSED] = "refused",
    [SPLIT_SILENT] = "no answer",
};

static int
try_split(const struct ctl *ctl, struct tls_peer *peer, struct tls_offer *offer,
    size_t first_segment, enum split_verdict *verdictp)
{
	struct tls_seen *seen = calloc(1, sizeof(*seen));
	int status;

	if (!seen)
		return ctl_fail(ctl, CTL_FAILED, "out of memory");
	status = tls_wire_run(ctl, peer, offer, first_segment, SPLIT_PAUSE_MS, seen);
	if (seen->flight.hello)
		*verdictp = SPLIT_TAKEN;
	else
		*verdictp = seen->timed_out ? SPLIT_SILENT : SPLIT_REFUSED;
	free(seen);
	return status;
}

struct report {
	const struct tls_peer *peer;
	const struct tls_seen *seen;
	const struct tls_group *group;
	bool post_quantum;
	unsigned round_trips;
	enum split_verdict split;
	size_t split_at;
};

static void
show_json(const struct report *report)
{
	const struct tls_seen *seen = report->seen;
	const struct tls_flight *flight = &seen->flight;
	struct json json;

	json_begin(&json, stdout);
	json_flag(&json, "ok", true);
	json_string(&json, "host", report->peer->host);
	json_number(&json, "port", parse_port(report->peer->port));
	json_string(&json, "address", report->peer->address);
	json_string(&json, "version", version_name(flight->version));
	json_string(&json, "group", report->group ? report->group->name : "");
	json_number(&json, "code_point", flight->group);
	json_number(&json, "cipher_suite", flight->cipher);
	json_flag(&json, "post_quantum", report->post_quantum);
	json_flag(&json, "hello_retry", flight->retry);
	json_number(&json, "client_hello_bytes", seen->sent_bytes);
	json_number(&json, "client_hello_segments", seen->segments_out);
	json_number(&json, "server_bytes", flight->bytes);
	json_number(&json, "server_hello_bytes", flight->hello_bytes);
	json_number(&json, "server_encrypted_bytes", flight->sealed_bytes);
	json_number(&json, "server_share_bytes", flight->share_len);
	json_number(&json, "server_records", flight->n_records);
	json_number(&json, "server_segments", seen->segments_in);
	json_number(&json, "mss", seen->mss);
	json_number(&json, "round_trips", report->round_trips);
	json_number(&json, "rtt_us", seen->rtt_us);
	json_number(&json, "connect_us", seen->connect_ns / 1000);
	json_number(&json, "answer_us", seen->answer_ns / 1000);
	json_string(&json, "two_segments", split_names[report->split]);
	json_number(&json, "split_at", report->split_at);
	json_end(&json);
}

static void
show_text(const struct report *report)
{
	const struct tls_seen *seen = report->seen;
	const struct tls_flight *flight = &seen->flight;

	printf("peer:            %s port %s (%s), %s\n", report->peer->host,
	    report->peer->port, report->peer->address, version_name(flight->version));
	if (flight->group == 0)
		printf(
		    "group:           none named (RSA or finite-field key exchange, or "
		    "a resumption)\n");
	else
		printf("group:           %s (0x%04x)%s\n",
		    report->group ? report->group->name : "unknown", flight->group,
		    report->post_quantum ? ", post-quantum" : ", not post-quantum");
	if (flight->version < TLS_1_3)
		printf("                 ML-KEM needs TLS 1.3, which this server does "
		       "not offer\n");
	printf("hello retry:     %s\n",
	    flight->retry ? "yes: a round trip more, and a second ClientHello" : "no");
	printf("client hello:    %zu bytes in %u segment%s\n", seen->sent_bytes,
	    seen->segments_out, seen->segments_out == 1 ? "" : "s");
	printf(
	    "server's flight: %zu bytes in %u segment%s, %zu records; ServerHello %zu, "
	    "encrypted %zu\n",
	    flight->bytes, seen->segments_in, seen->segments_in == 1 ? "" : "s",
	    flight->n_records, flight->hello_bytes, flight->sealed_bytes);
	printf(
	    "round trips:     %u until its end (TCP %.3f ms, first answer after %.3f "
	    "ms)\n",
	    report->round_trips, seen->rtt_us / 1e3, (double)seen->answer_ns / 1e6);
	if (report->split == SPLIT_SKIPPED)
		printf("two segments:    not tried\n");
	else
		printf("two segments:    %s (%zu bytes, %d ms, the rest)\n",
		    split_names[report->split], report->split_at, SPLIT_PAUSE_MS);
}

static int
finish(const struct ctl *ctl, struct report *report)
{
	const struct tls_seen *seen = report->seen;
	const struct tls_flight *flight = &seen->flight;

	report->group = tls_group_find(flight->group);
	report->post_quantum =
	    flight->version == TLS_1_3 && report->group && report->group->post_quantum;
	report->round_trips = 1 + flight->retry +
			      tls_flight_stalls(seen->arrivals, seen->n_arrivals,
				  seen->rtt_us * 1000ull, seen->mss);
	if (report->group && report->group->server_share > 0 &&
	    flight->version == TLS_1_3 &&
	    flight->share_len != report->group->server_share)
		return ctl_fail(ctl, CTL_FAILED,
		    "the server's share of %s has %zu bytes where %zu belong",
		    report->group->name, flight->share_len,
		    report->group->server_share);
	if (ctl->json)
		show_json(report);
	else
		show_text(report);
	if (ctl->require && !report->post_quantum) {
		ctl_note("tls: no post-quantum group, which --require asks for");
		return CTL_REFUSED;
	}
	return CTL_OK;
}

int
ctl_tls(struct ctl *ctl)
{
	struct tls_peer peer = {0};
	struct tls_offer *offer = calloc(2, sizeof(*offer));
	struct tls_seen *seen = calloc(1, sizeof(*seen));
	struct report report = {
	    .peer = &peer, .seen = seen, .split_at = ctl->split_bytes};
	int status;

	if (!offer || !seen) {
		status = ctl_fail(ctl, CTL_FAILED, "out of memory");
		goto out;
	}
	status = ctl->peer ? parse_peer(ctl, ctl->peer, &peer)
			   : ctl_fail(ctl, CTL_USAGE,
				 "which server? As in: mlkemctl tls example.org:443");
	if (!status)
		status = make_offer(ctl, &peer, &offer[0]);
	if (status)
		goto out;
	/* A HelloRetryRequest changes the offer; the second connection starts afresh. */
	offer[1] = offer[0];
	status = tls_wire_run(ctl, &peer, &offer[0], 0, 0, seen);
	if (!status)
		status = check_seen(ctl, seen);
	if (!status && ctl->split_bytes > 0)
		status =
		    try_split(ctl, &peer, &offer[1], ctl->split_bytes, &report.split);
	if (!status)
		status = finish(ctl, &report);
out:
	free(seen);
	free(offer);
	return status;
}
