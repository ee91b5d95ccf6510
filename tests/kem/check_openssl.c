/* SPDX-License-Identifier: Apache-2.0 */
/*
 * B07: OpenSSL answers 1 for success and 0, -1 or -2 for failure. Each call that kem/
 * makes is replaced (by the linker, --wrap) by one that answers each of these and does
 * nothing: the operation has to fail, with all outputs zero, and to work again after.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/kdf.h>

#include "kem/arch/backend.h"
#include "tests/kem/kemtest.h"

enum call {
	CALL_FROMDATA_INIT,
	CALL_FROMDATA,
	CALL_GET_PARAM,
	CALL_DERIVE_INIT,
	CALL_SET_PEER,
	CALL_DERIVE,
	CALL_KDF_DERIVE,
	CALL_RAND_GENERATE,
	N_CALLS,
	NO_CALL = N_CALLS,
};

static enum call broken = NO_CALL;
static int answer;
static unsigned n_broken, n_before; /* calls that go well before the broken one */

static bool
is_broken(enum call call)
{
	if (call != broken || n_before-- > 0)
		return false;
	n_before = 0;
	n_broken++;
	return true;
}

#define WRAP(call, name, parameters, arguments)              \
 int __real_##name parameters;                               \
 int __wrap_##name parameters;                               \
 int __wrap_##name parameters                                \
 {                                                           \
  return is_broken(call) ? answer : __real_##name arguments; \
 }

WRAP(CALL_FROMDATA_INIT, EVP_PKEY_fromdata_init, (EVP_PKEY_CTX * ctx), (ctx))
WRAP(CALL_FROMDATA, EVP_PKEY_fromdata,
    (EVP_PKEY_CTX * ctx, EVP_PKEY **pkey, int selection, OSSL_PARAM params[]),
    (ctx, pkey, selection, params))
WRAP(CALL_GET_PARAM, EVP_PKEY_get_octet_string_param,
    (const EVP_PKEY *pkey, const char *name, unsigned char *buf, size_t size,
	size_t *len),
    (pkey, name, buf, size, len))
WRAP(CALL_DERIVE_INIT, EVP_PKEY_derive_init, (EVP_PKEY_CTX * ctx), (ctx))
WRAP(CALL_SET_PEER, EVP_PKEY_derive_set_peer_ex,
    (EVP_PKEY_CTX * ctx, EVP_PKEY *peer, int validate), (ctx, peer, validate))
WRAP(CALL_DERIVE, EVP_PKEY_derive,
    (EVP_PKEY_CTX * ctx, unsigned char *key, size_t *len), (ctx, key, len))
WRAP(CALL_KDF_DERIVE, EVP_KDF_derive,
    (EVP_KDF_CTX * ctx, unsigned char *out, size_t len, const OSSL_PARAM params[]),
    (ctx, out, len, params))
WRAP(CALL_RAND_GENERATE, EVP_RAND_generate,
    (EVP_RAND_CTX * ctx, unsigned char *out, size_t len, unsigned int strength,
	int prediction_resistance, const unsigned char *add, size_t add_len),
    (ctx, out, len, strength, prediction_resistance, add, add_len))

#define HYBRID KEM_ALG_X25519MLKEM768
#define N      9

static struct test_item items[N], out[N];
static struct kem_keygen_item keygen[N];
static struct kem_encaps_item encaps[N];
static struct kem_decaps_item decaps[N];
static struct kem_x25519 pairs[N];
static uint8_t okm[100], drawn[100];

static void
prepare(void)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "openssl");
	for (size_t i = 0; i < N; i++) {
		test_item_make(&items[i], HYBRID, &stream);
		keygen[i] = test_keygen_item(&items[i], &out[i]);
		encaps[i] = test_encaps_item(&items[i], &out[i]);
		encaps[i].ephemeral = NULL;
		decaps[i] = test_decaps_item(&items[i], &out[i]);
	}
}

static int
run_keygen(void)
{
	return kem_keygen(test_kem(), HYBRID, keygen, N, test_scratch());
}

static bool
keygen_is_zero(void)
{
	for (size_t i = 0; i < N; i++) {
		if (keygen[i].status != KEM_E_INTERNAL ||
		    !test_is_zero(out[i].share, 1216) ||
		    !test_is_zero(out[i].secret, 1248))
			return false;
	}
	return true;
}

static int
run_encaps(void)
{
	return kem_encaps(test_kem(), HYBRID, encaps, N, test_scratch());
}

static bool
encaps_is_zero(void)
{
	for (size_t i = 0; i < N; i++) {
		if (encaps[i].status != KEM_E_INTERNAL ||
		    !test_is_zero(out[i].ct, 1120) || !test_is_zero(&out[i].made, 64))
			return false;
	}
	return true;
}

static int
run_decaps(void)
{
	return kem_decaps(test_kem(), HYBRID, decaps, N, test_scratch());
}

static bool
decaps_is_zero(void)
{
	for (size_t i = 0; i < N; i++) {
		if (decaps[i].status != KEM_E_INTERNAL ||
		    !test_is_zero(&out[i].found, 64))
			return false;
	}
	return true;
}

static int
run_x25519(void)
{
	return kem_x25519_keygen(test_kem(), pairs, N, test_scratch());
}

static bool
x25519_is_zero(void)
{
	return test_is_zero(pairs, sizeof(pairs));
}

static int
run_hkdf(void)
{
	return kem_hkdf(test_kem(), KEM_HASH_SHA256, items[0].m, 32, items[1].m, 32,
	    items[2].m, 32, okm, sizeof(okm));
}

static bool
hkdf_is_zero(void)
{
	return test_is_zero(okm, sizeof(okm));
}

static int
run_random(void)
{
	return kem_random(test_kem(), drawn, sizeof(drawn));
}

static bool
random_is_zero(void)
{
	return test_is_zero(drawn, sizeof(drawn));
}

static const struct {
	const char *name;
	int (*run)(void);
	bool (*is_zero)(void);
	int failure;
	unsigned calls; /* which of them it may make, as bits */
} operations[] = {
    {"keygen", run_keygen, keygen_is_zero, KEM_FAIL_OPENSSL,
	1 << CALL_FROMDATA_INIT | 1 << CALL_FROMDATA | 1 << CALL_GET_PARAM},
    {"encaps", run_encaps, encaps_is_zero, KEM_FAIL_OPENSSL,
	1 << CALL_FROMDATA_INIT | 1 << CALL_FROMDATA | 1 << CALL_GET_PARAM |
	    1 << CALL_DERIVE_INIT | 1 << CALL_SET_PEER | 1 << CALL_DERIVE},
    {"decaps", run_decaps, decaps_is_zero, KEM_FAIL_OPENSSL,
	1 << CALL_FROMDATA_INIT | 1 << CALL_FROMDATA | 1 << CALL_DERIVE_INIT |
	    1 << CALL_SET_PEER | 1 << CALL_DERIVE},
    {"x25519", run_x25519, x25519_is_zero, KEM_FAIL_OPENSSL,
	1 << CALL_FROMDATA_INIT | 1 << CALL_FROMDATA | 1 << CALL_GET_PARAM},
    {"hkdf", run_hkdf, hkdf_is_zero, KEM_FAIL_OPENSSL, 1 << CALL_KDF_DERIVE},
    {"encaps", run_encaps, encaps_is_zero, KEM_FAIL_RNG, 1 << CALL_RAND_GENERATE},
    {"x25519", run_x25519, x25519_is_zero, KEM_FAIL_RNG, 1 << CALL_RAND_GENERATE},
    {"random", run_random, random_is_zero, KEM_FAIL_RNG, 1 << CALL_RAND_GENERATE},
};
#define N_OPERATIONS (int)(sizeof(operations) / sizeof(operations[0]))

/* The first call of a kind, and one in the middle, when some outputs are written. */
static void
break_call(int op, enum call call, int with, unsigned after)
{
	memset(out, 0x5b, sizeof(out));
	memset(pairs, 0x5b, sizeof(pairs));
	memset(okm, 0x5b, sizeof(okm));
	memset(drawn, 0x5b, sizeof(drawn));
	answer = with;
	n_broken = 0;
	n_before = after;
	broken = call;
	ck_assert_int_eq(operations[op].run(), operations[op].failure);
	broken = NO_CALL;
	ck_assert_uint_gt(n_broken, 0);
	ck_assert_msg(operations[op].is_zero(), "%s: an output is left after call %d",
	    operations[op].name, (int)call);
}

/* With X25519 in lanes none of OpenSSL's X25519 is called. */
static void
leave_call(int op, enum call call)
{
	answer = 0;
	n_broken = 0;
	n_before = 0;
	broken = call;
	ck_assert_int_eq(operations[op].run(), 0);
	broken = NO_CALL;
	ck_assert_uint_eq(n_broken, 0);
}

START_TEST(test_answers)
{
	prepare();
	for (int call = 0; call < N_CALLS; call++) {
		if (!(operations[_i].calls >> call & 1))
			continue;
		if (test_backend()->x25519_base8 && call <= CALL_DERIVE) {
			leave_call(_i, (enum call)call);
			continue;
		}
		for (int with = 0; with >= -2; with--) {
			break_call(_i, (enum call)call, with, 0);
			if (call == CALL_FROMDATA)
				break_call(_i, (enum call)call, with, 1);
			if (call == CALL_DERIVE)
				break_call(_i, (enum call)call, with, N - 1);
		}
	}
	ck_assert_int_eq(operations[_i].run(), 0);
	ck_assert(!operations[_i].is_zero());
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("openssl");
	TCase *tc = tcase_create("openssl");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, test_answers, 0, N_OPERATIONS);
	suite_add_tcase(suite, tc);
	return test_main(argc, argv, suite);
}
