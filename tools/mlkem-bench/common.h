/* SPDX-License-Identifier: Apache-2.0 */
/*
 * common.h: what mlkem-bench and mlkem-ct share beside the clock (measure.h): how they
 * read numbers, complain, open backends, name the CPU and make bytes that anybody can
 * make again.
 */
#ifndef MLKEMD_BENCH_COMMON_H
#define MLKEMD_BENCH_COMMON_H

#include <stddef.h>
#include <stdint.h>

struct kem;

#define TOOL_BACKENDS_MAX 8

/*
 * One line on stderr, after the program's name; returns -1, so that a caller can
 * `return tool_fail(...)`.
 */
__attribute__((format(printf, 1, 2))) int tool_fail(const char *format, ...);

/* The value of --name. Return 0, or -1 after saying what is allowed. */
int tool_number(
    const char *name, const char *text, double min, double max, double *valuep);
int tool_whole(
    const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *valuep);

/*
 * Every backend that this build has and this CPU can run, the best first; says which of
 * them it can't. kems has TOOL_BACKENDS_MAX places and is the caller's to free, failed or
 * not. Returns how many, or -1 after saying why.
 */
int tool_open_backends(struct kem **kems);

/* The value of one of the first processor's lines in /proc/cpuinfo, or "unknown". */
void tool_cpu_line(const char *label, char *value, size_t size);

/* splitmix64: alike for a like start. For inputs of tests, never for a key in use. */
uint64_t tool_random(uint64_t *state);
void tool_random_fill(uint64_t *state, uint8_t *out, size_t len);

#endif
