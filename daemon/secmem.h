/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secmem.h: one arena of secret memory a shard: memfd_secret(2), or mlock with
 * MADV_DONTDUMP, between PROT_NONE guards, MADV_DONTFORK, prefaulted. Carved once, at
 * the start, front to back; wiped and unmapped at the end. The owner is the shard.
 */
#ifndef MLKEMD_SECMEM_H
#define MLKEMD_SECMEM_H

#include <stddef.h>
#include <stdint.h>

enum secmem_policy { SECMEM_PREFER, SECMEM_REQUIRE, SECMEM_OFF };
enum secmem_mode { SECMEM_MODE_OFF, SECMEM_MODE_MLOCK, SECMEM_MODE_MEMFD_SECRET };

struct secmem {
	uint8_t *base;
	size_t size, used;
	enum secmem_mode mode;
	const char *why; /* why memfd_secret could not be had, or NULL; static */
};

/*
 * Maps size bytes. SECMEM_REQUIRE fails if neither memfd_secret nor mlock can be had;
 * SECMEM_PREFER goes on without. Returns 0, or a negative errno.
 */
__attribute__((warn_unused_result)) int secmem_init(
    struct secmem *secmem, size_t size, enum secmem_policy policy);
void secmem_fini(struct secmem *secmem); /* wipes; accepts the zero state */

/* The next size bytes, 64-aligned, zero. NULL if the arena is used up (a bug). */
void *secmem_carve(struct secmem *secmem, size_t size);

/* "memfd_secret", "mlock", "off" */
const char *secmem_mode_name(enum secmem_mode mode);

#endif
