/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Answers that come late, in pieces, false, or not at all: whatever the peer does, a
 * call ends in time with its own result or with an error and zeros.
 */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "peer.h"

#define HYBRID       MLKEMCLIENT_X25519MLKEM768
#define SHARE        1216
#define CT           1120
#define SECRET       64
#define PLENTY_US    5000000u
#define LENGTH_OF(a) (sizeof(a) / sizeof((a)[0]))

/*
 * The library's send and recv come by here (ld --wrap): one byte at a time, and every
 * third call is as if a signal or a full buffer had come between.
 */
static bool drip;
static unsigned n_io;
ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __real_recv(int fd, void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t len, int flags);

static bool
io_disturbed(void)
{
	if (++n_io % 3 != 0)
		return false;
	errno = n_io % 2 ? EINTR : EAGAIN;
	return true;
}

ssize_t
__wrap_send(int fd, const void *data, size_t len, int flags)
{
	ck_assert(flags & MSG_NOSIGNAL);
	if (drip && io_disturbed())
		return -1;
	return __real_send(fd, data, drip && len > 1 ? 1 : len, flags);
}

ssize_t
__wrap_recv(int fd, void *data, size_t len, int flags)
{
	if (drip && io_disturbed())
		return -1;
	return __real_recv(fd, data, drip && len > 1 ? 1 : len, flags);
}

enum { FOREIGN = 1 };

/* One encapsulation of a share made of tag. FOREIGN if the secret is not tag's own. */
static int
encaps(struct mlkemclient *client, uint32_t tag)
{
	static uint8_t share[SHARE], ciphertext[CT], secret[SECRET];
	int err;

	for (size_t i = 0; i < SHARE; i++)
		share[i] = (uint8_t)(tag >> (8 * (i % 4)) ^ i % 32);
	memset(ciphertext, 0xee, sizeof(ciphertext));
	memset(secret, 0xee, sizeof(secret));
	err = mlkemclient_encaps(
	    client, HYBRID, share, SHARE, ciphertext, CT, secret, SECRET);
	if (err == 0)
		return peer_secret_matches(secret, SECRET, share) ? 0 : FOREIGN;
	ck_assert(is_zero(ciphertext, CT) && is_zero(secret, SECRET));
	return err;
}

/* Every second answer waits for the next request and comes just before that one's. */
static void
script_late(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;
	uint8_t *held = NULL;
	size_t held_len = 0;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		if (held == NULL) {
			held = peer_reply(request, NULL, &held_len);
			continue;
		}
		peer_write(fd, held, held_len);
		free(held);
		held = NULL;
		peer_answer(fd, request);
	}
}

struct tally {
	unsigned n_good, n_foreign, n_timeouts;
};

static struct tally
late_rounds(unsigned n)
{
	struct peer peer;
	struct mlkemclient *client;
	struct mlkemclient_counts counts;
	struct tally tally = {0};

	peer_start(&peer, script_late);
	client = peer_client(&peer, true, 3000);
	for (unsigned i = 0; i < n; i++) {
		breaker_reset(&client->breaker);
		switch (encaps(client, i * 2654435761u)) {
		case 0:
			tally.n_good++;
			break;
		case FOREIGN:
			tally.n_foreign++;
			break;
		}
	}
	mlkemclient_get_counts(client, &counts);
	tally.n_timeouts = (unsigned)counts.timeouts;
	mlkemclient_free(client);
	peer_stop(&peer);
	return tally;
}

START_TEST(late_answers_are_dropped)
{
	struct tally tally = late_rounds(1000);

	ck_assert_uint_eq(tally.n_foreign, 0);
	ck_assert_uint_ge(tally.n_good, 300);
	ck_assert_uint_ge(tally.n_timeouts, 300);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: a library that takes any answer gives a foreign secret away. */
START_TEST(late_answers_taken_are_noticed)
{
	setenv("MLKEMD_FAULT", "client-any-id", 1);
	ck_assert_uint_gt(late_rounds(20).n_foreign, 0);
}
END_TEST
#endif

static void
script_half_then_silence(int fd, struct peer_counts *counts)
{
	Mlkemd__V1__Request *request;
	uint8_t *frame;
	size_t len;

	peer_greet(fd, counts);
	while ((request = peer_read(fd, counts)) != NULL) {
		frame = peer_reply(request, NULL, &len);
		if (atomic_fetch_add(&counts->step, 1) == 0)
			peer_write(fd, frame, len / 2);
		else
			peer_write(fd, frame, len);
	}
}

START_TEST(silence_inside_a_frame_closes)
{
	struct peer peer;
	struct mlkemclient *client;

	peer_start(&peer, script_half_then_silence);
	client = peer_client(&peer, true, 50000);
	ck_assert_int_eq(encaps(client, 1), MLKEMCLIENT_E_TIMEOUT);
	ck_assert_int_eq(client->link.fd, -1);
	breaker_reset(&client->breaker);
	ck_assert_int_eq(encaps(client, 2), 0);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 2);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

static void
script_silent(int fd, struct peer_counts *counts)
{
	peer_greet(fd, counts);
	while (peer_read(fd, counts) != NULL)
		continue;
}

START_TEST(third_silence_in_a_row_closes)
{
	struct peer peer;
	struct mlkemclient *client;
	struct mlkemclient_counts counts;

	peer_start(&peer, script_silent);
	client = peer_client(&peer, true, 20000);
	for (int i = 0; i < 3; i++) {
		if (i > 0)
			ck_assert_int_ge(client->link.fd, 0);
		ck_assert_int_eq(mlkemclient_ping(client), MLKEMCLIENT_E_TIMEOUT);
	}
	ck_assert_int_eq(client->link.fd, -1);
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.timeouts, 3);
	ck_assert_uint_eq(counts.connects, 1);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

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
	Mlkemd__V1__KeyItem **items = calloc(3, sizeof(*items));

	memcpy(items, r->keys->items, 2 * sizeof(*items));
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
	ck_assert_int_eq(client->link.fd, -1);
	for (int i = 0; i < 2; i++)
		mlkemclient_key_free(client, keys[i].key);
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
	err = encaps(client, 5);
	ck_assert_msg(err == written->error, "garbage %d: %d", _i, err);
	ck_assert_int_eq(client->link.fd, -1);
	ck_assert_uint_eq(atomic_load(&peer.counts->connections), 1);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

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
	ck_assert_int_eq(encaps(client, 9), 0);
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
	ck_assert_int_eq(encaps(client, 3), status_cases[_i].error);
	ck_assert_ptr_nonnull(
	    strstr(mlkemclient_last_message(client), "refused by the script"));
	ck_assert_int_ge(client->link.fd, 0);
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
	ck_assert_int_eq(encaps(client, 3), cases[_i].error);
	ck_assert_int_eq(client->link.fd, -1);
	/* asked or not, the reason stays the same */
	ck_assert_int_eq(encaps(client, 3), cases[_i].error);
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

static void
on_alarm(int sig)
{
	(void)sig;
}

START_TEST(bytes_may_come_one_at_a_time)
{
	const struct itimerval every_ms = {{0, 1000}, {0, 1000}},
			       off = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
	struct peer peer;
	struct mlkemclient *client;
	struct mlkemclient_counts counts;

	peer_start(&peer, peer_honest);
	client = peer_client(&peer, true, PLENTY_US);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every_ms, NULL);
	drip = true;
	for (uint32_t i = 0; i < 100; i++)
		ck_assert_int_eq(encaps(client, i * 40503u), 0);
	drip = false;
	for (uint32_t i = 0; i < 10000; i++)
		ck_assert_int_eq(encaps(client, i * 40503u), 0);
	setitimer(ITIMER_REAL, &off, NULL);
	mlkemclient_get_counts(client, &counts);
	ck_assert_uint_eq(counts.connects, 1);
	ck_assert_uint_eq(counts.by_daemon, 10100);
	mlkemclient_free(client);
	peer_stop(&peer);
}
END_TEST

/*
 * Holds two large answers back, and writes them only when the third request begins to
 * come, before reading it: both sides then write to each other.
 */
static void
script_writes_before_it_reads(int fd, struct peer_counts *counts)
{
	const int small = 1;
	uint8_t *held[2], first;
	size_t held_len[2];

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	peer_greet(fd, counts);
	for (int i = 0; i < 2; i++)
		held[i] = peer_reply(peer_read(fd, counts), NULL, &held_len[i]);
	if (recv(fd, &first, 1, MSG_PEEK) != 1)
		return;
	for (int i = 0; i < 2; i++)
		peer_write(fd, held[i], held_len[i]);
	peer_answer(fd, peer_read(fd, counts));
	peer_read(fd, counts);
}

static int
encaps_64(struct mlkemclient *client)
{
	static uint8_t shares[64][SHARE], cts[64][CT], secrets[64][SECRET];
	struct mlkemclient_encaps_item items[64];
	int err;

	for (int i = 0; i < 64; i++) {
		memset(shares[i], i + 1, SHARE);
		items[i] = (struct mlkemclient_encaps_item){
		    shares[i], SHARE, cts[i], secrets[i], 1};
	}
	err = mlkemclient_encaps_batch(client, HYBRID, items, 64);
	for (int i = 0; i < 64 && err == 0; i++)
		ck_assert(items[i].error == 0 &&
			  peer_secret_matches(secrets[i], SECRET, shares[i]));
	return err;
}

static int
both_sides_write(void)
{
	const int small = 1;
	struct peer peer;
	struct mlkemclient *client;
	int err;

	peer_start(&peer, script_writes_before_it_reads);
	client = peer_client(&peer, true, 100000);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(encaps_64(client), MLKEMCLIENT_E_TIMEOUT);
		breaker_reset(&client->breaker);
		if (i == 0)
			setsockopt(client->link.fd, SOL_SOCKET, SO_SNDBUF, &small,
			    sizeof(small));
	}
	client->deadline_us = 2000000;
	err = encaps_64(client);
	mlkemclient_free(client);
	peer_stop(&peer);
	return err;
}

START_TEST(both_sides_writing_is_no_deadlock)
{
	ck_assert_int_eq(both_sides_write(), 0);
}
END_TEST

#ifdef MLKEMD_TEST_HOOKS
/* The control: a library that only waits for room to send waits for ever. */
START_TEST(both_sides_writing_would_be_a_deadlock)
{
	setenv("MLKEMD_FAULT", "client-send-blind", 1);
	ck_assert_int_eq(both_sides_write(), MLKEMCLIENT_E_TIMEOUT);
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("answers");
	TCase *tc = tcase_create("answers");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, late_answers_are_dropped);
	tcase_add_test(tc, silence_inside_a_frame_closes);
	tcase_add_test(tc, third_silence_in_a_row_closes);
	tcase_add_loop_test(tc, lies_give_nothing, 0, LENGTH_OF(lies));
	tcase_add_loop_test(tc, garbage_gives_nothing, 0, LENGTH_OF(garbages));
	tcase_add_test(tc, fields_of_later_versions_are_passed_over);
	tcase_add_loop_test(tc, every_status_has_its_error, 0, LENGTH_OF(status_cases));
	tcase_add_loop_test(tc, refused_hello_is_told, 0, 4);
	tcase_add_test(tc, version_that_was_not_offered);
	tcase_add_test(tc, bytes_may_come_one_at_a_time);
	tcase_add_test(tc, both_sides_writing_is_no_deadlock);
#ifdef MLKEMD_TEST_HOOKS
	tcase_add_test(tc, late_answers_taken_are_noticed);
	tcase_add_test(tc, both_sides_writing_would_be_a_deadlock);
#endif
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
