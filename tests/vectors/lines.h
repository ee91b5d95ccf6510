/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h: files of lines "name = value". A name may stand there several times; a value is
 * hex, a list in braces, or both. Every line has to be asked for.
 */
#ifndef MLKEMD_TESTS_LINES_H
#define MLKEMD_TESTS_LINES_H

#include "vectors.h"

#define N_LINES_MAX 64

struct line {
	const char *name, *value;
	bool is_read;
};

struct lines {
	size_t n;
	struct line line[N_LINES_MAX];
};

void lines_read(struct lines *lines, const char *path, const char *sign);

/* The which-th line of that name, from 0. */
const char *lines_get(struct lines *lines, const char *name, unsigned which);
struct bytes lines_hex(struct lines *lines, const char *name, unsigned which);

/* A list of n numbers in braces. */
void lines_list(struct lines *lines, const char *name, int16_t *out, size_t n);

/* All were asked for; prints and checks their number. */
void lines_done(const struct lines *lines, const char *path, size_t n);

#endif
