/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h: what each fuzz target is: the entry that libFuzzer calls, and points that
 * a seed has to reach. With -Dfuzz=true the targets are libFuzzer programs; in every
 * build they are linked to replay.c, which runs the committed seeds.
 */
#ifndef MLKEMD_FUZZ_TARGET_H
#define MLKEMD_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/*
 * The control of each target: a bug planted at a point. MLKEMD_FUZZ_PLANT names the
 * point; a replay that reaches it crashes, one that does not has seeds that test less
 * than they claim.
 */
static inline void
fuzz_point(const char *name)
{
	const char *plant = getenv("MLKEMD_FUZZ_PLANT");

	if (plant && !strcmp(plant, name)) {
		fprintf(stderr, "planted at %s\n", name);
		abort();
	}
}

#define fuzz_require(condition)                                            \
 do {                                                                      \
  if (!(condition)) {                                                      \
   fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
   abort();                                                                \
  }                                                                        \
 } while (0)

#endif
