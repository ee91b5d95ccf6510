/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file. A mistake is one line of text; what is accepted can be printed,
 * and the print is itself a configuration that is accepted and prints the same.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config.h"
#include "target.h"

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	return 0;
}

/* Loads size bytes as a file. Returns config_load()'s. */
static int
text_load(const void *text, size_t size, struct config **configp)
{
	char path[64], error[512] = "";
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	fuzz_require(fd >= 0 && write(fd, text, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	const struct config_sources sources = {.file = path, .file_required = true};
	int r = config_load(configp, &sources, NULL, error, sizeof(error));
	close(fd);
	fuzz_require(r == 0 || r == CONFIG_E_INVALID);
	if (r == CONFIG_E_INVALID) {
		fuzz_require(memchr(error, 0, sizeof(error)) && error[0]);
		for (const char *c = error; *c; c++)
			fuzz_require(*c != '\n' && *c != '\x1b');
	}
	return r;
}

static char *
print(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fuzz_require(out);
	config_print(config, out);
	fclose(out);
	return text;
}

/* Values alone: where they came from differs. */
static void
comments_strip(char *text)
{
	char *to = text;
	bool comment = false, line_start = true;

	for (const char *from = text; *from; from++) {
		if (*from == '#')
			comment = true;
		if (*from == '\n')
			comment = false;
		if (!comment && !(line_start && (*from == ' ' || *from == '\n')))
			*to++ = *from;
		line_start = *from == '\n';
	}
	*to = '\0';
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *config = NULL, *again = NULL;

	if (text_load(data, size, &config)) {
		fuzz_point("config-refused");
		return 0;
	}
	fuzz_point("config-accepted");
	char *text = print(config);
	fuzz_require(text_load(text, strlen(text), &again) == 0);
	char *second = print(again);
	comments_strip(text);
	comments_strip(second);
	fuzz_require(!strcmp(text, second));
	free(text);
	free(second);
	config_free(config);
	config_free(again);
	return 0;
}
