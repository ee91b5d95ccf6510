/* SPDX-License-Identifier: Apache-2.0 */
#include "secmem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kem/fault.h"
#include "kem/kem.h"

#define SECMEM_ALIGN 64u

/* Its number on every architecture; s390x's headers leave it out. */
#define CALL_MEMFD_SECRET 447

static size_t
page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t
round_up(size_t size, size_t unit)
{
	return (size + unit - 1) / unit * unit;
}

/* Address space of size bytes between two guard pages, none of it accessible yet. */
static uint8_t *
guarded_reserve(size_t size)
{
	size_t page = page_bytes();
	uint8_t *p = mmap(NULL, size + 2 * page, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p + page;
}

/*
 * Touches every page now, so that no request pays for it later. Written by hand:
 * MADV_POPULATE_WRITE goes through get_user_pages, which secret pages refuse.
 */
static void
prefault(uint8_t *base, size_t size)
{
	for (size_t at = 0; at < size; at += page_bytes())
		*(volatile uint8_t *)(base + at) = 0;
}

static bool
memfd_secret_map(uint8_t *base, size_t size, const char **whyp)
{
	int fd;
	void *p;

	if (fault("no-memfd-secret")) {
		*whyp = "memfd_secret: switched off for a test";
		return false;
	}

	fd = (int)syscall(CALL_MEMFD_SECRET, O_CLOEXEC);
	if (fd < 0) {
		*whyp = errno == ENOSYS
			    ? "memfd_secret: not in this kernel, or not switched on "
			      "(secretmem.enable=1 on its command line)"
			    : "memfd_secret: refused by the kernel";
		return false;
	}
	if (ftruncate(fd, (off_t)size) != 0) {
		*whyp = "memfd_secret: ftruncate failed";
		close(fd);
		return false;
	}
	p = mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (p == MAP_FAILED) {
		*whyp = errno == EAGAIN ? "memfd_secret: over RLIMIT_MEMLOCK"
					: "memfd_secret: mmap failed";
		close(fd);
		return false;
	}
	close(fd);
	return true;
}

static int
anonymous_map(uint8_t *base, size_t size)
{
	void *p = mmap(base, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return p == MAP_FAILED ? -errno : 0;
}

static bool
lock(uint8_t *base, size_t size)
{
	if (fault("no-mlock")) {
		errno = ENOMEM;
		return false;
	}
	/* mlock2: sanitizers turn mlock() into nothing, and the tests would be blind. */
	return mlock2(base, size, 0) == 0;
}

/* Maps base in the best mode that the policy allows. Returns 0, or a negative errno. */
static int
arena_map(struct secmem *secmem, uint8_t *base, size_t size, enum secmem_policy policy)
{
	int r;

	secmem->mode = SECMEM_MODE_OFF;
	if (policy == SECMEM_OFF)
		secmem->why = "secret-memory is off in the configuration";
	else if (memfd_secret_map(base, size, &secmem->why)) {
		secmem->mode = SECMEM_MODE_MEMFD_SECRET;
		return 0;
	}

	r = anonymous_map(base, size);
	if (r != 0 || policy == SECMEM_OFF)
		return r;
	if (lock(base, size)) {
		secmem->mode = SECMEM_MODE_MLOCK;
		return 0;
	}
	r = -errno;
	secmem->why = "neither memfd_secret nor mlock can be had (RLIMIT_MEMLOCK?)";
	return policy == SECMEM_REQUIRE ? r : 0;
}

int
secmem_init(struct secmem *secmem, size_t size, enum secmem_policy policy)
{
	size_t page = page_bytes();
	uint8_t *base;
	int r;

	*secmem = (struct secmem){0};
	size = round_up(size, page);
	base = guarded_reserve(size);
	if (base == NULL)
		return -ENOMEM;

	r = arena_map(secmem, base, size, policy);
	if (r == 0 && madvise(base, size, MADV_DONTFORK) != 0)
		r = -errno;
	/* Secret pages are never dumped, and some kernels refuse to be told so. */
	if (r == 0 && secmem->mode != SECMEM_MODE_MEMFD_SECRET &&
	    madvise(base, size, MADV_DONTDUMP) != 0)
		r = -errno;
	if (r != 0) {
		munmap(base - page, size + 2 * page);
		return r;
	}

	prefault(base, size);
	secmem->base = base;
	secmem->size = size;
	return 0;
}

void
secmem_fini(struct secmem *secmem)
{
	size_t page = page_bytes();

	if (secmem->base == NULL)
		return;
	kem_wipe(secmem->base, secmem->size);
	munmap(secmem->base - page, secmem->size + 2 * page);
	*secmem = (struct secmem){0};
}

void *
secmem_carve(struct secmem *secmem, size_t size)
{
	uint8_t *p = secmem->base + secmem->used;

	if (size > secmem->size - secmem->used)
		return NULL;
	size = round_up(size, SECMEM_ALIGN);
	if (size > secmem->size - secmem->used)
		return NULL;
	secmem->used += size;
	return p;
}

const char *
secmem_mode_name(enum secmem_mode mode)
{
	switch (mode) {
	case SECMEM_MODE_MEMFD_SECRET:
		return "memfd_secret";
	case SECMEM_MODE_MLOCK:
		return "mlock";
	case SECMEM_MODE_OFF:
		break;
	}
	return "off";
}
