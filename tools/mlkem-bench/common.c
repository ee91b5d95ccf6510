/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kem/arch/backend.h"
#include "kem/arch/dispatch.h"
#include "kem/internal.h"

int
tool_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return -1;
}

int
tool_number(const char *name, const char *text, double min, double max, double *valuep)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || *end || errno || !(value >= min && value <= max))
		return tool_fail("--%s %.20s: a number from %g to %g is allowed", name,
		    text, min, max);
	*valuep = value;
	return 0;
}

int
tool_whole(
    const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *valuep)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value < min || value > max)
		return tool_fail(
		    "--%s %.20s: a whole number from %llu to %llu is allowed", name,
		    text, (unsigned long long)min, (unsigned long long)max);
	*valuep = value;
	return 0;
}

int
tool_open_backends(struct kem **kems)
{
	unsigned features = cpu_features(&cpu_probe_real);
	const struct backend *backend;
	int n = 0, r;

	for (unsigned i = 0; backend_number(i); i++) {
		const char *name = backend_number(i)->name;

		if (backend_choose_for(features, name, &backend) < 0) {
			tool_fail("%s can't run on this CPU", name);
			continue;
		}
		if (n == TOOL_BACKENDS_MAX)
			return tool_fail("more backends than there is room for");
		r = kem_open_with(&kems[n], backend);
		if (r < 0)
			return tool_fail("%s: %s", name, kem_strerror(r));
		n++;
	}
	return n;
}

/* A name alone may say little: family and model are lines of their own. */
void
tool_cpu_line(const char *label, char *value, size_t size)
{
	FILE *in = fopen("/proc/cpuinfo", "r");
	size_t len = strlen(label);
	char line[256];

	snprintf(value, size, "unknown");
	while (in && fgets(line, sizeof line, in)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, label, len) != 0 || line[len] != '\t' || !colon)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(value, size, "%s", colon[1] ? colon + 2 : "");
		break;
	}
	if (in)
		fclose(in);
}

uint64_t
tool_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void
tool_random_fill(uint64_t *state, uint8_t *out, size_t len)
{
	while (len > 0) {
		size_t n = len < 8 ? len : 8;
		uint64_t word = tool_random(state);

		memcpy(out, &word, n);
		out += n;
		len -= n;
	}
}
