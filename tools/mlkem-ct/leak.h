/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leak.h: mlkem-ct. A test runs one operation on inputs of two classes in random order,
 * so that whatever else the machine does falls on both alike, and asks whether the times
 * tell the classes apart. One thread.
 *
 * As mlkem-bench, it may look where programs may not: kem/internal.h and the backends'
 * kernels, to give randomness and to time a kernel alone.
 */
#ifndef MLKEMD_CT_LEAK_H
#define MLKEMD_CT_LEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kem/arch/backend.h"
#include "kem/kem.h"
#include "stats.h"

#define LEAK_T         4.5 /* further from 0 than chance goes, if it does so twice */
#define LEAK_KEYS      32
#define LEAK_INPUT_MAX (KEM_GROUP_MAX * KEM_CT_MAX)
#define LEAK_CHUNK     64 /* inputs made at a time, then measured */

struct leak_options {
	const char *backend; /* NULL: the best; "all" */
	const char *socket_path;
	enum kem_alg set;
	uint64_t seed, measurements;
	double time_s, floor; /* floor: in ticks */
	bool continuous, list, json, control;
	char *const *names; /* tests asked for; none: all */
	unsigned n_names;
};

struct leak_key {
	uint8_t share[KEM_SHARE_MAX], secret[KEM_SECRET_MAX], dk[KEM_DK_MAX];
	struct kem_private view;
	uint8_t ct[KEM_CT_MAX]; /* made for this key */
};

/* What a test works on. Made anew for each test, by subject_init(). */
struct subject {
	const struct kem *kem;
	enum kem_alg alg;
	uint64_t random;        /* state: of the inputs */
	struct backend backend; /* of flat */
	struct kem *flat;       /* kem with a sampler that takes equal time; or NULL */
	struct kem_scratch *scratch;
	struct leak_key *key; /* LEAK_KEYS of them */
	struct kem_x25519 pair[2];
	struct kem_shared shared[KEM_GROUP_MAX];
	struct socket_side *side;
	unsigned turn; /* counts inputs, for those that go through all bytes */
	/* The input of the next run lies here, whichever class it is of. */
	_Alignas(64) uint8_t in[LEAK_INPUT_MAX];
	_Alignas(64) uint8_t out[2][LEAK_INPUT_MAX];
};

enum {
	LEAK_HYBRID = 1, /* X25519MLKEM768, whichever set is asked for */
	/*
	 * The classes differ in their public matrix, on which SampleNTT's time may depend
	 * (FIPS 203 appendix B): measured with one that takes every candidate.
	 */
	LEAK_FLAT = 2,
	LEAK_SOCKET = 4,
	LEAK_NO_SET = 8, /* no parameter set to speak of */
	LEAK_CONTROL = 16,
};

struct leak_test {
	const char *name, *about;
	unsigned flags;
	unsigned calls; /* of run() a measurement: what is short is repeated */
	/* Bytes of an input, up to LEAK_INPUT_MAX. */
	size_t (*input_bytes)(const struct subject *subject);
	/* Writes an input of a class, 0 or 1; not timed. Returns 0, or -1. */
	int (*make)(struct subject *subject, unsigned class, uint8_t *input);
	/* Timed; reads subject->in. Returns 0, or negative: can't go on. */
	int (*run)(struct subject *subject);
};

enum leak_verdict {
	LEAK_NOT_SEEN,
	LEAK_NOT_CONFIRMED, /* seen once, and not again */
	LEAK_SMALL,         /* seen twice, but below the floor */
	LEAK_SEEN,
	LEAK_SKIPPED,
};

/* One test by one backend: its figures outlive a pass if it is run again and again. */
struct leak_case {
	const struct leak_test *test;
	const struct kem *kem;
	enum kem_alg alg;
	uint64_t seed, random; /* the state that subjects start from and leave */
	struct stats stats;
	struct stats_result result; /* the worst */
	enum leak_verdict verdict;
	char backend[32]; /* the daemon's, through the socket */
	char reason[160]; /* LEAK_SKIPPED: why */
};

/* tests.c */
const struct leak_test *leak_test_number(unsigned i); /* NULL behind the last */
const struct leak_test *leak_test_find(const char *name);

/*
 * subject.c: keys and ciphertexts of the test's algorithm, or as many as it needs.
 * Returns 0, or -1 after saying why; to be ended in both cases.
 */
int subject_init(struct subject *subject, const struct leak_case *leak);
void subject_fini(struct subject *subject);

/*
 * socket.c: decapsulation by a running daemon. Returns 0, or 1: there is none, and
 * leak->reason says why, or -1 after saying why.
 */
int socket_init(struct subject *subject, struct leak_case *leak,
    const struct leak_options *options);
void socket_fini(struct subject *subject);
size_t socket_input_bytes(const struct subject *subject);
int socket_make(struct subject *subject, unsigned class, uint8_t *input);
int socket_run(struct subject *subject);

/*
 * run.c: measure until the bounds of options, or leak_stop; call line() now and then.
 * A t beyond LEAK_T is measured once more, afresh, and counts if it comes again and the
 * means lie further apart than options->floor.
 * Returns 0 with leak->verdict set, or -1 after saying why.
 */
extern volatile bool leak_stop;
void leak_case_init(struct leak_case *leak, const struct leak_test *test,
    const struct kem *kem, const struct leak_options *options);
int leak_run(struct leak_case *leak, const struct leak_options *options,
    void (*line)(const struct leak_case *leak));

/* report.c */
void report_head(const struct leak_case *leak);
void report_line(const struct leak_case *leak);
void report_verdict(const struct leak_case *leak);
void report_json(const struct leak_case *leak);

#endif
