/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Refusals, and daemons of other versions than this library's. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "proto/wire.h"

#define PLENTY_US    5000000u
#define LENGTH_OF(a) (sizeof(a) / sizeof((a)[0]))

/* A daemon of a later version: fields, statuses and algorithms nobody here knows. */
static void
script_later_version(int fd, struct peer_counts *counts)
{
	/* Response.99 varint, Response.100 bytes, at the end of the message */
	static const uint8_t extra[] = "\x98\x06\x7f\xa2\x06\x03new";
	Mlkemd__V1__Request *request;

	while ((request = peer_read(fd, counts)) != NULL) {
		size_t len;
		uint8_t *frame = peer_reply(request, NULL, &len);

		wire_put_length(
		    frame, (uint32_t)(len - WIRE_HEADER_BYTES + sizeof(extra) - 1));
		peer_write(fd, frame, len);
		peer_write(fd, extra, sizeof(extra) - 1);
	}
}

START_TEST(fields_of_later_versions_are_passed_over)
{
	struct peer peer;
	struct mlkemclient *client;
	struct mlkemclient_info info;

	peer_start(&peer, script_later_version);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(peer_encaps(client, 9), 0);
	ck_assert_int_eq(mlkemclient_get_info(client, &info), 0);
	ck_assert_str_eq(info.backend, "peer");
	ck_assert_uint_eq(info.connection, 77);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

static const struct status_case {
	uint32_t status;
	int error;
} status_cases[] = {
    {10, MLKEMCLIENT_E_INVALID},
    {11, MLKEMCLIENT_E_UNSUPPORTED},
    {12, MLKEMCLIENT_E_INVALID},
    {20, MLKEMCLIENT_E_DENIED},
    {21, MLKEMCLIENT_E_NO_EXPORT},
    {30, MLKEMCLIENT_E_LENGTH},
    {31, MLKEMCLIENT_E_BAD_SHARE},
    {32, MLKEMCLIENT_E_BAD_KEY},
    {33, MLKEMCLIENT_E_ALGORITHM},
    {34, MLKEMCLIENT_E_ZERO_X25519},
    {40, MLKEMCLIENT_E_KEY_GONE},
    {50, MLKEMCLIENT_E_EXHAUSTED},
    {51, MLKEMCLIENT_E_TIMEOUT},
    {52, MLKEMCLIENT_E_DRAINING},
    {53, MLKEMCLIENT_E_TIMEOUT},
    {60, MLKEMCLIENT_E_INTERNAL},
    /* not known here: judged by their tens */
    {19, MLKEMCLIENT_E_UNSUPPORTED},
    {59, MLKEMCLIENT_E_EXHAUSTED},
    {69, MLKEMCLIENT_E_INTERNAL},
    {9999, MLKEMCLIENT_E_UNSUPPORTED},
    {0xffffffff, MLKEMCLIENT_E_UNSUPPORTED},
};

static uint32_t refused_status;

static void
script_refuse(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL)
		peer_refuse(fd, request, refused_status);
}

START_TEST(every_status_has_its_error)
{
	struct peer peer;
	struct mlkemclient *client;

	refused_status = status_cases[_i].status;
	peer_start(&peer, script_refuse);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(peer_encaps(client, 3), status_cases[_i].error);
	ck_assert_ptr_nonnull(
	    strstr(mlkemclient_last_message(client), "refused by the script"));
	ck_assert(link_is_open(client));
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

static void
script_refuse_hello(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request = peer_read(fd, counts);

	if (request != NULL)
		peer_refuse(fd, request, refused_status);
}

START_TEST(refused_hello_is_told)
{
	static const struct status_case cases[] = {{20, MLKEMCLIENT_E_DENIED},
	    {11, MLKEMCLIENT_E_UNSUPPORTED}, {50, MLKEMCLIENT_E_EXHAUSTED},
	    {10, MLKEMCLIENT_E_INVALID}};
	struct peer peer;
	struct mlkemclient *client;

	refused_status = cases[_i].status;
	peer_start(&peer, script_refuse_hello);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(peer_encaps(client, 3), cases[_i].error);
	ck_assert(!link_is_open(client));
	/* asked or not, the reason stays the same */
	ck_assert_int_eq(peer_encaps(client, 3), cases[_i].error);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

static void
lie_version_2(Mlkemd__V1__Response *r)
{
	r->hello->version = 2;
}

static void
script_other_version(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request = peer_read(fd, counts);
	uint8_t *frame;
	size_t len;

	if (request == NULL)
		return;
	frame = peer_reply(request, lie_version_2, &len);
	peer_write(fd, frame, len);
	peer_read(fd, counts);
}

START_TEST(version_that_was_not_offered)
{
	struct peer peer;
	struct mlkemclient *client;

	peer_start(&peer, script_other_version);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(mlkemclient_ping(client), MLKEMCLIENT_E_PROTOCOL);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("statuses");
	TCase *tc = tcase_create("statuses");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, fields_of_later_versions_are_passed_over);
	tcase_add_loop_test(tc, every_status_has_its_error, 0, LENGTH_OF(status_cases));
	tcase_add_loop_test(tc, refused_hello_is_told, 0, 4);
	tcase_add_test(tc, version_that_was_not_offered);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
