/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation by EVP's calls: with a daemon, without one, and by route local; and
 * operations of other kinds of keys, which our keys never reach.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "host.h"
#include "tests/client-lib/rig.h"

#define CANARY 0xa5

enum mode { WITH_DAEMON, AUTO_WITH_DAEMON, WITHOUT_DAEMON, LOCAL, N_MODES };

static struct daemon daemon;

static void
mode_open(struct host *host, enum mode mode)
{
	static const char *const routes[N_MODES] = {
	    "daemon", "auto", "daemon", "local"};
	bool has_daemon = mode == WITH_DAEMON || mode == AUTO_WITH_DAEMON;

	if (has_daemon)
		daemon_start(&daemon, NULL);
	/* A busy machine may take longer than the 2 ms of the default. */
	host_open(host, settings(has_daemon ? daemon.path : "/nonexistent/mlkemd.sock",
			    routes[mode], "deadline = 10s\n"));
}

static void
mode_close(struct host *host, enum mode mode)
{
	host_close(host);
	if (mode == WITH_DAEMON || mode == AUTO_WITH_DAEMON)
		daemon_stop(&daemon);
}

/* As the two sides of a handshake do it, and with a key that is kept. */
static void
exchange(const struct host *host, const struct alg *alg, bool for_tls)
{
	uint8_t share[MLKEMCLIENT_MAX_SHARE], *encoded;
	EVP_PKEY *own = pkey_generate(host, alg, for_tls), *peer;

	ck_assert_int_eq(EVP_PKEY_get_bits(own), (int)alg->bits);
	ck_assert_int_eq(EVP_PKEY_get_security_bits(own), (int)alg->security_bits);
	ck_assert_int_eq(EVP_PKEY_get_size(own), (int)alg->ciphertext);
	ck_assert_uint_eq(EVP_PKEY_get1_encoded_public_key(own, &encoded), alg->share);
	ck_assert_uint_eq(pkey_bytes(own, "pub", share, sizeof(share)), alg->share);
	ck_assert_mem_eq(share, encoded, alg->share);
	OPENSSL_free(encoded);
	peer = pkey_try_peer(host, alg, share, alg->share);
	if (peer == NULL)
		host_fail("the share was refused", __LINE__);
	ck_assert(pkeys_agree(host, alg, peer, own));
	EVP_PKEY_free(peer);
	EVP_PKEY_free(own);
}

START_TEST(exchanges)
{
	enum mode mode = (enum mode)(_i / N_ALGS);
	const struct alg *alg = &algs[_i % N_ALGS];
	struct host host;

	mode_open(&host, mode);
	for (int i = 0; i < 5; i++) {
		exchange(&host, alg, true);
		exchange(&host, alg, false);
	}
	/* Encapsulation takes the route too; what is kept works in this process. */
	if (mode == WITH_DAEMON) {
		ck_assert_uint_eq(host_count(&host, "by-daemon"), 5 * 3 + 5 * 1);
		ck_assert_uint_eq(host_count(&host, "fallbacks"), 0);
	} else if (mode != AUTO_WITH_DAEMON) {
		ck_assert_uint_eq(host_count(&host, "by-daemon"), 0);
		ck_assert_uint_eq(host_count(&host, "by-local"), 5 * 3 * 2);
		ck_assert(
		    (host_count(&host, "fallbacks") != 0) == (mode == WITHOUT_DAEMON));
	}
	mode_close(&host, mode);
}
END_TEST

/* A one-time key is spent by its first use, whatever comes out. */
START_TEST(one_time)
{
	enum mode mode = (enum mode)(_i / N_ALGS);
	const struct alg *alg = &algs[_i % N_ALGS];
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT], secret[MLKEMCLIENT_MAX_SECRET];
	uint8_t bytes[MLKEMCLIENT_MAX_PRIVATE_KEY];
	struct host host;
	EVP_PKEY *own, *copy;

	mode_open(&host, mode);
	own = pkey_generate(&host, alg, true);
	ck_assert_uint_eq(pkey_bytes(own, "priv", bytes, sizeof(bytes)), 0);
	ck_assert_uint_eq(pkey_bytes(own, "seed", bytes, sizeof(bytes)), 0);
	copy = EVP_PKEY_dup(own);
	ck_assert_ptr_null(copy);
	ck_assert_ptr_nonnull(strstr(host_errors(), "one-time key"));
	must(pkey_try_encaps(&host, alg, own, ct, secret));
	must(pkey_try_decaps(&host, alg, own, ct, secret));
	memset(secret, CANARY, sizeof(secret));
	ck_assert_int_eq(pkey_try_decaps(&host, alg, own, ct, secret), 0);
	ck_assert(bytes_are(secret, alg->secret, 0));
	ck_assert_ptr_nonnull(strstr(host_errors(), "the key was used"));
	EVP_PKEY_free(own);
	mode_close(&host, mode);
}
END_TEST

/* A wrong ciphertext of the right length is no error (implicit rejection). */
START_TEST(rejection)
{
	const struct alg *alg = &algs[_i];
	uint8_t ct[MLKEMCLIENT_MAX_CIPHERTEXT];
	uint8_t sent[MLKEMCLIENT_MAX_SECRET], got[2][MLKEMCLIENT_MAX_SECRET];
	struct host host;
	EVP_PKEY *own;

	mode_open(&host, LOCAL);
	own = pkey_generate(&host, alg, false);
	must(pkey_try_encaps(&host, alg, own, ct, sent));
	ct[3] ^= 1;
	must(pkey_try_decaps(&host, alg, own, ct, got[0]));
	must(pkey_try_decaps(&host, alg, own, ct, got[1]));
	ck_assert_mem_ne(got[0], sent, 32);
	ck_assert_mem_eq(got[0], got[1], alg->secret);
	EVP_PKEY_free(own);
	mode_close(&host, LOCAL);
}
END_TEST

static void
no_other_operation(EVP_PKEY_CTX *ctx)
{
	ck_assert_int_le(EVP_PKEY_derive_init(ctx), 0);
	ck_assert_int_le(EVP_PKEY_sign_init(ctx), 0);
	ck_assert_int_le(EVP_PKEY_verify_init(ctx), 0);
	ck_assert_int_le(EVP_PKEY_verify_recover_init(ctx), 0);
	ck_assert_int_le(EVP_PKEY_encrypt_init(ctx), 0);
	ck_assert_int_le(EVP_PKEY_decrypt_init(ctx), 0);
}

/* No table of another algorithm is ever reached with our key. */
START_TEST(other_operations)
{
	const struct alg *alg = &algs[_i];
	uint8_t buf[64];
	size_t len = sizeof(buf);
	struct host host;
	EVP_PKEY *own, *x25519;
	EVP_PKEY_CTX *ctx;
	EVP_MD_CTX *md = EVP_MD_CTX_new();

	mode_open(&host, LOCAL);
	own = pkey_generate(&host, alg, false);
	ctx = EVP_PKEY_CTX_new_from_pkey(host.libctx, own, "provider=mlkemd");
	no_other_operation(ctx);
	EVP_PKEY_CTX_free(ctx);
	/* Without our property, as a program that knows nothing of it. */
	ctx = EVP_PKEY_CTX_new_from_pkey(host.libctx, own, NULL);
	no_other_operation(ctx);
	EVP_PKEY_CTX_free(ctx);
	ck_assert_int_le(
	    EVP_DigestSignInit_ex(md, NULL, "SHA256", host.libctx, NULL, own, NULL), 0);
	ck_assert_int_le(
	    EVP_DigestVerifyInit_ex(md, NULL, "SHA256", host.libctx, NULL, own, NULL),
	    0);
	x25519 = EVP_PKEY_Q_keygen(host.libctx, NULL, "X25519");
	ctx = EVP_PKEY_CTX_new_from_pkey(host.libctx, x25519, NULL);
	must(EVP_PKEY_derive_init(ctx));
	ck_assert_int_le(EVP_PKEY_derive_set_peer(ctx, own), 0);
	ck_assert_int_le(EVP_PKEY_derive(ctx, buf, &len), 0);
	ck_assert_int_ne(EVP_PKEY_eq(own, x25519), 1);
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(x25519);
	EVP_MD_CTX_free(md);
	EVP_PKEY_free(own);
	mode_close(&host, LOCAL);
}
END_TEST

/* Whoever asks for validated cryptography does not get this. */
START_TEST(properties)
{
	static const struct {
		const char *query;
		bool found;
	} queries[] = {{NULL, true}, {"provider=mlkemd", true}, {"fips=yes", false},
	    {"provider=mlkemd,fips=yes", false}, {"provider=mlkemd,fips=no", true},
	    {"?fips=yes", true}};
	struct host host;

	mode_open(&host, LOCAL);
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		EVP_KEM *kem =
		    EVP_KEM_fetch(host.libctx, algs[_i].name, queries[i].query);
		EVP_KEYMGMT *keymgmt =
		    EVP_KEYMGMT_fetch(host.libctx, algs[_i].name, queries[i].query);

		ck_assert_msg(
		    (kem != NULL) == queries[i].found, "%s", queries[i].query);
		ck_assert((keymgmt != NULL) == queries[i].found);
		EVP_KEM_free(kem);
		EVP_KEYMGMT_free(keymgmt);
	}
	mode_close(&host, LOCAL);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("provider by EVP");
	TCase *tcase = tcase_create("all");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, exchanges, 0, N_MODES * N_ALGS);
	tcase_add_loop_test(tcase, one_time, 0, N_MODES * N_ALGS);
	tcase_add_loop_test(tcase, rejection, 0, N_ALGS);
	tcase_add_loop_test(tcase, other_operations, 0, N_ALGS);
	tcase_add_loop_test(tcase, properties, 0, N_ALGS);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
