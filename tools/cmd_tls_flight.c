/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_tls_flight.c: the server's flight, a byte at a time if need be. Three layers:
 * records (RFC 8446 5.1), handshake messages in the clear ones (4), and the three
 * messages that say something here: ServerHello, ServerKeyExchange, ServerHelloDone.
 */
#include <string.h>

#include "cmd_tls.h"

enum {
	RECORD_CCS = 20,
	RECORD_ALERT = 21,
	RECORD_HANDSHAKE = 22,
	RECORD_DATA = 23,
	MESSAGE_SERVER_HELLO = 2,
	MESSAGE_SERVER_KEY_EXCHANGE = 12,
	MESSAGE_SERVER_HELLO_DONE = 14,
	MAX_RECORD = 16384 + 256 + 1024, /* RFC 5246 6.2.3 allows the most */
};

/* A part of a message; what lies behind its end reads as zeros and sets bad. */
struct reader {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static size_t
get_number(struct reader *r, size_t n_bytes)
{
	size_t value = 0;

	if (r->left < n_bytes) {
		r->bad = true;
		r->left = 0;
		return 0;
	}
	for (size_t i = 0; i < n_bytes; i++)
		value = value << 8 | r->at[i];
	r->at += n_bytes;
	r->left -= n_bytes;
	return value;
}

/* The next n bytes as a reader of their own. */
static struct reader
get_part(struct reader *r, size_t n)
{
	struct reader part = {.at = r->at, .left = n};

	if (r->left < n) {
		r->bad = true;
		return (struct reader){.bad = true};
	}
	r->at += n;
	r->left -= n;
	return part;
}

static void
read_key_share(struct tls_flight *flight, struct reader body)
{
	flight->group = (uint16_t)get_number(&body, 2);
	/* A HelloRetryRequest names the group alone (RFC 8446 4.2.8). */
	flight->share_len = body.left > 0 ? get_number(&body, 2) : 0;
}

static void
read_cookie(struct tls_flight *flight, struct reader body)
{
	size_t len = get_number(&body, 2);

	if (len == 0 || len != body.left || len > sizeof(flight->cookie)) {
		flight->not_tls = true;
		return;
	}
	memcpy(flight->cookie, body.at, len);
	flight->cookie_len = len;
}

static void
read_extensions(struct tls_flight *flight, struct reader *r)
{
	struct reader list = get_part(r, get_number(r, 2));

	while (list.left > 0 && !list.bad) {
		size_t type = get_number(&list, 2);
		struct reader body = get_part(&list, get_number(&list, 2));

		if (type == 43)
			flight->version = (uint16_t)get_number(&body, 2);
		else if (type == 44)
			read_cookie(flight, body);
		else if (type == 51)
			read_key_share(flight, body);
		r->bad |= body.bad;
	}
	r->bad |= list.bad;
}

static void
read_server_hello(struct tls_flight *flight)
{
	/* SHA-256 of "HelloRetryRequest" (RFC 8446 4.1.3) */
	static const uint8_t retry[32] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61,
	    0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
	    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33,
	    0x9c};
	struct reader r = {.at = flight->message, .left = flight->message_len};
	bool is_retry;

	if (r.left > sizeof(flight->message))
		r.left = sizeof(flight->message);
	flight->group = 0;
	flight->share_len = 0;
	flight->version = (uint16_t)get_number(&r, 2);
	is_retry = r.left >= 32 && memcmp(r.at, retry, 32) == 0;
	get_part(&r, 32);
	get_part(&r, get_number(&r, 1));
	flight->cipher = (uint16_t)get_number(&r, 2);
	get_number(&r, 1);
	if (r.left > 0)
		read_extensions(flight, &r);
	if (r.bad) {
		flight->not_tls = true;
	} else if (is_retry) {
		flight->retry = flight->retry_seen_now = true;
	} else {
		flight->hello = true;
		flight->hello_bytes = 5 + 4 + flight->message_len;
	}
}

static void
message_ended(struct tls_flight *flight)
{
	switch (flight->message_head[0]) {
	case MESSAGE_SERVER_HELLO:
		read_server_hello(flight);
		break;
	case MESSAGE_SERVER_KEY_EXCHANGE: /* RFC 8422 5.4: named_curve, its number */
		if (flight->message_len >= 3 && flight->message[0] == 3)
			flight->group =
			    (uint16_t)(flight->message[1] << 8 | flight->message[2]);
		break;
	case MESSAGE_SERVER_HELLO_DONE:
		flight->done = true;
		break;
	default:
		break;
	}
	flight->message_head_len = 0;
}

/* Bytes of handshake records, wherever the records' borders lie. */
static void
feed_messages(struct tls_flight *flight, const uint8_t *data, size_t len)
{
	while (len > 0 && !flight->not_tls) {
		uint8_t *head = flight->message_head;
		size_t n, have;

		if (flight->message_head_len < sizeof(flight->message_head)) {
			head[flight->message_head_len++] = *data++;
			len--;
			if (flight->message_head_len < sizeof(flight->message_head))
				continue;
			flight->message_len = flight->message_left =
			    (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
		} else {
			n = len < flight->message_left ? len : flight->message_left;
			have = flight->message_len - flight->message_left;
			for (size_t i = 0; i < n && have + i < sizeof(flight->message);
			     i++)
				flight->message[have + i] = data[i];
			flight->message_left -= n;
			data += n;
			len -= n;
		}
		if (flight->message_left == 0)
			message_ended(flight);
	}
}

/* A part of one record's content. */
static void
feed_content(struct tls_flight *flight, const uint8_t *data, size_t len)
{
	/* Behind a ServerHello of TLS 1.3 all but a ChangeCipherSpec is encrypted. */
	if (flight->head[0] == RECORD_DATA) {
		flight->sealed_bytes += len;
	} else if (flight->head[0] == RECORD_HANDSHAKE) {
		feed_messages(flight, data, len);
	} else if (flight->head[0] == RECORD_ALERT && flight->record_left == len) {
		flight->alerted = true;
		flight->alert = data[len - 1];
	}
}

static bool
head_is_sane(const struct tls_flight *flight)
{
	return flight->head[0] >= RECORD_CCS && flight->head[0] <= RECORD_DATA &&
	       flight->head[1] == 3 && flight->record_left <= MAX_RECORD;
}

void
tls_flight_feed(struct tls_flight *flight, const uint8_t *data, size_t len)
{
	flight->bytes += len;
	while (len > 0 && !flight->not_tls) {
		size_t n;

		if (flight->head_len < sizeof(flight->head)) {
			flight->head[flight->head_len++] = *data++;
			len--;
			if (flight->head_len < sizeof(flight->head))
				continue;
			flight->record_left =
			    (size_t)flight->head[3] << 8 | flight->head[4];
			flight->n_records++;
			flight->not_tls = !head_is_sane(flight);
		} else {
			n = len < flight->record_left ? len : flight->record_left;
			feed_content(flight, data, n);
			flight->record_left -= n;
			data += n;
			len -= n;
		}
		if (flight->record_left == 0)
			flight->head_len = 0;
	}
}

unsigned
tls_flight_stalls(
    const struct tls_arrival *arrivals, size_t n_arrivals, uint64_t rtt_ns, size_t mss)
{
	uint64_t pause_ns = rtt_ns / 5 * 4;
	unsigned n = 0;
	size_t bytes = 0;

	if (pause_ns < 500000)
		pause_ns = 500000;
	for (size_t i = 1; i < n_arrivals; i++) {
		bytes += arrivals[i - 1].bytes;
		if (arrivals[i].time_ns - arrivals[i - 1].time_ns >= pause_ns &&
		    bytes >= 3 * mss)
			n++;
	}
	return n;
}

const char *
tls_alert_name(uint8_t alert)
{
	static const struct {
		uint8_t alert;
		const char *name;
	} names[] = {
	    {0, "close_notify"},
	    {10, "unexpected_message"},
	    {20, "bad_record_mac"},
	    {22, "record_overflow"},
	    {40, "handshake_failure"},
	    {42, "bad_certificate"},
	    {47, "illegal_parameter"},
	    {48, "unknown_ca"},
	    {50, "decode_error"},
	    {51, "decrypt_error"},
	    {70, "protocol_version"},
	    {71, "insufficient_security"},
	    {80, "internal_error"},
	    {86, "inappropriate_fallback"},
	    {109, "missing_extension"},
	    {110, "unsupported_extension"},
	    {112, "unrecognized_name"},
	    {116, "certificate_required"},
	    {120, "no_application_protocol"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].alert == alert)
			return names[i].name;
	}
	return "unknown";
}
