/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl.h: what mlkemctl's subcommands share: the parsed command line, the exit statuses
 * and the one way to fail. main.c fills struct ctl; a subcommand returns its status.
 */
#ifndef MLKEMCTL_CTL_H
#define MLKEMCTL_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "client-lib/mlkemclient.h"

#define CTL_MAX_SETTINGS    16
#define CTL_DEFAULT_CONTROL "/run/mlkemd/control.sock"

/* Documented in mlkemctl.1; the numbers are a promise to scripts. */
enum ctl_exit {
	CTL_OK = 0,
	CTL_FAILED = 1,      /* a file, the self-test, or something inside failed */
	CTL_USAGE = 2,       /* the command line is wrong */
	CTL_UNREACHABLE = 3, /* no mlkemd answers there */
	CTL_DENIED = 4,      /* this user, or this operation, is not allowed */
	CTL_REFUSED = 5,     /* a share, ciphertext or key was refused */
	CTL_BUSY = 6,        /* a limit, a deadline or draining: try again later */
};

/* bench: what is measured, and how. */
#define BENCH_ROUNDS_MAX 100
struct ctl_bench {
	unsigned op; /* enum bench_op */
	bool custom; /* a load was described: not the usual rows */
	bool compare_local;
	uint32_t connections, items, rounds, duration_ms, idle_us, spin_us;
	uint32_t rate; /* requests a second, 0: a closed loop */
	const char *plot_path;
};

struct ctl {
	const char *command;
	const char *socket_path, *control_path;
	const char *in_path, *out_path; /* NULL: standard input and output */
	const char *peer_path, *key_path, *secret_path, *export_path;
	enum bytes_format format; /* BYTES_AUTO: hex on stdout, raw in files */
	enum bytes_format in_format;
	enum mlkemclient_alg alg;
	const char *peer, *servername, *groups; /* tls; openssl-conf has groups too */
	const char *settings[CTL_MAX_SETTINGS]; /* openssl-conf */
	uint32_t n_settings;
	struct ctl_bench bench;
	bool json, local, require;
	bool takes_local;     /* this command has --local */
	const char *left_out; /* what a failure only leaves out: it is no error then */
	uint32_t timeout_ms, interval_ms;
	uint32_t count; /* 0: not given */
	uint32_t exchanges, in_flight, split_bytes;
};

int ctl_ping(struct ctl *ctl);
int ctl_info(struct ctl *ctl);
int ctl_keygen(struct ctl *ctl);
int ctl_encaps(struct ctl *ctl);
int ctl_decaps(struct ctl *ctl);
int ctl_selftest(struct ctl *ctl);
int ctl_stats(struct ctl *ctl);
int ctl_reload(struct ctl *ctl);
int ctl_drain(struct ctl *ctl);
int ctl_resume(struct ctl *ctl);
int ctl_demo(struct ctl *ctl);
int ctl_bench(struct ctl *ctl);
int ctl_top(struct ctl *ctl);
int ctl_doctor(struct ctl *ctl);
int ctl_tls(struct ctl *ctl);
int ctl_openssl_conf(struct ctl *ctl);

/* help.c: the text of one command, or of the whole if NULL; NULL if there is none. */
const char *ctl_help(const char *command);

/*
 * ctl_fail() says what is wrong in one line on stderr (and as an object on stdout with
 * --json) and returns status, so that a caller can `return ctl_fail(...)`. With left_out
 * it says a note instead, and no object.
 */
__attribute__((format(printf, 3, 4))) int ctl_fail(
    const struct ctl *ctl, enum ctl_exit status, const char *format, ...);

/* A remark on stderr that changes no status. */
__attribute__((format(printf, 1, 2))) void ctl_note(const char *format, ...);

/* CLOCK_MONOTONIC. */
uint64_t ctl_now_ns(void);

/*
 * client.c: a client for this command line. own_require forces require (ping, info,
 * demo). Returns 0, or the exit status after saying why.
 */
int ctl_client_new(
    const struct ctl *ctl, bool own_require, struct mlkemclient **clientp);

/* The exit status of a client-lib error, after saying what went wrong in `doing`. */
int ctl_client_fail(const struct ctl *ctl, const struct mlkemclient *client, int error,
    const char *doing);

/* Tells the user when an operation was computed here since no daemon answered. */
bool ctl_note_fallback(const struct ctl *ctl, const struct mlkemclient *client);

#endif
