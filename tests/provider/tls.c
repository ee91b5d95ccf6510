/* SPDX-License-Identifier: Apache-2.0 */
#include "tls.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#define RECORD_HEADER  5
#define CLIENT_HELLO   1
#define SERVER_HELLO   2
#define EXT_PSK        41
#define EXT_KEY_SHARE  51
#define TYPE_ALERT     21
#define TYPE_HANDSHAKE 22

/* RFC 9846 4.1.3: the random of a ServerHello that is a HelloRetryRequest. */
static const uint8_t retry_random[8] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11};

static EVP_PKEY *
certificate_new(const struct host *host, X509 **certp)
{
	EVP_PKEY *pkey = EVP_PKEY_Q_keygen(host->libctx, NULL, "EC", "P-256");
	X509 *cert = X509_new_ex(host->libctx, NULL);
	X509_NAME *name = X509_get_subject_name(cert);

	must(X509_set_version(cert, X509_VERSION_3));
	must(ASN1_INTEGER_set(X509_get_serialNumber(cert), 1));
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	must(X509_NAME_add_entry_by_txt(
	    name, "CN", MBSTRING_ASC, (const uint8_t *)"localhost", -1, -1, 0));
	must(X509_set_issuer_name(cert, name));
	must(X509_set_pubkey(cert, pkey));
	ck_assert_int_gt(X509_sign(cert, pkey, NULL), 0);
	*certp = cert;
	return pkey;
}

static SSL_CTX *
context_new(const struct host *host, const SSL_METHOD *method, const char *groups)
{
	SSL_CTX *ctx = SSL_CTX_new_ex(host->libctx, NULL, method);

	if (ctx == NULL || SSL_CTX_set1_groups_list(ctx, groups) != 1)
		host_fail(groups, __LINE__);
	return ctx;
}

void
tls_open(struct tls *tls, const struct host *client, const char *client_groups,
    const struct host *server, const char *server_groups)
{
	EVP_PKEY *pkey;
	X509 *cert;

	*tls = (struct tls){.client_host = client, .server_host = server};
	tls->client_ctx = context_new(client, TLS_client_method(), client_groups);
	tls->server_ctx = context_new(server, TLS_server_method(), server_groups);
	pkey = certificate_new(server, &cert);
	must(SSL_CTX_use_certificate(tls->server_ctx, cert));
	must(SSL_CTX_use_PrivateKey(tls->server_ctx, pkey));
	X509_free(cert);
	EVP_PKEY_free(pkey);
}

void
tls_close(struct tls *tls)
{
	SSL_free(tls->client);
	SSL_free(tls->server);
	SSL_SESSION_free(tls->session);
	SSL_CTX_free(tls->client_ctx);
	SSL_CTX_free(tls->server_ctx);
}

static unsigned
u16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static void
put16(uint8_t *p, size_t n)
{
	p[0] = (uint8_t)(n >> 8);
	p[1] = (uint8_t)n;
}

static void
put24(uint8_t *p, size_t n)
{
	p[0] = (uint8_t)(n >> 16);
	put16(p + 1, n);
}

/* The extension's header in the hello, or NULL. *blockp: the length in front of all. */
static uint8_t *
extension_find(uint8_t *hello, unsigned type, uint8_t **blockp)
{
	uint8_t *p = hello + 4 + 2 + 32, *end;

	p += 1 + p[0]; /* session id */
	if (hello[0] == CLIENT_HELLO) {
		p += 2 + u16(p); /* cipher suites */
		p += 1 + p[0];   /* compression methods */
	} else {
		p += 2 + 1;
	}
	*blockp = p;
	end = p + 2 + u16(p);
	for (p += 2; p < end; p += 4 + u16(p + 2))
		if (u16(p) == type)
			return p;
	return NULL;
}

/*
 * Lets a share be changed and puts all lengths around it right again: entry, list (of a
 * ClientHello), extension, extensions, message, record.
 */
static size_t
share_change(uint8_t *record, size_t len, tamper_share *tamper, int how)
{
	uint8_t *hello = record + RECORD_HEADER, *block, *entry, *ext, *share;
	size_t old_len, new_len, list = hello[0] == CLIENT_HELLO ? 2 : 0;
	uint8_t rest[HELLO_MAX];
	size_t n_rest;

	ext = extension_find(hello, EXT_KEY_SHARE, &block);
	if (ext == NULL || u16(ext + 2) <= 2)
		return len; /* a HelloRetryRequest names a group and has no share */
	entry = ext + 4 + list;
	share = entry + 4;
	old_len = u16(entry + 2);
	n_rest = len - (size_t)(share + old_len - record);
	memcpy(rest, share + old_len, n_rest);
	new_len = tamper(share, old_len, how);
	memcpy(share + new_len, rest, n_rest);
	len = len - old_len + new_len;
	put16(entry + 2, new_len);
	if (list != 0)
		put16(ext + 4, u16(ext + 4) - old_len + new_len);
	put16(ext + 2, u16(ext + 2) - old_len + new_len);
	put16(block, u16(block) - old_len + new_len);
	put24(hello + 1, len - RECORD_HEADER - 4);
	put16(record + 3, len - RECORD_HEADER);
	return len;
}

static void
hello_note(struct wire *wire, uint8_t *hello)
{
	uint8_t *block, *ext = extension_find(hello, EXT_KEY_SHARE, &block);

	if (hello[0] == CLIENT_HELLO) {
		wire->n_client_hellos++;
		wire->share_len = ext != NULL ? u16(ext + 8) : 0;
	} else if (memcmp(hello + 6, retry_random, sizeof(retry_random)) == 0) {
		wire->retry_group = ext != NULL ? u16(ext + 4) : 0;
	} else {
		wire->group = ext != NULL ? u16(ext + 4) : 0;
		wire->psk = extension_find(hello, EXT_PSK, &block) != NULL;
	}
}

/* One whole record on its way: noted, perhaps changed. Returns its new length. */
static size_t
record_pass(struct tls *tls, uint8_t *record, size_t len, bool from_client)
{
	uint8_t *hello = record + RECORD_HEADER;
	tamper_share *tamper = from_client ? tls->tamper_client : tls->tamper_server;

	if (record[0] == TYPE_ALERT && len == RECORD_HEADER + 2)
		*(from_client ? &tls->wire.alert_by_client
			      : &tls->wire.alert_by_server) = record[6];
	if (record[0] != TYPE_HANDSHAKE ||
	    hello[0] != (from_client ? CLIENT_HELLO : SERVER_HELLO))
		return len;
	hello_note(&tls->wire, hello);
	return tamper != NULL ? share_change(record, len, tamper, tls->how) : len;
}

/* Moves what one side has written; returns whether there was anything. */
static bool
carry(struct tls *tls, SSL *from, SSL *to)
{
	static uint8_t record[RECORD_HEADER + 3 * HELLO_MAX];
	size_t len, piece;
	bool any = false;

	while (BIO_read(SSL_get_wbio(from), record, RECORD_HEADER) == RECORD_HEADER) {
		len = u16(record + 3);
		ck_assert_uint_le(len, HELLO_MAX + 256);
		ck_assert_int_eq(
		    BIO_read(SSL_get_wbio(from), record + RECORD_HEADER, (int)len),
		    (int)len);
		len =
		    record_pass(tls, record, len + RECORD_HEADER, from == tls->client);
		piece = tls->piece != 0 ? tls->piece : len;
		for (size_t at = 0; at < len; at += piece) {
			size_t n = len - at < piece ? len - at : piece;

			ck_assert_int_eq(
			    BIO_write(SSL_get_rbio(to), record + at, (int)n), (int)n);
			if (n < len)
				SSL_do_handshake(to);
		}
		any = true;
	}
	return any;
}

static bool
shake_hands(struct tls *tls)
{
	bool moved = true;
	int c = 0, s = 0;

	while (moved) {
		c = SSL_do_handshake(tls->client);
		moved = carry(tls, tls->client, tls->server);
		s = SSL_do_handshake(tls->server);
		moved |= carry(tls, tls->server, tls->client);
	}
	return c == 1 && s == 1;
}

static bool
say(struct tls *tls, SSL *from, SSL *to, const char *text)
{
	char got[64] = "";

	if (SSL_write(from, text, (int)strlen(text)) != (int)strlen(text))
		return false;
	carry(tls, from, to);
	return SSL_read(to, got, sizeof(got) - 1) > 0 && strcmp(got, text) == 0;
}

static SSL *
side_new(SSL **sidep, SSL_CTX *ctx)
{
	SSL_free(*sidep);
	*sidep = SSL_new(ctx);
	ck_assert_ptr_nonnull(*sidep);
	SSL_set_bio(*sidep, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	return *sidep;
}

bool
tls_connect(struct tls *tls)
{
	SSL_SESSION *session;

	tls->wire = (struct wire){.alert_by_client = -1, .alert_by_server = -1};
	SSL_set_connect_state(side_new(&tls->client, tls->client_ctx));
	SSL_set_accept_state(side_new(&tls->server, tls->server_ctx));
	if (tls->session != NULL)
		must(SSL_set_session(tls->client, tls->session));
	if (!shake_hands(tls) || !say(tls, tls->client, tls->server, "question") ||
	    !say(tls, tls->server, tls->client, "answer"))
		return false;
	/* The ticket came with the answer. */
	session = SSL_get1_session(tls->client);
	if (session != NULL && SSL_SESSION_is_resumable(session)) {
		SSL_SESSION_free(tls->session);
		tls->session = session;
	} else {
		SSL_SESSION_free(session);
	}
	SSL_shutdown(tls->client);
	return true;
}
