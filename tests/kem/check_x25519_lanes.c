/* SPDX-License-Identifier: Apache-2.0 */
/*
 * X25519 in eight lanes: values of RFC 7748, everything else against OpenSSL, called here
 * by itself and not through kem/x25519.c. MLKEMD_LONG=1: 10^6 random cases, not 10^4.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "fe_lanes.h"
#include "kem/arch/x86_64-avx512/x25519.h"
#include "tests/kem/kemtest.h"

#define N X25519_LANES

static _Alignas(64) uint8_t work[X25519_WORK_BYTES];

struct lanes {
	uint8_t key[N][32], peer[N][32];
	uint8_t shared[N][32], public_key[N][32];
	unsigned zeros;
};

static void
lanes_run(struct lanes *lanes)
{
	const uint8_t *keys[N], *peers[N];
	uint8_t *shared[N], *public_keys[N];

	for (unsigned i = 0; i < N; i++) {
		keys[i] = lanes->key[i];
		peers[i] = lanes->peer[i];
		shared[i] = lanes->shared[i];
		public_keys[i] = lanes->public_key[i];
	}
	memset(work, 0xc5, sizeof work);
	lanes->zeros = x25519_shared8_avx512(shared, keys, peers, work);
	memset(work, 0xc5, sizeof work);
	x25519_base8_avx512(public_keys, keys, work);
}

/* Mask of the lanes that differ from OpenSSL's results. */
static unsigned
lanes_wrong(const struct lanes *lanes)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < N; i++) {
		EVP_PKEY *own = EVP_PKEY_new_raw_private_key(
		    EVP_PKEY_X25519, NULL, lanes->key[i], 32);
		EVP_PKEY *peer = EVP_PKEY_new_raw_public_key(
		    EVP_PKEY_X25519, NULL, lanes->peer[i], 32);
		EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(own, NULL);
		uint8_t shared[32] = {0}, public_key[32];
		size_t len = 32, public_len = 32;
		bool is_zero;

		ck_assert_int_eq(EVP_PKEY_derive_init(ctx), 1);
		ck_assert_int_eq(EVP_PKEY_derive_set_peer(ctx, peer), 1);
		/* Fails on an all-zero result alone. */
		is_zero = EVP_PKEY_derive(ctx, shared, &len) != 1;
		ck_assert_int_eq(
		    EVP_PKEY_get_raw_public_key(own, public_key, &public_len), 1);
		if (is_zero != (lanes->zeros >> i & 1) ||
		    memcmp(shared, lanes->shared[i], 32) != 0 ||
		    memcmp(public_key, lanes->public_key[i], 32) != 0)
			wrong |= 1u << i;
		EVP_PKEY_CTX_free(ctx);
		EVP_PKEY_free(peer);
		EVP_PKEY_free(own);
	}
	return wrong;
}

static void
lanes_random(struct lanes *lanes, struct test_stream *stream)
{
	test_stream_fill(stream, lanes->key, sizeof lanes->key);
	test_stream_fill(stream, lanes->peer, sizeof lanes->peer);
}

static const struct {
	const char *key, *peer, *shared;
} multiplications[] = {
    {"a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
	"e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
	"c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"},
    {"4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
	"e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
	"95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"},
};

/* RFC 7748 5.2, in every lane, among random ones. */
START_TEST(test_multiplications)
{
	struct test_stream stream;
	uint8_t expected[32];
	struct lanes lanes;

	test_stream_init(&stream, test_seed(), "multiplications");
	for (unsigned lane = 0; lane < N; lane++) {
		lanes_random(&lanes, &stream);
		test_hex(lanes.key[lane], 32, multiplications[_i].key);
		test_hex(lanes.peer[lane], 32, multiplications[_i].peer);
		lanes_run(&lanes);
		test_hex(expected, 32, multiplications[_i].shared);
		ck_assert_mem_eq(lanes.shared[lane], expected, 32);
		ck_assert_uint_eq(lanes.zeros, 0);
	}
}
END_TEST

/* RFC 7748 5.2: k and u change places, 1000 times. All lanes but one run in step. */
START_TEST(test_iterated)
{
	struct lanes lanes = {0};
	uint8_t expected[32];

	for (unsigned lane = 0; lane < N; lane++)
		lanes.key[lane][0] = lanes.peer[lane][0] = lane == 3 ? 7 : 9;
	for (unsigned i = 1; i <= 1000; i++) {
		lanes_run(&lanes);
		memcpy(lanes.peer, lanes.key, sizeof lanes.peer);
		memcpy(lanes.key, lanes.shared, sizeof lanes.key);
		if (i == 1)
			test_hex(expected, 32,
			    "422c8e7a6227d7bca1350b3e2bb7279f"
			    "7897b87bb6854b783c60e80311ae3079");
		else if (i == 1000)
			test_hex(expected, 32,
			    "684cf59ba83309552800ef566f2f4d3c"
			    "1c3887c49360e3875f2eb94d99532c51");
		else
			continue;
		for (unsigned lane = 0; lane < N; lane++)
			ck_assert_int_eq(
			    memcmp(lanes.key[lane], expected, 32) != 0, lane == 3);
	}
}
END_TEST

/* RFC 7748 6.1; even lanes are Alice, odd ones Bob. */
START_TEST(test_exchange)
{
	static const char *const keys[] = {
	    "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
	    "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"};
	static const char *const public_keys[] = {
	    "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
	    "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"};
	struct lanes lanes;
	uint8_t expected[32];

	for (unsigned lane = 0; lane < N; lane++) {
		test_hex(lanes.key[lane], 32, keys[lane % 2]);
		test_hex(lanes.peer[lane], 32, public_keys[1 - lane % 2]);
	}
	lanes_run(&lanes);
	for (unsigned lane = 0; lane < N; lane++) {
		test_hex(expected, 32, public_keys[lane % 2]);
		ck_assert_mem_eq(lanes.public_key[lane], expected, 32);
		test_hex(expected, 32,
		    "4a5d9d5ba4ce2de1728e3bf480350f25"
		    "e07e21c947d19e3376f09b3c1e161742");
		ck_assert_mem_eq(lanes.shared[lane], expected, 32);
	}
}
END_TEST

/* Little-endian and first bytes, middle bytes, last byte. */
static const struct {
	uint8_t first, middle, last;
	bool is_low_order;
} edges[] = {
    {0x00, 0x00, 0x00, true}, {0x01, 0x00, 0x00, true}, {0x02, 0x00, 0x00, false},
    {0x09, 0x00, 0x00, false}, {0x12, 0x00, 0x00, false}, {0x13, 0x00, 0x00, false},
    {0xeb, 0xff, 0x7f, false},                            /* p - 2 */
    {0xec, 0xff, 0x7f, true},                             /* p - 1 */
    {0xed, 0xff, 0x7f, true},                             /* p */
    {0xee, 0xff, 0x7f, true},                             /* p + 1 */
    {0xef, 0xff, 0x7f, false},                            /* p + 2 */
    {0xff, 0xff, 0x7f, false},                            /* 2^255 - 1 */
    {0x00, 0x00, 0x80, true},                             /* bit 255 alone */
    {0xd9, 0xff, 0xff, false},                            /* 2p - 1 */
    {0xec, 0xff, 0xff, true},                             /* p - 1 and bit 255 */
    {0xff, 0xff, 0xff, false}, {0x00, 0x00, 0x40, false}, /* 2^254 */
};
#define N_EDGES (sizeof edges / sizeof edges[0])

static void
edge(uint8_t out[32], size_t i)
{
	memset(out, edges[i].middle, 32);
	out[0] = edges[i].first;
	out[31] = edges[i].last;
}

/* The two of order 8, which have no short form. */
static const char *const order8[] = {
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
};

/* Every edge as scalar with every edge as point, each lane with another pair. */
START_TEST(test_edges)
{
	for (size_t i = 0; i < N_EDGES; i++) {
		for (size_t j = 0; j < N_EDGES; j++) {
			struct lanes lanes;

			for (unsigned lane = 0; lane < N; lane++) {
				edge(lanes.key[lane], (i + lane) % N_EDGES);
				edge(lanes.peer[lane], j);
			}
			lanes_run(&lanes);
			ck_assert_uint_eq(lanes_wrong(&lanes), 0);
			ck_assert_uint_eq(
			    lanes.zeros, edges[j].is_low_order ? 0xff : 0);
		}
	}
}
END_TEST

/* Scalars of one bit, and of all but one: every signed digit, every step of the ladder. */
START_TEST(test_single_bits)
{
	struct test_stream stream;
	struct lanes lanes;

	test_stream_init(&stream, test_seed(), "single bits");
	for (unsigned bit = 0; bit < 256; bit += 4) {
		lanes_random(&lanes, &stream);
		memset(lanes.key, 0, sizeof lanes.key / 2);
		memset(lanes.key[N / 2], 0xff, sizeof lanes.key / 2);
		for (unsigned lane = 0; lane < N; lane++) {
			unsigned at = bit + lane % 4;

			lanes.key[lane][at / 8] ^= (uint8_t)(1u << at % 8);
		}
		lanes_run(&lanes);
		ck_assert_uint_eq(lanes_wrong(&lanes), 0);
	}
}
END_TEST

/* One point of low order among good ones: flagged, zero, and nobody else notices. */
START_TEST(test_low_order)
{
	struct test_stream stream;
	struct lanes good, lanes;

	test_stream_init(&stream, test_seed(), "low order");
	lanes_random(&good, &stream);
	lanes_run(&good);
	ck_assert_uint_eq(good.zeros, 0);
	for (size_t i = 0; i < N_EDGES + 2; i++) {
		for (unsigned lane = 0; lane < N; lane++) {
			if (i < N_EDGES && !edges[i].is_low_order)
				continue;
			lanes = good;
			if (i < N_EDGES)
				edge(lanes.peer[lane], i);
			else
				test_hex(lanes.peer[lane], 32, order8[i - N_EDGES]);
			lanes_run(&lanes);
			ck_assert_uint_eq(lanes.zeros, 1u << lane);
			ck_assert(test_is_zero(lanes.shared[lane], 32));
			memcpy(lanes.shared[lane], good.shared[lane], 32);
			ck_assert_mem_eq(lanes.shared, good.shared, sizeof good.shared);
		}
	}
}
END_TEST

START_TEST(test_random)
{
	const char *is_long = getenv("MLKEMD_LONG");
	unsigned n = is_long && strcmp(is_long, "1") == 0 ? 1000000 : 10000;
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), "random");
	for (unsigned i = 0; i < n; i += N) {
		struct lanes lanes;

		lanes_random(&lanes, &stream);
		lanes_run(&lanes);
		ck_assert_uint_eq(lanes_wrong(&lanes), 0);
	}
}
END_TEST

/* Any alignment, not a byte outside, an output where the input was, work wiped. */
START_TEST(test_memory)
{
	static uint8_t memory[2 * N][32 + 2 * 64];
	struct test_stream stream;
	struct lanes lanes;

	test_stream_init(&stream, test_seed(), "memory");
	lanes_random(&lanes, &stream);
	lanes_run(&lanes);
	for (unsigned offset = 0; offset < 64; offset++) {
		uint8_t *a[N], *b[N];
		unsigned i;

		memset(memory, 0xc5, sizeof memory);
		for (i = 0; i < N; i++) {
			a[i] = memcpy(memory[2 * i] + 64 - offset, lanes.key[i], 32);
			b[i] =
			    memcpy(memory[2 * i + 1] + 64 - offset, lanes.peer[i], 32);
		}
		memset(work, 0, sizeof work);
		x25519_shared8_avx512(
		    b, (const uint8_t *const *)a, (const uint8_t *const *)b, work);
		ck_assert(test_is_zero(work, sizeof work));
		x25519_base8_avx512(a, (const uint8_t *const *)a, work);
		ck_assert(test_is_zero(work, sizeof work));
		for (i = 0; i < N; i++) {
			ck_assert_mem_eq(a[i], lanes.public_key[i], 32);
			ck_assert_mem_eq(b[i], lanes.shared[i], 32);
			memset(a[i], 0xc5, 32);
			memset(b[i], 0xc5, 32);
		}
		for (size_t k = 0; k < sizeof memory; k++)
			ck_assert_uint_eq(((uint8_t *)memory)[k], 0xc5);
	}
}
END_TEST

/* A carry lost in one lane, one entry of the table one off: both are seen. */
START_TEST(test_control)
{
	struct test_stream stream;
	unsigned wrong = 0;

	if (!test_has_hooks())
		return;
	test_stream_init(&stream, test_seed(), "control");
	ck_assert_int_eq(setenv("MLKEMD_FAULT",
			     _i == 0 ? "x25519-lanes-carry" : "x25519-lanes-table", 1),
	    0);
	for (unsigned i = 0; i < 20; i++) {
		struct lanes lanes;

		lanes_random(&lanes, &stream);
		lanes_run(&lanes);
		wrong |= lanes_wrong(&lanes);
	}
	unsetenv("MLKEMD_FAULT");
	if (_i == 0)
		ck_assert_uint_eq(wrong, 1 << 5);
	else
		ck_assert_uint_ne(wrong, 0);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("x25519_lanes");
	TCase *tcase = tcase_create("x25519_lanes");

	tcase_set_timeout(tcase, 1500);
	tcase_add_loop_test(tcase, test_multiplications, 0, 2);
	tcase_add_test(tcase, test_iterated);
	tcase_add_test(tcase, test_exchange);
	tcase_add_test(tcase, test_edges);
	tcase_add_test(tcase, test_single_bits);
	tcase_add_test(tcase, test_low_order);
	tcase_add_test(tcase, test_random);
	tcase_add_test(tcase, test_memory);
	tcase_add_loop_test(tcase, test_control, 0, 2);
	suite_add_tcase(suite, tcase);
	if (!lanes_can_run()) {
		srunner_free(srunner_create(suite));
		return 77;
	}
	return test_main(argc, argv, suite);
}
