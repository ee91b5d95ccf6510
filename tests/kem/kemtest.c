/* SPDX-License-Identifier: Apache-2.0 */
#include "kemtest.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/evp.h>

#include "kem/arch/backend.h"
#include "kem/arch/dispatch.h"
#include "kem/fault.h"
#include "kem/x25519.h"
#include "tests/kem/generic8.h"

#define CANARY 0xc5
#define BLANK  0xa6

static void
require(bool is_true, const char *what)
{
	if (is_true)
		return;
	fprintf(stderr, "kemtest: %s\n", what);
	abort();
}

/* A backend of this build that this CPU can't run is no failure, and said. */
static void
skip_or_abort(const char *name)
{
	const struct backend *backend;

	for (unsigned n = 0; (backend = backend_number(n)) != NULL; n++) {
		if (strcmp(name, backend->name) == 0) {
			printf("skipped: this CPU can't run backend %s\n", name);
			exit(TEST_SKIPPED);
		}
	}
	require(false, "no such backend");
}

const struct backend *
test_backend(void)
{
	const char *name = getenv("MLKEMD_BACKEND");
	const struct backend *backend = NULL;

	if (name && strcmp(name, backend_generic8.name) == 0)
		return &backend_generic8;
	if (backend_choose(NULL, &backend) < 0)
		skip_or_abort(name);
	return backend;
}

const struct kem *
test_kem(void)
{
	static struct kem *kem;

	if (!kem)
		require(
		    kem_open_with(&kem, test_backend()) == 0, "kem_open_with failed");
	return kem;
}

struct kem_scratch *
test_scratch(void)
{
	static struct kem_scratch scratch;

	return &scratch;
}

bool
test_has_hooks(void)
{
	const char *old = getenv("MLKEMD_FAULT");
	char *kept = old ? strdup(old) : NULL;
	bool has;

	setenv("MLKEMD_FAULT", "probe", 1);
	has = fault("probe");
	if (kept)
		setenv("MLKEMD_FAULT", kept, 1);
	else
		unsetenv("MLKEMD_FAULT");
	free(kept);
	return has;
}

uint64_t
test_seed(void)
{
	static uint64_t seed;
	const char *given = getenv("MLKEMD_SEED");

	if (seed)
		return seed;
	if (given && *given)
		seed = strtoull(given, NULL, 0);
	while (seed == 0)
		require(getrandom(&seed, sizeof(seed), 0) == sizeof(seed), "getrandom");
	return seed;
}

void
test_stream_init(struct test_stream *stream, uint64_t seed, const char *label)
{
	char text[128];
	int n =
	    snprintf(text, sizeof(text), "%016llx %s", (unsigned long long)seed, label);

	test_sha256(stream->key, text, (size_t)n);
	stream->n = 0;
}

void
test_stream_fill(struct test_stream *stream, void *out, size_t len)
{
	uint8_t in[40], block[32], *p = out;

	while (len > 0) {
		size_t n = len < 32 ? len : 32;

		memcpy(in, stream->key, 32);
		memcpy(in + 32, &stream->n, 8);
		stream->n++;
		test_sha256(block, in, sizeof(in));
		memcpy(p, block, n);
		p += n;
		len -= n;
	}
}

uint32_t
test_stream_below(struct test_stream *stream, uint32_t limit)
{
	uint32_t x;

	test_stream_fill(stream, &x, sizeof(x));
	return x % limit;
}

void
test_sha256(uint8_t out[32], const void *in, size_t len)
{
	require(EVP_Digest(in, len, out, NULL, EVP_sha256(), NULL) == 1, "SHA-256");
}

void
test_shake256(uint8_t *out, size_t out_len, const void *a, size_t a_len, const void *b,
    size_t b_len)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	require(ctx && EVP_DigestInit_ex(ctx, EVP_shake256(), NULL) == 1 &&
		    EVP_DigestUpdate(ctx, a, a_len) == 1 &&
		    EVP_DigestUpdate(ctx, b, b_len) == 1 &&
		    EVP_DigestFinalXOF(ctx, out, out_len) == 1,
	    "SHAKE256");
	EVP_MD_CTX_free(ctx);
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

void
test_hex(uint8_t *out, size_t len, const char *hex)
{
	require(strlen(hex) == 2 * len, "hex of another length");
	for (size_t i = 0; i < len; i++) {
		int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);

		require(high >= 0 && low >= 0, "not hex");
		out[i] = (uint8_t)(high << 4 | low);
	}
}

bool
test_is_zero(const void *p, size_t len)
{
	const uint8_t *bytes = p;

	for (size_t i = 0; i < len; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

bool
test_is_within(const void *area, size_t area_len, const void *p, size_t n)
{
	return memmem(area, area_len, p, n) != NULL;
}

void
test_item_blank(struct test_item *item, enum kem_alg alg)
{
	memset(item, BLANK, sizeof(*item));
	item->alg = alg;
	memset(item->share + kem_alg_info(alg)->share_bytes, CANARY, TEST_CANARY_BYTES);
	memset(
	    item->secret + kem_alg_info(alg)->secret_bytes, CANARY, TEST_CANARY_BYTES);
	memset(item->ct + kem_alg_info(alg)->ct_bytes, CANARY, TEST_CANARY_BYTES);
}

/* One ck_assert costs a system call, so they are not made byte by byte. */
static bool
canary_is_whole(const uint8_t *canary)
{
	for (size_t i = 0; i < TEST_CANARY_BYTES; i++) {
		if (canary[i] != CANARY)
			return false;
	}
	return true;
}

void
test_item_check(const struct test_item *item)
{
	const struct kem_alg_info *info = kem_alg_info(item->alg);

	if (!canary_is_whole(item->share + info->share_bytes) ||
	    !canary_is_whole(item->secret + info->secret_bytes) ||
	    !canary_is_whole(item->ct + info->ct_bytes))
		ck_abort_msg("%s: something was written behind an output", info->name);
}

struct kem_keygen_item
test_keygen_item(const struct test_item *in, struct test_item *out)
{
	return (struct kem_keygen_item){
	    .seed = in->seed, .share = out->share, .secret = out->secret};
}

struct kem_encaps_item
test_encaps_item(const struct test_item *in, struct test_item *out)
{
	return (struct kem_encaps_item){
	    .share = in->share,
	    .share_len = kem_alg_info(in->alg)->share_bytes,
	    .ephemeral = &in->ephemeral,
	    .ct = out->ct,
	    .shared = &out->made,
	};
}

struct kem_decaps_item
test_decaps_item(const struct test_item *in, struct test_item *out)
{
	return (struct kem_decaps_item){
	    .key = &in->key,
	    .ct = in->ct,
	    .ct_len = kem_alg_info(in->alg)->ct_bytes,
	    .shared = &out->found,
	};
}

void
test_item_make(struct test_item *item, enum kem_alg alg, struct test_stream *stream)
{
	const struct kem *kem = test_kem();
	struct kem_scratch *scratch = test_scratch();
	struct kem_keygen_item keygen;
	struct kem_encaps_item encaps;
	struct kem_decaps_item decaps;
	struct x25519_public_item x = {
	    item->ephemeral.private_key, item->ephemeral.public_key};

	test_item_blank(item, alg);
	test_stream_fill(stream, item->seed, sizeof(item->seed));
	test_stream_fill(stream, item->m, sizeof(item->m));
	test_stream_fill(stream, item->ephemeral.private_key, 32);
	ck_assert_int_eq(x25519_public(kem, &x, 1, scratch), 0);
	keygen = test_keygen_item(item, item);
	ck_assert_int_eq(kem_keygen(kem, alg, &keygen, 1, scratch), 0);
	ck_assert_int_eq(keygen.status, KEM_OK);
	kem_private_from_parts(&item->key, alg, item->secret, item->share);
	kem_private_export(alg, item->secret, item->share, item->dk);
	encaps = test_encaps_item(item, item);
	ck_assert_int_eq(kem_encaps_derand(kem, alg, &encaps, 1,
			     (const uint8_t(*)[32])item->m, scratch),
	    0);
	ck_assert_int_eq(encaps.status, KEM_OK);
	decaps = test_decaps_item(item, item);
	ck_assert_int_eq(kem_decaps(kem, alg, &decaps, 1, scratch), 0);
	ck_assert_int_eq(decaps.status, KEM_OK);
	ck_assert_mem_eq(&item->made, &item->found, sizeof(item->made));
	ck_assert(!test_is_zero(&item->made, 32));
	test_item_check(item);
}

void
test_rejected(struct kem_shared *shared, const struct test_item *item,
    const uint8_t *ct, const struct kem_shared *good)
{
	const bool is_hybrid = item->alg == KEM_ALG_X25519MLKEM768;
	const size_t ct_bytes =
	    kem_alg_info(item->alg)->ct_bytes - (is_hybrid ? 32 : 0);

	*shared = *good;
	test_shake256(shared->bytes, 32, item->key.z, 32, ct, ct_bytes);
}

int
test_main(int argc, char **argv, struct Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int n_failed;

	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--seed") == 0)
			setenv("MLKEMD_SEED", argv[i + 1], 1);
	}
	printf("backend %s, seed %llu (--seed repeats it)\n", test_backend()->name,
	    (unsigned long long)test_seed());
	fflush(stdout);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed ? 1 : 0;
}
