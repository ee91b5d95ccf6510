/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.h: how values come in and go out: shares and ciphertexts from files, pipes or a
 * terminal; public values to stdout or a file; secrets to a 0600 file and nowhere else.
 * All functions say what is wrong themselves and return an exit status.
 */
#ifndef MLKEMCTL_IO_H
#define MLKEMCTL_IO_H

#include <sys/types.h>

#include "ctl.h"

/* Text of the largest private key in hex, wrapped, with room to spare. */
#define IO_MAX_INPUT 16384

struct io_input {
	uint8_t bytes[IO_MAX_INPUT];
	size_t len;
};

/* What is read, for the messages and for knowing when a stream is complete. */
struct io_wanted {
	const char *what;   /* "ciphertext share" */
	const char *option; /* "--in" */
	size_t len;         /* the right length; another one is judged by the caller */
	bool secret;        /* a private key: a file only, no label looked for */
};

/* Reads and decodes path, or stdin if path is NULL or "-". Returns CTL_OK or a status. */
int io_read(const struct ctl *ctl, const char *path, const struct io_wanted *wanted,
    struct io_input *in);

/*
 * The peer's answer in a file that need not exist yet: waits until it is there and
 * whole, at most wait_ms. io_peer_init() is called before the key is made, so that an
 * answer older than the key is noticed.
 */
struct io_peer {
	const char *path;
	bool stale; /* it existed before the key did */
	uint64_t ino, mtime_ns;
};
void io_peer_init(struct io_peer *peer, const char *path);
int io_peer_read(const struct ctl *ctl, const struct io_peer *peer,
    const struct io_wanted *wanted, uint32_t wait_ms, struct io_input *in);

/*
 * A public value to --out, else to stdout as "label: value". Returns CTL_OK or a status.
 * io_out_is_bare() tells that stdout carries the value alone, so that all else has to go
 * to stderr.
 */
int io_write_public(
    const struct ctl *ctl, const char *label, const uint8_t *data, size_t len);
bool io_out_is_bare(const struct ctl *ctl);

/* What is public to the file --out; a new one gets mode. Returns CTL_OK or a status. */
int io_write_file(const struct ctl *ctl, mode_t mode, const uint8_t *data, size_t len);

/* Whether --out, or a secret, could be written; asked before any key is spent. */
int io_check_out_path(const struct ctl *ctl);
int io_check_secret_path(const struct ctl *ctl, const char *option, const char *path);

/*
 * A secret to a new file of mode 0600 that takes path's place in one step, so that
 * nobody ever sees it wider or half. Returns CTL_OK or a status.
 */
int io_write_secret(
    const struct ctl *ctl, const char *path, const uint8_t *data, size_t len);

#define IO_FINGERPRINT_TEXT 17 /* 16 hex digits and NUL */

/* The first 8 bytes of SHA-256(secret) in hex: enough to compare, useless to attack. */
int io_fingerprint(const struct ctl *ctl, const uint8_t *secret, size_t len,
    char text[IO_FINGERPRINT_TEXT]);

#endif
