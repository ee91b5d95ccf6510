/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 by libssl, both sides behind the provider: groups as they stand on the wire,
 * HelloRetryRequest, resumption, hellos in pieces, and shares that are wrong.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "tests/client-lib/rig.h"
#include "tls.h"

#define HYBRID            0x11ec
#define X25519            29
#define ILLEGAL_PARAMETER 47
#define DECODE_ERROR      50
#define INTERNAL_ERROR    80
#define NOWHERE           "/nonexistent/mlkemd.sock"

static struct host host;
static struct daemon daemon;
static struct tls tls;

static void
open_local(const char *client_groups, const char *server_groups)
{
	host_open(&host, settings(NOWHERE, "local", NULL));
	tls_open(&tls, &host, client_groups, &host, server_groups);
}

static void
close_local(void)
{
	tls_close(&tls);
	host_close(&host);
}

/* No row without its operations: key generation, encapsulation, decapsulation. */
START_TEST(groups)
{
	static const char *const routes[] = {"daemon", "auto", "local"};
	const char *route = routes[_i / N_ALGS];
	const struct alg *alg = &algs[_i % N_ALGS];
	uint64_t done;

	daemon_start(&daemon, NULL);
	host_open(&host, settings(daemon.path, route, "deadline = 10s\n"));
	tls_open(&tls, &host, alg->group, &host, alg->group);
	for (uint64_t n = 1; n <= 5; n++) {
		SSL_SESSION_free(tls.session);
		tls.session = NULL;
		if (!tls_connect(&tls))
			host_fail("handshake", __LINE__);
		ck_assert_uint_eq(tls.wire.group, (unsigned)alg->id);
		ck_assert_uint_eq(tls.wire.share_len, alg->share);
		ck_assert_uint_eq(tls.wire.retry_group, 0);
		done = host_count(&host, "by-daemon") + host_count(&host, "by-local");
		ck_assert_uint_eq(done, 3 * n);
		ck_assert_str_eq(SSL_get_version(tls.client), "TLSv1.3");
	}
	if (strcmp(route, "daemon") == 0)
		ck_assert_uint_eq(host_count(&host, "by-local"), 0);
	if (strcmp(route, "local") == 0)
		ck_assert_uint_eq(host_count(&host, "by-daemon"), 0);
	tls_close(&tls);
	host_close(&host);
	daemon_stop(&daemon);
}
END_TEST

START_TEST(retry_to_hybrid)
{
	open_local("X25519:X25519MLKEM768", "X25519MLKEM768");
	ck_assert_msg(tls_connect(&tls), "%s", host_errors());
	ck_assert_uint_eq(tls.wire.retry_group, HYBRID);
	ck_assert_uint_eq(tls.wire.group, HYBRID);
	ck_assert_uint_eq(tls.wire.n_client_hellos, 2);
	ck_assert_uint_eq(host_count(&host, "by-local"), 3);
	close_local();
}
END_TEST

START_TEST(retry_to_classical)
{
	open_local("X25519MLKEM768:X25519", "X25519");
	ck_assert_msg(tls_connect(&tls), "%s", host_errors());
	ck_assert_uint_eq(tls.wire.retry_group, X25519);
	ck_assert_uint_eq(tls.wire.group, X25519);
	ck_assert_uint_eq(
	    host_count(&host, "by-local"), 1); /* the key it did not use */
	close_local();
}
END_TEST

/* psk_dhe_ke: the session is resumed, and the key exchange is a new one. */
START_TEST(resumption)
{
	open_local("X25519MLKEM768", "X25519MLKEM768");
	for (unsigned n = 0; n < 5; n++) {
		ck_assert_msg(tls_connect(&tls), "%s", host_errors());
		ck_assert_uint_eq(tls.wire.psk, n > 0);
		ck_assert_int_eq(SSL_session_reused(tls.client), n > 0);
		ck_assert_uint_eq(tls.wire.group, HYBRID);
		ck_assert_uint_eq(host_count(&host, "by-local"), 3 * (n + 1));
		ck_assert_ptr_nonnull(tls.session);
	}
	close_local();
}
END_TEST

START_TEST(hello_in_pieces)
{
	static const size_t pieces[] = {1, 7, 600, 1400};

	open_local("X25519MLKEM768:X25519", "X25519MLKEM768:X25519");
	tls.piece = pieces[_i];
	ck_assert_msg(tls_connect(&tls), "%s", host_errors());
	ck_assert_uint_eq(tls.wire.group, HYBRID);
	close_local();
}
END_TEST

/* Who knows only TLS 1.2 is served as ever: the group is of 1.3 alone. */
START_TEST(tls12)
{
	open_local("X25519MLKEM768:X25519:P-256", "X25519MLKEM768:X25519:P-256");
	must(SSL_CTX_set_max_proto_version(tls.client_ctx, TLS1_2_VERSION));
	if (!tls_connect(&tls))
		host_fail("TLS 1.2", __LINE__);
	ck_assert_str_eq(SSL_get_version(tls.client), "TLSv1.2");
	ck_assert_uint_eq(host_count(&host, "by-local"), 0);
	close_local();
}
END_TEST

/* Names as libssl takes them; what it does not know is refused. */
START_TEST(names)
{
	static const struct {
		const char *list;
		int taken; /* -1: OpenSSL 3.5 and 3.0 differ */
	} lists[] = {
	    {"X25519MLKEM768", 1},
	    {"X25519MLKEM768:X25519", 1},
	    {"MLKEM768:MLKEM1024:MLKEM512", 1},
	    {"x25519mlkem768", -1},
	    {"X25519Kyber768Draft00", 0},
	    {"X25519MLKEM769", 0},
	};
	SSL_CTX *ctx;

	host_open(&host, settings(NOWHERE, "local", NULL));
	ctx = SSL_CTX_new_ex(host.libctx, NULL, TLS_method());
	ck_assert_ptr_nonnull(ctx);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].taken >= 0)
			ck_assert_int_eq(SSL_CTX_set1_groups_list(ctx, lists[i].list),
			    lists[i].taken);
	ERR_clear_error();
	SSL_CTX_free(ctx);
	host_close(&host);
}
END_TEST

enum bad_share {
	BAD_EMPTY,
	BAD_32,
	BAD_1184,
	BAD_SHORT,
	BAD_LONG,
	BAD_COEFFICIENT,
	BAD_ALL_FF,
	BAD_ZERO_X25519,
	BAD_SWAPPED,
	N_BAD,
	GOOD = N_BAD,
};

static size_t
spoil(uint8_t *data, size_t len, int how)
{
	uint8_t x[32];

	switch ((enum bad_share)how) {
	case BAD_EMPTY:
		return 0;
	case BAD_32:
		return 32;
	case BAD_1184:
		return len - 32;
	case BAD_SHORT:
		return len - 1;
	case BAD_LONG:
		data[len] = 0;
		return len + 1;
	case BAD_COEFFICIENT:
		data[0] = 0x01;
		data[1] = (uint8_t)((data[1] & 0xf0) | 0x0d);
		return len;
	case BAD_ALL_FF:
		memset(data, 0xff, len);
		return len;
	case BAD_ZERO_X25519:
		memset(data + len - 32, 0, 32);
		return len;
	case BAD_SWAPPED:
		memcpy(x, data + len - 32, 32);
		memmove(data + 32, data, len - 32);
		memcpy(data, x, 32);
		return len;
	case GOOD:
		break;
	}
	return len;
}

/*
 * RFC 10024 4.2: each is answered by illegal_parameter, and the server lives on. An
 * empty one is no share at all (RFC 9846 4.3.8): libssl refuses it by itself.
 */
static int
alert_for(int how)
{
	return how == BAD_EMPTY ? DECODE_ERROR : ILLEGAL_PARAMETER;
}

START_TEST(bad_client_share)
{
	static const char *const routes[] = {"daemon", "local"};

	daemon_start(&daemon, NULL);
	host_open(&host, settings(daemon.path, routes[_i], "deadline = 10s\n"));
	tls_open(&tls, &host, "X25519MLKEM768", &host, "X25519MLKEM768");
	tls.tamper_client = spoil;
	for (tls.how = 0; tls.how < N_BAD; tls.how++) {
		ck_assert_msg(!tls_connect(&tls), "share %d was taken", tls.how);
		ck_assert_msg(tls.wire.alert_by_server == alert_for(tls.how),
		    "share %d: alert %d: %s", tls.how, tls.wire.alert_by_server,
		    host_errors());
		ck_assert_uint_eq(tls.wire.group, 0);
	}
	/* Control: the same way with the share as it is. */
	tls.how = GOOD;
	ck_assert_msg(tls_connect(&tls), "%s", host_errors());
	tls_close(&tls);
	host_close(&host);
	daemon_stop(&daemon);
}
END_TEST

/*
 * The client's libssl has one alert for whatever its KEM refuses; a ciphertext that is
 * only wrong is not refused but makes other keys (implicit rejection).
 */
START_TEST(bad_server_share)
{
	static const char *const routes[] = {"daemon", "local"};

	daemon_start(&daemon, NULL);
	host_open(&host, settings(daemon.path, routes[_i], "deadline = 10s\n"));
	tls_open(&tls, &host, "X25519MLKEM768", &host, "X25519MLKEM768");
	tls.tamper_server = spoil;
	for (tls.how = 0; tls.how < N_BAD; tls.how++) {
		ck_assert_msg(!tls_connect(&tls), "share %d was taken", tls.how);
		if (tls.how < BAD_COEFFICIENT || tls.how == BAD_ZERO_X25519)
			ck_assert_msg(tls.wire.alert_by_client == alert_for(tls.how) ||
					  tls.wire.alert_by_client == INTERNAL_ERROR,
			    "share %d: alert %d", tls.how, tls.wire.alert_by_client);
		ERR_clear_error();
	}
	tls.how = GOOD;
	ck_assert_msg(tls_connect(&tls), "%s", host_errors());
	tls_close(&tls);
	host_close(&host);
	daemon_stop(&daemon);
}
END_TEST

/* Nothing answers, and nothing else may: an alert, never X25519 instead. */
START_TEST(require)
{
	host_open(&host, settings(NOWHERE, "daemon", "require = yes\n"));
	tls_open(&tls, &host, "X25519MLKEM768:X25519", &host, "X25519MLKEM768:X25519");
	for (int i = 0; i < 3; i++) {
		ck_assert(!tls_connect(&tls));
		ck_assert_uint_eq(tls.wire.group, 0);
	}
	ERR_clear_error();
	ck_assert_ptr_null(pkey_try_generate(&host, &algs[ALG_X25519MLKEM768], true));
	ck_assert_ptr_nonnull(strstr(host_errors(), NOWHERE));
	ck_assert_uint_eq(host_count(&host, "by-local"), 0);
	tls_close(&tls);
	host_close(&host);
}
END_TEST

/* The same on one side: the server is the one that can't. */
START_TEST(require_on_the_server)
{
	struct host server;

	host_open(&host, settings(NOWHERE, "local", NULL));
	host_open(&server, settings(NOWHERE, "daemon", "require = yes\n"));
	tls_open(
	    &tls, &host, "X25519MLKEM768:X25519", &server, "X25519MLKEM768:X25519");
	ck_assert(!tls_connect(&tls));
	ck_assert_uint_eq(tls.wire.group, 0);
	ck_assert_int_ge(tls.wire.alert_by_server, 0);
	ERR_clear_error();
	tls_close(&tls);
	host_close(&server);
	host_close(&host);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("provider in TLS");
	TCase *tcase = tcase_create("all");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, groups, 0, 3 * N_ALGS);
	tcase_add_test(tcase, retry_to_hybrid);
	tcase_add_test(tcase, retry_to_classical);
	tcase_add_test(tcase, resumption);
	tcase_add_loop_test(tcase, hello_in_pieces, 0, 4);
	tcase_add_test(tcase, tls12);
	tcase_add_test(tcase, names);
	tcase_add_loop_test(tcase, bad_client_share, 0, 2);
	tcase_add_loop_test(tcase, bad_server_share, 0, 2);
	tcase_add_test(tcase, require);
	tcase_add_test(tcase, require_on_the_server);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
