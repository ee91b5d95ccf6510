/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser and the builder of `mlkemctl tls`: whole, in pieces, cut short, and with
 * every byte wrong in turn. The stalls of a flight, which loopback never shows.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd_tls.h"

#define MS 1000000ull

/* A ServerHello with X25519MLKEM768, a ChangeCipherSpec and 700 encrypted bytes. */
static size_t
make_flight(uint8_t *out)
{
	static const uint8_t head[] = {22, 3, 3, 0x04, 0x9a, 2, 0x00, 0x04, 0x96, 3, 3};
	static const uint8_t rest[] = {0, 0x13, 0x02, 0, 0x04, 0x6e, 0, 43, 0, 2, 3, 4,
	    0, 51, 0x04, 0x64, 0x11, 0xec, 0x04, 0x60};
	static const uint8_t ccs[] = {20, 3, 3, 0, 1, 1};
	static const uint8_t data[] = {23, 3, 3, 0x02, 0xbc};
	size_t len = 0;

	memcpy(out, head, sizeof(head));
	len += sizeof(head);
	memset(out + len, 'r', 32);
	len += 32;
	memcpy(out + len, rest, sizeof(rest));
	len += sizeof(rest);
	memset(out + len, 's', 1120);
	len += 1120;
	memcpy(out + len, ccs, sizeof(ccs));
	len += sizeof(ccs);
	memcpy(out + len, data, sizeof(data));
	len += sizeof(data);
	memset(out + len, 'e', 700);
	return len + 700;
}

static void
check_flight(const struct tls_flight *flight, size_t len)
{
	ck_assert(flight->hello && !flight->retry && !flight->not_tls);
	ck_assert(!flight->alerted && !flight->done);
	ck_assert_uint_eq(flight->version, TLS_1_3);
	ck_assert_uint_eq(flight->cipher, 0x1302);
	ck_assert_uint_eq(flight->group, 0x11ec);
	ck_assert_uint_eq(flight->share_len, 1120);
	ck_assert_uint_eq(flight->n_records, 3);
	ck_assert_uint_eq(flight->bytes, len);
	ck_assert_uint_eq(flight->sealed_bytes, 700);
	ck_assert_uint_eq(flight->hello_bytes, 5 + 0x49a);
}

START_TEST(test_whole_and_in_pieces)
{
	static const size_t steps[] = {1, 2, 3, 5, 7, 64, 1000, 100000};
	uint8_t bytes[4096];
	size_t len = make_flight(bytes);

	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		struct tls_flight flight = {0};

		for (size_t at = 0; at < len; at += steps[s]) {
			size_t left = len - at;

			tls_flight_feed(
			    &flight, bytes + at, left < steps[s] ? left : steps[s]);
		}
		check_flight(&flight, len);
	}
}
END_TEST

/* What was not there yet must not be found; sanitizers watch the rest. */
START_TEST(test_cut_anywhere)
{
	uint8_t bytes[4096];
	size_t len = make_flight(bytes);

	for (size_t cut = 0; cut < len; cut++) {
		struct tls_flight flight = {0};

		tls_flight_feed(&flight, bytes, cut);
		ck_assert_int_eq(flight.hello, cut >= 5 + 0x49a);
	}
}
END_TEST

START_TEST(test_any_byte_wrong)
{
	static const uint8_t flips[] = {0x01, 0x80, 0xff};
	uint8_t bytes[4096];
	size_t len = make_flight(bytes);

	for (size_t i = 0; i < 3 * len; i++) {
		struct tls_flight flight = {0};
		uint8_t *at = &bytes[i / 3], old = *at;

		*at = (uint8_t)(old ^ flips[i % 3]);
		tls_flight_feed(&flight, bytes, len);
		*at = old;
	}
	for (unsigned seed = 0; seed < 2000; seed++) {
		struct tls_flight flight = {0};
		unsigned state = seed;

		for (size_t i = 0; i < 600; i++) {
			state = state * 1103515245u + 12345u;
			bytes[i] = (uint8_t)(state >> 16);
		}
		/* Enough of a head that the noise reaches the extensions. */
		memcpy(bytes, "\x16\x03\x03\x02\x53\x02\x00\x02\x4f", 9);
		bytes[43] = (uint8_t)(seed % 40);
		tls_flight_feed(&flight, bytes, 600);
	}
}
END_TEST

START_TEST(test_tls_1_2)
{
	static const uint8_t hello[] = {22, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3};
	static const uint8_t rest[] = {0, 0xc0, 0x2b, 0};
	/* ServerKeyExchange across two records, then ServerHelloDone in the second */
	static const uint8_t key1[] = {22, 3, 3, 0, 6, 12, 0, 0, 8, 3, 0x00};
	static const uint8_t key2[] = {
	    22, 3, 3, 0, 10, 0x17, 5, 1, 2, 3, 4, 14, 0, 0, 0};
	struct tls_flight flight = {0};
	uint8_t random[32];

	memset(random, 'r', sizeof(random));
	tls_flight_feed(&flight, hello, sizeof(hello));
	tls_flight_feed(&flight, random, sizeof(random));
	tls_flight_feed(&flight, rest, sizeof(rest));
	ck_assert(flight.hello && !flight.done);
	ck_assert_uint_eq(flight.version, TLS_1_2);
	tls_flight_feed(&flight, key1, sizeof(key1));
	ck_assert_uint_eq(flight.group, 0);
	tls_flight_feed(&flight, key2, sizeof(key2));
	ck_assert(flight.done && !flight.not_tls);
	ck_assert_uint_eq(flight.group, 0x17);
}
END_TEST

START_TEST(test_stalls)
{
	const uint64_t rtt = 20 * MS;
	struct tls_arrival a[4] = {
	    {0, 7000}, {1 * MS, 7000}, {20 * MS, 3000}, {41 * MS, 100}};

	ck_assert_uint_eq(tls_flight_stalls(a, 4, rtt, 1400), 2);
	ck_assert_uint_eq(tls_flight_stalls(a, 3, rtt, 1400), 1);
	ck_assert_uint_eq(tls_flight_stalls(a, 2, rtt, 1400), 0);
	ck_assert_uint_eq(tls_flight_stalls(a, 0, rtt, 1400), 0);
	/* Too little was sent for a window to be full: the server was thinking. */
	a[0].bytes = a[1].bytes = 100;
	ck_assert_uint_eq(tls_flight_stalls(a, 3, rtt, 1400), 0);
	/* On loopback every pause is longer than a round trip. */
	a[0].bytes = 7000;
	a[1].time_ns = 300000;
	ck_assert_uint_eq(tls_flight_stalls(a, 2, 20000, 1400), 0);
}
END_TEST

START_TEST(test_groups)
{
	const struct ctl ctl = {0};
	uint16_t ids[TLS_MAX_GROUPS];
	size_t n = 0;

	ck_assert_int_eq(
	    tls_groups_parse(&ctl,
		"x25519mlkem768:X25519,p-256:secp384r1:0x11EB:ML-KEM-768", ids, &n),
	    CTL_OK);
	ck_assert_uint_eq(n, 6);
	ck_assert_uint_eq(ids[0], 0x11ec);
	ck_assert_uint_eq(ids[1], 0x1d);
	ck_assert_uint_eq(ids[2], 0x17);
	ck_assert_uint_eq(ids[3], 0x18);
	ck_assert_uint_eq(ids[4], 0x11eb);
	ck_assert_uint_eq(ids[5], 0x201);
	ck_assert_int_eq(tls_groups_parse(&ctl, "X25519:no", ids, &n), CTL_USAGE);
	ck_assert_int_eq(tls_groups_parse(&ctl,
			     "x448:x448:x448:x448:x448:x448:x448:x448:x448:x448:x448:"
			     "x448:x448:x448:x448:x448:x448",
			     ids, &n),
	    CTL_USAGE);
}
END_TEST

/* A hello that does not fit is no hello; one that fits is as long as it says. */
START_TEST(test_builder_bounds)
{
	struct tls_offer offer = {.servername = "example.org", .n_groups = 2};
	uint8_t out[TLS_MAX_HELLO];
	size_t len = tls_hello_build(&offer, out, sizeof(out));

	ck_assert_uint_gt(len, 150);
	ck_assert_uint_eq((size_t)out[3] << 8 | out[4], len - 5);
	ck_assert_uint_eq((size_t)out[7] << 8 | out[8], len - 9);
	for (size_t size = 0; size < len; size++) {
		memset(out, 0xa5, sizeof(out));
		ck_assert_uint_eq(tls_hello_build(&offer, out, size), 0);
		ck_assert_uint_eq(out[size], 0xa5);
	}
	ck_assert_uint_eq(tls_hello_build(&offer, out, len), len);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cmd_tls");
	TCase *tc = tcase_create("cmd_tls");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, test_whole_and_in_pieces);
	tcase_add_test(tc, test_cut_anywhere);
	tcase_add_test(tc, test_any_byte_wrong);
	tcase_add_test(tc, test_tls_1_2);
	tcase_add_test(tc, test_stalls);
	tcase_add_test(tc, test_groups);
	tcase_add_test(tc, test_builder_bounds);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
