/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * peer.h: a scripted peer on a private socket, in a process of its own with one child a
 * connection: it answers late, short, false or not at all, as no daemon would. Its
 * results are no keys: they show whose they are (peer_secret_matches()).
 */
#ifndef TESTS_CLIENT_LIB_PEER_H
#define TESTS_CLIENT_LIB_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client-lib/client.h"
#include "mlkemd.pb-c.h"

/* Counted by the peer, read by the test. */
struct peer_counts {
	_Atomic unsigned connections, requests, jobs, releases;
	_Atomic unsigned ended; /* connections that the script is done with */
	_Atomic uint64_t fallbacks, auto_daemon, auto_local; /* of the last Hello */
	_Atomic unsigned step; /* for scripts and tests to agree on */
};

/* Serves one connection and returns when it is done with it. */
typedef void peer_script(int fd, struct peer_counts *counts);

struct peer {
	pid_t pid;
	char dir[64], path[108];
	struct peer_counts *counts;
};

enum { PEER_BACKLOG = 64 };
void peer_start(struct peer *peer, peer_script *script);
/* Listens with this backlog but takes nobody in until counts->step is 1. */
void peer_start_closed(struct peer *peer, peer_script *script, int backlog);
void peer_stop(struct peer *peer);

/* A handle for it: require, and the deadline. */
struct mlkemclient *peer_client(
    const struct peer *peer, bool require, uint32_t deadline_us);

/* The real clock; what a handle of peer_client() sees is ahead of it by this. */
uint64_t peer_now_us(void);
extern uint64_t peer_clock_ahead_us;

/*
 * That of the handles stands still, so that a pause of theirs lasts as long as the test
 * wants, however slow the machine is; it goes on where it stood. While it stands, no call
 * may be one that nobody answers.
 */
void peer_clock_stop(void);
void peer_clock_go(void);

/* Until the peer has counted so many, and no more: it reads when it gets to run. */
void peer_wait(const _Atomic unsigned *count, unsigned n);

/* One ML-KEM-768 key, freed at once. Returns who made it, or the error. */
enum { PEER_BY_DAEMON = 1, PEER_BY_LOCAL = 2 };
int peer_keygen_where(struct mlkemclient *client);

/* For scripts. Reads one whole request; NULL when the client has gone. */
Mlkemd__V1__Request *peer_read(int fd, struct peer_counts *counts);

/* The honest answer as a frame; tamper may change the message before it is packed. */
uint8_t *peer_reply(const Mlkemd__V1__Request *request,
    void (*tamper)(Mlkemd__V1__Response *response), size_t *lenp);
uint8_t *peer_frame_of(const Mlkemd__V1__Response *response, size_t *lenp);
void peer_write(int fd, const void *data, size_t len);
void peer_answer(int fd, const Mlkemd__V1__Request *request);
void peer_refuse(int fd, const Mlkemd__V1__Request *request, uint32_t status);

/* Takes Hello and answers it. */
void peer_greet(int fd, struct peer_counts *counts);

/* The plain script: answers everything at once. */
peer_script peer_honest;

/* Whether a secret is that of this share (encaps) or ciphertext (decaps). */
bool peer_secret_matches(const uint8_t *secret, size_t len, const uint8_t *input);

bool is_zero(const void *p, size_t len);

/*
 * One X25519MLKEM768 encapsulation at the peer, of a share made of tag. Returns what
 * mlkemclient_encaps() did (outputs are zero on an error), or PEER_FOREIGN if the
 * secret is not tag's own.
 */
enum { PEER_FOREIGN = 1 };
int peer_encaps(struct mlkemclient *client, uint32_t tag);

#endif
