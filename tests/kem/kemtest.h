/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kemtest.h: what the tests of kem/ share: the kem under test (MLKEMD_BACKEND, generic8
 * included), a stream of repeatable bytes, guarded buffers, independent digests.
 * One thread, unless a line says otherwise; all of it ends the program on failure.
 */
#ifndef MLKEMD_TESTS_KEMTEST_H
#define MLKEMD_TESTS_KEMTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kem/internal.h"
#include "kem/kem.h"

/* Opened on first use and never closed; any thread after that. */
const struct kem *test_kem(void);
struct kem_scratch *test_scratch(void);
/*
 * The backend that MLKEMD_BACKEND names. If this CPU can't run it the program says so and
 * ends with the status by which meson knows a test that was skipped.
 */
#define TEST_SKIPPED 77
const struct backend *test_backend(void);

/* The build has -Dtest-hooks=true, so that fault() can be planted. */
bool test_has_hooks(void);

/* MLKEMD_SEED, or a fresh one; printed once, so that a failure can be repeated. */
uint64_t test_seed(void);

/* SHA-256 in counter mode over the seed and a label: the same bytes in every run. */
struct test_stream {
	uint8_t key[32];
	uint64_t n;
};
void test_stream_init(struct test_stream *stream, uint64_t seed, const char *label);
void test_stream_fill(struct test_stream *stream, void *out, size_t len);
uint32_t test_stream_below(struct test_stream *stream, uint32_t limit);

/* Digests by OpenSSL, so not by the code under test. */
void test_sha256(uint8_t out[32], const void *in, size_t len);
void test_shake256(uint8_t *out, size_t out_len, const void *a, size_t a_len,
    const void *b, size_t b_len);

/* Decodes exactly len bytes. */
void test_hex(uint8_t *out, size_t len, const char *hex);

bool test_is_zero(const void *p, size_t len);
/* Is the string of n bytes found in the area? */
bool test_is_within(const void *area, size_t area_len, const void *p, size_t n);

/*
 * One item's buffers with a canary behind each; test_item_check() looks at the canaries.
 * fill: what outputs hold before the call.
 */
#define TEST_CANARY_BYTES 64
struct test_item {
	enum kem_alg alg;
	uint8_t seed[KEM_SEED_MAX];
	uint8_t m[32];
	struct kem_x25519 ephemeral;
	uint8_t share[KEM_SHARE_MAX + TEST_CANARY_BYTES];
	uint8_t secret[KEM_SECRET_MAX + TEST_CANARY_BYTES];
	uint8_t dk[KEM_DK_MAX];
	uint8_t ct[KEM_CT_MAX + TEST_CANARY_BYTES];
	struct kem_shared made;  /* by encapsulation */
	struct kem_shared found; /* by decapsulation */
	struct kem_private key;
};

/* A whole exchange, one item at a time, from the stream: fills every field. */
void test_item_make(
    struct test_item *item, enum kem_alg alg, struct test_stream *stream);

/* Views of an item for a call; outputs go to `out`, inputs come from `in`. */
struct kem_keygen_item test_keygen_item(
    const struct test_item *in, struct test_item *out);
struct kem_encaps_item test_encaps_item(
    const struct test_item *in, struct test_item *out);
struct kem_decaps_item test_decaps_item(
    const struct test_item *in, struct test_item *out);

void test_item_blank(struct test_item *item, enum kem_alg alg);
void test_item_check(const struct test_item *item);

/* SHAKE256(z || ct), with the X25519 half of `good` behind it if there is one. */
void test_rejected(struct kem_shared *shared, const struct test_item *item,
    const uint8_t *ct, const struct kem_shared *good);

/* Runs one Check case list; the backend and the seed are printed first. */
struct Suite;
int test_main(int argc, char **argv, struct Suite *suite);

#endif
