/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "leak.h"

static const char *
set_name(const struct leak_case *leak)
{
	return leak->test->flags & LEAK_NO_SET ? "-" : kem_alg_info(leak->alg)->name;
}

void
report_head(const struct leak_case *leak)
{
	printf("%s: backend %s, set %s, seed %llu\n", leak->test->name, leak->backend,
	    set_name(leak), (unsigned long long)leak->seed);
	fflush(stdout);
}

void
report_line(const struct leak_case *leak)
{
	const struct stats_result *result = &leak->result;
	char series[32];

	stats_series_name(result->series, series, sizeof series);
	printf("  n = %llu, max t = %+.2f, max tau = %+.2e, (5/tau)^2 = %.3g (%s",
	    (unsigned long long)leak->stats.n, result->t, result->tau, result->needed,
	    series);
	if (result->series != STATS_SQUARE)
		printf(": %+.1f ticks", result->difference);
	puts(")");
	fflush(stdout);
}

void
report_verdict(const struct leak_case *leak)
{
	switch (leak->verdict) {
	case LEAK_SEEN:
		puts(
		    leak->test->flags & LEAK_CONTROL
			? "  seen, as it has to be: this clock can tell"
			: "  LEAK: the time tells the classes apart, and did so again");
		break;
	case LEAK_NOT_CONFIRMED:
		puts(
		    "  not confirmed: t was over 4.5, and was not when measured again; "
		    "more measurements tell");
		break;
	case LEAK_SMALL:
		puts(
		    "  no evidence of a leak: a difference that is there, but below the "
		    "floor");
		break;
	case LEAK_NOT_SEEN:
		puts("  no evidence of a leak");
		break;
	case LEAK_SKIPPED:
		printf("  skipped: %s\n", leak->reason);
		break;
	}
	fflush(stdout);
}

/* As a string of JSON: what a socket's path puts into a reason. */
static void
print_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20)
			printf("\\u%04x", (unsigned char)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

void
report_json(const struct leak_case *leak)
{
	static const char *const verdicts[] = {
	    [LEAK_NOT_SEEN] = "no evidence",
	    [LEAK_NOT_CONFIRMED] = "not confirmed",
	    [LEAK_SMALL] = "below the floor",
	    [LEAK_SEEN] = "leak",
	    [LEAK_SKIPPED] = "skipped",
	};
	const struct stats_result *result = &leak->result;
	char series[32];

	stats_series_name(result->series, series, sizeof series);
	printf("{\"test\":\"%s\",\"backend\":", leak->test->name);
	print_string(leak->backend);
	printf(
	    ",\"set\":\"%s\",\"seed\":%llu,\"n\":%llu,\"max_t\":%.6g,\"max_tau\":%.6g,"
	    "\"needed\":%.6g,\"difference\":%.6g,\"series\":\"%s\",\"verdict\":\"%s\"",
	    set_name(leak), (unsigned long long)leak->seed,
	    (unsigned long long)leak->stats.n, result->t, result->tau, result->needed,
	    result->difference, series, verdicts[leak->verdict]);
	if (leak->verdict == LEAK_SKIPPED) {
		fputs(",\"reason\":", stdout);
		print_string(leak->reason);
	}
	puts("}");
	fflush(stdout);
}
