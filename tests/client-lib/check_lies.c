/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Answers that can't be right: nothing of them is used. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

#define HYBRID       MLKEMCLIENT_X25519MLKEM768
#define SHARE        1216
#define CT           1120
#define SECRET       64
#define PLENTY_US    5000000u
#define LENGTH_OF(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Lies. Each is told once on a fresh connection, to a batch of two key generations,
 * encapsulations or decapsulations.
 */
static void
lie_id(Mlkemd__V1__Response *r)
{
	r->id += 1;
}

static void
lie_old_id(Mlkemd__V1__Response *r)
{
	r->id -= 1; /* Hello's, answered already */
}

static void
lie_no_result(Mlkemd__V1__Response *r)
{
	r->result_case = MLKEMD__V1__RESPONSE__RESULT__NOT_SET;
}

static void
lie_other_result(Mlkemd__V1__Response *r)
{
	static Mlkemd__V1__ReleaseResult released = MLKEMD__V1__RELEASE_RESULT__INIT;

	r->released = &released;
	r->result_case = MLKEMD__V1__RESPONSE__RESULT_RELEASED;
}

static void
lie_one_item_less(Mlkemd__V1__Response *r)
{
	r->keys->n_items--; /* the same place in all three results */
}

static void
lie_one_item_more(Mlkemd__V1__Response *r)
{
	Mlkemd__V1__KeyItem **items = calloc(3, sizeof(void *));

	memcpy(items, r->keys->items, 2 * sizeof(void *));
	items[2] = items[1];
	r->keys->items = items;
	r->keys->n_items = 3;
}

static void
lie_share_short(Mlkemd__V1__Response *r)
{
	r->keys->items[1]->share.len--;
}

static void
lie_share_missing(Mlkemd__V1__Response *r)
{
	r->keys->items[0]->share.len = 0;
}

static void
lie_handle_short(Mlkemd__V1__Response *r)
{
	r->keys->items[1]->handle.len = 15;
}

static void
lie_handle_missing(Mlkemd__V1__Response *r)
{
	r->keys->items[1]->handle.len = 0;
}

static void
lie_private_key_given(Mlkemd__V1__Response *r)
{
	r->keys->items[1]->private_key = r->keys->items[1]->share;
}

static void
lie_ciphertext_short(Mlkemd__V1__Response *r)
{
	r->encapsulated->items[1]->ciphertext.len -= 32;
}

static void
lie_secret_short(Mlkemd__V1__Response *r)
{
	r->encapsulated->items[1]->secret.len = 32;
}

static void
lie_secret_missing(Mlkemd__V1__Response *r)
{
	r->encapsulated->items[0]->secret.len = 0;
}

static void
lie_decaps_secret_short(Mlkemd__V1__Response *r)
{
	r->decapsulated->items[1]->secret.len = 63;
}

static const struct lie {
	const char *name;
	enum job_op op;
	void (*tell)(Mlkemd__V1__Response *r);
} lies[] = {
    {"another id", JOB_ENCAPS, lie_id},
    {"an id answered before", JOB_ENCAPS, lie_old_id},
    {"no result", JOB_ENCAPS, lie_no_result},
    {"another operation's result", JOB_ENCAPS, lie_other_result},
    {"one key less", JOB_KEYGEN, lie_one_item_less},
    {"one key more", JOB_KEYGEN, lie_one_item_more},
    {"one secret less", JOB_ENCAPS, lie_one_item_less},
    {"a short share", JOB_KEYGEN, lie_share_short},
    {"no share", JOB_KEYGEN, lie_share_missing},
    {"a short handle", JOB_KEYGEN, lie_handle_short},
    {"no handle", JOB_KEYGEN, lie_handle_missing},
    {"a private key nobody asked for", JOB_KEYGEN, lie_private_key_given},
    {"a short ciphertext", JOB_ENCAPS, lie_ciphertext_short},
    {"a short secret", JOB_ENCAPS, lie_secret_short},
    {"no secret", JOB_ENCAPS, lie_secret_missing},
    {"a short secret of a decapsulation", JOB_DECAPS, lie_decaps_secret_short},
};

static const struct lie *told;

static void
script_lie(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		bool now =
		    (told->op == JOB_KEYGEN) ==
			(request->op_case == MLKEMD__V1__REQUEST__OP_GENERATE_KEYS) &&
		    (told->op == JOB_DECAPS) ==
			(request->op_case == MLKEMD__V1__REQUEST__OP_DECAPSULATE);
		size_t len;
		uint8_t *frame = peer_reply(request, now ? told->tell : NULL, &len);

		peer_write(fd, frame, len);
	}
}

static uint8_t batch_shares[2][SHARE], batch_cts[2][CT], batch_secrets[2][SECRET];

static int
batch_keygen(struct mlkemclient *client, struct mlkemclient_keygen_item *keys)
{
	memset(batch_shares, 0xee, sizeof(batch_shares));
	keys[0].share = batch_shares[0];
	keys[1].share = batch_shares[1];
	return mlkemclient_keygen_batch(client, HYBRID, keys, 2);
}

static int
batch_encaps(struct mlkemclient *client)
{
	struct mlkemclient_encaps_item items[2];

	memset(batch_cts, 0xee, sizeof(batch_cts));
	memset(batch_secrets, 0xee, sizeof(batch_secrets));
	for (int i = 0; i < 2; i++)
		items[i] = (struct mlkemclient_encaps_item){
		    batch_shares[i], SHARE, batch_cts[i], batch_secrets[i], 1};
	return mlkemclient_encaps_batch(client, HYBRID, items, 2);
}

static int
batch_decaps(struct mlkemclient *client, struct mlkemclient_keygen_item *keys)
{
	struct mlkemclient_decaps_item items[2];

	memset(batch_secrets, 0xee, sizeof(batch_secrets));
	for (int i = 0; i < 2; i++)
		items[i] = (struct mlkemclient_decaps_item){
		    keys[i].key, batch_cts[i], CT, batch_secrets[i], 1};
	return mlkemclient_decaps_batch(client, HYBRID, items, 2);
}

START_TEST(lies_give_nothing)
{
	struct mlkemclient_keygen_item keys[2] = {{0}};
	struct peer peer;
	struct mlkemclient *client;
	int err;

	told = &lies[_i];
	peer_start(&peer, script_lie);
	client = peer_client(&peer, true, PLENTY_US);
	err = batch_keygen(client, keys);
	if (told->op == JOB_KEYGEN) {
		ck_assert(keys[0].key == NULL && keys[1].key == NULL);
		ck_assert(is_zero(batch_shares, sizeof(batch_shares)));
	} else {
		ck_assert_int_eq(err, 0);
		err = batch_encaps(client);
	}
	if (told->op == JOB_ENCAPS) {
		ck_assert(is_zero(batch_cts, sizeof(batch_cts)));
		ck_assert(is_zero(batch_secrets, sizeof(batch_secrets)));
	} else if (told->op == JOB_DECAPS) {
		ck_assert_int_eq(err, 0);
		err = batch_decaps(client, keys);
		ck_assert(is_zero(batch_secrets, sizeof(batch_secrets)));
	}
	ck_assert_msg(err == MLKEMCLIENT_E_PROTOCOL, "%s: %d", told->name, err);
	ck_assert(!link_is_open(client));
	for (int i = 0; i < 2; i++)
		mlkemclient_key_free(client, keys[i].key);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

static void
tell_escapes(Mlkemd__V1__Response *response)
{
	static char version[] = "9\x1b[31m\n", backend[] = "\x9b\xff\x7f", memory[200];

	memset(memory, '\r', sizeof(memory) - 1);
	response->info->server_version = version;
	response->info->backend = backend;
	response->info->secret_memory = memory;
}

static void
script_escapes(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;
	uint8_t *frame;
	size_t len;

	peer_greet(fd, counts);
	request = peer_read(fd, counts);
	frame = peer_reply(request, tell_escapes, &len);
	peer_write(fd, frame, len);
	peer_read(fd, counts);
}

/* A terminal may see it: whatever the peer calls itself, it is plain ASCII, and ends. */
START_TEST(names_are_fit_to_print)
{
	struct mlkemclient_info info;
	struct peer peer;
	struct mlkemclient *client;

	peer_start(&peer, script_escapes);
	client = peer_client(&peer, true, PLENTY_US);
	ck_assert_int_eq(mlkemclient_get_info(client, &info), 0);
	ck_assert_str_eq(info.server_version, "9?[31m?");
	ck_assert_str_eq(info.backend, "???");
	ck_assert_uint_eq(strlen(info.secret_memory), sizeof(info.secret_memory) - 1);
	ck_assert_uint_eq(strspn(info.secret_memory, "?"), strlen(info.secret_memory));
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/* Bytes instead of an answer. */
static const struct garbage {
	const char *bytes;
	size_t len;
	int error;
} garbages[] = {
#define GARBAGE(s, e) \
 {                    \
  s, sizeof(s) - 1, e \
 }
    GARBAGE("\x00\x00\x00\x00", MLKEMCLIENT_E_PROTOCOL),
    GARBAGE("\x00\x08\x00\x01", MLKEMCLIENT_E_PROTOCOL), /* limit + 1 */
    GARBAGE("\x00\x08\x00\x00", MLKEMCLIENT_E_PROTOCOL), /* more than is asked */
    GARBAGE("\x7f\xff\xff\xff", MLKEMCLIENT_E_PROTOCOL),
    GARBAGE("\x80\x00\x00\x00", MLKEMCLIENT_E_PROTOCOL),
    GARBAGE("\xff\xff\xff\xfc", MLKEMCLIENT_E_PROTOCOL),
    GARBAGE("\xff\xff\xff\xff", MLKEMCLIENT_E_PROTOCOL),
    GARBAGE("\x00\x00\x00\x06\xf8\xff\xff\xff\x7f\x00", MLKEMCLIENT_E_PROTOCOL),
    GARBAGE("\x00\x00\x00\x02\x0b\x0c", MLKEMCLIENT_E_PROTOCOL),
    GARBAGE("\x00\x00\x00\x03\x08\x02\x52", MLKEMCLIENT_E_PROTOCOL),
    /* id 2, and encapsulated twice */
    GARBAGE("\x00\x00\x00\x08\x08\x02\xaa\x01\x00\xaa\x01\x00", MLKEMCLIENT_E_PROTOCOL),
    /* the empty answer: id 0 */
    GARBAGE("\x00\x00\x00\x02\x10\x00", MLKEMCLIENT_E_PROTOCOL),
    /* cut inside, and the connection with it */
    GARBAGE("\x00\x00", MLKEMCLIENT_E_UNAVAILABLE),
    GARBAGE("\x00\x00\x00\x40\x08\x02", MLKEMCLIENT_E_UNAVAILABLE),
    GARBAGE("", MLKEMCLIENT_E_UNAVAILABLE),
};

static const struct garbage *written;

static void
script_garbage(int fd, struct peer_counts *counts)
{
	peer_greet(fd, counts);
	if (peer_read(fd, counts) != NULL)
		peer_write(fd, written->bytes, written->len);
	if (written->error == MLKEMCLIENT_E_PROTOCOL)
		peer_read(fd, counts); /* stays open until the client closes */
}

START_TEST(garbage_gives_nothing)
{
	struct peer peer;
	struct mlkemclient *client;
	int err;

	written = &garbages[_i];
	peer_start(&peer, script_garbage);
	client = peer_client(&peer, true, PLENTY_US);
	err = peer_encaps(client, 5);
	ck_assert_msg(err == written->error, "garbage %d: %d", _i, err);
	ck_assert(!link_is_open(client));
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 1);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("lies");
	TCase *tc = tcase_create("lies");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, lies_give_nothing, 0, LENGTH_OF(lies));
	tcase_add_test(tc, names_are_fit_to_print);
	tcase_add_loop_test(tc, garbage_gives_nothing, 0, LENGTH_OF(garbages));
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
