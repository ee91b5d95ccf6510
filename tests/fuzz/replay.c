/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c: runs a target over files, each also cut short at a few places; without
 * libFuzzer and with any compiler. Usage: replay DIR. Prints TAP; a directory without
 * a seed is a failure.
 */
#include <dirent.h>

#include "target.h"

#define SEED_MAX (1u << 20)

static size_t
file_read(const char *path, uint8_t *buf)
{
	FILE *file = fopen(path, "rb");
	size_t n = 0;

	if (file) {
		n = fread(buf, 1, SEED_MAX, file);
		fclose(file);
	}
	return n;
}

/* A copy of the exact size, so that a sanitizer sees one byte too far. */
static void
input_run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	fuzz_require(copy);
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

int
main(int argc, char **argv)
{
	static uint8_t buf[SEED_MAX];
	int n_seeds = 0;

	if (argc != 2)
		return 2;
	if (LLVMFuzzerInitialize(&argc, &argv))
		return 2;
	DIR *dir = opendir(argv[1]);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		size_t size = file_read(path, buf);
		input_run(buf, size);
		for (size_t cut = 1; cut <= 8 && cut <= size; cut++)
			input_run(buf, size - size * cut / 9);
		n_seeds++;
		printf("ok %d - %s\n", n_seeds, entry->d_name);
		fflush(stdout);
	}
	if (dir)
		closedir(dir);
	printf("1..%d\n", n_seeds);
	return n_seeds ? 0 : 1;
}
