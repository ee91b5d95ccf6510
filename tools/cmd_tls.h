/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_tls.h: what `mlkemctl tls` is made of: the groups it knows and their shares, the
 * ClientHello it sends (RFC 8446 4.1.2), the parser of what comes back, and the
 * connection. No TLS implementation: nothing is decrypted and no handshake is finished.
 * The parser and the builder are pure functions on bytes.
 */
#ifndef MLKEMCTL_CMD_TLS_H
#define MLKEMCTL_CMD_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl.h"

#define TLS_MAX_GROUPS   16
#define TLS_MAX_COOKIE   1024
#define TLS_MAX_HELLO    8192 /* two hybrid shares, a cookie and a long name fit */
#define TLS_MAX_ARRIVALS 128
#define TLS_1_2          0x0303
#define TLS_1_3          0x0304

/* cmd_tls_groups.c */

struct tls_group {
	uint16_t id;             /* IANA TLS Supported Groups */
	const char *name;        /* as IANA writes it */
	const char *other;       /* another common spelling, or NULL */
	const char *key_type;    /* for libcrypto; NULL: by libmlkemclient, or not */
	bool post_quantum, made; /* whether a share can be made here */
	size_t server_share;     /* bytes in the ServerHello; 0: not known */
};

struct tls_share {
	uint16_t group;
	size_t len;
	uint8_t bytes[MLKEMCLIENT_MAX_SHARE];
};

/* NULL for a group that has no name here. */
const struct tls_group *tls_group_find(uint16_t id);

/*
 * "X25519MLKEM768:X25519:0x0017" as openssl writes it, case ignored. Returns CTL_OK, or
 * CTL_USAGE after saying which name is unknown.
 */
int tls_groups_parse(
    const struct ctl *ctl, const char *list, uint16_t *groups, size_t *n_groupsp);

/* A fresh public share; its private key is thrown away. Returns CTL_OK or a status. */
int tls_share_make(const struct ctl *ctl, uint16_t group, struct tls_share *share);

/* cmd_tls_hello.c */

struct tls_offer {
	const char *servername; /* NULL: the extension is left out */
	uint16_t groups[TLS_MAX_GROUPS];
	size_t n_groups;
	struct tls_share shares[2];
	size_t n_shares;
	uint8_t random[32], session[32];
	uint8_t cookie[TLS_MAX_COOKIE];
	size_t cookie_len;
};

/*
 * The ClientHello in its record: TLS 1.3 and 1.2, what browsers offer otherwise. Returns
 * its length, or 0 if it does not fit.
 */
size_t tls_hello_build(const struct tls_offer *offer, uint8_t *out, size_t size);

/* cmd_tls_flight.c */

/*
 * What the server sent, read as it comes: records (RFC 8446 5.1), and in them what is
 * not encrypted. Zero is the start.
 */
struct tls_flight {
	/* found */
	bool hello, retry;      /* a ServerHello; a HelloRetryRequest before it */
	bool done;              /* ServerHelloDone: TLS 1.2 alone shows an end */
	bool alerted, not_tls;  /* an alert in clear; something else than TLS */
	bool retry_seen_now;    /* a HelloRetryRequest waits to be answered */
	uint8_t alert;          /* its description */
	uint16_t version;       /* TLS_1_3, TLS_1_2 or older */
	uint16_t cipher, group; /* group 0: none was named */
	size_t share_len;
	uint8_t cookie[TLS_MAX_COOKIE];
	size_t cookie_len;
	/* counted */
	size_t bytes, hello_bytes, sealed_bytes, n_records;
	/* where it stands */
	uint8_t head[5]; /* of a record */
	size_t head_len, record_left;
	uint8_t message_head[4];
	size_t message_head_len, message_left, message_len;
	uint8_t message[2048 + TLS_MAX_COOKIE]; /* the start of it */
};

/* Takes the next bytes. What it finds stands in the members above. */
void tls_flight_feed(struct tls_flight *flight, const uint8_t *data, size_t len);

/* "handshake_failure", or "unknown". Static. */
const char *tls_alert_name(uint8_t alert);

struct tls_arrival {
	uint64_t time_ns;
	size_t bytes;
};

/*
 * How often the flight stood still for a round trip because the server's window was
 * full: a pause of nearly a round trip behind at least three segments. What is shorter
 * than half a millisecond is never taken for one.
 */
unsigned tls_flight_stalls(
    const struct tls_arrival *arrivals, size_t n_arrivals, uint64_t rtt_ns, size_t mss);

/* cmd_tls_wire.c */

struct tls_peer {
	char host[256], port[6];
	char address[64]; /* filled in by tls_peer_connect() */
};

/* What one connection showed. */
struct tls_seen {
	struct tls_flight flight;
	struct tls_arrival arrivals[TLS_MAX_ARRIVALS];
	size_t n_arrivals;
	size_t sent_bytes; /* all ClientHellos */
	uint64_t connect_ns, answer_ns, flight_ns;
	uint32_t segments_in, segments_out; /* those that carry data */
	uint32_t rtt_us, mss;
	bool closed, reset, timed_out; /* how it ended, if not by itself */
};

/*
 * Connects, sends the offer, answers a HelloRetryRequest and reads the flight to its
 * end. A first_segment that is not 0 sends so many bytes of the ClientHello alone,
 * pause_ms before the rest. Returns CTL_OK if a connection was made (seen tells what
 * came of it), or a status after saying why not.
 */
int tls_wire_run(const struct ctl *ctl, struct tls_peer *peer, struct tls_offer *offer,
    size_t first_segment, unsigned pause_ms, struct tls_seen *seen);

#endif
