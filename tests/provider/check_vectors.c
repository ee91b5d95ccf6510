/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known answers through EVP: keys come in by seed or expanded, shares go out,
 * ciphertexts of others are opened. Encapsulation draws its own randomness, so what is
 * left of its cases is which shares it refuses.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

#include "host.h"
#include "tests/vectors/vectors.h"

static struct host host;

static const struct alg *
alg_of(struct json_object *group)
{
	const char *name = json_text(group, "parameterSet");

	for (int i = 0; i < N_ALGS; i++)
		if (alg_has_name(&algs[i], name))
			return &algs[i];
	ck_abort_msg("parameter set %s", name);
	return NULL;
}

static EVP_PKEY *
import_private(const struct alg *alg, struct bytes seed, struct bytes dk)
{
	struct parts parts = {
	    .priv = dk.p, .priv_len = dk.len, .seed = seed.p, .seed_len = seed.len};

	return pkey_try_import(&host, alg, &parts, EVP_PKEY_KEYPAIR);
}

/*
 * Decapsulates; an empty text for "refused", whether at the key or at the ciphertext.
 */
static struct bytes
open_with(const struct alg *alg, EVP_PKEY *pkey, struct bytes ct)
{
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	size_t len = sizeof(secret);
	struct bytes result = {NULL, 0};
	EVP_PKEY_CTX *ctx;

	if (pkey == NULL)
		return result;
	ctx = EVP_PKEY_CTX_new_from_pkey(host.libctx, pkey, "provider=mlkemd");
	must(EVP_PKEY_decapsulate_init(ctx, NULL));
	if (EVP_PKEY_decapsulate(ctx, secret, &len, ct.p, ct.len) == 1)
		result = bytes_new(secret, len);
	EVP_PKEY_CTX_free(ctx);
	return result;
}

static bool
part_is(EVP_PKEY *pkey, const char *part, struct bytes right)
{
	uint8_t got[MLKEMCLIENT_MAX_PRIVATE_KEY];

	return pkey_bytes(pkey, part, got, sizeof(got)) == right.len &&
	       memcmp(got, right.p, right.len) == 0;
}

/* Whether the case came out as it says. */
static bool
case_holds(const struct alg *alg, struct json_object *test)
{
	bool valid = strcmp(json_text(test, "result"), "valid") == 0, holds;
	struct bytes none = {NULL, 0}, got, expected;
	EVP_PKEY *pkey;

	if (json_has(test, "m")) { /* encapsulation: the share alone */
		struct bytes ek = json_bytes(test, "ek");
		struct parts parts = {.pub = ek.p, .pub_len = ek.len};

		pkey = pkey_try_import(&host, alg, &parts, EVP_PKEY_PUBLIC_KEY);
		holds = (pkey != NULL) == valid;
		EVP_PKEY_free(pkey);
		return holds;
	}
	pkey = json_has(test, "seed")
		   ? import_private(alg, json_bytes(test, "seed"), none)
		   : import_private(alg, none, json_bytes(test, "dk"));
	holds = pkey != NULL || !valid;
	if (pkey != NULL && json_has(test, "ek"))
		holds = part_is(pkey, "pub", json_bytes(test, "ek"));
	if (pkey != NULL && json_has(test, "seed") && json_has(test, "dk"))
		holds = holds && part_is(pkey, "priv", json_bytes(test, "dk"));
	if (holds && json_has(test, "c")) {
		got = open_with(alg, pkey, json_bytes(test, "c"));
		holds = (got.p != NULL) == valid;
		expected = valid ? json_bytes(test, "K") : none;
		if (valid && holds)
			holds = got.len == expected.len &&
				memcmp(got.p, expected.p, got.len) == 0;
	}
	EVP_PKEY_free(pkey);
	ERR_clear_error();
	return holds;
}

static const char *const files[] = {
    "wycheproof/mlkem_512_keygen_seed_test.json",
    "wycheproof/mlkem_768_keygen_seed_test.json",
    "wycheproof/mlkem_1024_keygen_seed_test.json",
    "wycheproof/mlkem_512_encaps_test.json",
    "wycheproof/mlkem_768_encaps_test.json",
    "wycheproof/mlkem_768_test.json",
    "wycheproof/mlkem_1024_test.json",
    "wycheproof/mlkem_768_semi_expanded_decaps_test.json",
};
#define N_FILES (int)(sizeof(files) / sizeof(files[0]))

START_TEST(wycheproof)
{
	struct json_object *file = vectors_json(files[_i]);
	struct json_object *groups = json_get(file, "testGroups");
	size_t n = 0, n_held = 0;

	host_open(&host, settings("/nonexistent/mlkemd.sock", "local", NULL));
	for (size_t g = 0; g < json_len(groups); g++) {
		struct json_object *group = json_at(groups, g);
		struct json_object *tests = json_get(group, "tests");

		for (size_t t = 0; t < json_len(tests); t++, n++)
			n_held += case_holds(alg_of(group), json_at(tests, t));
	}
	vectors_ran(files[_i], n, vectors_count(file));
	ck_assert_uint_eq(n_held, n);
	host_close(&host);
	vectors_forget();
}
END_TEST

static struct bytes
hybrid_seed(struct json_object *test)
{
	return bytes_join(
	    bytes_join(json_bytes(test, "mlkem_d"), json_bytes(test, "mlkem_z")),
	    json_bytes(test, "x25519_sk"));
}

static bool
hybrid_finish_holds(const struct alg *alg, struct json_object *test, bool spoil)
{
	bool valid = strcmp(json_text(test, "result"), "valid") == 0, holds;
	struct bytes got, expected, ct = json_bytes(test, "server_share");
	EVP_PKEY *pkey = import_private(alg, hybrid_seed(test), (struct bytes){0});

	ck_assert_ptr_nonnull(pkey);
	got = open_with(alg, pkey, ct);
	EVP_PKEY_free(pkey);
	ERR_clear_error();
	if (!valid)
		return got.p == NULL;
	expected = json_bytes(test, "shared_secret");
	if (spoil)
		expected.p[32] ^= 1;
	holds = got.len == expected.len && memcmp(got.p, expected.p, got.len) == 0;
	return holds;
}

/* RFC 10024: shares and secrets of both halves, in their order. */
START_TEST(hybrid)
{
	const struct alg *alg = &algs[ALG_X25519MLKEM768];
	struct json_object *file = vectors_json("hybrid/x25519mlkem768_composed.json");
	struct json_object *tests = json_get(file, "clientKeyGen");
	size_t n = 0, n_valid = 0;

	host_open(&host, settings("/nonexistent/mlkemd.sock", "local", NULL));
	for (size_t t = 0; t < json_len(tests); t++) {
		struct json_object *test = json_at(tests, t);
		EVP_PKEY *pkey =
		    import_private(alg, hybrid_seed(test), (struct bytes){0});

		ck_assert_ptr_nonnull(pkey);
		ck_assert(part_is(pkey, "pub", json_bytes(test, "client_share")));
		EVP_PKEY_free(pkey);
	}
	tests = json_get(file, "clientFinish");
	for (size_t t = 0; t < json_len(tests); t++, n++) {
		struct json_object *test = json_at(tests, t);
		bool valid = strcmp(json_text(test, "result"), "valid") == 0;

		ck_assert_msg(hybrid_finish_holds(alg, test, false), "case %zu",
		    json_number(test, "tcId"));
		/* Control: a spoiled expectation is seen. */
		ck_assert(!valid || !hybrid_finish_holds(alg, test, true));
		n_valid += valid;
	}
	printf("hybrid: %zu finishes, %zu of them valid\n", n, n_valid);
	ck_assert(n_valid > 0 && n_valid < n);
	host_close(&host);
	vectors_forget();
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("provider vectors");
	TCase *tcase = tcase_create("all");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, wycheproof, 0, N_FILES);
	tcase_add_test(tcase, hybrid);
	suite_add_tcase(suite, tcase);
	return vectors_main(argc, argv, suite);
}
