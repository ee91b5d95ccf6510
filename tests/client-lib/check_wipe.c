/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * After each call, failure and end, no byte string that was secret is left in this
 * process: all its writable memory is searched, heap, stack and rooms alike.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "peer.h"

#define ALG    MLKEMCLIENT_ML_KEM_768
#define SHARE  1184
#define CT     1088
#define SECRET 32

/* What is looked for is kept inverted, so that the search does not find itself. */
struct needle {
	uint8_t inverted[24];
};

static struct needle
needle_of(const uint8_t *secret)
{
	struct needle needle;

	for (size_t i = 0; i < sizeof(needle.inverted); i++)
		needle.inverted[i] = secret[i] ^ 0xff;
	return needle;
}

static bool
matches(const uint8_t *p, const struct needle *needle)
{
	for (size_t i = 0; i < sizeof(needle->inverted); i++)
		if ((p[i] ^ needle->inverted[i]) != 0xff)
			return false;
	return true;
}

static unsigned
search(const uint8_t *data, size_t len, const struct needle *needle)
{
	const uint8_t *p = data, *end = data + len - sizeof(*needle) + 1;
	unsigned n = 0;

	if (len < sizeof(*needle))
		return 0;
	while ((p = memchr(p, needle->inverted[0] ^ 0xff, (size_t)(end - p))) != NULL)
		n += matches(p++, needle);
	return n;
}

/*
 * Copies in the memory of this process. The window through which it is searched is a
 * mapping of its own (shared, so that it joins no other), wiped and passed over.
 */
#define WINDOW_BYTES ((size_t)1 << 20)
#define SHADOW_BYTES ((size_t)1 << 30) /* only a sanitizer's own maps are so large */

static unsigned
n_copies(const struct needle *needle)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int mem = open("/proc/self/mem", O_RDONLY);
	uint8_t *window = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char line[512];
	uint64_t start, end;
	unsigned n = 0;

	ck_assert(maps != NULL && mem >= 0 && window != MAP_FAILED);
	while (fgets(line, sizeof(line), maps) != NULL) {
		char *mode;

		start = strtoull(line, &mode, 16);
		end = strtoull(mode + 1, &mode, 16);
		if (mode[1] != 'r' || mode[2] != 'w' || start == (uintptr_t)window ||
		    end - start > SHADOW_BYTES)
			continue;
		while (start < end) {
			size_t len =
			    end - start < WINDOW_BYTES ? end - start : WINDOW_BYTES;
			ssize_t got = pread(mem, window, len, (off_t)start);

			if (got > 0)
				n += search(window, (size_t)got, needle);
			/* a copy may lie across the seam */
			start += start + len < end ? len - sizeof(*needle) + 1 : len;
		}
	}
	munmap(window, WINDOW_BYTES);
	close(mem);
	fclose(maps);
	return n;
}

/* The peer's secret for a share of this byte, as peer_secret_matches() knows it. */
static struct needle
peer_needle(const uint8_t *input)
{
	uint8_t secret[32];
	struct needle needle;

	for (size_t i = 0; i < sizeof(secret); i++)
		secret[i] = input[i] ^ 0x5a;
	needle = needle_of(secret);
	mlkemclient_wipe(secret, sizeof(secret));
	return needle;
}

static uint8_t share[SHARE], ct[CT], secret[SECRET];

static void
make_share(void)
{
	for (size_t i = 0; i < sizeof(share); i++)
		share[i] = (uint8_t)(i * 31 + 7);
}

/* Through the daemon: the answer passes the input buffer and the decoder's memory. */
static unsigned
copies_after_encaps(void)
{
	struct peer peer;
	struct mlkemclient *client;
	struct needle needle;
	unsigned n;

	make_share();
	needle = peer_needle(share);
	peer_start(&peer, peer_honest);
	client = peer_client(&peer, true, 5000000);
	ck_assert_int_eq(
	    mlkemclient_encaps(client, ALG, share, SHARE, ct, CT, secret, SECRET), 0);
	ck_assert(peer_secret_matches(secret, SECRET, share));
	/* here it is, so the search works */
	ck_assert_uint_ge(n_copies(&needle), 1);
	mlkemclient_wipe(secret, SECRET);
	n = n_copies(&needle);
	mlkemclient_free(client);
	n += n_copies(&needle);
	peer_stop(&peer);
	return n;
}

START_TEST(nothing_left_of_an_answer)
{
	ck_assert_uint_eq(copies_after_encaps(), 0);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: one wipe left out is caught. */
START_TEST(something_left_is_found)
{
	setenv("MLKEMD_FAULT", "client-no-wipe", 1);
	ck_assert_uint_gt(copies_after_encaps(), 0);
}
END_TEST
#endif

static void
lie_at_the_end(Mlkemd__V1__Response *response)
{
	response->encapsulated->items[1]->secret.len = 31;
}

static void
script_lie(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;
	uint8_t *frame;
	size_t len;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		frame = peer_reply(request, lie_at_the_end, &len);
		peer_write(fd, frame, len);
	}
}

static void
script_half(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;
	uint8_t *frame;
	size_t len;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		frame = peer_reply(request, NULL, &len);
		peer_write(fd, frame, len - 1); /* all but the last byte */
	}
}

START_TEST(nothing_left_of_a_failure)
{
	peer_script *scripts[] = {script_lie, script_half};
	static uint8_t cts[2][CT], secrets[2][SECRET];
	struct mlkemclient_encaps_item items[2];
	struct peer peer;
	struct mlkemclient *client;
	struct needle needle;

	make_share();
	needle = peer_needle(share);
	peer_start(&peer, scripts[_i]);
	client = peer_client(&peer, true, 200000);
	for (int i = 0; i < 2; i++)
		items[i] = (struct mlkemclient_encaps_item){
		    share, SHARE, cts[i], secrets[i], 1};
	ck_assert_int_lt(mlkemclient_encaps_batch(client, ALG, items, 2), 0);
	ck_assert_uint_eq(n_copies(&needle), 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/*
 * Here: the compact key, its seed's result and the secret, after use, release and end.
 */
START_TEST(nothing_left_of_local_work)
{
	struct mlkemclient_options opts = {
	    .size = sizeof(opts), .route = MLKEMCLIENT_ROUTE_LOCAL};
	struct mlkemclient_key *used, *unused;
	struct needle key_needle, unused_needle, secret_needle;
	struct mlkemclient *client;

	ck_assert_int_eq(mlkemclient_new(&client, &opts), 0);
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &unused), 0);
	ck_assert_int_eq(mlkemclient_keygen(client, ALG, share, SHARE, &used), 0);
	key_needle = needle_of(used->secret);
	unused_needle = needle_of(unused->secret);
	ck_assert_uint_eq(n_copies(&key_needle), 1);
	ck_assert_uint_eq(n_copies(&unused_needle), 1);

	ck_assert_int_eq(
	    mlkemclient_encaps(client, ALG, share, SHARE, ct, CT, secret, SECRET), 0);
	secret_needle = needle_of(secret);
	ck_assert_uint_eq(n_copies(&secret_needle), 1);
	mlkemclient_wipe(secret, SECRET);
	ck_assert_int_eq(mlkemclient_decaps(client, used, ct, CT, secret, SECRET), 0);
	ck_assert_uint_eq(n_copies(&secret_needle), 1);
	mlkemclient_wipe(secret, SECRET);
	ck_assert_uint_eq(n_copies(&secret_needle), 0);

	/*
	 * spent, so gone, although the object lives on; the other one goes when freed
	 */
	ck_assert_uint_eq(n_copies(&key_needle), 0);
	ck_assert_uint_eq(n_copies(&unused_needle), 1);
	mlkemclient_key_free(client, unused);
	ck_assert_uint_eq(n_copies(&unused_needle), 0);
	mlkemclient_key_free(client, used);
	mlkemclient_free(client);
}
END_TEST

/* A private key on its way to the daemon. */
START_TEST(nothing_left_of_a_request)
{
	static uint8_t private_key[2400];
	struct peer peer;
	struct mlkemclient *client;
	struct needle needle;

	for (size_t i = 0; i < sizeof(private_key); i++)
		private_key[i] = (uint8_t)(i * 13 + 5);
	needle = needle_of(private_key + 256);
	peer_start(&peer, peer_honest);
	client = peer_client(&peer, true, 5000000);
	ck_assert_int_eq(mlkemclient_decaps_with(client, ALG, private_key,
			     sizeof(private_key), ct, CT, secret, SECRET),
	    0);
	/* the pattern comes again after 256 bytes: some copies are the caller's own */
	mlkemclient_wipe(private_key, sizeof(private_key));
	ck_assert_uint_eq(n_copies(&needle), 0);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("wipe");
	TCase *tc = tcase_create("wipe");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, nothing_left_of_an_answer);
	tcase_add_loop_test(tc, nothing_left_of_a_failure, 0, 2);
	tcase_add_test(tc, nothing_left_of_local_work);
	tcase_add_test(tc, nothing_left_of_a_request);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, something_left_is_found);
#endif
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
