/* SPDX-License-Identifier: Apache-2.0 */
/* Wycheproof's X25519 cases through the eight lanes: every case in every lane. */
#include <check.h>
#include <string.h>

#include "kem/arch/x86_64-avx512/x25519.h"
#include "tests/kem/fe_lanes.h"
#include "vectors.h"

#define PATH "wycheproof/x25519_test.json"
#define N    X25519_LANES

struct x25519_case {
	struct bytes private_key, peer, shared;
	bool is_zero;
};

static struct x25519_case *cases;
static size_t n_cases;

static void
cases_read(void)
{
	struct json_object *file = vectors_json(PATH);
	struct json_object *groups = json_get(file, "testGroups");
	struct json_object *tests;

	ck_assert_uint_eq(json_len(groups), 1);
	tests = json_get(json_at(groups, 0), "tests");
	n_cases = json_len(tests);
	cases = vectors_alloc(n_cases * sizeof *cases);
	for (size_t i = 0; i < n_cases; i++) {
		struct json_object *test = json_at(tests, i);

		json_only(test, "tcId comment flags public private shared result");
		cases[i].private_key = json_bytes(test, "private");
		cases[i].peer = json_bytes(test, "public");
		cases[i].shared = json_bytes(test, "shared");
		cases[i].is_zero = test_is_zero(cases[i].shared.p, 32);
		ck_assert_uint_eq(cases[i].private_key.len, 32);
		ck_assert_uint_eq(cases[i].peer.len, 32);
		ck_assert_uint_eq(cases[i].shared.len, 32);
	}
	vectors_ran(PATH, n_cases, vectors_count(file));
}

/* Lane i works case n + 37 i: over all n, every lane meets every case. */
static size_t
cases_run(void)
{
	static _Alignas(64) uint8_t work[X25519_WORK_BYTES];
	size_t n_wrong = 0;

	for (size_t n = 0; n < n_cases; n++) {
		const uint8_t *keys[N], *peers[N];
		uint8_t shared[N][32], *out[N];
		const struct x25519_case *c[N];
		unsigned zeros;

		for (size_t i = 0; i < N; i++) {
			c[i] = &cases[(n + 37 * i) % n_cases];
			keys[i] = c[i]->private_key.p;
			peers[i] = c[i]->peer.p;
			out[i] = shared[i];
		}
		zeros = x25519_shared8_avx512(out, keys, peers, work);
		for (size_t i = 0; i < N; i++)
			n_wrong += memcmp(shared[i], c[i]->shared.p, 32) != 0 ||
				   (zeros >> i & 1) != c[i]->is_zero;
	}
	return n_wrong;
}

START_TEST(test_wycheproof)
{
	cases_read();
	ck_assert_uint_eq(cases_run(), 0);
	for (unsigned i = 0; i < 2; i++) {
		cases[7].shared.p[31 * i] ^= 1;
		ck_assert_uint_eq(cases_run(), N);
		cases[7].shared.p[31 * i] ^= 1;
	}
	vectors_forget();
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("x25519_lanes");
	TCase *tcase = tcase_create("x25519_lanes");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_wycheproof);
	suite_add_tcase(suite, tcase);
	if (!lanes_can_run()) {
		srunner_free(srunner_create(suite));
		return 77;
	}
	return vectors_main(argc, argv, suite);
}
