/* SPDX-License-Identifier: Apache-2.0 */
/* Every way on which a bad key could come in (FIPS 203 7.1 to 7.3), and none does. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "pair.h"

static void
refuse(bool with_pub, bool with_priv, bool with_seed, const char *error)
{
	EVP_PKEY *pkey = try_import(with_pub, with_priv, with_seed);
	const char *errors = host_errors();

	ck_assert_ptr_null(pkey);
	ck_assert_msg(strstr(errors, error) != NULL, "%s, not: %s", errors, error);
}

/* Lengths that are off by one, and no part at all. */
START_TEST(wrong_lengths)
{
	struct parts parts;

	pair_setup(_i);
	EVP_PKEY_free(make_pair(true));
	EVP_PKEY_free(make_pair(false));
	for (int off = -1; off <= 1; off += 2) {
		for (int i = 0; i < 3; i++) {
			parts = (struct parts){0};
			if (i == 0)
				parts.pub = pub, parts.pub_len = alg->share + off;
			else if (i == 1)
				parts.priv = priv, parts.priv_len = alg->expanded + off;
			else
				parts.seed = seed, parts.seed_len = alg->seed + off;
			ck_assert_ptr_null(
			    pkey_try_import(&host, alg, &parts, EVP_PKEY_KEYPAIR));
			ck_assert_ptr_nonnull(strstr(host_errors(), "length"));
		}
	}
	parts = (struct parts){0};
	ck_assert_ptr_null(pkey_try_import(&host, alg, &parts, EVP_PKEY_KEYPAIR));
	ck_assert_ptr_nonnull(strstr(host_errors(), "neither"));
	/* A private part is not taken where a public key is asked for. */
	parts = (struct parts){.priv = priv, .priv_len = alg->expanded};
	ck_assert_ptr_null(pkey_try_import(&host, alg, &parts, EVP_PKEY_PUBLIC_KEY));
	ERR_clear_error();
	pair_teardown();
}
END_TEST

/* A flipped bit of H(ek) or of ek, FIPS 203 7.3; one in z is another, right key. */
START_TEST(hash_check)
{
	size_t ek, x;
	EVP_PKEY *own, *other;

	pair_setup(_i);
	own = make_pair(false);
	x = alg->share - alg->ek;
	ek = alg->expanded - x - 64 - alg->ek;
	priv[ek + alg->ek] ^= 1;
	refuse(false, true, false, "hash check");
	priv[ek + alg->ek] ^= 1;
	priv[ek + 7] ^= 1;
	refuse(false, true, false, "hash check");
	priv[ek + 7] ^= 1;
	priv[alg->expanded - x - 1] ^= 1;
	other = try_import(false, true, false);
	ck_assert_ptr_nonnull(other);
	ck_assert(pkeys_agree(&host, alg, own, other));
	EVP_PKEY_free(other);
	EVP_PKEY_free(own);
	pair_teardown();
}
END_TEST

/* Parts that are right each, and do not belong together. */
START_TEST(parts_of_others)
{
	static uint8_t other_pub[MLKEMCLIENT_MAX_SHARE];
	EVP_PKEY *own;

	pair_setup(_i);
	EVP_PKEY_free(make_pair(false));
	memcpy(other_pub, pub, alg->share);
	own = make_pair(true);
	/* Seed and public key of another pair. */
	memcpy(pub, other_pub, alg->share);
	refuse(true, false, true, "is not that of the private key");
	/* Expanded key and seed of another pair; expanded and another public key. */
	refuse(false, true, true, "is not that of the expanded private key");
	pkey_bytes(own, "pub", pub, sizeof(pub));
	refuse(true, true, false, "is not that of the private key");
	EVP_PKEY_free(own);
	pair_teardown();
}
END_TEST

/* q itself and the largest value, first and last: never a share (FIPS 203 7.2). */
static void
unreduce(uint8_t *ek, int which)
{
	size_t last = alg->ek - 32 - 3;

	if (which == 0) {
		ek[0] = 0x01;
		ek[1] = (uint8_t)((ek[1] & 0xf0) | 0x0d);
	} else if (which == 1) {
		ek[last + 1] = (uint8_t)((ek[last + 1] & 0x0f) | 0x10);
		ek[last + 2] = 0xd0;
	} else {
		memset(ek, 0xff, alg->ek);
	}
}

/* The ways in through EVP; those of the library and the daemon have their own tests. */
START_TEST(unreduced_shares)
{
	struct parts parts = {.pub = pub};

	pair_setup(_i);
	for (int which = 0; which < 3; which++) {
		EVP_PKEY_free(make_pair(false));
		unreduce(pub, which);
		ck_assert_ptr_null(pkey_try_peer(&host, alg, pub, alg->share));
		ck_assert_ptr_nonnull(strstr(host_errors(), "modulus check"));
		parts.pub_len = alg->share;
		ck_assert_ptr_null(
		    pkey_try_import(&host, alg, &parts, EVP_PKEY_PUBLIC_KEY));
		ck_assert_ptr_nonnull(strstr(host_errors(), "modulus check"));
		refuse(true, true, false, "is not that of the private key");
	}
	for (int i = 0; i < 5; i++) {
		size_t lens[] = {0, 1, 32, alg->share - 1, alg->share + 1};

		ck_assert_ptr_null(pkey_try_peer(&host, alg, pub, lens[i]));
		ERR_clear_error();
	}
	pair_teardown();
}
END_TEST

/* Each check, taken out, lets in what the tests above say is refused. */
START_TEST(planted)
{
	EVP_PKEY *pkey;

	pair_setup(_i);
	EVP_PKEY_free(make_pair(false));
	unreduce(pub, 0);
	setenv("MLKEMD_FAULT", "provider-no-modulus-check", 1);
	pkey = pkey_try_peer(&host, alg, pub, alg->share);
	ck_assert_ptr_nonnull(pkey);
	EVP_PKEY_free(pkey);
	setenv("MLKEMD_FAULT", "provider-no-form-check", 1);
	EVP_PKEY_free(make_pair(true));
	pkey = try_import(false, true, true);
	ck_assert_ptr_nonnull(pkey);
	EVP_PKEY_free(pkey);
	setenv("MLKEMD_FAULT", "provider-seed-alone", 1);
	pkey = make_pair(true);
	ck_assert_uint_eq(pkey_bytes(pkey, "priv", priv, sizeof(priv)), 0);
	EVP_PKEY_free(pkey);
	setenv("MLKEMD_FAULT", "provider-work-for-parameters", 1);
	ck_assert_ptr_null(pkey_try_peer(&host, alg, pub, alg->share));
	ck_assert_ptr_nonnull(strstr(host_errors(), "takes no others"));
	unsetenv("MLKEMD_FAULT");
	pair_teardown();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("provider and bad keys");
	TCase *tcase = tcase_create("all");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, wrong_lengths, 0, N_ALGS);
	tcase_add_loop_test(tcase, hash_check, 0, N_ALGS);
	tcase_add_loop_test(tcase, parts_of_others, 0, N_ALGS);
	tcase_add_loop_test(tcase, unreduced_shares, 0, N_ALGS);
	if (host_has_hooks())
		tcase_add_loop_test(tcase, planted, 0, N_ALGS);
	suite_add_tcase(suite, tcase);
	return host_main(suite);
}
