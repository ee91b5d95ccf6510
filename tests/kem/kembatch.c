/* SPDX-License-Identifier: Apache-2.0 */
#include "kembatch.h"

#include <check.h>
#include <string.h>

struct test_item single[N_MAX], batch[N_MAX];
struct kem_keygen_item keygen[N_MAX];
struct kem_encaps_item encaps[N_MAX];
struct kem_decaps_item decaps[N_MAX];
uint8_t m[N_MAX][32];

void
batch_prepare(enum kem_alg alg, size_t n, const char *label)
{
	struct test_stream stream;

	test_stream_init(&stream, test_seed(), label);
	for (size_t i = 0; i < n; i++) {
		test_item_make(&single[i], alg, &stream);
		test_item_blank(&batch[i], alg);
		keygen[i] = test_keygen_item(&single[i], &batch[i]);
		encaps[i] = test_encaps_item(&single[i], &batch[i]);
		decaps[i] = test_decaps_item(&single[i], &batch[i]);
		memcpy(m[i], single[i].m, 32);
	}
}

void
assert_keygen_equal(size_t i)
{
	const struct kem_alg_info *info = kem_alg_info(single[i].alg);

	ck_assert_int_eq(keygen[i].status, KEM_OK);
	ck_assert_mem_eq(batch[i].share, single[i].share, info->share_bytes);
	ck_assert_mem_eq(batch[i].secret, single[i].secret, info->secret_bytes);
	test_item_check(&batch[i]);
}

void
assert_encaps_equal(size_t i)
{
	const struct kem_alg_info *info = kem_alg_info(single[i].alg);

	ck_assert_int_eq(encaps[i].status, KEM_OK);
	ck_assert_mem_eq(batch[i].ct, single[i].ct, info->ct_bytes);
	ck_assert_mem_eq(&batch[i].made, &single[i].made, sizeof(struct kem_shared));
	test_item_check(&batch[i]);
}

void
assert_encaps_failed(size_t i, enum kem_status status)
{
	ck_assert_int_eq(encaps[i].status, status);
	ck_assert(test_is_zero(batch[i].ct, kem_alg_info(single[i].alg)->ct_bytes));
	ck_assert(test_is_zero(&batch[i].made, sizeof(struct kem_shared)));
	test_item_check(&batch[i]);
}

void
assert_decaps_equal(size_t i)
{
	ck_assert_int_eq(decaps[i].status, KEM_OK);
	ck_assert_mem_eq(&batch[i].found, &single[i].made, sizeof(struct kem_shared));
	test_item_check(&batch[i]);
}

void
assert_decaps_failed(size_t i, enum kem_status status)
{
	ck_assert_int_eq(decaps[i].status, status);
	ck_assert(test_is_zero(&batch[i].found, sizeof(struct kem_shared)));
	test_item_check(&batch[i]);
}
