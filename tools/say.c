/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "ctl.h"
#include "json.h"

int
ctl_fail(const struct ctl *ctl, enum ctl_exit status, const char *format, ...)
{
	static const char *const names[] = {
	    "ok", "failed", "usage", "unreachable", "denied", "refused", "busy"};
	char text[1024];
	struct json json;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (ctl->left_out) {
		ctl_note("note: %s left out: %s", ctl->left_out, text);
		return (int)status;
	}
	fprintf(stderr, "mlkemctl%s%s: %s\n", ctl->command ? " " : "",
	    ctl->command ? ctl->command : "", text);
	if (ctl->json) {
		json_begin(&json, stdout);
		json_flag(&json, "ok", false);
		json_string(&json, "error", names[status]);
		json_number(&json, "exit_status", status);
		json_string(&json, "message", text);
		json_end(&json);
	}
	return (int)status;
}

void
ctl_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("mlkemctl: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

uint64_t
ctl_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}
