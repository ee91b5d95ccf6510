/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_tls_hello.c: a ClientHello as a browser would send it (RFC 8446 4.1.2, appendix
 * D.4: with a session id), which a server of TLS 1.2 can answer too.
 */
#include <string.h>

#include "cmd_tls.h"

/* Bytes that grow at the end; what does not fit is remembered, not written. */
struct writer {
	uint8_t *bytes;
	size_t len, size;
	bool full;
};

static void
put(struct writer *w, const void *data, size_t len)
{
	if (len == 0)
		return;
	if (w->full || w->size - w->len < len) {
		w->full = true;
		return;
	}
	memcpy(w->bytes + w->len, data, len);
	w->len += len;
}

static void
put_number(struct writer *w, size_t n_bytes, size_t value)
{
	while (n_bytes-- > 0) {
		uint8_t byte = (uint8_t)(value >> (8 * n_bytes));

		put(w, &byte, 1);
	}
}

/* Leaves room for a length of so many bytes; close_length() fills it in. */
static size_t
open_length(struct writer *w, size_t n_bytes)
{
	put_number(w, n_bytes, 0);
	return w->len;
}

static void
close_length(struct writer *w, size_t start, size_t n_bytes)
{
	size_t len = w->len - start;

	for (size_t i = 0; i < n_bytes && !w->full; i++)
		w->bytes[start - 1 - i] = (uint8_t)(len >> (8 * i));
}

static size_t
open_extension(struct writer *w, uint16_t type)
{
	put_number(w, 2, type);
	return open_length(w, 2);
}

/* A whole extension that never changes. */
static void
put_extension(struct writer *w, uint16_t type, const void *body, size_t len)
{
	put_number(w, 2, type);
	put_number(w, 2, len);
	put(w, body, len);
}

static void
put_servername(struct writer *w, const char *name)
{
	size_t extension = open_extension(w, 0), list = open_length(w, 2);

	put_number(w, 1, 0); /* host_name */
	put_number(w, 2, strlen(name));
	put(w, name, strlen(name));
	close_length(w, list, 2);
	close_length(w, extension, 2);
}

static void
put_groups(struct writer *w, const struct tls_offer *offer)
{
	size_t extension = open_extension(w, 10), list = open_length(w, 2);

	for (size_t i = 0; i < offer->n_groups; i++)
		put_number(w, 2, offer->groups[i]);
	close_length(w, list, 2);
	close_length(w, extension, 2);
}

static void
put_shares(struct writer *w, const struct tls_offer *offer)
{
	size_t extension = open_extension(w, 51), list = open_length(w, 2);

	for (size_t i = 0; i < offer->n_shares; i++) {
		put_number(w, 2, offer->shares[i].group);
		put_number(w, 2, offer->shares[i].len);
		put(w, offer->shares[i].bytes, offer->shares[i].len);
	}
	close_length(w, list, 2);
	close_length(w, extension, 2);
}

static void
put_cookie(struct writer *w, const struct tls_offer *offer)
{
	size_t extension = open_extension(w, 44);

	put_number(w, 2, offer->cookie_len);
	put(w, offer->cookie, offer->cookie_len);
	close_length(w, extension, 2);
}

static void
put_extensions(struct writer *w, const struct tls_offer *offer)
{
	static const uint8_t formats[] = {1, 0};
	/* ECDSA, Ed25519, RSA-PSS and RSA PKCS #1 with SHA-256, -384 and -512 */
	static const uint8_t signatures[] = {0, 24, 4, 3, 5, 3, 6, 3, 8, 7, 8, 4, 8, 5,
	    8, 6, 8, 9, 8, 10, 4, 1, 5, 1, 6, 1};
	static const uint8_t versions[] = {4, 3, 4, 3, 3};
	static const uint8_t psk_modes[] = {1, 1};
	static const uint8_t renegotiation[] = {0};

	if (offer->servername)
		put_servername(w, offer->servername);
	put_extension(w, 23, NULL, 0); /* extended_master_secret */
	put_extension(w, 0xff01, renegotiation, sizeof(renegotiation));
	put_groups(w, offer);
	put_extension(w, 11, formats, sizeof(formats));
	put_extension(w, 13, signatures, sizeof(signatures));
	put_extension(w, 43, versions, sizeof(versions));
	put_extension(w, 45, psk_modes, sizeof(psk_modes));
	if (offer->cookie_len > 0)
		put_cookie(w, offer);
	put_shares(w, offer);
}

size_t
tls_hello_build(const struct tls_offer *offer, uint8_t *out, size_t size)
{
	/* TLS 1.3's three; then ECDHE with AES-GCM and ChaCha20 for TLS 1.2 */
	static const uint8_t suites[] = {0x13, 0x01, 0x13, 0x02, 0x13, 0x03, 0xc0, 0x2b,
	    0xc0, 0x2f, 0xc0, 0x2c, 0xc0, 0x30, 0xcc, 0xa9, 0xcc, 0xa8};
	static const uint8_t compression[] = {1, 0};
	struct writer w = {.bytes = out, .size = size};
	size_t record, message, extensions;

	put_number(&w, 1, 22); /* handshake, with the version of the first record */
	put_number(&w, 2, 0x0301);
	record = open_length(&w, 2);
	put_number(&w, 1, 1); /* ClientHello */
	message = open_length(&w, 3);
	put_number(&w, 2, TLS_1_2);
	put(&w, offer->random, sizeof(offer->random));
	put_number(&w, 1, sizeof(offer->session));
	put(&w, offer->session, sizeof(offer->session));
	put_number(&w, 2, sizeof(suites));
	put(&w, suites, sizeof(suites));
	put(&w, compression, sizeof(compression));
	extensions = open_length(&w, 2);
	put_extensions(&w, offer);
	close_length(&w, extensions, 2);
	close_length(&w, message, 3);
	close_length(&w, record, 2);
	return w.full ? 0 : w.len;
}
