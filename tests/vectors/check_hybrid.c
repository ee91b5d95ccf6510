/* SPDX-License-Identifier: Apache-2.0 */
/*
 * X25519MLKEM768 and what TLS 1.3 makes of its secret: composed cases, s2n-tls' secrets,
 * shares of real handshakes, HKDF-Expand-Label.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "kem/x25519.h"
#include "lines.h"

#define HYBRID KEM_ALG_X25519MLKEM768

/* RFC 9846 7.1: HkdfLabel { uint16 length; label<..255>; context<..255> }. */
static struct bytes
hkdf_label(size_t len, const char *label, struct bytes context)
{
	uint8_t out[600];
	size_t n = strlen(label);

	ck_assert_uint_lt(n, 256);
	ck_assert_uint_lt(context.len, 256);
	out[0] = (uint8_t)(len >> 8);
	out[1] = (uint8_t)len;
	out[2] = (uint8_t)n;
	memcpy(out + 3, label, n);
	out[3 + n] = (uint8_t)context.len;
	if (context.len > 0)
		memcpy(out + 4 + n, context.p, context.len);
	return bytes_new(out, 4 + n + context.len);
}

/*
 * One step of HKDF alone, by OpenSSL: TLS 1.3 puts its labels between the two. kem_hkdf()
 * makes both at once, as a client of the daemon gets them.
 */
static struct bytes
hkdf_step(const char *mode, enum kem_hash hash, struct bytes key,
    const char *other_name, struct bytes other, size_t len)
{
	struct bytes out = {vectors_alloc(len), len};
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	const char *digest = hash == KEM_HASH_SHA384 ? "SHA384" : "SHA256";
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_utf8_string(
		OSSL_KDF_PARAM_MODE, (char *)(uintptr_t)mode, 0),
	    OSSL_PARAM_construct_utf8_string(
		OSSL_KDF_PARAM_DIGEST, (char *)(uintptr_t)digest, 0),
	    OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.p, key.len),
	    OSSL_PARAM_construct_octet_string(other_name, other.p, other.len),
	    OSSL_PARAM_construct_end(),
	};

	if (other.len == 0)
		params[3] = OSSL_PARAM_construct_end();
	ck_assert_int_eq(EVP_KDF_derive(ctx, out.p, len, params), 1);
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return out;
}

static struct bytes
expand(enum kem_hash hash, struct bytes prk, struct bytes info, size_t len)
{
	return hkdf_step("EXPAND_ONLY", hash, prk, OSSL_KDF_PARAM_INFO, info, len);
}

static struct bytes
extract(enum kem_hash hash, struct bytes salt, struct bytes ikm)
{
	const size_t len = hash == KEM_HASH_SHA384 ? 48 : 32;

	return hkdf_step("EXTRACT_ONLY", hash, ikm, OSSL_KDF_PARAM_SALT, salt, len);
}

/* The salt of the Handshake Secret without a PSK: Derive-Secret(Early, "derived", ""). */
static struct bytes
derived_secret(enum kem_hash hash)
{
	static const char *const empty[] = {
	    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	    "38b060a751ac96384cd9327eb1b1e36a21fdb71114be0743"
	    "4c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b",
	};
	const size_t len = hash == KEM_HASH_SHA384 ? 48 : 32;
	const uint8_t zeros[48] = {0};
	struct bytes early =
	    extract(hash, (struct bytes){NULL, 0}, bytes_new(zeros, len));

	return expand(
	    hash, early, hkdf_label(len, "tls13 derived", bytes_hex(empty[hash])), len);
}

static void
handshake_secret_is(struct json_object *test, enum kem_hash hash, const char *name)
{
	struct bytes expected = json_bytes(test, name);
	struct bytes secret =
	    extract(hash, derived_secret(hash), json_bytes(test, "shared_secret"));

	ck_assert_uint_eq(secret.len, expected.len);
	ck_assert_mem_eq(secret.p, expected.p, expected.len);
}

static void
secrets_check(struct json_object *test)
{
	struct bytes both =
	    bytes_join(json_bytes(test, "mlkem_ss"), json_bytes(test, "x25519_ss"));

	ck_assert_uint_eq(both.len, 64);
	ck_assert_mem_eq(both.p, json_bytes(test, "shared_secret").p, 64);
	handshake_secret_is(test, KEM_HASH_SHA256, "tls13_handshake_secret_sha256");
	handshake_secret_is(test, KEM_HASH_SHA384, "tls13_handshake_secret_sha384");
}

/* What an invalid case has to be refused for, by its comment. */
static enum kem_status
invalid_status(struct json_object *test, size_t len, size_t right)
{
	const char *comment = json_text(test, "comment");

	ck_assert_str_eq(json_text(test, "result"), "invalid");
	ck_assert_str_eq(json_text(test, "alert"), "illegal_parameter");
	if (len != right)
		return KEM_E_LENGTH;
	if (strstr(comment, "small order"))
		return KEM_E_ZERO;
	if (strstr(comment, "not reduced mod q") || strstr(comment, "wrong order"))
		return KEM_E_SHARE;
	ck_abort_msg("unknown kind of case: %s", comment);
}

static void
respond_case(struct vector *v, struct json_object *test)
{
	v->op = VECTOR_ENCAPS;
	v->share = json_bytes(test, "client_share");
	v->m = json_bytes(test, "mlkem_m");
	v->x_priv = json_bytes(test, "x25519_sk");
	if (json_has(test, "alert")) {
		v->status = invalid_status(test, v->share.len, 1216);
		return;
	}
	v->ct = json_bytes(test, "server_share");
	v->shared = json_bytes(test, "shared_secret");
	secrets_check(test);
}

static struct bytes
seed_of(struct json_object *test)
{
	return bytes_join(
	    bytes_join(json_bytes(test, "mlkem_d"), json_bytes(test, "mlkem_z")),
	    json_bytes(test, "x25519_sk"));
}

static void
finish_case(struct vector *v, struct json_object *test)
{
	v->op = VECTOR_DECAPS;
	v->seed = seed_of(test);
	v->ct = json_bytes(test, "server_share");
	if (json_has(test, "alert")) {
		v->status = invalid_status(test, v->ct.len, 1120);
		return;
	}
	v->shared = json_bytes(test, "shared_secret");
	secrets_check(test);
}

#define CASE_FIELDS                                                             \
 "tcId comment result alert mlkem_d mlkem_z mlkem_m x25519_sk client_share "    \
 "server_share mlkem_ss x25519_ss shared_secret tls13_handshake_secret_sha256 " \
 "tls13_handshake_secret_sha384"

START_TEST(test_composed)
{
	static const char *const sections[] = {
	    "clientKeyGen", "serverRespond", "clientFinish"};
	const char *path = "hybrid/x25519mlkem768_composed.json";
	struct vector_list list = {.path = path};
	struct json_object *file = vectors_json(path);
	size_t n_in_file = 0;

	json_only(file,
	    "note group codepoint layout clientKeyGen serverRespond clientFinish");
	ck_assert_uint_eq(json_number(file, "codepoint"), 0x11ec);
	for (size_t s = 0; s < 3; s++) {
		struct json_object *tests = json_get(file, sections[s]);

		n_in_file += json_len(tests);
		for (size_t t = 0; t < json_len(tests); t++) {
			struct json_object *test = json_at(tests, t);
			struct vector *v = vector_add(&list);

			json_only(test, CASE_FIELDS);
			v->id = (unsigned)json_number(test, "tcId");
			v->alg = HYBRID;
			if (s == 0) {
				v->op = VECTOR_KEYGEN;
				v->seed = seed_of(test);
				v->share = json_bytes(test, "client_share");
			} else if (s == 1) {
				respond_case(v, test);
			} else {
				finish_case(v, test);
			}
		}
	}
	vectors_ran(path, list.n, n_in_file);
	vectors_check(&list);
}
END_TEST

/*
 * The traffic secret is HKDF (extract and expand) of the hybrid secret, with salt and
 * label as TLS 1.3 has them: what a client of the daemon can ask for as its kdf.
 */
static struct bytes
traffic_secret(struct bytes shared, const char *label, struct bytes transcript)
{
	struct bytes salt = derived_secret(KEM_HASH_SHA256),
		     out = {vectors_alloc(32), 32};
	struct bytes info = hkdf_label(32, label, transcript);

	ck_assert_int_eq(kem_hkdf(test_kem(), KEM_HASH_SHA256, shared.p, shared.len,
			     salt.p, salt.len, info.p, info.len, out.p, 32),
	    0);
	return out;
}

static void
x25519_halves(struct json_object *test)
{
	struct bytes client = json_bytes(test, "client_x25519_sk");
	struct bytes server = json_bytes(test, "server_x25519_sk");
	uint8_t public_key[32], shared[32];
	struct x25519_public_item p = {server.p, public_key};
	struct x25519_item item = {
	    .private_key = client.p, .peer = public_key, .shared = shared};

	ck_assert_int_eq(x25519_public(test_kem(), &p, 1, test_scratch()), 0);
	ck_assert_int_eq(x25519_shared(test_kem(), &item, 1, test_scratch()), 0);
	ck_assert_mem_eq(shared, json_bytes(test, "ecdh_shared_secret").p, 32);
}

START_TEST(test_s2n_secrets)
{
	const char *path = "hybrid/s2n_tls13_hybrid_secrets.json";
	struct json_object *tests = vectors_json(path);
	size_t n;

	for (n = 0; n < json_len(tests); n++) {
		struct json_object *test = json_at(tests, n);
		struct bytes mlkem = json_bytes(test, "mlkem_shared_secret");
		struct bytes ecdh = json_bytes(test, "ecdh_shared_secret");
		struct bytes shared = json_bytes(test, "hybrid_shared_secret");
		struct bytes transcript = json_bytes(test, "transcript_hash");
		bool is_x25519 =
		    strcmp(json_text(test, "group"), "X25519MLKEM768") == 0;
		struct bytes both =
		    is_x25519 ? bytes_join(mlkem, ecdh) : bytes_join(ecdh, mlkem);

		json_only(test,
		    "group cipher_suite hash ecdh_shared_secret mlkem_shared_secret "
		    "hybrid_shared_secret transcript_ascii transcript_hash "
		    "client_handshake_traffic_secret server_handshake_traffic_secret "
		    "client_x25519_sk server_x25519_sk");
		ck_assert_str_eq(json_text(test, "hash"), "sha256");
		ck_assert_uint_eq(both.len, shared.len);
		ck_assert_mem_eq(both.p, shared.p, shared.len);
		if (is_x25519)
			x25519_halves(test);
		ck_assert_mem_eq(
		    traffic_secret(shared, "tls13 c hs traffic", transcript).p,
		    json_bytes(test, "client_handshake_traffic_secret").p, 32);
		ck_assert_mem_eq(
		    traffic_secret(shared, "tls13 s hs traffic", transcript).p,
		    json_bytes(test, "server_handshake_traffic_secret").p, 32);
		shared.p[n] ^= 1;
		ck_assert_mem_ne(
		    traffic_secret(shared, "tls13 s hs traffic", transcript).p,
		    json_bytes(test, "server_handshake_traffic_secret").p, 32);
	}
	vectors_ran(path, n, 3);
}
END_TEST

/* Does the message hold a key share entry (group, length, share) of these bytes? */
static bool
has_share(struct bytes message, size_t codepoint, struct bytes share)
{
	uint8_t head[4] = {(uint8_t)(codepoint >> 8), (uint8_t)codepoint,
	    (uint8_t)(share.len >> 8), (uint8_t)share.len};
	struct bytes entry = bytes_join(bytes_new(head, 4), share);

	return test_is_within(message.p, message.len, entry.p, entry.len);
}

/*
 * Shares of real handshakes, whose private keys nobody has: they are of the right
 * length and place, the client's passes the checks, and one can encapsulate to it.
 */
static void
trace_check(struct json_object *trace)
{
	struct bytes client = json_bytes(trace, "client_key_exchange");
	struct bytes server = json_bytes(trace, "server_key_exchange");
	struct bytes hellos = bytes_join(
	    json_bytes(trace, "client_hello"), json_bytes(trace, "server_hello"));
	const size_t codepoint = json_number(trace, "codepoint");
	const enum kem_alg alg = json_alg(trace, "group");
	struct kem_shared shared;
	uint8_t ct[KEM_CT_MAX], hash[32];
	struct kem_encaps_item item = {
	    .share = client.p, .share_len = client.len, .ct = ct, .shared = &shared};

	ck_assert_uint_eq(client.len, kem_alg_info(alg)->share_bytes);
	ck_assert_uint_eq(server.len, kem_alg_info(alg)->ct_bytes);
	ck_assert(has_share(json_bytes(trace, "client_hello"), codepoint, client));
	ck_assert(has_share(json_bytes(trace, "server_hello"), codepoint, server));
	ck_assert(!has_share(json_bytes(trace, "client_hello"), codepoint + 1, client));
	test_sha256(hash, hellos.p, hellos.len);
	ck_assert_mem_eq(hash, json_bytes(trace, "transcript_hash_ch_sh").p, 32);
	ck_assert_int_eq(
	    kem_check_share(test_kem(), alg, client.p, client.len, test_scratch()),
	    KEM_OK);
	ck_assert_int_eq(kem_encaps(test_kem(), alg, &item, 1, test_scratch()), 0);
	ck_assert_int_eq(item.status, KEM_OK);
	client.p[1] |= 0x0f;
	client.p[0] = 0xff;
	ck_assert_int_eq(
	    kem_check_share(test_kem(), alg, client.p, client.len, test_scratch()),
	    KEM_E_SHARE);
}

START_TEST(test_traces)
{
	const char *path = "hybrid/tls13_traces.json";
	struct json_object *traces = vectors_json(path);
	size_t n;

	for (n = 0; n < json_len(traces); n++) {
		json_only(json_at(traces, n),
		    "group codepoint cipher_suite hash client_hello server_hello "
		    "client_key_exchange server_key_exchange transcript_hash_ch_sh "
		    "server_handshake_traffic_secret client_handshake_traffic_secret "
		    "server_flight_record_hex client_finished_record_hex note");
		trace_check(json_at(traces, n));
	}
	vectors_ran(path, n, 3);
}
END_TEST

/* Records of Secret, Label, HashValue and Output under a heading that names the hash. */
START_TEST(test_hkdf_label)
{
	static const char *const names[] = {
	    "Secret = ", "Label = ", "HashValue = ", "Output = "};
	const char *path = "hybrid/botan_hkdf_label.vec";
	char *text = vectors_text(path), *line;
	const char *field[4];
	enum kem_hash hash = KEM_HASH_SHA256;
	size_t n = 0, n_in_file = 0;

	for (const char *p = text; (p = strstr(p, "Secret = ")); p++)
		n_in_file++;
	while ((line = vectors_line(&text))) {
		struct bytes output, out;

		if (*line == '#')
			continue;
		if (*line == '[') {
			ck_assert(strcmp(line, "[SHA-256]") == 0 ||
				  strcmp(line, "[SHA-384]") == 0);
			hash = strcmp(line, "[SHA-384]") == 0 ? KEM_HASH_SHA384
							      : KEM_HASH_SHA256;
			continue;
		}
		for (size_t f = 0; f < 4; f++) {
			const size_t len = strlen(names[f]);

			ck_assert_ptr_nonnull(line);
			ck_assert_int_eq(strncmp(line, names[f], len), 0);
			field[f] = line + len;
			line = f < 3 ? vectors_line(&text) : line;
		}
		output = bytes_hex(field[3]);
		out = expand(hash, bytes_hex(field[0]),
		    hkdf_label(output.len, field[1], bytes_hex(field[2])), output.len);
		ck_assert_mem_eq(out.p, output.p, output.len);
		out = expand(hash, bytes_hex(field[0]),
		    hkdf_label(output.len, "another", bytes_hex(field[2])), output.len);
		ck_assert_mem_ne(out.p, output.p, output.len);
		n++;
	}
	vectors_ran(path, n, n_in_file);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("hybrid vectors");
	TCase *tc = tcase_create("hybrid");

	tcase_set_timeout(tc, 300);
	tcase_add_checked_fixture(tc, NULL, vectors_forget);
	tcase_add_test(tc, test_composed);
	tcase_add_test(tc, test_s2n_secrets);
	tcase_add_test(tc, test_traces);
	tcase_add_test(tc, test_hkdf_label);
	suite_add_tcase(suite, tc);
	return vectors_main(argc, argv, suite);
}
