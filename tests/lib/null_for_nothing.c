/* SPDX-License-Identifier: Apache-2.0 */
/*
 * null_for_nothing.so, for LD_PRELOAD: a malloc(3) that answers NULL when it is asked for
 * nothing, as C allows and some systems do. That is no lack of memory.
 */
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

/* glibc's own, by name: dlsym(3) would need memory before there is any. */
void *libc_malloc(size_t size) __asm__("__libc_malloc");
void *libc_calloc(size_t n, size_t size) __asm__("__libc_calloc");

EXPORT void *
malloc(size_t size)
{
	return size ? libc_malloc(size) : NULL;
}

EXPORT void *
calloc(size_t n, size_t size)
{
	return n && size ? libc_calloc(n, size) : NULL;
}
