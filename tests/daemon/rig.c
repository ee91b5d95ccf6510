/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"

void
rig_open(struct rig *rig, uint32_t pool)
{
	struct kem *kem = NULL;

	ck_assert_int_eq(kem_open(&kem, "generic"), 0);
	rig_open_kem(rig, pool, kem);
}

void
rig_open_kem(struct rig *rig, uint32_t pool, struct kem *kem)
{
	size_t bytes;

	memset(rig, 0, sizeof(*rig));
	rig->kem = kem;
	rig->config.handle_lifetime_ms = 60000;
	rig->config.user_share = 100;
	rig->config.pool = (struct keypool_limits){
	    .high = {pool, pool, pool}, .low_percent = 50, .max_age_ms = 30000};

	bytes = sizeof(struct kem_scratch) + CODEC_MEM_BYTES +
		keypool_arena_bytes(&rig->config.pool) + keytable_arena_bytes(RIG_KEYS);
	ck_assert_int_eq(secmem_init(&rig->secmem, bytes, SECMEM_OFF), 0);
	rig->scratch = secmem_carve(&rig->secmem, sizeof(struct kem_scratch));
	mem_init(
	    &rig->mem, secmem_carve(&rig->secmem, CODEC_MEM_BYTES), CODEC_MEM_BYTES);
	ck_assert_int_eq(keypool_new(&rig->pool, &rig->config.pool, rig->kem,
			     &rig->secmem, rig->scratch, &rig->metrics),
	    0);
	ck_assert_int_eq(
	    keytable_new(&rig->keys, RIG_KEYS, rig->kem, &rig->secmem, &rig->metrics),
	    0);
	user_table_init(&rig->users);
	rig->user = user_join(&rig->users, 1000, false);
	ck_assert_ptr_nonnull(rig->user);
	batch_init(&rig->batch, rig->kem, rig->scratch, &rig->metrics);
	rig->service = (struct service){.batch = &rig->batch,
	    .pool = rig->pool,
	    .keys = rig->keys,
	    .config = &rig->config,
	    .metrics = &rig->metrics};
}

void
rig_close(struct rig *rig)
{
	rig_fault(NULL);
	mem_wipe(&rig->mem);
	rig->pool = keypool_free(rig->pool);
	user_leave(rig->user);
	rig->keys = keytable_free(rig->keys);
	secmem_fini(&rig->secmem);
	rig->kem = kem_free(rig->kem);
}

void
rig_fill(struct rig *rig)
{
	while (keypool_wants_fill(rig->pool))
		ck_assert_int_eq(keypool_fill_group(rig->pool, request_now_us()), 0);
}

static void
request_done(struct request *req)
{
	struct rig *rig = req->owner;

	rig->n_done++;
	rig->last_done = req;
}

struct request *
rig_request(struct rig *rig, enum request_op op, enum kem_alg alg, uint32_t n)
{
	struct request *req = mem_alloc(&rig->mem, sizeof(*req));

	ck_assert_ptr_nonnull(req);
	req->mem = &rig->mem;
	req->op = op;
	req->alg = alg;
	req->secret_bytes = kem_alg_info(alg)->shared_bytes;
	req->arrived_us = request_now_us();
	req->deadline_us = UINT64_MAX;
	req->conn_id = RIG_CONN;
	req->user = rig->user;
	req->n_items = n;
	if (n > 0) {
		req->items = mem_alloc(&rig->mem, n * sizeof(*req->items));
		ck_assert_ptr_nonnull(req->items);
	}
	for (uint32_t i = 0; i < n; i++)
		req->items[i].request = req;
	req->done = request_done;
	req->owner = rig;
	return req;
}

void
rig_serve(struct rig *rig, struct request *req)
{
	unsigned before = rig->n_done;

	req->done = request_done;
	req->owner = rig;
	service_handle(&rig->service, req);
	ck_assert_int_eq(batch_run(&rig->batch), 0);
	ck_assert_uint_eq(rig->n_done, before + 1);
	ck_assert_ptr_eq(rig->last_done, req);
}

enum request_status
rig_status(struct rig *rig, struct request *req)
{
	rig_serve(rig, req);
	if (req->status != STATUS_OK) {
		ck_assert_ptr_nonnull(req->message);
		ck_assert_uint_le(strlen(req->message), WIRE_MAX_MESSAGE_TEXT);
	}
	return req->status;
}

unsigned
rig_count(const struct request *req, enum request_status status)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < req->n_items; i++)
		n += req->items[i].status == status;
	return n;
}

void
rig_bytes(struct request_bytes *to, const void *data, size_t len)
{
	to->data = data;
	to->len = len;
}

void
rig_pair_make(struct rig *rig, enum kem_alg alg, struct rig_pair *pair)
{
	struct kem_keygen_item item = {.share = pair->share, .secret = pair->secret};

	ck_assert_int_eq(kem_keygen(rig->kem, alg, &item, 1, rig->scratch), 0);
	ck_assert_int_eq(item.status, KEM_OK);
	kem_private_export(alg, pair->secret, pair->share, pair->dk);
}

void
rig_encaps(struct rig *rig, enum kem_alg alg, const uint8_t *share, uint8_t *ct,
    struct kem_shared *shared)
{
	struct kem_encaps_item item = {.share = share,
	    .share_len = kem_alg_info(alg)->share_bytes,
	    .ct = ct,
	    .shared = shared};

	ck_assert_int_eq(kem_encaps(rig->kem, alg, &item, 1, rig->scratch), 0);
	ck_assert_int_eq(item.status, KEM_OK);
}

const void *
rig_find(const void *memory, size_t size, const void *needle, size_t len)
{
	return memmem(memory, size, needle, len);
}

bool
rig_zero(const void *memory, size_t size)
{
	const uint8_t *p = memory;

	return size == 0 || (p[0] == 0 && memcmp(p, p + 1, size - 1) == 0);
}

bool
rig_in_arena(const struct rig *rig, const void *needle, size_t len)
{
	return rig_find(rig->secmem.base, rig->secmem.size, needle, len) != NULL;
}

bool
rig_hooks(void)
{
	bool hooks;

	setenv("MLKEMD_FAULT", "probe", 1);
	hooks = fault("probe");
	unsetenv("MLKEMD_FAULT");
	return hooks;
}

void
rig_fault(const char *list)
{
	if (list != NULL)
		setenv("MLKEMD_FAULT", list, 1);
	else
		unsetenv("MLKEMD_FAULT");
}

int
rig_main(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int n_failed;

	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
