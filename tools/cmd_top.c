/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_top.c: what the daemon does now, from two looks at its counters. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "json.h"
#include "stats.h"

static volatile sig_atomic_t ended;

struct look {
	struct stats stats;
	uint64_t at_ns, cpu_ns;
};

static void
note_end(int signal)
{
	ended = 1;
}

static int
look(const struct ctl *ctl, struct look *look)
{
	int status = stats_read(ctl, &look->stats);

	look->at_ns = ctl_now_ns();
	look->cpu_ns = stats_cpu_ns(look->stats.pid);
	return status;
}

/* What changed between two looks, for a second. */
struct pace {
	const struct look *then, *now;
	double seconds;
};

static double
per_second(const struct pace *pace, const char *name)
{
	return (double)stats_grown(&pace->then->stats, &pace->now->stats, name) /
	       pace->seconds;
}

static double
ratio(const struct pace *pace, const char *name, const char *of)
{
	double n = per_second(pace, of);

	return n > 0 ? per_second(pace, name) / n : 0;
}

static double
cpu_percent(const struct pace *pace)
{
	if (!pace->then->cpu_ns)
		return 0;
	return (double)(pace->now->cpu_ns - pace->then->cpu_ns) / 1e7 / pace->seconds;
}

static void
show_json(const struct pace *pace)
{
	static const char *const rates[][2] = {
	    {"keygen_per_s", "items_keygen_total"},
	    {"encaps_per_s", "items_encaps_total"},
	    {"decaps_per_s", "items_decaps_total"},
	    {"failed_per_s", "items_failed_total"},
	    {"shed_per_s", "shed_total"},
	    {"deadline_exceeded_per_s", "deadline_exceeded_total"},
	    {"pool_taken_per_s", "pool_taken_total"},
	    {"pool_missed_per_s", "pool_missed_total"},
	    {"fallbacks_per_s", "client_fallbacks_total"},
	};
	static const char *const levels[] = {
	    "connections", "handles", "pool_hybrid", "pool_mlkem768", "pool_x25519"};
	struct json json;

	json_begin(&json, stdout);
	json_fixed(&json, "seconds", pace->seconds);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		json_fixed(&json, rates[i][0], per_second(pace, rates[i][1]));
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		json_number(
		    &json, levels[i], stats_value(&pace->now->stats, levels[i]));
	json_fixed(
	    &json, "mean_batch", ratio(pace, "group_items_total", "groups_total"));
	json_fixed(&json, "cpu_percent", cpu_percent(pace));
	json_fixed(&json, "busy_percent", per_second(pace, "busy_us_total") / 1e4);
	json_end(&json);
}

static void
show_text(const struct ctl *ctl, const struct pace *pace, bool on_terminal)
{
	const struct stats *now = &pace->now->stats;

	if (on_terminal)
		fputs("\033[H\033[J", stdout);
	printf("mlkemd (pid %ld), control socket %s, over %.1f s\n", (long)now->pid,
	    ctl->control_path, pace->seconds);
	printf("operations/s  keygen %.0f  encaps %.0f  decaps %.0f  refused %.0f\n",
	    per_second(pace, "items_keygen_total"),
	    per_second(pace, "items_encaps_total"),
	    per_second(pace, "items_decaps_total"),
	    per_second(pace, "items_failed_total"));
	printf("batches       %.0f/s, %.2f of 8 items; spare X25519 lanes refilled "
	       "%.0f/s, idle %.0f/s\n",
	    per_second(pace, "groups_total"),
	    ratio(pace, "group_items_total", "groups_total"),
	    per_second(pace, "x25519_lanes_refilled_total"),
	    per_second(pace, "x25519_lanes_idle_total"));
	printf("pool          hybrid %llu  ML-KEM-768 %llu  X25519 %llu; taken %.0f/s, "
	       "empty %.0f/s\n",
	    (unsigned long long)stats_value(now, "pool_hybrid"),
	    (unsigned long long)stats_value(now, "pool_mlkem768"),
	    (unsigned long long)stats_value(now, "pool_x25519"),
	    per_second(pace, "pool_taken_total"),
	    per_second(pace, "pool_missed_total"));
	printf("clients       %llu connections, %llu keys waiting; fallbacks told "
	       "%.0f/s\n",
	    (unsigned long long)stats_value(now, "connections"),
	    (unsigned long long)stats_value(now, "handles"),
	    per_second(pace, "client_fallbacks_total"));
	printf("trouble       shed %.0f/s  too late %.0f/s  slow %.0f/s  broken frames "
	       "%.0f/s  denied %.0f/s\n",
	    per_second(pace, "shed_total"), per_second(pace, "deadline_exceeded_total"),
	    per_second(pace, "slow_requests_total"),
	    per_second(pace, "broken_frames_total"),
	    per_second(pace, "connections_denied_total"));
	printf("processor     %.0f%% of a CPU, shards busy %.0f%%\n", cpu_percent(pace),
	    per_second(pace, "busy_us_total") / 1e4);
	if (!on_terminal)
		putchar('\n');
	fflush(stdout);
}

int
ctl_top(struct ctl *ctl)
{
	static struct look looks[2]; /* large */
	struct sigaction action = {.sa_handler = note_end};
	bool on_terminal = !ctl->json && isatty(STDOUT_FILENO);
	int status = look(ctl, &looks[0]);

	sigaction(SIGINT, &action, NULL);
	for (uint32_t i = 0; !status && (ctl->count == 0 || i < ctl->count); i++) {
		struct pace pace = {.then = &looks[i % 2], .now = &looks[(i + 1) % 2]};

		poll(NULL, 0, (int)ctl->interval_ms);
		if (ended)
			break;
		status = look(ctl, &looks[(i + 1) % 2]);
		if (status)
			break;
		pace.seconds = (double)(pace.now->at_ns - pace.then->at_ns) / 1e9;
		if (ctl->json)
			show_json(&pace);
		else
			show_text(ctl, &pace, on_terminal);
	}
	return status;
}
