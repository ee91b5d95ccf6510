/* SPDX-License-Identifier: Apache-2.0 */
/* C2SP/wycheproof: ML-KEM, X25519, HKDF. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "kem/x25519.h"
#include "vectors.h"

#define FILE_FIELDS  "algorithm schema numberOfTests header notes testGroups"
#define GROUP_FIELDS "type source parameterSet curve keySize tests"

/* Checks the file's own account of itself and returns its groups. */
static struct json_object *
file_groups(struct json_object *file, const char *algorithm)
{
	json_only(file, FILE_FIELDS);
	ck_assert_str_eq(json_text(file, "algorithm"), algorithm);
	ck_assert_uint_eq(json_number(file, "numberOfTests"), vectors_count(file));
	return json_get(file, "testGroups");
}

static bool
is_valid(struct json_object *test)
{
	const char *result = json_text(test, "result");

	ck_assert(strcmp(result, "valid") == 0 || strcmp(result, "invalid") == 0);
	return strcmp(result, "valid") == 0;
}

static bool
has_flag(struct json_object *test, const char *flag)
{
	struct json_object *flags = json_get(test, "flags");

	for (size_t i = 0; i < json_len(flags); i++) {
		if (strcmp(json_object_get_string(json_at(flags, i)), flag) == 0)
			return true;
	}
	return false;
}

static void
keygen_case(struct vector *v, struct json_object *test)
{
	json_only(test, "tcId comment flags seed ek dk result");
	ck_assert(is_valid(test));
	v->op = VECTOR_KEYGEN;
	v->seed = json_bytes(test, "seed");
	v->share = json_bytes(test, "ek");
	v->dk = json_bytes(test, "dk");
}

static void
encaps_case(struct vector *v, struct json_object *test)
{
	json_only(test, "tcId comment flags m ek c K result");
	v->op = VECTOR_ENCAPS;
	v->share = json_bytes(test, "ek");
	v->m = json_bytes(test, "m");
	if (is_valid(test)) {
		v->ct = json_bytes(test, "c");
		v->shared = json_bytes(test, "K");
	} else if (v->share.len != kem_alg_info(v->alg)->share_bytes) {
		v->status = KEM_E_LENGTH;
	} else {
		v->status = KEM_E_SHARE;
	}
}

/* Decapsulation with a seed; if the encapsulation key is there, that is checked too. */
static void
seed_case(struct vector_list *list, struct vector *v, struct json_object *test)
{
	struct vector keygen;

	json_only(test, "tcId comment flags seed ek c K result");
	v->op = VECTOR_DECAPS;
	v->seed = json_bytes(test, "seed");
	v->ct = json_bytes(test, "c");
	if (is_valid(test))
		v->shared = json_bytes(test, "K");
	else
		v->status =
		    KEM_E_LENGTH; /* all of them have a seed or c of another length */
	if (!json_has(test, "ek"))
		return;
	keygen = (struct vector){.op = VECTOR_KEYGEN,
	    .alg = v->alg,
	    .id = v->id,
	    .seed = v->seed,
	    .share = json_bytes(test, "ek")};
	*vector_add(list) = keygen;
}

static void
expanded_case(struct vector *v, struct json_object *test)
{
	json_only(test, "tcId comment flags dk c ek K result");
	v->op = VECTOR_DECAPS;
	v->dk = json_bytes(test, "dk");
	v->ct = json_bytes(test, "c");
	if (is_valid(test))
		v->shared = json_bytes(test, "K");
	else if (has_flag(test, "InvalidDecapsulationKey"))
		v->status = KEM_E_KEY;
	else
		v->status = KEM_E_LENGTH;
}

static void
mlkem_case(struct vector_list *list, const char *type, struct json_object *test,
    enum kem_alg alg)
{
	struct vector v = {.alg = alg, .id = (unsigned)json_number(test, "tcId")};

	if (strcmp(type, "MLKEMKeyGen") == 0)
		keygen_case(&v, test);
	else if (strcmp(type, "MLKEMEncapsTest") == 0)
		encaps_case(&v, test);
	else if (strcmp(type, "MLKEMTest") == 0)
		seed_case(list, &v, test);
	else if (strcmp(type, "MLKEMDecapsValidationTest") == 0)
		expanded_case(&v, test);
	else
		ck_abort_msg("unknown type %s", type);
	*vector_add(list) = v;
}

static const char *const mlkem_files[] = {
    "wycheproof/mlkem_512_keygen_seed_test.json",
    "wycheproof/mlkem_768_keygen_seed_test.json",
    "wycheproof/mlkem_1024_keygen_seed_test.json",
    "wycheproof/mlkem_512_encaps_test.json",
    "wycheproof/mlkem_768_encaps_test.json",
    "wycheproof/mlkem_768_test.json",
    "wycheproof/mlkem_1024_test.json",
    "wycheproof/mlkem_768_semi_expanded_decaps_test.json",
};
#define N_MLKEM_FILES (int)(sizeof(mlkem_files) / sizeof(mlkem_files[0]))

START_TEST(test_mlkem)
{
	struct vector_list list = {.path = mlkem_files[_i]};
	struct json_object *file = vectors_json(list.path);
	struct json_object *groups = file_groups(file, "ML-KEM");
	size_t n = 0;

	for (size_t g = 0; g < json_len(groups); g++) {
		struct json_object *group = json_at(groups, g);
		struct json_object *tests = json_get(group, "tests");

		json_only(group, GROUP_FIELDS);
		for (size_t t = 0; t < json_len(tests); t++, n++)
			mlkem_case(&list, json_text(group, "type"), json_at(tests, t),
			    json_alg(group, "parameterSet"));
	}
	vectors_ran(list.path, n, vectors_count(file));
	vectors_check(&list);
}
END_TEST

struct x25519_case {
	struct bytes private_key, peer, shared;
	bool is_zero;
};

static struct x25519_case
x25519_read(struct json_object *test)
{
	struct x25519_case c;

	json_only(test, "tcId comment flags public private shared result");
	c.private_key = json_bytes(test, "private");
	c.peer = json_bytes(test, "public");
	c.shared = json_bytes(test, "shared");
	c.is_zero = has_flag(test, "ZeroSharedSecret");
	ck_assert_uint_eq(c.private_key.len, 32);
	ck_assert_uint_eq(c.peer.len, 32);
	ck_assert_uint_eq(c.shared.len, 32);
	ck_assert(c.is_zero || strcmp(json_text(test, "result"), "valid") == 0 ||
		  strcmp(json_text(test, "result"), "acceptable") == 0);
	return c;
}

/* Groups of n over all cases. Returns how many were wrong. */
static size_t
x25519_run(const struct x25519_case *cases, size_t n_cases, size_t n)
{
	struct x25519_item items[KEM_GROUP_MAX];
	uint8_t out[KEM_GROUP_MAX][32];
	size_t n_wrong = 0;

	for (size_t first = 0; first < n_cases; first += n) {
		size_t n_group = n_cases - first < n ? n_cases - first : n;

		for (size_t i = 0; i < n_group; i++)
			items[i] = (struct x25519_item){
			    .private_key = cases[first + i].private_key.p,
			    .peer = cases[first + i].peer.p,
			    .shared = out[i]};
		ck_assert_int_eq(
		    x25519_shared(test_kem(), items, n_group, test_scratch()), 0);
		for (size_t i = 0; i < n_group; i++)
			n_wrong += items[i].is_zero != cases[first + i].is_zero ||
				   memcmp(out[i], cases[first + i].shared.p, 32) != 0;
	}
	return n_wrong;
}

START_TEST(test_x25519)
{
	static const size_t groups[] = {1, 2, 7, 8};
	const char *path = "wycheproof/x25519_test.json";
	struct json_object *file = vectors_json(path);
	struct json_object *group, *tests;
	struct x25519_case *cases;
	size_t n, n_zero = 0;

	ck_assert_uint_eq(json_len(file_groups(file, "XDH")), 1);
	group = json_at(json_get(file, "testGroups"), 0);
	json_only(group, GROUP_FIELDS);
	ck_assert_str_eq(json_text(group, "curve"), "curve25519");
	tests = json_get(group, "tests");
	n = json_len(tests);
	cases = vectors_alloc(n * sizeof(*cases));
	for (size_t i = 0; i < n; i++) {
		cases[i] = x25519_read(json_at(tests, i));
		n_zero += cases[i].is_zero;
	}
	ck_assert_uint_gt(n_zero, 0);
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_eq(x25519_run(cases, n, groups[i]), 0);
	for (size_t i = 0; i < n; i++)
		cases[i].shared.p[i % 32] ^= 1;
	ck_assert_uint_eq(x25519_run(cases, n, 8), n);
	vectors_ran(path, n, vectors_count(file));
}
END_TEST

/* Returns whether the case came out as it says. flip is xored into what is expected. */
static bool
hkdf_is_right(struct json_object *test, enum kem_hash hash, uint8_t flip)
{
	struct bytes ikm = json_bytes(test, "ikm"), salt = json_bytes(test, "salt");
	struct bytes info = json_bytes(test, "info"), okm = json_bytes(test, "okm");
	const size_t len = json_number(test, "size");
	uint8_t *out;

	json_only(test, "tcId comment flags ikm salt info size okm result");
	/* too long a result is not asked of kem_hkdf(): its caller has the limit */
	if (!is_valid(test))
		return has_flag(test, "SizeTooLarge") && len > KEM_HKDF_MAX(hash) &&
		       flip == 0;
	out = vectors_alloc(len);
	ck_assert_uint_eq(okm.len, len);
	ck_assert_uint_le(len, KEM_HKDF_MAX(hash));
	ck_assert_int_eq(kem_hkdf(test_kem(), hash, ikm.p, ikm.len, salt.p, salt.len,
			     info.p, info.len, out, len),
	    0);
	okm.p[len / 2] ^= flip;
	return memcmp(out, okm.p, len) == 0;
}

START_TEST(test_hkdf)
{
	const char *path = _i ? "wycheproof/hkdf_sha384_test.json"
			      : "wycheproof/hkdf_sha256_test.json";
	struct json_object *file = vectors_json(path);
	struct json_object *groups =
	    file_groups(file, _i ? "HKDF-SHA-384" : "HKDF-SHA-256");
	const enum kem_hash hash = _i ? KEM_HASH_SHA384 : KEM_HASH_SHA256;
	size_t n = 0;

	for (size_t g = 0; g < json_len(groups); g++) {
		struct json_object *tests = json_get(json_at(groups, g), "tests");

		json_only(json_at(groups, g), GROUP_FIELDS);
		for (size_t t = 0; t < json_len(tests); t++, n++) {
			ck_assert_msg(hkdf_is_right(json_at(tests, t), hash, 0),
			    "case %zu", json_number(json_at(tests, t), "tcId"));
			ck_assert(!hkdf_is_right(json_at(tests, t), hash, 4));
		}
	}
	vectors_ran(path, n, vectors_count(file));
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("wycheproof");
	TCase *tc = tcase_create("wycheproof");

	tcase_set_timeout(tc, 600);
	tcase_add_checked_fixture(tc, NULL, vectors_forget);
	tcase_add_loop_test(tc, test_mlkem, 0, N_MLKEM_FILES);
	tcase_add_test(tc, test_x25519);
	tcase_add_loop_test(tc, test_hkdf, 0, 2);
	suite_add_tcase(suite, tc);
	return vectors_main(argc, argv, suite);
}
